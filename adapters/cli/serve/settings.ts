// Flags win over the environment, the environment over the file, the file over defaults; a conflict such as
// `--memory` with `--data-dir` is decided the same way. Each layer is checked on its own first, so that an error
// names where the value was written. Everything is read and checked before anything is opened. A default port that is
// in use is left out; one that was asked for is an error.

import { readBrokerOptions } from '../../../lib/adapter.ts';
import { type BrokerOptions, InvalidInput } from '../../../lib/index.ts';
import { isLoopback, type Transport, tcp, tls, unix, ws, wss } from '../../net/index.ts';
import type { Shell } from '../command.ts';
import { type FlagValues, gatherFlags, readAs, refuseWords, spelledAsFlag } from '../flags.ts';
import { environmentLayer, fileLayer, flagLayer, type Layer, RULE_SETTINGS, WEBHOOK_SETTINGS } from '../layers.ts';
import { type ConfiguredBridge, configuredBridges } from './bridges.ts';
import { checkExposure } from './exposure.ts';
import {
  type HttpKind,
  readServedDashboardOptions,
  readServedOptions,
  type ServedDashboardOptions,
  type ServedOptions
} from './http-options.ts';
import { CONFIG_FLAG, LIBRARY_OPTIONS, SERVE_OPTIONS } from './options.ts';
import { type OptionPlace, optionPlaceIn } from './overrides.ts';
import { configuredRules } from './rules.ts';
import { type ConfiguredAuthSource, configuredSources } from './sources.ts';
import { configuredStreams, readServedStreamsOptions, type ServedStreamsOptions } from './streams.ts';
import { configuredSchemas, type Schemas } from './streams-schemas.ts';
import { type ConfiguredWebhook, configuredWebhooks } from './webhooks.ts';

/** A listener to open. */
export interface PlannedListener {
  /** The name in the `ready` line. Default: the name of the listener. */
  readonly label?: string;
  /** The place of its configuration, for messages. */
  readonly place: string;
  /** The checked options. */
  readonly transport: Transport;
  /** True if it uses a default port that the user has not set. It is then omitted if the port is in use. */
  readonly isOptional?: boolean;
  /** The content served over HTTP; undefined: MQTT. */
  readonly http?: HttpKind | undefined;
}

/** The settings of `embermq serve`. */
export interface ServeSettings {
  readonly own: FlagValues<typeof SERVE_OPTIONS>;
  readonly broker: BrokerOptions;
  readonly listeners: readonly PlannedListener[];
  /** Sources of authentication and of access rules, in order. */
  readonly sources: readonly ConfiguredAuthSource[];
  /** Web servers that receive events. */
  readonly webhooks: readonly ConfiguredWebhook[];
  /** Other servers with which messages are exchanged. */
  readonly bridges: readonly ConfiguredBridge[];
  /** Options of the management interface, with their place. */
  readonly management: { readonly options: ServedOptions; readonly place: string };
  /** Options of the interface of stream rules, with their place. */
  readonly streamsApi: { readonly options: ServedStreamsOptions; readonly place: string };
  /** Options of the console, with their place. */
  readonly dashboard: { readonly options: ServedDashboardOptions; readonly place: string };
  /** Folders that sources and sinks of the type `file` may use. */
  readonly folders: readonly string[];
  /** Schemas of the format protobuf. */
  readonly schemas: Schemas;
  /** Returns the place where an option of the broker is given. */
  readonly optionPlace: OptionPlace;
}

/** Lists and objects that only the config file can contain. */
const LISTS = {
  listeners: { type: 'object', default: undefined, about: 'more listeners' },
  auth: { type: 'object', default: undefined, about: 'sources of authentication and of access rules' },
  management: { type: 'object', default: undefined, about: 'options of the management interface' },
  webhooks: { type: 'object', default: undefined, about: 'web servers that receive events' },
  bridges: { type: 'object', default: undefined, about: 'MQTT servers that messages are exchanged with' },
  rules: { type: 'object', default: undefined, about: 'rules over broker events, and their resources' },
  streams: { type: 'object', default: undefined, about: 'streams, tables, and rules over them' },
  streamsApi: { type: 'object', default: undefined, about: 'options of the interface of stream rules' },
  dashboard: { type: 'object', default: undefined, about: 'options of the console' },
  streamsSchemas: { type: 'object', default: undefined, about: 'schemas of the format protobuf by their names' },
  [WEBHOOK_SETTINGS]: { type: 'object', default: undefined, about: 'the documented settings of a webhook' },
  [RULE_SETTINGS]: { type: 'object', default: undefined, about: 'the documented settings of the rule engine' }
} as const;
const ALL = { ...SERVE_OPTIONS, ...LIBRARY_OPTIONS };
const IN_FILE = { ...ALL, ...LISTS };
const WITH_CONFIG = { ...ALL, ...CONFIG_FLAG };

