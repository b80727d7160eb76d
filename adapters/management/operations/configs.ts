// A row for each operation. Options are those of `broker.configuration`; values are shown as strings that can be sent
// back, and a record that is sent back as it was listed changes nothing, so that no override is made of a default. A
// change that would expose the broker is refused before it is made. The misspelt field `datatpye` is that of the
// documented products.

import type { Static } from 'typebox';
import { settingText } from '../../../lib/adapter.ts';
import type { Broker, Setting } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { any, anyOf, flag, listOf, number, objectOf, optional, recordOf, text } from '../../rest/kit/index.ts';
import { checkExposure } from '../exposure.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { type Plugin, pluginNamed, pluginOfSetting } from '../plugins.ts';
import { givenValue, shownValue } from '../setting-values.ts';

const VALUE = anyOf([text(), number(), flag()], 'The value; "": none');
const CONFIG = objectOf({
  key: text('Documented name of the option: "zone.external.max_inflight"'),
  value: anyOf([text(), number(), flag()], 'Present value, as it can be sent back; "": none'),
  datatpye: text('The same as datatype, spelled as the original products spell it'),
  datatype: text('Kind of the value: "integer", "duration", "size", ...'),
  app: text('Application that the option belongs to')
});
const CHANGE = objectOf({
  key: text('Name of the option in any accepted spelling'),
  value: any('The new value: "64", 64, "90s", "1MB", true; "": none')
});
const PLUGIN_CONFIG = objectOf({
  key: text('Documented name of the option'),
  value: text('Present value; "": none'),
  desc: text('The purpose of the option'),
  required: flag('True if a value was given: as an option, or at run time')
});

/** All options of a plugin that get a value, or the list of options as it was read. */
const PLUGIN_CHANGE = anyOf([
  recordOf(VALUE, 'All options of the plugin that are to have a value'),
  listOf(
    objectOf({
      key: PLUGIN_CONFIG.properties.key,
      value: VALUE,
      desc: optional(PLUGIN_CONFIG.properties.desc),
      required: optional(PLUGIN_CONFIG.properties.required)
    }),
    'The list of get_plugin_configs; with required: false, a value that is the present one is not set',
    { minItems: 1 }
  )
]);
type PluginChange = Static<typeof PLUGIN_CHANGE>;

/** The names of the application that holds the options without a plugin. */
const OWN_APPS: readonly string[] = ['emqx', 'embermq'];

const appOf = ({ name }: Setting) => pluginOfSetting(name) ?? OWN_APPS[0];

function configs({ broker }: Context): Static<typeof CONFIG>[] {
  return broker.configuration.list().map((setting) => {
    const { key, kind } = setting;
    return { key, value: shownValue(setting), datatpye: kind, datatype: kind, app: appOf(setting) };
  });
}

async function update({ broker }: Context, app: string, change: Static<typeof CHANGE>): Promise<void> {
  const { key, value } = change;
  const setting = broker.configuration.get(key);
  const isOwn = OWN_APPS.includes(app) || ownSettings(pluginNamed(broker, app)).includes(setting.name);
  if (!isOwn)
    throw new Fault('wrongParameter', `${setting.key} does not belong to "${app}", but to "${appOf(setting)}"`);
  if (isRecord(change) && value === shownValue(setting)) return;
  checkExposure(broker, [[key, value]]);
  await broker.configuration.set(key, givenValue(value, setting));
}

/**
 * True if a change is a record as listed, not a value set by a client: an option with an equal value is left unchanged.
 */
function isRecord(change: Static<typeof CHANGE>): boolean {
  return 'datatype' in change || 'datatpye' in change;
}

/**
 * The names of the options of a plugin.
 * @throws Fault wrongParameter if the app sets them
 */
function ownSettings({ name, settings }: Plugin): readonly string[] {
  if (settings !== undefined) return settings;
  const why = `the options of "${name}" are given where it is made, in the app that runs the broker or its command; change them there`;
  throw new Fault('wrongParameter', why);
}

function pluginConfigs({ broker }: Context, name: string): Static<typeof PLUGIN_CONFIG>[] {
  const { settings = [] } = pluginNamed(broker, name);
  return settings.map((one) => {
    const setting = broker.configuration.get(one);
    const { key, about, source } = setting;
    return { key, value: settingText(setting), desc: about, required: source !== 'default' };
  });
}

/**
 * Change all options of a plugin: options that are not given return to the value in the options of the broker. A loaded
 * plugin is restarted. If that fails, the previous options are restored.
 */
