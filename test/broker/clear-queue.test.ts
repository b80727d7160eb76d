import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import type { Broker } from '../../lib/broker/broker.ts';
import type { PublishPacket } from '../../lib/packets/types.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Store } from '../../lib/store/store.ts';
import { Lives, turns as moreTurns } from '../store/support.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, rest, startBroker, turns } from '../support/wire.ts';

const PERSISTENT = { clientId: 'c', properties: { sessionExpiryInterval: 3600 } };

/** The payloads of the PUBLISH packets that a client receives now; those with DUP are marked. */
async function received(client: RawClient): Promise<string[]> {
  return (await rest(client))
    .filter((packet): packet is PublishPacket => packet.cmd === 'publish')
    .map(({ payload, dup }) => `${payload}${dup ? ' dup' : ''}`);
}

function dropsOf(broker: Broker): string[] {
  const drops: string[] = [];
  broker.on('message.dropped', ({ message, reason, client }) =>
    drops.push(`${client?.clientId} ${message.payload} ${reason}`)
  );
  return drops;
}

/** The places where sessions are stored, and a new store with the same content. */
const KINDS: Readonly<Record<string, (folder: string) => (() => Store) | undefined>> = {
  'in memory alone': () => undefined,
  'with a memory store': () => {
    const store = memoryStore();
    return () => store;
  },
  'with a level store': (folder) => () => levelStore(folder)
};

