import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { describe, it } from 'node:test';
import { type Broker, createBroker } from 'embermq';
import { type HttpMounts, type ManagementOptions, managementApi, metricsHandler } from 'embermq/management';
import { streamsApi } from 'embermq/streams-api';
import { createTestBroker } from 'embermq/testing';
import { AUTHORIZATION, serve, serveManagement, startBroker } from '../support/management.ts';

function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
}

/** Ask the interface of a broker, mounted at `/api`, over the Fetch API. */
function ask(broker: Broker, options: ManagementOptions = {}) {
  const { fetch } = managementApi(broker, { prefix: '/api', ...options });
  return async (
    method: string,
    path: string,
    {
      headers = {},
      authorization = AUTHORIZATION,
      from,
      url = 'http://host'
    }: { headers?: Record<string, string>; authorization?: string | undefined; from?: string; url?: string } = {}
  ) => {
    const all = authorization === '' ? headers : { authorization, ...headers };
    const body = method === 'GET' || method === 'DELETE' ? undefined : '{"topic":"t","payload":""}';
    const request = new Request(`${url}/api${path}`, { method, headers: all, ...(body === undefined ? {} : { body }) });
    const response = await fetch(request, { remoteAddress: from });
    return { status: response.status, headers: response.headers, body: (await response.json()) as never as Reply };
  };
}

interface Reply {
  readonly code: number;
  readonly message: string;
  readonly data: unknown[];
}

const PUBLISH = '/mqtt/publish';

