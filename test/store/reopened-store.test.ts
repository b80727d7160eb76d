import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Batch, type Store } from '../../lib/adapter.ts';
import { Broker, type Client, checkStore, memoryStore } from '../../lib/index.ts';
import { Kind } from '../../lib/store/keys.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { rawClient } from '../support/raw-client.ts';
import { inNoTime } from '../support/real-time.ts';
import { granted, payloads, publish, turns, withResolvers } from '../support/wire.ts';
import {
  check,
  FAULTS,
  PERSISTENT,
  RAW_PERSISTENT,
  recover,
  retained,
  retry,
  stage,
  waiting
} from './failing-support.ts';
import { FaultyStore } from './faulty-store.ts';
import { entriesOf } from './filled-store.ts';

/** Like a LevelDB database that has lost its last writes after the disk was full. */
async function loseLastCommit({ inner }: FaultyStore): Promise<void> {
  const commits = await inner.read(Buffer.of(Kind.commit), Buffer.of(Kind.commit + 1), 1_000);
  const batch = new Batch();
  batch.delete((commits.at(-1) as { key: Buffer }).key);
  await inner.commit(batch);
}

/** Returns the store of another broker, created in another second. */
async function ofAnother(commits = 1): Promise<Store> {
  const store = memoryStore();
  await using kit = await createTestBroker({ store, clock: { now: Date.UTC(2031, 0) }, leakCheck: false });
  for (let n = 0; n < commits; n++) await kit.broker.table('t').set('k', n);
  return store;
}

