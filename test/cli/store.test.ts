import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { timeLeft } from '../../adapters/cli/progress-bar.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { IMPORT_MARK } from '../../lib/store/commits.ts';
import { kindKey } from '../../lib/store/keys.ts';
import { change, entriesOf, fill } from '../store/filled-store.ts';
import { CommandProcess } from './process.ts';
import { testShell } from './shell.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-store-'));
let folders = 0;
/** The real time after which a command counts as hung. */
const PATIENCE_MS = 20_000;
const withProc = { skip: !existsSync('/proc/self') && 'no /proc here' };
const newFolder = () => join(home, `${folders++}`);

after(() => rmSync(home, { recursive: true, force: true }));

async function filled(): Promise<string> {
  const folder = newFolder();
  await fill(levelStore(folder));
  return folder;
}

/** Run `embermq store`. @returns the exit code and the output */
async function run(args: readonly string[], input = '', isTTY = false, stdinBytes?: number) {
  const shell = testShell();
  shell.stdinBytes = stdinBytes;
  shell.stderr.isTTY = isTTY;
  shell.stdin.end(input);
  const parts: string[] = [];
  shell.stdout.on('data', (part) => parts.push(String(part)));
  const code = await runCommand(['store', ...args], shell);
  await new Promise((resolve) => setImmediate(resolve));
  return { code, out: parts.join(''), err: shell.err() };
}

