import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { healthHandler, managementApi } from 'embermq/management';
import { AUTHORIZATION, serve, serveManagement, startBroker } from '../support/management.ts';

type Server = Awaited<ReturnType<typeof serveManagement>>;

async function asked(server: Server, method: string, path: string, body?: unknown) {
  const { status, text } = await server.call(method, `/api${path}`, body);
  const { code, message, data } = JSON.parse(text);
  return { status, code, message: message as string, data };
}

describe('Messages about requests', () => {
  it('names parameters as the interface does', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const cases: [method: string, path: string, body: unknown, code: number, message: RegExp][] = [
      ['POST', '/x/traces', {}, 107, /"clientid", "topic" and "ip_address"/],
      ['POST', '/x/traces', { ip_address: 'x' }, 108, /^the parameter "ip_address": expected an IP address/],
      ['POST', '/x/traces', { topic: '$share/g/t' }, 115, /^the parameter "topic": expected a topic filter/],
      [
        'GET',
        '/x/rights?username=u&ip_address=9&action=publish&topic=a',
        undefined,
        108,
        /^the parameter "ip_address"/
      ],
      ['POST', '/x/clients/kick', { all: false }, 108, /^the parameter "all" must be true$/],
      ['POST', '/x/import', { format: 'embermq-configuration', version: 1, sections: { acl: [1] } }, 108, /^1 error, /]
    ];
    for (const [method, path, body, code, message] of cases) {
      const answer = await asked(server, method, path, body);
      assert.deepEqual([answer.status, answer.code], [400, code], path);
      assert.match(answer.message, message);
    }
  });

  it('truncates long names', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const long = 'x'.repeat(65_536);
    for (const [path, body] of [
      ['/mqtt/publish', { topic: long, payload: '' }],
      ['/mqtt/subscribe', { topic: long, clientid: 'c' }],
      ['/mqtt/unsubscribe', { topic: 'a', clientid: long }],
      ['/acl', { topic: long, action: 'pub', access: 'allow' }],
      ['/mqtt/publish_batch', [{ topic: 'a', payload: '', qos: long }]]
    ] as const) {
      const { text } = await server.call('POST', `/api${path}`, body);
      assert.ok(text.length < 1_000, path);
    }
    const { text } = await server.call('GET', `/api/${'y'.repeat(9_000)}`);
    assert.ok(text.length < 1_000);
  });

  it('includes the message beside the code of each failed entry of a batch', async () => {
    await using broker = await startBroker();
    const batch = [
      1,
      null,
      { topic: 'a', payload: '', qos: 4 },
      { topic: 'b', payload: '' },
      { topic: 'a/#', payload: '' }
    ];
    await using server = await serveManagement(broker);
    const { data } = await asked(server, 'POST', '/mqtt/publish_batch', batch);
    assert.deepEqual(data.slice(0, 4), [
      { code: 108, message: 'the entry must be object' },
      { code: 108, message: 'the entry must be object' },
      { topic: 'a', code: 108, message: 'the parameter "qos" must be <= 2' },
      { topic: 'b', code: 0 }
    ]);
    assert.match(data[4].message, /^the topic "a\/#" is not valid/);
    await using original = await serveManagement(broker, { errors: 'original' });
    const answer = await asked(original, 'POST', '/mqtt/publish_batch', batch);
    assert.deepEqual(answer.data[2], { topic: 'a', code: 108 });
  });
});

describe('Messages with a payload that is not a string', () => {
  for (const [revision, expected] of [
    ['earlier', [500, 'Internal Error']],
    ['later', [200, '{"code":108,"message":"Request parameter type error"}']],
    ['hosted', [200, '{"code":108,"message":"Request parameter type error"}']]
  ] as const)
    it(`refuses a payload that is not a string, naming the parameter or answering as the original products, in the revision ${revision}`, async () => {
      await using broker = await startBroker();
      for (const payload of [{ a: 1 }, 5]) {
        await using server = await serveManagement(broker, { revision, prefix: '/api' });
        const documented = await server.call('POST', '/api/mqtt/publish', { topic: 'a', payload });
        assert.deepEqual(
          [documented.status, documented.body],
          [400, { code: 108, message: 'the parameter "payload" must be string' }]
        );
        await using original = await serveManagement(broker, { revision, prefix: '/api', errors: 'original' });
        const { status, text } = await original.call('POST', '/api/mqtt/publish', { topic: 'a', payload });
        assert.deepEqual([status, text], expected);
      }
    });
});

