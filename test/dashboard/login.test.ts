import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuditEntry } from 'embermq';
import { PASSWORD, startConsole } from '../support/dashboard.ts';

const basic = (id: string, password = PASSWORD) => ({
  authorization: `Basic ${Buffer.from(`${id}:${password}`).toString('base64')}`
});

describe('The login to the console', () => {
  it('opens a session with the name and the password of a management user', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    const before = await browser.send('GET', '/session');
    assert.deepEqual([before.status, before.body.code], [401, 103]);
    const answer = await browser.login('ann');
    const { node } = server.broker.settings;
    const { version, startedAt } = server.broker;
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const expected = {
      id: 'ann',
      scope: 'administrator',
      node,
      version,
      startedAt,
      viewerPayloads: true,
      hasPassword: true,
      upgrades: 'untried',
      timeZone
    };
    assert.deepEqual([answer.status, answer.body], [200, expected]);
    assert.deepEqual((await browser.send('GET', '/session')).body, expected);
    const viewer = server.browser();
    assert.equal((await viewer.login('bob')).body.scope, 'viewer');
  });

  it('answers a wrong login of the page with a challenge for which browsers show no dialog', async () => {
    await using server = await startConsole();
    const wrong = { id: 'ann', password: 'wrong' };
    const answer = await server.browser().send('POST', '/login', wrong);
    assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [401, 'Session realm="embermq"']);
    const headers = { 'content-type': 'application/json' };
    const ofProgram = await server.call('POST', '/login', wrong, headers);
    assert.match(ofProgram.headers.get('www-authenticate') ?? '', /^Basic /);
  });

  it('sets a cookie that scripts cannot read and other sites do not send, for the path of the mount', async () => {
    await using server = await startConsole({ prefix: '/console' });
    const browser = server.browser();
    await browser.login('ann', PASSWORD, '/console');
    assert.match(
      browser.setCookie ?? '',
      /^embermq-[0-9a-f]{16}=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Strict$/
    );
    assert.equal((await browser.send('GET', '/console/session')).status, 200);
  });

  it('sets a secure cookie for a page that the browser has over TLS, also behind a proxy that removes TLS', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    const headers = { host: 'console.example', origin: 'https://console.example' };
    await browser.send('POST', '/login', { id: 'ann', password: PASSWORD }, headers);
    assert.match(browser.setCookie ?? '', /^__Secure-embermq-\w+=.*; Secure$/);
    assert.equal((await browser.send('GET', '/session')).status, 200);
  });

  it('gives brokers with other names another cookie, since all ports of a machine share the cookies', async () => {
    const names = new Set<string | undefined>();
    for (const node of ['a@host', 'b@host']) {
      await using server = await startConsole({}, { node });
      const browser = server.browser();
      await browser.login('ann');
      names.add(browser.cookie?.split('=')[0]);
    }
    assert.equal(names.size, 2);
  });

  it('accepts the session, and HTTP Basic of a user, in the two interfaces below the mount', async () => {
    await using server = await startConsole({ prefix: '/console' });
    const browser = server.browser();
    await browser.login('bob', PASSWORD, '/console');
    for (const path of ['/console/api/clients', '/console/streams/rules']) {
      assert.equal((await browser.send('GET', path)).status, 200, path);
      assert.equal((await server.call('GET', path, undefined, basic('bob'))).status, 200, path);
      assert.equal((await server.call('GET', path, undefined, basic('bob', 'wrong'))).status, 401, path);
      assert.equal((await server.call('GET', path, undefined, {})).status, 401, path);
    }
  });

  it('lets administrators change something, with their name in the audit log, and viewers only read', async () => {
    await using server = await startConsole();
    const ban = { who: 'x', as: 'clientid' };
    const viewer = server.browser();
    await viewer.login('bob');
    const refused = await viewer.send('POST', '/api/banned', ban);
    assert.equal(refused.status, 403);
    const administrator = server.browser();
    await administrator.login('ann');
    assert.equal((await administrator.send('POST', '/api/banned', ban)).status, 200);
    const entries = server.broker.monitor.audit
      .list()
      .entries.map(({ operation, caller, status }) => [operation, caller.kind, caller.id, status]);
    assert.deepEqual(entries, [
      ['create_banned', 'user', 'ann', 200],
      ['login', 'user', 'ann', 200],
      ['create_banned', 'user', 'bob', 403],
      ['login', 'user', 'bob', 200]
    ]);
  });

  it('lets the session of an administrator make users, but not that of a viewer', async () => {
    await using server = await startConsole();
    const user = { username: 'eve', password: 'another one', tags: 'administrator' };
    const viewer = server.browser();
    await viewer.login('bob');
    assert.equal((await viewer.send('POST', '/api/users', user)).status, 403);
    const administrator = server.browser();
    await administrator.login('ann');
    assert.equal((await administrator.send('POST', '/api/users', user)).status, 200);
  });

  it('refuses changes that pages of other origins send with the cookie', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    await browser.login('ann');
    for (const headers of [{ origin: 'http://127.0.0.1:1' }, { origin: 'null' }, { origin: 'https://evil.example' }])
      for (const [path, body] of [
        ['/api/banned', { who: 'x', as: 'clientid' }],
        ['/streams/rules', {}],
        ['/logout', {}],
        ['/login', { id: 'ann', password: PASSWORD }]
      ] as const)
        assert.equal((await browser.send('POST', path, body, headers)).status, 403, path);
    assert.equal((await browser.send('GET', '/session')).status, 200);
  });

  it('asks the page to log in without the dialog of the browser, and others for HTTP Basic', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    for (const path of ['/session', '/api/clients', '/streams/rules']) {
      const answer = await browser.send('GET', path);
      assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [401, 'Session realm="embermq"'], path);
    }
    for (const path of ['/api/clients', '/streams/rules']) {
      const answer = await server.call('GET', path, undefined, {});
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Basic /, path);
    }
  });

  it('refuses wrong credentials, and limits them together with those of the interfaces', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    for (let at = 0; at < 5; at++) assert.equal((await browser.login('ann', `wrong ${at}`)).status, 401);
    for (let at = 5; at < 10; at++)
      assert.equal((await server.call('GET', '/api/clients', undefined, basic('ann', `wrong ${at}`))).status, 401);
    const limited = await browser.login('ann');
    assert.deepEqual([limited.status, limited.headers.get('retry-after')], [429, '60']);
    assert.equal((await browser.login('bob')).status, 200);
  });

  it('names what is wrong with the body of a login', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    const cases: [body: unknown, status: number, message: RegExp][] = [
      ['{', 400, /not valid JSON/],
      ['[]', 400, /"id" and "password"/],
      [{ id: 'ann' }, 400, /"id" and "password"/],
      [{ id: 'ann', password: 'x'.repeat(20_000) }, 413, /larger than 16384 bytes/]
    ];
    for (const [body, status, message] of cases) {
      const answer = await browser.send('POST', '/login', body);
      assert.equal(answer.status, status);
      assert.match(answer.body.message, message);
    }
  });

  it('ends the session at the logout', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    await browser.login('ann');
    const { cookie } = browser;
    assert.equal((await browser.send('POST', '/logout', {})).status, 200);
    assert.match(browser.setCookie ?? '', /Max-Age=0/);
    assert.equal((await browser.send('GET', '/session', undefined, { cookie: cookie ?? '' })).status, 401);
  });

  it('records logins and logouts in the audit log, and calls the option audit with them and with all changes', async () => {
    const told: AuditEntry[] = [];
    await using server = await startConsole({ audit: (entry) => void told.push(entry) });
    const browser = server.browser();
    await browser.send('POST', '/logout', {}); // without a session
    await browser.login('ann', 'wrong');
    await browser.login('ann');
    await browser.send('POST', '/api/banned', { who: 'x', as: 'clientid' });
    await browser.send('DELETE', '/streams/rules/none');
    await browser.send('POST', '/logout', {});
    const { entries } = server.broker.monitor.audit.list();
    assert.deepEqual(told, [...entries].reverse());
    assert.deepEqual(
      told.map(({ request, caller }) => [request, caller.id]),
      ['POST /login', 'POST /banned', 'DELETE /rules/:id', 'POST /logout'].map((request) => [request, 'ann'])
    );
    const [{ at, ...login }] = told;
    assert.deepEqual(login, {
      number: 1,
      count: 1,
      operation: 'login',
      caller: { kind: 'user', id: 'ann' },
      address: '127.0.0.1',
      request: 'POST /login',
      parameters: {},
      status: 200,
      code: 0
    });
  });

  it('answers no request for the session under a name of an attacker, with the option hosts', async () => {
    await using server = await startConsole({ hosts: 'console.example' });
    const browser = server.browser();
    await browser.login('ann');
    for (const [host, status] of [
      ['console.example', 200],
      ['evil.example', 403]
    ] as const)
      assert.equal((await browser.send('GET', '/session', undefined, { host })).status, status, host);
  });
});

