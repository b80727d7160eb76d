import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { managementApi } from 'embermq/management';
import { AUTHORIZATION, serve, serveManagement, startBroker } from '../support/management.ts';

describe('The management interface on node:http', () => {
  it('lists, looks up and disconnects a client, and publishes to it', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api/v4' }).node);
    const publishers: string[] = [];
    broker.on('message.publish', (event) => void publishers.push(event.message.clientId));
    const client = await broker.connect({ clientId: 'a/b', username: 'ann' });
    assert.deepEqual(
      (await server.call('POST', '/api/v4/mqtt/subscribe', { clientid: 'a/b', topic: 't', qos: 1 })).body,
      { code: 0 }
    );
    const message = new Promise<{ readonly payload: Buffer }>((resolve) => client.on('message', resolve));
    const published = await server.call('POST', '/api/v4/mqtt/publish', {
      clientid: 'x',
      topic: 't',
      payload: 'aGk=',
      encoding: 'base64',
      qos: 1
    });
    assert.deepEqual([published.status, published.body], [200, { code: 0 }]);
    assert.equal((await message).payload.toString(), 'hi');
    assert.deepEqual(publishers, ['x']);
    const list = (await server.call('GET', '/api/v4/clients?_limit=1')).body;
    assert.deepEqual(list.meta, { page: 1, limit: 1, count: 1, hasnext: false });
    assert.equal(list.data[0].clientid, 'a/b');
    const found = (await server.call('GET', '/api/v4/clients/a%2Fb')).body;
    assert.deepEqual(
      [found.code, found.data[0].username, found.data[0].subscriptions_cnt, found.data[0].connected],
      [0, 'ann', 1, true]
    );
    assert.deepEqual((await server.call('DELETE', '/api/v4/clients/a%2Fb')).body, { code: 0 });
    assert.equal(broker.sessions.has('a/b'), false);
    const gone = await server.call('DELETE', '/api/v4/clients/a%2Fb');
    assert.deepEqual([gone.status, gone.body.code], [404, 112]);
  });

  it('answers errors with the documented statuses and codes', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api/v4' }).node);
    const cases: [method: string, path: string, body: unknown, status: number, code: number][] = [
      ['GET', '/api/v4/nothing', undefined, 404, 102],
      ['PATCH', '/api/v4/clients', undefined, 404, 102],
      ['POST', '/api/v4/mqtt/publish', '{', 400, 109],
      ['POST', '/api/v4/mqtt/publish', '', 400, 107],
      ['POST', '/api/v4/mqtt/publish', { topic: 't', payload: '', qos: 3 }, 400, 108],
      ['POST', '/api/v4/mqtt/publish', { topic: 't', payload: {} }, 400, 108],
      ['POST', '/api/v4/mqtt/publish', { payload: 'x' }, 400, 115],
      ['POST', '/api/v4/mqtt/publish', { topic: '#', payload: '' }, 400, 115],
      ['POST', '/api/v4/mqtt/subscribe', { topic: 't' }, 400, 107],
      ['POST', '/api/v4/mqtt/subscribe', { topic: 't', clientid: 'nobody' }, 404, 112],
      ['GET', '/api/v4/clients?_page=abc', undefined, 400, 108],
      ['GET', '/api/v4/clients?conn_state=asleep', undefined, 400, 108],
      ['GET', '/api/v4/nodes/other/clients', undefined, 404, 102]
    ];
    for (const [method, path, body, status, code] of cases) {
      const answer = await server.call(method, path, body);
      assert.deepEqual(
        [answer.status, answer.body?.code],
        [status, code],
        `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`
      );
      assert.equal(typeof answer.body.message, 'string');
    }
  });

  it('asks for credentials, and refuses an address after too many guesses', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api/v4' }).node);
    const none = await server.call('GET', '/api/v4/clients', undefined, {});
    assert.deepEqual([none.status, none.body.code], [401, 103]);
    assert.match(none.headers.get('www-authenticate') ?? '', /^Basic /);
    const wrong = { authorization: `Basic ${Buffer.from('app:guess').toString('base64')}` };
    for (let n = 0; n < 10; n++)
      assert.equal((await server.call('GET', '/api/v4/clients', undefined, wrong)).status, 401);
    assert.equal((await server.call('GET', '/api/v4/clients', undefined, wrong)).status, 429);
  });

  it('leaves the other paths of the host alone', async () => {
    await using broker = await startBroker();
    const api = managementApi(broker, { prefix: '/api', unmatched: 'next' });
    await using server = await serve((request, response) =>
      api.node(request, response, () => response.end('the host'))
    );
    assert.equal((await server.call('GET', '/', undefined, {})).text, 'the host');
    assert.equal((await server.call('GET', '/apis', undefined, {})).text, 'the host');
    assert.equal((await server.call('GET', '/api/orders', undefined, {})).text, 'the host');
    assert.equal((await server.call('OPTIONS', '/api/clients', undefined, {})).text, 'the host');
    assert.equal((await server.call('GET', '/api/clients', undefined, {})).status, 401);
  });

  it('lists many clients page by page', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api/v4' }).node);
    const clients = await Promise.all(Array.from({ length: 450 }, (_, i) => broker.connect({ clientId: `c${i}` })));
    const seen: string[] = [];
    for (let page = 1; ; page++) {
      const { data, meta } = (await server.call('GET', `/api/v4/clients?_page=${page}&_limit=211`)).body;
      seen.push(...data.map(({ clientid }: { clientid: string }) => clientid));
      assert.equal(meta.count, 450);
      if (!meta.hasnext) break;
    }
    assert.deepEqual(
      seen,
      clients.map(({ clientId }) => clientId)
    );
    const whole = (await server.call('GET', '/api/v4/clients')).body;
    assert.deepEqual(
      whole.data.map(({ clientid }: { clientid: string }) => clientid),
      seen
    );
    const some = (await server.call('GET', '/api/v4/clients?_like_clientid=c44')).body;
    assert.equal(some.data.length, 11);
    assert.deepEqual(some.meta, { page: 1, limit: 10_000, count: -1, hasnext: false });
  });
});

