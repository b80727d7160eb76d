import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Batch, Entry, Store } from '../../lib/store/store.ts';
import { Unwritten, UnwrittenShare } from '../../lib/store/unwritten.ts';
import type { TestBroker } from '../../lib/testing/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { publish } from '../support/wire.ts';
import { PERSISTENT, turns } from './support.ts';

/** A store that defers its commits until the test releases them. */
class HeldStore implements Store {
  readonly name = 'the disk';
  readonly #inner = memoryStore();
  #gate: Promise<void> | undefined;
  #release = () => {};

  hold(): void {
    this.#gate = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  release(): void {
    this.#gate = undefined;
    this.#release();
  }

  open(): Promise<void> {
    return this.#inner.open();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    return this.#inner.read(from, to, limit);
  }

  async commit(batch: Batch): Promise<void> {
    await this.#gate;
    await this.#inner.commit(batch);
  }
}

const MAX_BYTES = 1_000_000;

/** Starts a broker on such a store, with 100 stored sessions that each receive a copy of `all/...`, and one that receives `few/...`. */
async function busyBroker(): Promise<{ kit: TestBroker; store: HeldStore }> {
  const store = new HeldStore();
  const kit = await createTestBroker({ store, leakCheck: false, maxUnwrittenBytes: MAX_BYTES, maxMqueueLen: 0 });
  for (let at = 0; at <= 100; at++) {
    const reader = await kit.connect({ clientId: `reader${at}`, ...PERSISTENT });
    await reader.subscribe({ topic: at === 100 ? 'few/#' : 'all/#', qos: 1 });
    await reader.disconnect();
  }
  await kit.clock.advance('1s');
  store.hold();
  return { kit, store };
}

const queued = (kit: TestBroker, session: string) => kit.broker.sessions.get(session).counters().mqueueLen;

function send(client: RawClient, topic: string, count: number): void {
  for (let n = 1; n <= count; n++) client.send(publish(topic, 'x'.repeat(1_000), { qos: 1, messageId: n }));
}

/** Publishes until the broker stops reading from the client. */
async function flood(kit: TestBroker): Promise<RawClient> {
  const heavy = await rawClient(kit.broker);
  send(heavy, 'all/1', 200);
  await turns(20);
  const taken = queued(kit, 'reader0');
  assert.ok(taken >= 10 && taken < 60, `${taken} messages read from the publisher that causes many bytes`);
  return heavy;
}

describe('maxUnwrittenBytes, while a commit is in progress', () => {
  it('does not pause a publisher whose messages are not persisted', async () => {
    const { kit, store } = await busyBroker();
    await using _ = kit;
    const watcher = await kit.connect();
    await watcher.subscribe({ topic: 'quick/#', qos: 1 });
    await flood(kit);
    const bystander = await rawClient(kit.broker);
    send(bystander, 'quick/1', 500);
    await turns(20);
    assert.equal(bystander.received.filter(({ cmd }) => cmd === 'puback').length, 500);
    store.release();
  });

  it('does not pause a publisher that causes few bytes', async () => {
    const { kit, store } = await busyBroker();
    await using _ = kit;
    await flood(kit);
    const bystander = await rawClient(kit.broker);
    send(bystander, 'few/1', 300);
    await turns(20);
    assert.equal(queued(kit, 'reader100'), 300);
    assert.equal(
      bystander.received.filter(({ cmd }) => cmd === 'puback').length,
      0,
      'acknowledged when it is committed'
    );
    store.release();
    await turns(20);
    assert.equal(bystander.received.filter(({ cmd }) => cmd === 'puback').length, 300);
  });

  it('resumes reading from a publisher that caused many bytes when they are written', async () => {
    const { kit, store } = await busyBroker();
    await using _ = kit;
    const heavy = await flood(kit);
    store.release();
    await turns(100);
    assert.equal(queued(kit, 'reader0'), 200);
    assert.equal(heavy.received.filter(({ cmd }) => cmd === 'puback').length, 200);
  });

  it('does not pause publishers for messages of the app, up to four times the limit', async () => {
    const { kit, store } = await busyBroker();
    await using _ = kit;
    const { broker } = kit;
    const kept = Array.from({ length: 20 }, () => broker.publish('all/1', 'x'.repeat(1_000), { qos: 1 }));
    await turns(5);
    const bystander = await rawClient(broker);
    send(bystander, 'few/1', 300);
    await turns(20);
    assert.equal(queued(kit, 'reader100'), 300);
    for (let n = 0; n < 30; n++) kept.push(broker.publish('all/1', 'x'.repeat(1_000), { qos: 1 }));
    const late = await rawClient(broker);
    for (let n = 0; n < 20; n++) {
      send(late, 'few/1', 10);
      await turns(5);
    }
    assert.ok(
      queued(kit, 'reader100') < 350,
      `${queued(kit, 'reader100')} messages read although the total is reached`
    );
    store.release();
    await Promise.all(kept);
  });

  it('limits the bytes that many publishers cause together, none of them many', async () => {
    const { kit, store } = await busyBroker();
    await using _ = kit;
    const publishers = await Promise.all(Array.from({ length: 40 }, () => rawClient(kit.broker)));
    for (let round = 0; round < 10; round++) {
      for (const publisher of publishers) send(publisher, 'all/1', 1);
      await turns(3);
    }
    const bytes = queued(kit, 'reader0') * 100 * 1_000;
    assert.ok(bytes < 5 * MAX_BYTES, `${bytes} bytes read`);
    store.release();
    await turns(200);
    assert.equal(queued(kit, 'reader0'), 400);
  });
});

describe('The share of a publisher in the unwritten bytes', () => {
  it('consists of its bytes for the next commit and for the one in progress, and may be an equal part of the limit', () => {
    const commits = { ticket: 1, settled: 0 };
    const unwritten = new Unwritten(12, commits);
    const [one, other] = [new UnwrittenShare(), new UnwrittenShare()];
    const charge = (share: UnwrittenShare, bytes: number) => {
      unwritten.note(bytes);
      unwritten.charge(share, bytes);
      return [one, other].map((each) => unwritten.isTooMuch(each));
    };
    charge(one, 3);
    unwritten.begun();
    commits.ticket = 2;
    assert.deepEqual(charge(one, 1), [false, false]);
    assert.deepEqual(charge(other, 9), [false, true], 'the parts are 4 bytes, because "one" is in both commits');
    assert.deepEqual(charge(one, 1), [true, true]);
    unwritten.ended();
    commits.settled = 1;
    assert.deepEqual(charge(other, 1), [false, false], '12 bytes are left');
    assert.deepEqual(charge(other, 1), [false, true], 'the parts are 6 bytes');
  });
});
