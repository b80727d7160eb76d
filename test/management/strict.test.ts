import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, createBroker, memoryStore } from 'embermq';
import type { RevisionName } from 'embermq/management';
import { VirtualClock } from 'embermq/testing';
import { OPERATIONS } from '../../adapters/management/operations/index.ts';
import { REVISION_ROWS } from '../../adapters/management/revisions.ts';
import { serveManagement, startBroker } from '../support/management.ts';
import { startExampleBroker } from '../support/management-fixture.ts';

type Server = Awaited<ReturnType<typeof serveManagement>>;

/** Send requests that are refused with status 400 and a code, and check a part of the message. */
async function refused(
  server: Server,
  method: string,
  path: string,
  cases: readonly (readonly [unknown, number, RegExp])[]
) {
  for (const [body, code, says] of cases) {
    const answer = await server.call(method, `/api${path}`, body);
    const request = `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`;
    assert.deepEqual([answer.status, answer.body.code], [400, code], request);
    assert.match(answer.body.message, says, request);
  }
}

async function done(server: Server, method: string, path: string, body: unknown) {
  const answer = await server.call(method, `/api${path}`, body);
  assert.deepEqual([answer.status, answer.body.code], [200, 0], answer.text);
  return answer.body.data;
}

function published(broker: Broker): string[] {
  const seen: string[] = [];
  broker.on('message.publish', ({ message: { topic, retain, payload } }) => {
    if (!topic.startsWith('$SYS')) seen.push(`${topic} ${retain} ${payload}`);
  });
  return seen;
}

describe('A request to publish', () => {
  it('refuses a PUBLISH without a payload, so that it does not delete a retained message by mistake', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const seen = published(broker);
    await refused(server, 'POST', '/mqtt/publish', [[{ clientid: 'c', topic: 't', retain: true }, 107, /payload/]]);
    const [missing, given] = await done(server, 'POST', '/mqtt/publish_batch', [
      { topic: 't' },
      { topic: 't', payload: '' }
    ]);
    assert.deepEqual([missing.code, given.code], [107, 0]);
    assert.deepEqual(seen, ['t false ']);
  });

  it('refuses invalid values of encoding, retain and qos', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const seen = published(broker);
    const message = { clientid: 'c', topic: 't', payload: 'eA==' };
    const wrong: [object, RegExp][] = [
      [{ encoding: 'Base64' }, /encoding.*plain.*base64/],
      [{ retain: 'true' }, /retain.*boolean/],
      [{ retain: 1 }, /retain/],
      [{ qos: '1' }, /qos.*integer/],
      [{ qos: 1.5 }, /qos/],
      [{ retained: true }, /"retained" is not known; did you mean "retain"/],
      [{ client_id: 'd' }, /different clients/]
    ];
    for (const [more, says] of wrong) {
      await refused(server, 'POST', '/mqtt/publish', [[{ ...message, ...more }, 108, says]]);
      const [{ code }] = await done(server, 'POST', '/mqtt/publish_batch', [{ ...message, ...more }]);
      assert.equal(code, 108, says.source);
    }
    assert.deepEqual(seen, []);
  });

  it('publishes to topic and topics together, once for each topic, and to none if one is not valid', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const seen = published(broker);
    await done(server, 'POST', '/mqtt/publish', { clientid: 'c', topic: 'a', topics: 'b,a,c', payload: 'x' });
    assert.deepEqual(seen.splice(0), ['a false x', 'b false x', 'c false x']);
    await refused(server, 'POST', '/mqtt/publish', [[{ topic: 'a', topics: 'b,#', payload: 'x' }, 115, /"#"/]]);
    assert.deepEqual(seen, []);
    const client = await broker.connect({ clientId: 'c' });
    await done(server, 'POST', '/mqtt/subscribe', { clientid: 'c', topic: 'd', topics: 'e,d' });
    assert.equal((await broker.directory.client('c'))?.subscriptions, 2);
    await client.disconnect();
  });

  it("accepts what the original products accept with errors: 'original'", async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { errors: 'original' });
    const seen = published(broker);
    await done(server, 'POST', '/mqtt/publish', { topic: 't' });
    const odd = { topic: 'a,#', topics: 'b', payload: 'x', encoding: 'Base64', retain: 'true', other: 1 };
    await done(server, 'POST', '/mqtt/publish?other=1', odd);
    await done(server, 'POST', '/mqtt/publish_batch', [odd]);
    assert.deepEqual(seen, ['t false ', 'a false x', 'a false x']);
  });
});

