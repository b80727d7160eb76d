import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Batch } from '../../lib/adapter.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { memoryStore } from '../../lib/index.ts';
import { Kind } from '../../lib/store/keys.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { LimitedStore } from './limited-store.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

const MB = 1_048_576;
const KB = 1024;

async function leave(kit: TestBroker, clientId: string, filter: string): Promise<void> {
  const client = await kit.connect({ clientId, ...PERSISTENT });
  await client.subscribe({ topic: filter, qos: 2 });
  await client.disconnect();
}

/** Returns the topics of the messages queued for a client, and acknowledges them. */
async function drained(kit: TestBroker, clientId: string): Promise<string[]> {
  const client = await kit.connect({ clientId, ...PERSISTENT });
  const topics: string[] = [];
  client.on('message', ({ topic }) => topics.push(topic));
  await kit.clock.advance('1s');
  await client.disconnect();
  return topics;
}

function drops(kit: TestBroker): string[] {
  const list: string[] = [];
  kit.broker.on('message.dropped', ({ message, reason, client }) =>
    list.push(`${client?.clientId ?? ''} ${message.topic} ${reason}`)
  );
  return list;
}

describe('The queues of all sessions in a store', () => {
  it('keeps within maxTotalMqueueStoreBytes: the largest queues lose their oldest messages, and publishers receive success', async () => {
    await using kit = await createTestBroker({
      store: memoryStore(),
      maxTotalMqueueStoreBytes: '1MB',
      leakCheck: false
    });
    const dropped = drops(kit);
    const counts = { few: 50, many: 1000, most: 2000 };
    for (const name of Object.keys(counts)) await leave(kit, name, `${name}/#`);
    for (const [name, count] of Object.entries(counts)) {
      for (let n = 0; n < count; n++) {
        await kit.broker.publish(`${name}/${n}`, Buffer.alloc(KB), { qos: 1 });
        if (n % 200 === 0) await kit.clock.advance('1s');
      }
    }
    await kit.clock.advance('2s');
    const few = await drained(kit, 'few');
    assert.equal(few.length, 50, 'the small queue loses nothing');
    const [many, most] = [await drained(kit, 'many'), await drained(kit, 'most')];
    assert.ok(many.length + most.length < 1024 && many.length + most.length > 600, `${many.length}, ${most.length}`);
    assert.ok(many.length > 100 && most.length > 100, `${many.length}, ${most.length}`);
    for (const [name, topics] of Object.entries({ many, most })) {
      const count = counts[name as 'many'];
      const newest = Array.from({ length: topics.length }, (_, n) => `${name}/${count - topics.length + n}`);
      assert.deepEqual(topics, newest);
    }
    assert.equal(dropped.length, 3050 - 50 - many.length - most.length);
    assert.ok(dropped.every((drop) => drop.endsWith(' total_queue_full')));
  });

  it('drops messages with the lowest priority first', async () => {
    await using kit = await createTestBroker({
      store: memoryStore(),
      maxTotalMqueueStoreBytes: '1MB',
      mqueuePriorities: 'alarm=9',
      leakCheck: false
    });
    await leave(kit, 'away', '#');
    for (let n = 0; n < 1500; n++)
      await kit.broker.publish(n % 3 === 0 ? 'alarm' : `n/${n}`, Buffer.alloc(KB), { qos: 1 });
    await kit.clock.advance('2s');
    const topics = await drained(kit, 'away');
    assert.equal(topics.filter((topic) => topic === 'alarm').length, 500);
    assert.ok(topics.length > 700 && topics.length < 1024, `${topics.length}`);
  });

  it('uses a third of a small disk by default, never fills it up, and is drained and compacted', async () => {
    const store = new LimitedStore(8 * MB, MB);
    await using kit = await createTestBroker({ store, leakCheck: false });
    const errors: unknown[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error));
    const names = Array.from({ length: 10 }, (_, n) => `away${n}`);
    for (const name of names) await leave(kit, name, `${name}/#`);
    let most = 0;
    for (let n = 0; n < 3000; n++) {
      await kit.broker.publish(`${names[n % 10]}/${n}`, Buffer.alloc(8 * KB), { qos: 1 });
      if (n % 20 === 0) await kit.clock.advance('100ms');
      most = Math.max(most, store.used);
    }
    assert.ok(most < 8 * MB, `${most} bytes`);
    assert.deepEqual(errors, []);
    assert.ok(store.compactions > 0);
    let left = 0;
    for (const name of names) left += (await drained(kit, name)).length;
    assert.ok(left * 8 * KB > 2 * MB, `${left} are left`);
  });

  it('does not shorten the queues when other data uses the space: from then on each new message replaces an old one', async () => {
    const store = new LimitedStore(32 * MB, MB);
    await using kit = await createTestBroker({ store, leakCheck: false });
    const dropped = drops(kit);
    await leave(kit, 'large', 'large/#');
    await leave(kit, 'small', 'small/#');
    const flood = async (name: string, count: number, from = 0) => {
      for (let n = from; n < from + count; n++) {
        await kit.broker.publish(`${name}/${n}`, Buffer.alloc(8 * KB), { qos: 1 });
        if (n % 20 === 0) await kit.clock.advance('1s');
      }
      await kit.clock.advance('2s');
    };
    await flood('large', 1000);
    await flood('small', 10);
    store.others = 32 * MB - store.used - 4 * MB;
    await kit.clock.advance('5s');
    await flood('small', 1, 10);
    await flood('large', 1, 1000);
    assert.ok(dropped.length <= 2, `${dropped.length} messages dropped for 2 new ones`);
    await flood('large', 200, 1001);
    assert.ok(
      dropped.length >= 190 && dropped.length <= 210,
      `${dropped.length} messages dropped for about 200 new ones`
    );
    assert.deepEqual(
      dropped,
      dropped.map((_, n) => `large large/${n} total_queue_full`)
    );
    assert.equal((await drained(kit, 'small')).length, 11);
    assert.equal((await drained(kit, 'large')).length, 1201 - dropped.length);
  });

  it('displaces messages one for one by new ones if the space was checked during a large commit of retained messages', async () => {
    const store = new LimitedStore(64 * MB, MB);
    await using kit = await createTestBroker({ store, leakCheck: false });
    const dropped = () => kit.broker.metrics.counter('delivery.dropped.queue_full');
    await leave(kit, 'away', 'queued');
    const publish = (count: number, topic: (n: number) => string, retain: boolean) =>
      Promise.all(
        Array.from({ length: count }, (_, n) => kit.broker.publish(topic(n), Buffer.alloc(8 * KB), { qos: 1, retain }))
      );
    store.others = 49 * MB;
    // the broker checks the space after the first commit, while the second one is in progress
    store.turnsToCommit = 20;
    store.turnsToLook = 5;
    const first = publish(750, () => 'queued', false);
    await turns(2);
    await Promise.all([first, publish(375, (n) => `retained/${n}`, true)]);
    store.turnsToCommit = store.turnsToLook = 0;
    await kit.clock.advance('2s');
    assert.equal(dropped(), 0);
    for (let n = 0; n < 20; n++) {
      await kit.broker.publish('queued', Buffer.alloc(8 * KB), { qos: 1 });
      await kit.clock.advance('2s');
    }
    assert.ok(dropped() <= 20, `${dropped()} were dropped for 20 new ones`);
    assert.equal((await drained(kit, 'away')).length, 770 - dropped());
  });

  for (const [title, compression, most] of [
    ['if something else has taken the space', 2, 100],
    ['at their bound, apart from an eighth of the bound that is dropped at a time', 4, 100 + 1_000 / 8]
  ] as const)
    it(`displaces messages one for one by new ones that the store compresses ${title}`, async () => {
      const store = new LimitedStore(32 * MB, MB);
      store.incompressible = (value) => value.length / compression;
      await using kit = await createTestBroker({ store, leakCheck: false });
      const dropped = drops(kit);
      await leave(kit, 'away', '#');
      const flood = async (count: number) => {
        for (let n = 0; n < count; n++) {
          await kit.broker.publish('away/it', Buffer.alloc(8 * KB), { qos: 1 });
          if (n % 20 === 0) await kit.clock.advance('1s');
        }
        await kit.clock.advance('2s');
      };
      await flood(1_000);
      await store.compact();
      store.others = 32 * MB - store.used - 4 * MB;
      await kit.clock.advance('5s');
      assert.deepEqual(dropped, []);
      // deleted messages take space until the next compaction
      await flood(100);
      assert.ok(dropped.length <= most, `${dropped.length} were dropped for 100 new ones`);
      assert.equal((await drained(kit, 'away')).length, 1_100 - dropped.length);
    });

  it('counts messages by their compressed size, at least a quarter, so that incompressible messages fit afterwards', async () => {
    const store = new LimitedStore(6 * MB, MB);
    store.incompressible = (value) => value.length / 10;
    await using kit = await createTestBroker({ store, leakCheck: false });
    const dropped = drops(kit);
    const errors: unknown[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error));
    await leave(kit, 'away', 'away/#');
    const flood = async (count: number) => {
      for (let n = 0; n < count; n++) {
        await kit.broker.publish('away/it', Buffer.alloc(8 * KB), { qos: 1 });
        if (n % 20 === 0) await kit.clock.advance('1s');
        assert.ok(store.used < 5 * MB, `${store.used} bytes are used`);
      }
      await kit.clock.advance('2s');
    };
    await flood(1_000);
    assert.deepEqual(dropped, []);
    await flood(3_000);
    const waiting = 4_000 - dropped.length;
    assert.ok(waiting > 800 && waiting <= 1_024, `${waiting} messages are queued`); // 256 would fit uncompressed
    // The new messages cannot be compressed and have to fit as well.
    store.incompressible = (value) => value.length;
    await flood(2_000);
    assert.deepEqual(errors, []);
    const left = (await drained(kit, 'away')).length;
    assert.ok(left > 150 && left < 600, `${left} are left`);
  });
});

