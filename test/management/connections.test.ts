import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from 'embermq';
import { serveManagement, startBroker } from '../support/management.ts';

const CONNECTION_NAMES =
  'clean_start client_id conn_mod connected_at heap_size ipaddress is_bridge keepalive mailbox_len node peercert port proto_name ' +
  'proto_ver recv_cnt recv_msg recv_oct recv_pkt reductions send_cnt send_msg send_oct send_pend send_pkt username zone';
const SESSION_NAMES =
  'awaiting_rel_len binding clean_start client_id created_at deliver_msg enqueue_msg expiry_interval heap_size inflight_len ' +
  'mailbox_len max_awaiting_rel max_inflight max_mqueue max_subscriptions mqueue_dropped mqueue_len node reductions ' +
  'subscriptions_count username';
const LOCAL_TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/;

type Row = Readonly<Record<string, unknown>>;
const clientIds = (rows: readonly Row[]) => rows.map(({ client_id }) => client_id);

/** Connect and disconnect a client whose session stays. */
async function leave(broker: Broker, clientId: string): Promise<void> {
  const client = await broker.connect({ clientId, sessionExpiry: 60 });
  const gone = broker.nextEvent('client.disconnected');
  await client.disconnect();
  await gone;
}

describe('Connections in the earlier revision', () => {
  it('shows connections with the documented fields', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    await broker.connect({ clientId: 'local' });
    await broker.connect({
      clientId: 'web',
      username: 'ann',
      keepalive: 30,
      protocolVersion: 4,
      transportInfo: { transport: 'wss', remoteAddress: '192.0.2.1', remotePort: 5_000 }
    });
    const { data } = (await server.call('GET', '/api/connections')).body;
    const [local, web] = data as Row[];
    assert.equal(Object.keys(local).sort().join(' '), CONNECTION_NAMES);
    assert.match(local.connected_at as string, LOCAL_TIME);
    const { node } = broker.settings;
    const names = ['client_id', 'username', 'conn_mod', 'peercert', 'ipaddress', 'port', 'proto_ver', 'keepalive'];
    assert.deepEqual(
      [local, web].map((row) => names.map((name) => row[name])),
      [
        ['local', 'undefined', 'emqx_connection', 'nossl', 'undefined', 0, 5, 0],
        ['web', 'ann', 'emqx_ws_connection', 'nossl', '192.0.2.1', 5_000, 4, 30]
      ]
    );
    assert.deepEqual([web.node, web.zone, web.is_bridge, web.clean_start], [node, 'external', false, true]);
  });

  it('lists connections page by page, in the cluster and on a node, without disconnected clients', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    await leave(broker, 'away');
    for (const clientId of ['a', 'b', 'c']) await broker.connect({ clientId });
    for (const path of ['/api/connections', `/api/nodes/${encodeURIComponent(broker.settings.node)}/connections`]) {
      const all = (await server.call('GET', path)).body;
      assert.deepEqual(clientIds(all.data), ['a', 'b', 'c']);
      assert.deepEqual(all.meta, { page: 1, limit: 10_000, count: 3 });
      const last = (await server.call('GET', `${path}?_page=2&_limit=2`)).body;
      assert.deepEqual(clientIds(last.data), ['c']);
      assert.deepEqual(last.meta, { page: 2, limit: 2, count: 3 });
    }
  });

  it('looks up connections by client id and by user name, in the cluster and on a node', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    await leave(broker, 'away');
    await broker.connect({ clientId: 'a/b', username: 'an n' });
    await broker.connect({ clientId: 'c', username: 'an n' });
    const node = `/api/nodes/${encodeURIComponent(broker.settings.node)}`;
    const cases: [path: string, found: string[]][] = [
      ['/api/connections/a%2Fb', ['a/b']],
      ['/api/connections/away', []],
      ['/api/connections/nobody', []],
      [`${node}/connections/a%2Fb`, ['a/b']],
      [`${node}/connections/nobody`, []],
      ['/api/connection/username/an%20n', ['a/b', 'c']],
      ['/api/connection/username/nobody', []],
      [`${node}/connection/username/an%20n`, ['a/b', 'c']]
    ];
    for (const [path, found] of cases) {
      const { status, body } = await server.call('GET', path);
      assert.deepEqual([status, body.code, clientIds(body.data)], [200, 0, found], path);
      assert.equal('meta' in body, false);
    }
  });

  it('publishes the will of a kicked connection, and keeps a session that outlives it', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    const will = { topic: 'wills', payload: 'gone' };
    await broker.connect({ clientId: 'staying', sessionExpiry: 60, will });
    await broker.connect({ clientId: 'ending', will });
    const wills: string[] = [];
    await broker.subscribe('wills', ({ payload }) => void wills.push(`${payload}`));
    for (const clientId of ['staying', 'ending']) {
      const reason = broker.nextEvent('client.disconnected');
      const kicked = await server.call('DELETE', `/api/connections/${clientId}`);
      assert.deepEqual([kicked.status, kicked.body], [200, { code: 0 }]);
      assert.equal((await reason).reason, 'kicked');
      assert.deepEqual((await server.call('GET', `/api/connections/${clientId}`)).body.data, []);
    }
    assert.deepEqual(wills, ['gone', 'gone']);
    assert.equal(broker.sessions.get('staying').state, 'disconnected');
    assert.equal(broker.sessions.has('ending'), false);
  });

  it('does not kick disconnected or unknown clients', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    await using original = await serveManagement(broker, { revision: 'earlier', errors: 'original' });
    await leave(broker, 'away');
    for (const clientId of ['away', 'nobody']) {
      const { status, body } = await server.call('DELETE', `/api/connections/${clientId}`);
      assert.deepEqual([status, body.code], [404, 112]);
      assert.match(body.message, new RegExp(`"${clientId}"`));
      const answer = await original.call('DELETE', `/api/connections/${clientId}`);
      assert.deepEqual([answer.status, answer.body], [200, { code: 112, message: 'not_found' }]);
    }
    assert.equal(broker.sessions.has('away'), true);
  });
});

