import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { checkStore, createBroker } from '../../lib/index.ts';
import { FORMAT, Kind, kindKey } from '../../lib/store/keys.ts';
import { Draft } from '../../lib/store/record.ts';
import { checkOldFolder, copyOldFolder, OLD_FOLDERS } from './old-folder.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-old-'));
after(() => rmSync(home, { recursive: true, force: true }));

describe('A data folder of an earlier release', () => {
  for (const name of OLD_FOLDERS) {
    it(`opens with all of its state: ${name}`, async () => {
      const folder = join(home, name);
      const expected = copyOldFolder(name, folder);
      await checkOldFolder(folder, expected);
      assert.deepEqual((await checkStore(levelStore(folder))).findings, []);
    });

    it(`passes a check, which reads it without a broker: ${name}`, async () => {
      const folder = join(home, `${name}-checked`);
      const expected = copyOldFolder(name, folder);
      assert.deepEqual((await checkStore(levelStore(folder))).findings, []);
      await checkOldFolder(folder, expected);
    });
  }

  it('requires a data folder for each way of ending of each release that has written one', () => {
    const releases = new Set(OLD_FOLDERS.map((name) => name.replace(/-(closed|killed)$/, '')));
    assert.ok(releases.has('0.1') && releases.has('0.2'));
    assert.deepEqual(
      [...OLD_FOLDERS].sort(),
      [...releases].flatMap((release) => [`${release}-closed`, `${release}-killed`]).sort()
    );
  });
});

describe('STORE_TOO_NEW: a data folder of a later release', () => {
  it('refuses the folder in broker and check with the name of the release, and does not change it', async () => {
    const folder = join(home, 'newer');
    copyOldFolder('0.1-closed', folder);
    const store = levelStore(folder);
    await store.open();
    const draft = new Draft();
    draft
      .key(Kind.format)
      .value()
      .u8(FORMAT + 1)
      .f64(1)
      .put();
    await store.commit(draft.batch);
    await store.close();
    const copy = join(home, 'newer-before');
    cpSync(folder, copy, { recursive: true });
    const refusal = {
      code: 'STORE_TOO_NEW',
      message: `${folder}: written by a later version of embermq (format ${FORMAT + 1}; this version reads up to ${FORMAT}). Use that version, or another store.`
    };
    await assert.rejects(createBroker({ store: levelStore(folder) }).start(), refusal);
    await assert.rejects(createBroker({ store: levelStore(folder), repairStore: true }).start(), refusal);
    await assert.rejects(checkStore(levelStore(folder), { repair: true }), refusal);
    const again = levelStore(folder);
    await again.open();
    const kept = await again.read(Buffer.of(0), kindKey(0xff), 1e6);
    await again.close();
    const before = levelStore(copy);
    await before.open();
    assert.deepEqual(kept, await before.read(Buffer.of(0), kindKey(0xff), 1e6));
    await before.close();
  });
});