describe('store', () => {
  it('reports in check that a folder is sound', async () => {
    const folder = await filled();
    const { code, out, err } = await run(['check', folder]);
    assert.equal(code, 0, out);
    assert.match(out, /^.*: sound \(\d+ records, \d+ bytes, \d+ commits\)\n$/);
    assert.equal(err, '');
  });

  it('reports damage in check with exit code 1, and that the folder is sound after a repair', async () => {
    const folder = await filled();
    const store = levelStore(folder);
    const session = (await entriesOf(store)).find(({ key }) => key[0] === 0x10)?.key as Buffer;
    await change(store, (batch) => batch.delete(session));
    const found = await run(['check', folder]);
    assert.equal(found.code, 1);
    assert.match(
      found.out,
      /^SESSION_MISSING: session 1 is missing; the store contains records of it: 2 subscriptions/
    );
    assert.match(found.err, /--repair/);
    const repaired = await run(['check', folder, '--repair']);
    assert.equal(repaired.code, 1);
    assert.match(repaired.out, /1 findings, repaired/);
    const json = await run(['check', folder, '--json']);
    assert.equal(json.code, 0);
    assert.deepEqual(JSON.parse(json.out).findings, []);
  });

  it('reports a missing log in check, and continues without it with --repair', async () => {
    const folder = await filled();
    const log = readdirSync(folder).find((name) => name.endsWith('.log')) as string;
    rmSync(join(folder, log));
    const found = await run(['check', folder]);
    assert.equal(found.code, 1);
    assert.match(found.err, new RegExp(`^embermq: ${folder}: .*its file ${log} is missing\\..*--repair`));
    const repaired = await run(['check', folder, '--repair']);
    assert.equal(repaired.code, 1);
    assert.match(repaired.out, new RegExp(`^STORE_DAMAGED: .*${log} is missing`));
    assert.equal((await run(['check', folder])).code, 0);
  });

  it('shows records by kind and the largest sessions in stats', async () => {
    const folder = await filled();
    const { code, out } = await run(['stats', folder]);
    assert.equal(code, 0);
    assert.match(out, /\n {2}kind +records +bytes\n/);
    assert.match(out, /\n {2}retained +20 +\d+\n/);
    assert.match(out, /\nlargest sessions\n {2}client id +subscriptions +messages +bytes\n {2}"reader" +2 +20 +\d+\n/);
    const json = JSON.parse((await run(['stats', folder, '--json'])).out);
    assert.equal(json.kinds.retained.records, 20);
  });

  it('restores the same store with export and import', async () => {
    const folder = await filled();
    const { code, out } = await run(['export', folder]);
    assert.equal(code, 0);
    const copy = newFolder();
    const imported = await run(['import', copy], out);
    assert.equal(imported.code, 0);
    assert.match(imported.err, /: \d+ records\n$/);
    assert.deepEqual(await entriesOf(levelStore(copy)), await entriesOf(levelStore(folder)));
    const again = await run(['import', copy], out);
    assert.equal(again.code, 1);
    assert.match(again.err, /import into an empty store/);
  });

  it('exits import with code 2 at an invalid line, and names the line', async () => {
    const { code, err } = await run(['import', newFolder()], '\nno record\n');
    assert.equal(code, 2);
    assert.match(err, /^embermq: line 2: not valid JSON/);
  });

  it('reports an incomplete import in check, does not repair it, and lets the next import start again', async () => {
    const folder = newFolder();
    await change(levelStore(folder), (batch) => {
      batch.put(IMPORT_MARK.key, IMPORT_MARK.value);
      batch.put(Buffer.of(0x20, 0x61), Buffer.from('written before the process died'));
    });
    const { code, err } = await run(['check', folder]);
    assert.equal(code, 1);
    assert.equal(
      err,
      `embermq: ${folder}: the import into this store was interrupted. Import again, which starts from the beginning, or delete the store.\n`
    );
    const lines = (await run(['export', await filled()])).out;
    assert.equal((await run(['import', folder], lines)).code, 0);
    assert.equal((await run(['check', folder])).code, 0);
  });

  it('creates no folder in import if the input is not an export', async () => {
    const lines = (await run(['export', await filled()])).out.split('\n');
    const tooNew = JSON.stringify({ key: 'AQ==', value: Buffer.from([1, 0xff, 0x7f]).toString('base64') });
    const inputs = [
      '',
      '\n\n',
      'no record\n',
      `${tooNew}\n`,
      lines.slice(0, -2).join('\n'),
      lines.with(9, '{').join('\n')
    ];
    for (const input of inputs) {
      const folder = newFolder();
      assert.notEqual((await run(['import', folder], input)).code, 0);
      assert.equal(statSync(folder, { throwIfNoEntry: false }), undefined, input.slice(0, 100));
    }
  });

  it('reports immediately that import cannot create its folder, with the path and the remedy', withProc, async () => {
    const lines = (await run(['export', await filled()])).out;
    for (const folder of ['/proc/embermq', '/proc/embermq/data']) {
      const command = new CommandProcess(['store', 'import', folder]);
      command.child.stdin?.end(lines);
      const guard = setTimeout(() => command.child.kill('SIGKILL'), PATIENCE_MS);
      assert.equal(await command.end(), 1);
      clearTimeout(guard);
      assert.match(command.stderr, new RegExp(`^embermq: ${folder}: .*ENOENT.*/proc/embermq'.*name another folder`));
    }
  });

  it('estimates the time left when it is known', () => {
    assert.deepEqual(
      [timeLeft(0.5, 1_000), timeLeft(0.01, 60_000), timeLeft(1, 60_000)],
      ['', '', ''],
      'too early, too little, done'
    );
    assert.equal(timeLeft(0.25, 10_000), ', ~30 s left');
    assert.equal(timeLeft(0.1, 60_000), ', ~9 min left');
  });

  it('shows a progress bar on a terminal, and removes it at the end', async () => {
    const folder = await filled();
    for (const action of ['check', 'stats', 'export']) {
      const { err } = await run([action, folder], '', true);
      assert.match(err, new RegExp(`^\r${action}: \\[[#.]{24}\\] \\d+ % \\d+ records`));
      assert.match(err, action === 'export' ? /\r +\rexport: [\d,]+ records in \d+\.\d s\n$/ : /\r +\r$/);
    }
  });

  it('shows the progress of import through its file on a terminal, and only a count if the length of the input is unknown', async () => {
    const lines = (await run(['export', await filled()])).out;
    const longer = await run(['import', newFolder()], lines, true, 2 * Buffer.byteLength(lines));
    assert.match(longer.err, /^\rimport: \[#{12}\.{12}\] 50 % \d+ records\r +\r.*: \d+ records\n$/);
    const unknown = await run(['import', newFolder()], lines, true);
    assert.match(unknown.err, /^\rimport: \d+ records/);
    const { code, err } = await run(['import', newFolder()], lines, false, lines.length);
    assert.equal(code, 0);
    assert.match(err, /^[^\r]*: \d+ records\n$/);
  });

  it('reports that another store uses the folder', async () => {
    const folder = await filled();
    const lines = (await run(['export', folder])).out;
    const store = levelStore(folder);
    await store.open();
    try {
      for (const action of ['check', 'stats', 'export', 'import']) {
        const { code, err } = await run([action, folder], lines);
        assert.equal(code, 1);
        assert.match(err, new RegExp(`^embermq: ${folder}: in use by another store of this process.*Stop it`));
      }
    } finally {
      await store.close();
    }
  });

  it('prints errors of check and stats as JSON with --json', async () => {
    const folder = await filled();
    const store = levelStore(folder);
    await store.open();
    const missing = newFolder();
    try {
      for (const action of ['check', 'stats'])
        for (const [place, why] of [
          [folder, 'STORE_LOCKED'],
          [missing, 'STORE_UNUSABLE']
        ]) {
          const { code, out, err } = await run([action, place, '--json']);
          assert.equal(code, 1);
          const { error } = JSON.parse(out);
          assert.equal(error.code, why);
          assert.ok(error.message.startsWith(`${place}: `));
          assert.equal(err, `embermq: ${error.message}\n`);
          assert.equal((await run([action, place])).out, '');
        }
    } finally {
      await store.close();
    }
  });

  it('creates no folder, and refuses a folder that contains no store', async () => {
    const folder = newFolder();
    const missing = await run(['check', folder]);
    assert.equal(missing.code, 1);
    assert.match(missing.err, /: cannot be read: ENOENT.*Name the data folder of a broker/);
    assert.equal(statSync(folder, { throwIfNoEntry: false }), undefined);
    mkdirSync(folder);
    writeFileSync(join(folder, 'notes.txt'), 'text');
    const other = await run(['stats', folder]);
    assert.equal(other.code, 1);
    assert.match(other.err, /contains no store\. Name the data folder/);
    assert.deepEqual(readdirSync(folder), ['notes.txt']);
  });

  it('refuses a database of another program', async () => {
    const folder = newFolder();
    await change(levelStore(folder), (batch) => batch.put(kindKey(0x61), Buffer.from('x')));
    for (const args of [
      ['check', folder],
      ['check', folder, '--repair'],
      ['stats', folder],
      ['export', folder]
    ]) {
      const { code, err } = await run(args);
      assert.equal(code, 1);
      assert.match(err, /this is not a store of embermq/);
    }
  });

  it('does not wait for a person to type an import, but shows how to name the file', async () => {
    const folder = newFolder();
    const shell = testShell();
    shell.stdin.isTTY = true;
    assert.equal(await runCommand(['store', 'import', folder], shell), 2);
    assert.equal(
      shell.err(),
      `embermq: store import reads a file of store export or ctl backup from standard input: embermq store import ${folder} < FILE\n`
    );
    assert.equal(existsSync(folder), false);
    await runCommand(['help', 'store'], shell);
    assert.match(shell.out(), /store import DIR < FILE\n/);
  });

  it('refuses unknown actions and arguments', async () => {
    const wrong: [string[], RegExp][] = [
      [[], /store needs one of check, stats, export, import/],
      [['chek', 'x'], /did you mean "check"\?/],
      [['check'], /store check needs one folder/],
      [['check', ''], /store check needs one folder/],
      [['check', 'a', 'b'], /store check needs one folder: embermq store check DIR\n/],
      [['import', 'a', 'b'], /store import needs one folder: embermq store import DIR < FILE\n/],
      [['export'], /store export needs one folder: embermq store export DIR > FILE\n/],
      [['check', 'a', '--repare'], /did you mean --repair\?/],
      [['stats', 'a', '--repair'], /--repair is for store check, not stats/]
    ];
    for (const [args, message] of wrong) {
      const { code, err } = await run(args);
      assert.equal(code, 2);
      assert.match(err, message);
    }
  });
});