describe('The queues that a broker finds in its store after a crash', () => {
  const names = ['first', 'second'];
  const COUNT = 900;

  /** Crashes a broker whose store has an older state of both sessions, and a newer one in the journal. */
  async function crashed(options: ConstructorParameters<typeof Lives>[0] = {}): Promise<Lives> {
    const lives = await new Lives().begin();
    for (const name of names) await lives.leave(name, `${name}/#`, 1);
    for (let n = 0; n < COUNT; n++)
      for (const name of names) await lives.kit.broker.publish(`${name}/${n}`, Buffer.alloc(KB), { qos: 1 });
    lives.options = options;
    await lives.kill();
    return lives;
  }

  /** Checks that the counted bytes are the sum of those of the sessions. */
  function insistOnBytes({ kit }: Lives): void {
    const { sessions, pressure } = engineOf(kit.broker);
    const { inStore } = pressure.totalBacklog;
    let bytes = 0;
    for (const { log } of sessions.values()) bytes += log?.bytes ?? 0;
    assert.ok(bytes > 2 * COUNT * KB, `${bytes} bytes`);
    assert.equal(inStore.bytes, bytes);
  }

  it('counts queues after a crash once', async () => {
    await using lives = await crashed();
    insistOnBytes(lives);
  });

  it('counts queues once when a damaged store is repaired at the start (STORE_CORRUPT)', async () => {
    await using lives = await crashed({ repairStore: true });
    await lives.kit.broker.stop();
    const damage = new Batch();
    damage.put(Buffer.concat([Buffer.of(Kind.retained), Buffer.from('damaged')]), Buffer.from('damaged'));
    await lives.store.open();
    await lives.store.commit(damage);
    await lives.kit[Symbol.asyncDispose]();
    await lives.begin();
    insistOnBytes(lives);
  });

  it('loses only messages that are reported as dropped when the queues are shortened and the broker is restarted', async () => {
    await using lives = await crashed({ maxTotalMqueueStoreBytes: '1MB' });
    await lives.kit.clock.advance('3s');
    const dropped = lives.kit.broker.metrics.counter('delivery.dropped.queue_full');
    await lives.restart();
    const left: number[] = [];
    for (const name of names) {
      const topics = await drained(lives.kit, name);
      const newest = topics.map((_, n) => `${name}/${COUNT - topics.length + n}`);
      assert.deepEqual(topics, newest);
      left.push(topics.length);
    }
    assert.equal(left[0] + left[1], 2 * COUNT - dropped);
    assert.ok(left[0] > 200 && left[1] > 200 && dropped > 600, `${left} are left`);
  });

  it('displaces messages one for one by new ones if the disk is nearly full at the start', async () => {
    const store = new LimitedStore(64 * MB, MB);
    {
      await using kit = await createTestBroker({ store, leakCheck: false });
      await leave(kit, 'away', '#');
      for (let n = 0; n < 1_000; n++) await kit.broker.publish('old', Buffer.alloc(8 * KB), { qos: 1 });
    }
    await store.compact();
    store.capacity = store.used + 2 * MB;
    await using kit = await createTestBroker({ store, leakCheck: false });
    const dropped = drops(kit);
    await kit.clock.advance('5s');
    assert.deepEqual(dropped, []);
    for (let n = 0; n < 20; n++) {
      await kit.broker.publish('new', Buffer.alloc(8 * KB), { qos: 1 });
      await kit.clock.advance('2s');
    }
    assert.deepEqual(dropped, Array(20).fill('away old total_queue_full'));
    assert.equal((await drained(kit, 'away')).length, 1_000);
  });
});