async function updatePlugin({ broker }: Context, name: string, given: PluginChange): Promise<void> {
  const plugin = pluginNamed(broker, name);
  const { configuration } = broker;
  const own = ownSettings(plugin).map((one) => configuration.get(one));
  const changes = new Map<string, unknown>(own.map(({ key }) => [key, undefined]));
  for (const [key, value] of valuesIn(given, configuration)) {
    const setting = configuration.get(key);
    if (!changes.has(setting.key)) {
      const known = own.length === 0 ? 'it has none' : `they are ${own.map((one) => one.key).join(', ')}`;
      throw new Fault(
        'wrongParameter',
        `${setting.key} is not an option of the plugin "${plugin.name}"; ${known}`,
        key
      );
    }
    changes.set(setting.key, givenValue(value, setting));
  }
  const before = new Map<string, unknown>(own.map(({ key }) => [key, undefined]));
  for (const { key, value = null } of configuration.overrides()) if (before.has(key)) before.set(key, value);
  await configuration.setAll(changes);
  if (!plugin.isActive || own.length === 0) return;
  try {
    await plugin.restart();
  } catch (error) {
    await configuration.setAll(before);
    throw error;
  }
}

/** The options that a change sets. */
function valuesIn(given: PluginChange, configuration: Broker['configuration']): [key: string, value: unknown][] {
  if (!Array.isArray(given)) return Object.entries(given);
  const isSet = ({ key, value, required }: (typeof given)[number]) =>
    required !== false || value !== settingText(configuration.get(key));
  return given.filter(isSet).map(({ key, value }) => [key, value]);
}

/** The answer of the original products to a refused change. */
const failure =
  (said: string | undefined): Operation['originalAnswer'] =>
  ({ kind, message }) => {
    const isRefused = kind === 'wrongParameter' || kind === 'unknownRecord' || kind === 'unavailable';
    return isRefused ? { code: 102, message: said ?? message } : undefined;
  };

const EXAMPLE_NODE = 'embermq@127.0.0.1';

/** The options of the broker and of its plugins. */
export const CONFIGS: readonly Operation[] = [
  operation({
    name: 'get_all_configs',
    ofAllNodes: { field: 'config', name: 'get_all_configs', descr: 'Get all configs' },
    method: 'GET',
    path: '/nodes/:node/configs',
    descr: 'Get all configs of a node',
    data: listOf(CONFIG),
    example: { params: { node: EXAMPLE_NODE } },
    run: (context) => configs(context)
  }),
  operation({
    name: 'update_config',
    method: 'PUT',
    path: '/configs/:app',
    ctl: 'config set KEY=key VALUE=value app=emqx',
    descr: 'Update config of an application in the cluster',
    body: CHANGE,
    shown: CONFIG,
    example: { params: { app: 'emqx' }, body: { key: 'zone.external.max_inflight', value: '64' } },
    originalAnswer: failure(undefined),
    run: (context, { params, body }) => update(context, params.app, body)
  }),
  operation({
    name: 'update_node_config',
    method: 'PUT',
    path: '/nodes/:node/configs/:app',
    descr: 'Update config of an application on a node',
    body: CHANGE,
    shown: CONFIG,
    example: { params: { node: EXAMPLE_NODE, app: 'emqx' }, body: { key: 'broker.sys_interval', value: '90s' } },
    originalAnswer: failure(undefined),
    run: (context, { params, body }) => update(context, params.app, body)
  }),
  operation({
    name: 'get_plugin_configs',
    method: 'GET',
    path: '/nodes/:node/plugin_configs/:plugin',
    descr: 'Get configurations of a plugin on the node',
    data: listOf(PLUGIN_CONFIG),
    example: { params: { node: EXAMPLE_NODE, plugin: 'emqx_retainer' } },
    run: (context, { params }) => pluginConfigs(context, params.plugin)
  }),
  operation({
    name: 'update_plugin_configs',
    method: 'PUT',
    path: '/nodes/:node/plugin_configs/:plugin',
    descr: 'Update configurations of a plugin on the node',
    body: PLUGIN_CHANGE,
    example: {
      params: { node: EXAMPLE_NODE, plugin: 'emqx_retainer' },
      body: { 'retainer.max_retained_messages': '500000', 'retainer.max_payload_size': '64KB' }
    },
    originalAnswer: failure('unknown_error'),
    audited: ({ body }) => ({ options: Array.isArray(body) ? body.map(({ key }) => key) : Object.keys(body) }),
    run: (context, { params, body }) => updatePlugin(context, params.plugin, body)
  })
];