describe('A broker whose store failed', () => {
  it('does not write to a store that another broker has written to in the meantime, and reports it', async () => {
    const { kit, store, told } = await stage();
    const { broker, clock } = kit;
    store.fault = 'rejects';
    await assert.rejects(async () => broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await turns();
    await using other = await createTestBroker({ store: store.inner, leakCheck: false });
    for (const n of ['1', '2']) await other.broker.publish('state/1', n, { qos: 1, retain: true });
    await other.broker.stop();
    await recover(kit, store);
    await clock.advance('5m');
    assert.deepEqual(told.slice(3), ['error: STORE_CHANGED']);
    await assert.rejects(async () => broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await assert.rejects(broker.stop());
    await assert.rejects(broker.start(), { code: 'STORE_CHANGED' });
    await using again = await createTestBroker({ store: store.inner, leakCheck: false });
    assert.deepEqual(await retained(again.broker), ['1: 2']);
    await kit[Symbol.asyncDispose]();
  });

  for (const [what, make] of [
    ['of another broker that has made fewer commits', ofAnother],
    ['that is empty', async () => memoryStore()]
  ] as const) {
    it(`does not write to a store ${what} that replaces its own, reports it once, and continues when its own is back`, async () => {
      const { kit, store, told } = await stage();
      const { broker, clock } = kit;
      for (let n = 0; n < 10; n++) await broker.table('t').set('k', n);
      const [own, other] = [store.inner, await make()];
      const before = await entriesOf(other);
      store.fault = 'rejects';
      await assert.rejects(async () => broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
      store.inner = other;
      store.fault = undefined;
      await clock.advance('5m');
      assert.deepEqual(told.slice(3), ['error: STORE_CHANGED']);
      await assert.rejects(async () => broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
      await other.close();
      assert.deepEqual(await entriesOf(other), before);
      store.inner = own;
      await recover(kit, store);
      assert.deepEqual(told.slice(4), ['alarm: clear', 'recovered']);
      assert.deepEqual(await broker.publish('kept/1', 'y', { qos: 1 }), { receivers: 1 });
      assert.deepEqual(await waiting(kit), ['y']);
      await kit[Symbol.asyncDispose]();
      assert.deepEqual((await checkStore(store)).findings, []);
    });
  }

  it('does not start on another store that replaces its own, and starts when its own is back', async () => {
    const { kit, store } = await stage();
    const [own, other] = [store.inner, await ofAnother(1_000)];
    await kit.broker.stop();
    const before = await entriesOf(other);
    store.inner = other;
    await assert.rejects(kit.broker.start(), {
      code: 'STORE_CHANGED',
      message: 'the disk: this is not the store that was open before. Restore the previous store'
    });
    assert.deepEqual(await entriesOf(other), before);
    store.inner = own;
    await kit.broker.start();
    assert.equal(kit.broker.sessions.has('reader'), true);
    await kit[Symbol.asyncDispose]();
  });

  it('tries repeatedly to open the store, at increasing intervals, and reports it once', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    store.isShut = true;
    const before = store.opens;
    await kit.clock.advance('10m');
    const tries = store.opens - before;
    assert.ok(tries >= 60 && tries < 75, `${tries} tries in ten minutes`);
    store.isShut = false; // it opens, but has no space
    await kit.clock.advance('1m');
    assert.deepEqual(told, ['alarm: alert', 'error: STORE_FAILED', 'failed: STORE_FAILED']);
    await recover(kit, store);
    assert.deepEqual(told.slice(3), ['alarm: clear', 'recovered']);
  });

  it('lets time pass if a commit fails while the segments of an ended session are removed', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.broker.publish('kept/1', 'x', { qos: 1 });
    await kit.clock.advance('1s');
    const read = store.read.bind(store);
    const { promise: mayRead, resolve: readOn } = withResolvers<void>();
    const { promise: isReading, resolve: noteReading } = withResolvers<void>();
    store.read = async (from, to, limit) => {
      const entries = await read(from, to, limit);
      if (from[0] !== Kind.segment) return entries;
      noteReading();
      await mayRead;
      return entries;
    };
    kit.broker.sessions.get('reader').discard();
    await isReading;
    store.fault = 'rejects';
    await assert.rejects(kit.broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
    readOn();
    await turns();
    await recover(kit, store);
    await kit.clock.advance('1s');
    assert.deepEqual(await read(Buffer.of(Kind.segment), Buffer.of(Kind.segment + 1), 10), []);
  });

  it('reports a commit that takes long, acknowledges nothing, and continues to deliver QoS 0', async (t) => {
    const store = new FaultyStore();
    const clock = new ManualClock();
    const broker = new Broker({ store, clock, timerResolution: 1, memoryHighWatermark: 0 });
    const told: unknown[] = [];
    broker.on('error', ({ error }) => told.push((error as Error & { code: string }).code));
    await broker.start();
    const reader = await rawClient(broker, { clientId: 'reader', ...RAW_PERSISTENT });
    assert.deepEqual(await granted(reader, 1, { topic: 'kept/#', qos: 1 }), [1]);
    const writer = await rawClient(broker);
    store.fault = 'hangs';
    writer.send(publish('kept/1', 'x', { qos: 1, messageId: 1 }));
    await writer.nothing();
    clock.advance(9_000);
    assert.deepEqual(told, []);
    clock.advance(2_000);
    assert.deepEqual(told, ['STORE_SLOW']);
    writer.send(publish('kept/1', 'y', { qos: 1, messageId: 2 }), publish('kept/1', 'z'));
    await writer.nothing();
    const got = await payloads(reader);
    assert.ok(got.includes('z'), `${got}`);
    await inNoTime(t, () =>
      assert.rejects(broker.stop({ timeoutMs: 0 }), ({ errors }: AggregateError) => {
        assert.equal(errors[0].code, 'STORE_FAILED');
        assert.match(errors[0].message, /^the disk: the store does not close/);
        return true;
      })
    );
  });

  it('opens and closes the store in sequence, and leaves it closed, when it is stopped while it reopens the store', async () => {
    const store = new FaultyStore();
    const [open, close] = [store.open.bind(store), store.close.bind(store)];
    const { promise: mayOpen, resolve: goOn } = withResolvers<void>();
    const calls: string[] = [];
    const noted = async (what: string, run: () => Promise<void>) => {
      calls.push(what);
      await run();
      calls.push(`${what} done`);
    };
    store.close = () => noted('close', close);
    const clock = new ManualClock();
    const broker = new Broker({ store, clock });
    broker.on('error', () => {});
    await broker.start();
    store.open = () => noted('open', () => mayOpen.then(open));
    store.fault = 'rejects';
    await assert.rejects(broker.table('t').set('a', 1), { code: 'STORE_FAILED' });
    for (let n = 0; n < 100 && !calls.includes('open'); n++) {
      clock.advance(100);
      await turns();
    }
    const stopped = broker.stop({ timeoutMs: 0 }).catch(() => undefined);
    await turns(50);
    await assert.rejects(checkStore(store), { code: 'STORE_IN_USE' });
    goOn();
    await stopped;
    assert.deepEqual(calls, ['close', 'close done', 'open', 'open done', 'close', 'close done']);
    assert.deepEqual((await checkStore(store)).findings, []);
  });

  it('does not wait for the next attempt when it is stopped', async () => {
    const { kit, store } = await stage();
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await kit.clock.advance('1m');
    const { opens } = store;
    await assert.rejects(
      kit.broker.stop({ timeoutMs: 0 }),
      /a listener, a source of authentication or the store could not be closed/
    );
    await kit.clock.advance('1m');
    assert.equal(store.opens, opens);
    await kit[Symbol.asyncDispose]();
  });

  it('reports which commits are missing, and leaves the gap for the next start', async () => {
    const { kit, store, told } = await stage();
    await kit.broker.publish('kept/1', 'x', { qos: 1 });
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'y', { qos: 1 }), { code: 'STORE_FAILED' });
    await turns();
    await store.inner.open();
    await loseLastCommit(store);
    await recover(kit, store);
    assert.deepEqual(told.slice(3), ['error: STORE_CORRUPT', 'alarm: clear', 'recovered']);
    await kit[Symbol.asyncDispose]();
    assert.deepEqual(
      (await checkStore(store)).findings.map(({ code }) => code),
      ['COMMITS_MISSING']
    );
  });

  it('reports missing commits as well if it was stopped while the store failed, and started again', async () => {
    const { kit, store, told } = await stage();
    await kit.broker.publish('kept/1', 'x', { qos: 1 });
    await kit.clock.advance('1s');
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'y', { qos: 1 }), { code: 'STORE_FAILED' });
    await assert.rejects(
      kit.broker.stop({ timeoutMs: 0 }),
      /a listener, a source of authentication or the store could not be closed/
    );
    await store.inner.open();
    await loseLastCommit(store);
    await store.inner.close();
    store.fault = undefined;
    told.length = 0;
    await kit.broker.start();
    assert.deepEqual(told, ['error: STORE_CORRUPT']);
    await kit.broker.publish('kept/1', 'z', { qos: 1 });
    await kit[Symbol.asyncDispose]();
    assert.deepEqual(
      (await checkStore(store)).findings.map(({ code }) => code),
      ['COMMITS_MISSING']
    );
  });

  it('reopens the store on time by the clock of the test kit, regardless of how long closing takes', async () => {
    const { kit, store, told } = await stage();
    await using _ = kit;
    const close = store.close.bind(store);
    store.close = async () => {
      await turns();
      await close();
    };
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    store.fault = undefined;
    await kit.clock.advance(150);
    assert.equal(told.at(-1), 'recovered');
  });

  it('starts again on the same object after a stop that could not write', async () => {
    const { kit, store } = await stage();
    store.fault = 'rejects';
    await assert.rejects(async () => kit.broker.publish('kept/1', 'x', { qos: 1 }), { code: 'STORE_FAILED' });
    await assert.rejects(
      kit.broker.stop({ timeoutMs: 0 }),
      /a listener, a source of authentication or the store could not be closed/
    );
    store.fault = undefined;
    await kit.broker.start();
    assert.deepEqual(await kit.broker.publish('kept/1', 'y', { qos: 1 }), { receivers: 1 });
    assert.deepEqual(await waiting(kit), ['y']);
    await kit[Symbol.asyncDispose]();
  });
});