describe('The reason of a drop while the queues of all sessions are shortened', () => {
  it('reports queue_full for messages above maxMqueueLen, and total_queue_full for the others', async () => {
    await using lives = await new Lives({ maxMqueueLen: 1_000 }).begin();
    const { broker, clock } = lives.kit;
    await lives.leave('away', '#', 1);
    for (let n = 0; n < 900; n++) await broker.publish(`${n}`, Buffer.alloc(KB), { qos: 1 });
    await clock.advance('3s');
    const dropped = drops(lives.kit);
    const log = engineOf(broker).sessions.get('away')?.log;
    assert.ok(log !== undefined);
    lives.store.turnsToRead = () => 20;
    const shortened = log.shorten(log.session.outlet.ensureQueue().limitedBytes - 10 * KB);
    await turns(5);
    const published = Array.from({ length: 300 }, (_, n) => broker.publish(`${900 + n}`, Buffer.alloc(KB), { qos: 1 }));
    await Promise.all([shortened, ...published]);
    const byOwn = Array.from({ length: 200 }, (_, n) => `away ${n} queue_full`);
    assert.deepEqual(dropped.slice(0, 200), byOwn);
    assert.ok(dropped.length > 300 && dropped.length < 320, `${dropped.length}`);
    assert.ok(dropped.slice(200).every((drop) => drop.endsWith(' total_queue_full')));
  });
});