describe('Conditions of client lists', () => {
  it('refuses a condition that no client can satisfy', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    await refused(server, 'GET', '/clients?ip_address=300.1.1.1', [[undefined, 108, /ip_address.*IP address/]]);
    await refused(server, 'GET', '/clients?ip_address=10.0.0.0/8', [[undefined, 108, /ip_address/]]);
    await refused(server, 'GET', '/clients?proto_name=HTTP', [[undefined, 108, /proto_name.*MQTT/]]);
    await refused(server, 'GET', '/clients?proto_ver=6', [[undefined, 108, /proto_ver/]]);
    await refused(server, 'GET', '/clients?clientId=a', [[undefined, 108, /did you mean "clientid"/]]);
    await refused(server, 'GET', '/clients?cursor=1', [[undefined, 108, /cursor/]]);
    await using original = await serveManagement(broker, { errors: 'original' });
    assert.deepEqual(await done(original, 'GET', '/clients?proto_name=HTTP&ip_address=x&other=1', undefined), []);
  });

  it('finds an IPv6 address in any spelling', async () => {
    await using broker = await createBroker({ passwordCost: 10, allowAnonymous: true }).start();
    await using server = await serveManagement(broker, { credentials: 'none' });
    await broker.connect({ clientId: 'six', transportInfo: { transport: 'tcp', remoteAddress: '2001:db8::a' } });
    await broker.connect({ clientId: 'four', transportInfo: { transport: 'tcp', remoteAddress: '192.0.2.1' } });
    for (const [address, found] of [
      ['2001:DB8:0:0::000A', 'six'],
      ['192.0.2.1', 'four'],
      ['::ffff:192.0.2.1', 'four']
    ]) {
      const data = await done(server, 'GET', `/clients?ip_address=${encodeURIComponent(address)}`, undefined);
      assert.deepEqual(
        data.map(({ clientid }: { clientid: string }) => clientid),
        [found],
        address
      );
    }
  });
});

describe('A ban over REST', () => {
  it('requires a ban to end in the future, and accepts times in milliseconds', async () => {
    const clock = new VirtualClock();
    await using broker = await createBroker({ clock, passwordCost: 10 }).start();
    await using server = await serveManagement(broker, { credentials: 'none' });
    const now = clock.now();
    const ban = (until: number, at?: number) => ({ who: 'x', as: 'clientid', until, at });
    await refused(server, 'POST', '/banned', [
      [ban(now / 1000 - 1), 108, /until.*future/],
      [ban(now - 1), 108, /until.*future/],
      [ban(0), 108, /until/]
    ]);
    await done(server, 'POST', '/banned', ban(now + 5_000, now - 5_000));
    const { at, until } = broker.access.banned.get('clientId', 'x') ?? {};
    assert.deepEqual([at, until], [now - 5_000, now + 5_000]);
    await done(server, 'POST', '/banned', ban(Math.floor(now / 1000) + 60));
    assert.equal(broker.access.banned.get('clientId', 'x')?.until, Math.floor(now / 1000) * 1000 + 60_000);
  });
});

