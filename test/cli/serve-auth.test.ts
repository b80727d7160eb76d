import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer, type IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { SignJWT } from 'jose';
import { Client } from 'ldapts';
import { editPasswordFile } from '../../adapters/auth/password-file/index.ts';
import { runCommand } from '../../adapters/cli/commands.ts';
import { readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { service, servicesCa } from '../support/services.ts';
import { readyPorts, type TestShell, testShell } from './shell.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../lib/access/README.md'), 'utf8');
/** Secrets of tokens. */
const [SECRET, FIRST, SECOND] = ['s'.repeat(32), '1'.repeat(32), '2'.repeat(32)];
const AUTH = { url: 'http://127.0.0.1:9/' };

const directory = service('ldap');

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-auth-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Read the settings of a config file. */
function read(file: unknown, env: Readonly<Record<string, string>> = {}) {
  const shell = testShell();
  Object.assign(shell.env, env);
  shell.files.set('e.json', JSON.stringify(file));
  return readServeSettings(['--config', 'e.json'], shell);
}

/** Run `serve` with a config file while `use` runs, on a free port. */
async function serving(
  config: object | string,
  use: (port: number, shell: TestShell) => Promise<void>,
  env: Readonly<Record<string, string>> = {}
): Promise<void> {
  const shell = testShell();
  Object.assign(shell.env, env);
  const path = write('embermq.json', typeof config === 'string' ? config : JSON.stringify(config));
  const code = runCommand(['serve', '-c', path, '--memory', '--mqtt-port', '0', '--ws-port', 'off'], shell);
  const { mqtt } = await readyPorts(shell, code);
  try {
    await use(mqtt, shell);
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
}

/** Publish a message. @returns the reason of a refusal; the empty string if there was none */
async function pub(port: number, username: string, password: string, topic = 't'): Promise<string> {
  const shell = testShell();
  const args = ['-p', String(port), '-V', '5', '-q', '1', '-u', username, '-P', password, '-t', topic, '-m', 'x'];
  await runCommand(['pub', ...args], shell);
  return shell.err().trim();
}

/** Send SIGHUP and wait for its report. */
async function hungUp(shell: TestShell, lines: number): Promise<string[]> {
  shell.err(); // what was logged before
  shell.hangUp();
  let text = '';
  while (text.split('\n').length <= lines) {
    if (shell.stderr.readableLength === 0) await new Promise((resolve) => shell.stderr.once('readable', resolve));
    text += shell.err();
  }
  return text.trimEnd().split('\n');
}

function token(key: KeyObject | Uint8Array, alg: string, sub: string): Promise<string> {
  return new SignJWT({}).setProtectedHeader({ alg }).setSubject(sub).setAudience('mqtt').sign(key);
}

describe('the list "auth" of the config file', () => {
  let certificates: Certificates;
  before(() => {
    certificates = makeCertificates();
  });
  after(() => certificates[Symbol.dispose]());

  /** An HTTPS server that knows `holly`, and lets her publish to topics that begin with her name. */
  async function authServer(): Promise<AsyncDisposable & { url: string; asked: IncomingMessage[] }> {
    const asked: IncomingMessage[] = [];
    const { cert, key } = certificates.server;
    const server = createServer({ cert, key }, async (request, response) => {
      asked.push(request);
      let body = '';
      for await (const chunk of request) body += chunk;
      if (request.url === '/mqtt/login') {
        const { name, password } = JSON.parse(body);
        const isHolly = name === 'holly' && password === 'h-secret';
        response.writeHead(isHolly ? 200 : name === 'holly' ? 401 : 200).end(isHolly ? '' : 'ignore');
      } else {
        const { username, topic } = Object.fromEntries(new URLSearchParams(body));
        const isKnown = username === 'holly' || username === 'jane';
        response.writeHead(!isKnown || topic?.startsWith(`${username}/`) ? 200 : 403).end(isKnown ? '' : 'ignore');
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return {
      url: `https://localhost:${(server.address() as AddressInfo).port}`,
      asked,
      [Symbol.asyncDispose]: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        })
    };
  }

  /** Add a user to the directory. @returns the URL for TLS, and the replacements for the names in the example */
  async function addPerson(
    uid: string,
    password: string
  ): Promise<{ url: string; names: [from: string, to: string][] }> {
    const url = new URL(directory.url);
    const admin = decodeURIComponent(url.username);
    const people = `ou=${randomUUID()},dc=example,dc=com`;
    const client = new Client({ url: `ldap://${url.host}` });
    try {
      await client.bind(admin, url.password);
      await client.add(people, { objectClass: 'organizationalUnit', ou: people.slice(3, people.indexOf(',')) });
      const objectClass = ['inetOrgPerson', 'mqttUser'];
      const person = { objectClass, uid, cn: uid, sn: uid, userPassword: password, mqttPubSubTopic: 'people/#' };
      await client.add(`uid=${uid},${people}`, person);
    } finally {
      await client.unbind();
    }
    write('ldap-password', `${url.password}\n`);
    write('ldap-ca.pem', readFileSync(servicesCa(), 'utf8'));
    const names: [string, string][] = [
      ['cn=embermq,dc=example,dc=com', admin],
      ['ou=people,dc=example,dc=com', people]
    ];
    return { url: `ldaps://${new URL(process.env.TEST_LDAPS_URL as string).host}`, names };
  }

  it('creates sources in order, as the example of the page about access shows', {
    skip: directory.skip
  }, async () => {
    const example = /```json\n(\{[^`]*"auth"[^`]*)```/.exec(PAGE)?.[1];
    assert.ok(example);
    await using server = await authServer();
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    write('issuer.pem', publicKey.export({ type: 'spki', format: 'pem' }) as string);
    write('auth-ca.pem', certificates.ca.cert);
    const person = await addPerson('lea', 'l-secret');
    const replacements: [string, string][] = [
      ['/etc/embermq/', `${folder}/`],
      ['https://auth.example', server.url],
      ['ldaps://ldap.example', person.url],
      ...person.names
    ];
    const config = replacements.reduce((text, [from, to]) => text.replaceAll(from, to), example);
    const env = { AUTH_SERVER_TOKEN: 't0k%en' };
    await serving(
      config,
      async (port) => {
        const ticket = await token(privateKey, 'ES256', 'jane');
        assert.equal(await pub(port, '', ticket, 'jane/x'), '', 'a token');
        const logins = () => server.asked.filter(({ url }) => url === '/mqtt/login');
        assert.equal(logins().length, 0);
        assert.equal(await pub(port, 'holly', 'h-secret', 'holly/x'), '', 'a user of the HTTP server');
        assert.match(await pub(port, 'holly', 'h-secret', 'other/x'), /not authorized/);
        assert.match(await pub(port, 'holly', 'wrong', 'holly/x'), /bad user name or password/);
        assert.match(await pub(port, 'nobody', 'x', 'nobody/x'), /bad user name or password/);
        assert.equal(await pub(port, 'LEA', 'l-secret', 'people/x'), '', 'a user of the directory');
        assert.match(await pub(port, 'lea', 'l-secret', 'lea/x'), /not authorized/);
        assert.match(await pub(port, 'lea', 'wrong', 'people/x'), /bad user name or password/);
        assert.equal(logins()[0].headers.authorization, 't0k%en');
      },
      env
    );
  });

  it('names the file and the entry in errors', async () => {
    const cases: [list: unknown, message: RegExp][] = [
      ['http', /^e\.json: auth: expected a list of sources, got "http"$/],
      [[5], /^e\.json: auth\[0\]: expected an object with "kind", got 5$/],
      [[{}], /^e\.json: auth\[0\]\.kind: expected one of password-file, .*got undefined$/],
      [[{ kind: 'toString' }], /^e\.json: auth\[0\]\.kind: expected one of /],
      [[{ kind: 'jwt', secret: SECRET }, { kind: 'http' }], /^e\.json: auth\[1\]\.authenticate: expected at least one/],
      [[{ kind: 'http', authenticate: { url: 'x' } }], /^e\.json: auth\[0\]\.authenticate\.url: expected a URL/],
      [[{ kind: 'http', authenticat: AUTH }], /^unknown option "authenticat" in e\.json: auth\[0\]; did you mean/],
      [
        [{ kind: 'http', authenticate: { ...AUTH, form: {}, frm: {} } }],
        /^unknown option "frm" in e\.json: auth\[0\]\.authenticate; did you mean "form"\?$/
      ],
      [[{ kind: 'password-file' }], /^e\.json: auth\[0\]\.file: expected a path, got undefined$/],
      [[{ kind: 'acl-file', path: 'x' }], /^unknown option "path" in e\.json: auth\[0\]/],
      [[{ kind: 'password-file', flie: 'x' }], /^unknown option "flie" in e\.json: auth\[0\]; did you mean "file"\?$/],
      [
        [
          { kind: 'http', acl: AUTH },
          { kind: 'http', acl: AUTH }
        ],
        /^e\.json: auth\[1\]\.name: expected a name that no other source has, got "http"$/
      ]
    ];
    let deep: unknown = [];
    for (let depth = 0; depth < 1_000; depth++) deep = [deep];
    cases.push([
      [{ kind: 'http', acl: deep }],
      /^e\.json: auth\[0\]\.acl: expected at most 64 nested lists and objects/
    ]);
    for (const [auth, message] of cases) await assert.rejects(read({ auth }), { name: 'InvalidInput', message });
    await assert.rejects(read({ passwordFile: 'a', auth: [{ kind: 'password-file', file: 'b' }] }), {
      message: /^e\.json: auth\[0\]\.name: /
    });
    await read({ passwordFile: 'a', auth: [{ kind: 'password-file', file: 'b', name: 'more' }] });
  });

  it('takes strings from files and the environment, and never shows them in errors', async () => {
    const key = write('key', 'a secret\nof two lines that is long enough\r\n');
    await read({ auth: [{ kind: 'jwt', secret: { fromFile: key } }] });
    const cases: [options: object, message: string | RegExp][] = [
      [{ secret: { fromFile: join(folder, 'none') } }, /^e\.json: auth\[0\]\.secret\.fromFile: cannot read .*ENOENT/],
      [{ secret: { fromFile: 5 } }, 'e.json: auth[0].secret.fromFile: expected a path, got 5'],
      [{ secret: { fromFile: write('empty', '\n') } }, /secret\.fromFile: expected a file that is not empty/],
      [{ secret: { fromFile: folder } }, /auth\[0\]\.secret\.fromFile: cannot read .*directory/],
      [
        { secret: { fromEnv: 'NONE' } },
        'e.json: auth[0].secret.fromEnv: expected the name of an environment variable that is set, got "NONE"'
      ],
      [
        { secret: { fromFile: key }, from: { fromFile: key } },
        'e.json: auth[0].from: expected one of password, username'
      ],
      [
        { secret: SECRET, claims: { a: { b: { fromEnv: 'KEY' } } } },
        /^e\.json: auth\[0\]\.claims: expected an object[^"]*$/
      ]
    ];
    for (const [options, message] of cases) {
      const failed = read({ auth: [{ kind: 'jwt', ...options }] }, { KEY: 'hidden' });
      await assert.rejects(failed, (error: Error) => {
        if (typeof message === 'string') assert.equal(error.message, message);
        else assert.match(error.message, message);
        assert.ok(!/secret\n|hidden/.test(error.message + JSON.stringify(error)));
        return true;
      });
    }
    const header = (value: unknown) => ({ kind: 'http', authenticate: { ...AUTH, headers: { 'X-Key': value } } });
    await read({ auth: [header({ fromEnv: 'KEY' })] }, { KEY: '100%z' });
    await read({ auth: [{ kind: 'http', acl: { url: { fromEnv: 'URL' } } }] }, { URL: 'http://127.0.0.1/%C3%A9' });
  });

  it('never shows secrets of the file in errors, even if they are not valid', async () => {
    const cases: [entry: object, message: RegExp][] = [
      [
        { kind: 'ldap', url: 'ldap://h', baseDn: 'x', bindDn: 'a', bindPassword: 4711 },
        /bindPassword: expected a string$/
      ],
      [{ kind: 'ldap', url: 'ldaps://h', baseDn: 'x', key: [['4711']] }, /auth\[0\]\.key: expected [^"]*$/],
      [{ kind: 'ldap', url: 'ldap://a:4711@h', baseDn: 'x' }, /auth\[0\]\.url: expected /],
      [{ kind: 'postgresql', connection: ['postgresql://u:4711@h/d'] }, /auth\[0\]\.connection: expected [^"]*$/],
      [{ kind: 'http', acl: AUTH, passphrase: ['4711'] }, /auth\[0\]\.passphrase: expected [^"]*$/],
      [{ kind: 'http', acl: { ...AUTH, headers: { Key: ['4711'] } } }, /auth\[0\]\.acl\.headers: expected [^"]*$/],
      [{ kind: 'http', acl: { ...AUTH, headers: { Key: '4711%z' } } }, /acl\.headers\.Key: expected [^"]*$/],
      [{ kind: 'http', acl: { ...AUTH, headers: '4711' } }, /acl\.headers: expected [^"]*$/],
      [{ kind: 'http', acl: { ...AUTH, form: { key: '4711%z' } } }, /acl\.form\.key: expected [^"]*$/],
      [{ kind: 'http', acl: { ...AUTH, json: { a: ['4711%z'] } } }, /acl\.json\.a\.0: expected [^"]*$/],
      [{ kind: 'jwt', secret: [4711] }, /auth\[0\]\.secret: expected [^"]*$/]
    ];
    for (const [entry, message] of cases)
      await assert.rejects(read({ auth: [entry] }), (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message + JSON.stringify(error), /4711/);
        return true;
      });
    await assert.rejects(read({ auth: [{ kind: 'ldap', url: 'ldap://h', baseDn: 7 }] }), /baseDn: .*, got 7$/);
  });

  it('lets other machines connect if one of the sources authenticates', async () => {
    const open = { host: '0.0.0.0' };
    for (const entry of [
      { kind: 'password-file', file: 'x' },
      { kind: 'jwt', secret: SECRET },
      { kind: 'http', authenticate: AUTH }
    ])
      await read({ ...open, auth: [{ kind: 'acl-file', file: 'a' }, entry] });
    for (const auth of [[], [{ kind: 'acl-file', file: 'x' }], [{ kind: 'http', acl: AUTH }]])
      await assert.rejects(read({ ...open, auth }), { code: 'ANONYMOUS_EXPOSED', message: /or "auth" in the config/ });
    await assert.rejects(read({ ...open, auth: [{ kind: 'jwt', secret: SECRET }], bypassAuthPlugins: true }), {
      code: 'ANONYMOUS_EXPOSED'
    });
  });

  it('cannot be set by a flag or in the environment', async () => {
    await assert.rejects(readServeSettings(['--auth', '[]'], testShell()), { code: 'FLAG_UNKNOWN' });
    const shell = testShell();
    shell.env.EMBERMQ_AUTH = '[]';
    await assert.rejects(readServeSettings([], shell), { code: 'OPTION_UNKNOWN' });
  });
});

describe('SIGHUP with the list "auth"', () => {
  it('reloads all sources and the files of their options, and keeps their order', async () => {
    const users = join(folder, 'users');
    await editPasswordFile(users, 'ann', 'one', { cost: 10 });
    const key = write('key', FIRST);
    const auth = [
      { kind: 'password-file', file: users },
      { kind: 'jwt', secret: { fromFile: key }, usernameClaim: 'sub' },
      { kind: 'acl-file', file: write('rules.json', '[{ "access": "allow", "topic": "%u/#" }]') }
    ];
    await serving({ auth }, async (port, shell) => {
      const [first, second] = await Promise.all(
        [FIRST, SECOND].map((secret) => token(Buffer.from(secret), 'HS256', 'jane'))
      );
      assert.equal(await pub(port, 'ann', 'one', 'ann/x'), '');
      assert.equal(await pub(port, '', first, 'jane/x'), '');
      assert.match(await pub(port, '', second, 'jane/x'), /not authorized/);
      await editPasswordFile(users, 'ann', 'two', { cost: 10 });
      writeFileSync(key, `${SECOND}\n`);
      write('rules.json', '[{ "access": "allow", "topic": "%u/y" }]');
      assert.deepEqual(await hungUp(shell, 3), [
        'SIGHUP: source password-file reloaded',
        'SIGHUP: source jwt reloaded',
        'SIGHUP: source acl-file reloaded'
      ]);
      assert.match(await pub(port, 'ann', 'one', 'ann/y'), /bad user name or password/);
      assert.equal(await pub(port, 'ann', 'two', 'ann/y'), '');
      assert.match(await pub(port, 'ann', 'two', 'ann/x'), /not authorized/);
      assert.match(await pub(port, '', first, 'jane/y'), /not authorized/);
      assert.equal(await pub(port, '', second, 'jane/y'), '');
    });
  });

  it('lets the previous source answer its pending questions before closing it', async () => {
    const asked: { key: unknown; allow: () => void; closed: Promise<unknown> }[] = [];
    let arrived = () => {};
    const server = createPlainServer((request, response) => {
      const closed = new Promise((resolve) => request.socket.on('close', resolve));
      asked.push({ key: request.headers['x-key'], allow: () => response.end(), closed });
      arrived();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const key = write('key', 'first');
    try {
      await serving(
        { auth: [{ kind: 'http', authenticate: { url, headers: { 'X-Key': { fromFile: key } } } }] },
        async (port, shell) => {
          const login = async () => {
            const request = new Promise<void>((resolve) => (arrived = resolve));
            const answer = pub(port, 'ann', 'one');
            await request;
            return { answer };
          };
          const before = await login();
          write('key', 'second');
          await hungUp(shell, 1);
          const after = await login();
          asked[0].allow();
          assert.equal(await before.answer, '');
          await asked[0].closed;
          asked[1].allow();
          assert.equal(await after.answer, '');
          assert.deepEqual(
            asked.map((one) => one.key),
            ['first', 'second']
          );
          await login();
          write('key', 'third');
          await hungUp(shell, 1);
        }
      );
      await asked[2].closed;
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('keeps the previous content if a file has an error', async () => {
    const users = join(folder, 'users');
    await editPasswordFile(users, 'ann', 'one', { cost: 10 });
    const key = write('key', FIRST);
    const auth = [
      { kind: 'password-file', file: users },
      { kind: 'jwt', secret: { fromFile: key }, usernameClaim: 'sub' }
    ];
    await serving({ auth }, async (port, shell) => {
      writeFileSync(users, 'ann:one\n');
      writeFileSync(key, '-----BEGIN PUBLIC KEY-----');
      const [first, second] = await hungUp(shell, 2);
      assert.match(first, /^SIGHUP: source password-file: \S+users: line 1: .*; the previous content remains in use$/);
      assert.match(second, /^SIGHUP: \S+embermq\.json: auth\[1\]\.secret: expected a secret; .*; the previous content/);
      assert.equal(await pub(port, 'ann', 'one'), '');
      assert.equal(await pub(port, '', await token(Buffer.from(FIRST), 'HS256', 'jane')), '');
      rmSync(key);
      assert.match((await hungUp(shell, 2))[1], /auth\[1\]\.secret\.fromFile: cannot read/);
      assert.equal(await pub(port, '', await token(Buffer.from(FIRST), 'HS256', 'jane')), '');
    });
  });

  it('keeps the order of the sources if one of them cannot be reloaded', async () => {
    const [one, two] = ['one', 'two'].map((name) => join(folder, name));
    await editPasswordFile(one, 'ann', '1', { cost: 10 });
    await editPasswordFile(two, 'ann', '2', { cost: 10 });
    const auth = [
      { kind: 'password-file', file: one, name: 'a' },
      { kind: 'password-file', file: two, name: 'b' }
    ];
    await serving({ auth }, async (port, shell) => {
      writeFileSync(two, 'ann\n');
      assert.match((await hungUp(shell, 2))[1], /^SIGHUP: source b: /);
      assert.equal(await pub(port, 'ann', '1'), '', 'the first one knows the user, so the second one is not asked');
    });
  });
});
