import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import type { Broker } from '../../lib/broker/broker.ts';
import { Queue } from '../../lib/session/messages/queue.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Store } from '../../lib/store/store.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { FaultyStore } from '../store/faulty-store.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, rest, startBroker, turns } from '../support/wire.ts';

const PERSISTENT = { clientId: 'c', properties: { sessionExpiryInterval: 3600 } };

/** The payloads of a queue, read in pages. @param between called after each page */
async function queued(broker: Broker, limit: number, between: () => unknown = () => undefined): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await broker.sessions.get('c').queue({ limit, cursor });
    assert.ok(page.entries.length <= limit);
    for (const { message } of page.entries) found.push(`${message.payload}`);
    cursor = page.cursor;
    if (cursor === undefined) return found;
    await between();
  }
}

const KINDS: Readonly<Record<string, (folder: string) => (() => Store) | undefined>> = {
  'in memory alone': () => undefined,
  'with a memory store': () => {
    const store = memoryStore();
    return () => store;
  },
  'with a level store': (folder) => () => levelStore(folder)
};

for (const [kind, storeOf] of Object.entries(KINDS))
  describe(`session.queue and session.flights ${kind}`, () => {
    async function tried(test: (start: (options?: object) => Promise<Broker>) => Promise<void>): Promise<void> {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-queue-'));
      const store = storeOf(join(folder, 'data'));
      const brokers: Broker[] = [];
      try {
        await test(async (options = {}) => {
          const broker = await startBroker({ ...options, ...(store === undefined ? {} : { store: store() }) });
          brokers.push(broker);
          return broker;
        });
      } finally {
        for (const broker of brokers) await broker.stop();
        rmSync(folder, { recursive: true });
      }
    }

    it('lists the waiting messages of a client that is away, in order, and those that were in flight', () =>
      tried(async (start) => {
        const broker = await start({ maxInflight: 2, maxMqueueLen: 0 });
        const client = await rawClient(broker, PERSISTENT);
        await granted(client, 1, { topic: 'a', qos: 2 });
        await broker.publish('a', '0', { qos: 1 });
        await broker.publish('a', '1', { qos: 2 });
        await rest(client);
        client.send({ cmd: 'pubrec', messageId: 2, reasonCode: 0 });
        await turns(20);
        client.cut();
        await turns();
        const texts = Array.from({ length: 700 }, (_, at) => `m${at}`);
        for (const text of texts) await broker.publish('a', text, { qos: text.endsWith('5') ? 0 : 1 });
        const session = broker.sessions.get('c');
        for (const limit of [1, 7, 100, 10_000]) assert.deepEqual(await queued(broker, limit), texts, `${limit}`);
        const { entries, count, cursor } = await session.queue({ limit: 3, skip: 698 });
        assert.deepEqual(
          [entries.map(({ message }) => `${message.payload}`), count, cursor],
          [['m698', 'm699'], 700, undefined]
        );
        const { inflight, awaitingRel } = session.flights();
        assert.deepEqual(
          inflight.map(({ packetId, awaits, isSent }) => [packetId, awaits, isSent]),
          [
            [1, 'puback', true],
            [2, 'pubcomp', true]
          ]
        );
        assert.deepEqual(awaitingRel, []);
        assert.equal(session.counters().mqueueLen, 700, 'nothing has changed');
      }));

    it('lists the waiting messages of a connected client, in memory and in the store', () =>
      tried(async (start) => {
        const broker = await start({ maxInflight: 1, maxMqueueLen: 0 });
        const client = await rawClient(broker, PERSISTENT);
        await granted(client, 1, { topic: 'a', qos: 1 });
        const texts = Array.from({ length: 300 }, (_, at) => `m${at}`);
        for (const text of texts) await broker.publish('a', text, { qos: 1 });
        await rest(client);
        client.send({
          cmd: 'publish',
          topic: 'x',
          payload: Buffer.of(1),
          qos: 2,
          messageId: 9,
          dup: false,
          retain: false
        });
        await client.next('pubrec');
        const session = broker.sessions.get('c');
        assert.deepEqual(await queued(broker, 50), texts.slice(1));
        const { inflight, awaitingRel } = session.flights();
        assert.deepEqual(
          inflight.map(({ packetId, awaits, message }) => [packetId, awaits, `${message?.payload}`]),
          [[1, 'puback', 'm0']]
        );
        assert.deepEqual(awaitingRel, [9]);
      }));

    it('lists staying messages exactly once while others are sent, arrive and are dropped', () =>
      tried(async (start) => {
        const broker = await start({ maxInflight: 1, maxMqueueLen: 0 });
        const client = await rawClient(broker, PERSISTENT);
        await granted(client, 1, { topic: 'a', qos: 1 });
        const texts = Array.from({ length: 200 }, (_, at) => `m${at}`);
        for (const text of texts) await broker.publish('a', text, { qos: 1 });
        let messageId = 1;
        let round = 0;
        const listed = await queued(broker, 20, async () => {
          if (++round === 3) client.cut();
          else if (round < 3) client.send({ cmd: 'puback', messageId: messageId++, reasonCode: 0 });
          await broker.publish('a', `later${round}`, { qos: 1 });
          await turns(10);
        });
        assert.equal(new Set(listed).size, listed.length, 'none is listed twice');
        // the first ones were in flight or sent in the meantime
        for (const text of texts.slice(5)) assert.ok(listed.includes(text), text);
      }));

    if (kind !== 'in memory alone')
      it('reads messages of an earlier process, and keeps none of them in memory', () =>
        tried(async (start) => {
          const first = await start({ maxMqueueLen: 0 });
          const client = await rawClient(first, PERSISTENT);
          await granted(client, 1, { topic: 'a', qos: 1 });
          client.cut();
          await turns();
          const texts = Array.from({ length: 500 }, (_, at) => `m${at}${'x'.repeat(1_000)}`);
          for (const text of texts) await first.publish('a', text, { qos: 1 });
          await first.stop();
          const broker = await start({ maxMqueueLen: 0 });
          assert.deepEqual(await queued(broker, 33), texts);
          await broker.publish('a', 'new', { qos: 1 });
          assert.deepEqual((await queued(broker, 400)).slice(-2), [texts[499], 'new']);
          const again = await rawClient(broker, { ...PERSISTENT, clean: false });
          assert.equal(`${((await again.next('publish')) as { payload: Buffer }).payload}`, texts[0]);
        }));

    it('lists messages at the end of a long queue in slices, each in its own turn, without starting again', (t) =>
      tried(async (start) => {
        const broker = await start({ maxInflight: 1, maxMqueueLen: 0 });
        const client = await rawClient(broker, PERSISTENT);
        await granted(client, 1, { topic: 'a', qos: 1 });
        client.cut();
        await turns();
        const payload = 'x'.repeat(100);
        const all = Array.from({ length: 20_000 }, (_, at) => broker.publish('a', `${at} ${payload}`, { qos: 1 }));
        await Promise.all(all);
        const lists = t.mock.method(Queue.prototype, 'lists');
        let passed = 0;
        let isDone = false;
        const count = () => {
          passed++;
          if (!isDone) setImmediate(count);
        };
        setImmediate(count);
        const { entries } = await broker.sessions.get('c').queue({ limit: 5, skip: 19_998 });
        isDone = true;
        assert.deepEqual(
          entries.map(({ message }) => `${message.payload}`),
          [`19998 ${payload}`, `19999 ${payload}`]
        );
        assert.ok(passed >= 15, `${passed} turns`);
        assert.ok(lists.mock.callCount() <= 25, `${lists.mock.callCount()} looks at the backlog`);
      }));

    it('refuses cursors of other lists', () =>
      tried(async (start) => {
        const broker = await start();
        await rawClient(broker, PERSISTENT);
        const session = broker.sessions.get('c');
        await assert.rejects(session.queue({ cursor: 'x' }), { code: 'CURSOR_INVALID' });
        await assert.rejects(session.queue({ limit: 0 }), { code: 'OPTION_INVALID' });
        assert.deepEqual(await session.queue(), { entries: [], cursor: undefined, count: 0 });
      }));
  });

describe('session.queue', () => {
  it('lists a message that gets into a segment of the store while the segments before it are searched', async () => {
    let held: Promise<void> | undefined;
    let release = () => {};
    class SlowlyRead extends FaultyStore {
      override async read(...args: Parameters<Store['read']>): ReturnType<Store['read']> {
        const entries = await super.read(...args);
        await held;
        return entries;
      }
    }
    await using kit = await createTestBroker({ store: new SlowlyRead() });
    const client = await kit.connect({ ...PERSISTENT, clean: true });
    await client.subscribe({ topic: 'a', qos: 1 });
    await client.disconnect();
    await kit.broker.publish('a', 'first', { qos: 1 });
    await kit.broker.sessions.get('c').clearQueue();
    await kit.clock.advance('10m'); // no segment is left
    await kit.broker.publish('a', 'second', { qos: 1 });
    held = new Promise((resolve) => (release = resolve));
    const listing = queued(kit.broker, 10);
    await kit.clock.settle();
    await kit.clock.advance('10m');
    release();
    held = undefined;
    assert.deepEqual(await listing, ['second']);
  });
});
