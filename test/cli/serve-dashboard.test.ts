import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import mqtt from 'mqtt';
import { runCommand } from '../../adapters/cli/commands.ts';
import { ensureUser } from '../../adapters/cli/serve/first-user.ts';
import { type PlannedListener, readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { makeCertificates } from '../support/certificates.ts';
import { readyPorts, type TestShell, testShell } from './shell.ts';

const FLAGS = ['--mqtt-port', '0', '--ws-port', 'off', '--dashboard-port', '0'];

/** Run `serve` with a console while `use` runs. @returns standard error */
async function serving(
  args: readonly string[],
  use: (ready: Record<string, number>, shell: TestShell) => unknown = () => {},
  prepare: (shell: TestShell) => void = () => {}
): Promise<string> {
  const shell = testShell();
  prepare(shell);
  const code = runCommand(['serve', ...FLAGS, ...args], shell);
  const ready = await readyPorts(shell, code);
  let err = '';
  try {
    err = shell.err();
    await use(ready, shell);
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
  return err + shell.err();
}

async function logIn(port: number, [id, password]: readonly string[]) {
  const answer = await fetch(`http://127.0.0.1:${port}/login`, {
    method: 'POST',
    body: JSON.stringify({ id, password })
  });
  const [cookie] = `${answer.headers.get('set-cookie')}`.split(';');
  return { status: answer.status, cookie };
}

describe('serve with the console', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'embermq-dashboard-'));
  });

  after(() => rmSync(folder, { recursive: true }));

  it('serves the page, the interfaces and MQTT over WebSocket, and prints the port', async () => {
    await serving(['--data-dir', join(folder, 'all'), '--reserve', '0'], async (ready) => {
      assert.deepEqual(Object.keys(ready), ['mqtt', 'dashboard', 'pid']);
      const { dashboard } = ready;
      const page = await fetch(`http://127.0.0.1:${dashboard}/clients/x`, { headers: { accept: 'text/html' } });
      assert.equal(page.status, 200);
      const html = await page.text();
      const [, script] = /<script type="module" src="([^"]+)">/.exec(html) ?? [];
      const asset = await fetch(new URL(script, `http://127.0.0.1:${dashboard}/`));
      assert.deepEqual([asset.status, asset.headers.get('content-type')], [200, 'text/javascript; charset=utf-8']);
      const user = readFileSync(join(folder, 'all/first-user'), 'utf8').split('\n')[0].split(':');
      const { status, cookie } = await logIn(dashboard, user);
      assert.equal(status, 200);
      for (const path of ['/api/clients', '/streams/rules', '/api/x/options', '/streams/plugins/sources'])
        assert.equal((await fetch(`http://127.0.0.1:${dashboard}${path}`, { headers: { cookie } })).status, 200, path);
      const client = await mqtt.connectAsync(`ws://127.0.0.1:${dashboard}/mqtt`, {
        reconnectPeriod: 0,
        wsOptions: { headers: { cookie } }
      });
      await client.endAsync();
    });
  });

  it('makes an administrator if there is no user, with its password in a file for the owner, and does not print it', async () => {
    const data = join(folder, 'first');
    const file = join(data, 'first-user');
    for (const life of [1, 2]) {
      const err = await serving(['--data-dir', data, '--reserve', '0'], async ({ dashboard }) => {
        const user = readFileSync(file, 'utf8').split('\n')[0].split(':');
        assert.equal(user[0], 'admin');
        assert.equal(statSync(file).mode & 0o777, 0o600);
        assert.match(readFileSync(file, 'utf8'), /delete this file/);
        assert.equal((await logIn(dashboard, user)).status, 200);
      });
      const [, password] = readFileSync(file, 'utf8').split('\n')[0].split(':');
      assert.ok(password.length >= 24);
      assert.ok(!err.includes(password));
      assert.equal(/user admin was made for the console, http:\/\/127\.0\.0\.1:\d+\/;/.test(err), life === 1);
      assert.match(err, /console \(port \d+\): administrators may do everything, users without this role may read/);
    }
    rmSync(file);
    await serving(['--data-dir', data, '--reserve', '0']);
    assert.equal(existsSync(file), false, 'there is a user');
  });

  it('leaves no file with a password of a user that could not be stored', async () => {
    const data = join(folder, 'unstored');
    mkdirSync(data);
    const create = () => Promise.reject(new Error('the store is full'));
    const [plan, listening] = [{ http: 'dashboard', transport: {} }, { port: 1 }];
    const shell = testShell();
    const { users, opened } = { users: { size: 0, create }, opened: [{ plan, listening }] };
    await ensureUser({ users } as never, opened as never, data, shell);
    assert.match(shell.err(), /cannot be stored: the store is full; add one with embermq ctl users add/);
    assert.equal(existsSync(join(data, 'first-user')), false);
  });

  it('prints the password with --memory, and on a terminal', async () => {
    const printed = /^user admin was made for the console, \S+\. Its password: ([\w-]{24})$/m;
    const memory = await serving(['--memory'], async ({ dashboard }, shell) => {
      assert.equal((await logIn(dashboard, ['admin', 'wrong'])).status, 401);
      assert.equal(shell.stderr.isTTY, undefined);
    });
    assert.match(memory, printed);
    const terminal = ['--data-dir', join(folder, 'terminal'), '--reserve', '0'];
    const err = await serving(terminal, undefined, (shell) => {
      shell.stderr.isTTY = true;
    });
    assert.match(err, printed);
  });

  it('makes no user without a console', async () => {
    const data = join(folder, 'off');
    const shell = testShell();
    const flags = ['--mqtt-port', '0', '--ws-port', 'off', '--data-dir', data, '--reserve', '0'];
    const code = runCommand(['serve', ...flags], shell);
    await readyPorts(shell, code);
    assert.equal(existsSync(join(data, 'first-user')), false);
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  });

  it('serves the console over TLS with a secure cookie', async () => {
    using certificates = makeCertificates();
    const { certFile, keyFile } = certificates.server;
    const args = [
      '--memory',
      '--dashboard-https-port',
      '0',
      '--mqtts-port',
      'off',
      '--cert',
      certFile,
      '--key',
      keyFile
    ];
    let password = '';
    const use = async (ready: Record<string, number>) => {
      const sent = secureRequest({
        host: '127.0.0.1',
        port: ready['dashboard-https'],
        method: 'POST',
        path: '/login',
        rejectUnauthorized: false
      });
      sent.end(JSON.stringify({ id: 'admin', password }));
      const [answer] = await once(sent, 'response');
      answer.resume();
      assert.equal(answer.statusCode, 200);
      assert.match(answer.headers['set-cookie'][0], /; HttpOnly; SameSite=Strict; Secure$/);
    };
    const shell = testShell();
    const code = runCommand(['serve', ...FLAGS, ...args], shell);
    const ready = await readyPorts(shell, code);
    assert.deepEqual(Object.keys(ready), ['mqtt', 'dashboard', 'dashboard-https', 'pid']);
    [, password] = /Its password: (\S+)/.exec(shell.err()) ?? [];
    await use(ready);
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  });

  it('defaults to 18083 on loopback, and is left out if it is in use, unless it was configured', async () => {
    const planOf = async (args: string[]) =>
      (await readServeSettings(args, { ...testShell(), env: {} })).listeners.find(
        ({ label }) => label === 'dashboard'
      ) as PlannedListener;
    const plan = await planOf([]);
    const { port: planned, host } = plan.transport.place as { port: number; host: string };
    assert.deepEqual([planned, host, plan.isOptional], [18_083, '127.0.0.1', true]);
    assert.equal((await planOf(['--dashboard-port', '18083'])).isOptional, false);
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const shell = testShell();
    const args = ['serve', ...FLAGS.slice(0, 4), '--memory', '--dashboard-port', String(port)];
    assert.equal(await runCommand(args, shell), 1);
    assert.match(shell.err(), new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}`));
    taken.close();
  });

  it('takes options from the config file, and refuses those that are determined by the port', async () => {
    const withConfig = (options: unknown) => (shell: TestShell) => {
      shell.files.set('c.json', JSON.stringify({ dashboard: options }));
    };
    await serving(
      ['--memory', '-c', 'c.json'],
      async ({ dashboard }) => {
        const status = async (host: string) => {
          const sent = request({ port: dashboard, path: '/api/clients', headers: { host } }).end();
          const [answer] = await once(sent, 'response');
          return answer.resume().statusCode;
        };
        assert.equal(await status('console.example'), 401);
        assert.equal(await status('evil.example'), 403);
      },
      withConfig({ viewerPayloads: false, hosts: 'console.example' })
    );
    const refusals: [options: unknown, message: RegExp][] = [
      [{ prefix: '/x' }, /unknown option "prefix" in c\.json: dashboard/],
      [{ login: 'users' }, /unknown option "login" in c\.json: dashboard/],
      [{ viewerPayload: false }, /"viewerPayload" in c\.json: dashboard/],
      [{ viewerPayloads: 'maybe' }, /c\.json: dashboard.*viewerPayloads/],
      [[], /c\.json: dashboard: expected an object/]
    ];
    for (const [options, message] of refusals) {
      const shell = testShell();
      withConfig(options)(shell);
      const code = await runCommand(['serve', ...FLAGS, '--memory', '-c', 'c.json'], shell);
      assert.equal(code, 2);
      assert.match(shell.err(), message);
    }
  });
});
