import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { removeLeftovers } from '../../adapters/level/files/leftovers.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { fill, smallDisk } from './small-disk.ts';

/** Writes a table and a log, and closes the store. */
async function fillFolder(store: Store): Promise<void> {
  for (const key of ['a', 'b']) {
    await store.open();
    const batch = new Batch();
    batch.put(Buffer.from(key), randomBytes(1_000));
    await store.commit(batch);
    await store.close();
  }
}

async function keysOf(store: Store): Promise<string[]> {
  await store.open();
  const found = await store.read(Buffer.of(0), Buffer.of(255), 100);
  await store.close();
  return found.map(({ key }) => `${key}`);
}

const recordFiles = (folder: string) => readdirSync(folder).filter((name) => /\.(ldb|log)$/.test(name));

describe('Leftovers of failed writes in a folder', () => {
  it('allows the folder to be opened if leftovers occupy all space, including the reserve', async (t) => {
    using disk = smallDisk(t, '20m');
    if (disk === undefined) return;
    const folder = join(disk.path, 'data');
    await fillFolder(levelStore(folder));
    truncateSync(join(folder, 'RESERVE'));
    writeFileSync(join(folder, '009990.ldb'), randomBytes(2_000_000)); // as by a compaction that found no space
    fill(join(disk.path, 'ballast'));
    assert.deepEqual(await keysOf(levelStore(folder)), ['a', 'b']);
  });

  it('deletes leftovers, except for files that the manifest names or LevelDB replays', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-leftovers-'));
    try {
      const store = levelStore(folder);
      await fillFolder(store);
      const before = recordFiles(folder);
      await removeLeftovers(folder);
      assert.deepEqual(recordFiles(folder), before);
      for (const name of ['000001.log', '009990.ldb', '009991.log']) writeFileSync(join(folder, name), '');
      writeFileSync(join(folder, '009992.log'), 'may have records');
      await removeLeftovers(folder);
      assert.deepEqual(recordFiles(folder), [...before, '009992.log'].sort());
      rmSync(join(folder, '009992.log'));
      assert.deepEqual(await keysOf(store), ['a', 'b']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  const damages: readonly [what: string, damage: (folder: string, manifest: string) => void][] = [
    [
      'a table is missing',
      (folder) => rmSync(join(folder, recordFiles(folder).find((name) => /ldb$/.test(name)) ?? ''))
    ],
    [
      'the manifest is damaged',
      (_, manifest) => {
        const bytes = readFileSync(manifest);
        bytes[10] ^= 1;
        writeFileSync(manifest, bytes);
        appendFileSync(manifest, bytes);
      }
    ],
    ['CURRENT is missing', (folder) => rmSync(join(folder, 'CURRENT'))]
  ];
  for (const [what, damage] of damages) {
    it(`keeps leftovers if ${what}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'embermq-leftovers-'));
      try {
        await fillFolder(levelStore(folder));
        damage(folder, join(folder, readFileSync(join(folder, 'CURRENT'), 'latin1').trim()));
        writeFileSync(join(folder, '009990.ldb'), '');
        const before = recordFiles(folder);
        await removeLeftovers(folder);
        assert.deepEqual(recordFiles(folder), before);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  }
});
