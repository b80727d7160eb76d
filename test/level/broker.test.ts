import assert from 'node:assert/strict';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MemoryLevel } from 'memory-level';
import { levelStore } from '../../adapters/level/index.ts';
import { checkStore, createBroker } from '../../lib/index.ts';
import { Kind } from '../../lib/store/keys.ts';
import type { Entry, Store } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { ALL_KINDS, change, entriesOf, fill, laterVersion } from '../store/filled-store.ts';
import { PERSISTENT } from '../store/support.ts';

async function on(store: Store, now?: number): Promise<TestBroker> {
  return createTestBroker({ store, clock: { now }, leakCheck: false });
}

/** Creates state of several kinds and checks it after a stop and start on stores in the same location. */
async function liveTwice(storeOf: () => Store): Promise<void> {
  const numbers = Array.from({ length: 3000 }, (_, n) => `${n}`);
  const first = await on(storeOf());
  const reader = await first.connect({ clientId: 'r', ...PERSISTENT });
  await reader.subscribe({ topic: 't', qos: 2 });
  await reader.disconnect();
  const writer = await first.connect({ clientId: 'w', will: { topic: 'will', payload: 'gone', retain: true } });
  await Promise.all(numbers.map((n) => writer.publish('t', n, { qos: Number(n) % 2 === 0 ? 1 : 2 })));
  await writer.publish('big', Buffer.alloc(300_000, 1), { qos: 1, retain: true });
  await first.broker.table('t').set('k', { v: 1 });
  const now = first.clock.now();
  await first[Symbol.asyncDispose](); // keeps wills

  await using second = await on(storeOf(), now + 1000);
  const again = await second.connect({ clientId: 'r', ...PERSISTENT, receiveMaximum: 20 });
  assert.equal(again.connack.sessionPresent, true);
  const got: string[] = [];
  again.on('message', ({ payload }) => got.push(`${payload}`));
  await second.clock.advance(1000);
  for (const rest of [0, 1])
    assert.deepEqual(
      got.filter((n) => Number(n) % 2 === rest),
      numbers.filter((n) => Number(n) % 2 === rest)
    );
  const retained: string[] = [];
  for await (const { topic, payload } of second.broker.retained.match('#')) retained.push(`${topic} ${payload.length}`);
  assert.deepEqual(retained.sort(), ['big 300000', 'will 4']);
  assert.deepEqual(second.broker.table('t').get('k'), { v: 1 });
}

describe('A broker on a level store', () => {
  it('restores the state of the previous broker from a folder', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'embermq-'));
    try {
      await liveTwice(() => levelStore(join(folder, 'data')));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('acknowledges nothing and reports an error when its folder is moved away, and continues when it is restored', async (t) => {
    const home = await mkdtemp(join(tmpdir(), 'embermq-'));
    const [folder, away] = [join(home, 'data'), join(home, 'away')];
    const broker = createBroker({ store: levelStore(folder) });
    const alive = setInterval(() => {}, 1_000); // the broker's own timers do not keep the process running
    const told: string[] = [];
    broker.on('error', ({ error }) => told.push((error as Error).message));
    try {
      await broker.start();
      await broker.publish('a', 'before', { qos: 1, retain: true });
      await rename(folder, away);
      const later = performance.now() + 2_000;
      t.mock.method(performance, 'now', () => later);
      const refused = { code: 'STORE_FAILED', message: /the folder was deleted or moved while it was open/ };
      await assert.rejects(broker.publish('a', 'lost', { qos: 1, retain: true }), refused);
      await assert.rejects(broker.publish('a', 'lost, too', { qos: 1, retain: true }), { code: 'STORE_FAILED' });
      assert.equal(told.length, 1);
      assert.ok(told[0].startsWith(`${folder}: a commit failed: its file ${join(folder, 'LOCK')} is missing`), told[0]);
      const recovered = new Promise<void>((resolve) => broker.once('store.recovered', () => resolve()));
      assert.deepEqual(await readdir(home), ['away'], 'no new folder is created');
      await rename(away, folder);
      await recovered;
      await broker.publish('a', 'after', { qos: 1, retain: true });
      await broker.stop();
      assert.equal(told.length, 1, `${told}`);
      assert.deepEqual((await checkStore(levelStore(folder))).findings, []);
    } finally {
      await broker.stop();
      clearInterval(alive);
      await rm(home, { recursive: true, force: true });
    }
  });

  it('writes nothing to the folder of another broker that replaces its own, and continues when its own is restored', async (t) => {
    const home = await mkdtemp(join(tmpdir(), 'embermq-'));
    const [folder, away, theirs] = [join(home, 'data'), join(home, 'away'), join(home, 'theirs')];
    const broker = createBroker({ store: levelStore(folder) });
    const alive = setInterval(() => {}, 1_000); // the broker's own timers do not keep the process running
    try {
      await using other = await on(levelStore(theirs), 1_000);
      await other.broker.table('t').set('k', 'theirs');
      await other.broker.stop();
      const before = await entriesOf(levelStore(theirs));
      await broker.start();
      for (let n = 0; n < 10; n++) await broker.table('t').set('k', `ours ${n}`);
      await rename(folder, away);
      await rename(theirs, folder);
      const later = performance.now() + 2_000;
      t.mock.method(performance, 'now', () => later);
      const changed = new Promise<void>((resolve) => {
        broker.on('error', ({ error }) => {
          if ((error as { code?: string }).code === 'STORE_CHANGED') resolve();
        });
      });
      const recovered = new Promise<void>((resolve) => broker.once('store.recovered', () => resolve()));
      const refused = { code: 'STORE_FAILED', message: /another folder is in this place/ };
      await assert.rejects(broker.table('t').set('k', 'lost'), refused);
      await changed;
      await assert.rejects(broker.table('t').set('k', 'lost, too'), { code: 'STORE_FAILED' });
      await rename(folder, theirs);
      await rename(away, folder);
      await recovered;
      assert.deepEqual(await entriesOf(levelStore(theirs)), before);
      await broker.table('t').set('k', 'ours again');
      await broker.stop();
      assert.deepEqual((await checkStore(levelStore(folder))).findings, []);
    } finally {
      await broker.stop();
      clearInterval(alive);
      await rm(home, { recursive: true, force: true });
    }
  });

  it('refuses a folder with a record of a later version, and does not change it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'embermq-'));
    try {
      const store = levelStore(folder);
      await fill(store);
      const later = (await entriesOf(store)).find(({ key }) => key[0] === Kind.table) as Entry;
      await change(store, (batch) => batch.put(later.key, laterVersion(later)));
      const before = await entriesOf(store);
      for (const repairStore of [false, true])
        await assert.rejects(createTestBroker({ ...ALL_KINDS, store: levelStore(folder), repairStore }), {
          code: 'STORE_TOO_NEW',
          message: `${folder}: table entry "colours/sky": the record has version 2; this version of embermq reads up to 1. Use the version that wrote it, or a later one`
        });
      assert.deepEqual(await entriesOf(store), before);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('restores its state from any abstract-level database', async () => {
    const database = new MemoryLevel<Buffer, Buffer>({ keyEncoding: 'buffer', valueEncoding: 'buffer' });
    await liveTwice(() => levelStore(database as never));
  });
});