describe('Queries', () => {
  it('refuses repeated parameters and a limit below 1, but not when answering as the original products', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    await using original = await serveManagement(broker, { errors: 'original' });
    for (const query of ['clientid=a&clientid=b', '_page=1&_page=2', '_limit=0', '_limit=-1']) {
      const { status, code, message } = await asked(server, 'GET', `/clients?${query}`);
      assert.deepEqual([status, code], [400, 108], query);
      assert.match(message, /given more than once|at least 1/);
      assert.equal((await asked(original, 'GET', `/clients?${query}`)).code, 0);
    }
  });

  it('accepts a parameter against caches, and a page below the first one, as in the original products', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const query of ['_=1&_=2', '_page=-1', '_page=0', '_limit=99999'])
      assert.equal((await asked(server, 'GET', `/clients?${query}`)).code, 0, query);
  });

  it('refuses unknown parameters of operations beyond the original, except the one against caches', async () => {
    await using broker = await startBroker();
    await using _client = await broker.connect({ clientId: 'c' });
    await using server = await serveManagement(broker);
    for (const [method, path, body, message] of [
      ['GET', '/x/retained?limit=5', undefined, /no parameter "limit"; did you mean "_limit"\?/],
      ['GET', '/x/events?nams=a', undefined, /no parameter "nams"; did you mean "names"\?/],
      ['GET', '/x/store?nonsense=1', undefined, /no parameter "nonsense"; leave it out/],
      ['GET', '/x/store?_limit=1', undefined, /no parameter "_limit"; leave it out/],
      ['DELETE', '/x/drops?_page=2', undefined, /no parameter "_page"; leave it out/],
      ['POST', '/x/clients/kick?username=foo', { all: true }, /no parameter "username"; give it in the body/]
    ] as const) {
      const answer = await asked(server, method, path, body);
      assert.deepEqual([answer.status, answer.code], [400, 108], path);
      assert.match(answer.message, message);
    }
    assert.equal(broker.sessions.has('c'), true);
    assert.equal((await asked(server, 'GET', '/x/store?_=17')).code, 0);
  });
});

describe('A single option', () => {
  it('finds an option by any spelling of its name', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const [key, expected] of [
      ['max_sessions', 'max_sessions'],
      ['maxSessions', 'max_sessions'],
      ['zones.external.maxInflight', 'zone.external.max_inflight'],
      ['zone.external.max_inflight', 'zone.external.max_inflight'],
      ['mqtt.max_packet_size', 'mqtt.max_packet_size']
    ])
      assert.equal((await asked(server, 'GET', `/x/options/${key}`)).data?.key, expected);
    for (const method of ['GET', 'DELETE'])
      for (const [key, near] of [
        ['maxSesions', 'maxSessions'],
        ['zone.extrnal.max_inflight', 'external']
      ]) {
        const { status, code, message } = await asked(server, method, `/x/options/${key}`);
        assert.deepEqual([status, code], [404, 105]);
        assert.ok(message.includes(`did you mean "${near}"?`), message);
      }
  });
});

describe('The event stream', () => {
  /** Read a stream until it contains a string. */
  async function readUntil(url: string, wanted: string, act: () => Promise<unknown>): Promise<string> {
    const { body } = await fetch(url, { headers: { authorization: AUTHORIZATION } });
    let text = '';
    let hasActed = false;
    for await (const part of body as ReadableStream<Uint8Array>) {
      text += Buffer.from(part).toString();
      if (!hasActed) await act();
      hasActed = true;
      if (text.includes(wanted)) break;
    }
    return text;
  }

  it('includes message events if a topic is given without names', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api' }).node);
    const url = `http://127.0.0.1:${server.port}/api/x/events?topic=a/%23`;
    const text = await readUntil(url, '"topic":"a/b"', async () => {
      await broker.publish({ topic: 'c', payload: '' });
      await broker.publish({ topic: 'a/b', payload: '' });
    });
    assert.match(text, /event: message\.publish\n/);
    assert.doesNotMatch(text, /"topic":"c"/);
  });

  it('writes the kind of a ban as the interface spells it', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api' }).node);
    const url = `http://127.0.0.1:${server.port}/api/x/events?names=client.banned`;
    const text = await readUntil(url, 'client.banned', () =>
      broker.access.banned.create({ kind: 'clientId', who: 'c', reason: 'r' })
    );
    assert.match(text, /"kind":"clientid"/);
  });
});

describe('The health page', () => {
  it('reports that a check to exclude does not exist', async () => {
    await using broker = await createBroker().start();
    await using server = await serve(healthHandler(broker).node);
    const get = (path: string, headers = {}) => server.call('GET', path, undefined, headers);
    const answer = await get('/readyz?exclude=nope&exclude=store');
    assert.equal(answer.status, 200);
    assert.match(answer.text, /\nwarn: there is no check "nope" to exclude\nreadyz check passed\n$/);
    const { body } = await get('/readyz?exclude=nope', { accept: 'application/json' });
    assert.deepEqual([body.status, body.warning], ['ok', 'there is no check "nope" to exclude']);
    assert.equal((await get('/readyz?exclude=store')).text, 'ok');
  });
});
