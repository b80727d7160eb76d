import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { openOptional } from '../../adapters/cli/serve/listeners.ts';
import { type PlannedListener, readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { listenHttp, tcp } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { parseExposition } from '../support/exposition.ts';
import { readyPorts, type TestShell, testShell } from './shell.ts';

const APP = 'me:a secret';
const MQTT = ['--mqtt-port', '0', '--ws-port', 'off'];
const HTTP = ['--http-port', '0', '--http-earlier-port', '0'];

/** Run `serve` while `use` runs. @returns what it has written to standard error */
async function serving(
  args: readonly string[],
  use: (ready: Record<string, number>, shell: TestShell) => unknown = () => {},
  { env = {}, store = ['--memory'] }: { env?: Record<string, string>; store?: string[] } = {}
): Promise<string> {
  const shell = testShell();
  Object.assign(shell.env, env);
  const code = runCommand(['serve', ...MQTT, ...store, ...args], shell);
  const ready = await readyPorts(shell, code);
  try {
    await use(ready, shell);
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
  return shell.err();
}

/** Send a request. @param app id and secret @returns status and body */
async function call(port: number, path: string, { app = APP, host }: { app?: string; host?: string } = {}) {
  const headers = host === undefined ? {} : { host };
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    request({ port, path, auth: app === '' ? undefined : app, headers, agent: false }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode as number, text });
    })
      .on('error', reject)
      .end();
  });
}

const statusOf = async (...args: Parameters<typeof call>) => (await call(...args)).status;

/** A port that is in use while `use` runs. */
async function withTaken(use: (port: number) => Promise<unknown>): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    await use((server.address() as AddressInfo).port);
  } finally {
    server.close();
  }
}

/** Run until it ends on its own. */
async function failing(
  args: readonly string[],
  env: Record<string, string> = {}
): Promise<{ code: number; err: string }> {
  const shell = testShell();
  Object.assign(shell.env, env);
  return { code: await runCommand(['serve', ...MQTT, '--memory', ...args], shell), err: shell.err() };
}

