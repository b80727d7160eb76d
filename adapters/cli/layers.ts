import { extname } from 'node:path';
import { BrokerError, documentedName, InvalidInput, optionName, unknownKey } from '../../lib/index.ts';
import { readFileFor, type Shell } from './command.ts';
import { type FlagTable, spelledAsFlag } from './flags.ts';

/** Options as they were written in one place, by camelCase name. */
export interface Layer {
  readonly given: Readonly<Record<string, unknown>>;
  /** How that place writes a name, for messages. */
  readonly spelled: (name: string) => string;
}

const PREFIX = 'EMBERMQ_';
/** Options of the library that are functions or objects with some. */
const IN_CODE = new Set(['clock', 'hooks', 'memoryUsage', 'store']);
/** A service named `embermq` makes Kubernetes set these in every container of its namespace: no options of ours. */
const FROM_KUBERNETES = /^EMBERMQ_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d.*)?)$/;

/** `maxPacketSize` -> `EMBERMQ_MAX_PACKET_SIZE` */
export function spelledAsVariable(name: string): string {
  return PREFIX + documentedName(name).toUpperCase();
}

/**
 * Options in the environment.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
 */
export function environmentLayer(env: Shell['env'], table: FlagTable): Layer {
  const names = new Map(Object.keys(table).map((name) => [spelledAsVariable(name), name]));
  const given: Record<string, unknown> = {};
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith(PREFIX) || FROM_KUBERNETES.test(variable) || text === undefined) continue;
    const name = names.get(variable);
    if (name === undefined) throw unknownKey(variable, [...names.keys()], 'the environment');
    given[name] = fromText(table, name, text, variable);
  }
  return { given, spelled: spelledAsVariable };
}

/** Options on the command line, after `gatherFlags`. */
export function flagLayer(table: FlagTable, flags: Readonly<Record<string, unknown>>): Layer {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(flags)) {
    given[name] = typeof value === 'string' ? fromText(table, name, value, spelledAsFlag(name)) : value;
  }
  return { given, spelled: spelledAsFlag };
}

/** Lists and objects come as JSON where a text is all one can write. */
function fromText(table: FlagTable, name: string, text: string, place: string): unknown {
  if (!['object', 'rate'].includes(table[name].kind) || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInput('OPTION_INVALID', name, 'JSON', text, `${place}: ${(error as Error).message}`);
  }
}

/**
 * Options in a config file: JSON, or YAML where the name ends in `.yaml` or `.yml`. Names may have their documented spelling
 * (`max_packet_size`, `mqtt.max_packet_size`, `zone.external.max_inflight`).
 * @throws BrokerError FILE_UNREADABLE, PACKAGE_MISSING; InvalidInput CONFIG_INVALID, OPTION_UNKNOWN
 */
export async function fileLayer(shell: Shell, path: string, table: FlagTable): Promise<Layer> {
  const text = String(await readFileFor(shell, path));
  const parsed = await parse(shell, path, text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new InvalidInput('CONFIG_INVALID', path, 'an object of options', parsed);
  }
  const spelled = new Map<string, string>();
  const given: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(parsed)) place(given, spelled, table, path, key, value);
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
  const zone = /^zone\.([^.]+)\.(.+)$/.exec(key);
  if (zone !== null) {
    const zones = { ...(given.zones as Record<string, object> | undefined) };
    zones[zone[1]] = { ...zones[zone[1]], [zone[2]]: value };
    given.zones = zones;
    return;
  }
  const name = optionName(table, key.startsWith('mqtt.') ? key.slice(5) : key);
  if (IN_CODE.has(key)) {
    throw new InvalidInput(
      'OPTION_UNKNOWN',
      key,
      'an option that can be written down',
      key,
      `${path}: "${key}" can only be given in code`
    );
  }
  if (name === undefined) throw unknownKey(key, Object.keys(table), path);
  given[name] = value;
  spelled.set(name, key);
}

async function parse(shell: Shell, path: string, text: string): Promise<unknown> {
  const { parse } = /^\.ya?ml$/.test(extname(path)) ? await yaml(shell) : JSON;
  try {
    return parse(text);
  } catch (error) {
    throw new InvalidInput('CONFIG_INVALID', path, 'JSON or YAML', undefined, `${path}: ${(error as Error).message}`);
  }
}

async function yaml(shell: Shell): Promise<{ parse(text: string): unknown }> {
  try {
    return (await shell.importPackage('yaml')) as { parse(text: string): unknown };
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', 'a YAML config file needs the package yaml: npm install yaml', { cause });
  }
}
