import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Level } from 'level';
import { Reserve } from '../../adapters/level/files/reserve.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { createBroker } from '../../lib/index.ts';
import { fill, smallDisk } from './small-disk.ts';

const MB = 1_048_576;
const PERSISTENT = { clean: false, sessionExpiry: '1h' } as const;

type FolderStore = Store & Required<Pick<Store, 'freeBytes' | 'compact' | 'size'>>;

function folderStore(folder: string, reserve?: number): FolderStore {
  return levelStore(folder, { reserve }) as FolderStore;
}

function available(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

function reserved(folder: string): number {
  const file = join(folder, 'RESERVE');
  return existsSync(file) ? statSync(file).blocks * 512 : 0;
}

function batchOf(key: string, value: Buffer | undefined): Batch {
  const batch = new Batch();
  if (value === undefined) batch.delete(Buffer.from(key));
  else batch.put(Buffer.from(key), value);
  return batch;
}

describe('the reserve of a level store', () => {
  it('allocates the reserve if the disk is small, by default a fifth of it', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    const store = folderStore(folder);
    await store.open();
    assert.equal(reserved(folder), 12 * MB);
    assert.ok(Math.abs((await store.freeBytes()) - available(disk.path)) < MB);
    await store.close();
    assert.equal(reserved(folder), 12 * MB, 'the file stays while the folder is closed');
  });

  it('allocates no reserve while plenty of space is free, nor if the option is 0', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    for (const reserve of [0, 2 * MB]) {
      const store = folderStore(folder, reserve);
      await store.open();
      assert.equal(existsSync(join(folder, 'RESERVE')), false, `${reserve} bytes`);
      const free = await store.freeBytes();
      assert.ok(Math.abs(free - (available(disk.path) - reserve)) < MB, `${free} bytes free`);
      await store.close();
    }
  });

  it('releases the reserve step by step as commits need it, and allocates it again once there is space', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    const store = folderStore(folder, 8 * MB);
    await store.open();
    assert.equal(reserved(folder), 8 * MB);
    fill(ballast);
    assert.equal(available(disk.path), 0);
    assert.equal(await store.freeBytes(), 0, 'the reserve has not been used');
    assert.equal(reserved(folder), 8 * MB, 'nothing has been written');
    for (let n = 0; n < 10; n++) await store.commit(batchOf(`${n}`, randomBytes(MB / 4)));
    const free = await store.freeBytes();
    assert.ok(free < -2 * MB && free > -8 * MB, `${free} bytes free`);
    assert.ok(reserved(folder) < 6 * MB);
    rmSync(ballast);
    assert.ok((await store.freeBytes()) > 30 * MB);
    assert.equal(reserved(folder), 8 * MB);
    await store.close();
  });

  it('does not release the reserve to another program that takes all free space', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    const store = folderStore(folder, 8 * MB);
    await store.open();
    for (let n = 0; n < 8; n++) {
      fill(ballast);
      await store.freeBytes();
    }
    assert.equal(reserved(folder), 8 * MB, 'while nothing is written');
    const commitAll = async () => {
      for (let n = 0; n < 200; n++) {
        fill(ballast);
        await store.freeBytes();
        await store.commit(batchOf(`${n}`, randomBytes(1_000)));
      }
    };
    await assert.rejects(commitAll, { code: 'ENOSPC' });
    fill(ballast);
    assert.ok(reserved(folder) >= MB / 2, `${reserved(folder)} bytes for opening the folder`);
    await store.close();
    await store.open();
    await store.close();
  });

  it('refuses large commits first with ENOSPC, then small ones if only the space for opening the folder is left', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    fill(ballast);
    truncateSync(ballast, statSync(ballast).size - 1_200_000);
    const store = folderStore(folder, 3 * MB);
    await store.open();
    const refusal = { code: 'ENOSPC', isUntouched: true, message: /reserved for opening the store/ };
    let count = 0;
    const commitAll = async (size: number) => {
      for (const end = count + 1_000; count < end; count++) {
        await store.freeBytes(); // as a broker does once a second
        await store.commit(batchOf(`${count}`, randomBytes(size)));
      }
    };
    await assert.rejects(commitAll(70_000), refusal);
    assert.ok(count > 2, `${count} large commits were accepted`);
    const large = count;
    await assert.rejects(commitAll(4_000), refusal);
    assert.ok(count > large + 20, `${count - large} small commits were accepted on the same open store`);
    const logs = readdirSync(folder).filter((name) => name.endsWith('.log'));
    const logBytes = logs.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    assert.ok(reserved(folder) > logBytes, `${reserved(folder)} bytes are left to open ${logBytes} bytes of logs`);
    await store.close();
    await store.open();
    assert.equal((await store.read(Buffer.of(0), Buffer.of(255), 5_000)).length, count);
    await store.close();
  });

  it('lets the first commit after the folder was opened use the share for small commits, but no second one', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const reserve = new Reserve(disk.path, 12 * MB);
    await reserve.start();
    await reserve.stop();
    truncateSync(join(disk.path, 'RESERVE'), 2 * MB);
    fill(join(disk.path, 'ballast'));
    await reserve.start();
    await reserve.beforeWrite(100_000);
    await assert.rejects(async () => reserve.beforeWrite(100_000), { code: 'ENOSPC', isUntouched: true });
    await reserve.stop();
  });

  it('does not use up the reserve if the last free space is taken as soon as LevelDB has opened the folder', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    const store = folderStore(folder);
    await store.open();
    for (let n = 0; n < 4; n++) await store.commit(batchOf(`${n}`, randomBytes(MB / 8)));
    await store.close();
    fill(ballast);
    const { open } = Level.prototype;
    t.mock.method(Level.prototype, 'open', async function (this: Level<string, string>) {
      await (open as () => Promise<void>).call(this);
      fill(ballast); // as a compaction of LevelDB may do
    });
    await store.open();
    assert.notEqual(readFileSync(join(folder, 'OWNER'), 'utf8'), '');
    assert.ok(reserved(folder) >= 1.5 * MB, `${reserved(folder)} bytes are left`);
    await store.commit(batchOf('last', Buffer.from('1')));
    await store.close();
  });

  it('keeps the space for opening the folder if another program fills the disk during a compaction', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    const store = folderStore(folder, 8 * MB);
    await store.open();
    for (let n = 0; n < 20; n++) await store.commit(batchOf(`${n}`, randomBytes(MB / 5)));
    fill(ballast);
    const before = reserved(folder);
    const compaction = store.compact().catch(() => undefined); // it may lack the space
    while (reserved(folder) === before) await new Promise((resolve) => setImmediate(resolve));
    fill(ballast);
    await compaction;
    fill(ballast);
    assert.ok(reserved(folder) >= 1.5 * MB, `${reserved(folder)} bytes are left`);
    await store.close();
    await store.open();
    assert.equal((await store.read(Buffer.of(0), Buffer.of(255), 100)).length, 20);
    await store.close();
  });

  it('lets a store be opened, drained and compacted on a disk without a free byte', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    const store = folderStore(folder);
    await store.open();
    for (let n = 0; n < 40; n++) await store.commit(batchOf(`${n}`, randomBytes(MB / 2)));
    await store.close();
    fill(ballast);
    assert.equal(available(disk.path), 0);
    const again = folderStore(folder);
    await again.open();
    for (let n = 0; n < 40; n++) await again.commit(batchOf(`${n}`, undefined));
    await again.compact();
    await again.commit(batchOf('last', Buffer.from('1'))); // LevelDB deletes files only when it is used
    assert.ok((await again.size()) < 5 * MB, `${await again.size()} bytes are left`);
    assert.ok((await again.freeBytes()) > 5 * MB, `${await again.freeBytes()} bytes are free`);
    assert.equal((await again.read(Buffer.of(0), Buffer.of(255), 100)).length, 1);
    await again.close();
  });

  it('releases the reserve for a compaction that needs more space than its size', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    const store = folderStore(folder);
    await store.open();
    for (let n = 0; n < 28; n++) await store.commit(batchOf(`${n}`, randomBytes(MB / 2)));
    await store.close();
    await store.open();
    fill(ballast);
    truncateSync(ballast, statSync(ballast).size - 5 * MB);
    await store.compact();
    await store.commit(batchOf('last', Buffer.from('1')));
    await store.close();
  });

  it('keeps the reserve unchanged when a compaction ends after the store was closed', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const ballast = join(disk.path, 'ballast');
    const reserve = new Reserve(disk.path, 12 * MB);
    await reserve.start();
    fill(ballast);
    await reserve.releaseDuring(async () => {
      assert.ok(reserved(disk.path) < 3 * MB, `${reserved(disk.path)} bytes`);
      await reserve.stop();
      rmSync(ballast);
    });
    assert.ok(reserved(disk.path) < 3 * MB, `${reserved(disk.path)} bytes`);
  });

  it('refuses a commit that would use up the reserve with ENOSPC, and accepts commits after the store was opened again', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const store = folderStore(join(disk.path, 'data'), 8 * MB);
    await store.open();
    fill(join(disk.path, 'ballast'));
    for (let n = 0; n < 2; n++) {
      const large = batchOf('large', randomBytes(20 * MB));
      await assert.rejects(store.commit(large), { code: 'ENOSPC', message: /No space left on device/ });
      assert.ok((await store.freeBytes()) > -100_000, 'no part of the commit is in the log');
      await store.close();
      await store.open();
    }
    await store.commit(batchOf('small', Buffer.from('1')));
    assert.ok((await store.freeBytes()) < 0);
    const kept = await store.read(Buffer.of(0), Buffer.of(255), 100);
    assert.deepEqual(
      kept.map(({ key }) => `${key}`),
      ['small']
    );
    await store.close();
  });
});