describe('The shell of the console', () => {
  it('answers the address of every view with the page, without a login and with a base that leads to the mount', async () => {
    await using server = await startConsole({ prefix: '/console' });
    const cases = [
      ['/console/', './'],
      ['/console/clients', './'],
      ['/console/clients/a.b', '../'],
      ['/console/topics/a%2Fb//c', '../../../']
    ] as const;
    for (const [path, base] of cases) {
      const answer = await server.call('GET', path, undefined, { accept: 'text/html,*/*;q=0.8' });
      assert.equal(answer.status, 200, path);
      assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
      assert.ok(answer.text.includes(`<base href="${base}">`), `${path}: ${answer.text}`);
      const reached = new URL(base, new URL(path, 'http://host')).pathname;
      assert.equal(reached, '/console/');
    }
  });

  it('allows no inline code, no other server and no frame', async () => {
    await using server = await startConsole();
    const { headers } = await server.call('GET', '/', undefined, {});
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
  });

  it('redirects from the mount without a slash to the one with it', async () => {
    await using server = await startConsole({ prefix: '/tools/console' });
    const answer = await server.call('GET', '/tools/console?q=1', undefined, { accept: 'text/html' });
    assert.equal(answer.status, 308);
    const location = answer.headers.get('location') ?? '';
    assert.equal(new URL(location, 'http://host/tools/console').href, 'http://host/tools/console/?q=1');
  });

  it('answers unknown paths with 404, unless the app has them', async () => {
    await using server = await startConsole({ prefix: '/console' });
    for (const [method, path] of [
      ['GET', '/console/nothing'],
      ['GET', '/console/assets/main-0.js'],
      ['POST', '/console/clients'],
      ['GET', '/elsewhere']
    ] as const)
      assert.equal((await server.call(method, path, undefined, {})).status, 404, path);
    const wrong = await server.call('GET', '/console/login', undefined, {});
    assert.deepEqual([wrong.status, wrong.headers.get('allow')], [404, 'POST']);
  });
});
