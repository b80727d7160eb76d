import type { Static } from 'typebox';
import type { Broker } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { flag, listOf, objectOf, oneOf, optional, text } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
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

/** An operation that loads or unloads a plugin, on a node or in the cluster. @param plugin the plugin of the example */
function change(
  verb: 'load' | 'unload' | 'reload',
  run: (context: Context, plugin: string) => unknown,
  { plugin, where = 'node' }: { readonly plugin: string; readonly where?: 'node' | 'cluster' }
): Operation {
  const descr = `${verb[0].toUpperCase()}${verb.slice(1)} a plugin`;
  const path = `/plugins/:plugin/${verb}` as '/plugins/:plugin/load';
  const onNode = { path: `/nodes/:node${path}`, ctl: `plugins ${verb} NAME=plugin`, descr } as const;
  const inCluster = { path, descr: `${descr} in the cluster`, originalAnswer: clusterAnswer };
  return operation({
    ...(where === 'node' ? onNode : inCluster),
    name: `${verb}_plugin`,
    method: 'PUT',
    data: verb === 'load' ? optional(listOf(text(), 'Earlier: the names of what has been started')) : undefined,
    example: { params: where === 'node' ? { node: NODE, plugin } : { plugin } },
    run: (context, { params }) => run(context, params.plugin)
  }) as Operation;
}

/** Plugins that can be loaded and unloaded: features, and sources of authentication and rules. */
export const PLUGINS: readonly Operation[] = [
  operation({
    name: 'list_node_plugins',
    ofAllNodes: { field: 'plugins', name: 'list_all_plugins', descr: 'List all plugins in the cluster' },
    method: 'GET',
    path: '/nodes/:node/plugins',
    ctl: { 'plugins list': 'name active type description' },
    descr: 'List all plugins on a node',
    data: listOf(PLUGIN),
    example: { params: { node: NODE } },
    run: (context) => plugins(context.broker)
  }),
  change('load', load, { plugin: 'emqx_mod_rewrite' }),
  change('unload', unload, { plugin: 'emqx_delayed_publish' }),
  change('reload', reload, { plugin: 'emqx_mod_presence' }),
  change('unload', unload, { plugin: 'emqx_mod_presence', where: 'cluster' }),
  change('reload', reload, { plugin: 'presence', where: 'cluster' })
];