describe('An application over REST', () => {
  it('replaces the secret of an application with PUT, and refuses the previous one at once', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    await broker.applications.create({ id: 'other', secret: 'the first secret' });
    const header = (secret: string) => ({
      authorization: `Basic ${Buffer.from(`other:${secret}`).toString('base64')}`
    });
    const status = async (secret: string) =>
      (await server.call('GET', '/api/brokers', undefined, header(secret))).status;
    assert.equal(await status('the first secret'), 200);
    await done(server, 'PUT', '/apps/other', { app_id: 'other', secret: 'the second secret', desc: 'd' });
    assert.deepEqual([await status('the first secret'), await status('the second secret')], [401, 200]);
    assert.equal(broker.applications.get('other')?.description, 'd');
    await refused(server, 'PUT', '/apps/other', [
      [{ secret: '' }, 108, /secret/],
      [{ secret: 1 }, 108, /secret/]
    ]);
    const { status: unknown } = await server.call('PUT', '/api/apps/nobody', { secret: 'x' });
    assert.equal(unknown, 404);
  });

  it('keeps the secret and description of an application if PUT with both cannot be stored', async () => {
    for (const [commits, status] of [
      [0, 503],
      [1, 200]
    ]) {
      const store = memoryStore();
      const commit = store.commit.bind(store);
      let left = Number.POSITIVE_INFINITY;
      store.commit = async (batch) => {
        if (--left < 0) throw new Error('ENOSPC: no space left on device');
        await commit(batch);
      };
      const broker = await startBroker({ store });
      broker.on('error', () => undefined);
      await broker.applications.create({ id: 'other', secret: 'the first secret' });
      await using server = await serveManagement(broker);
      left = commits;
      const answer = await server.call('PUT', '/api/apps/other', { secret: 'the second secret', desc: 'd' });
      const isChanged = (await broker.applications.verify('other', 'the second secret')) !== undefined;
      const { description } = broker.applications.get('other') ?? {};
      assert.deepEqual(
        [answer.status, isChanged, description],
        [status, status === 200, status === 200 ? 'd' : ''],
        answer.text
      );
      await broker.stop().catch(() => undefined);
    }
  });

  it('expires an application at a time in seconds or milliseconds', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const expired of [1_900_000_000, 1_900_000_000_000]) {
      await done(server, 'PUT', '/apps/app', { expired });
      assert.equal(broker.applications.get('app')?.expiresAt, 1_900_000_000_000);
    }
  });
});

describe('Numbers in a body', () => {
  it('refuses a number that exceeds every float, at any place', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const rule = '"rawsql":"SELECT payload.v AS v FROM \\"t\\"","actions":[]';
    await refused(server, 'POST', '/banned', [
      ['{"who":"a","as":"clientid","until":1e999}', 108, /"until" is too large/]
    ]);
    await refused(server, 'POST', '/rules?test=true', [
      [`{${rule},"ctx":{"topic":"t","payload":{"v":1e999}}}`, 400, /"v" is too large/],
      [`{${rule},"ctx":{"topic":"t","payload":{"v":[1,-1e400]}}}`, 400, /entry 1 is too large/]
    ]);
    const ctx = '{"topic":"t","payload":{"v":9007199254740993}}';
    const { text } = await server.call('POST', '/api/rules?test=true', `{${rule},"ctx":${ctx}}`);
    assert.match(text, /"v":9007199254740993/);
  });
});

describe('A request to unsubscribe', () => {
  it('refuses an UNSUBSCRIBE without a topic, naming the parameter', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    await refused(server, 'POST', '/mqtt/unsubscribe', [[{ clientid: 'a' }, 115, /^a topic is needed: "topic"$/]]);
  });
});

describe('The name of a record', () => {
  it('refuses names above 4,096 bytes, because the path of a request could not name them', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const long = 'ü'.repeat(2_049);
    const password = 'a password';
    const rule = { topic: 't', action: 'pub', access: 'allow' };
    for (const [path, body, code] of [
      ['/auth_clientid', { clientid: long, password }, 108],
      ['/auth_username', { username: long, password }, 108],
      ['/auth_user', { login: long, password, is_superuser: false }, 108],
      ['/users', { username: long, password }, 108],
      ['/acl', { ...rule, clientid: long }, 108],
      ['/acl', { ...rule, username: long }, 108],
      ['/banned', { who: long, as: 'clientid' }, 108]
    ] as const)
      await refused(server, 'POST', path, [[body, code, /4096 bytes/]]);
    const most = 'ü'.repeat(2_048);
    await done(server, 'POST', '/auth_username', { username: most, password });
    await done(server, 'DELETE', `/auth_username/${encodeURIComponent(most)}`, undefined);
  });

  it('returns the result of the first entry, which is stored, for a name that is repeated in a list', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const twice = [
      { username: 'a', password: 'the first one' },
      { username: 'a', password: 'the second one' }
    ];
    assert.deepEqual(await done(server, 'POST', '/auth_username', twice), { a: 'ok' });
  });
});

