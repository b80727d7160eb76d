import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { editPasswordFile } from '../../adapters/auth/password-file/index.ts';
import { runCommand } from '../../adapters/cli/commands.ts';
import { withMosquitto } from './mosquitto.ts';
import { readyPorts, type TestShell, testShell } from './shell.ts';

let folder: string;
let keys: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-psk-'));
  keys = write('keys', 'device-1:00aa11bb\ndevice-2:22cc33dd\n');
});

afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Run `serve` on all interfaces while `use` runs, with a listener for pre-shared keys only, whose port is passed. */
async function serving(config: object, use: (port: number, shell: TestShell) => Promise<void>): Promise<void> {
  const shell = testShell();
  const listeners = [{ kind: 'tls', port: 0, host: '0.0.0.0', pskFile: keys, name: 'devices' }];
  const file = write('embermq.json', JSON.stringify({ listeners, memory: true, ...config }));
  const code = runCommand(['serve', '-c', file, '--mqtt-port', 'off', '--ws-port', 'off'], shell);
  const { devices } = await readyPorts(shell, code);
  try {
    await use(devices, shell);
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
}

/** Publish with mosquitto_pub. @returns what it prints about a refusal; the empty string if there was none */
async function pub(port: number, identity: string, key: string, topic: string, more: string[] = []): Promise<string> {
  const login = ['--psk-identity', identity, '--psk', key, ...more];
  const args = ['-V', '5', '-h', '127.0.0.1', '-p', String(port), '-q', '1', '-t', topic, '-m', 'x', ...login];
  const child = spawn('mosquitto_pub', args);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      text += chunk;
    });
  await once(child, 'close');
  return text.trim();
}

/** Send SIGHUP and wait for its report. */
async function hungUp(shell: TestShell): Promise<string> {
  shell.hangUp();
  let text = shell.err();
  while (!/listener devices.*\n/.test(text)) {
    if (shell.stderr.readableLength === 0) await new Promise((resolve) => shell.stderr.once('readable', resolve));
    text += shell.err();
  }
  return text.trimEnd();
}

describe('serve with a file of pre-shared keys, on all interfaces', () => {
  it(
    'admits the identities of the file without asking the sources, which are for the others',
    withMosquitto,
    async () => {
      const users = join(folder, 'users');
      await editPasswordFile(users, 'ann', 'a-secret', { cost: 10 });
      const rules = write('acl.conf', '{allow, all, pubsub, ["%u/#"]}.\n');
      await serving({ passwordFile: users, aclFile: rules }, async (port) => {
        assert.equal(await pub(port, 'device-1', '00aa11bb', 'device-1/x'), '');
        assert.equal(await pub(port, 'device-2', '22CC33DD', 'device-2/x'), '');
        assert.match(await pub(port, 'device-1', '00aa11bb', 'device-2/x'), /Not authorized/i, 'the rules hold for it');
        const asAnn = ['-u', 'ann', '-P', 'wrong'];
        assert.equal(await pub(port, 'device-1', '00aa11bb', 'device-1/x', asAnn), '', 'the identity is the user name');
        assert.match(await pub(port, 'device-1', '00aa11bb', 'ann/x', asAnn), /Not authorized/i);
        for (const [identity, key] of [
          ['device-1', '00aa11bc'],
          ['device-2', '00aa11bb'],
          ['eve', '00aa11bb']
        ])
          assert.match(await pub(port, identity, key, `${identity}/x`), /error/i);
      });
    }
  );

  it('reads the file again on SIGHUP, and keeps the previous keys if it has an error', withMosquitto, async () => {
    await serving({}, async (port, shell) => {
      write('keys', 'device-1:00aa11bb\ndevice-2:secret-and-not-hexadecimal\n');
      const told = await hungUp(shell);
      assert.match(
        told,
        /^SIGHUP: certificates of listener devices: \S+keys: line 2 of the pre-shared keys: expected an even .* stay in use$/
      );
      assert.ok(!told.includes('secret'));
      assert.equal(await pub(port, 'device-2', '22cc33dd', 'x'), '');
      write('keys', 'device-1:44ee\n');
      assert.equal(await hungUp(shell), 'SIGHUP: certificates of listener devices reloaded');
      assert.match(await pub(port, 'device-2', '22cc33dd', 'x'), /error/i);
      assert.match(await pub(port, 'device-1', '00aa11bb', 'x'), /error/i);
      assert.equal(await pub(port, 'device-1', '44ee', 'x'), '');
    });
  });

  it('does not start with a file that has an error, and names the line', async () => {
    write('keys', 'device-1\n');
    await assert.rejects(
      serving({}, async () => {}),
      /keys: line 1 of the pre-shared keys: expected an identity/
    );
  });
});
