import { extname } from 'node:path';
import { documentedName, isPlainObject, optionName, unknownKey, ZONE_OPTIONS } from '../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import { readFileFor, type Shell } from './command.ts';
import { configText, MAX_CONFIG_BYTES, repeatedKey } from './config-text.ts';
import { type FlagTable, spelledAsFlag } from './flags.ts';
import { movedSetting } from './serve/moved-settings.ts';

/** The options of one source (flags, environment or config file), by camelCase name. */
export interface Layer {
  readonly given: Readonly<Record<string, unknown>>;
  /** Returns the spelling of a name in this source, for messages. */
  readonly spelled: (name: string) => string;
}

const PREFIX = 'EMBERMQ_';
/** The common name of all documented settings `web.hook...`. */
export const WEBHOOK_SETTINGS = 'web.hook';
/** Documented settings of a webhook that are also accepted without their prefix. */
const SHORT_WEBHOOK_NAMES = ['api.url', 'encode_payload'];
/** Name of the object with the documented settings of the rule engine, and their prefix. */
export const RULE_SETTINGS = 'rule_engine';
/** Options of the library that are functions, or objects with functions. */
const IN_CODE = new Set(['clock', 'hooks', 'memoryUsage', 'store']);
/**
 * Variables that Kubernetes sets in every container of the namespace for services named `embermq` or `embermq-http`.
 * They are not options.
 */
const FROM_KUBERNETES = /^EMBERMQ_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d.*)$/;
/** The value of another such variable, whose name could be that of an option: `EMBERMQ_HTTP_PORT`. */
const KUBERNETES_URL = /^(tcp|udp|sctp):\/\//;

/** The spelling of an option as an environment variable: `EMBERMQ_MAX_PACKET_SIZE` for `maxPacketSize`. */
export function spelledAsVariable(name: string): string {
  return PREFIX + documentedName(name).toUpperCase();
}

/**
 * Read the options from the environment.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
 */
export function environmentLayer(env: Shell['env'], table: FlagTable): Layer {
  const names = new Map(Object.keys(table).map((name) => [spelledAsVariable(name), name]));
  const given: Record<string, unknown> = {};
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith(PREFIX) || text === undefined) continue;
    if (FROM_KUBERNETES.test(variable) || KUBERNETES_URL.test(text)) continue;
    const name = names.get(variable);
    if (name === undefined) throw unknownKey(variable, [...names.keys()], 'the environment');
    given[name] = fromText(table, name, text, variable);
  }
  return { given, spelled: spelledAsVariable };
}

/** Read the options from the command line, after `gatherFlags`. */
export function flagLayer(table: FlagTable, flags: Readonly<Record<string, unknown>>): Layer {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(flags)) {
    given[name] = typeof value === 'string' ? fromText(table, name, value, spelledAsFlag(name)) : value;
  }
  return { given, spelled: spelledAsFlag };
}

/** Parse lists and objects, which flags and environment variables give as JSON. */
function fromText(table: FlagTable, name: string, text: string, place: string): unknown {
  if (!['object', 'array', 'rate'].includes(table[name].type) || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInput('OPTION_INVALID', name, 'JSON', text, `${place}: ${(error as Error).message}`);
  }
}

/**
 * Read the options from a config file: YAML if the file name ends in `.yaml` or `.yml`, otherwise JSON. The documented spellings of names
 * (`max_packet_size`, `mqtt.max_packet_size`, `zone.external.max_inflight`) are also accepted.
 * @throws BrokerError FILE_UNREADABLE, PACKAGE_MISSING; InvalidInput CONFIG_INVALID, OPTION_UNKNOWN
 */