describe('Management credentials', () => {
  it('grants the scope of a management user, and applies changes of it at once', async () => {
    await using broker = await startBroker();
    await broker.users.create('ann', 'secret of ann', 'administrator');
    await broker.users.create('vic', 'secret of vic', 'viewer');
    const call = ask(broker, { credentials: 'users' });
    const ann = basic('ann', 'secret of ann');
    const vic = basic('vic', 'secret of vic');
    assert.equal((await call('POST', PUBLISH, { authorization: ann })).status, 200);
    assert.equal((await call('GET', '/clients', { authorization: vic })).status, 200);
    const refused = await call('POST', PUBLISH, { authorization: vic });
    assert.deepEqual([refused.status, refused.body.code], [403, 103]);
    assert.equal((await call('GET', '/clients')).status, 401, 'applications are not asked');
    await broker.users.update('vic', 'administrator');
    assert.equal((await call('POST', PUBLISH, { authorization: vic })).status, 200);
    await broker.users.changePassword('ann', 'secret of ann', 'another secret');
    assert.equal((await call('POST', PUBLISH, { authorization: ann })).status, 401);
    assert.equal((await call('POST', PUBLISH, { authorization: basic('ann', 'another secret') })).status, 200);
  });

  it('lets viewers check a login and change their own password, and nothing else', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    const { broker, clock } = kit;
    await broker.users.create('ann', 'secret of ann', 'administrator');
    await broker.users.create('vic', 'secret of vic', 'viewer');
    await using server = await serveManagement(broker, { credentials: 'users', revision: 'later' });
    const call = async (method: string, path: string, body: unknown, authorization = basic('vic', 'secret of vic')) => {
      const answer = await server.call(method, `/api${path}`, body, { authorization });
      return [answer.status, answer.body.code];
    };
    const login = (username: string, password: string) => call('POST', '/auth', { username, password });
    const change = { old_pwd: 'secret of vic', new_pwd: 'another secret' };
    assert.deepEqual(await login('vic', 'secret of vic'), [200, 0]);
    assert.deepEqual(await login('ann', 'secret of ann'), [200, 0]);
    assert.deepEqual(await call('PUT', '/change_pwd/ann', { ...change, old_pwd: 'secret of ann' }), [403, 103]);
    assert.deepEqual(await call('PUT', '/change_pwd/Vic', change), [403, 103]);
    assert.deepEqual(await call('PUT', '/change_pwd/vic', { ...change, old_pwd: 'wrong' }), [400, 114]);
    for (const [method, path, body] of [
      ['POST', '/users', { username: 'new', password: 'a password' }],
      ['PUT', '/users/vic', { tags: 'administrator' }],
      ['DELETE', '/users/vic', undefined],
      ['POST', '/auth_username', { username: 'u', password: 'p' }],
      ['POST', '/mqtt/publish', { clientid: 'c', topic: 't', payload: '' }],
      ['POST', '/no_such_path', {}]
    ] as const)
      assert.deepEqual(await call(method, path, body), [403, 103], `${method} ${path}`);
    assert.equal(broker.users.get('ann')?.role, 'administrator');
    for (let n = 0; n < 9; n++) assert.deepEqual(await login('ann', `guess ${n}`), [401, 103]);
    assert.equal((await login('ann', 'secret of ann'))[0], 429, 'wrong passwords count as failed logins');
    await clock.advance('1m');
    assert.deepEqual(await call('PUT', '/change_pwd/vic', change), [200, 0]);
    assert.equal((await call('POST', '/auth', {}))[0], 401, 'the old password is no longer accepted');
    const vic = basic('vic', 'another secret');
    assert.deepEqual(await call('POST', '/auth', { username: 'vic', password: 'another secret' }, vic), [200, 0]);
  });

  it('does not let a viewer that a function accepted change the password of a user with the same name', async () => {
    await using broker = await startBroker();
    await broker.users.create('vic', 'secret of vic', 'viewer');
    await using server = await serveManagement(broker, { credentials: () => 'viewer' });
    const headers = { authorization: basic('vic', 'x') };
    const body = { old_pwd: 'secret of vic', new_pwd: 'another secret' };
    assert.equal((await server.call('PUT', '/api/change_pwd/vic', body, headers)).status, 403);
  });

  it('accepts credentials of applications and of users', async () => {
    await using broker = await startBroker();
    await broker.users.create('vic', 'secret of vic', 'viewer');
    await broker.users.create('app', 'the user app', 'viewer');
    const call = ask(broker, { credentials: ['applications', 'users'] });
    assert.equal((await call('POST', PUBLISH)).status, 200);
    for (const authorization of [basic('vic', 'secret of vic'), basic('app', 'the user app')]) {
      assert.equal((await call('GET', '/clients', { authorization })).status, 200);
      assert.equal((await call('POST', PUBLISH, { authorization })).status, 403);
    }
    assert.equal((await call('GET', '/clients', { authorization: basic('nobody', 'x') })).status, 401);
  });

  it('rejects the credentials of an application once it is disabled, deleted or expired', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    const { broker, clock } = kit;
    await broker.applications.create({ id: 'app', secret: 'a secret', expiresAt: clock.now() + 2_000 });
    const call = ask(broker);
    const status = async () => (await call('GET', '/clients')).status;
    assert.equal(await status(), 200);
    await clock.advance('2s');
    assert.equal(await status(), 401);
    await broker.applications.update('app', { expiresAt: undefined });
    assert.equal(await status(), 200);
    await broker.applications.update('app', { isEnabled: false });
    assert.equal(await status(), 401);
    await broker.applications.update('app', { isEnabled: true });
    assert.equal(await status(), 200);
    await broker.applications.delete('app');
    assert.equal(await status(), 401);
  });

  it('passes the address of the client to a function that checks credentials', async () => {
    await using broker = await startBroker();
    const asked: unknown[] = [];
    const call = ask(broker, {
      trustedProxies: '10.0.0.0/8',
      credentials: (id, secret, { remoteAddress }) => {
        asked.push([id, secret, remoteAddress]);
        return id === 'v' ? 'viewer' : id === 'a';
      }
    });
    const from = { from: '10.0.0.1', headers: { 'x-forwarded-for': '192.0.2.1' } };
    assert.equal((await call('POST', PUBLISH, { ...from, authorization: basic('a', 'p:q') })).status, 200);
    assert.equal((await call('POST', PUBLISH, { ...from, authorization: basic('v', '') })).status, 403);
    assert.equal((await call('GET', '/clients', { ...from, authorization: basic('x', '') })).status, 401);
    assert.deepEqual(asked, [
      ['a', 'p:q', '192.0.2.1'],
      ['v', '', '192.0.2.1'],
      ['x', '', '192.0.2.1']
    ]);
  });

  it('requires credentials for creating applications and users with every option, because these may load code', async () => {
    const GRANTS = [
      ['POST', '/apps', { app_id: 'mine', name: 'Mine', secret: 'my secret' }],
      ['PUT', '/apps/reports', { secret: 'my secret' }],
      ['POST', '/users', { username: 'mine', password: 'my password', tags: 'administrator' }],
      ['PUT', '/users/vic', { tags: 'administrator' }],
      ['POST', '/x/import', { format: 'embermq-configuration', version: 1, sections: {} }]
    ] as const;
    for (const [credentials, scope] of [
      ['none', undefined],
      ['remote', undefined],
      ['host', undefined],
      ['host', 'viewer'],
      [() => true, undefined]
    ] as const) {
      await using broker = await startBroker();
      await broker.applications.create({ id: 'reports', secret: 'of reports' });
      await broker.users.create('vic', 'secret of vic', 'viewer');
      const { fetch } = managementApi(broker, { prefix: '/api', credentials });
      const send = async (method: string, path: string, body: object, authorization = basic('x', 'y')) => {
        const headers = credentials === 'host' || authorization === AUTHORIZATION ? { authorization } : undefined;
        const init = { method, headers: typeof credentials === 'function' ? { authorization } : headers };
        const request = new Request(`http://127.0.0.1/api${path}`, {
          ...init,
          body: JSON.stringify(body)
        } as RequestInit);
        return (await fetch(request, { remoteAddress: '127.0.0.1', ...(scope === undefined ? {} : { scope }) })).status;
      };
      const before = [broker.applications.changes, broker.users.changes];
      for (const [method, path, body] of GRANTS)
        assert.equal(await send(method, path, body), 401, `${credentials} ${path}`);
      assert.deepEqual([broker.applications.changes, broker.users.changes], before);
      if (scope !== undefined) continue;
      for (const [method, path, body] of GRANTS)
        assert.equal(await send(method, path, body, AUTHORIZATION), 200, `${credentials} ${path}`);
    }
  });

  it('lets no one in if the host app names an unknown scope', async () => {
    await using broker = await startBroker();
    const { fetch } = managementApi(broker, { prefix: '/api', credentials: 'host' });
    for (const scope of ['readonly', 'Viewer', '', null, true])
      for (const method of ['GET', 'DELETE']) {
        const request = new Request('http://127.0.0.1/api/clients', { method });
        assert.equal((await fetch(request, { scope: scope as never })).status, 403, String(scope));
      }
  });

  it('distinguishes wrong from missing credentials', async () => {
    await using broker = await startBroker();
    await broker.users.create('ann', 'secret of ann', 'administrator');
    const wrong = 'the id or the secret is wrong';
    for (const [credentials, authorization, message] of [
      ['applications', '', /^HTTP Basic credentials of an application are needed$/],
      ['applications', 'Bearer x', /^HTTP Basic credentials of an application are needed$/],
      ['applications', basic('app', 'x'), wrong],
      ['applications', basic('nobody', 'a secret'), wrong],
      ['applications', basic('ann', 'secret of ann'), wrong],
      ['users', basic('ann', 'x'), wrong],
      [['applications', 'users'], basic('nobody', 'x'), wrong],
      ['remote', basic('app', 'x'), wrong],
      ['remote', '', /are needed: requests that are not from this machine/],
      [() => false, basic('app', 'x'), wrong],
      [() => false, '', /^HTTP Basic credentials are needed$/]
    ] as const) {
      const call = ask(broker, { credentials } as ManagementOptions);
      const { status, body } = await call('GET', '/clients', { authorization, from: '192.0.2.1' });
      assert.deepEqual([status, body.code], [401, 103]);
      if (typeof message === 'string') assert.equal(body.message, message, `${credentials} ${authorization}`);
      else assert.match(body.message, message);
    }
  });

  it('rejects the previous secret of an application at once when PUT /apps changes it, even if it is cached', async () => {
    await using broker = await startBroker();
    await broker.applications.create({ id: 'other', secret: 'secret of other' });
    const { fetch } = managementApi(broker, { prefix: '/api' });
    const { fetch: rules } = streamsApi(broker);
    const old = basic('other', 'secret of other');
    const asks = async (authorization: string) => {
      const headers = { authorization };
      const [first, second] = [
        new Request('http://host/api/nodes', { headers }),
        new Request('http://host/rules', { headers })
      ];
      return [(await fetch(first)).status, (await rules(second)).status];
    };
    assert.deepEqual(await asks(old), [200, 200]);
    const body = JSON.stringify({ secret: 'another secret' });
    const headers = { authorization: old };
    assert.equal(
      (await fetch(new Request('http://host/api/apps/other', { method: 'PUT', body, headers }))).status,
      200
    );
    assert.deepEqual(await asks(old), [401, 401]);
    assert.deepEqual(await asks(basic('other', 'another secret')), [200, 200]);
    assert.deepEqual(await asks(AUTHORIZATION), [200, 200]);
  });

  it('refuses all requests if no credentials exist, and reports the remedy once', async () => {
    for (const [credentials, remedy] of [
      ['applications', /the broker has none: add one with embermq serve --app ID:SECRET, or in the app that runs the/],
      [
        'remote',
        /application or user .*the broker has none: add one with embermq serve --app ID:SECRET, or in the app/
      ],
      [
        'users',
        /of a user .*the broker has none: add one with POST \/users of an interface that accepts applications, or/
      ]
    ] as const) {
      await using broker = createBroker();
      const errors: string[] = [];
      broker.on('error', ({ error }) => errors.push((error as { code?: string }).code ?? ''));
      await broker.start();
      const call = ask(broker, { credentials });
      for (const authorization of ['', basic('app', 'x')]) {
        const { status, body } = await call('GET', '/clients', { authorization, from: '192.0.2.1' });
        assert.equal(status, 401);
        assert.match(body.message, remedy);
      }
      assert.deepEqual(errors, ['NO_CREDENTIALS']);
    }
  });
});

