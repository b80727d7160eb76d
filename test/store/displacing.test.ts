import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Batch } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { acked, FAULTS, PERSISTENT, RAW_PERSISTENT, recover } from './failing-support.ts';
import { FaultyStore } from './faulty-store.ts';
import { turns } from './support.ts';

const REFUSED = 0x97;
const PLAIN = { retain: false, dup: false } as const;
const FULL = 5;
/** Size of a payload with which `FULL` messages fit into a queue with a limit of bytes, and one more does not. */
const BYTES = 1_000;
const LIMITS: Record<string, TestBrokerOptions> = {
  maxMqueueLen: { maxMqueueLen: FULL },
  maxMqueueBytes: { maxMqueueBytes: FULL * (BYTES + 50) },
  'maxMqueueLen with priorities': { maxMqueueLen: FULL, mqueuePriorities: 'other=1' }
};

/** A store whose commits can be delayed. */
class GatedStore extends FaultyStore {
  #gate: Promise<void> | undefined;

  /** Holds back all commits until the returned function is called. */
  holdCommits(): () => void {
    let release = () => {};
    this.#gate = new Promise((resolve) => {
      release = resolve;
    });
    return () => release();
  }

  override async commit(batch: Batch): Promise<void> {
    await this.#gate;
    await super.commit(batch);
  }
}

interface Stage {
  readonly kit: TestBroker;
  readonly store: FaultyStore;
  readonly publisher: RawClient;
  readonly dropped: string[];
}

/**
 * Starts a broker with the persistent session `reader`, which receives no message for now.
 * @param isOnline its client is connected and acknowledges nothing, so that a message is in flight and later ones wait in memory
 */
async function stage(options: TestBrokerOptions, isOnline: boolean, store = new FaultyStore()): Promise<Stage> {
  const kit = await createTestBroker({ ...options, store, leakCheck: false });
  const dropped: string[] = [];
  kit.broker.on('message.dropped', ({ message }) => dropped.push(message.topic));
  kit.broker.on('error', () => undefined);
  const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
  await reader.subscribe({ topic: 'kept/#', qos: 1 });
  await reader.disconnect();
  await kit.clock.advance('1s');
  const publisher = await rawClient(kit.broker, { clientId: 'publisher', clean: true });
  if (!isOnline) return { kit, store, publisher, dropped };
  const properties = { ...RAW_PERSISTENT.properties, receiveMaximum: 1 };
  const slow = await rawClient(kit.broker, { clientId: 'reader', clean: false, properties });
  await kit.broker.publish('kept/in-flight', 'x', { qos: 1 });
  await slow.next('publish');
  return { kit, store, publisher, dropped };
}

function names(count: number, kind: string): string[] {
  return Array.from({ length: count }, (_, n) => `kept/${kind}/${n}`);
}

function send({ publisher }: Stage, topics: readonly string[], bytes = BYTES): void {
  for (const [n, topic] of topics.entries())
    publisher.send({ cmd: 'publish', topic, payload: Buffer.alloc(bytes), ...PLAIN, qos: 1, messageId: n + 1 });
}

async function codes({ publisher }: Stage, count: number): Promise<number[]> {
  const all: number[] = [];
  for (let n = 0; n < count; n++) all.push(await acked(publisher, 'puback'));
  return all;
}

/** Publishes messages that are accepted, and lets the broker drop those beyond the limits. */
async function fill(it: Stage, topics: readonly string[]): Promise<void> {
  send(it, topics);
  assert.deepEqual(await codes(it, topics.length), Array(topics.length).fill(0));
  await it.kit.clock.advance('2s');
}

/** Returns the topics of the messages that `reader` receives when it has room for all of them. */
async function received(kit: TestBroker): Promise<string[]> {
  const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
  const topics: string[] = [];
  reader.on('message', ({ topic }) => topics.push(topic));
  await kit.clock.advance('2s');
  await reader.disconnect();
  return topics.filter((topic) => topic !== 'kept/in-flight');
}