describe('A store that fails at any single commit', () => {
  for (const fault of FAULTS) {
    it(`loses no acknowledged message, and repeats none of QoS 2, when that commit ${fault}`, async () => {
      let commits = Infinity;
      for (let n = 2; n <= commits; n++) {
        const store = new FaultyStore();
        store.faultAt.set(n, fault);
        const where = `commit ${n} ${fault}`;
        const kit = await createTestBroker({ store, leakCheck: false });
        kit.broker.on('error', () => undefined);
        const got = { q1: [] as string[], q2: [] as string[] };
        const take = (client: Client) =>
          client.on('message', ({ topic, payload }) => got[topic as 'q1' | 'q2'].push(`${payload}`));
        const connect = async (clientId: string) => {
          const client = await retry(kit, () => kit.connect({ clientId, ...PERSISTENT }));
          take(client);
          return client;
        };
        let reader = await connect('reader');
        await retry(kit, async () => {
          const codes = await reader
            .subscribe([
              { topic: 'q1', qos: 1 },
              { topic: 'q2', qos: 2 }
            ])
            .catch(async (error) => {
              reader = await connect('reader');
              throw error;
            });
          assert.deepEqual([...codes], [1, 2]);
        });
        const writer = await connect('writer');
        const write = async (name: string) => {
          for (const qos of [1, 2] as const)
            await retry(kit, () => writer.publish(`q${qos}`, name, { qos }) as Promise<unknown>);
        };
        for (const name of ['a', 'b']) await write(name);
        await reader.disconnect();
        for (const name of ['c', 'd']) await write(name);
        reader = await connect('reader');
        await write('e');
        await kit.clock.advance('20s');
        await reader.disconnect();
        await writer.disconnect();
        await kit.clock.advance('20s');
        assert.deepEqual([...new Set(got.q1)], ['a', 'b', 'c', 'd', 'e'], where);
        assert.deepEqual(got.q2, ['a', 'b', 'c', 'd', 'e'], where);
        assert.deepEqual((await check(store)).findings, [], where);
        assert.equal(kit.broker.sessions.get('reader').counters().mqueueLen, 0, where);
        if (n > store.commits) break;
        commits = Math.max(store.commits, n);
        await kit[Symbol.asyncDispose]();
      }
    });
  }
});

describe('A store that fails again after its broker was stopped and started', () => {
  it('reopens the store as soon as after its first failure', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store });
    kit.broker.on('error', () => undefined);
    const fail = () => assert.rejects(async () => kit.broker.publish('t', 'x', { retain: true, qos: 1 }));
    store.fault = 'rejects';
    await fail();
    await kit.clock.advance('60s');
    await assert.rejects(kit.broker.stop());
    store.fault = undefined;
    await kit.broker.start();
    store.faultAt.set(store.commits + 1, 'rejects');
    let isRecovered = false;
    kit.broker.on('store.recovered', () => {
      isRecovered = true;
    });
    await fail();
    await kit.clock.advance('1s');
    assert.equal(isRecovered, true);
  });
});
