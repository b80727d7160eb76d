import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Level } from 'level';
import { appendBatch } from '../../adapters/level/files/append.ts';
import { checkFiles } from '../../adapters/level/files/check.ts';
import { ClosedMark } from '../../adapters/level/files/closed-mark.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { checkStore, createBroker } from '../../lib/index.ts';
import { fill, smallDisk } from './small-disk.ts';

async function contentOf(store: Store): Promise<Map<string, string>> {
  const found = await store.read(Buffer.of(0), Buffer.of(255), 10_000);
  return new Map(found.map(({ key, value }) => [`${key}`, value.toString('base64')]));
}

/** Make LevelDB write nothing from now on, as after a compaction that found no space. */
function stopLevelDB(t: TestContext, writes = 0): void {
  let left = writes;
  const noSpace = () => new Error('IO error: 000007.ldb: No space left on device');
  const { batch } = Level.prototype;
  t.mock.method(Level.prototype, 'batch', function (this: Level<Buffer, Buffer>, ...parameters: unknown[]) {
    const make = batch as (...parameters: unknown[]) => { write(options: object): Promise<void> };
    // batches of large records are passed as an array
    if (parameters.length > 0) return --left < 0 ? Promise.reject(noSpace()) : make.apply(this, parameters);
    const made = make.call(this);
    const { write } = made;
    made.write = async (options) => {
      if (--left < 0) throw noSpace();
      await write.call(made, options);
    };
    return made;
  });
}

const PERSISTENT = { clean: false, sessionExpiry: '1h' } as const;
/** Sizes of values such that the record ends at, before and behind the end of a block of the log (32 KB). */
const SIZES = [0, 1, 127, 128, ...Array.from({ length: 24 }, (_, n) => 32_730 + n), 65_495, 65_500, 100_000];

describe('A batch that is appended to a closed folder', () => {
  it('contains the batch when LevelDB opens it, newer than everything before and older than what follows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-append-'));
    try {
      const store = levelStore(folder);
      const expected = new Map<string, string>();
      const batch = (value: Buffer) => {
        const made = new Batch();
        for (const [key, bytes] of [
          ['always', value],
          [`key ${expected.size}`, value]
        ] as const) {
          made.put(Buffer.from(key), bytes);
          expected.set(key, bytes.toString('base64'));
        }
        if (expected.size % 3 === 0) {
          made.delete(Buffer.from('key 1'));
          expected.delete('key 1');
        }
        return made;
      };
      await store.open();
      for (const size of SIZES) {
        await store.commit(batch(randomBytes(10)));
        await store.close();
        await appendBatch(folder, batch(randomBytes(size)), size % 2 === 0);
        if (size % 3 === 0) await appendBatch(folder, batch(randomBytes(size)), false);
        await checkFiles(folder, new Set(), new ClosedMark(folder));
        await store.open();
        assert.deepEqual(await contentOf(store), expected, `${size} bytes`);
      }
      await store.close();
      assert.deepEqual(
        readdirSync(folder).filter((name) => name.endsWith('dbtmp')),
        []
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('A level store in which LevelDB writes nothing for lack of space', () => {
  it('accepts commits and reads', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const store = levelStore(join(disk.path, 'data'));
    await store.open();
    stopLevelDB(t, 1);
    const read: Promise<Map<string, string>>[] = [];
    for (let n = 0; n < 10; n++) {
      const batch = new Batch();
      batch.put(Buffer.from(`${n}`), Buffer.from('x'));
      const done = store.commit(batch);
      await turn();
      read.push(contentOf(store));
      await done;
      assert.equal((await contentOf(store)).size, n + 1);
    }
    const counts = (await Promise.all(read)).map(({ size }) => size);
    for (const [n, count] of counts.entries()) assert.ok(count === n || count === n + 1, `${count} after ${n}`);
    const large = new Batch();
    large.put(Buffer.from('large'), randomBytes(1_000_000));
    await store.commit(large);
    t.mock.restoreAll();
    await store.close();
    await store.open();
    assert.equal((await contentOf(store)).size, 11);
    await store.close();
  });

  it('takes nothing of the reserve permanently, however often its compaction finds no space', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    const store = levelStore(folder);
    await store.open();
    const free = async () => (await store.freeBytes?.()) ?? 0;
    const ballast = join(disk.path, 'ballast');
    fill(ballast);
    const before = await free();
    const { open } = Level.prototype;
    const leftover = join(folder, '009990.ldb');
    t.mock.method(Level.prototype, 'open', async function (this: Level) {
      await (open as () => Promise<void>).call(this);
      fill(leftover); // the size of a compaction
    });
    stopLevelDB(t);
    for (let n = 0; n < 20; n++) {
      const batch = new Batch();
      batch.put(Buffer.from(`${n}`), Buffer.from('x'));
      await store.commit(batch);
    }
    t.mock.restoreAll();
    await store.close();
    await store.open();
    assert.equal((await contentOf(store)).size, 20);
    rmSync(leftover, { force: true });
    const taken = before - (await free());
    assert.ok(taken < 500_000, `${taken} bytes`);
    await store.close();
  });

  it('admits existing sessions, and drains their queues', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const store = levelStore(join(disk.path, 'data'));
    const broker = createBroker({ store });
    const errors: unknown[] = [];
    broker.on('error', ({ error }) => errors.push(error));
    await broker.start();
    const names = ['a', 'b', 'c'];
    for (const clientId of names) {
      const client = await broker.connect({ clientId, ...PERSISTENT });
      await client.subscribe({ topic: clientId, qos: 1 });
      await client.disconnect();
      for (let n = 0; n < 50; n++) await broker.publish(clientId, randomBytes(10_000), { qos: 1 });
    }
    stopLevelDB(t);
    for (const clientId of names) {
      const client = await broker.connect({ clientId, ...PERSISTENT });
      let left = 50;
      for await (const _ of client.messages()) if (--left === 0) break;
      await client.ping();
      await client.disconnect();
    }
    await broker.stop();
    t.mock.restoreAll();
    assert.deepEqual(errors, []);
    assert.deepEqual((await checkStore(store)).findings, []);
    await broker.start();
    for (const clientId of names) assert.equal(broker.sessions.get(clientId).counters().mqueueLen, 0);
    await broker.stop();
  });
});
