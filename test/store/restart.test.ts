import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { BrokerError } from '../../lib/base/errors.ts';
import { durationMs } from '../../lib/base/fields.ts';
import { Broker, engineOf } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { Kind } from '../../lib/store/keys.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { Batch, type Store } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { inNoTime } from '../support/real-time.ts';
import { granted, publish, turns, withResolvers } from '../support/wire.ts';
import { FaultyStore } from './faulty-store.ts';

const PERSISTENT = { clean: false, sessionExpiry: '1h' } as const;

/** Ends the process of a broker like kill -9, after all work in progress, and starts another one after this time. */
async function killed(kit: TestBroker, downFor: string | number = 0, options: BrokerOptions = {}): Promise<TestBroker> {
  await engineOf(kit.broker).services.work.settled();
  const store = await copyOf(kit.broker.settings.store as Store);
  const now = kit.clock.now() + durationMs(downFor, 'downFor');
  await kit[Symbol.asyncDispose]();
  return begun(store, now, options);
}

function begun(store: Store = memoryStore(), now?: number, options: BrokerOptions = {}): Promise<TestBroker> {
  return createTestBroker({ ...options, store, clock: { now }, leakCheck: false });
}

async function copyOf(store: Store): Promise<Store> {
  const copy = memoryStore();
  await copy.open();
  const batch = new Batch();
  for (const { key, value } of await store.read(Buffer.of(0), Buffer.of(255), 1e9)) batch.put(key, value);
  await copy.commit(batch);
  await copy.close();
  return copy;
}

/**
 * Makes a store never complete reading queued messages.
 * @returns a promise that resolves when they are read
 */
function queueNeverRead(store: Store): Promise<void> {
  const read = store.read.bind(store);
  return new Promise((resolve) => {
    store.read = (from, to, limit) => {
      if (from[0] !== Kind.segment) return read(from, to, limit);
      resolve();
      return new Promise(() => {});
    };
  });
}

/** Defers the next opening of a store until `fail`, which rejects it. */
function failOpening(store: Store): { isUnderWay: Promise<void>; fail: () => void } {
  const open = store.open.bind(store);
  let fail = () => {};
  const isUnderWay = new Promise<void>((begun) => {
    store.open = () => {
      store.open = open;
      begun();
      return new Promise((_, reject) => {
        fail = () => reject(new Error('no disk there'));
      });
    };
  });
  return { isUnderWay, fail: () => fail() };
}

/** A broker that has abandoned its stop: the commit of a table entry, k 1, is in progress until `go`. */
async function stoppedWithHangingCommit(
  t: TestContext
): Promise<{ broker: Broker; store: FaultyStore; go: () => void }> {
  const store = new FaultyStore();
  const broker = await new Broker({ store }).start();
  const { promise, resolve: go } = withResolvers<void>();
  const commit = store.commit.bind(store);
  store.commit = (batch) => {
    store.commit = commit;
    return promise.then(() => commit(batch));
  };
  void broker.table('t').set('k', 1);
  await turns();
  await inNoTime(t, () =>
    assert.rejects(broker.stop({ timeoutMs: 0 }), ({ errors }) => /does not close/.test(errors[0].message))
  );
  return { broker, store, go };
}