describe('Messages in flight to an offline client', () => {
  for (const isCrashed of [false, true])
    it(`keeps queued messages under maxTotalMqueueStoreBytes although others are in flight${isCrashed ? ', after a crash' : ''}`, async () => {
      await using lives = await new Lives({ maxTotalMqueueStoreBytes: '1MB' }).begin();
      const reader = await lives.connect({ clientId: 'away', ...PERSISTENT, acknowledge: 'manual' });
      await reader.subscribe({ topic: '#', qos: 1 });
      const count = () => lives.kit.broker.metrics.counter('delivery.dropped.queue_full');
      for (let n = 0; n < 10; n++) await lives.kit.broker.publish(`large/${n}`, Buffer.alloc(200 * KB), { qos: 1 });
      await lives.kit.clock.advance('1s');
      assert.equal(lives.kit.broker.sessions.get('away').counters().inflight, 10);
      reader.destroy();
      await lives.kit.clock.advance('1s');
      for (let n = 0; n < 100; n++) await lives.kit.broker.publish(`small/${n}`, Buffer.alloc(KB), { qos: 1 });
      if (isCrashed) await lives.crash();
      await lives.kit.clock.advance('3s');
      assert.equal(count(), 0);
      for (let n = 100; n < 2_000; n++) {
        await lives.kit.broker.publish(`small/${n}`, Buffer.alloc(KB), { qos: 1 });
        if (n % 100 === 0) await lives.kit.clock.advance('1s');
      }
      await lives.kit.clock.advance('3s');
      const waiting = 2_000 - count();
      assert.ok(waiting > 450 && waiting < 1_024, `${waiting} messages are queued`);
      assert.equal((await drained(lives.kit, 'away')).length, 10 + waiting);
    });
});