describe('Sessions in the earlier revision', () => {
  it('shows sessions with the documented fields', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    const client = await broker.connect({ clientId: 'a', sessionExpiry: 60 });
    await client.subscribe('t');
    await leave(broker, 'away');
    const [here, away] = (await server.call('GET', '/api/sessions')).body.data as Row[];
    assert.equal(Object.keys(here).sort().join(' '), SESSION_NAMES);
    assert.match(here.created_at as string, LOCAL_TIME);
    assert.deepEqual([here.binding, here.subscriptions_count, here.expiry_interval], ['local', 1, 60]);
    assert.deepEqual([away.client_id, away.binding, away.username], ['away', 'undefined', 'undefined']);
  });

  it('lists sessions page by page and looks them up, in the cluster and on a node', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    await leave(broker, 'a/b');
    for (const clientId of ['b', 'c']) await broker.connect({ clientId });
    for (const path of ['/api/sessions', `/api/nodes/${encodeURIComponent(broker.settings.node)}/sessions`]) {
      const all = (await server.call('GET', path)).body;
      assert.deepEqual(clientIds(all.data), ['a/b', 'b', 'c']);
      assert.deepEqual(all.meta, { page: 1, limit: 10_000, count: 3 });
      const last = (await server.call('GET', `${path}?_page=2&_limit=2`)).body;
      assert.deepEqual(clientIds(last.data), ['c']);
      assert.deepEqual(last.meta, { page: 2, limit: 2, count: 3 });
      for (const [clientId, found] of [
        ['a%2Fb', ['a/b']],
        ['nobody', []]
      ]) {
        const { body } = await server.call('GET', `${path}/${clientId}`);
        assert.deepEqual([body.code, clientIds(body.data), 'meta' in body], [0, found, false]);
      }
    }
  });

  it('ends a session that is cleaned, in the cluster or on a node', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    for (const path of ['/api', `/api/nodes/${encodeURIComponent(broker.settings.node)}`]) {
      await leave(broker, 'a/b');
      const { status, body } = await server.call('DELETE', `${path}/sessions/persistent/a%2Fb`);
      assert.deepEqual([status, body], [200, { code: 0 }]);
      assert.equal(broker.sessions.has('a/b'), false);
    }
  });

  it('does not clean the session of a connected or unknown client', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    await using original = await serveManagement(broker, { revision: 'earlier', errors: 'original' });
    await broker.connect({ clientId: 'here', sessionExpiry: 60 });
    for (const path of ['/api', `/api/nodes/${encodeURIComponent(broker.settings.node)}`]) {
      for (const [clientId, status, code, message] of [
        ['here', 400, 102, 'running_session'],
        ['nobody', 404, 112, 'not_found']
      ] as const) {
        const answer = await server.call('DELETE', `${path}/sessions/persistent/${clientId}`);
        assert.deepEqual([answer.status, answer.body.code], [status, code]);
        assert.match(answer.body.message, new RegExp(`"${clientId}"`));
        const originalAnswer = await original.call('DELETE', `${path}/sessions/persistent/${clientId}`);
        assert.deepEqual([originalAnswer.status, originalAnswer.body], [200, { message }]);
      }
    }
    assert.equal(broker.sessions.get('here').state, 'connected');
  });
});

describe('The operations of connections and sessions', () => {
  it('rejects operations of connections and sessions on an unknown node', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'earlier' });
    for (const [method, path] of [
      ['GET', 'connections'],
      ['GET', 'connections/c'],
      ['GET', 'connection/username/u'],
      ['GET', 'sessions'],
      ['GET', 'sessions/c'],
      ['DELETE', 'sessions/persistent/c']
    ]) {
      const { status, body } = await server.call(method, `/api/nodes/other/${path}`);
      assert.deepEqual([status, body.code], [404, 102], path);
      assert.match(body.message, /"other"/);
    }
  });

  it('offers no operations of connections and sessions in the later revisions', async () => {
    await using broker = await startBroker();
    for (const revision of ['later', 'hosted'] as const) {
      await using server = await serveManagement(broker, { revision });
      for (const path of ['connections', 'connection/username/u', 'sessions'])
        assert.equal((await server.call('GET', `/api/${path}`)).status, 404, path);
      assert.equal((await server.call('DELETE', '/api/sessions/persistent/c')).status, 404);
    }
  });
});
