import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AuditEntry, createBroker, memoryStore } from 'embermq';
import { OPERATIONS } from '../../adapters/management/operations/index.ts';
import { AUTHORIZATION, serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;
const SENTINEL = 'never-to-be-seen';

function basic(id: string, secret: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}

/** A value for a schema, with the sentinel wherever a string can be. */
function filled(schema: unknown): unknown {
  const {
    type,
    properties,
    items,
    anyOf,
    enum: allowed
  } = schema as {
    type?: string;
    properties?: Record<string, unknown>;
    items?: unknown;
    anyOf?: unknown[];
    enum?: unknown[];
  };
  if (anyOf !== undefined) return filled(anyOf[0]);
  if (allowed !== undefined) return allowed[0];
  if (properties !== undefined)
    return Object.fromEntries(
      Object.entries(properties).map(([name, one]) => [
        name,
        /pass|pwd|secret|payload|value/.test(name) ? SENTINEL : filled(one)
      ])
    );
  if (type === 'array') return [filled(items)];
  if (type === 'boolean') return true;
  return type === 'integer' || type === 'number' ? 1 : 'a';
}

describe('The audit log over REST', () => {
  it('records each change with its caller, address, parameters and answer, and no requests that only read', async () => {
    await using broker = await startBroker();
    await broker.users.create('ann', 'her password', 'viewer');
    for (const revision of REVISIONS) {
      const told: AuditEntry[] = [];
      const credentials = ['applications', 'users'] as const;
      await using server = await serveManagement(broker, { revision, credentials, audit: (entry) => told.push(entry) });
      await server.call('GET', '/api/nodes');
      await server.call('POST', '/api/banned', { who: revision, as: 'username', reason: 'why' });
      await server.call('DELETE', '/api/x/drops', undefined, basic('ann', 'her password'));
      await server.call('DELETE', '/api/users/nobody');
      await server.call('POST', '/api/users', '{', { authorization: AUTHORIZATION });
      await server.call('POST', '/api/users', { username: 'x' }, {});
      await server.call('POST', '/api/unknown', {});
      const { data, meta } = (await server.call('GET', '/api/x/audit?_limit=4')).body;
      const common = { caller: { kind: 'application', id: 'app' }, address: '127.0.0.1', count: 1 };
      for (const { at } of data) assert.ok(Math.abs(at - Date.now()) < 60_000);
      assert.deepEqual(
        data.map(({ at: _, ...entry }: { at: number }) => entry),
        [
          { ...common, operation: 'create_user', request: 'POST /users', parameters: {}, status: 400, code: 109 },
          {
            ...common,
            operation: 'delete_user',
            request: 'DELETE /users/:name',
            parameters: { name: 'nobody' },
            status: 404,
            code: 105
          },
          {
            ...common,
            caller: { kind: 'user', id: 'ann' },
            operation: 'clear_drops',
            request: 'DELETE /x/drops',
            parameters: {},
            status: 403,
            code: 103
          },
          {
            ...common,
            operation: 'create_banned',
            request: 'POST /banned',
            parameters: { who: revision, as: 'username', reason: 'why' },
            status: 200,
            code: 0
          }
        ]
      );
      assert.equal(meta.count, told.length + 4 * REVISIONS.indexOf(revision));
      assert.deepEqual(
        told.map(({ operation }) => operation),
        ['create_banned', 'clear_drops', 'delete_user', 'create_user']
      );
    }
  });

  it('returns the audit log in pages, and by operation, caller and success', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const who of ['a', 'b', 'c']) await server.call('POST', '/api/banned', { who, as: 'clientid' });
    await server.call('DELETE', '/api/users/nobody');
    const list = async (query: string) => (await server.call('GET', `/api/x/audit?${query}`)).body;
    const { data, meta } = await list('_limit=2');
    assert.deepEqual([data[1].parameters.who, meta.count], ['c', 4]);
    const rest = await list(`_limit=2&cursor=${meta.cursor}`);
    assert.deepEqual(
      [rest.data.map(({ parameters }: { parameters: { who: string } }) => parameters.who), rest.meta.cursor],
      [['b', 'a'], undefined]
    );
    assert.deepEqual([(await list('failed=true')).data.length, (await list('failed=false')).meta.count], [1, -1]);
    assert.equal((await list('operation=delete_user')).data.length, 1);
    assert.equal((await list('caller=app')).data.length, 4);
    assert.equal((await list('caller=other')).data.length, 0);
    assert.equal((await server.call('GET', '/api/x/audit?cursor=x')).body.code, 108);
  });

  it('records no passwords, secrets or payloads for any operation', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      const told: AuditEntry[] = [];
      await using server = await serveManagement(broker, { revision, audit: (entry) => told.push(entry) });
      const rows = OPERATIONS.filter(
        (row) => row.method !== 'GET' && row.isReading !== true && (row.in === undefined || row.in.includes(revision))
      );
      let sent = 0;
      for (const { method, path, body } of rows) {
        const place = path.replace(/:[^/]+/g, 'x');
        const record = body === undefined ? undefined : filled(body);
        for (const given of record === undefined
          ? [record]
          : [record, [record], SENTINEL, `{"password":"${SENTINEL}"`]) {
          await server.call(method, `/api${place}?password=${SENTINEL}`, given);
          sent++;
        }
      }
      assert.ok(told.length > 40 && told.length === sent, `${told.length} of ${sent}`);
      assert.ok(!JSON.stringify(told).includes(SENTINEL));
      assert.ok(!(await server.call('GET', '/api/x/audit?_limit=1000')).text.includes(SENTINEL));
    }
  });

  it('counts consecutive publications of one caller in one entry, and records the first entries of a batch', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const topic of ['a', 'b', 'c']) await server.call('POST', '/api/mqtt/publish', { topic, payload: 'x' });
    const names = Array.from({ length: 30 }, (_, at) => ({ clientid: `c${at}`, password: 'p' }));
    await server.call('POST', '/api/auth_clientid', names);
    const [batch, publications] = (await server.call('GET', '/api/x/audit')).body.data;
    assert.deepEqual([publications.count, publications.parameters], [3, { topic: 'a' }]);
    assert.deepEqual([batch.parameters.entry_count, batch.parameters.entries.length], [30, 20]);
    assert.deepEqual(batch.parameters.entries[1], { clientid: 'c1' });
  });

  it('names the changed objects, without the values of options and the content of documents', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const recorded = async (method: string, path: string, body: unknown) => {
      await server.call(method, `/api${path}`, body);
      return (await server.call('GET', '/api/x/audit?_limit=1')).body.data[0].parameters;
    };
    const node = broker.settings.node;
    assert.deepEqual(await recorded('PUT', '/configs/emqx', { key: 'broker.sys_interval', value: SENTINEL }), {
      app: 'emqx',
      key: 'broker.sys_interval'
    });
    const options = { 'retainer.max_retained_messages': SENTINEL, 'retainer.max_payload_size': SENTINEL };
    assert.deepEqual(await recorded('PUT', `/nodes/${node}/plugin_configs/emqx_retainer`, options), {
      node,
      plugin: 'emqx_retainer',
      options: Object.keys(options)
    });
    const conditions = {
      ip_address: '192.0.2.1',
      conn_state: 'connected',
      clean_start: true,
      proto_name: 'MQTT',
      proto_ver: 5,
      zone: 'external',
      _like_clientid: 'c',
      _like_username: 'u',
      _gte_created_at: 1,
      _lte_created_at: 2,
      _gte_connected_at: 3,
      _lte_connected_at: 4
    };
    assert.deepEqual(await recorded('POST', '/x/clients/kick', conditions), conditions);
    const clientids = Array.from({ length: 30 }, (_, at) => `c${at}`);
    assert.deepEqual(await recorded('POST', '/x/clients/kick', { clientids }), {
      clientids: clientids.slice(0, 20),
      clientid_count: 30
    });
    const trace = { clientid: 'c', topic: 'a/#', ip_address: '192.0.2.1', duration_s: 60 };
    assert.deepEqual(await recorded('POST', '/x/traces', { ...trace, payload: 'none' }), trace);
    const slow = { threshold_ms: 5, limit: 10, expiry_s: 60 };
    assert.deepEqual(await recorded('PUT', '/x/slow_subscriptions', slow), slow);
    const document = {
      format: 'embermq-configuration',
      version: 1,
      sections: { acl: [{ access: 'allow', topic: SENTINEL }], usernames: [] }
    };
    assert.deepEqual(await recorded('POST', '/x/import', document), { mode: 'merge', sections: ['acl', 'usernames'] });
    const replaced = await recorded('POST', '/x/import?mode=replace', { ...document, sections: {} });
    assert.deepEqual(replaced, { mode: 'replace', sections: [] });
    const confirmed = await recorded('DELETE', '/x/retained?topic=a/%23&confirm=a/%23', undefined);
    assert.deepEqual(confirmed, { topic: 'a/#', confirm: 'a/#' });
    assert.ok(!(await server.call('GET', '/api/x/audit?_limit=1000')).text.includes(SENTINEL));
  });

  it('reports a failing function of the app, and still answers the request', async () => {
    await using broker = await startBroker();
    const failed = broker.nextEvent('error');
    await using server = await serveManagement(broker, {
      audit() {
        throw new Error('full');
      }
    });
    assert.equal((await server.call('DELETE', '/api/x/drops')).status, 200);
    assert.match((await failed).during, /"audit"/);
    assert.throws(() => serveManagement(broker, { audit: 'yes' as never }), { code: 'OPTION_INVALID' });
  });

  it('persists the audit log', async () => {
    const store = memoryStore();
    for (const expected of [1, 2]) {
      await using broker = createBroker({ store });
      await broker.start();
      await using server = await serveManagement(broker, { credentials: 'none' });
      await server.call('DELETE', '/api/x/drops');
      const { data } = (await server.call('GET', '/api/x/audit')).body;
      assert.deepEqual([data.length, data[0].caller], [expected, { kind: 'none' }]);
    }
  });
});