describe('Failed logins', () => {
  const wrong = { authorization: basic('app', 'guess') };

  it('limits guesses of credentials that are used at another address', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    await kit.broker.applications.create({ id: 'app', secret: 'a secret' });
    const call = ask(kit.broker);
    const status = async (authorization: string, from: string) =>
      (await call('GET', '/clients', { authorization, from })).status;
    const right = basic('app', 'a secret');
    assert.equal(await status(right, '192.0.2.1'), 200);
    for (let n = 0; n < 10; n++) assert.equal(await status(basic('app', `${n}`), '192.0.2.2'), 401);
    assert.equal(await status(right, '192.0.2.2'), 429, 'a moment later');
    await kit.clock.advance('10s');
    assert.equal(await status(right, '192.0.2.2'), 429, 'when the secret is checked again');
    assert.equal(await status(right, '192.0.2.1'), 200);
  });

  it('limits failed logins for each id at an address for a minute', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    await kit.broker.applications.create({ id: 'app', secret: 'a secret' });
    const call = ask(kit.broker);
    for (let n = 0; n < 10; n++)
      assert.equal(
        (await call('GET', '/clients', { authorization: basic('app', `${n}`), from: '192.0.2.1' })).status,
        401
      );
    const refused = await call('GET', '/clients', { from: '192.0.2.1' });
    assert.deepEqual([refused.status, refused.body.code, refused.headers.get('retry-after')], [429, 103, '60']);
    assert.equal((await call('GET', '/clients', { from: '192.0.2.2' })).status, 200);
    await kit.clock.advance('61s');
    assert.equal((await call('GET', '/clients', { from: '192.0.2.1' })).status, 200);
  });

  it('counts failed logins for all interfaces of the broker together, except those that ask a function of the app', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    const { broker } = kit;
    await broker.applications.create({ id: 'app', secret: 'a secret' });
    const status = async (handle: HttpMounts['fetch'], path: string, secret: string) => {
      const headers = { authorization: basic('app', secret) };
      return (await handle(new Request(`http://localhost${path}`, { headers }), { remoteAddress: '192.0.2.1' })).status;
    };
    const credentials = 'applications';
    const management = managementApi(broker, { prefix: '/api/v4', credentials });
    const earlier = managementApi(broker, { revision: 'earlier', prefix: '/api/v3', credentials });
    const metrics = metricsHandler(broker, { credentials });
    for (let n = 0; n < 4; n++) {
      assert.equal(await status(management.fetch, '/api/v4/clients', `${n}`), 401);
      assert.equal(await status(earlier.fetch, '/api/v3/clients', `earlier ${n}`), 401);
    }
    assert.equal(await status(metrics.fetch, '/metrics', 'one'), 401);
    assert.equal(await status(streamsApi(broker).fetch, '/rules', 'two'), 401);
    for (const [{ fetch }, path] of [
      [management, '/api/v4/clients'],
      [earlier, '/api/v3/clients'],
      [metrics, '/metrics'],
      [streamsApi(broker), '/rules']
    ] as const)
      assert.equal(await status(fetch, path, 'three'), 429, path);
    const ofApp = managementApi(broker, { prefix: '/api/v4', credentials: () => false });
    assert.equal(await status(ofApp.fetch, '/api/v4/clients', 'four'), 401);
  });

  it('still accepts credentials that were right before', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    await kit.broker.applications.create({ id: 'app', secret: 'a secret' });
    const call = ask(kit.broker);
    assert.equal((await call('GET', '/clients')).status, 200);
    await kit.clock.advance('10s');
    for (let n = 0; n < 10; n++) await call('GET', '/clients', { authorization: basic('app', `${n}`) });
    assert.equal((await call('GET', '/clients', wrong)).status, 429);
    assert.equal((await call('GET', '/clients')).status, 200);
  });

  it('refuses only the id of the failed logins, until a hundred have failed for all ids, known or not', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    await kit.broker.applications.create({ id: 'app', secret: 'a secret' });
    await kit.broker.applications.create({ id: 'other', secret: 'other secret' });
    const call = ask(kit.broker);
    const status = async (id: string, secret: string, from = '192.0.2.1') =>
      (await call('GET', '/clients', { authorization: basic(id, secret), from })).status;
    for (let n = 0; n < 10; n++) assert.equal(await status('app', `${n}`), 401);
    assert.equal(await status('app', 'a secret'), 429);
    assert.equal(await status('other', 'other secret'), 200);
    for (let n = 0; n < 90; n++) assert.equal(await status(`unknown ${n}`, 'x'), 401);
    assert.equal(await status('unknown', 'x'), 429);
    assert.equal(await status('unknown', 'x', '192.0.2.2'), 401);
    await kit.clock.advance('61s');
    assert.equal(await status('app', 'a secret'), 200);
  });

  it('keeps credentials accepted when another identity changes, but not when their own secret does', async () => {
    await using kit = await createTestBroker({ passwordCost: 10 });
    const { applications } = kit.broker;
    await applications.create({ id: 'app', secret: 'a secret' });
    await applications.create({ id: 'other', secret: 'other secret' });
    const call = ask(kit.broker);
    assert.equal((await call('GET', '/clients')).status, 200);
    for (let n = 0; n < 10; n++) await call('GET', '/clients', { authorization: basic('app', `${n}`) });
    await applications.delete('other');
    assert.equal((await call('GET', '/clients')).status, 200);
    await applications.update('app', { isEnabled: false });
    assert.equal((await call('GET', '/clients')).status, 401);
    assert.equal((await call('GET', '/clients')).status, 429);
    await kit.clock.advance('61s');
    await applications.update('app', { isEnabled: true });
    assert.equal((await call('GET', '/clients')).status, 200);
    for (let n = 0; n < 10; n++) await call('GET', '/clients', { authorization: basic('app', `${n}`) });
    await applications.setSecret('app', 'new secret');
    assert.equal((await call('GET', '/clients')).status, 401);
    assert.equal((await call('GET', '/clients', { authorization: basic('app', 'new secret') })).status, 429);
  });

  it('enforces the limit for logins sent at the same time', async () => {
    await using broker = await startBroker();
    let checked = 0;
    const call = ask(broker, {
      credentials: async () => {
        checked++;
        return false;
      }
    });
    const tries = Array.from({ length: 50 }, (_, n) =>
      call('GET', '/clients', { authorization: basic('app', `${n}`) })
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 401).length, 10);
    assert.equal(statuses.filter((status) => status === 429).length, 40);
    assert.equal(checked, 10);
  });

  it('does not count many valid logins sent at the same time', async () => {
    await using broker = await startBroker();
    const call = ask(broker, { credentials: async () => true });
    const tries = Array.from({ length: 50 }, (_, n) =>
      call('GET', '/clients', { authorization: basic('app', `${n}`) })
    );
    assert.deepEqual([...new Set((await Promise.all(tries)).map(({ status }) => status))], [200]);
  });

  it('does not count requests without Basic credentials', async () => {
    await using broker = await startBroker();
    const call = ask(broker);
    for (let n = 0; n < 12; n++) {
      assert.equal((await call('GET', '/clients', { authorization: 'Bearer x' })).status, 401);
      assert.equal((await call('GET', '/clients', { authorization: '' })).status, 401);
    }
    assert.equal((await call('GET', '/clients')).status, 200);
  });

  const proxies: [from: string | undefined, forwarded: string, source: string][] = [
    ['192.0.2.9', '198.51.100.1', 'the connection: the header of others does not count'],
    ['10.0.0.1', '198.51.100.1', 'the header'],
    ['::ffff:10.0.0.1', '203.0.113.5, 198.51.100.1:4711, 10.0.0.7', 'the last one before the proxies'],
    [undefined, '[2001:db8::1]:99', 'the header behind a Unix socket'],
    ['10.0.0.1', 'unknown', 'the proxy, if the header has no address']
  ];
  for (const [from, forwarded, source] of proxies)
    it(`counts failed logins for ${source} (${from ?? 'no address'}, "${forwarded}")`, async () => {
      await using broker = await startBroker();
      const seen: (string | undefined)[] = [];
      const call = ask(broker, {
        trustedProxies: ['10.0.0.0/8', 'unix'],
        credentials: (_id, _secret, { remoteAddress }) => {
          seen.push(remoteAddress);
          return true;
        }
      });
      await call('GET', '/clients', {
        ...(from === undefined ? {} : { from }),
        headers: { 'x-forwarded-for': forwarded }
      });
      const expected: Record<string, string> = {
        '198.51.100.1': from === '192.0.2.9' ? '192.0.2.9' : '198.51.100.1',
        '203.0.113.5, 198.51.100.1:4711, 10.0.0.7': '198.51.100.1',
        '[2001:db8::1]:99': '2001:db8::1',
        unknown: '10.0.0.1'
      };
      assert.deepEqual(seen, [expected[forwarded]]);
    });

  it('counts failed logins for the 64-bit network of an IPv6 address', async () => {
    await using broker = await startBroker();
    const call = ask(broker, { credentials: () => false });
    for (let n = 1; n <= 10; n++) await call('GET', '/clients', { from: `2001:db8::${n}` });
    // all requests have the same credentials, but they are checked one after the other
    assert.equal((await call('GET', '/clients', { from: '2001:db8:0:0:ffff::1' })).status, 429);
    assert.equal((await call('GET', '/clients', { from: '2001:db8:0:1::1' })).status, 401);
  });
});

