import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { passwordCheckOf } from '../../lib/adapter.ts';
import { joinedProgram } from '../support/programs.ts';
import { CommandProcess } from './process.ts';
import { testShell } from './shell.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-passwd-'));
  file = join(folder, 'users');
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Run `embermq passwd` with this standard input. */
async function passwd(args: readonly string[], input: string | Buffer) {
  const shell = testShell();
  shell.stdin.end(input);
  const code = await runCommand(['passwd', ...args], shell);
  return { code, out: shell.out(), err: shell.err() };
}

/** Run `embermq passwd` on a terminal, where the user types this. */
async function onTerminal(typed: string | Buffer) {
  const shell = testShell();
  const modes: boolean[] = [];
  const stdin = Object.assign(shell.stdin, { isTTY: true, setRawMode: (isRaw: boolean) => modes.push(isRaw) });
  stdin.write(typed);
  const code = await runCommand(['passwd', file, 'ann', '--cost', '10'], shell);
  assert.deepEqual(modes, [true, false], 'the terminal is as it was');
  return { code, out: shell.out(), err: shell.err() };
}

/** Tell whether the file has this password for a user. */
async function hasPassword(name: string, password: string | Buffer): Promise<boolean> {
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${name}:`));
  const [hash] = line?.slice(name.length + 1).split(' ') ?? [];
  return hash !== undefined && (await passwordCheckOf(hash)(Buffer.from(password)));
}

describe('passwd', () => {
  it('reads a password from standard input, one line or two equal ones, and does not print it', async () => {
    const added = await passwd([file, 'ann', '--cost', '10'], 'first\n');
    assert.deepEqual(added, { code: 0, out: `${file}: added user "ann"\n`, err: '' });
    assert.equal(await hasPassword('ann', 'first'), true);
    const changed = await passwd([file, 'ann', '--cost', '10'], 'se cond \r\nse cond \r\n');
    assert.deepEqual(changed, { code: 0, out: `${file}: changed user "ann"\n`, err: '' });
    assert.equal(await hasPassword('ann', 'se cond '), true);
    assert.equal((await passwd([file, 'bob', '--cost', '10'], Buffer.from([0xff, 0x61]))).code, 0);
    assert.equal(await hasPassword('bob', Buffer.from([0xff, 0x61])), true);
    assert.match(readFileSync(file, 'utf8'), /^ann:\$scrypt\$ln=10,\S+\nbob:\$scrypt\$ln=10,\S+\n$/);
  });

  it('refuses other input, and keeps the file unchanged', async () => {
    writeFileSync(file, '# users\n');
    const wrong: readonly (readonly [string, RegExp])[] = [
      ['', /^embermq: standard input has no password\n$/],
      ['\n', /^embermq: the password is empty\n$/],
      ['secret\nSecret\n', /^embermq: the two passwords differ\n$/],
      ['secret\nsecret\nsecret\n', /^embermq: standard input has more than two lines/],
      ['x'.repeat(65_536), /^embermq: the password has more than 65,535 bytes/],
      ['x'.repeat(300_000), /^embermq: standard input is longer/]
    ];
    for (const [input, message] of wrong) {
      const { code, out, err } = await passwd([file, 'ann'], input);
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, message);
    }
    assert.equal(readFileSync(file, 'utf8'), '# users\n');
  });

  it('asks twice on a terminal, without an echo', async () => {
    const { code, out, err } = await onTerminal('wrong\x15sé\x7fecrt\x08et\rsecret\r');
    assert.deepEqual([code, out, err], [0, `${file}: added user "ann"\n`, 'password of ann: \nagain: \n']);
    assert.equal(await hasPassword('ann', 'secret'), true);
  });

  it('changes nothing if the two passwords differ, or the input is interrupted or ends', async () => {
    writeFileSync(file, '');
    assert.deepEqual(await onTerminal('secret\rSecret\r'), {
      code: 1,
      out: '',
      err: 'password of ann: \nagain: \nembermq: the two passwords differ\n'
    });
    assert.equal((await onTerminal('sec\x03')).code, 130);
    assert.equal((await onTerminal('secret\r\x04')).code, 1);
    assert.equal(readFileSync(file, 'utf8'), '');
  });

  it('deletes users with --delete, without asking for a password', async () => {
    await passwd([file, 'ann', '--cost', '10'], 'secret');
    const { code, out } = await passwd([file, 'ann', '--delete'], '');
    assert.deepEqual([code, out, readFileSync(file, 'utf8')], [0, `${file}: deleted user "ann"\n`, '']);
    assert.deepEqual(await passwd([file, 'ann', '--delete'], ''), {
      code: 1,
      out: '',
      err: `embermq: ${file}: there is no user "ann"\n`
    });
  });

  it('stores SCRAM credentials with --scram', async () => {
    assert.equal((await passwd([file, 'ann', '--scram', '--cost', '10'], 'secret')).code, 0);
    assert.match(readFileSync(file, 'utf8'), /^ann:\S+ SCRAM-SHA-256\$\S+ SCRAM-SHA-512\$\S+\n$/);
  });

  it('refuses a command line that is not valid with exit code 2, and does not repeat a password on it', async () => {
    for (const args of [[], [file], [file, ''], [file, 'ann', '--cost', '9'], [file, 'ann', '--scrm'], [file, 'a:b']])
      assert.equal((await passwd(args, 'x')).code, 2, args.join(' '));
    const { code, err } = await passwd([file, 'ann', 'topsecret'], '');
    assert.equal(code, 2);
    assert.match(err, /embermq passwd FILE USER; the password is asked for, or read from standard input/);
    assert.ok(!err.includes('topsecret'));
  });

  it('works as a separate process', async () => {
    const command = new CommandProcess(['passwd', file, 'ann', '--cost', '10']);
    command.child.stdin?.end('secret\n');
    assert.equal(await command.end(), 0, command.stderr);
    assert.equal(await hasPassword('ann', 'secret'), true);
  });

  const hasTerminals = spawnSync('script', ['--version']).error === undefined && process.platform === 'linux';
  it('ends on a real terminal, and shows nothing of the password', {
    skip: !hasTerminals && 'no script here'
  }, async () => {
    const main = `${process.execPath} '${joinedProgram('adapters/cli/main.ts')}'`;
    const { child, ended, text } = scripted(`${main} passwd '${file}' ann --cost 10`);
    await text(/password of ann: $/);
    child.stdin.write('topsecret\r');
    await text(/again: $/);
    child.stdin.write('topsecret\r');
    assert.equal(await ended, 0);
    assert.match(await text(/added user "ann"/), /added/);
    assert.ok(!(await text(/added/)).includes('secret'));
    assert.equal(await hasPassword('ann', 'topsecret'), true);
  });
});

/** Run a command on a separate terminal. */
function scripted(command: string) {
  const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: join(import.meta.dirname, '../..') });
  let shown = '';
  const ended = once(child, 'close').then(([code]) => code as number);
  const text = async (pattern: RegExp): Promise<string> => {
    while (!pattern.test(shown)) {
      const chunk = await Promise.race([once(child.stdout, 'data'), ended.then(() => undefined)]);
      if (chunk === undefined && !pattern.test(shown)) throw new Error(`it ended after ${shown}`);
    }
    return shown;
  };
  child.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  return { child, ended, text };
}
