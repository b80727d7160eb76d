import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { createBroker, importStore, memoryStore } from 'embermq';
import { managementApi, type RevisionName } from 'embermq/management';
import { type DataOf, ManagementClient, ManagementError } from 'embermq/management/client';
import { serve, startBroker } from '../support/management.ts';

/** Serve a revision of a broker, with a client of it. */
async function start<R extends RevisionName>(revision: R, options: { readonly maxRowLimit?: number } = {}) {
  const broker = await startBroker();
  const server = await serve(managementApi(broker, { revision, prefix: '/api', ...options }).node);
  const url = `http://127.0.0.1:${server.port}/api/`;
  return {
    broker,
    url,
    client: new ManagementClient({ url, id: 'app', secret: 'a secret', revision }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await broker.stop();
    }
  };
}

async function failure(promise: Promise<unknown>): Promise<ManagementError> {
  const error = await promise.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason
  );
  assert.ok(error instanceof ManagementError, `${error}`);
  return error;
}

describe('A management client', () => {
  it('reads, changes and deletes records, with encoded parameters', async () => {
    await using s = await start('later');
    await s.broker.connect({ clientId: 'a/b ü', username: 'ann' });
    const body = { clientid: 'a/b ü', topic: 't', qos: 1 };
    assert.equal(await s.client.post('/mqtt/subscribe', { body }), undefined);
    const [found] = await s.client.get('/clients/{clientid}', { params: { clientid: 'a/b ü' } });
    assert.deepEqual([found.username, found.subscriptions_cnt, found.connected], ['ann', 1, true]);
    const results = await s.client.post('/mqtt/publish_batch', {
      body: [
        { topic: 't', payload: '' },
        { topic: '#', payload: '' }
      ]
    });
    assert.deepEqual(
      results.map(({ code }) => code),
      [0, 115]
    );
    await s.client.post('/users', { body: { username: 'bob', password: 'a password' } });
    await s.client.put('/users/{name}', { params: { name: 'bob' }, body: { tags: 'viewer' } });
    assert.deepEqual(await s.client.get('/users'), [{ username: 'bob', tags: 'viewer' }]);
    await s.client.delete('/clients/{clientid}', { params: { clientid: 'a/b ü' } });
    assert.equal(s.broker.sessions.has('a/b ü'), false);
  });

  it('offers the operations and names of the revision', async () => {
    await using s = await start('earlier');
    await s.broker.connect({ clientId: 'c' });
    const [{ client_id, ipaddress }] = await s.client.get('/connections');
    assert.deepEqual([client_id, ipaddress], ['c', 'undefined']);
  });

  it('iterates over a list page by page, by number and by cursor', async () => {
    await using s = await start('later', { maxRowLimit: 3 });
    const ids = Array.from({ length: 7 }, (_, i) => `c${i}`);
    for (const clientId of ids) await s.broker.connect({ clientId });
    const seen: string[] = [];
    for await (const { clientid } of s.client.list('/clients')) seen.push(clientid);
    assert.deepEqual(seen, ids);
    for (const clientId of ids) await s.broker.access.clientIds.create(clientId, 'a password');
    const records: string[] = [];
    for await (const { clientid } of s.client.list('/auth_clientid')) records.push(clientid);
    assert.deepEqual(records, ids);
    for (const topic of ids) await s.broker.publish(topic, 'x');
    const drops: string[] = [];
    for await (const { topic } of s.client.list('/x/drops', { query: { _limit: 2 } })) drops.push(topic);
    assert.deepEqual(drops, [...ids].reverse());
    const { data, meta } = await s.client.page('/clients', { query: { _page: 3, _limit: 3 } });
    assert.deepEqual([data.length, meta?.count, meta?.hasnext], [1, 7, false]);
  });

  it('rejects with the status and code of a refused request', async () => {
    await using s = await start('later');
    const unknown = await failure(s.client.delete('/clients/{clientid}', { params: { clientid: 'x' } }));
    assert.deepEqual([unknown.status, unknown.code, unknown.message], [404, 112, 'there is no client "x"']);
    const wrong = new ManagementClient({ url: s.url, id: 'app', secret: 'guess' });
    const refused = await failure(wrong.get('/clients'));
    assert.deepEqual([refused.status, refused.code], [401, 103]);
    assert.ok(!refused.message.includes('guess'));
  });

  it('names the server if it cannot be reached, is something else, or does not answer', async () => {
    const server = createServer(() => {}).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { readonly port: number };
    const url = `http://127.0.0.1:${port}/api/v4`;
    const client = new ManagementClient({ url, id: 'a', secret: 'b' });
    const slow = await failure(client.get('/clients', { timeoutMs: 50 }));
    assert.equal(slow.message, `${url} did not answer within 0.05 seconds`);
    const reason = new Error('enough');
    await assert.rejects(client.get('/clients', { signal: AbortSignal.abort(reason) }), reason);
    server.close();
    const unreachable = await failure(client.get('/clients'));
    assert.match(unreachable.message, new RegExp(`^${url} cannot be reached: .*ECONNREFUSED`));
    assert.equal(unreachable.status, undefined);
    await using other = await serve((_request, response) => void response.end('hello'));
    const stranger = new ManagementClient({ url: `http://127.0.0.1:${other.port}`, id: 'a', secret: 'b' });
    assert.match((await failure(stranger.get('/'))).message, /status 200 is not from a management interface$/);
  });

  it('rejects refusals of an interface that answers as the original products do', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, { prefix: '/api', errors: 'original' }).node);
    const client = new ManagementClient({ url: `http://127.0.0.1:${server.port}/api`, id: 'app', secret: 'a secret' });
    const unknown = await failure(client.delete('/clients/{clientid}', { params: { clientid: 'x' } }));
    assert.deepEqual([unknown.status, unknown.code, unknown.message], [200, 112, 'not_found']);
  });

  it('sends requests with the function of the option fetch', async () => {
    await using s = await start('later');
    const sent: string[] = [];
    const client = new ManagementClient({
      url: s.url,
      id: 'app',
      secret: 'a secret',
      fetch: (request, init) => {
        sent.push(`${request.method} ${new URL(request.url).pathname} ${init.signal.aborted}`);
        return fetch(request, init);
      }
    });
    assert.deepEqual(await client.get('/users'), []);
    for await (const line of client.lines('GET', '/x/events')) {
      assert.equal(line, ': the events follow');
      break;
    }
    assert.deepEqual(sent, ['GET /api/users false', 'GET /api/x/events false']);
  });

  it('returns documents that have no envelope', async () => {
    await using s = await start('later');
    await s.broker.access.acl.set({ topic: 'a', action: 'pub', access: 'deny' });
    const exported = await s.client.get('/x/export');
    assert.deepEqual([exported.format, exported.sections.acl?.length], ['embermq-configuration', 1]);
    const { sections } = await s.client.post('/x/import', { body: exported, query: { mode: 'replace' } });
    assert.equal(sections.acl.replaced, 1);
    const { data } = await s.client.request('GET', '/openapi.json');
    assert.equal((data as { readonly openapi: string }).openapi, '3.1.0');
    const wrong = new ManagementClient({ url: s.url, id: 'app', secret: 'guess' });
    assert.equal((await failure(wrong.get('/x/export'))).code, 103);
    await using other = await serve((_, response) => void response.end('[1]'));
    const stranger = new ManagementClient({ url: `http://127.0.0.1:${other.port}`, id: 'a', secret: 'b' });
    assert.match((await failure(stranger.get('/x/export'))).message, /not from a management interface$/);
  });

  it('yields the lines of streams as they arrive', async () => {
    const broker = await createBroker({ store: memoryStore() }).start();
    await using _ = broker;
    await broker.applications.create({ id: 'app', secret: 'a secret' });
    await using server = await serve(managementApi(broker, { prefix: '/api' }).node);
    const url = `http://127.0.0.1:${server.port}/api`;
    // only the beginning of the answer has a time limit
    const client = new ManagementClient({ url, id: 'app', secret: 'a secret' });
    for (let n = 0; n < 300; n++) await broker.publish(`r/${n}`, 'ü'.repeat(300), { retain: true });
    const lines: string[] = [];
    for await (const line of client.lines('POST', '/x/backup')) lines.push(line);
    const copy = memoryStore();
    await importStore(copy, lines);
    await using restored = await createBroker({ store: copy, sysInterval: 0 }).start();
    assert.equal((await restored.retained.list({ prefix: 'r/', limit: 1_000 })).entries.length, 300);
    const events = client.lines('GET', '/x/events', { query: { names: 'client.connected' } });
    const first = (await events.next()).value ?? '';
    await broker.connect({ clientId: 'sensor-1' });
    let found = first;
    while (!found.includes('sensor-1')) found = (await events.next()).value ?? assert.fail('the stream has ended');
    assert.match(found, /^data: /);
    await events.return();
    const reason = new Error('enough');
    const stop = new AbortController();
    const aborted = client.lines('GET', '/x/events', { signal: stop.signal });
    await aborted.next();
    stop.abort(reason);
    await assert.rejects(async () => {
      for await (const _line of aborted);
    }, reason);
  });

  it('explains how streams are read, and reports faults of a stream', async () => {
    await using s = await start('later');
    for (const [method, path] of [
      ['GET', '/x/events'],
      ['GET', '/x/tail'],
      ['POST', '/x/backup']
    ])
      assert.match((await failure(s.client.request(method, path))).message, /^\w+ \S+: .*lines\('\w+', '\S+'\)/);
    assert.match((await failure(s.client.lines('GET', '/clients').next())).message, /request\('GET', '\/clients'\)/);
    const refused = await failure(s.client.lines('GET', '/x/events', { query: { names: 'no.event' } }).next());
    assert.deepEqual([refused.status, refused.code], [400, 108]);
    assert.equal((await failure(s.client.lines('POST', '/x/backup').next())).code, 111);
    await using broken = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/jsonl' });
      response.write('one\ntwo\n', () => response.destroy());
    });
    const client = new ManagementClient({ url: `http://127.0.0.1:${broken.port}`, id: 'a', secret: 'b' });
    const reading = async () => {
      for await (const line of client.lines('POST', '/x/backup')) assert.match(line, /^(one|two)$/);
    };
    assert.match((await failure(reading())).message, /has ended early/);
  });

  it('requires an HTTP URL without credentials, and all parameters', async () => {
    const options = { id: 'a', secret: 'b' };
    for (const url of ['localhost:8081', 'ftp://localhost', 'http://a:b@localhost/api'])
      assert.throws(() => new ManagementClient({ url, ...options }), TypeError);
    const client = new ManagementClient({ url: 'http://localhost', ...options });
    assert.match((await failure(client.request('GET', '/clients/{clientid}'))).message, /"clientid".* is missing/);
  });

  it('deletes records that a path cannot name: names that are too long for a URL, and relative ones', async () => {
    await using started = await start('later');
    const { broker, client } = started;
    for (const name of ['x'.repeat(60_000), '€'.repeat(20_000), '.', '..', 'a/b']) {
      await broker.access.usernames.create(name, 'a password');
      await broker.access.acl.set({ username: name, topic: `t/${name.length}`, action: 'pub', access: 'deny' });
      await client.delete('/auth_username/{username}', { params: { username: name } });
      await client.delete('/acl/username/{username}/topic/{topic}', {
        params: { username: name, topic: `t/${name.length}` }
      });
      const missing = await failure(client.delete('/auth_username/{username}', { params: { username: name } }));
      assert.deepEqual([missing.status, missing.code], [404, 105]);
    }
    assert.deepEqual([broker.access.usernames.size, broker.access.acl.size], [0, 0]);
    const empty = await failure(client.delete('/auth_username/{username}', { params: { username: '' } }));
    assert.match(empty.message, /is empty/);
  });

  it('sends nothing if the path would resolve to another one', async () => {
    const seen: string[] = [];
    await using server = await serve(({ method, url }, response) => {
      seen.push(`${method} ${url}`);
      response.end('{"code":0,"data":[]}');
    });
    const client = new ManagementClient({ url: `http://127.0.0.1:${server.port}/api`, id: 'a', secret: 'b' });
    for (const clientid of ['.', '..', '']) {
      const params = { clientid };
      for (const sent of [
        client.get('/clients/{clientid}', { params }),
        client.request('POST', '/x/{clientid}/kick', { params })
      ]) {
        const { message, status } = await failure(sent);
        assert.match(message, /^params: "clientid" .*(is empty|cannot be sent)/);
        assert.equal(status, undefined);
      }
    }
    for (const path of [
      '/clients/.',
      '/clients/..',
      '/clients/%2e',
      '/a/.%2E/b',
      '/a/\\..\\b',
      '/a/.\t./b',
      '/topics/#'
    ])
      assert.match((await failure(client.request('DELETE', path))).message, /^path: /, path);
    assert.equal(seen.length, 0);
    for (const clientid of ['...', '%2e', 'a/../b', '.a', '#', '?', '\\', ' '])
      await client.get('/clients/{clientid}', { params: { clientid } });
    assert.deepEqual(
      seen.map((line) => decodeURIComponent(line.slice('GET /api/clients/'.length))),
      ['...', '%2e', 'a/../b', '.a', '#', '?', '\\', ' ']
    );
  });

  it('rejects with a ManagementError for any fault of the request', async () => {
    await using server = await serve((_, response) => void response.end('{"code":0,"data":{}}'));
    const client = new ManagementClient({ url: `http://127.0.0.1:${server.port}/api`, id: 'a', secret: 'b' });
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    await failure(client.request('POST', '/x', { body: circular }));
    await failure(client.request('POST', '/x', { body: 1n }));
    await failure(client.request('GET', '/x/{name}', { params: { name: '\ud800' } }));
    await failure(client.request('GET', '/x', { timeoutMs: -1 }));
    await failure(client.request('GET', '/x', { body: {} }));
    await failure(client.list('/clients').next());
  });

  it('rejects unknown paths, missing parameters and wrong bodies at compile time', () => {
    const check = (later: ManagementClient, earlier: ManagementClient<'earlier'>) => {
      void later.get('/clients');
      void earlier.get('/connections');
      // @ts-expect-error the later revision has no connections
      void later.get('/connections');
      // @ts-expect-error the earlier revision has no clients
      void earlier.get('/clients');
      // @ts-expect-error the parameter is missing
      void later.get('/clients/{clientid}');
      // @ts-expect-error the body is missing
      void later.post('/mqtt/publish');
      // @ts-expect-error the client id is missing
      void later.post('/mqtt/subscribe', { body: { topic: 'a' } });
      // @ts-expect-error the state is unknown
      void later.get('/clients', { query: { conn_state: 'asleep' } });
      // @ts-expect-error there are no pages
      void later.list('/users');
      const ports = (clients: DataOf<'later', 'GET', '/clients'>): number[] => clients.map(({ port }) => port);
      return ports;
    };
    assert.equal(typeof check, 'function');
  });
});