describe('a broker on a disk without a free byte', () => {
  it('starts, admits clients with stored sessions, and drains their queues', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const [folder, ballast] = [join(disk.path, 'data'), join(disk.path, 'ballast')];
    const first = createBroker({ store: levelStore(folder) });
    await first.start();
    const away = await first.connect({ clientId: 'away', ...PERSISTENT });
    await away.subscribe({ topic: 'a', qos: 1 });
    await away.disconnect();
    const COUNT = 160;
    for (let n = 0; n < COUNT; n++) await first.publish('a', randomBytes(65_536), { qos: 1 });
    await first.stop();
    fill(ballast);
    assert.equal(available(disk.path), 0);

    const broker = createBroker({ store: levelStore(folder) });
    const codes = new Set<unknown>();
    broker.on('error', ({ error }) => codes.add((error as Error & { code: string }).code));
    await broker.start();
    const reader = await broker.connect({ clientId: 'away', ...PERSISTENT });
    let left = COUNT;
    for await (const _ of reader.messages()) if (--left === 0) break;
    await reader.ping(); // the broker has received the acknowledgements
    await reader.disconnect();
    await broker.stop();
    codes.delete('STORE_SPACE_LOW'); // not reported if opening the folder has freed some space
    assert.deepEqual([...codes], []);

    const again = createBroker({ store: levelStore(folder) });
    await again.start();
    assert.equal(again.sessions.get('away').counters().mqueueLen, 0);
    await again.stop();
  });
});