for (const [kind, storeOf] of Object.entries(KINDS))
  describe(`session.clearQueue ${kind}`, () => {
    /** Calls a test with a function that starts a broker, and stops the brokers. */
    async function tried(test: (start: (options?: object) => Promise<Broker>) => Promise<void>): Promise<void> {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-clear-'));
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

    it('allows the call by a listener of its drops', () =>
      tried(async (start) => {
        const broker = await start({ maxInflight: 1, maxMqueueLen: 0 });
        const client = await rawClient(broker, PERSISTENT);
        await granted(client, 1, { topic: 'a', qos: 1 });
        await Promise.all(Array.from({ length: 3_000 }, (_, at) => broker.publish('a', String(at), { qos: 1 })));
        await turns();
        const session = broker.sessions.get('c');
        const drops = dropsOf(broker);
        const inner: Promise<number>[] = [];
        broker.on('message.dropped', () => {
          inner.push(session.clearQueue());
        });
        assert.equal(await session.clearQueue(), 2_999);
        assert.equal(
          (await Promise.all(inner)).reduce((sum, count) => sum + count),
          0
        );
        assert.equal(new Set(drops).size, 2_999);
      }));

    it('drops the waiting messages of a client that is away, but not those in flight', () =>
      tried(async (start) => {
        const broker = await start({ maxInflight: 2 });
        const drops = dropsOf(broker);
        const first = await rawClient(broker, PERSISTENT);
        await granted(first, 1, { topic: 'a', qos: 1 });
        for (const text of ['1', '2', '3']) await broker.publish('a', text, { qos: 1 });
        assert.deepEqual(await received(first), ['1', '2']);
        first.cut();
        await turns();
        await broker.publish('a', '4', { qos: 1 });
        await broker.publish('a', '5', { qos: 0 });
        const session = broker.sessions.get('c');
        assert.equal(session.counters().mqueueLen, 3);
        assert.equal(await session.clearQueue(), 3);
        assert.deepEqual(drops.sort(), ['c 3 queue_cleared', 'c 4 queue_cleared', 'c 5 queue_cleared']);
        const { mqueueLen, mqueueDropped, inflight } = session.counters();
        assert.deepEqual([mqueueLen, mqueueDropped, inflight], [0, 3, 2]);
        assert.equal(broker.metrics.counter('delivery.dropped'), 3);
        assert.equal(await session.clearQueue(), 0);
        await broker.publish('a', '6', { qos: 1 });
        const again = await rawClient(broker, { ...PERSISTENT, clean: false });
        assert.deepEqual(await received(again), ['1 dup', '2 dup']);
        for (const messageId of [1, 2]) again.send({ cmd: 'puback', messageId, reasonCode: 0 });
        await turns(20);
        assert.deepEqual(await received(again), ['6']);
      }));

    it('drops the waiting messages of a connected client, with any part of them in memory', () =>
      tried(async (start) => {
        const broker = await start({ maxInflight: 1, maxMqueueLen: 0 });
        const drops = dropsOf(broker);
        const client = await rawClient(broker, PERSISTENT);
        await granted(client, 1, { topic: 'a', qos: 1 });
        const all = Array.from({ length: 3_000 }, (_, at) => broker.publish('a', `${at}`, { qos: 1 }));
        await Promise.all(all);
        assert.deepEqual(await received(client), ['0']);
        const session = broker.sessions.get('c');
        assert.equal(await session.clearQueue(), 2_999);
        assert.equal(new Set(drops).size, 2_999);
        await broker.publish('a', 'new', { qos: 1 });
        client.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
        await turns(20);
        assert.deepEqual(await received(client), ['new']);
        assert.equal(session.counters().mqueueLen, 0);
      }));

    it('drops a long queue in slices, each in its own turn, and keeps messages that arrive in the meantime', () =>
      tried(async (start) => {
        for (const isConnected of [false, true]) {
          const broker = await start({ maxInflight: 1, maxMqueueLen: 0 });
          const client = await rawClient(broker, PERSISTENT);
          await granted(client, 1, { topic: 'a', qos: 1 });
          if (!isConnected) client.cut();
          await turns();
          const payload = 'x'.repeat(100);
          await broker.publish('a', 'in flight', { qos: 1 });
          if (isConnected) await rest(client);
          const all = Array.from({ length: 10_000 }, () => broker.publish('a', payload, { qos: 1 }));
          await Promise.all(all);
          const session = broker.sessions.get('c');
          const slices = [0];
          let isDone = false;
          const count = () => {
            if (slices.push(0) === 4) void broker.publish('a', 'new', { qos: 1 });
            if (!isDone) setImmediate(count);
          };
          setImmediate(count);
          broker.on('message.dropped', () => void slices[slices.length - 1]++);
          assert.equal(await session.clearQueue(), isConnected ? 10_000 : 10_001);
          isDone = true;
          assert.ok(Math.max(...slices) <= 2_000, `${Math.max(...slices)} in one turn`);
          assert.deepEqual(
            (await session.queue()).entries.map(({ message }) => `${message.payload}`),
            ['new']
          );
          await broker.stop();
        }
      }));

    it('throws SESSION_ENDED for a session that has ended', () =>
      tried(async (start) => {
        const broker = await start();
        const client = await rawClient(broker, PERSISTENT);
        const session = broker.sessions.get('c');
        session.kick();
        await client.closed();
        await assert.rejects(session.clearQueue(), { code: 'SESSION_ENDED' });
      }));

    if (kind !== 'in memory alone')
      it('persists the drops: the next process finds only messages in flight, and later ones', () =>
        tried(async (start) => {
          const before = await start({ maxInflight: 1 });
          const first = await rawClient(before, PERSISTENT);
          await granted(first, 1, { topic: 'a', qos: 1 });
          for (let at = 0; at < 300; at++) await before.publish('a', `${at}`, { qos: 1 });
          assert.deepEqual(await received(first), ['0']);
          first.cut();
          await turns(20);
          await before.stop();
          const broker = await start({ maxInflight: 1 });
          const session = broker.sessions.get('c');
          assert.equal(await session.clearQueue(), 299, 'of a session that no client has resumed');
          await broker.publish('a', 'new', { qos: 1 });
          await broker.stop();
          const after = await start({ maxInflight: 10 });
          assert.equal(after.sessions.get('c').counters().mqueueLen, 1);
          const again = await rawClient(after, { ...PERSISTENT, clean: false });
          assert.deepEqual(await received(again), ['0 dup', 'new']);
        }));
  });

describe('session.clearQueue and the store', () => {
  it('leaves nothing behind, and each message is either delivered or dropped, regardless of when the client returns', async () => {
    for (let pause = 0; pause < 24; pause++) {
      await using lives = await new Lives({ maxInflight: 4 }).begin();
      lives.store.turnsBefore = () => pause % 4;
      lives.store.turnsToRead = () => pause % 3;
      await lives.leave('a', 't', 1);
      const { broker } = lives.kit;
      const drops: string[] = [];
      for (let at = 0; at < 40; at++) await broker.publish('t', `${at}`, { qos: 1 });
      if (pause % 2 === 1) await lives.crash();
      lives.kit.broker.on('message.dropped', ({ message }) => drops.push(`${message.payload}`));
      const cleared = lives.kit.broker.sessions.get('a').clearQueue();
      await moreTurns(pause);
      const { texts } = await lives.listen({ clientId: 'a' });
      const count = await cleared;
      await lives.kit.broker.publish('t', 'new', { qos: 1 });
      await lives.kit.clock.advance(1000);
      assert.equal(count, drops.length);
      assert.equal(texts().at(-1), 'new');
      const all = [...texts().slice(0, -1), ...drops].map(Number).sort((a, b) => a - b);
      assert.deepEqual(all, [...Array(40).keys()], `pause ${pause}: ${count} dropped`);
      const counters = lives.kit.broker.sessions.get('a').counters();
      assert.deepEqual([counters.mqueueLen, counters.inflight], [0, 0]);
    }
  });

  it('keeps messages that arrive in the meantime, including those that a listener of the drop publishes', async () => {
    for (const isKept of [false, true]) {
      const lives = new Lives();
      lives.isKept = isKept;
      await using _ = await lives.begin();
      await lives.leave('a', 't', 1);
      const { broker } = lives.kit;
      for (const text of ['1', '2']) await broker.publish('t', text, { qos: 1 });
      await lives.kit.clock.advance(100);
      broker.on('message.dropped', ({ message }) => void broker.publish('t', `again ${message.payload}`, { qos: 1 }));
      assert.equal(await broker.sessions.get('a').clearQueue(), 2);
      const { texts } = await lives.listen({ clientId: 'a' });
      await lives.kit.clock.advance(100);
      assert.deepEqual(texts(), ['again 1', 'again 2']);
    }
  });

  it('throws STORE_FAILED while the store cannot be written, and drops nothing', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    const { broker } = lives.kit;
    await broker.publish('t', '1', { qos: 1 });
    await lives.kit.clock.advance(100);
    lives.store.fault = () => 'rejects';
    await assert.rejects(broker.publish('t', '2', { qos: 1 }));
    await assert.rejects(broker.sessions.get('a').clearQueue(), { code: 'STORE_FAILED' });
    lives.store.fault = () => undefined;
    await lives.kit.clock.advance('1m');
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['1']);
  });
});
