import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;
type RevisionName = (typeof REVISIONS)[number];

/** An entry of the index. The path is spelled as documented: with or without a slash at its beginning and its end. */
type Row = readonly [name: string, method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string];

/** The documented operations, by the revisions that have them. */
const DOCUMENTED: Readonly<Record<'all' | 'earlier' | 'later and hosted', readonly Row[]>> = {
  all: [
    ['list_clientid', 'GET', '/auth_clientid'],
    ['lookup_clientid', 'GET', '/auth_clientid/:clientid'],
    ['add_clientid', 'POST', '/auth_clientid'],
    ['update_clientid', 'PUT', '/auth_clientid/:clientid'],
    ['delete_clientid', 'DELETE', '/auth_clientid/:clientid'],
    ['list_username', 'GET', '/auth_username'],
    ['lookup_username', 'GET', '/auth_username/:username'],
    ['add_username', 'POST', '/auth_username'],
    ['update_username', 'PUT', '/auth_username/:username'],
    ['delete_username', 'DELETE', '/auth_username/:username'],
    ['add', 'POST', '/acl'],
    ['list_clientid', 'GET', '/acl/clientid'],
    ['list_username', 'GET', '/acl/username'],
    ['list_all', 'GET', '/acl/$all'],
    ['lookup_clientid', 'GET', '/acl/clientid/:clientid'],
    ['lookup_username', 'GET', '/acl/username/:username'],
    ['delete_clientid', 'DELETE', '/acl/clientid/:clientid/topic/:topic'],
    ['delete_username', 'DELETE', '/acl/username/:username/topic/:topic'],
    ['delete_all', 'DELETE', '/acl/all/$all/topic/:topic'],
    ['list_subscriptions', 'GET', '/subscriptions'],
    ['lookup_client_subscriptions', 'GET', '/subscriptions/:clientid'],
    ['list_node_subscriptions', 'GET', '/nodes/:node/subscriptions'],
    ['lookup_client_subscriptions_with_node', 'GET', '/nodes/:node/subscriptions/:clientid'],
    ['mqtt_subscribe', 'POST', '/mqtt/subscribe'],
    ['mqtt_unsubscribe', 'POST', '/mqtt/unsubscribe'],
    ['mqtt_subscribe_batch', 'POST', '/mqtt/subscribe_batch'],
    ['mqtt_unsubscribe_batch', 'POST', '/mqtt/unsubscribe_batch'],
    ['mqtt_publish', 'POST', '/mqtt/publish'],
    ['mqtt_publish_batch', 'POST', '/mqtt/publish_batch'],
    ['list_brokers', 'GET', '/brokers'],
    ['get_broker', 'GET', '/brokers/:node'],
    ['list_nodes', 'GET', '/nodes'],
    ['get_node', 'GET', '/nodes/:node'],
    ['list_routes', 'GET', '/routes'],
    ['lookup_routes', 'GET', '/routes/:topic'],
    ['auth_user', 'POST', '/auth'],
    ['create_user', 'POST', '/users/'],
    ['list_users', 'GET', '/users/'],
    ['update_user', 'PUT', '/users/:name'],
    ['delete_user', 'DELETE', '/users/:name'],
    ['change_pwd', 'PUT', '/change_pwd/:username'],
    ['list_all_alarms', 'GET', '/alarms/present'],
    ['list_node_alarms', 'GET', '/alarms/present/:node'],
    ['list_all_alarm_history', 'GET', '/alarms/history'],
    ['list_node_alarm_history', 'GET', '/alarms/history/:node'],
    ['add_app', 'POST', '/apps/'],
    ['del_app', 'DELETE', '/apps/:appid'],
    ['list_apps', 'GET', '/apps/'],
    ['lookup_app', 'GET', '/apps/:appid'],
    ['update_app', 'PUT', '/apps/:appid'],
    ['list_banned', 'GET', '/banned/'],
    ['create_banned', 'POST', '/banned/'],
    ['delete_banned', 'DELETE', '/banned/:who'],
    ['get_all_configs', 'GET', '/configs/'],
    ['get_all_configs', 'GET', '/nodes/:node/configs/'],
    ['update_config', 'PUT', '/configs/:app'],
    ['update_node_config', 'PUT', '/nodes/:node/configs/:app'],
    ['get_plugin_configs', 'GET', '/nodes/:node/plugin_configs/:plugin'],
    ['update_plugin_configs', 'PUT', '/nodes/:node/plugin_configs/:plugin'],
    ['list_listeners', 'GET', '/listeners/'],
    ['list_node_listeners', 'GET', '/nodes/:node/listeners'],
    ['list_all_metrics', 'GET', '/metrics/'],
    ['list_node_metrics', 'GET', '/nodes/:node/metrics/'],
    ['list_stats', 'GET', '/stats/'],
    ['lookup_node_stats', 'GET', '/nodes/:node/stats/'],
    ['list_all_plugins', 'GET', '/plugins/'],
    ['list_node_plugins', 'GET', '/nodes/:node/plugins/'],
    ['load_plugin', 'PUT', '/nodes/:node/plugins/:plugin/load'],
    ['unload_plugin', 'PUT', '/nodes/:node/plugins/:plugin/unload'],
    ['reload_plugin', 'PUT', '/nodes/:node/plugins/:plugin/reload'],
    ['unload_plugin', 'PUT', '/plugins/:plugin/unload'],
    ['reload_plugin', 'PUT', '/plugins/:plugin/reload'],
    ['create_rule', 'POST', '/rules/'],
    ['list_rules', 'GET', '/rules/'],
    ['show_rule', 'GET', '/rules/:id'],
    ['update_rule', 'PUT', '/rules/:id'],
    ['delete_rule', 'DELETE', '/rules/:id'],
    ['list_actions', 'GET', '/actions/'],
    ['show_action', 'GET', '/actions/:name'],
    ['list_resource_types', 'GET', '/resource_types/'],
    ['show_resource_type', 'GET', '/resource_types/:name'],
    ['list_resources_by_type', 'GET', '/resource_types/:type/resources'],
    ['list_actions_by_type', 'GET', '/resource_types/:type/actions'],
    ['create_resource', 'POST', '/resources/'],
    ['list_resources', 'GET', '/resources/'],
    ['show_resource', 'GET', '/resources/:id'],
    ['start_resource', 'POST', '/resources/:id'],
    ['get_resource_status', 'GET', '/resource_status/:id'],
    ['delete_resource', 'DELETE', '/resources/:id'],
    ['list_events', 'GET', '/rule_events/']
  ],
  earlier: [
    ['list_connections', 'GET', '/connections'],
    ['list_node_connections', 'GET', 'nodes/:node/connections/'],
    ['lookup_connections', 'GET', '/connections/:clientid'],
    ['lookup_node_connections', 'GET', 'nodes/:node/connections/:clientid'],
    ['lookup_node_connection_via_username', 'GET', '/nodes/:node/connection/username/:username'],
    ['lookup_connection_via_username', 'GET', '/connection/username/:username'],
    ['kickout_connection', 'DELETE', '/connections/:clientid'],
    ['list_sessions', 'GET', '/sessions'],
    ['list_node_sessions', 'GET', 'nodes/:node/sessions/'],
    ['lookup_session', 'GET', '/sessions/:clientid'],
    ['lookup_node_session', 'GET', 'nodes/:node/sessions/:clientid'],
    ['clean_presisent_session', 'DELETE', '/sessions/persistent/:clientid'],
    ['clean_node_presisent_session', 'DELETE', 'nodes/:node/sessions/persistent/:clientid'],
    ['list_all_alarms', 'GET', '/alarms/'],
    ['list_node_alarms', 'GET', '/alarms/:node']
  ],
  'later and hosted': [
    ['list_clients', 'GET', '/clients'],
    ['lookup_client', 'GET', '/clients/:clientid'],
    ['kickout_client', 'DELETE', '/clients/:clientid'],
    ['list_node_clients', 'GET', 'nodes/:node/clients/'],
    ['lookup_node_client', 'GET', 'nodes/:node/clients/:clientid'],
    ['lookup_client_via_username', 'GET', '/clients/username/:username'],
    ['lookup_node_client_via_username', 'GET', '/nodes/:node/clients/username/:username'],
    ['list_acl_cache', 'GET', '/clients/:clientid/acl_cache'],
    ['clean_acl_cache', 'DELETE', '/clients/:clientid/acl_cache'],
    ['list_emqx_user', 'GET', '/auth_user'],
    ['add_emqx_user', 'POST', '/auth_user'],
    ['update_emqx_user', 'PUT', '/auth_user/:login'],
    ['delete_emqx_user', 'DELETE', '/auth_user/:login']
  ]
};