describe('The management interface as a fetch handler', () => {
  it('answers fetch requests as on node:http', async () => {
    await using broker = await startBroker();
    await using client = await broker.connect({ clientId: 'c1' });
    const api = managementApi(broker, { prefix: '/api/v4' });
    const ask = (path: string, init: RequestInit = {}) =>
      api.fetch(new Request(`http://host${path}`, { headers: { authorization: AUTHORIZATION }, ...init }));
    const found = (await (await ask('/api/v4/clients/c1')).json()) as { data: { clientid: string }[] };
    assert.equal(found.data[0].clientid, client.clientId);
    const published = await ask('/api/v4/mqtt/publish', {
      method: 'POST',
      body: JSON.stringify({ topic: 't', payload: 'x' })
    });
    assert.deepEqual(await published.json(), { code: 0 });
    assert.equal((await ask('/elsewhere')).status, 404);
  });
});

describe('The management interface in a browser', () => {
  const origin = 'https://page.example';
  const ask = { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'authorization' };
  const corsOf = (headers: Headers) => [...headers.keys()].filter((name) => name.startsWith('access-control'));

  it('sends no CORS headers by default, and leaves preflight requests to the host', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const read = await server.call('GET', '/api/nodes', undefined, { authorization: AUTHORIZATION, origin });
    const preflight = await server.call('OPTIONS', '/api/apps/a', undefined, ask);
    assert.deepEqual([read.status, corsOf(read.headers)], [200, []]);
    assert.deepEqual([preflight.status, corsOf(preflight.headers)], [404, []]);
  });

  it('lets pages of the option origins read answers, including rejected credentials, and make changes, and answers their preflights', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { origins: origin, unmatched: 'next' });
    for (const [authorization, status] of [
      [AUTHORIZATION, 200],
      [`Basic ${btoa('app:wrong')}`, 401]
    ] as const) {
      const { headers, ...read } = await server.call('GET', '/api/nodes', undefined, { authorization, origin });
      assert.equal(read.status, status);
      assert.deepEqual([headers.get('access-control-allow-origin'), headers.get('vary')], [origin, 'Origin']);
    }
    const changed = await server.call(
      'POST',
      '/api/auth_username',
      { username: 'a', password: 'b' },
      {
        authorization: AUTHORIZATION,
        origin
      }
    );
    assert.deepEqual([changed.status, changed.headers.get('access-control-allow-origin')], [200, origin]);
    const preflight = await server.call('OPTIONS', '/api/apps/a', undefined, ask);
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get('access-control-allow-origin'), origin);
    assert.equal(preflight.headers.get('access-control-allow-methods'), 'DELETE, GET, HEAD, PUT');
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /Authorization/);
    assert.equal((await server.call('OPTIONS', '/api/no_such_path', undefined, ask)).status, 404);
    const others = { ...ask, origin: 'https://other.example' };
    const refused = await server.call('OPTIONS', '/api/apps/a', undefined, others);
    assert.deepEqual([refused.status, corsOf(refused.headers)], [404, []]);
  });
});
