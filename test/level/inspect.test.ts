import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { inspectFolder, levelStore } from '../../adapters/level/index.ts';
import { IMPORT_MARK } from '../../lib/store/commits.ts';
import { FORMAT } from '../../lib/store/keys.ts';
import { fillFolder, stateOf } from '../store/filled-folder.ts';
import { change } from '../store/filled-store.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-inspect-'));
let folders = 0;
const newFolder = () => join(home, `${folders++}`);
const withProc = { skip: !existsSync('/proc/self') && 'no /proc here' };

after(() => rmSync(home, { recursive: true, force: true }));

const filled = () => fillFolder(newFolder());

describe('inspectFolder', () => {
  it('reads the versions of a closed store from its log or its tables, and changes nothing', async () => {
    const folder = await filled();
    for (const isCompacted of [false, true]) {
      const store = levelStore(folder);
      await store.open();
      if (isCompacted) await store.compact?.();
      await store.close();
      const before = stateOf(folder);
      const { format, ...rest } = await inspectFolder(folder);
      assert.equal(format?.format, FORMAT);
      assert.deepEqual(rest, {
        holder: undefined,
        hasStore: true,
        isUnfinishedImport: false,
        damages: [],
        leftovers: []
      });
      assert.deepEqual(stateOf(folder), before);
    }
  });

  it('names the process that has a folder open, and reads the versions meanwhile', withProc, async () => {
    const folder = await filled();
    const store = levelStore(folder);
    await store.open();
    const before = stateOf(folder);
    const { holder, format } = await inspectFolder(folder);
    assert.deepEqual([holder, format?.format], [process.pid, FORMAT]);
    assert.deepEqual(stateOf(folder), before);
    await store.commit(new (await import('../../lib/store/store.ts')).Batch()); // it still has its lock
    await store.close();
    assert.equal((await inspectFolder(folder)).holder, undefined);
  });

  it('names a damaged file, unless it is not asked to verify files', async () => {
    const folder = await filled();
    const [log] = readdirSync(folder).filter((name) => /^\d+\.log$/.test(name));
    truncateSync(join(folder, log), statSync(join(folder, log)).size - 9);
    const { damages } = await inspectFolder(folder);
    assert.deepEqual(
      damages.map(({ file }) => file),
      [log]
    );
    assert.match(damages[0].why ?? '', /bytes, but had/);
    assert.deepEqual((await inspectFolder(folder, { verify: false })).damages, []);
    rmSync(join(folder, 'CURRENT'));
    assert.deepEqual((await inspectFolder(folder)).damages, [{ file: 'CURRENT', why: 'it is missing' }]);
  });

  it('names the files that interrupted writes have left, and an import that was interrupted', async () => {
    const folder = await filled();
    await change(levelStore(folder), (batch) => batch.put(IMPORT_MARK.key, IMPORT_MARK.value));
    writeFileSync(join(folder, '999999.ldb'), 'incomplete');
    writeFileSync(join(folder, '999998.dbtmp'), '');
    const { leftovers, isUnfinishedImport } = await inspectFolder(folder);
    assert.deepEqual(leftovers, ['999999.ldb', '999998.dbtmp']);
    assert.equal(isUnfinishedImport, true);
  });

  it('finds nothing in a folder that is empty or does not exist', async () => {
    for (const folder of [newFolder(), home]) {
      const { hasStore, format, holder } = await inspectFolder(folder);
      assert.deepEqual([hasStore, format, holder], [false, undefined, undefined]);
    }
  });
});