describe('An access rule over REST', () => {
  it('keeps the action of an access rule as written', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const action of ['pub', 'sub', 'pubsub', 'subpub']) {
      await done(server, 'POST', '/acl', { clientid: 'c', topic: 't', action, access: 'allow' });
      for (const path of ['/acl/clientid', '/acl/clientid/c'])
        assert.deepEqual(
          (await done(server, 'GET', path, undefined)).map((rule: { action: string }) => rule.action),
          [action]
        );
    }
  });
});

describe('Bodies of requests', () => {
  it('accepts in a body the fields of the path under their own names, and nothing else with the same value', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    await broker.users.create('ann', 'password of ann');
    const tags = 'administrator';
    await done(server, 'PUT', '/users/ann', { username: 'ann', tags });
    await done(server, 'PUT', '/users/ann', { name: 'ann', tags });
    await refused(server, 'PUT', '/users/ann', [
      [{ tags, role: 'ann' }, 108, /"role" is not known/],
      [{ tags, username: 'eve' }, 108, /"username" cannot be changed: the path has "ann"/]
    ]);
    await done(server, 'PUT', '/apps/app', { app_id: 'app', desc: 'd' });
    await refused(server, 'PUT', '/apps/app', [
      [{ descr: 'app' }, 108, /"descr" is not known; did you mean "desc"/],
      [{ app_id: 'other', desc: 'e' }, 108, /"app_id" cannot be changed/]
    ]);
    assert.equal(broker.applications.get('app')?.description, 'd');
  });
});

const REVISIONS: readonly RevisionName[] = ['earlier', 'later', 'hosted'];
const NEVER = 'colour';

describe('Each operation', () => {
  for (const revision of REVISIONS)
    it(`refuses unknown parameters, in the query and in the body, in the revision "${revision}"`, async () => {
      await using broker = await startExampleBroker();
      await using server = await serveManagement(broker, { revision, credentials: 'none' });
      let bodies = 0;
      for (const row of OPERATIONS) {
        if (row.in !== undefined && !row.in.includes(revision)) continue;
        const path = row.path.replace(/:[^/]+/g, 'x');
        const inQuery = await server.call(
          row.method,
          `/api${path}?${NEVER}=red`,
          row.body === undefined ? undefined : {}
        );
        const request = `${row.method} ${row.path}: ${inQuery.text.slice(0, 200)}`;
        assert.equal(inQuery.status, 400, request);
        assert.match(inQuery.body.message, /colour/, request);
        const properties = (row.body as { properties?: Record<string, { type?: string }> } | undefined)?.properties;
        if (properties === undefined) continue;
        const { body } = (typeof row.example === 'function' ? row.example(REVISION_ROWS[revision]) : row.example) ?? {};
        if (typeof body !== 'object' || body === null || Array.isArray(body)) continue;
        bodies++;
        const inBody = await server.call(row.method, `/api${path}`, { ...body, [NEVER]: 'red' });
        assert.deepEqual(
          [inBody.status, /colour/.test(inBody.body.message)],
          [400, true],
          `${row.path}: ${inBody.text}`
        );
        for (const [name, { type }] of Object.entries(properties)) {
          if (type === undefined) continue;
          const wrong = type === 'object' || type === 'array' ? 'x' : { an: 'object' };
          const answer = await server.call(row.method, `/api${path}`, { ...body, [name]: wrong });
          assert.deepEqual(
            [answer.status, answer.text.includes(name)],
            [400, true],
            `${row.path} ${name}: ${answer.text}`
          );
        }
      }
      assert.ok(bodies > 10);
    });
});
