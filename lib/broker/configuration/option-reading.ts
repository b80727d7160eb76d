// Options are accepted in camelCase and in the documented spelling, flat (`zone.external.max_inflight`) or nested.
// They are read into layers first and given defaults afterwards (`settingsOf`, `zonesOf`), because overrides at run
// time are merged between the two. An option that has no row in the tables is named in `readBrokerOptions` and in
// `ALL_NAMES`, from which the suggestion for a misspelt name is taken.

import { systemClock } from '../../base/clock.ts';
import { InvalidInput, show } from '../../base/errors.ts';
import { checkObject, type FieldTable, optionName, readGiven, unknownKey, type Values } from '../../base/fields.ts';
import { HOOK_NAMES } from '../../events/hooks.ts';
import { LOG_LEVELS } from '../../monitor/log.ts';
import { ZONE_OPTIONS, type Zone } from '../../records/zone.ts';
import { readRulesOptions, SETTING_PREFIX } from '../../rules/rules-options.ts';
import { readStreamsOptions } from '../../streams/streams-options.ts';
import { readAutoSubscriptions } from './auto-subscriptions.ts';
import { checkConnectorKinds } from './connectors.ts';
import {
  BROKER_OPTIONS,
  type BrokerOptions,
  type BrokerSettings,
  DEFAULT_ZONE,
  defaultWatermark,
  type OptionLayer,
  type Settings,
  WATERMARKS
} from './options.ts';
import { readSchemas } from './payload-schemas.ts';
import { readSparkplug } from './sparkplug-options.ts';

/** The zone for clients of the operator's own machines. It always exists. */
const INTERNAL_ZONE = 'internal';

const PORTS = 'open ports with listen(broker, 1883) of embermq/net';
/** The replacements of options that other brokers have. */
const ELSEWHERE = new Map([
  ['port', PORTS],
  ['host', PORTS],
  ['listeners', PORTS],
  ['persistence', "keep state with store: levelStore('./data') of embermq/level"],
  ...HOOK_NAMES.map((name): [string, string] => [name, `it is a hook: hooks: { ${name} }`])
]);

function unknownOption(name: string): InvalidInput {
  const elsewhere = ELSEWHERE.get(name);
  if (elsewhere === undefined) return unknownKey(name, ALL_NAMES, '');
  const text = `unknown option ${show(name)}; ${elsewhere}`;
  return new InvalidInput('OPTION_UNKNOWN', name, 'a known option', name, text);
}

/**
 * Read the options of a broker and check them.
 * @throws InvalidInput OPTION_UNKNOWN with a suggestion, or OPTION_INVALID with the expected value
 */
export function readBrokerOptions(given: BrokerOptions = {}): Settings {
  checkObject(given, 'options');
  const zoneGiven: Record<string, unknown> = {};
  const brokerGiven: Record<string, unknown> = {};
  const {
    clock = systemClock,
    store,
    logger,
    memoryUsage,
    zones = {},
    hooks = {},
    auth = [],
    rewrite = [],
    schemas = {},
    sparkplug,
    autoSubscriptions = [],
    connectors = [],
    rules = {},
    streams = {},
    ...rest
  } = given;
  checkMembers(clock, 'clock', ['now', 'monotonic', 'setTimeout', 'clearTimeout']);
  checkStore(store);
  if (logger !== undefined) checkMembers(logger, 'logger', LOG_LEVELS);
  checkObject(hooks, 'hooks');
  if (!Array.isArray(auth))
    throw new InvalidInput('OPTION_INVALID', 'auth', 'a list of sources, such as [users([...])]', auth);
  checkObject(zones, 'zones');
  if (memoryUsage !== undefined && typeof memoryUsage !== 'function')
    throw new InvalidInput('OPTION_INVALID', 'memoryUsage', 'a function', memoryUsage);
  const zoneParts = new Map<string, Record<string, unknown>>();
  for (const [name, settings = {}] of Object.entries(zones)) {
    checkObject(settings, `zones.${name}`);
    zoneParts.set(name, { ...settings });
  }
  const ruleSettings = new Map<string, unknown>();
  for (const [written, value] of Object.entries(rest)) {
    if (written.startsWith(SETTING_PREFIX)) {
      ruleSettings.set(written.slice(SETTING_PREFIX.length), value);
      continue;
    }
    // Documented settings files use one flat name for each setting: zone.external.max_inflight, mqtt.max_packet_size.
    const [, zone, setting] = /^zone\.([^.]+)\.(.+)$/.exec(written) ?? [];
    if (zone !== undefined) {
      zoneParts.set(zone, { ...zoneParts.get(zone), [setting]: value });
      continue;
    }
    const key = written.startsWith('mqtt.') ? written.slice(5) : written;
    if (optionName(ZONE_OPTIONS, key) !== undefined) zoneGiven[key] = value;
    else if (optionName(BROKER_OPTIONS, key) !== undefined) brokerGiven[key] = value;
    else throw unknownOption(written);
  }
  const everywhere = readGiven(ZONE_OPTIONS, zoneGiven, '');
  const read = new Map<string, Record<string, unknown>>([
    [DEFAULT_ZONE, {}],
    [INTERNAL_ZONE, {}]
  ]);
  for (const [name, part] of zoneParts) read.set(name, readGiven(ZONE_OPTIONS, part, `zones.${name}`));
  const layer: OptionLayer = { broker: readGiven(BROKER_OPTIONS, brokerGiven, ''), everywhere, zones: read };
  // one that is given alone may conflict with the default of the other one: this was always accepted
  for (const pair of WATERMARKS)
    if (pair.every((name) => layer.broker[name] !== undefined)) checkWatermarks(pair, layer, pair[1], (name) => name);
  return {
    ...settingsOf(layer),
    given: layer,
    clock,
    store,
    logger,
    memoryUsage,
    zones: zonesOf(layer),
    hooks,
    auth,
    rewrite,
    ...{ schemas: readSchemas(schemas, sparkplug !== undefined), sparkplug: readSparkplug(sparkplug) },
    autoSubscriptions: readAutoSubscriptions(autoSubscriptions),
    connectors: checkConnectorKinds(connectors),
    rules: readRulesOptions(rules, ruleSettings),
    streams: readStreamsOptions(streams)
  };
}