/**
 * Read the settings of `embermq serve`. Flags override the environment, which overrides the config file, which overrides the defaults.
 * @throws InvalidInput or BrokerError, whose message names the source of the invalid setting
 */
export async function readServeSettings(args: readonly string[], shell: Shell): Promise<ServeSettings> {
  const { given: flags, words } = gatherFlags(WITH_CONFIG, args);
  refuseWords(words, 'serve');
  const fromFlags = flagLayer(WITH_CONFIG, flags);
  const fromEnvironment = environmentLayer(shell.env, WITH_CONFIG);
  const { config } = readConfigFlag([fromFlags, fromEnvironment]);
  const fromFile = config === undefined ? undefined : await fileLayer(shell, config, IN_FILE);
  const layers = [fromFile, fromEnvironment, fromFlags].filter((layer) => layer !== undefined);
  const merged: Record<string, unknown> = {};
  for (const layer of layers) {
    checkLayer(layer);
    Object.assign(merged, layer.given);
    if (DATA_FOLDER_OPTIONS.some((name) => name in layer.given)) merged.memory = false;
  }
  const own = readAs(SERVE_OPTIONS, pick(merged, SERVE_OPTIONS), spelledAsFlag) as ServeSettings['own'];
  const { streams, folders } = await configuredStreams(merged.streams, config, shell);
  const broker: BrokerOptions = {
    ...pick(merged, LIBRARY_OPTIONS),
    ...(merged[RULE_SETTINGS] as object | undefined),
    ...(merged.rules !== undefined && { rules: await configuredRules(merged.rules, config, shell) }),
    ...(streams !== undefined && { streams })
  };
  const behind = proxiesOf(own);
  const management = {
    options: { ...behind, ...readServedOptions(merged.management, `${config}: management`) },
    place: `${config}: management`
  };
  const streamsApi = {
    options: {
      ...behind,
      ...readServedStreamsOptions(merged.streamsApi, `${config}: streamsApi`),
      ...(own.rulesCredentials === undefined ? {} : { credentials: own.rulesCredentials })
    },
    place: `${config}: streamsApi`
  };
  const dashboard = {
    options: { ...behind, ...readServedDashboardOptions(merged.dashboard, `${config}: dashboard`) },
    place: `${config}: dashboard`
  };
  const schemas = await configuredSchemas(merged.streamsSchemas, config, shell);
  const mqtt = [...portListeners(own, merged), ...furtherListeners(merged.listeners, config)];
  if (mqtt.length === 0) {
    const message =
      'nothing to listen on: all ports are off, and no config file defines listeners; turn on a port, for example --mqtt-port 1883';
    throw new InvalidInput('OPTION_MISSING', 'mqttPort', 'a port', 'off', message);
  }
  const sources = await configuredSources(own, merged.auth, config, shell);
  const documented = merged[WEBHOOK_SETTINGS] as Readonly<Record<string, unknown>> | undefined;
  const given = { url: own.webhookUrl, list: merged.webhooks, documented, config };
  const webhooks = await configuredWebhooks(given, shell);
  const bridges = await configuredBridges(merged.bridges, config, shell);
  const hasSource = sources.some(({ isAuthenticating }) => isAuthenticating);
  for (const { place, transport } of mqtt) {
    checkExposure(place, transport, broker, hasSource);
    checkZone(place, transport, broker);
  }
  const http = httpListeners(own, merged);
  const isRules = (listener: PlannedListener) => listener.http === 'rules';
  checkHttpExposure(
    own,
    http.filter((listener) => !isRules(listener) && listener.http !== 'dashboard'),
    management.options.credentials,
    `${management.place}.credentials`
  );
  checkHttpExposure(
    own,
    http.filter(isRules),
    streamsApi.options.credentials,
    own.rulesCredentials === undefined ? `${streamsApi.place}.credentials` : spelledAsFlag('rulesCredentials')
  );
  const optionPlace = optionPlaceIn(layers);
  const listeners = [...mqtt, ...http];
  const interfaces = { management, streamsApi, dashboard };
  return { own, broker, listeners, sources, webhooks, bridges, ...interfaces, schemas, folders, optionPlace };
}