/** Operations of the original products that the documentation does not list. */
const UNDOCUMENTED: typeof DOCUMENTED = {
  all: [
    ['delete_all', 'DELETE', '/acl/$all/topic/:topic'],
    ['reset_metrics', 'PUT', '/rules/:id/reset_metrics'],
    ['update_resource', 'PUT', '/resources/:id']
  ],
  earlier: [],
  'later and hosted': [
    ['lookup_emqx_user', 'GET', '/auth_user/:login'],
    ['kickout_node_client', 'DELETE', '/nodes/:node/clients/:clientid'],
    ['delete_banned', 'DELETE', '/banned/:as/:who']
  ]
};

function rowsIn(revision: RevisionName): Row[] {
  const tied = revision === 'earlier' ? 'earlier' : 'later and hosted';
  return [DOCUMENTED, UNDOCUMENTED].flatMap((rows) => [...rows.all, ...rows[tied]]);
}

/** A line of the index, without the spelling of its path. */
function lineOf([name, method, path]: Row): string {
  return `${name} ${method} /${path.split('/').filter(Boolean).join('/')}`;
}

describe('The operations of the management interface', () => {
  for (const revision of REVISIONS) {
    it(`offers the documented operations in the revision "${revision}", and those below /x/`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const index: { name: string; method: Row[1]; path: string }[] = (await server.call('GET', '/api/')).body.data;
      const listed = index.map(({ name, method, path }) => lineOf([name, method, path]));
      assert.equal(new Set(listed).size, listed.length, 'nothing is listed twice');
      assert.deepEqual(
        listed.filter((line) => !/^\w+ [A-Z]+ \/x\//.test(line)).sort(),
        rowsIn(revision).map(lineOf).sort()
      );
    });

    it(`finds operations in the revision "${revision}", however the slashes of their paths are written`, async () => {
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      const ask = async (method: string, path: string) => {
        const { status, body } = await server.call(method, path, method === 'GET' ? undefined : {});
        return status === 404 && /^there is no operation/.test(body.message) ? 'unknown path' : 'found';
      };
      assert.equal(await ask('GET', '/api/no_such_path'), 'unknown path');
      assert.equal(await ask('PATCH', '/api/nodes'), 'unknown path');
      for (const [, method, path] of rowsIn(revision)) {
        const filled = path.replace(':node', encodeURIComponent(broker.settings.node)).replace(/:\w+/g, 'x');
        const plain = filled.split('/').filter(Boolean).join('/');
        for (const asked of new Set([`/api/${filled}`, `/api/${plain}`, `/api/${plain}/`]))
          assert.equal(await ask(method, asked), 'found', `${method} ${asked}`);
      }
    });
  }
});