/** The values of the broker's options in a layer, with defaults. */
export function settingsOf({ broker }: OptionLayer): BrokerSettings {
  const values = { ...defaultsOf(BROKER_OPTIONS), ...broker } as Values<typeof BROKER_OPTIONS>;
  // The other half is for garbage that is not collected yet and for everything that is not queued.
  const { maxTotalMqueueBytes = Math.floor((values.memoryHighWatermark || defaultWatermark()) / 2) } = values;
  return { ...values, maxTotalMqueueBytes };
}

/**
 * Check a pair of watermarks.
 * @param layer all options
 * @param name the option of the pair that is refused
 * @param nameIn the name of an option in errors
 * @throws InvalidInput OPTION_INVALID
 */
export function checkWatermarks(
  [highName, lowName]: (typeof WATERMARKS)[number],
  layer: OptionLayer,
  name: (typeof WATERMARKS)[number][number],
  nameIn: (name: string) => string
): void {
  const { [highName]: high, [lowName]: low } = settingsOf(layer);
  if (high === 0 || low <= high) return;
  const [limit, other, got] = name === lowName ? ['most', highName, low] : ['least', lowName, high];
  const expected = `at ${limit} ${name === lowName ? high : low} %, the value of ${nameIn(other)}`;
  throw new InvalidInput('OPTION_INVALID', nameIn(name), expected, got);
}

/** The zones of a layer, with the values of all their options. */
export function zonesOf({ everywhere, zones }: OptionLayer): Map<string, Zone> {
  const read = new Map<string, Zone>();
  for (const [name, own] of zones)
    read.set(name, { ...zoneDefaults(name), ...everywhere, ...own, name } as unknown as Zone);
  return read;
}

/** The defaults of the options of a zone. */
export function zoneDefaults(name: string): Readonly<Record<string, unknown>> {
  const defaults = defaultsOf(ZONE_OPTIONS);
  return name === INTERNAL_ZONE ? { ...defaults, enableBan: false } : defaults;
}

function defaultsOf(table: FieldTable): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, row.default]));
}

const ALL_NAMES: readonly string[] = [
  ...Object.keys(ZONE_OPTIONS),
  ...Object.keys(BROKER_OPTIONS),
  ...[
    'clock',
    'store',
    'logger',
    'memoryUsage',
    'zones',
    'hooks',
    'auth',
    'rewrite',
    'schemas',
    'sparkplug',
    'autoSubscriptions',
    'connectors',
    'rules',
    'streams'
  ]
];

function checkStore(store: unknown): void {
  if (store === undefined) return;
  if (typeof store !== 'string') {
    checkMembers(store, 'store', ['open', 'commit', 'read', 'close']);
    return;
  }
  const expected = `a store, such as levelStore(${show(store)}) of embermq/level`;
  throw new InvalidInput('OPTION_INVALID', 'store', expected, store);
}

function checkMembers(value: unknown, field: string, functions: readonly string[]): void {
  const isGood = functions.every((name) => typeof (value as Record<string, unknown> | null)?.[name] === 'function');
  if (!isGood) throw new InvalidInput('OPTION_INVALID', field, `an object with ${functions.join(', ')}`, value);
}
