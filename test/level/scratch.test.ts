import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { checkStore, storeStatistics } from '../../lib/index.ts';
import { change, entriesOf, fill } from '../store/filled-store.ts';
import { fill as fillDisk, smallDisk } from './small-disk.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-scratch-'));
after(() => rmSync(home, { recursive: true, force: true }));
let folders = 0;
const newFolder = () => join(home, `${folders++}`);

/** The content and modification time of all files in a folder. */
function stateOf(folder: string): unknown {
  return readdirSync(folder)
    .sort()
    .map((name) => [name, statSync(join(folder, name)).mtimeMs, readFileSync(join(folder, name), 'base64')]);
}

async function createFilled(folder = newFolder()): Promise<string> {
  await fill(levelStore(folder, { reserve: 0 }));
  return folder;
}

describe('a folder that is read with the option scratch', () => {
  it('contains all its records and stays unchanged, with the scratch folder on the same file system', async () => {
    const folder = await createFilled();
    const expected = await entriesOf(levelStore(folder));
    const before = stateOf(folder);
    const scratch = newFolder();
    const store = levelStore(folder, { scratch });
    for (let n = 0; n < 2; n++) {
      await store.open();
      const [linked] = readdirSync(scratch);
      assert.ok(readdirSync(join(scratch, linked)).some((name) => name.endsWith('.ldb')));
      assert.deepEqual(await store.read(Buffer.of(0), Buffer.of(255), 1e6), expected);
      await store.close();
      assert.deepEqual(readdirSync(scratch), [], 'the scratch folder is empty');
    }
    assert.equal((await checkStore(store)).findings.length, 0);
    assert.equal(store.name, folder);
    assert.deepEqual(stateOf(folder), before);
  });

  it('contains all its records on a disk without a free byte, and on a read-only disk', async (t) => {
    using disk = smallDisk(t, '20m');
    if (disk === undefined) return;
    const folder = await createFilled(join(disk.path, 'data'));
    const expected = await storeStatistics(levelStore(folder, { reserve: 0 }));
    fillDisk(join(disk.path, 'ballast'));
    await assert.rejects(storeStatistics(levelStore(folder, { reserve: 0 })), { code: 'STORE_UNUSABLE' });
    const before = stateOf(folder);
    const scratch = newFolder();
    for (const isReadOnly of [false, true]) {
      if (isReadOnly) execFileSync('mount', ['-o', 'remount,ro', disk.path]);
      assert.deepEqual(await storeStatistics(levelStore(folder, { scratch })), expected);
    }
    assert.deepEqual(readdirSync(scratch), []);
    assert.deepEqual(stateOf(folder), before);
  });

  it('refuses commits with STORE_READ_ONLY', async () => {
    const store = levelStore(await createFilled(), { scratch: newFolder() });
    const { repair, compact, freeBytes } = store;
    assert.deepEqual([repair, compact, freeBytes], [undefined, undefined, undefined]);
    await assert.rejects(
      change(store, (batch) => batch.put(Buffer.from('a'), Buffer.from('1'))),
      { code: 'STORE_READ_ONLY' }
    );
    await store.close();
  });

  it('STORE_LOCKED: refuses to open while another store has it open', async () => {
    const folder = await createFilled();
    const owner = levelStore(folder);
    await owner.open();
    await assert.rejects(levelStore(folder, { scratch: newFolder() }).open(), { code: 'STORE_LOCKED' });
    await owner.close();
  });

  it('STORE_DAMAGED: names the missing file, and leaves nothing in the scratch folder', async () => {
    const folder = await createFilled();
    rmSync(join(folder, readdirSync(folder).find((name) => name.endsWith('.log')) as string));
    const scratch = newFolder();
    const message = new RegExp(`^${folder}: .*\\.log is missing`);
    await assert.rejects(levelStore(folder, { scratch }).open(), { code: 'STORE_DAMAGED', message });
    assert.deepEqual(readdirSync(scratch), []);
  });

  it('STORE_UNUSABLE: refuses to open a folder without a store', async () => {
    const empty = newFolder();
    mkdirSync(empty);
    await assert.rejects(levelStore(empty, { scratch: newFolder() }).open(), { code: 'STORE_UNUSABLE' });
  });

  it('refuses an empty scratch folder name with OPTION_INVALID', () => {
    assert.throws(() => levelStore('data', { scratch: '' }), { code: 'OPTION_INVALID' });
  });
});
