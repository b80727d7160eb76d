import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { editPasswordFile } from '../../adapters/auth/password-file/index.ts';
import { runCommand } from '../../adapters/cli/commands.ts';
import { mosquitto, withMosquitto } from './mosquitto.ts';
import { CommandProcess } from './process.ts';
import { readyPorts, type TestShell, testShell } from './shell.ts';

let folder: string;
let users: string;
let acl: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-access-'));
  users = join(folder, 'users');
  acl = join(folder, 'acl.conf');
  await editPasswordFile(users, 'ann', 'a-secret', { cost: 10 });
  await editPasswordFile(users, 'bob', 'b-secret', { cost: 10 });
  writeFileSync(acl, '{allow, all, pubsub, ["%u/#"]}.\n{allow, {user, "bob"}, subscribe, ["ann/#"]}.\n');
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Run `serve` while `use` runs. It binds to all interfaces, on a free port. */
async function serving(
  args: readonly string[],
  use: (port: string, shell: TestShell) => Promise<void>,
  env: Readonly<Record<string, string>> = {}
): Promise<void> {
  const shell = testShell();
  Object.assign(shell.env, env);
  const flags = ['--memory', '--host', '0.0.0.0', '--mqtt-port', '0', '--ws-port', 'off'];
  const code = runCommand(['serve', ...flags, ...args], shell);
  const { mqtt } = await readyPorts(shell, code);
  try {
    await use(String(mqtt), shell);
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
}

/** Publish with mosquitto_pub. @returns what it prints about a refusal; the empty string if there was none */
async function pub(
  port: string,
  login: readonly string[],
  topic: string,
  more: readonly string[] = []
): Promise<string> {
  const [username, password] = login;
  const own = username === undefined ? [] : ['-u', username, ...(password === undefined ? [] : ['-P', password])];
  const args = ['-V', '5', '-h', '127.0.0.1', '-p', port, '-q', '1', '-t', topic, '-m', 'x', ...own, ...more];
  const child = spawn('mosquitto_pub', args);
  let text = '';
  child.stderr.on('data', (chunk) => {
    text += chunk;
  });
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  await once(child, 'close');
  return text.trim();
}

const ANN = ['ann', 'a-secret'];
const BOB = ['bob', 'b-secret'];

/** Wait for a line of the report on SIGHUP. */
async function hungUp(shell: TestShell, pattern: RegExp): Promise<string> {
  shell.hangUp();
  let text = shell.err();
  while (!pattern.test(text)) {
    if (shell.stderr.readableLength === 0) await new Promise((resolve) => shell.stderr.once('readable', resolve));
    text += shell.err();
  }
  return text;
}

describe('serve with a password file and an ACL file, on all interfaces', () => {
  it('admits users with their passwords, and authorizes them by the rules', withMosquitto, async () => {
    await serving(['--password-file', users, '--acl-file', acl], async (port) => {
      assert.equal(await pub(port, ANN, 'ann/x'), '');
      assert.match(await pub(port, ['ann', 'b-secret'], 'ann/x'), /Bad user name or password/i);
      assert.match(await pub(port, ['eve', 'a-secret'], 'ann/x'), /Bad user name or password/i);
      assert.match(await pub(port, [], 'ann/x'), /Not authorized/i);
      assert.match(await pub(port, ANN, 'bob/x'), /Not authorized/i);
      assert.equal(await pub(port, ANN, 'ann/x', ['-r']), '');
      const sub = ['-V', '5', '-h', '127.0.0.1', '-p', port, '-u', 'bob', '-P', 'b-secret', '-C', '1', '-v'];
      assert.equal(await mosquitto('sub', [...sub, '-t', 'ann/#']), 'ann/x x\n');
      assert.equal(await mosquitto('sub', [...sub, '-t', 'eve/#']), '', 'it ends because its subscription is refused');
    });
  });

  it('reads both files again on SIGHUP', withMosquitto, async () => {
    await serving(['--password-file', users, '--acl-file', acl], async (port, shell) => {
      await editPasswordFile(users, 'ann', 'changed', { cost: 10 });
      writeFileSync(acl, '{allow, {user, "ann"}, pubsub, ["bob/#"]}.\n');
      assert.equal(await pub(port, ANN, 'ann/x'), '', 'nothing changes before');
      const told = await hungUp(shell, /ACL file .* reloaded\n/);
      assert.equal(told, `SIGHUP: password file ${users} reloaded\nSIGHUP: ACL file ${acl} reloaded\n`);
      assert.match(await pub(port, ANN, 'bob/x'), /Bad user name or password/i);
      assert.equal(await pub(port, ['ann', 'changed'], 'bob/x'), '');
      assert.match(await pub(port, ['ann', 'changed'], 'ann/x'), /Not authorized/i);
    });
  });

  it('reports a file with an error at SIGHUP, and keeps the previous content', withMosquitto, async () => {
    await serving(['--password-file', users, '--acl-file', acl], async (port, shell) => {
      writeFileSync(users, 'ann:a-secret\n');
      writeFileSync(acl, '{allow, all}.\n{permit, all}.\n');
      const told = await hungUp(shell, /acl\.conf: .*\n/);
      const [first, second] = told.trimEnd().split('\n');
      assert.match(
        first,
        /^SIGHUP: \S+users: line 1: the format of the password hash is unknown; .*; the previous content/
      );
      assert.match(
        second,
        /^SIGHUP: \S+acl\.conf: line 2, column 2: expected allow or deny, .*; the previous content remains in use/
      );
      assert.ok(!told.includes('a-secret'));
      assert.equal(await pub(port, ANN, 'ann/x'), '');
      assert.match(await pub(port, ANN, 'bob/x'), /Not authorized/i);
    });
  });

  it(
    'takes the files from the environment and, also by their documented names, from the config file',
    withMosquitto,
    async () => {
      const works = async (port: string) => {
        assert.equal(await pub(port, BOB, 'bob/x'), '');
        assert.match(await pub(port, BOB, 'ann/x'), /Not authorized/i);
        assert.match(await pub(port, [], 'bob/x'), /Not authorized/i);
      };
      await serving([], works, { EMBERMQ_PASSWORD_FILE: users, EMBERMQ_ACL_FILE: acl });
      const config = join(folder, 'config.json');
      for (const given of [
        { passwordFile: users, aclFile: acl },
        { password_file: users, acl_file: acl, allow_anonymous: false, acl_nomatch: 'deny' }
      ]) {
        writeFileSync(config, JSON.stringify(given));
        await serving(['-c', config], works);
      }
    }
  );

  it(
    'admits unknown clients and allows actions without a rule if this is explicitly configured',
    withMosquitto,
    async () => {
      const open = ['--allow-anonymous', '--acl-nomatch', 'allow'];
      writeFileSync(acl, '{deny, all, publish, ["secret"]}.\n');
      await serving(['--password-file', users, '--acl-file', acl, ...open], async (port) => {
        assert.equal(await pub(port, [], 'a'), '');
        assert.equal(await pub(port, ['eve', 'x'], 'a'), '');
        assert.match(
          await pub(port, ['ann', 'x'], 'a'),
          /Bad user name or password/i,
          'a known name needs its password'
        );
        assert.match(await pub(port, [], 'secret'), /Not authorized/i);
      });
    }
  );

  it('admits no client with allowAnonymous explicitly set to false and no source', withMosquitto, async () => {
    await serving(['--no-allow-anonymous'], async (port) => {
      assert.match(await pub(port, [], 'a'), /Not authorized/i);
      assert.match(await pub(port, ANN, 'a'), /Bad user name or password/i);
    });
  });

  it('does not start with a file that has an error, and names the line', async () => {
    const fails = async (args: readonly string[], message: RegExp) => {
      const shell = testShell();
      const flags = ['--memory', '--mqtt-port', '0', '--ws-port', 'off', ...args];
      assert.equal(await runCommand(['serve', ...flags], shell), 1);
      assert.match(shell.err(), message);
      assert.equal(shell.out(), '');
    };
    writeFileSync(users, '# users\n\nann\n');
    await fails(['--password-file', users], /^embermq: \S+users: line 3: expected "name:HASH"/);
    await fails(['--acl-file', join(folder, 'none')], /^embermq: cannot read \S+none: ENOENT/);
    writeFileSync(acl, '{allow, all}');
    await fails(['--acl-file', acl], /^embermq: \S+acl\.conf: line 1, column 13: expected a full stop/);
  });

  it('works as a process that gets a real SIGHUP', withMosquitto, async () => {
    const files = ['--password-file', users, '--acl-file', acl];
    const flags = ['--memory', '--host', '0.0.0.0', '--mqtt-port', '0', '--ws-port', 'off'];
    const command = new CommandProcess(['serve', ...flags, ...files]);
    const port = String((await command.ready()).mqtt);
    await editPasswordFile(users, 'eve', 'e-secret', { cost: 10 });
    assert.match(await pub(port, ['eve', 'e-secret'], 'eve/x'), /Bad user name or password/i);
    command.child.kill('SIGHUP');
    while (!/ACL file .* reloaded\n/.test(command.stderr))
      await once(command.child.stderr as NodeJS.ReadableStream, 'data');
    assert.equal(await pub(port, ['eve', 'e-secret'], 'eve/x'), '');
    command.child.kill('SIGTERM');
    assert.equal(await command.end(), 0);
  });
});