describe('Web pages', () => {
  it('lets pages change something if their origin is that of the server, or allowed', async () => {
    await using broker = await startBroker();
    const call = ask(broker, { origins: ['https://app.example', 'null'] });
    const from = (origin: string, url = 'http://host') =>
      call('POST', PUBLISH, { headers: { origin }, url }).then(({ status }) => status);
    assert.equal(await from('http://host'), 200);
    assert.equal(await from('https://host'), 200); // the server does not know the protocol of a proxy in front of it
    assert.equal(await from('http://host:8081', 'http://host:8081'), 200);
    assert.equal(await from('https://app.example'), 200);
    assert.equal(await from('null'), 200);
    assert.equal(await from('http://host:1'), 403);
    assert.equal(await from('https://evil.example'), 403);
    assert.equal(await from('https://host.evil.example'), 403);
    assert.equal(await from('rubbish'), 403);
    assert.equal((await call('GET', '/clients', { headers: { origin: 'https://evil.example' } })).status, 200);
    const any = ask(broker, { origins: 'any' });
    assert.equal((await any('POST', PUBLISH, { headers: { origin: 'https://evil.example' } })).status, 200);
  });

  it('lets pages of another site change nothing without an Origin header, and everything that origins allow with it', async () => {
    await using broker = await startBroker();
    const call = ask(broker, { origins: ['https://app.example'] });
    const site = (value: string) => ({ headers: { 'sec-fetch-site': value } });
    for (const [method, path] of [
      ['POST', PUBLISH],
      ['PUT', '/configs/x'],
      ['DELETE', '/clients/x']
    ] as const) {
      const { status, body } = await call(method, path, site('cross-site'));
      assert.equal(status, 403, method);
      assert.match(body.message, /^a page of another site has sent this request without the header Origin/);
    }
    assert.equal((await call('GET', '/clients', site('cross-site'))).status, 200);
    assert.equal((await call('POST', PUBLISH, site('same-site'))).status, 200);
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://app.example' };
    assert.equal((await call('POST', PUBLISH, { headers })).status, 200);
  });

  it('lets pages reach a mount without credentials only by an IP address, localhost, or a name in the option hosts', async () => {
    await using broker = await startBroker();
    const statuses = async (options: ManagementOptions, hosts: readonly string[]) => {
      const call = ask(broker, options);
      return Promise.all(
        hosts.map(async (host) => (await call('GET', '/clients', { url: `http://${host}`, authorization: '' })).status)
      );
    };
    const own = ['127.0.0.1:8081', '[::1]:8081', '192.0.2.1', 'localhost', 'LOCALHOST:1', 'localhost.'];
    assert.deepEqual(await statuses({ credentials: 'none' }, own), [200, 200, 200, 200, 200, 200]);
    const names = ['broker.example', 'broker.example:8081', 'evil.example', 'localhost.evil.example'];
    assert.deepEqual(await statuses({ credentials: 'none' }, names), [403, 403, 403, 403]);
    assert.deepEqual(await statuses({ credentials: 'none', hosts: 'Broker.Example' }, names), [200, 200, 403, 403]);
    assert.deepEqual(await statuses({ credentials: 'host' }, names), [200, 200, 200, 200]);
    assert.deepEqual(await statuses({ credentials: 'host', hosts: 'broker.example' }, names), [200, 200, 403, 403]);
  });

  it('recognizes pages by the Host header on node:http', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api', credentials: 'none' }).node);
    const ask = (host: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const options = { port: server.port, host: '127.0.0.1', path: '/api/clients', headers: { host } };
        httpRequest(options, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on('error', reject)
          .end();
      });
    assert.deepEqual([await ask('localhost'), await ask('evil.example'), await ask('a b')], [200, 403, 403]);
  });
});

