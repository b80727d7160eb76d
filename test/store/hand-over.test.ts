import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { Random } from '../fuzz/random.ts';
import { rawClient } from '../support/raw-client.ts';
import { recover } from './failing-support.ts';
import { FaultyStore } from './faulty-store.ts';
import { Lives, MortalStore, PERSISTENT, turns } from './support.ts';

const FILTER = '$share/workers/jobs/#';
const COUNT = 60;

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `${from + n}`);

async function jobs({ kit }: Lives, from: number, to: number, qos: 1 | 2 = 1, bytes = 8): Promise<void> {
  for (let n = from; n <= to; n++) await kit.broker.publish('jobs/a', `${n}`.padEnd(bytes), { qos });
}

/** Returns the messages for a member that was offline or is new. */
async function taken(lives: Lives, clientId: string): Promise<string[]> {
  const { client, texts } = await lives.listen({ clientId });
  await lives.kit.clock.advance('1s');
  await client.disconnect();
  return texts().map((text) => text.trim());
}

function drops({ kit }: Lives): string[] {
  const list: string[] = [];
  kit.broker.on('message.dropped', ({ message, reason }) => list.push(`${`${message.payload}`.trim()} ${reason}`));
  return list;
}

describe('Stored messages for a member of a share group whose session ends', () => {
  for (const [how, end] of [
    ['expires', (lives: Lives) => lives.kit.clock.advance('61s')],
    ['is discarded', async (lives: Lives) => lives.kit.broker.sessions.get('away').discard()],
    [
      'is replaced by a clean start',
      async (lives: Lives) => (await lives.connect({ clientId: 'away', clean: true })).disconnect()
    ]
  ] as const) {
    it(`[4.8.2] delivers stored messages to another member in order when the session ${how}`, async () => {
      await using lives = await new Lives().begin();
      await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
      await jobs(lives, 1, COUNT, 1, 20_000); // in several records
      await lives.kit.clock.advance('1s');
      await lives.leave('other', FILTER);
      await end(lives);
      await lives.kit.clock.advance('5s');
      assert.deepEqual(await taken(lives, 'other'), numbers(1, COUNT));
      const kept = await lives.store.contents();
      assert.ok(!kept.some((key) => key.includes('segment')), `${kept}`);
    });
  }

  it('[4.8.2] delivers stored messages to another member if the session expired while no process was running', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT);
    await lives.leave('other', FILTER);
    await lives.crash(120_000);
    await lives.kit.clock.advance('1s');
    assert.deepEqual(await taken(lives, 'other'), numbers(1, COUNT));
  });

  it('[4.8.2] delivers stored messages to an in-memory member as well', async () => {
    for (const qos of [1, 2] as const) {
      await using lives = await new Lives().begin();
      await lives.leave('away', FILTER, qos, { sessionExpiry: '1m' });
      await jobs(lives, 1, COUNT, qos);
      const other = await lives.connect({ clientId: 'other', clean: true });
      const got: string[] = [];
      other.on('message', ({ payload }) => got.push(`${payload}`.trim()));
      await other.subscribe({ topic: FILTER, qos });
      await lives.kit.clock.advance('70s');
      assert.deepEqual(got, numbers(1, COUNT));
    }
  });

  it('[4.8.2] delivers stored messages with those in flight at QoS 1 to another member when the session ends while its client is connected', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT, 1, 20_000);
    const away = await rawClient(lives.kit.broker, {
      clientId: 'away',
      clean: false,
      properties: { sessionExpiryInterval: 60, receiveMaximum: 3 }
    });
    for (let n = 1; n <= 3; n++) await away.next('publish');
    await lives.leave('other', FILTER);
    await jobs(lives, COUNT + 1, COUNT + 1); // to the connected member
    away.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 0 } });
    await lives.kit.clock.advance('1s');
    assert.equal(lives.kit.broker.sessions.has('away'), false);
    assert.deepEqual(await taken(lives, 'other'), numbers(1, COUNT + 1));
  });

  it('[MQTT-4.8.2-5] delivers stored QoS 2 messages to another member only if they were never sent', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('away', FILTER, 2, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT, 2);
    const away = await lives.connect({ clientId: 'away', clean: false, sessionExpiry: '1m', receiveMaximum: 3 });
    const got: string[] = [];
    away.on('message', ({ payload }) => {
      got.push(`${payload}`.trim());
      away.destroy();
    });
    await lives.kit.clock.advance('1s');
    await lives.leave('other', FILTER, 2);
    await lives.kit.clock.advance('70s');
    const others = await taken(lives, 'other');
    assert.ok(others.length >= COUNT - 3 && others.length < COUNT, `${others.length}`);
    assert.deepEqual(others, numbers(COUNT - others.length + 1, COUNT));
    assert.ok(got.every((one) => !others.includes(one)));
  });

  it('[MQTT-4.8.2-5] delivers stored QoS 2 messages to another member if they had a packet id and waited for the store', async () => {
    await using lives = await new Lives().begin();
    const away = await lives.connect({ clientId: 'away', clean: false, sessionExpiry: '1m' });
    await away.subscribe({ topic: FILTER, qos: 2 });
    await lives.kit.clock.advance('1s');
    lives.store.turnsBefore = () => 50;
    const published = jobs(lives, 1, 1, 2);
    await turns(10);
    const { inflight } = lives.kit.broker.sessions.get('away').counters();
    away.destroy();
    await published;
    lives.store.turnsBefore = () => 0;
    assert.equal(inflight, 1);
    await lives.leave('other', FILTER, 2);
    await lives.kit.clock.advance('70s');
    assert.deepEqual(await taken(lives, 'other'), ['1']);
  });

  for (const qos of [1, 2] as const) {
    it(`delivers stored messages before those that wait for the next member, in order, also over several crashes: QoS ${qos}`, async () => {
      const seed = process.env.SEED ?? `${Date.now() % 1_000_000}`;
      const random = new Random(Number(seed));
      await using lives = await new Lives({ sharedSubscriptionStrategy: 'round_robin' }).begin();
      await lives.leave('a', FILTER, qos, { sessionExpiry: '1m' });
      await lives.leave('b', FILTER, qos, { sessionExpiry: '125s' });
      await lives.leave('c', FILTER, qos, { sessionExpiry: '1d' });
      await jobs(lives, 1, COUNT, qos, 10_000); // in several records
      for (const [clientId, expiry] of [
        ['a', '59s'],
        ['b', '40s']
      ] as const) {
        await lives.kit.clock.advance(expiry);
        assert.equal(lives.kit.broker.sessions.has(clientId), true);
        lives.store.turnsBefore = () => 3;
        const passing = lives.kit.clock.advance('6s'); // in which the session expires, or the next life begins after it
        await turns(random.below(60));
        await lives.kill();
        await passing.catch(() => undefined);
        await lives.kill({ isPendingKept: random.once(2) });
        await lives.kit.clock.advance('15s');
        assert.equal(lives.kit.broker.sessions.has(clientId), false);
      }
      const live = COUNT + 1;
      await jobs(lives, live, live, qos); // waits behind its own messages
      const got = await taken(lives, 'c');
      const of = (rest: number) => numbers(1, COUNT).filter((_, at) => at % 3 === rest);
      assert.deepEqual(got.slice(0, 20).toSorted(), of(0).toSorted(), `SEED=${seed}`);
      assert.deepEqual(got.slice(20, 40), of(1), `SEED=${seed}`);
      assert.deepEqual(got.slice(40), [...of(2), `${live}`], `SEED=${seed}`);
    });
  }

  it('delivers stored messages before those that wait for the next member, although that has more than it reads into memory at once', async () => {
    await using lives = await new Lives({ sharedSubscriptionStrategy: 'round_robin', maxMqueueLen: 0 }).begin();
    await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
    await lives.leave('other', FILTER);
    await jobs(lives, 1, 6_000);
    await lives.kit.clock.advance('70s');
    const odd = numbers(1, 6_000).filter((_, at) => at % 2 === 0);
    const even = numbers(1, 6_000).filter((_, at) => at % 2 === 1);
    assert.deepEqual(await taken(lives, 'other'), [...odd, ...even]);
  });

  it('drops and counts stored messages if the group has no other member', async () => {
    await using lives = await new Lives().begin();
    const dropped = drops(lives);
    await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT);
    await lives.kit.clock.advance('70s');
    assert.deepEqual(
      dropped,
      numbers(1, COUNT).map((n) => `${n} session_terminated`)
    );
  });

  it('delivers stored messages to another member after a clean stop and a start', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT, 1, 20_000);
    await lives.leave('other', FILTER);
    lives.store.turnsToRead = () => 20;
    lives.kit.broker.sessions.get('away').discard();
    await turns(30);
    await lives.kit.broker.stop();
    lives.store.turnsToRead = () => 0;
    await lives.kit.broker.start();
    await lives.kit.clock.advance('1s');
    assert.deepEqual(await taken(lives, 'other'), numbers(1, COUNT));
  });

  it('[4.8.2] delivers stored messages to another member after the next start if the session ends with its connection at a stop', async () => {
    await using lives = await new Lives().begin();
    const dropped = drops(lives);
    await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT);
    const away = await rawClient(lives.kit.broker, {
      clientId: 'away',
      clean: false,
      properties: { sessionExpiryInterval: 0, receiveMaximum: 3 }
    });
    for (let n = 1; n <= 3; n++) await away.next('publish');
    await lives.leave('other', FILTER);
    await lives.restart();
    await lives.kit.clock.advance('1s');
    assert.equal(lives.kit.broker.sessions.has('away'), false);
    assert.deepEqual(await taken(lives, 'other'), numbers(1, COUNT));
    assert.deepEqual(dropped, []);
  });

  it('loses no stored messages if the store fails in the meantime', async () => {
    for (let failing = 1; failing <= 8; failing++) {
      await using lives = await new Lives().begin();
      lives.kit.broker.on('error', () => undefined);
      await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
      await jobs(lives, 1, COUNT, 1, 20_000);
      await lives.leave('other', FILTER);
      let left = failing;
      lives.store.fault = () => (--left === 0 ? (failing % 2 === 0 ? 'applies' : 'rejects') : undefined);
      lives.kit.broker.sessions.get('away').discard();
      await lives.kit.clock.advance('30s');
      assert.ok(left <= 0);
      assert.deepEqual(await taken(lives, 'other'), numbers(1, COUNT), `commit ${failing} failed`);
    }
  });

  it('keeps stored messages waiting without work while the store has failed and is closed', async () => {
    const store = new MeasuredStore();
    await using kit = await createTestBroker({ store, leakCheck: false });
    kit.broker.on('error', () => undefined);
    for (const [clientId, sessionExpiry] of [
      ['away', '1m'],
      ['other', '1h']
    ] as const) {
      const client = await kit.connect({ clientId, clean: false, sessionExpiry });
      await client.subscribe({ topic: FILTER, qos: 1 });
      await client.disconnect();
      if (clientId === 'away') await kit.broker.publish('jobs/a', '1', { qos: 1 });
    }
    store.isShut = true;
    store.fault = 'rejects';
    await assert.rejects(kit.broker.publish('jobs/a', '2', { qos: 1 }), { code: 'STORE_FAILED' });
    await kit.clock.advance('70s');
    assert.equal(kit.broker.sessions.has('away'), false);
    assert.ok(store.looks < 100, 'the store is asked for its space only when it is open again');
    await recover(kit, store);
    assert.equal(kit.broker.sessions.get('other').counters().mqueueLen, 1);
  });

  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  it(`keeps each stored message with one member, in order, for any last commit before a crash (seed ${seed})`, async () => {
    const random = new Random(seed);
    await using lives = await new Lives().begin();
    await lives.leave('away', FILTER, 2, { sessionExpiry: '1m' });
    for (let n = 1; n <= COUNT; n++) await jobs(lives, n, n, random.once(2) ? 1 : 2, 1 + random.below(30_000));
    await lives.kit.clock.advance('1s');
    await lives.leave('other', FILTER, 2);
    const before = lives.store.committed.length;
    // The same client reconnects, with a new session next to the one that has ended.
    lives.store.turnsBefore = lives.store.turnsAfter = lives.store.turnsToRead = () => random.below(3);
    const again = await lives.connect({ clientId: 'away', ...PERSISTENT, clean: true });
    await again.disconnect();
    await lives.kit.clock.advance('5s');
    const { committed } = lives.store;
    assert.ok(committed.length > before + 5, `${committed.length - before} commits`);
    const now = lives.kit.clock.now();
    for (let count = before; count <= committed.length; count++) {
      await using next = new Lives();
      next.store = await MortalStore.of(committed.slice(0, count));
      assert.deepEqual((await checkStore(next.store)).findings, [], `after ${count} commits`);
      await next.begin(now);
      const dropped = drops(next);
      await next.kit.clock.advance('70s');
      const all = await taken(next, 'other');
      assert.deepEqual(all, numbers(1, COUNT), `after ${count - before} commits`);
      assert.deepEqual(dropped, []);
      const kept = await next.store.contents();
      assert.ok(!kept.some((key) => key.includes('segment')), `${kept}`);
    }
  });

  it('[MQTT-4.8.2-5] does not deliver stored QoS 2 messages to another member after a crash once they were sent', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('away', FILTER, 2, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT, 2, 20_000);
    await lives.leave('third', FILTER, 2);
    const { committed } = lives.store;
    const before = committed.length;
    const other = await lives.connect({ clientId: 'other', clean: true });
    const sent: { readonly what: string; readonly by: number }[] = [];
    other.on('message', ({ payload }) => sent.push({ what: `${payload}`.trim(), by: committed.length }));
    await other.subscribe({ topic: FILTER, qos: 2 });
    lives.kit.broker.sessions.get('away').discard();
    await lives.kit.clock.advance('5s');
    assert.equal(sent.length, COUNT);
    const now = lives.kit.clock.now();
    for (let count = before; count <= committed.length; count++) {
      await using next = new Lives();
      next.store = await MortalStore.of(committed.slice(0, count));
      await next.begin(now);
      await next.kit.clock.advance('70s');
      const third = await taken(next, 'third');
      for (const { what, by } of sent) assert.equal(by <= count && third.includes(what), false, `${what}, ${count}`);
      if (count === before) assert.deepEqual(third, numbers(1, COUNT));
    }
  });

  it('[MQTT-4.8.2-5] keeps each QoS 2 message with one of a stored and an in-memory member, for any last commit before a crash', async () => {
    await using lives = await new Lives({ sharedSubscriptionStrategy: 'round_robin' }).begin();
    await lives.leave('away', FILTER, 2, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT, 2, 20_000);
    await lives.kit.clock.advance('1s');
    const { committed } = lives.store;
    const sent: { readonly to: string; readonly what: string; readonly by: number }[] = [];
    for (const [to, options] of [
      ['stored', PERSISTENT],
      ['in memory', { clean: true }]
    ] as const) {
      const client = await lives.connect({ clientId: to, ...options });
      client.on('message', ({ payload }) => sent.push({ to, what: `${payload}`.trim(), by: committed.length }));
      await client.subscribe({ topic: FILTER, qos: 2 });
    }
    await lives.kit.clock.advance('1s');
    const before = committed.length;
    lives.store.turnsBefore = () => 5;
    lives.kit.broker.sessions.get('away').discard();
    await lives.kit.clock.advance('5s');
    assert.deepEqual(
      sent.map(({ what }) => Number(what)).sort((a, b) => a - b),
      numbers(1, COUNT).map(Number)
    );
    const now = lives.kit.clock.now();
    for (let count = before; count <= committed.length; count++) {
      await using next = new Lives();
      next.store = await MortalStore.of(committed.slice(0, count));
      await next.begin(now);
      await next.kit.clock.advance('70s');
      const got = await taken(next, 'stored');
      for (const { to, what, by } of sent) {
        const text = `${what} for the member ${to}, after ${count - before} commits`;
        if (to === 'in memory') assert.ok(by > count || !got.includes(what), `delivered twice: ${text}`);
        else assert.ok(by <= count || got.includes(what), `lost: ${text}`);
      }
    }
  });

  it('delivers stored messages to another member even if the store could not be read for a while, after three errors', async () => {
    await using lives = await new Lives().begin();
    const errors: string[] = [];
    lives.kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    await lives.leave('away', FILTER, 1, { sessionExpiry: '1m' });
    await jobs(lives, 1, COUNT, 1, 20_000);
    await lives.kit.clock.advance('1s');
    await lives.leave('other', FILTER);
    let reads = 0;
    lives.store.turnsToRead = () => {
      reads++;
      if (reads >= 3 && reads < 6) throw new Error('EIO: i/o error, read');
      return 0;
    };
    lives.kit.broker.sessions.get('away').discard();
    await lives.kit.clock.advance('5s');
    assert.equal(errors.length, 3, `${errors}`);
    await lives.kit.clock.advance('5s');
    assert.ok(errors.length === 3 && errors.every((text) => text.startsWith('handing messages over: ')), `${errors}`);
    assert.deepEqual(await taken(lives, 'other'), numbers(1, COUNT));
  });

  it('reassigns the messages of a few sessions at a time, for any number that end together', async () => {
    await using lives = await new Lives().begin();
    const count = 100;
    for (let n = 0; n < count; n++) await lives.leave(`away${n}`, `$share/g/jobs/${n}`);
    for (let n = 0; n < count; n++) await lives.kit.broker.publish(`jobs/${n}`, `${n}`, { qos: 1 });
    await lives.kit.clock.advance('1s');
    for (let n = 0; n < count; n++) await lives.leave('other', `$share/g/jobs/${n}`);
    const reading = new Reading(lives.store);
    for (let n = 0; n < count; n++) lives.kit.broker.sessions.get(`away${n}`).discard();
    await lives.kit.clock.advance('10s');
    reading.end();
    assert.ok(reading.most > 1 && reading.most <= 20, `${reading.most} reads at a time`);
    const got = await taken(lives, 'other');
    assert.deepEqual(got.sort(), Array.from({ length: count }, (_, n) => `${n}`).sort());
  });
});

/** A store that can fail and knows its free space while it is open. */
class MeasuredStore extends FaultyStore {
  /** Number of calls of `freeBytes`. */
  looks = 0;

  async freeBytes(): Promise<number> {
    // an endless loop of promises would block the event loop, and with it this test
    if (++this.looks < 10_000) await this.read(Buffer.of(0), Buffer.of(1), 1);
    return 1e9;
  }
}

/** Counts the concurrent reads of a store. */
class Reading {
  most = 0;
  readonly end: () => void;
  #now = 0;

  constructor(store: MortalStore) {
    const read = store.read.bind(store);
    store.read = async (...range) => {
      this.most = Math.max(this.most, ++this.#now);
      try {
        await turns(5);
        return await read(...range);
      } finally {
        this.#now--;
      }
    };
    this.end = () => {
      store.read = read;
    };
  }
}