for (const isOnline of [false, true])
  describe(`A full queue of a client that is ${isOnline ? 'connected, and slow' : 'offline'}`, () => {
    for (const [limit, options] of Object.entries(LIMITS)) {
      if (!isOnline && options.mqueuePriorities !== undefined) continue; // then the limit is exact only in memory
      for (const fault of FAULTS)
        it(`(${limit}) loses nothing to messages that are refused (0x97) because their commit ${fault}`, async () => {
          const it = await stage(options, isOnline);
          const { kit, store, dropped } = it;
          await using _ = kit;
          await fill(it, names(FULL, 'old'));
          store.fault = fault;
          send(it, names(3, 'refused'));
          assert.deepEqual(await codes(it, 3), [REFUSED, REFUSED, REFUSED]);
          await recover(kit, store);
          assert.deepEqual(dropped, []);
          assert.deepEqual(await received(kit), names(FULL, 'old'));
        });

      it(`(${limit}) loses nothing while the commit of new messages is in progress, nor when it fails`, async () => {
        const it = await stage(options, isOnline);
        const { kit, store, dropped } = it;
        await using _ = kit;
        await fill(it, names(FULL, 'old'));
        const fail = store.failLater();
        send(it, names(3, 'refused'));
        await turns(20);
        const meanwhile = dropped.length;
        fail();
        assert.equal(meanwhile, 0);
        assert.deepEqual(await codes(it, 3), [REFUSED, REFUSED, REFUSED]);
        await recover(kit, store);
        assert.deepEqual(dropped, []);
        assert.deepEqual(await received(kit), names(FULL, 'old'));
      });

      it(`(${limit}) loses as many messages as a commit contains, and not those that arrive during it and are refused`, async () => {
        const store = new GatedStore();
        const it = await stage(options, isOnline, store);
        const { kit, dropped } = it;
        await using _ = kit;
        await fill(it, names(FULL, 'old'));
        const release = store.holdCommits();
        send(it, names(1, 'new'));
        await turns(20);
        send(it, names(3, 'refused'));
        await turns(20);
        store.faultAt.set(store.commits + 2, 'rejects');
        release();
        assert.deepEqual(await codes(it, 4), [0, REFUSED, REFUSED, REFUSED]);
        await recover(kit, store);
        assert.deepEqual(dropped, names(1, 'old'));
        assert.deepEqual(await received(kit), [...names(FULL, 'old').slice(1), ...names(1, 'new')]);
      });

      it(`(${limit}) loses as many messages as are accepted after a failure, and not those that were refused before`, async () => {
        const it = await stage(options, isOnline);
        const { kit, store, dropped } = it;
        await using _ = kit;
        await fill(it, names(FULL, 'old'));
        store.fault = 'rejects';
        send(it, names(3, 'refused'));
        assert.deepEqual(await codes(it, 3), [REFUSED, REFUSED, REFUSED]);
        await recover(kit, store);
        await fill(it, names(1, 'new'));
        assert.deepEqual(dropped, names(1, 'old'));
        assert.deepEqual(await received(kit), [...names(FULL, 'old').slice(1), ...names(1, 'new')]);
      });
    }
  });

describe('A full queue while nothing can be written', () => {
  it('keeps its acknowledged messages, and drops the QoS 0 messages that arrive', async () => {
    const it = await stage({ maxMqueueLen: FULL }, false);
    const { kit, store, publisher, dropped } = it;
    await using _ = kit;
    send(it, names(FULL, 'old'));
    assert.deepEqual(await codes(it, FULL), Array(FULL).fill(0));
    store.fault = 'rejects';
    send(it, names(1, 'refused'));
    assert.deepEqual(await codes(it, 1), [REFUSED]);
    for (const topic of names(3, 'zero')) {
      publisher.send({ cmd: 'publish', topic, payload: Buffer.alloc(0), ...PLAIN, qos: 0, messageId: 0 });
      await turns(10);
    }
    await recover(kit, store);
    assert.deepEqual(dropped, names(3, 'zero'));
    assert.deepEqual(await received(kit), names(FULL, 'old'));
  });
});

describe('The queues of all sessions in a store', () => {
  const LARGE = 100_000;

  /** A store that takes many turns to report how much is free. */
  class SlowlyMeasured extends FaultyStore {
    async freeBytes(): Promise<number> {
      await turns(50);
      return 1e9;
    }
  }

  for (const topic of ['kept/refused', 'other'])
    it(`loses nothing to messages that are refused (0x97), if the space is checked during their commit: topic ${topic}`, async () => {
      const store = new SlowlyMeasured();
      const it = await stage({ maxTotalMqueueStoreBytes: '2MB' }, false, store);
      const { kit, dropped } = it;
      await using _ = kit;
      const other = await kit.connect({ clientId: 'other', ...PERSISTENT });
      await other.subscribe({ topic: 'other', qos: 1 });
      await other.disconnect();
      await kit.clock.advance('2s');
      // an amount with which the broker starts to check the space as soon as it is committed
      send(it, names(18, 'old'), LARGE);
      assert.deepEqual(await codes(it, 18), Array(18).fill(0));
      const fail = store.failLater();
      send(it, Array(9).fill(topic), LARGE);
      await turns(100);
      fail();
      assert.deepEqual(await codes(it, 9), Array(9).fill(REFUSED));
      await recover(kit, store);
      assert.deepEqual(dropped, []);
      assert.deepEqual(await received(kit), names(18, 'old'));
    });
});
