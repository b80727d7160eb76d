import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RevisionName } from 'embermq/management';
import { serveManagement } from '../support/management.ts';
import { startExampleBroker } from '../support/management-fixture.ts';

const NODE = 'embermq@127.0.0.1';
const ALL: readonly RevisionName[] = ['earlier', 'later', 'hosted'];
const LATER: readonly RevisionName[] = ['later', 'hosted'];

/** A resource that is read, and sent back as it was received. */
interface Resource {
  readonly get: string;
  /** The request that sends back the data of the answer, or a row of it. */
  readonly send: 'PUT' | 'POST';
  /** Default: the path that was read. */
  readonly to?: (row: Readonly<Record<string, unknown>>) => string;
  /** The rows of the answer, each of which is sent separately. Default: the data as a whole. */
  readonly rows?: (data: never) => readonly unknown[];
  readonly in?: readonly RevisionName[];
}

const each = (data: never) => data as readonly unknown[];
const RESOURCES: readonly Resource[] = [
  { get: '/auth_clientid/sensor-1', send: 'PUT' },
  { get: '/auth_username/sensors', send: 'PUT' },
  { get: '/auth_user/operator', send: 'PUT', in: LATER },
  { get: '/auth_user', send: 'PUT', rows: each, to: ({ login }) => `/auth_user/${login}`, in: LATER },
  { get: '/acl/clientid', send: 'POST', to: () => '/acl' },
  { get: '/acl/username', send: 'POST', to: () => '/acl' },
  { get: '/acl/$all', send: 'POST', to: () => '/acl' },
  { get: '/acl/clientid/sensor-1', send: 'POST', to: () => '/acl' },
  { get: '/users', send: 'PUT', rows: each, to: ({ username }) => `/users/${username}` },
  { get: '/apps/reports', send: 'PUT' },
  { get: '/apps', send: 'PUT', rows: each, to: ({ app_id: id }) => `/apps/${id}` },
  { get: '/banned', send: 'POST', rows: each, to: () => '/banned' },
  { get: '/configs', send: 'PUT', rows: (data) => data[0]['config'], to: ({ app }) => `/configs/${app}` },
  {
    get: `/nodes/${NODE}/configs`,
    send: 'PUT',
    rows: each,
    to: ({ app }) => `/nodes/${NODE}/configs/${app}`
  },
  { get: `/nodes/${NODE}/plugin_configs/emqx_retainer`, send: 'PUT' },
  { get: '/rules/rule:hot-sensors', send: 'PUT' },
  { get: '/rules/rule:calls', send: 'PUT' },
  { get: '/rules', send: 'PUT', rows: each, to: ({ id }) => `/rules/${id}` },
  { get: '/resources/resource:alarm-server', send: 'PUT' },
  { get: '/resources', send: 'PUT', rows: each, to: ({ id }) => `/resources/${id}` },
  { get: '/x/export', send: 'POST', to: () => '/x/import' },
  { get: '/x/webhooks/first', send: 'PUT' },
  { get: '/x/bridges/first', send: 'PUT' },
  { get: '/x/slow_subscriptions', send: 'PUT' }
];

/** Times and counters that may change meanwhile. */
const LIVE = ['exportedAt', 'speed'];

function stable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, one) => (LIVE.includes(key) ? undefined : one)));
}

describe('Records that are sent back', () => {
  for (const { get, send, to, rows, in: revisions = ALL } of RESOURCES)
    for (const revision of revisions)
      it(`changes nothing when the record of GET ${get} is sent back with ${send}, in the revision "${revision}"`, async () => {
        await using broker = await startExampleBroker();
        await broker.access.banned.create({ kind: 'username', who: 'for-ever', until: Infinity });
        await broker.access.banned.create({
          kind: 'username',
          who: 'odd',
          at: 1_767_225_600_123,
          until: 1_900_000_000_123
        });
        await broker.applications.create({ id: 'odd', secret: 'secret of odd', expiresAt: 1_900_000_000_123 });
        await broker.rules.create({
          id: 'rule:calls',
          sql: 'SELECT payload FROM "alarms/#"',
          actions: [
            {
              name: 'republish',
              params: { target_topic: 'calls', target_qos: 1, payload_tmpl: 'hot' },
              fallbacks: [{ name: 'inspect', params: {} }]
            }
          ]
        });
        await using server = await serveManagement(broker, { revision, credentials: 'host' });
        const call = async (method: string, path: string, body?: unknown) => {
          const answer = await server.call(method, `/api${path}`, body);
          assert.equal(answer.status, 200, `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`);
          return answer.body;
        };
        const read = async () => {
          const body = await call('GET', get);
          return body.code === undefined ? body : body.data;
        };
        const data = await read();
        const kept = JSON.stringify([...broker.applications.exported(), ...broker.access.banned.exported()]);
        const overrides = broker.configuration.overrides();
        const sent = rows === undefined ? [data] : rows(data as never);
        assert.ok(sent.length > 0);
        for (const row of sent) {
          const { code = 0 } = await call(send, to?.(row as never) ?? get, row);
          assert.equal(code, 0);
        }
        assert.deepEqual(stable(await read()), stable(data));
        assert.equal(JSON.stringify([...broker.applications.exported(), ...broker.access.banned.exported()]), kept);
        assert.deepEqual(broker.configuration.overrides(), overrides);
      });
});
