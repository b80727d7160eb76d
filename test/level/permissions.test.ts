import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch } from '../../lib/adapter.ts';
import { createBroker } from '../../lib/index.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-permissions-'));
after(() => rmSync(home, { recursive: true, force: true }));

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

describe('The folder of a store', { skip: process.platform === 'win32' }, () => {
  it('creates the folder, with its parents, only for the user of the process, whatever the umask', async () => {
    const folder = join(home, 'a/b/data');
    const mask = process.umask(0);
    try {
      const broker = createBroker({ store: levelStore(folder, { reserve: 1024 }), allowAnonymous: true });
      await broker.start();
      await broker.table('kept').set('key', 's3cret');
      await broker.stop();
    } finally {
      process.umask(mask);
    }
    for (const path of ['a', 'a/b', 'a/b/data']) assert.equal(modeOf(join(home, path)), 0o700, path);
    for (const name of ['CLOSED', 'OWNER', 'RESERVE'])
      if (readdirSync(folder).includes(name)) assert.equal(modeOf(join(folder, name)), 0o600, name);
    assert.ok(readdirSync(folder).includes('CLOSED'));
  });

  it('reports it once, with the command that protects it, if other users may use it', async () => {
    const folder = mkdtempSync(join(home, "operator's data "));
    chmodSync(folder, 0o755);
    const warnings: string[] = [];
    const store = levelStore(folder, { onWarning: (text) => warnings.push(text) });
    for (let opens = 0; opens < 2; opens++) {
      await store.open();
      const batch = new Batch();
      batch.put(Buffer.from([1]), Buffer.from('value'));
      await store.commit(batch);
      await store.close();
    }
    assert.deepEqual(warnings, [
      `other users of this machine may use the data folder ${folder} (mode 0755), which has messages, passwords and keys; protect it with: chmod 700 '${folder.replace("'", "'\\''")}'`
    ]);
    assert.equal(modeOf(folder), 0o755, 'it is not changed');
    const [, command] = /protect it with: (.*)/.exec(warnings[0]) ?? [];
    execFileSync('sh', ['-c', command]);
    assert.equal(modeOf(folder), 0o700);
    const other = levelStore(folder, { onWarning: (text) => warnings.push(text) });
    await other.open();
    await other.close();
    assert.equal(warnings.length, 1);
  });

  it('emits a process warning by default', async () => {
    const folder = mkdtempSync(join(home, 'open-'));
    chmodSync(folder, 0o750);
    const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve));
    const store = levelStore(folder);
    await store.open();
    await store.close();
    const { code, message } = await warned;
    assert.equal(code, 'STORE_FOLDER_OPEN');
    assert.match(message, /mode 0750/);
  });
});
