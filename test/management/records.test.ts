import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from 'embermq';
import type { RevisionName } from 'embermq/management';
import { ACL } from '../../adapters/management/operations/acl.ts';
import { ALARMS } from '../../adapters/management/operations/alarms.ts';
import { APPLICATIONS } from '../../adapters/management/operations/applications.ts';
import { BANNED } from '../../adapters/management/operations/banned.ts';
import { CREDENTIALS } from '../../adapters/management/operations/credentials.ts';
import { withNodeForms } from '../../adapters/management/operations/on-node.ts';
import { USERS } from '../../adapters/management/operations/users.ts';
import { Router } from '../../adapters/rest/index.ts';
import { check } from '../../adapters/rest/kit/index.ts';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS: readonly RevisionName[] = ['earlier', 'later', 'hosted'];
const DONE = { code: 0 };
const SHA256 = /^[0-9a-f]{64}$/;
const LOCAL_TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/;

type Server = Awaited<ReturnType<typeof serveManagement>>;
type Request = [method: string, path: string, body: unknown];

const rows = new Router([...ACL, ...withNodeForms(ALARMS), ...APPLICATIONS, ...BANNED, ...CREDENTIALS, ...USERS]);

/** Send a request that succeeds, and check that the data of the answer has the documented shape. */
async function ask(server: Server, method: string, path: string, body?: unknown) {
  const answer = await server.call(method, `/api${path}`, body);
  assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`);
  assert.equal(answer.body.code, 0, `${method} ${path}: ${answer.text}`);
  const { data } = rows.find(method, path.replace(/\?.*/, ''))?.row ?? {};
  if (data !== undefined && answer.body.data !== undefined) check(data, answer.body.data, `data of ${method} ${path}`);
  else assert.equal(answer.body.data, undefined);
  return answer.body;
}

/** Send requests that are refused, and check the status, the code, and the name in the message. */
async function refused(server: Server, cases: readonly [...Request, status: number, code: number, says: RegExp][]) {
  for (const [method, path, body, status, code, says] of cases) {
    const answer = await server.call(method, `/api${path}`, body);
    const request = `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`;
    assert.deepEqual([answer.status, answer.body?.code], [status, code], request);
    assert.match(answer.body.message, says, request);
  }
}

/** Send requests to an interface that answers as the original products do. All of them have status 200. */
async function askOriginal(broker: Broker, revision: RevisionName, cases: readonly [...Request, answer: unknown][]) {
  await using server = await serveManagement(broker, { revision, errors: 'original' });
  for (const [method, path, body, expected] of cases) {
    const answer = await server.call(method, `/api${path}`, body);
    assert.deepEqual(
      [answer.status, answer.body],
      [200, expected],
      `${revision}: ${method} ${path} ${JSON.stringify(body)}`
    );
  }
}

function meta(count: number, limit = 10_000) {
  return { page: 1, limit, count };
}

describe('The records of client ids and user names', () => {
  for (const revision of REVISIONS)
    for (const [field, kind] of [
      ['clientid', 'clientIds'],
      ['username', 'usernames']
    ] as const)
      it(`adds, lists, looks up, changes and deletes records of the ${kind} in the ${revision} revision`, async () => {
        await using broker = await startBroker();
        await using server = await serveManagement(broker, { revision });
        const path = `/auth_${field}`;
        const records = broker.access[kind];
        const isRight = (name: string, password: string) => records.verify(name, Buffer.from(password))?.isRight;
        assert.deepEqual(await ask(server, 'POST', path, { [field]: 'a/b', password: 'one' }), DONE);
        assert.equal(isRight('a/b', 'one'), true);
        const several = [
          { [field]: 'c', password: 'two' },
          { [field]: 'a/b', password: 'three' },
          { [field]: 'd', password: '' },
          { password: 'four' },
          { [field]: 'e' },
          { [field]: '__proto__', password: 'five' },
          { [field]: 'f', password: 'six', paswort: 'six' }
        ];
        const { data: results } = await ask(server, 'POST', path, several);
        assert.deepEqual(Object.entries(results), [
          ['c', 'ok'],
          ['a/b', '{error,existed}'],
          ['d', '{error,password}'],
          ['', '{error,login}'],
          ['e', '{error,password}'],
          ['__proto__', 'ok'],
          ['f', '{error,paswort}']
        ]);
        assert.deepEqual(await ask(server, 'GET', path), {
          code: 0,
          data: [{ [field]: 'a/b' }, { [field]: 'c' }, { [field]: '__proto__' }],
          meta: meta(3)
        });
        assert.deepEqual(await ask(server, 'GET', `${path}?_page=2&_limit=1`), {
          code: 0,
          data: [{ [field]: 'c' }],
          meta: { page: 2, limit: 1, count: 3 }
        });
        const { data: found } = await ask(server, 'GET', `${path}/a%2Fb`);
        assert.equal(found[field], 'a/b');
        assert.match(found.password, SHA256);
        assert.deepEqual(await ask(server, 'PUT', `${path}/a%2Fb`, { password: 'six' }), DONE);
        assert.deepEqual([isRight('a/b', 'one'), isRight('a/b', 'six')], [false, true]);
        assert.deepEqual(await ask(server, 'DELETE', `${path}/a%2Fb`), DONE);
        assert.equal(records.get('a/b'), undefined);
        await refused(server, [
          ['POST', path, { [field]: 'c', password: 'x' }, 400, 113, /"c"/],
          ['POST', path, { [field]: '', password: 'x' }, 400, 104, new RegExp(`"${field}"`)],
          ['POST', path, { [field]: 'x', password: '' }, 400, 104, /"password"/],
          ['POST', path, { password: 'x' }, 400, 107, new RegExp(`"${field}"`)],
          ['POST', path, { [field]: 5, password: 'x' }, 400, 108, new RegExp(`"${field}"`)],
          ['POST', path, { [field]: 'a\0', password: 'x' }, 400, 108, /U\+0000/],
          ['POST', path, 'null', 400, 108, /body/],
          ['POST', path, '[', 400, 109, /JSON/],
          ['PUT', `${path}/a%2Fb`, { password: 'x' }, 404, 105, /"a\/b"/],
          ['PUT', `${path}/c`, { password: '' }, 400, 104, /"password"/],
          ['PUT', `${path}/c`, {}, 400, 107, /"password"/],
          ['PUT', `${path}/c`, { password: 7 }, 400, 108, /"password"/],
          ['GET', `${path}/a%2Fb`, undefined, 404, 105, /"a\/b"/],
          ['DELETE', `${path}/a%2Fb`, undefined, 404, 105, /"a\/b"/]
        ]);
      });

  it('refuses records with the words of the original products', async () => {
    await using broker = await startBroker();
    await broker.access.clientIds.create('a', 'x');
    await broker.access.usernames.create('a', 'x');
    const same: [...Request, answer: unknown][] = [
      ['GET', '/auth_clientid/b', undefined, { code: 0, data: {} }],
      ['DELETE', '/auth_clientid/b', undefined, DONE],
      ['PUT', '/auth_clientid/b', { password: 'x' }, { message: 'noexitsted' }],
      ['PUT', '/auth_username/b', { password: 'x' }, { message: 'noexisted' }],
      ['PUT', '/auth_username/b', {}, { message: 'password' }]
    ];
    for (const revision of ['earlier', 'later'] as const)
      await askOriginal(broker, revision, [
        ...same,
        ['POST', '/auth_clientid', { clientid: 'a', password: 'x' }, { message: 'exitsted' }],
        ['POST', '/auth_clientid', { password: 'x' }, { message: 'clientid' }],
        ['POST', '/auth_username', { username: 'a', password: 'x' }, { message: 'existed' }],
        ['POST', '/auth_username', { username: 'b', password: '' }, { message: 'password' }]
      ]);
    await askOriginal(broker, 'hosted', [
      ...same,
      ['POST', '/auth_clientid', { clientid: 'a', password: 'x' }, { message: '{error,existed}' }],
      ['POST', '/auth_username', { username: 5, password: 'x' }, { message: '{error,login}' }],
      ['POST', '/auth_username', { username: 'b' }, { message: '{error,password}' }]
    ]);
  });
});

describe('The records of logins', () => {
  for (const revision of ['later', 'hosted'] as const)
    it(`adds, lists, looks up, changes and deletes logins in the ${revision} revision`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const path = '/auth_user';
      assert.deepEqual(await ask(server, 'POST', path, { login: 'a', password: 'one', is_superuser: true }), {
        code: 0,
        data: { a: 'ok' }
      });
      assert.deepEqual(
        await ask(server, 'POST', path, [
          { login: 'b', password: 'two', is_superuser: false },
          { login: 'a', password: 'two', is_superuser: false },
          { login: 'c', password: 'two' }
        ]),
        { code: 0, data: { b: 'ok', a: '{error,existed}', c: '{error,is_superuser}' } }
      );
      const list = await ask(server, 'GET', `${path}?_limit=5`);
      assert.deepEqual(list.meta, meta(2, 5));
      assert.deepEqual(
        list.data.map(({ login, is_superuser }: Record<string, unknown>) => [login, is_superuser]),
        [
          ['a', true],
          ['b', false]
        ]
      );
      assert.match(list.data[0].password, SHA256);
      assert.deepEqual((await ask(server, 'GET', `${path}/a`)).data, list.data[0]);
      assert.deepEqual(await ask(server, 'PUT', `${path}/a`, { password: 'three', is_superuser: false }), DONE);
      assert.deepEqual(broker.access.logins.verify('a', Buffer.from('three')), { isRight: true, isSuperuser: false });
      assert.deepEqual(await ask(server, 'DELETE', `${path}/a`), DONE);
      await refused(server, [
        ['POST', path, { login: 'b', password: 'x', is_superuser: true }, 400, 113, /"b"/],
        ['POST', path, { login: '', password: 'x', is_superuser: true }, 400, 104, /"login"/],
        ['POST', path, { login: 'd', password: 'x' }, 400, 107, /"is_superuser"/],
        ['POST', path, { login: 'd', password: 'x', is_superuser: 'yes' }, 400, 108, /"is_superuser"/],
        ['PUT', `${path}/b`, { password: 'x' }, 400, 107, /"is_superuser"/],
        ['PUT', `${path}/b`, { password: '', is_superuser: true }, 400, 104, /"password"/],
        ['PUT', `${path}/a`, { password: 'x', is_superuser: true }, 404, 105, /"a"/],
        ['GET', `${path}/a`, undefined, 404, 105, /"a"/],
        ['DELETE', `${path}/a`, undefined, 404, 105, /"a"/]
      ]);
      await askOriginal(broker, revision, [
        ['GET', `${path}/a`, undefined, { code: 0, data: {} }],
        ['DELETE', `${path}/a`, undefined, DONE],
        ['POST', path, { login: 'b', password: 'x', is_superuser: true }, { code: 0, data: { b: '{error,existed}' } }],
        ['PUT', `${path}/a`, { password: 'x', is_superuser: true }, { message: 'noexisted' }],
        ['PUT', `${path}/b`, { password: 'x', is_superuser: 1 }, { message: 'is_superuser' }]
      ]);
    });

  it('offers no logins in the earlier revision', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    await refused(server, [['GET', '/auth_user', undefined, 404, 102, /no operation/]]);
  });
});

describe('The access rules that are set at run time', () => {
  for (const revision of REVISIONS)
    it(`adds, lists, looks up and deletes access rules in the ${revision} revision`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const one = { clientid: 'a/b', topic: 't/#', action: 'subpub', access: 'allow' };
      assert.deepEqual((await ask(server, 'POST', '/acl', one)).data, { ...one, result: 'ok' });
      const several = [
        { clientid: 'a/b', topic: 'u', action: 'pub', access: 'deny' },
        { username: 'ann', topic: 'u/+', action: 'sub', access: 'deny' },
        { topic: 'all/x', action: 'pubsub', access: 'allow' },
        { all: '$all', topic: 'all/y', action: 'pub', access: 'allow' },
        { topic: 'a/#/b', action: 'pub', access: 'deny' },
        { topic: 'x', action: 'read', access: 'deny' },
        { topic: 'x', action: 'pub', access: 'perhaps' },
        { clientid: 'a', username: 'b', topic: 'x', action: 'pub', access: 'deny' },
        { usernme: 'b', topic: 'x', action: 'pub', access: 'deny' },
        5
      ];
      const { data: results } = await ask(server, 'POST', '/acl', several);
      assert.deepEqual(
        results.map(({ result }: { readonly result: string }) => result),
        [
          ...['ok', 'ok', 'ok', 'ok'],
          ...['topic', 'action', 'access', 'login', 'usernme', 'login'].map((word) => `{error,${word}}`)
        ]
      );
      assert.deepEqual(results[1], { ...(several[1] as object), result: 'ok' });
      assert.deepEqual(results[2], { ...(several[2] as object), all: '$all', result: 'ok' });
      const first = { clientid: 'a/b', topic: 't/#', action: 'subpub', access: 'allow' };
      assert.deepEqual(await ask(server, 'GET', '/acl/clientid'), {
        code: 0,
        data: [
          { ...first, result: 'ok' },
          { ...(several[0] as object), result: 'ok' }
        ],
        meta: meta(2)
      });
      assert.deepEqual(await ask(server, 'GET', '/acl/username?_limit=1'), {
        code: 0,
        data: [{ ...(several[1] as object), result: 'ok' }],
        meta: meta(1, 1)
      });
      assert.deepEqual(await ask(server, 'GET', '/acl/$all?_limit=1&_page=2'), {
        code: 0,
        data: [{ all: '$all', topic: 'all/y', action: 'pub', access: 'allow', result: 'ok' }],
        meta: { page: 2, limit: 1, count: 2 }
      });
      assert.deepEqual(await ask(server, 'GET', '/acl/clientid/a%2Fb'), { code: 0, data: [several[0], first] });
      assert.deepEqual(await ask(server, 'GET', '/acl/username/ann'), { code: 0, data: [several[1]] });
      assert.deepEqual(await ask(server, 'GET', '/acl/username/bob'), { code: 0, data: [] });
      for (const path of [
        '/acl/clientid/a%2Fb/topic/t%2F%23',
        '/acl/username/ann/topic/u%2F%2B',
        '/acl/$all/topic/all%2Fx',
        '/acl/all/$all/topic/all%2Fy'
      ]) {
        assert.deepEqual(await ask(server, 'DELETE', path), DONE);
        await refused(server, [['DELETE', path, undefined, 404, 105, /rule/]]);
        await askOriginal(broker, revision, [['DELETE', path, undefined, DONE]]);
      }
      assert.equal(broker.access.acl.size, 1);
    });

  it('names the wrong parameter of a refused access rule', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const rule = { topic: 't', action: 'pub', access: 'deny' };
    await refused(server, [
      ['POST', '/acl', { ...rule, topic: undefined }, 400, 107, /"topic"/],
      ['POST', '/acl', { ...rule, topic: '#/a' }, 400, 115, /#/],
      ['POST', '/acl', { ...rule, action: 'publish' }, 400, 108, /"action".*"pub"/],
      ['POST', '/acl', { ...rule, access: true }, 400, 108, /"access"/],
      ['POST', '/acl', { ...rule, clientid: '' }, 400, 108, /"clientid"/],
      ['POST', '/acl', { ...rule, clientid: 'a', username: 'b' }, 400, 108, /"clientid".*"username"/],
      ['POST', '/acl', { ...rule, clientId: 'a' }, 400, 108, /"clientId" is not known/]
    ]);
    await askOriginal(broker, 'hosted', [
      ['POST', '/acl', { ...rule, topic: '#/a' }, { code: 108, message: '{error,topic}' }],
      ['POST', '/acl', { ...rule, action: 'x' }, { code: 108, message: '{error,action}' }],
      ['POST', '/acl', { ...rule, clientid: 1 }, { code: 108, message: '{error,login}' }]
    ]);
    assert.equal(broker.access.acl.size, 0);
  });

  it('applies an access rule to a client id that is named as in the earlier revision', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    const { data } = await ask(server, 'POST', '/acl', { client_id: 'a', topic: 't', action: 'pub', access: 'deny' });
    assert.deepEqual(data, { clientid: 'a', topic: 't', action: 'pub', access: 'deny', result: 'ok' });
    assert.equal(broker.access.acl.list('clientId').length, 1);
  });

  it('replaces the rule for the same client and topic', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const rule = { username: 'a', topic: 't', action: 'pub', access: 'deny' };
    await ask(server, 'POST', '/acl', rule);
    await ask(server, 'POST', '/acl', { ...rule, access: 'allow' });
    assert.deepEqual((await ask(server, 'GET', '/acl/username/a')).data, [{ ...rule, access: 'allow' }]);
  });
});

describe('Bans', () => {
  const kinds = {
    earlier: ['client_id', 'username', 'ip_address'],
    later: ['clientid', 'username', 'peerhost'],
    hosted: ['clientid', 'username', 'peerhost']
  } as const;

  for (const revision of REVISIONS)
    it(`creates, lists and lifts bans in the ${revision} revision`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const [clientId, username, address] = kinds[revision];
      const end = 4_000_000_000;
      const whole = { who: 'a/b', as: clientId, reason: 'why', desc: 'more', by: 'me', at: 1_600_000_000, until: end };
      assert.deepEqual(await ask(server, 'POST', '/banned', whole), { code: 0, data: whole });
      await ask(server, 'POST', '/banned', { who: 'ann', as: username });
      await ask(server, 'POST', '/banned', { who: '10.0.0.0/8', as: address });
      const { data, meta: found } = await ask(server, 'GET', '/banned');
      assert.deepEqual(found, meta(3));
      const { desc, at, ...both } = whole;
      assert.deepEqual(data[0], revision === 'earlier' ? { ...both, desc } : { ...both, at });
      assert.deepEqual([data[1].who, data[1].as, data[1].by, data[1].reason], ['ann', username, 'user', 'undefined']);
      if (revision === 'earlier') assert.deepEqual([data[1].until, data[1].desc], ['undefined', 'undefined']);
      else assert.equal(data[1].until - data[1].at, 300);
      assert.equal(broker.access.banned.get('address', '10.0.0.0/8')?.who, '10.0.0.0/8');
      assert.deepEqual((await ask(server, 'GET', '/banned?_page=3&_limit=1')).data, [data[2]]);

      assert.deepEqual(await ask(server, 'DELETE', `/banned/a%2Fb?as=${clientId}`), DONE);
      assert.deepEqual(await ask(server, 'DELETE', '/banned/ann', { as: username }), DONE);
      const last = revision === 'earlier' ? `/banned/10.0.0.0%2F8?as=${address}` : `/banned/${address}/10.0.0.0%2F8`;
      assert.deepEqual(await ask(server, 'DELETE', last), DONE);
      assert.equal(broker.access.banned.size, 0);
      await refused(server, [['DELETE', last, undefined, 404, 105, /10\.0\.0\.0/]]);
      await askOriginal(broker, revision, [['DELETE', last, undefined, DONE]]);
    });

  it('counts the clients of a ban also if the option banDisconnects has disconnected them', async () => {
    await using broker = await startBroker({ banDisconnects: true });
    await using server = await serveManagement(broker);
    for (const clientId of ['one', 'two']) await broker.connect({ clientId, username: 'ann' });
    const body = { who: 'ann', as: 'username', disconnect: true };
    assert.deepEqual(await ask(server, 'POST', '/banned', body), { code: 0, data: { ...body, disconnected: 2 } });
  });

  it('disconnects the clients of a ban with disconnect, and finds the ban that refuses a client', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    await broker.connect({ clientId: 'one', username: 'ann' });
    const two = await broker.connect({ clientId: 'two', username: 'ann' });
    const three = await broker.connect({ clientId: 'three' });
    const ban = { who: 'ann', as: 'username' };
    assert.deepEqual(await ask(server, 'POST', '/banned', ban), { code: 0, data: ban });
    assert.equal(broker.sessions.get('two').state, 'connected');
    const body = { ...ban, disconnect: true };
    assert.deepEqual(await ask(server, 'POST', '/banned', body), { code: 0, data: { ...body, disconnected: 2 } });
    assert.deepEqual([two.isConnected, three.isConnected], [false, true]);
    await ask(server, 'POST', '/banned', { who: '10.0.0.0/8', as: 'peerhost' });
    const whoOf = async (query: string) => {
      const { data } = await ask(server, 'GET', `/banned?${query}`);
      return data.map(({ who }: { readonly who: string }) => who);
    };
    assert.deepEqual(await whoOf('_clientid=x&_username=ann'), ['ann']);
    assert.deepEqual(await whoOf('_clientid=x&_peerhost=10.1.2.3'), ['10.0.0.0/8']);
    assert.deepEqual(await whoOf('_clientid=ann'), []);
    await three.disconnect();
  });

  it('names the wrong parameter of a refused ban, as the revision does', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const theirs = kinds[revision];
      const wrong = revision === 'earlier' ? 'clientid' : 'client_id';
      await refused(server, [
        ['POST', '/banned', { as: theirs[0] }, 400, 107, /"who"/],
        ['POST', '/banned', { who: 'a' }, 400, 107, /"as"/],
        ['POST', '/banned', { who: 'a', as: wrong }, 400, 108, new RegExp(theirs.join(', '))],
        ['POST', '/banned', { who: 'a', as: theirs[2] }, 400, 108, /who.*IP address/],
        ['POST', '/banned', { who: 'a', as: theirs[0], until: 'never' }, 400, 108, /"until"/],
        ['DELETE', '/banned/a', undefined, 400, 107, /"as"/],
        ['DELETE', `/banned/a?as=${wrong}`, undefined, 400, 108, /"as"/]
      ]);
      const quoted = theirs.map((name) => `'${name}'`).join(', ');
      await askOriginal(broker, revision, [
        ['POST', '/banned', { who: 'a' }, { code: 107, message: "missing mandatory params: ['who', 'as']" }],
        [
          'POST',
          '/banned',
          { who: 'a', as: wrong },
          { code: 108, message: `value of 'as' must be one of: [${quoted}]` }
        ],
        ['DELETE', '/banned/a', undefined, { code: 107, message: "missing mandatory params: ['as']" }]
      ]);
    }
    await using earlier = await serveManagement(broker, { revision: 'earlier' });
    await refused(earlier, [['DELETE', '/banned/client_id/a', undefined, 404, 102, /no operation/]]);
    assert.equal(broker.access.banned.size, 0);
  });
});

describe('The users of the management interface', () => {
  for (const revision of REVISIONS)
    it(`creates, lists, authenticates, changes and deletes users in the ${revision} revision`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const ann = { username: 'ann', password: 'one', tags: 'viewer' };
      assert.deepEqual(await ask(server, 'POST', '/users', ann), DONE);
      assert.deepEqual(await ask(server, 'POST', '/users/', { username: 'admin', password: 'x' }), DONE);
      assert.deepEqual(await ask(server, 'GET', '/users'), {
        code: 0,
        data: [
          { username: 'ann', tags: 'viewer' },
          { username: 'admin', tags: '' }
        ]
      });
      assert.deepEqual(await ask(server, 'POST', '/auth', { username: 'ann', password: 'one' }), DONE);
      assert.deepEqual(await ask(server, 'PUT', '/users/ann', { tags: 'administrator' }), DONE);
      assert.equal(broker.users.get('ann')?.role, 'administrator');
      assert.deepEqual(await ask(server, 'PUT', '/change_pwd/ann', { old_pwd: 'one', new_pwd: 'two' }), DONE);
      assert.deepEqual(await ask(server, 'POST', '/auth', { username: 'ann', password: 'two' }), DONE);
      await refused(server, [
        ['POST', '/users', ann, 400, 113, /"ann"/],
        ['POST', '/users', { ...ann, username: '' }, 400, 104, /"username"/],
        ['POST', '/users', { username: 'bob' }, 400, 107, /"password"/],
        ['POST', '/users', { ...ann, tags: 1 }, 400, 108, /"tags"/],
        ['POST', '/auth', { username: 'ann', password: 'one' }, 401, 103, /wrong/],
        ['POST', '/auth', { username: 'bob', password: 'one' }, 401, 103, /wrong/],
        ['POST', '/auth', { username: 'ann', password: '' }, 400, 104, /"password"/],
        ['PUT', '/users/bob', { tags: '' }, 404, 105, /"bob"/],
        ['PUT', '/users/ann', {}, 400, 107, /"tags"/],
        ['PUT', '/change_pwd/ann', { old_pwd: 'one', new_pwd: 'x' }, 400, 114, /old password/],
        ['PUT', '/change_pwd/ann', { old_pwd: 'two', new_pwd: '' }, 400, 104, /"new_pwd"/],
        ['PUT', '/change_pwd/bob', { old_pwd: 'two', new_pwd: 'x' }, 404, 105, /"bob"/],
        ['DELETE', '/users/admin', undefined, 400, 106, /"admin"/],
        ['DELETE', '/users/bob', undefined, 404, 105, /"bob"/]
      ]);
      await askOriginal(broker, revision, [
        ['POST', '/users', ann, { message: 'Username Already Exist' }],
        ['POST', '/users', { username: 'bob' }, { message: 'Username or password undefined' }],
        ['POST', '/auth', { username: 'ann', password: 'one' }, { message: 'Password Error' }],
        ['POST', '/auth', { username: 'bob', password: 'one' }, { message: 'Username Not Found' }],
        ['POST', '/auth', { username: 'ann' }, { message: 'Password undefined' }],
        ['PUT', '/users/bob', { tags: '' }, { message: 'Username Not Found' }],
        ['PUT', '/change_pwd/ann', { old_pwd: 'one', new_pwd: 'x' }, { message: 'Password Error' }],
        ['DELETE', '/users/admin', undefined, { message: 'Cannot delete admin' }],
        ['DELETE', '/users/bob', undefined, { message: 'Username Not Found' }]
      ]);
      await refused(server, [
        ['DELETE', '/users/ann', undefined, 400, 106, /"ann" is the last administrator; make another user/],
        ['PUT', '/users/ann', { tags: 'viewer' }, 400, 106, /"ann" is the last administrator/]
      ]);
      await askOriginal(broker, revision, [
        ['DELETE', '/users/ann', undefined, { message: 'Cannot delete admin' }],
        [
          'PUT',
          '/users/ann',
          { tags: '' },
          { message: 'the user "ann" is the last administrator; make another user an administrator first' }
        ]
      ]);
      assert.equal(broker.users.get('ann')?.role, 'administrator');
      assert.deepEqual(await ask(server, 'PUT', '/users/admin', { tags: 'administrator' }), DONE);
      assert.deepEqual(await ask(server, 'DELETE', '/users/ann'), DONE);
      assert.equal(broker.users.size, 1);
    });
});

describe('The applications that may use the interface', () => {
  for (const revision of REVISIONS)
    it(`adds, lists, looks up, changes and deletes applications in the ${revision} revision`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const end = 4_000_000_000;
      const given = { app_id: 'two', name: 'Two', desc: 'text', status: true, expired: end };
      assert.deepEqual(await ask(server, 'POST', '/apps', { ...given, secret: 'known' }), {
        code: 0,
        data: { secret: 'known' }
      });
      const { data: made } = await ask(server, 'POST', '/apps/', { app_id: 'three', name: 'Three', status: false });
      assert.match(made.secret, /^[A-Za-z0-9]{48}$/);
      const { data } = await ask(server, 'GET', '/apps');
      assert.deepEqual(data, [
        { app_id: 'app', name: 'app', desc: '', status: true, expired: 'undefined' },
        given,
        { app_id: 'three', name: 'Three', desc: '', status: false, expired: 'undefined' }
      ]);
      assert.deepEqual((await ask(server, 'GET', '/apps/two')).data, given);
      assert.deepEqual(await ask(server, 'PUT', '/apps/two', { name: '2', status: false }), DONE);
      assert.deepEqual((await ask(server, 'GET', '/apps/two')).data, { ...given, name: '2', status: false });
      assert.deepEqual(await ask(server, 'PUT', '/apps/two', { expired: 'undefined', status: true }), DONE);
      assert.equal(broker.applications.get('two')?.expiresAt, undefined);
      const authorization = `Basic ${Buffer.from('two:known').toString('base64')}`;
      assert.equal((await server.call('GET', '/api/apps', undefined, { authorization })).status, 200);
      assert.deepEqual(await ask(server, 'DELETE', '/apps/two'), DONE);
      assert.equal((await server.call('GET', '/api/apps', undefined, { authorization })).status, 401);
      await refused(server, [
        ['POST', '/apps', { app_id: 'three' }, 400, 113, /"three"/],
        ['POST', '/apps', { name: 'x' }, 400, 107, /"app_id"/],
        ['POST', '/apps', { app_id: 'a:b' }, 400, 108, /"app_id"/],
        ['POST', '/apps', { app_id: 'x', status: 'on' }, 400, 108, /"status"/],
        ['POST', '/apps', { app_id: 'x', expired: 'soon' }, 400, 108, /"expired"/],
        ['PUT', '/apps/three', { desc: 1 }, 400, 108, /"desc"/],
        ['PUT', '/apps/two', { name: 'x' }, 404, 105, /"two"/],
        ['GET', '/apps/two', undefined, 404, 105, /"two"/],
        ['DELETE', '/apps/two', undefined, 404, 105, /"two"/]
      ]);
      await askOriginal(broker, revision, [
        ['POST', '/apps', { app_id: 'three' }, { code: 102, message: 'alread_existed' }],
        ['GET', '/apps/two', undefined, { code: 0, data: {} }],
        ['PUT', '/apps/two', { name: 'x' }, { code: 102, message: 'not_found' }],
        ['DELETE', '/apps/two', undefined, DONE]
      ]);
    });
});

describe('Alarms', () => {
  for (const revision of REVISIONS)
    it(`lists present and past alarms in the ${revision} revision`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const { node } = broker.settings;
      broker.alarms.raise({ id: 'disk_full', severity: 'critical', title: 'Full', summary: 'The disk is full.' });
      broker.alarms.raise({ id: 'gone', severity: 'notice' });
      broker.alarms.clear('gone');
      for (const path of ['/alarms/present', ...(revision === 'earlier' ? ['/alarms'] : [])]) {
        const { data } = await ask(server, 'GET', path);
        const [{ node: name, alarms }] = data;
        assert.deepEqual([data.length, name, alarms.length], [1, node, 1]);
        const { timestamp, ...desc } = alarms[0].desc;
        assert.equal(alarms[0].id, 'disk_full');
        assert.deepEqual(desc, { severity: 'critical', title: 'Full', summary: 'The disk is full.' });
        assert.match(timestamp, LOCAL_TIME);
        assert.deepEqual((await ask(server, 'GET', `${path}/${encodeURIComponent(node)}`)).data, alarms);
        await refused(server, [['GET', `${path}/other`, undefined, 404, 102, /"other"/]]);
      }
      const { data: past } = await ask(server, 'GET', '/alarms/history');
      assert.deepEqual([past[0].node, past[0].alarms[0].id], [node, 'gone']);
      assert.match(past[0].alarms[0].clear_at, LOCAL_TIME);
      assert.deepEqual((await ask(server, 'GET', `/alarms/history/${encodeURIComponent(node)}`)).data, past[0].alarms);
      await refused(server, [['GET', '/alarms/history/other', undefined, 404, 102, /"other"/]]);
      if (revision !== 'earlier') await refused(server, [['GET', '/alarms', undefined, 404, 102, /no operation/]]);
    });
});
