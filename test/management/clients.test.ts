import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from 'embermq';
import { serveManagement, startBroker } from '../support/management.ts';

const LATER = ['later', 'hosted'] as const;

type Row = Readonly<Record<string, unknown>>;
const idsIn = (rows: readonly Row[]) => rows.map(({ clientid }) => clientid);

/** Connect four clients; the last one disconnects, and its session stays. */
async function connectAll(broker: Broker): Promise<void> {
  const from = (remoteAddress: string) => ({ transport: 'tcp' as const, remoteAddress, remotePort: 5_000 });
  await broker.connect({ clientId: 'a/1', username: 'ann', transportInfo: from('192.0.2.1') });
  await broker.connect({ clientId: 'a2', username: 'ann', protocolVersion: 4, transportInfo: from('192.0.2.2') });
  await broker.connect({ clientId: 'b', username: 'bob', clean: false, protocolVersion: 4 });
  const away = await broker.connect({ clientId: 'away', sessionExpiry: 60 });
  const gone = broker.nextEvent('client.disconnected');
  await away.disconnect();
  await gone;
}

for (const revision of LATER)
  describe(`Clients in the revision ${revision}`, () => {
    it('lists clients by each condition, and by several', async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const before = Date.now();
      await connectAll(broker);
      const after = Date.now() + 1_000;
      for (const [query, expected] of [
        ['clientid=a/1', ['a/1']],
        ['username=ann', ['a/1', 'a2']],
        ['zone=external', ['a/1', 'a2', 'b', 'away']],
        ['zone=internal', []],
        ['ip_address=192.0.2.2', ['a2']],
        ['conn_state=connected', ['a/1', 'a2', 'b']],
        ['conn_state=disconnected', ['away']],
        ['conn_state=idle', []],
        ['clean_start=false', ['b']],
        ['proto_name=MQTT', ['a/1', 'a2', 'b', 'away']],
        ['proto_name=CoAP', []],
        ['proto_ver=4', ['a2', 'b']],
        ['_like_clientid=a', ['a/1', 'a2', 'away']],
        ['_like_username=n', ['a/1', 'a2']],
        [`_gte_created_at=${before}`, ['a/1', 'a2', 'b', 'away']],
        [`_gte_created_at=${after}`, []],
        [`_lte_created_at=${after}`, ['a/1', 'a2', 'b', 'away']],
        [`_gte_connected_at=${after}`, []],
        [`_lte_connected_at=${after}`, ['a/1', 'a2', 'b', 'away']],
        ['_like_clientid=a&proto_ver=4', ['a2']]
      ] as const)
        for (const path of ['/api/clients', '/api/nodes/embermq@127.0.0.1/clients']) {
          const { status, body } = await server.call('GET', `${path}?${query}`);
          assert.deepEqual([status, idsIn(body.data)], [200, expected], `${path}?${query}`);
          assert.equal(body.meta.count, -1);
        }
    });

    it('looks up clients by client id and by user name, in the cluster and on a node', async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      await connectAll(broker);
      const node = '/api/nodes/embermq@127.0.0.1/clients';
      for (const [path, expected] of [
        ['/api/clients/a%2F1', ['a/1']],
        [`${node}/a%2F1`, ['a/1']],
        ['/api/clients/nobody', []],
        ['/api/clients/username/ann', ['a/1', 'a2']],
        [`${node}/username/ann`, ['a/1', 'a2']],
        [`${node}/username/nobody`, []]
      ] as const) {
        const { status, body } = await server.call('GET', path);
        assert.deepEqual([status, body.code, idsIn(body.data)], [200, 0, expected], path);
      }
      const elsewhere = await server.call('GET', '/api/nodes/other@127.0.0.1/clients/username/ann');
      assert.deepEqual([elsewhere.status, elsewhere.body.code], [404, 102]);
    });

    it('kicks a client, ending its connection and its session', async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      await connectAll(broker);
      for (const path of ['/api/clients/b', '/api/nodes/embermq@127.0.0.1/clients/away'])
        assert.deepEqual((await server.call('DELETE', path)).body, { code: 0 });
      assert.deepEqual([broker.sessions.has('b'), broker.sessions.has('away')], [false, false]);
      const again = await server.call('DELETE', '/api/clients/b');
      assert.deepEqual([again.status, again.body.code], [404, 112]);
    });

    it('lists and clears the ACL cache of a client', async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const asked: string[] = [];
      broker.hook(
        'authorizePublish',
        ({ message }) => {
          asked.push(message.topic);
          return message.topic !== 'no';
        },
        { cache: 'route' }
      );
      const client = await broker.connect({ clientId: 'c' });
      await client.publish('yes', '', { qos: 1 });
      await assert.rejects(client.publish('no', '', { qos: 1 }));
      const { data } = (await server.call('GET', '/api/clients/c/acl_cache')).body;
      const rows = data.map(({ access, topic, result, by, detail }: Row) => [access, topic, result, by, detail]);
      assert.deepEqual(rows.sort(), [
        ['publish', 'no', 'deny', 'hook', 'a hook of the app'],
        ['publish', 'yes', 'allow', undefined, undefined]
      ]);
      for (const { updated_time } of data) assert.ok(Math.abs(updated_time - Date.now()) < 60_000);
      await client.publish('yes', '', { qos: 1 });
      assert.deepEqual(asked, ['yes', 'no']);
      assert.deepEqual((await server.call('DELETE', '/api/clients/c/acl_cache')).body, { code: 0 });
      assert.deepEqual((await server.call('GET', '/api/clients/c/acl_cache')).body.data, []);
      await client.publish('yes', '', { qos: 1 });
      assert.deepEqual(asked, ['yes', 'no', 'yes']);
      for (const method of ['GET', 'DELETE']) {
        const { status, body } = await server.call(method, '/api/clients/nobody/acl_cache');
        assert.deepEqual([status, body.code], [404, 112]);
      }
    });
  });

describe('Subscriptions of clients, one for each entry of a batch', () => {
  for (const [revision, key] of [
    ['earlier', 'client_id'],
    ['later', 'clientid'],
    ['hosted', 'clientid']
  ] as const)
    it(`subscribes and unsubscribes for each entry of a batch in the revision ${revision}`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const client = await broker.connect({ clientId: 'c' });
      const entries = [
        { [key]: 'c', topic: 'a/#', qos: 1 },
        { [key]: 'nobody', topic: 'b' }
      ];
      const made = (await server.call('POST', '/api/mqtt/subscribe_batch', entries)).body;
      assert.deepEqual(
        made.data.map(({ code }: Row) => code),
        [0, 112]
      );
      const received = client.messages();
      await broker.publish('a/1', 'x', { qos: 1 });
      assert.equal((await received.next()).value?.topic, 'a/1');
      const filters = entries.map(({ qos: _, ...entry }) => entry);
      const removed = (await server.call('POST', '/api/mqtt/unsubscribe_batch', filters)).body;
      assert.equal(removed.code, 0);
      assert.deepEqual(
        removed.data.map(({ code }: Row) => code),
        [0, 112]
      );
      assert.equal((await broker.publish('a/1', 'x')).receivers, 0);
    });
});
