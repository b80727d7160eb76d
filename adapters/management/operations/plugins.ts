import type { Static } from 'typebox';
import type { Broker } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { flag, listOf, objectOf, oneOf, optional, text } from '../../rest/kit/index.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { pluginNamed, pluginsOf } from '../plugins.ts';

const PLUGIN = objectOf({
  name: text('Name of the feature or source, or "management"'),
  version: text('Version of the broker'),
  description: text('The purpose of the plugin'),
  active: flag('True if it is loaded'),
  type: oneOf(['auth', 'bridge', 'feature'], '"auth": it authenticates or authorizes clients')
});

function plugins(broker: Broker): Static<typeof PLUGIN>[] {
  const { version } = broker;
  return pluginsOf(broker).map(({ name, description, isActive, type }) => {
    return { name, version, description, active: isActive, type };
  });
}

/**
 * Load a plugin.
 * @returns the answer of the revision
 */
async function load({ broker, revision }: Context, name: string): Promise<unknown> {
  const plugin = pluginNamed(broker, name);
  if (!(await plugin.start()))
    throw new Fault('running', `the plugin "${plugin.name}" is already loaded`, 'already_started');
  return revision.listsLoaded ? [plugin.name] : undefined;
}

async function unload({ broker }: Context, name: string): Promise<void> {
  const plugin = pluginNamed(broker, name);
  if (!(await plugin.stop()))
    throw new Fault('notRunning', `the plugin "${plugin.name}" is not loaded; load it first`, 'not_started');
}

/**
 * Stop and start a plugin; a source reads its files again. A plugin that is not loaded is loaded, as in the original
 * products.
 */
async function reload({ broker }: Context, name: string): Promise<void> {
  await pluginNamed(broker, name).restart();
}

/** The answer of the original products to a failed operation for all nodes. */
const clusterAnswer: Operation['originalAnswer'] = ({ kind, message, original = message }, { clusterPluginCode }) => {
  const isOfPlugin = kind === 'notRunning' || kind === 'unknownRecord' || kind === 'running';
  return isOfPlugin && clusterPluginCode !== undefined ? { code: clusterPluginCode, message: original } : undefined;
};

/** Plugins that can be loaded and unloaded: features, and sources of authentication and rules. */
export const PLUGINS: readonly Operation[] = [
  operation({
    name: 'list_all_plugins',
    method: 'GET',
    path: '/plugins',
    descr: 'List all plugins in the cluster',
    data: listOf(objectOf({ node: text('Name of the node'), plugins: listOf(PLUGIN) })),
    example: {},
    run: ({ broker }) => [{ node: broker.settings.node, plugins: plugins(broker) }]
  }),
  operation({
    name: 'list_node_plugins',
    method: 'GET',
    path: '/nodes/:node/plugins',
    ctl: { 'plugins list': 'name active type description' },
    descr: 'List all plugins on a node',
    data: listOf(PLUGIN),
    example: { params: { node: 'embermq@127.0.0.1' } },
    run: (context) => plugins(context.broker)
  }),
  operation({
    name: 'load_plugin',
    method: 'PUT',
    path: '/nodes/:node/plugins/:plugin/load',
    ctl: 'plugins load NAME=plugin',
    descr: 'Load a plugin',
    data: optional(listOf(text(), 'Earlier: the names of what has been started')),
    example: { params: { node: 'embermq@127.0.0.1', plugin: 'emqx_mod_rewrite' } },
    run: (context, { params }) => load(context, params.plugin)
  }),
  operation({
    name: 'unload_plugin',
    method: 'PUT',
    path: '/nodes/:node/plugins/:plugin/unload',
    ctl: 'plugins unload NAME=plugin',
    descr: 'Unload a plugin',
    example: { params: { node: 'embermq@127.0.0.1', plugin: 'emqx_delayed_publish' } },
    run: (context, { params }) => unload(context, params.plugin)
  }),
  operation({
    name: 'reload_plugin',
    method: 'PUT',
    path: '/nodes/:node/plugins/:plugin/reload',
    ctl: 'plugins reload NAME=plugin',
    descr: 'Reload a plugin',
    example: { params: { node: 'embermq@127.0.0.1', plugin: 'emqx_mod_presence' } },
    run: (context, { params }) => reload(context, params.plugin)
  }),
  operation({
    name: 'unload_plugin',
    method: 'PUT',
    path: '/plugins/:plugin/unload',
    descr: 'Unload a plugin in the cluster',
    example: { params: { plugin: 'emqx_mod_presence' } },
    originalAnswer: clusterAnswer,
    run: (context, { params }) => unload(context, params.plugin)
  }),
  operation({
    name: 'reload_plugin',
    method: 'PUT',
    path: '/plugins/:plugin/reload',
    descr: 'Reload a plugin in the cluster',
    example: { params: { plugin: 'presence' } },
    originalAnswer: clusterAnswer,
    run: (context, { params }) => reload(context, params.plugin)
  })
];
