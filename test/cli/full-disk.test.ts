import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { removeLeftovers } from '../../adapters/level/files/leftovers.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { createBroker } from '../../lib/index.ts';
import { fill, smallDisk } from '../level/small-disk.ts';
import { readyPorts, testShell } from './shell.ts';

const COUNT = 100;

/** Queue 6 MB for the client `away`, and fill the disk. */
async function fullDisk(disk: string, reserve?: number): Promise<string> {
  const folder = join(disk, 'data');
  const broker = createBroker({ store: levelStore(folder, { reserve }) });
  await broker.start();
  const away = await broker.connect({ clientId: 'away', clean: false, sessionExpiry: '1h' });
  await away.subscribe({ topic: 'a', qos: 1 });
  await away.disconnect();
  for (let n = 0; n < COUNT; n++)
    await broker.publish('a', Buffer.from(`${n} `.padEnd(60_000, `${Math.random()}`)), { qos: 1 });
  await broker.stop();
  await removeLeftovers(folder); // of a compaction that the stop has ended; else the first open could make space
  fill(join(disk, 'ballast'));
  return folder;
}

async function run(...args: string[]) {
  const shell = testShell();
  const parts: string[] = [];
  shell.stdout.on('data', (part) => parts.push(String(part)));
  const code = await runCommand(['store', ...args], shell);
  await new Promise((resolve) => setImmediate(resolve));
  return { code, out: parts.join(''), err: shell.err() };
}

describe('A data folder on a disk without a free byte', () => {
  it('can be checked, counted and exported, because it has a reserve', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const folder = await fullDisk(disk.path);
    const { code, out, err } = await run('check', folder);
    assert.equal(code, 0, err);
    assert.match(out, /: sound \(/);
    assert.match((await run('stats', folder)).out, /"away" +1 +100 /);
    const exported = await run('export', folder);
    assert.equal(exported.code, 0, exported.err);
    assert.match(exported.out, /"clientId":"away"/);
  });

  it('can be checked, counted and exported unchanged through links in --scratch if it has no reserve', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const folder = await fullDisk(disk.path, 0);
    const scratch = mkdtempSync(join(tmpdir(), 'embermq-cli-scratch-'));
    try {
      const refused = await run('stats', folder);
      assert.equal(refused.code, 1);
      assert.match(refused.err, /no space left.*--scratch DIR/i);
      const files = readdirSync(folder);
      const { code, out, err } = await run('check', folder, '--scratch', scratch);
      assert.equal(code, 0, err);
      assert.ok(out.startsWith(`${folder}: sound (`), out);
      assert.match((await run('stats', folder, '--scratch', scratch)).out, /"away" +1 +100 /);
      assert.equal((await run('export', folder, '--scratch', scratch)).code, 0);
      assert.deepEqual(readdirSync(folder), files);
      assert.deepEqual(readdirSync(scratch), []);
    } finally {
      rmSync(scratch, { recursive: true });
    }
  });

  it('leaves out the reserve if serve was started with --reserve 0, and serve warns that the disk is small', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const files = async (...flags: string[]) => {
      const shell = testShell();
      const ports = ['--mqtt-port', '0', '--ws-port', 'off'];
      const code = runCommand(['serve', '--data-dir', join(disk.path, 'data'), ...ports, ...flags], shell);
      await readyPorts(shell, code);
      shell.signal('SIGTERM');
      assert.equal(await code, 0);
      assert.match(shell.err(), /warning: the file system of .* is smaller than 64 MB/);
      return readdirSync(join(disk.path, 'data'));
    };
    assert.ok(!(await files('--reserve', '0')).includes('RESERVE'));
    assert.ok((await files()).includes('RESERVE'));
  });

  it('can be served, and its session receives its messages', async (t) => {
    using disk = smallDisk(t, '60m');
    if (disk === undefined) return;
    const folder = await fullDisk(disk.path);
    const shell = testShell();
    // by default the broker would shorten the queue, which takes more than half of the space
    const flags = ['--mqtt-port', '0', '--ws-port', 'off', '--max-total-mqueue-store-bytes', '0'];
    const code = runCommand(['serve', ...flags, '--data-dir', folder], shell);
    const { mqtt } = await readyPorts(shell, code);
    const sub = testShell();
    sub.stdout.resume();
    const args = ['-p', String(mqtt), '-t', 'a', '-q', '1', '-c', '-i', 'away', '-C', String(COUNT), '-W', '20'];
    const received = await runCommand(['sub', ...args], sub);
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
    assert.equal(received, 0, sub.err());
    assert.match((await run('stats', folder)).out, /"away" +1 +0 /);
  });

  it('FLAG_INVALID: cannot be repaired or imported to with --scratch', async () => {
    for (const args of [
      ['check', 'data', '--repair', '--scratch', 'x'],
      ['import', 'data', '--scratch', 'x'],
      ['stats', 'data', '--scratch', '']
    ]) {
      const { code, err } = await run(...args);
      assert.equal(code, 2, err);
      assert.match(err, /--scratch/);
    }
  });
});