/**
 * Refuse to open the interface to other machines without credentials.
 * @throws InvalidInput MANAGEMENT_EXPOSED
 */
function checkHttpExposure(
  { httpHost }: ServeSettings['own'],
  http: readonly PlannedListener[],
  credentials: unknown,
  place: string
): void {
  if (credentials !== 'none' || http.length === 0 || isLoopback(httpHost)) return;
  const message = `${place}: with "none", anyone who can reach ${httpHost} could control the broker: ask for credentials, or bind a loopback address (--http-host)`;
  throw new InvalidInput('MANAGEMENT_EXPOSED', 'credentials', 'credentials, or a loopback address', 'none', message);
}

/** Check that the zone of a listener is defined. @throws InvalidInput ZONE_UNKNOWN, which names the entry of the config file */
function checkZone(place: string, { common: { zone } }: Transport, broker: BrokerOptions): void {
  const known = [...readBrokerOptions(broker).zones.keys()];
  if (zone === undefined || known.includes(zone)) return;
  const message = `${place}.zone: there is no zone "${zone}"; use one of ${known.join(', ')}, or define it (option zones)`;
  throw new InvalidInput('ZONE_UNKNOWN', `${place}.zone`, `one of ${known.join(', ')}`, zone, message);
}

/** Read the flag of the config file from the flags or the environment. */
function readConfigFlag(layers: readonly Layer[]): FlagValues<typeof CONFIG_FLAG> {
  const { given, spelled } = layers.find(({ given }) => 'config' in given) ?? layers[0];
  return readAs(CONFIG_FLAG, pick(given, CONFIG_FLAG), spelled) as FlagValues<typeof CONFIG_FLAG>;
}

/** Options without an effect with `memory`. Setting one means that the state is to be persisted. */
const DATA_FOLDER_OPTIONS = ['dataDir', 'durability', 'verifyStore', 'reserve'] as const;

/** Check the options of one source, so that errors can name the source. */
function checkLayer({ given, spelled }: Layer): void {
  const { memory } = readAs(SERVE_OPTIONS, pick(given, SERVE_OPTIONS), spelled);
  const conflicting = memory ? DATA_FOLDER_OPTIONS.find((name) => name in given) : undefined;
  if (conflicting !== undefined) {
    const message = `${spelled('memory')} persists nothing, so ${spelled(conflicting)} has no effect: remove one of them`;
    throw new InvalidInput('OPTION_INVALID', 'memory', `no ${spelled(conflicting)}`, true, message);
  }
  for (const [name, value] of Object.entries(pick(given, LIBRARY_OPTIONS))) {
    try {
      readBrokerOptions({ [name]: value });
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      throw new InvalidInput(
        error.code,
        name,
        error.expected,
        error.got,
        `${spelled(name)}: ${withoutName(error.message, name)}`
      );
    }
  }
}

function withoutName(message: string, name: string): string {
  return message.startsWith(`${name}: `) ? message.slice(name.length + 2) : message;
}

function pick(given: Readonly<Record<string, unknown>>, table: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(table, name)));
}

/** The options of listeners and interfaces behind an HTTP proxy. */
function proxiesOf({ trustedProxies, proxyHeader }: ServeSettings['own']) {
  return { ...(trustedProxies !== undefined && { trustedProxies }), ...(proxyHeader !== undefined && { proxyHeader }) };
}

/** The conventional port for MQTT over TLS. */
const MQTTS_PORT = 8883;

