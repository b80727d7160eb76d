import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Level } from 'level';
import { MemoryLevel } from 'memory-level';
import type { LevelDatabase } from '../../adapters/level/database.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { turns, withResolvers } from '../support/wire.ts';

const MB = 1_048_576;
const home = mkdtempSync(join(tmpdir(), 'embermq-space-'));
after(() => rmSync(home, { recursive: true, force: true }));

function megabytes(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0) / MB;
}

/** Starts a broker and queues 48 MB for an offline client. */
async function fillQueue(store: Store): Promise<TestBroker> {
  const kit = await createTestBroker({ store, leakCheck: false, maxMqueueBytes: 100 * MB });
  const away = await kit.connect({ clientId: 'away', clean: false, sessionExpiry: '1d' });
  await away.subscribe({ topic: 'a', qos: 1 });
  await away.disconnect();
  // random payloads, which LevelDB cannot compress
  for (let n = 0; n < 768; n++) await kit.broker.publish('a', randomBytes(65_536), { qos: 1 });
  return kit;
}

async function drain(kit: TestBroker): Promise<void> {
  const client = await kit.connect({ clientId: 'away', clean: false, sessionExpiry: '1d' });
  let left = 768;
  await new Promise<void>((resolve) => {
    client.on('message', () => {
      if (--left === 0) resolve();
    });
  });
  await client.disconnect();
}

/** Counts the compactions of a store, with promises for the start and the end of the first one. */
function watchCompaction(store: Store) {
  const compact = store.compact?.bind(store);
  assert.ok(compact !== undefined);
  const [begun, done] = [withResolvers<void>(), withResolvers<void>()];
  const watched = { times: 0, begun: begun.promise, done: done.promise };
  store.compact = () => {
    watched.times++;
    begun.resolve();
    const compacted = compact();
    done.resolve(compacted);
    return compacted;
  };
  return watched;
}

describe('a folder whose queued messages were delivered', () => {
  it('compacts the folder, but not while the messages are queued', async () => {
    const folder = join(home, 'drained');
    const store = levelStore(folder);
    await using kit = await fillQueue(store);
    const watched = watchCompaction(store);
    await kit.clock.advance('5m');
    assert.equal(watched.times, 0);
    await drain(kit);
    assert.ok(megabytes(folder) > 40, `${megabytes(folder)} MB before`);
    await kit.clock.advance('31s');
    await watched.done;
    await kit.broker.publish('r', 'x', { qos: 1, retain: true }); // LevelDB deletes files only when it is used
    assert.ok(megabytes(folder) < 12, `${megabytes(folder)} MB left`);
    await kit.clock.advance('5m');
    await turns();
    assert.equal(watched.times, 1);
  });

  it('compacts the folder after a restart as well, and can be closed during the compaction', async () => {
    const folder = join(home, 'restarted');
    const first = await fillQueue(levelStore(folder));
    await drain(first);
    await first[Symbol.asyncDispose]();
    const store = levelStore(folder);
    const { size } = store;
    // LevelDB may already have freed a part, which differs from run to run
    store.size = async () => ((await size?.call(store)) ?? 0) + 40 * MB;
    const kit = await createTestBroker({ store, leakCheck: false });
    const watched = watchCompaction(store);
    await kit.clock.advance('31s');
    await watched.begun;
    const errors: unknown[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error));
    await kit[Symbol.asyncDispose]();
    await watched.done;
    assert.deepEqual(errors, []);
    await using again = await createTestBroker({ store: levelStore(folder), leakCheck: false });
    assert.equal(again.broker.sessions.get('away').counters().mqueueLen, 0);
  });

  it('does not compact a database other than LevelDB', () => {
    const { size, compact } = levelStore(new MemoryLevel({ keyEncoding: 'buffer', valueEncoding: 'buffer' }));
    assert.deepEqual([size, compact], [undefined, undefined]);
  });
});

describe('the size of a folder', () => {
  it('includes the records of a log that LevelDB turns into a table while the size is computed', async (t) => {
    const store = levelStore(join(home, 'rotated'));
    await store.open();
    const batch = new Batch();
    for (let n = 0; n < 32; n++) batch.put(Buffer.of(n), randomBytes(65_536));
    await store.commit(batch);
    const database = Level.prototype as unknown as Required<LevelDatabase>;
    const { approximateSize } = database;
    t.mock.method(database, 'approximateSize', async function (this: typeof database, from: Buffer, to: Buffer) {
      const size = await approximateSize.call(this, from, to, {});
      await this.compactRange(from, to, {});
      return size;
    });
    const size = (await store.size?.()) ?? 0;
    await store.close();
    assert.ok(size >= 2 * MB, `${size} bytes`);
  });
});