describe('A store on a large disk', () => {
  it('compacts the store when its delayed messages have been published, and not before', async () => {
    const store = new LimitedStore(1_000 * MB, MB);
    await using kit = await createTestBroker({ store, leakCheck: false });
    for (let n = 0; n < 40; n++) await kit.broker.publish(`$delayed/600/${n}`, Buffer.alloc(MB), { qos: 1 });
    await kit.clock.advance('5m');
    assert.equal(store.compactions, 0);
    await kit.clock.advance('6m');
    assert.equal(store.compactions, 1);
  });
});

describe('A store whose reserve is in use', () => {
  /** Fills the disk with other data. */
  async function full() {
    const store = new LimitedStore(8 * MB, MB);
    const kit = await createTestBroker({ store, leakCheck: false });
    const told: string[] = [];
    kit.broker.subscribe('$SYS/brokers/+/alarms/#', ({ topic, payload }) => {
      told.push(`${topic.split('/').at(-1)} ${JSON.parse(`${payload}`).id}`);
    });
    kit.broker.on('error', ({ error }) => told.push((error as Error & { code: string }).code));
    await leave(kit, 'away', 'kept/#');
    await kit.broker.publish('kept/before', 'x', { qos: 1 });
    await kit.broker.publish('known', 'x', { qos: 1, retain: true });
    const live = await kit.connect({ clientId: 'live', clean: true });
    const got: string[] = [];
    live.on('message', ({ topic }) => got.push(topic));
    await live.subscribe({ topic: '#', qos: 1 });
    await kit.clock.settle();
    got.length = 0;
    store.others = 8 * MB;
    await kit.broker.publish('kept/last', 'x', { qos: 1 });
    await kit.clock.advance('2s');
    return { kit, store, told, got, live, dropped: drops(kit) };
  }

  it('refuses with 0x97 messages for persistent sessions, before any receiver gets them, and raises an alarm', async () => {
    const { kit, store, told, got, live, dropped } = await full();
    await using _kit = kit;
    assert.deepEqual(told, ['alert store_space_low', 'STORE_SPACE_LOW']);
    for (const qos of [1, 2] as const) {
      const refusal = live.publish('kept/1', 'x', { qos });
      await assert.rejects(refusal, { reasonCode: 0x97 });
    }
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), {
      code: 'QUOTA_EXCEEDED',
      message: /the space of the store is used up; free disk space$/
    });
    const older = await kit.connect({ clientId: 'older', protocolVersion: 4, clean: true });
    await assert.rejects(older.publish('kept/1', 'x', { qos: 1 }));
    assert.deepEqual(dropped, Array(4).fill(' kept/1 quota'));
    await live.publish('elsewhere', 'x', { qos: 1 });
    await live.publish('kept/0', 'x', { qos: 0 });
    await kit.clock.settle();
    assert.deepEqual(got, ['kept/last', 'elsewhere', 'kept/0']);
    store.others = 0;
    await kit.clock.advance('2s');
    assert.deepEqual(told.slice(2), ['clear store_space_low']);
    await live.publish('kept/2', 'x', { qos: 1 });
    assert.deepEqual(await drained(kit, 'away'), ['kept/before', 'kept/last', 'kept/2']);
  });

  it('accepts the clients of stored sessions, which receive and unsubscribe, and no new persistent ones (0x97)', async () => {
    const { kit } = await full();
    await using _kit = kit;
    await assert.rejects(kit.connect({ clientId: 'new', ...PERSISTENT }), { reasonCode: 0x97 });
    const plain = await kit.connect({ clientId: 'plain', clean: true });
    await plain.disconnect();
    assert.deepEqual(await drained(kit, 'away'), ['kept/before', 'kept/last']);
    const away = await kit.connect({ clientId: 'away', ...PERSISTENT });
    const [known, unknown] = await away
      .subscribe([
        { topic: 'kept/#', qos: 1 },
        { topic: 'more/#', qos: 1 }
      ])
      .catch((error: Error & { reasonCodes?: number[] }) => error.reasonCodes ?? [error]);
    assert.deepEqual([known, unknown], [1, 0x97]);
    await away.unsubscribe('kept/#');
    await away.disconnect();
  });

  it('retains no new topics and delays no messages; retained messages may be replaced and removed', async () => {
    const { kit, dropped } = await full();
    await using _kit = kit;
    await kit.broker.publish('new', 'x', { qos: 1, retain: true });
    await kit.broker.publish('known', 'y', { qos: 1, retain: true });
    await assert.rejects(async () => kit.broker.publish('$delayed/5/a', 'x', { qos: 1 }), { code: 'QUOTA_EXCEEDED' });
    const retained: string[] = [];
    for await (const { topic, payload } of kit.broker.retained.match('#')) retained.push(`${topic} ${payload}`);
    assert.deepEqual(retained, ['known y']);
    assert.deepEqual(dropped, [' new not_retained', ' $delayed/5/a quota']);
    await kit.broker.publish('known', '', { qos: 1, retain: true });
  });

  it('keeps the existing messages at a start: all are delivered, and none is dropped', async () => {
    const store = new LimitedStore(64 * MB, MB);
    {
      await using kit = await createTestBroker({ store, leakCheck: false });
      await leave(kit, 'away', 'kept/#');
      for (let n = 0; n < 1000; n++) await kit.broker.publish(`kept/${n}`, Buffer.alloc(8 * KB), { qos: 1 });
    }
    await store.compact();
    store.capacity = store.used - 100;
    await using kit = await createTestBroker({ store, leakCheck: false });
    const dropped = drops(kit);
    kit.broker.on('error', () => undefined);
    await kit.clock.advance('5s');
    await assert.rejects(async () => kit.broker.publish('kept/last', 'x', { qos: 1 }), { code: 'QUOTA_EXCEEDED' });
    const topics = await drained(kit, 'away');
    assert.deepEqual(
      topics,
      Array.from({ length: 1000 }, (_, n) => `kept/${n}`)
    );
    assert.deepEqual(dropped, [' kept/last quota']);
  });
});