function portListeners(own: ServeSettings['own'], written: Readonly<Record<string, unknown>>): PlannedListener[] {
  const { host, cert, key, ca } = own;
  const isDefault = (name: string) => !(name in written);
  const isTlsImplied = isDefault('mqttsPort') && own.wssPort === 'off' && (cert ?? key) !== undefined;
  const mqttsPort = isTlsImplied ? MQTTS_PORT : own.mqttsPort;
  const hasTls = [mqttsPort, own.wssPort, own.httpsPort, own.dashboardHttpsPort].some((port) => port !== 'off');
  if (hasTls && (cert === undefined || key === undefined)) {
    const message = 'a TLS listener needs both --cert FILE and --key FILE';
    throw new InvalidInput('OPTION_MISSING', 'cert', '--cert and --key', cert, message);
  }
  if (!hasTls && (cert ?? key ?? ca) !== undefined) {
    const message =
      '--cert, --key and --ca need a TLS listener: give both --cert and --key, and turn on --mqtts-port, --wss-port, --https-port or --dashboard-https-port';
    throw new InvalidInput('OPTION_MISSING', 'mqttsPort', 'a TLS port', 'off', message);
  }
  // a renewed certificate usually replaces the file, and is then loaded without a restart
  const secure = { certFile: cert, keyFile: key, watchInterval: '1m', ...(ca === undefined ? {} : { caFile: ca }) };
  const pages = { ...proxiesOf(own), ...(own.wsOrigins !== undefined && { origins: own.wsOrigins }) };
  const plans = [
    { kind: 'tcp', label: 'mqtt', port: own.mqttPort, more: {}, isOptional: false },
    { kind: 'tls', label: 'mqtts', port: mqttsPort, more: secure, isOptional: isDefault('mqttsPort') },
    { kind: 'ws', label: 'ws', port: own.wsPort, more: pages, isOptional: isDefault('wsPort') },
    { kind: 'wss', label: 'wss', port: own.wssPort, more: { ...secure, ...pages }, isOptional: false }
  ] as const;
  return plans
    .filter(({ port }) => port !== 'off')
    .map(({ kind, label, port, more, isOptional }) => {
      const transport = KINDS[kind]({ port, host, ...more });
      return { label, place: '--host', transport, isOptional };
    });
}

/** Maximum number of connections of an HTTP port. */
const MAX_HTTP_CONNECTIONS = 1_024;

function httpListeners(own: ServeSettings['own'], written: Readonly<Record<string, unknown>>): PlannedListener[] {
  const { httpHost: host, httpPort, httpEarlierPort, httpsPort, rulesPort, cert: certFile, key: keyFile } = own;
  const { dashboardPort, dashboardHttpsPort } = own;
  const isDefault = (name: string) => !(name in written);
  const secure = { certFile, keyFile, watchInterval: '1m', alpn: ['http/1.1'] };
  const plans = [
    { label: 'http', port: httpPort, http: 'later', isOptional: isDefault('httpPort') },
    { label: 'http-earlier', port: httpEarlierPort, http: 'earlier', isOptional: isDefault('httpEarlierPort') },
    { label: 'https', port: httpsPort, http: 'later', isOptional: false },
    { label: 'rules', port: rulesPort, http: 'rules', isOptional: isDefault('rulesPort') },
    { label: 'dashboard', port: dashboardPort, http: 'dashboard', isOptional: isDefault('dashboardPort') },
    { label: 'dashboard-https', port: dashboardHttpsPort, http: 'dashboard', isOptional: false }
  ] as const;
  return plans
    .filter(({ port }) => port !== 'off')
    .map(({ label, port, http, isOptional }) => {
      const options = { port, host, maxConnections: MAX_HTTP_CONNECTIONS };
      const transport = label.endsWith('https') ? KINDS.tls({ ...options, ...secure }) : KINDS.tcp(options);
      return { label, place: '--http-host', transport, isOptional, http };
    });
}

const KINDS = { tcp, tls, ws, wss, unix } as Readonly<Record<string, (options: unknown) => Transport>>;

/** Read `listeners` of the config file: options of `embermq/net`, and `kind`. */
function furtherListeners(list: unknown, config: string | undefined): PlannedListener[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new InvalidInput('OPTION_INVALID', `${config}: listeners`, 'a list', list);
  return list.map((entry: unknown, at) => {
    const place = `${config}: listeners[${at}]`;
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
      throw new InvalidInput('OPTION_INVALID', place, 'an object with "kind"', entry);
    const { kind, ...options } = entry as Record<string, unknown>;
    if (typeof kind !== 'string' || !Object.hasOwn(KINDS, kind)) {
      throw new InvalidInput('OPTION_INVALID', `${place}.kind`, `one of ${Object.keys(KINDS).join(', ')}`, kind);
    }
    try {
      return { place, transport: KINDS[kind](options) };
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      const { code, field, expected, got, message } = error;
      throw new InvalidInput(code, field, expected, got, `${place}: ${message}`);
    }
  });
}