describe('Operations for applications', () => {
  it('refuses operations for applications and does not list them where they are switched off', async () => {
    await using broker = await startBroker();
    const rows = (await ask(broker)('GET', '/')).body.data as { method: string; path: string }[];
    const call = ask(broker, { appOperations: false });
    const listed = (await call('GET', '/')).body.data as { path: string }[];
    const isForApplications = ({ path }: { path: string }) => /^\/?apps(\/|$)/.test(path);
    assert.deepEqual(listed.filter(isForApplications), []);
    for (const { method, path } of rows.filter(isForApplications)) {
      const { status, body } = await call(method, `/${path.replace(/^\//, '')}`);
      assert.deepEqual([status, body.code], [403, 103], `${method} ${path}`);
    }
  });
});

describe('Options of the management interface', () => {
  const wrong: [name: string, options: object][] = [
    ['credentials', { credentials: 'everyone' }],
    ['credentials', { credentials: [] }],
    ['credentials', { credentials: ['host'] }],
    ['trustedProxies', { trustedProxies: '10.0.0.0/33' }],
    ['trustedProxies', { trustedProxies: ['proxy.example'] }],
    ['origins', { origins: 'https://app.example/path' }],
    ['origins', { origins: 'https://*.example' }],
    ['hosts', { hosts: 'https://broker.example' }],
    ['hosts', { hosts: 'broker.example:80' }],
    ['appOperations', { appOperations: 'perhaps' }],
    ['prefix', { prefix: 'api' }]
  ];
  for (const [name, options] of wrong)
    it(`rejects the options ${JSON.stringify(options)}`, async () => {
      await using broker = createBroker();
      assert.throws(
        () => managementApi(broker, options),
        (error: { code: string; field: string }) => {
          assert.deepEqual([error.code, error.field], ['OPTION_INVALID', `managementApi.${name}`]);
          return true;
        }
      );
    });
});
