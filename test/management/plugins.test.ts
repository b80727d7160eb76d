import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from 'embermq';
import type { ManagementOptions } from 'embermq/management';
import { PLUGIN_ALIASES } from '../../adapters/management/plugins.ts';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;
const NODE = '/api/nodes/embermq@127.0.0.1/plugins';
type Call = Awaited<ReturnType<typeof serveManagement>>['call'];

/** Run a test with the interface of each revision, each with a new broker that has a source `jwt`. */
async function inEach(
  run: (call: Call, broker: Broker, revision: string) => Promise<void>,
  options: ManagementOptions = {}
): Promise<void> {
  for (const revision of REVISIONS) {
    await using broker = await startBroker();
    await broker.access.create({ name: 'jwt', authenticate: () => undefined });
    await using server = await serveManagement(broker, { revision, ...options });
    await run(server.call, broker, revision);
  }
}

/** Send a PUT and return status, code and message. */
async function put(call: Call, path: string): Promise<readonly [number, number, string | undefined]> {
  const { status, body } = await call('PUT', path);
  return [status, body.code, body.message];
}

describe('Plugins over REST', () => {
  it('lists the features, the records, the sources and the interface itself as plugins', async () => {
    await inEach(async (call, broker) => {
      const { body } = await call('GET', '/api/plugins');
      assert.equal(body.data[0].node, 'embermq@127.0.0.1');
      const { plugins } = body.data[0];
      assert.deepEqual(
        plugins.map(({ name, active, type }: Record<string, unknown>) => `${name} ${active} ${type}`),
        [
          'delayed true feature',
          'jwt true auth',
          'management true feature',
          'presence true feature',
          'records true auth',
          'retainer true feature',
          'rewrite false feature',
          'rules true feature',
          'streams true feature'
        ]
      );
      for (const { version, description } of plugins) {
        assert.equal(version, broker.version);
        assert.match(description, /^[A-Z].*\.$/);
      }
      assert.deepEqual((await call('GET', NODE)).body.data, plugins);
      assert.equal((await call('GET', '/api/nodes/other/plugins')).status, 404);
    });
  });

  it('loads, unloads and reloads plugins on a node, by their names and those of the original products', async () => {
    await inEach(async (call, broker, revision) => {
      const loaded = revision === 'earlier' ? { code: 0, data: ['rewrite'] } : { code: 0 };
      assert.deepEqual((await call('PUT', `${NODE}/emqx_mod_rewrite/load`)).body, loaded);
      assert.deepEqual(await put(call, `${NODE}/retainer/unload`), [200, 0, undefined]);
      assert.deepEqual(await put(call, `${NODE}/emqx_auth_jwt/unload`), [200, 0, undefined]);
      assert.deepEqual(await put(call, `${NODE}/records/unload`), [200, 0, undefined]);
      const active = () => broker.features.list().map(({ name, isStarted }) => `${name} ${isStarted}`);
      assert.deepEqual(active(), ['delayed true', 'presence true', 'retainer false', 'rewrite true', 'rules true']);
      assert.deepEqual(
        broker.access.list().map(({ isStarted }) => isStarted),
        [false, false]
      );
      for (const name of ['emqx_retainer', 'jwt', 'emqx_auth_username'])
        assert.deepEqual(await put(call, `${NODE}/${name}/reload`), [200, 0, undefined], name);
      assert.deepEqual(active()[2], 'retainer true');
      assert.deepEqual(
        broker.access.list().map(({ isStarted }) => isStarted),
        [true, true]
      );
    });
  });

  it('includes the stream service, whose rules stop and start with it', async () => {
    await inEach(async (call, broker) => {
      const { streams } = broker;
      await streams.create('CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="json")');
      await streams.rules.create({ id: 'r1', sql: 'SELECT * FROM demo', actions: [{ nop: {} }] });
      const active = async () => {
        const { body } = await call('GET', NODE);
        return body.data.find(({ name }: { name: string }) => name === 'streams').active;
      };
      const status = async () => (await streams.rules.status('r1')).text;
      assert.deepEqual(await put(call, `${NODE}/streams/unload`), [200, 0, undefined]);
      assert.deepEqual([await active(), streams.isRunning], [false, false]);
      await assert.rejects(status, { code: 'STREAMS_STOPPED' });
      assert.deepEqual((await put(call, `${NODE}/streams/unload`)).slice(0, 2), [400, 111]);
      assert.equal((await call('PUT', `${NODE}/streams/load`)).status, 200);
      assert.deepEqual([await active(), await status()], [true, 'Running']);
      assert.deepEqual((await put(call, `${NODE}/streams/load`)).slice(0, 2), [400, 110]);
      assert.deepEqual(await put(call, `${NODE}/streams/reload`), [200, 0, undefined]);
      assert.deepEqual([await active(), await status()], [true, 'Running']);
      await streams.stop(); // as the deletion of a plugin with restart=1 does
      assert.deepEqual(await put(call, '/api/plugins/streams/reload'), [200, 0, undefined]);
      assert.equal(await status(), 'Running');
    });
  });

  it('unloads and reloads plugins on all nodes', async () => {
    await inEach(async (call, broker) => {
      assert.deepEqual(await put(call, '/api/plugins/emqx_delayed_publish/unload'), [200, 0, undefined]);
      assert.equal(broker.features.list()[0]?.isStarted, false);
      assert.deepEqual(await put(call, '/api/plugins/delayed/reload'), [200, 0, undefined]);
      assert.equal(broker.features.list()[0]?.isStarted, true);
    });
  });

  it('refuses to load loaded plugins, to unload unloaded ones, and unknown names', async () => {
    await inEach(async (call) => {
      const faults: [path: string, status: number, code: number, message: RegExp][] = [
        [`${NODE}/retainer/load`, 400, 110, /"retainer" is already loaded/],
        [`${NODE}/jwt/load`, 400, 110, /"jwt" is already loaded/],
        [`${NODE}/emqx_mod_rewrite/unload`, 400, 111, /"rewrite" is not loaded/],
        ['/api/plugins/rewrite/unload', 400, 111, /"rewrite" is not loaded/],
        [`${NODE}/emqx_lua_hook/load`, 404, 105, /there is no plugin "emqx_lua_hook"/],
        [`${NODE}/emqx_auth_ldap/unload`, 404, 105, /there is no plugin "emqx_auth_ldap"/],
        ['/api/plugins/retained/reload', 404, 105, /did you mean "retainer"/],
        ['/api/plugins/toString/unload', 404, 105, /there is no plugin/],
        ['/api/nodes/other/plugins/jwt/unload', 404, 102, /other/],
        ['/api/nodes/other/plugins/jwt/load', 404, 102, /other/],
        ['/api/nodes/other/plugins/jwt/reload', 404, 102, /other/]
      ];
      for (const [path, status, code, message] of faults) {
        const found = await put(call, path);
        assert.deepEqual(found.slice(0, 2), [status, code], path);
        assert.match(`${found[2]}`, message);
      }
    });
  });

  it('refuses to unload the interface that serves the request with code 110', async () => {
    await inEach(async (call) => {
      for (const path of [`${NODE}/emqx_management`, `${NODE}/management`, '/api/plugins/emqx_management'])
        for (const change of ['unload', 'reload'])
          assert.deepEqual((await put(call, `${path}/${change}`)).slice(0, 2), [400, 110]);
      assert.deepEqual((await put(call, `${NODE}/management/load`)).slice(0, 2), [400, 110]);
      assert.equal((await call('GET', NODE)).status, 200);
    });
  });

  it('refuses with the words of the original products, and with code 101 for all nodes in the earlier revision', async () => {
    await inEach(
      async (call, _broker, revision) => {
        const body = async (path: string) => (await call('PUT', path)).body;
        assert.deepEqual(await body(`${NODE}/retainer/load`), { message: 'already_started' });
        assert.deepEqual(await body(`${NODE}/rewrite/unload`), { message: 'not_started' });
        assert.deepEqual(await body(`${NODE}/nothing/load`), { message: 'not_found' });
        const code = revision === 'earlier' ? { code: 101 } : {};
        assert.deepEqual(await body('/api/plugins/rewrite/unload'), { ...code, message: 'not_started' });
        assert.deepEqual(await body('/api/plugins/nothing/reload'), { ...code, message: 'not_found' });
      },
      { errors: 'original' }
    );
  });

  it('refuses unknown clients while the only source is unloaded', async () => {
    await inEach(async (call, broker) => {
      await broker.access.delete('jwt');
      await broker.access.create({ name: 'http', authenticate: ({ username }) => username === 'ann' || undefined });
      await (await broker.connect({ clientId: 'a', username: 'ann' })).disconnect();
      await call('PUT', '/api/plugins/emqx_auth_http/unload');
      for (const username of ['ann', 'eve'])
        await assert.rejects(broker.connect({ clientId: 'a', username }), { code: 'CONNECT_REFUSED' });
    });
  });

  it('maps every alias to a part of the broker', async () => {
    await using broker = await startBroker();
    const known = [...broker.features.list(), ...broker.access.list()].map(({ name }) => name);
    const sources = ['acl', 'acl-file', 'http', 'jwt', 'ldap', 'mysql', 'postgresql', 'redis', 'mongodb'];
    const connectors = ['webhook:default', 'bridge:default']; // only if the broker has such connectors
    for (const names of Object.values(PLUGIN_ALIASES))
      for (const name of names) assert.ok([...known, ...sources, ...connectors, 'management'].includes(name), name);
  });
});