describe('serve over HTTP', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'embermq-http-'));
  });

  after(() => rmSync(folder, { recursive: true }));

  const config = (options: object): string[] => {
    const path = join(folder, 'c.json');
    writeFileSync(path, JSON.stringify(options));
    return ['-c', path];
  };

  it('serves later, hosted, metrics and health on one port, the earlier revision on another, and prints both', async () => {
    await serving([...HTTP, '--app', APP], async (ready) => {
      assert.deepEqual(Object.keys(ready), ['mqtt', 'http', 'http-earlier', 'pid']);
      const { http, 'http-earlier': earlier } = ready;
      for (const path of ['/api/v3/clients', '/api/v4/clients', '/api/clients'])
        assert.equal(await statusOf(http, path), 200, path);
      assert.equal(await statusOf(http, '/api/v4/connections'), 404);
      assert.equal(await statusOf(earlier, '/api/v3/connections'), 200);
      assert.equal(await statusOf(earlier, '/api/v3/clients'), 404);
      assert.equal(await statusOf(http, '/api/v4/clients', { app: '' }), 401);
      assert.equal(await statusOf(http, '/api/v4/clients', { app: 'me:wrong' }), 401);
      assert.equal((await call(http, '/livez', { app: '' })).text, 'ok');
      assert.equal((await call(http, '/readyz', { app: '' })).text, 'ok');
      const metrics = parseExposition((await call(http, '/metrics', { app: '' })).text, 'text');
      assert.equal(metrics.get('embermq_listener_connections')?.samples.length, 3);
      for (const [port, path] of [
        [http, '/'],
        [earlier, '/metrics']
      ] as const) {
        const { status, text } = await call(port, path, { app: '' });
        assert.equal(status, 404);
        assert.equal(JSON.parse(text).code, 102);
      }
      const { data } = JSON.parse((await call(http, '/api/v4/listeners')).text);
      assert.deepEqual(
        data[0].listeners.map(({ protocol, listen_on, shutdown_count }: Record<string, unknown>) => [
          protocol,
          listen_on,
          shutdown_count
        ]),
        [
          ['mqtt:tcp', `127.0.0.1:${ready.mqtt}`, []],
          ['http:management', `127.0.0.1:${http}`, []],
          ['http:management', `127.0.0.1:${earlier}`, []]
        ]
      );
    });
  });

  it('names the methods of a path in the answer to another one', async () => {
    await serving([...HTTP, '--app', APP], async ({ http }) => {
      const ask = async (method: string, path: string) => {
        const headers = { authorization: `Basic ${Buffer.from(APP).toString('base64')}` };
        const answer = await fetch(`http://127.0.0.1:${http}${path}`, { method, headers });
        const text = await answer.text();
        return { status: answer.status, allow: answer.headers.get('allow'), body: text === '' ? '' : JSON.parse(text) };
      };
      for (const [method, path, allow] of [
        ['POST', '/metrics', 'OPTIONS, GET, HEAD'],
        ['POST', '/readyz', 'OPTIONS, GET, HEAD'],
        ['PUT', '/api/v4/clients', 'GET, HEAD'],
        ['POST', '/api/clients/a', 'DELETE, GET, HEAD']
      ]) {
        const answer = await ask(method, path);
        assert.deepEqual([answer.status, answer.body.code, answer.allow], [404, 102, allow], path);
        assert.ok(answer.body.message.endsWith(`this path has ${allow}`), answer.body.message);
      }
      for (const path of ['/api/v4/clients', '/metrics'])
        assert.deepEqual(await ask('OPTIONS', path), { status: 204, allow: 'OPTIONS, GET, HEAD', body: '' });
      const unknown = await ask('OPTIONS', '/api/v4/nothing');
      assert.deepEqual([unknown.status, unknown.allow], [404, null]);
    });
  });

  it('binds the loopback address whatever --host is, unless --http-host is given, and then warns once', async () => {
    const err = await serving([...HTTP, '--host', '0.0.0.0', '--allow-anonymous'], async ({ http }) => {
      assert.equal(await statusOf(http, '/livez', { app: '' }), 200);
    });
    assert.doesNotMatch(err, /clear text/);
    const { listeners } = await readServeSettings(['--host', '0.0.0.0', '--allow-anonymous', ...HTTP], testShell());
    assert.deepEqual(
      listeners
        .filter(({ http }) => http !== undefined)
        .map(({ transport: { place } }) => 'host' in place && place.host),
      ['127.0.0.1', '127.0.0.1']
    );
    let ports: Record<string, number> = {};
    const open = await serving([...HTTP, '--http-host', '0.0.0.0'], (ready) => {
      ports = ready;
    });
    const warnings = open.match(/^warning: .*clear text.*$/gm);
    assert.equal(warnings?.length, 1);
    assert.ok(warnings[0].includes(`${ports.http} and ${ports['http-earlier']} `), warnings[0]);
    assert.match(open, new RegExp(`http://127\\.0\\.0\\.1:${ports.http}/api/v4/clients`));
  });

  it('creates an application on the first start, keeps its secret in a file for the owner, and does not print it', async () => {
    const data = join(folder, "operator's data");
    const file = join(data, 'first-application');
    for (const life of [1, 2]) {
      const err = await serving(
        [...HTTP, '--rules-port', '0'],
        async ({ http, rules }) => {
          const [app] = readFileSync(file, 'utf8').split('\n');
          assert.match(app, /^app-[0-9a-f]{8}:[\w-]{40,}$/);
          assert.equal(statSync(file).mode & 0o777, 0o600);
          assert.equal(await statusOf(http, '/api/v4/clients', { app }), 200);
          assert.equal(await statusOf(rules, '/rules', { app }), 200);
          assert.equal(await statusOf(rules, '/rules', { app: '' }), 401);
        },
        { store: ['--data-dir', data] }
      );
      const [id, secret] = readFileSync(file, 'utf8').split('\n')[0].split(':');
      assert.ok(!err.includes(secret));
      const [, printed] = /try it: (curl .*)/.exec(err) ?? [];
      // the shell passes the id and the secret on, whatever the name of the folder
      if (life === 1)
        assert.equal(
          `${execFileSync('sh', ['-c', printed.replace('curl -u', 'echo')])}`.split(' ')[0],
          `${id}:${secret}`
        );
      assert.equal(
        err.includes(`application ${id} was made for the management interface and stream rules`),
        life === 1
      );
      assert.equal(
        err.includes(`are the first line of ${file}: put them in a safe place, and delete the file`),
        life === 1
      );
      assert.match(err, /^management interface \(port \d+, \d+\): applications may do everything\. stream rules/m);
    }
  });

  it('prints the secret of the application with --memory, and on a terminal', async () => {
    const printed = /^application \S+ was made .* Its secret: [\w-]{40,}$/m;
    await serving(HTTP, (_ready, shell) => assert.match(shell.err(), printed));
    const shell = testShell();
    shell.stderr.isTTY = true;
    const data = ['--data-dir', join(folder, 'terminal')];
    const code = runCommand(['serve', ...MQTT, ...data, ...HTTP], shell);
    await readyPorts(shell, code);
    assert.match(shell.err(), printed);
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  });

  it('creates an application if only the port of stream rules is open', async () => {
    const off = ['--http-port', 'off', '--http-earlier-port', 'off', '--rules-port', '0'];
    const data = join(folder, 'rules-only');
    await serving(
      off,
      async ({ rules }) => {
        const [app] = readFileSync(join(data, 'first-application'), 'utf8').split('\n');
        assert.equal(await statusOf(rules, '/rules', { app }), 200);
      },
      { store: ['--data-dir', data] }
    );
  });

  it('creates no application if there are no HTTP ports', async () => {
    assert.doesNotMatch(await serving(['--http-port', 'off', '--http-earlier-port', 'off']), /application/);
  });

  it('adds the application of --app or EMBERMQ_APP at every start, and replaces its secret if it has changed', async () => {
    const store = ['--data-dir', join(folder, 'apps')];
    const statuses = async (args: string[], env: Record<string, string>, apps: string[]) => {
      const found: number[] = [];
      const use = async ({ http }: Record<string, number>) => {
        for (const app of apps) found.push(await statusOf(http, '/api/v4/clients', { app }));
      };
      const err = await serving([...HTTP, ...args], use, { env, store });
      assert.doesNotMatch(err, /was made|secret|one|two/);
      return found;
    };
    assert.deepEqual(await statuses([], { EMBERMQ_APP: 'a:one' }, ['a:one', 'a:two']), [200, 401]);
    assert.deepEqual(await statuses([], { EMBERMQ_APP: 'a:one' }, ['a:one']), [200]);
    assert.deepEqual(await statuses(['--app', 'a:two:2'], {}, ['a:one', 'a:two:2']), [401, 200]);
    assert.deepEqual(await statuses(['--app', 'b:one'], {}, ['b:one', 'a:two:2']), [200, 200]);
    assert.deepEqual(await statuses([], {}, ['b:one', 'a:two:2']), [200, 200]);
  });

  it('names an invalid --app without its secret', async () => {
    for (const app of ['secret-without-id', ':secret', 'id:']) {
      const { code, err } = await failing(['--app', app]);
      assert.equal(code, 2);
      assert.equal(err, 'embermq: --app: expected ID:SECRET, an id without ":" and a secret, got "(not shown)"\n');
    }
  });

  it('skips default HTTP ports that are in use, with a warning, and refuses to start if they were configured', async () => {
    await withTaken(async (port) => {
      for (const flag of ['--http-port', '--http-earlier-port', '--https-port']) {
        using certificates = makeCertificates();
        const { certFile, keyFile } = certificates.server;
        const files = flag === '--https-port' ? ['--mqtts-port', '0', '--cert', certFile, '--key', keyFile] : [];
        const { code, err } = await failing([flag, String(port), ...files]);
        assert.equal(code, 1);
        assert.match(err, new RegExp(`^embermq: cannot listen on 127\\.0\\.0\\.1:${port}: the address is in use`));
      }
    });
    await withTaken(async (port) => {
      await using broker = createBroker();
      await broker.start();
      const shell = testShell();
      const open = ({ transport }: PlannedListener) => listenHttp(broker, transport, () => {});
      const plans = ['http', 'http-earlier'].map((label) => {
        return { label, place: '', transport: tcp({ port }), isOptional: true, http: 'later' } as const;
      });
      await openOptional(plans, broker, [], { shell, open });
      assert.deepEqual(
        shell.err().match(/^warning: continuing without the \S+ listener/gm),
        ['http', 'http-earlier'].map((label) => `warning: continuing without the ${label} listener`)
      );
      assert.equal(broker.state, 'connected');
    });
    const { listeners } = await readServeSettings(MQTT, { ...testShell(), env: {} });
    assert.deepEqual(
      listeners.map(({ label, isOptional }) => [label, isOptional]),
      [
        ['mqtt', false],
        ['http', true],
        ['http-earlier', true],
        ['rules', true],
        ['dashboard', true]
      ]
    );
  });

  it('serves the content of --http-port over TLS on --https-port, and reloads its certificate at SIGHUP', async () => {
    using certificates = makeCertificates();
    const { server, ca } = certificates;
    const files = ['--cert', server.certFile, '--key', server.keyFile];
    const off = ['--http-port', 'off', '--http-earlier-port', 'off', '--mqtts-port', 'off'];
    const err = await serving([...off, '--https-port', '0', ...files, '--app', APP], async (ready, shell) => {
      assert.deepEqual(Object.keys(ready), ['mqtt', 'https', 'pid']);
      const status = await new Promise((resolve, reject) => {
        const options = { port: ready.https, host: 'localhost', family: 4, path: '/api/v4/listeners', auth: APP };
        httpsRequest({ ...options, ca: ca.cert, agent: false }, async (response) => {
          let text = '';
          for await (const chunk of response) text += chunk;
          resolve(JSON.parse(text).data[0].listeners[1].protocol);
        })
          .on('error', reject)
          .end();
      });
      assert.equal(status, 'https:management');
      shell.hangUp();
      let told = '';
      while (!/certificates of listener https:0 reloaded/.test(told)) {
        told += shell.err();
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    assert.doesNotMatch(err, /clear text/);
    const { code, err: missing } = await failing(['--https-port', '0']);
    assert.equal(code, 2);
    assert.match(missing, /a TLS listener needs both --cert FILE and --key FILE/);
  });

  it('takes options of the management interface from the config file', async () => {
    const management = { errors: 'original', credentials: ['applications', 'users'], appOperations: false };
    await serving([...HTTP, '--app', APP, ...config({ management })], async ({ http }) => {
      assert.equal((await call(http, '/api/v4/nothing')).text, 'Not found.');
      assert.match((await call(http, '/api/v4/apps')).text, /103/);
    });
    for (const [options, message] of [
      [{ management: 1 }, /c\.json: management: expected an object of options/],
      [
        { management: { maxRowLimt: 1 } },
        /unknown option "maxRowLimt" in .*c\.json: management; did you mean "maxRowLimit"/
      ],
      [{ management: { maxRowLimit: 0 } }, /c\.json: management\.maxRowLimit: expected/],
      [{ management: { prefix: '/x' } }, /unknown option "prefix" in .*c\.json: management/],
      [{ management: { credentials: 'host' } }, /c\.json: management\.credentials: expected "applications"/],
      [{ management: { metrics: { credentials: 'x' } } }, /c\.json: management\.metrics\.credentials: expected/],
      [{ management: { health: [] } }, /c\.json: management\.health: expected an object/]
    ] as const) {
      const { code, err } = await failing([...HTTP, ...config(options)]);
      assert.equal(code, 2, err);
      assert.match(err, message);
    }
  });

  it('asks for credentials for the metrics if the config file requires this; otherwise it checks the Host header', async () => {
    await serving([...HTTP, ...config({ management: { hosts: 'broker.example' } })], async ({ http }) => {
      for (const path of ['/metrics', '/livez']) {
        assert.equal(await statusOf(http, path, { app: '', host: 'attacker.example' }), 403);
        assert.equal(await statusOf(http, path, { app: '', host: 'broker.example:8081' }), 200);
      }
    });
    const management = { metrics: { credentials: 'applications' } };
    await serving([...HTTP, '--app', APP, ...config({ management })], async ({ http }) => {
      assert.equal(await statusOf(http, '/metrics', { app: '' }), 401);
      assert.equal(await statusOf(http, '/metrics'), 200);
      assert.equal(await statusOf(http, '/readyz', { app: '' }), 200);
    });
  });

  it('warns if only users are admitted and there are none', async () => {
    const ask = config({ management: { credentials: 'users' } });
    const told = await serving([...HTTP, ...ask], async ({ http }) => {
      assert.equal(await statusOf(http, '/api/v4/clients'), 401);
      assert.match((await call(http, '/nothing')).text, /there is no GET \/nothing here/);
    });
    assert.match(told, /warning: the management interface cannot be used: it admits only users, and there are none/);
  });

  it('serves without credentials only on a loopback address, and then checks the Host header', async () => {
    const open = config({ management: { credentials: 'none' } });
    const told = await serving([...HTTP, ...open], async ({ http }) => {
      assert.equal(await statusOf(http, '/api/v4/clients', { app: '' }), 200);
      assert.equal(await statusOf(http, '/api/v4/clients', { app: '', host: 'attacker.example' }), 403);
    });
    assert.doesNotMatch(told, /was made/, 'none is needed');
    const { code, err } = await failing([...HTTP, ...open, '--http-host', '0.0.0.0']);
    assert.equal(code, 2);
    assert.match(err, /anyone who can reach 0\.0\.0\.0 could control the broker/);
  });
});