export async function fileLayer(shell: Shell, path: string, table: FlagTable): Promise<Layer> {
  const text = configText(path, await readFileFor(shell, path, MAX_CONFIG_BYTES));
  const parsed = await parse(shell, path, text);
  if (!isPlainObject(parsed)) {
    throw new InvalidInput('CONFIG_INVALID', path, 'an object of options', parsed);
  }
  const spelled = new Map<string, string>();
  const given: Record<string, unknown> = {};
  const zones = new Map<string, object>();
  const webhook: Record<string, unknown> = {};
  const rules: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(parsed)) {
    // Documented settings files use one flat name for each setting: zone.external.max_inflight
    const [, zone, setting] = /^zone\.([^.]+)\.(.+)$/.exec(key) ?? [];
    const webhookName = SHORT_WEBHOOK_NAMES.includes(key) ? `${WEBHOOK_SETTINGS}.${key}` : key;
    if (zone !== undefined) {
      const moved = optionName(ZONE_OPTIONS, setting) === undefined ? movedSetting(key, path) : undefined;
      if (moved !== undefined) throw moved;
      zones.set(zone, { ...zones.get(zone), [setting]: value });
    } else if (webhookName.startsWith(`${WEBHOOK_SETTINGS}.`)) {
      if (webhookName in webhook) throw repeatedOption(path, `"${webhookName}" is set twice`);
      webhook[webhookName] = value;
    } else if (key.startsWith(`${RULE_SETTINGS}.`)) rules[key] = value;
    else place(given, spelled, table, path, key, value);
  }
  if (Object.keys(webhook).length > 0) place(given, spelled, table, path, WEBHOOK_SETTINGS, webhook);
  if (Object.keys(rules).length > 0) place(given, spelled, table, path, RULE_SETTINGS, rules);
  if (zones.size > 0) given.zones = withZones(given.zones, zones, path);
  checkZones(given.zones, path);
  return { given, spelled: (name) => `${path}: ${spelled.get(name) ?? name}` };
}

function place(
  given: Record<string, unknown>,
  spelled: Map<string, string>,
  table: FlagTable,
  path: string,
  key: string,
  value: unknown
): void {
  const name = optionName(table, key.startsWith('mqtt.') ? key.slice(5) : key);
  if (IN_CODE.has(key)) {
    throw new InvalidInput(
      'OPTION_UNKNOWN',
      key,
      'an option that a config file can contain',
      key,
      `${path}: "${key}" can only be set in code`
    );
  }
  if (name === undefined) throw movedSetting(key, path) ?? unknownKey(key, Object.keys(table), path);
  const other = spelled.get(name);
  if (other !== undefined) throw repeatedOption(path, `"${key}" and "${other}" are the same option`);
  given[name] = value;
  spelled.set(name, key);
}

/** Merge the two forms of zone settings: the object `zones`, and names such as `zone.external.max_inflight`. */
function withZones(given: unknown, dotted: ReadonlyMap<string, object>, path: string): unknown {
  if (given !== undefined && !isPlainObject(given)) return given; // refused by readBrokerOptions
  const zones = new Map(Object.entries(given ?? {}));
  for (const [name, settings] of dotted) {
    const table = zones.get(name);
    if (table !== undefined && !isPlainObject(table)) continue; // refused by readBrokerOptions
    const twice = Object.keys(settings).find((setting) => Object.hasOwn(table ?? {}, setting));
    if (twice !== undefined) throw repeatedOption(path, `"${twice}" of zone "${name}" is set twice`);
    zones.set(name, { ...table, ...settings });
  }
  return Object.fromEntries(zones);
}

/** Refuse an option that is given in two spellings in the same zone. */
function checkZones(zones: unknown, path: string): void {
  for (const [zone, settings] of Object.entries(isPlainObject(zones) ? zones : {})) {
    const spelled = new Map<string, string>();
    for (const key of Object.keys(isPlainObject(settings) ? settings : {})) {
      const name = optionName(ZONE_OPTIONS, key) ?? key;
      const other = spelled.get(name);
      if (other !== undefined)
        throw repeatedOption(path, `"${key}" and "${other}" of zone "${zone}" are the same option`);
      spelled.set(name, key);
    }
  }
}

function repeatedOption(path: string, fault: string): InvalidInput {
  return new InvalidInput(
    'CONFIG_INVALID',
    path,
    'every option once',
    undefined,
    `${path}: ${fault}; remove one of them`
  );
}

async function parse(shell: Shell, path: string, text: string): Promise<unknown> {
  const isYaml = /^\.ya?ml$/.test(extname(path)); // the YAML parser refuses repeated keys
  const { parse } = isYaml ? await yaml(shell) : JSON;
  let parsed: unknown;
  try {
    parsed = parse(text);
  } catch (error) {
    const { message } = error as Error;
    const fault = /multiple documents/.test(message) ? 'it has more than one YAML document; keep one' : message;
    throw new InvalidInput('CONFIG_INVALID', path, 'JSON or YAML', undefined, `${path}: ${fault}`);
  }
  const key = isYaml ? undefined : repeatedKey(text);
  if (key !== undefined) throw repeatedOption(path, `"${key.slice(0, 80)}" occurs twice in one object`);
  return parsed;
}

async function yaml(shell: Shell): Promise<{ parse(text: string): unknown }> {
  try {
    return (await shell.importPackage('yaml')) as { parse(text: string): unknown };
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', 'a YAML config file needs the package yaml: npm install yaml', { cause });
  }
}