describe('Queues of share groups in a store that is nearly full', () => {
  const FILTER = '$share/workers/jobs/#';
  const BYTES = 30_000;
  const UNBOUNDED = { maxMqueueLen: 0, maxMqueueBytes: 0, leakCheck: false } as const;

  async function publish(kit: TestBroker, topic: string, count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      await kit.broker.publish(topic, Buffer.alloc(BYTES, n), { qos: 1 });
      if (n % 20 === 0) await kit.clock.advance('1s');
    }
  }

  it('reassigns queues of share groups when there is space again: until then nothing is dropped, and the reserve is not used', async () => {
    const store = new LimitedStore(40 * MB, 8 * MB);
    await using kit = await createTestBroker({ store, ...UNBOUNDED });
    const dropped = drops(kit);
    const errors: unknown[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error));
    await leave(kit, 'away', FILTER);
    await publish(kit, 'jobs/a', 400);
    await leave(kit, 'other', FILTER);
    store.others = 40 * MB - store.used - 5 * MB;
    kit.broker.sessions.get('away').discard();
    let least = Infinity;
    for (let n = 0; n < 20; n++) {
      await kit.clock.advance('1s');
      least = Math.min(least, await store.freeBytes());
    }
    assert.ok(least > 2 * MB && least < 4 * MB, `${least} bytes free`);
    assert.deepEqual([errors, dropped], [[], []]);
    store.others = 0;
    await kit.clock.advance('10s');
    assert.deepEqual([errors, dropped], [[], []]);
    assert.equal((await drained(kit, 'other')).length, 400);
  });

  it('shortens no queue of another session for reassigned messages, which are not new', async () => {
    const store = new LimitedStore(80 * MB, 8 * MB);
    await using kit = await createTestBroker({ store, ...UNBOUNDED });
    const dropped = drops(kit);
    await leave(kit, 'away', FILTER);
    await leave(kit, 'bystander', 'news/#');
    await publish(kit, 'news/a', 400);
    await publish(kit, 'jobs/a', 200);
    await leave(kit, 'other', FILTER);
    await kit.clock.advance('5s');
    store.others = 80 * MB - store.used - 15 * MB;
    await kit.clock.advance('3s');
    kit.broker.sessions.get('away').discard();
    await kit.clock.advance('30s');
    assert.deepEqual(dropped, []);
    assert.equal((await drained(kit, 'other')).length, 200);
    assert.equal((await drained(kit, 'bystander')).length, 400);
  });
});