describe('A broker that starts again', () => {
  it('does not start on a store that another broker has open, and starts when that one has stopped', async () => {
    const store = memoryStore();
    await using first = new Broker({ store });
    await first.start();
    await using second = new Broker({ store });
    await assert.rejects(second.start(), { code: 'STORE_IN_USE' });
    await first.table('t').set('k', 1); // it is still open in the other broker
    await first.stop();
    await second.start();
  });

  it('ignores a reopening of its store that was still in progress when it was stopped', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store, leakCheck: false });
    const { broker, clock } = kit;
    store.fault = 'rejects';
    await assert.rejects(broker.table('t').set('k', 1), { code: 'STORE_FAILED' });
    const { isUnderWay, fail } = failOpening(store);
    const passed = clock.advance('1s'); // time does not advance while a store opens
    await isUnderWay;
    const stopped = assert.rejects(broker.stop(), ({ errors }) => errors[0].code === 'STORE_FAILED');
    const started = broker.start();
    await turns();
    store.fault = undefined;
    fail();
    await passed;
    await stopped;
    await started;
    await broker.table('t').set('k', 2);
    assert.equal(broker.table('t').get('k'), 2);
  });

  it('refuses to start while writes from its last stop hang, and reports what to do', async (t) => {
    const { broker, store, go } = await stoppedWithHangingCommit(t);
    const { opens } = store;
    await inNoTime(t, () =>
      assert.rejects(broker.start(), { code: 'STORE_IN_USE', message: /Start again when the disk answers/ })
    );
    assert.equal(store.opens, opens);
    go();
    await broker.start();
    assert.equal(broker.table('t').get('k'), 1);
    await broker.stop();
  });

  it('starts when the writes of its last stop are complete, and ignores the end of that stop', async (t) => {
    const { broker, store, go } = await stoppedWithHangingCommit(t);
    const started = broker.start();
    await turns();
    go();
    await started;
    await turns();
    await broker.table('t').set('l', 2);
    await broker.stop();
    await using kit = await begun(store);
    assert.deepEqual(
      [...kit.broker.table('t')],
      [
        ['k', 1],
        ['l', 2]
      ]
    );
  });

  it('reports why it does not start if the store does not close either, and leaves the store to others', async () => {
    const store = new FaultyStore();
    await using broker = new Broker({ store });
    const told: string[] = [];
    broker.on('error', ({ error, during }) => told.push(`${during}: ${(error as Error).message}`));
    store.isShut = true;
    store.close = () => Promise.reject(new Error('no disk to close'));
    await assert.rejects(broker.start(), { message: 'no disk there' });
    assert.deepEqual(told, ['closing the store: no disk to close']);
    store.isShut = false;
    await using other = new Broker({ store });
    await other.start();
    await assert.rejects(other.stop(), ({ errors }) => errors[0].message === 'no disk to close');
    await broker.start();
    await broker.stop().catch(() => undefined);
  });

  it('does not open the store for changes of the app while it is stopped, and writes them when it starts again', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store, leakCheck: false });
    const { broker, clock } = kit;
    const client = await kit.connect({ clientId: 'c', ...PERSISTENT });
    await client.subscribe({ topic: 'a', qos: 1 });
    const handle = broker.sessions.get('c');
    const told: unknown[] = [];
    broker.on('error', ({ error }) => told.push(error));
    await broker.stop();
    const { opens } = store;
    handle.discard();
    await turns();
    await clock.advance('1m');
    assert.deepEqual([store.opens, told], [opens, []]);
    await broker.start();
    await clock.advance('1s');
    assert.equal(broker.sessions.has('c'), false);
    await broker.stop();
    await using again = await createTestBroker({ store, leakCheck: false });
    assert.equal(again.broker.sessions.has('c'), false);
  });

  it('publishes the will of a client that reconnects at once, because its connection ended', async () => {
    const first = await begun();
    const watcher = await first.connect({ clientId: 'watcher', ...PERSISTENT });
    await watcher.subscribe({ topic: 'wills', qos: 1 });
    await first.connect({ clientId: 'c', ...PERSISTENT, will: { topic: 'wills', payload: 'gone', qos: 1 } });
    await using kit = await killed(first);
    await kit.connect({ clientId: 'c', ...PERSISTENT });
    const again = await kit.connect({ clientId: 'watcher', ...PERSISTENT });
    const got: string[] = [];
    again.on('message', ({ payload }) => got.push(`${payload}`));
    await kit.clock.advance('1s');
    assert.deepEqual(got, ['gone']);
  });

  it('removes a session that expired in the meantime when its client reconnects at once', async () => {
    const first = await begun();
    const client = await first.connect({ clientId: 'c', ...PERSISTENT });
    await client.subscribe({ topic: 'a', qos: 1 });
    await client.disconnect();
    await using kit = await killed(first, '61m');
    const again = await kit.connect({ clientId: 'c', ...PERSISTENT });
    assert.equal(again.connack.sessionPresent, false);
  });

  it('keeps the session of a client that was connected, regardless of how long ago the last write was', async () => {
    const first = await begun();
    await first.connect({ clientId: 'c', ...PERSISTENT });
    await first.clock.advance('2h');
    await using kit = await killed(first, '59m');
    const again = await kit.connect({ clientId: 'c', ...PERSISTENT });
    assert.equal(again.connack.sessionPresent, true);
  });

  it('removes a packet id that receives no PUBREL for awaitRelTimeout after its client reconnects, and none before', async () => {
    const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 3_600 } };
    const timed = { awaitRelTimeout: '10s' };
    const first = await begun(memoryStore(), undefined, timed);
    const writer = await rawClient(first.broker, options);
    writer.send(publish('a', 'x', { qos: 2, messageId: 7 }));
    assert.equal((await writer.next('pubrec')).reasonCode, 0x10);
    await using kit = await killed(first, '1m', timed);
    const again = await rawClient(kit.broker, options);
    await kit.clock.advance('9s');
    assert.equal(kit.broker.sessions.get('c').counters().awaitingRel, 1);
    await kit.clock.advance('2s');
    assert.equal(kit.broker.sessions.get('c').counters().awaitingRel, 0);
    again.send({ cmd: 'pubrel', messageId: 7, reasonCode: 0 });
    assert.equal((await again.next('pubcomp')).reasonCode, 0x92);
  });

  it('restores the messages in flight if it crashes while a client reconnects and receives messages', async () => {
    const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 3_600 } };
    const first = await begun();
    const reader = await rawClient(first.broker, options);
    await granted(reader, 1, { topic: 'a', qos: 2 });
    await first.broker.publish('a', 'one', { qos: 2 });
    const { messageId } = await reader.next('publish');
    const second = await killed(first);
    const isReading = queueNeverRead(second.broker.settings.store as Store);
    const again = await rawClient(second.broker, { ...options, connect: false });
    again.send(connectPacket(options));
    await isReading;
    await second.broker.publish('a', 'two', { qos: 1 });
    await using kit = await killed(second);
    const last = await rawClient(kit.broker, options);
    const sent = await last.next('publish');
    assert.deepEqual([sent.messageId, sent.dup, `${sent.payload}`], [messageId, true, 'one']);
  });

  it('reports once each zone that no longer exists, and handles its sessions in the default zone', async () => {
    const store = memoryStore();
    const zones = { inner: { maxMqueueLen: 5 }, outer: {}, other: {} };
    const first = await new Broker({ store, zones }).start();
    for (const zone of Object.keys(zones))
      for (const n of [1, 2]) {
        const client = await first.connect({ clientId: `${zone}-${n}`, ...PERSISTENT, transportInfo: { zone } });
        await client.disconnect();
      }
    await first.stop();
    const second = new Broker({ store, zones: { other: {} } });
    const told: string[] = [];
    second.on('error', ({ error }) => told.push(`${(error as BrokerError).code} ${(error as BrokerError).message}`));
    await second.start();
    assert.equal(told.length, 2, `${told}`);
    for (const [n, name] of ['inner', 'outer'].entries())
      assert.match(
        told[n],
        new RegExp(
          `^ZONE_UNKNOWN zone "${name}" is no longer defined, but 2 stored sessions .*"external".*option zones`
        )
      );
    const zoneOf = (clientId: string) => second.sessions.get(clientId).client.zone;
    assert.deepEqual(['inner-1', 'outer-2', 'other-1'].map(zoneOf), ['external', 'external', 'other']);
    await second.stop();
  });
});
