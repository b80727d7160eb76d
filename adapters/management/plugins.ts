import { nearest } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import { Fault } from '../rest/index.ts';

/** A part of the broker that can be loaded and unloaded, a plugin in the interface. */
export interface Plugin {
  readonly name: string;
  readonly description: string;
  readonly type: 'auth' | 'bridge' | 'feature';
  readonly isActive: boolean;
  /** The names of its options in camelCase. Undefined: the app sets them. */
  readonly settings: readonly string[] | undefined;
  /** @returns false: the plugin was already in that state */
  start(): Promise<boolean>;
  stop(): Promise<boolean>;
  restart(): Promise<void>;
}

/** The name of the interface itself in the list of plugins. */
const MANAGEMENT = 'management';

/**
 * The names of the original products and their equivalents here: the first one in the list that the broker has.
 * `records` are the client ids, user names and logins with passwords that the broker stores.
 */
export const PLUGIN_ALIASES: Readonly<Record<string, readonly string[]>> = {
  emqx_management: [MANAGEMENT],
  emqx_retainer: ['retainer'],
  emqx_delayed_publish: ['delayed'],
  emqx_mod_delayed: ['delayed'],
  emqx_mod_presence: ['presence'],
  emqx_mod_rewrite: ['rewrite'],
  emqx_rule_engine: ['rules'],
  emqx_mod_acl_internal: ['acl-file', 'acl'],
  emqx_auth_username: ['records'],
  emqx_auth_clientid: ['records'],
  emqx_auth_mnesia: ['records'],
  emqx_auth_http: ['http'],
  emqx_auth_jwt: ['jwt'],
  emqx_auth_ldap: ['ldap'],
  emqx_auth_mysql: ['mysql'],
  emqx_auth_pgsql: ['postgresql'],
  emqx_auth_redis: ['redis'],
  emqx_auth_mongo: ['mongodb'],
  emqx_web_hook: ['webhook:default'],
  emqx_bridge_mqtt: ['bridge:default']
};

/** The options of a feature that form the configuration of its plugin. */
const FEATURE_SETTINGS: Readonly<Record<string, readonly string[]>> = {
  retainer: ['maxRetainedMessages', 'maxRetainedBytes', 'maxRetainedPayloadSize', 'retainedExpiryInterval'],
  delayed: ['maxDelayedMessages', 'maxDelayedBytes'],
  presence: ['presenceQos']
};

/** The descriptions of sources, by what they provide. */
const SOURCE_TEXTS: Readonly<Record<string, string>> = {
  authentication: 'Authenticates clients.',
  authorization: 'Authorizes clients.',
  'authentication,authorization': 'Authenticates and authorizes clients.',
  '': 'Provides records and rules to the broker.'
};

/** The descriptions of connectors, by kind. */
const CONNECTOR_TEXTS: Readonly<Record<string, string>> = {
  webhook: 'Sends events to a web server.',
  bridge: 'Exchanges messages with another broker.'
};

/** The plugins of a broker, sorted by name: its features, its stream service, its webhooks and bridges, its sources of authentication and rules, and the management interface. */
export function pluginsOf(broker: Broker): Plugin[] {
  const { features, access, connectors } = broker;
  const ofFeatures = features.list().map(
    ({ name, about, isStarted }): Plugin => ({
      name,
      description: about,
      type: 'feature',
      isActive: isStarted,
      settings: FEATURE_SETTINGS[name] ?? [],
      start: () => features.start(name),
      stop: () => features.stop(name),
      restart: () => features.restart(name)
    })
  );
  const ofSources = access.list().map(
    ({ name, provides, isStarted }): Plugin => ({
      name,
      description:
        name === 'records'
          ? 'Client ids, user names and logins with passwords that the broker stores.'
          : (SOURCE_TEXTS[provides.join(',')] ?? ''),
      type: 'auth',
      isActive: isStarted,
      settings: name === 'records' ? [] : undefined,
      start: () => access.start(name),
      stop: () => access.stop(name),
      restart: async () => {
        if (!(await access.start(name)) && name !== 'records') await access.reload(name);
      }
    })
  );
  const ofConnectors = connectors.list().map(
    ({ kind, name, isStarted }): Plugin => ({
      name: `${kind}:${name}`,
      description: CONNECTOR_TEXTS[kind] ?? '',
      type: 'bridge',
      isActive: isStarted,
      settings: undefined,
      start: () => connectors.start(kind, name),
      stop: () => connectors.stop(kind, name),
      restart: async () => {
        await connectors.stop(kind, name);
        await connectors.start(kind, name);
      }
    })
  );
  return [...ofFeatures, streamService(broker), ...ofSources, ...ofConnectors, MANAGEMENT_PLUGIN].sort((a, b) =>
    a.name < b.name ? -1 : 1
  );
}

/** The stream service, which may have been stopped by deleting a plugin of streams. */
function streamService({ streams }: Broker): Plugin {
  return {
    name: 'streams',
    description: 'Rules over streams: continuous queries with windows and joins.',
    type: 'feature',
    isActive: streams.isRunning,
    settings: undefined,
    start: async () => {
      if (streams.isRunning) return false;
      await streams.start();
      return true;
    },
    stop: async () => {
      if (!streams.isRunning) return false;
      await streams.stop();
      return true;
    },
    restart: async () => {
      await streams.stop();
      await streams.start();
    }
  };
}

const MANAGEMENT_PLUGIN: Plugin = {
  name: MANAGEMENT,
  description: 'This management interface.',
  type: 'feature',
  isActive: true,
  settings: undefined,
  start: async () => false,
  stop: refuse,
  restart: refuse
};

async function refuse(): Promise<never> {
  throw new Fault('running', 'the management interface serves this request, so it cannot be unloaded');
}

/**
 * The plugin with a name of the broker or of the original products.
 * @throws Fault unknownRecord
 */
export function pluginNamed(broker: Broker, name: string): Plugin {
  const plugins = pluginsOf(broker);
  const names = [name, ...(Object.hasOwn(PLUGIN_ALIASES, name) ? PLUGIN_ALIASES[name] : [])];
  for (const one of names) {
    const plugin = plugins.find((each) => each.name === one);
    if (plugin !== undefined) return plugin;
  }
  const known = plugins.map((each) => each.name);
  const near = nearest(name, known);
  const hint = near === undefined ? `the plugins are ${known.join(', ')}` : `did you mean "${near}"?`;
  throw new Fault('unknownRecord', `there is no plugin "${name}"; ${hint}`, 'not_found');
}

/** The name that the original products use for the plugin of an option; undefined: the option has no plugin. */
export function pluginOfSetting(setting: string): string | undefined {
  const found = Object.keys(FEATURE_SETTINGS).find((name) => FEATURE_SETTINGS[name].includes(setting));
  return found && Object.keys(PLUGIN_ALIASES).find((alias) => PLUGIN_ALIASES[alias].includes(found));
}