describe('The count of queued bytes in the store', () => {
  it('excludes messages in flight, even while their client reconnects; the count of used space includes them', async () => {
    await using lives = await new Lives().begin();
    const { totalBacklog } = engineOf(lives.kit.broker).pressure;
    await lives.leave('away', 'jobs/#');
    for (let n = 0; n < 3; n++) await lives.kit.broker.publish('jobs/a', Buffer.alloc(100 * KB), { qos: 1 });
    const away = await rawClient(lives.kit.broker, {
      clientId: 'away',
      clean: false,
      properties: { sessionExpiryInterval: 3600, receiveMaximum: 3 }
    });
    for (let n = 0; n < 3; n++) await away.next('publish');
    away.stream.destroy();
    await lives.kit.clock.advance('2s');
    lives.store.turnsToRead = () => 50;
    const back = lives.connect({ clientId: 'away', ...PERSISTENT });
    await turns(10);
    await lives.kit.broker.publish('jobs/b', Buffer.alloc(KB), { qos: 1 });
    const { inStore, storedBytes } = totalBacklog;
    const { bytes } = inStore;
    lives.store.turnsToRead = () => 0;
    await back;
    assert.ok(bytes >= KB && bytes < 2 * KB, `${bytes} bytes are queued`);
    assert.ok(storedBytes > 301 * KB && storedBytes < 303 * KB, `${storedBytes} bytes are stored`);
  });
});

describe('The count of queued bytes in memory', () => {
  it('excludes a session that ends while its queue is shortened for its reconnecting client', async () => {
    await using lives = await new Lives({ maxMqueueLen: 640 }).begin();
    await lives.leave('away', 'jobs/#');
    for (let n = 0; n < 3; n++) await lives.kit.broker.publish('jobs/a', Buffer.alloc(KB), { qos: 1 });
    const away = await rawClient(lives.kit.broker, {
      clientId: 'away',
      clean: false,
      properties: { sessionExpiryInterval: 3600, receiveMaximum: 3 }
    });
    for (let n = 0; n < 3; n++) await away.next('publish');
    away.stream.destroy();
    await lives.kit.clock.advance('2s');
    for (let n = 0; n < 645; n++) await lives.kit.broker.publish('jobs/a', Buffer.alloc(KB), { qos: 1 });
    await lives.kit.clock.advance('2s');
    lives.store.turnsToRead = () => 20;
    const back = lives.connect({ clientId: 'away', ...PERSISTENT }).catch(() => undefined);
    await turns(3);
    const other = await lives.connect({ clientId: 'away', clean: true });
    await lives.kit.clock.advance('5s');
    await other.disconnect();
    await back;
    await lives.kit.clock.advance('5s');
    assert.equal(engineOf(lives.kit.broker).pressure.totalBacklog.bytes, 0);
    assert.equal(engineOf(lives.kit.broker).pressure.totalBacklog.storedBytes, 0);
  });
});
