// A flag is a row of a table: parsing, checks, help, pages and completion read the same rows. Values are gathered before
// they are checked, because `serve` and `ctl` merge them with other sources first.

import { parseArgs } from 'node:util';
import { type Defaulted, documentedName, durationMs, type FieldType, nearest, readOptions } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';

/** A flag: an option that can be given on the command line, for example `maxPacketSize` as `--max-packet-size`. */
export interface FlagField<T = unknown> extends Defaulted<T> {
  /** The short form: `p` for `-p`. */
  readonly short?: string;
  /** The placeholder for the value in the help, such as `PORT`. Flags of the type boolean have none. */
  readonly value?: string;
  /** Values that the completion of a shell offers, if the field has no `choices`. */
  readonly suggested?: readonly string[];
  /** Another name of the flag, which people may try first: `port` for `mqttPort`. */
  readonly alsoAs?: string;
}

export type FlagTable = Readonly<Record<string, FlagField>>;

/** The values of the flags of a table. */
export type FlagValues<T> = { readonly [N in keyof T]: T[N] extends FlagField<infer V> ? V : never };

/** Create the row of a flag. */
export function flag<V>(
  type: FieldType,
  value: V,
  about: string,
  more: Partial<Omit<FlagField, 'default'>> = {}
): FlagField<V> {
  return { type, default: value, about, ...more };
}

/**
 * Create a flag for a duration: a number of seconds, which may have a fraction, or a string such as `250ms` or `2m`.
 * @param valueMs the default in milliseconds; values are also read as milliseconds
 */
export function timeFlag(
  valueMs: number,
  about: string,
  more: Partial<Omit<FlagField, 'default'>> = {}
): FlagField<number> {
  return { type: 'object', default: valueMs, about, value: 'SECONDS', check: checkTime, ...more };
}

/** Check the value of a flag for a duration. @returns milliseconds @throws InvalidInput DURATION_INVALID */
export function checkTime(value: unknown, field: string): number {
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
  return durationMs(Number.isNaN(seconds) ? (value as string) : seconds, field, 's');
}

/** The entries of a flag that are separated by commas. A value of the config file, such as an array, is returned as it is. */
export function listIn(value: unknown): unknown {
  return typeof value === 'string' ? value.split(',').map((entry) => entry.trim()) : value;
}

/** Create a flag that may be given several times. */
export function listFlag(about: string, more: Partial<Omit<FlagField, 'default'>> = {}): FlagField<readonly string[]> {
  return { type: 'array', default: [], about, ...more };
}

/** The spelling of an option as a flag: `--max-packet-size` for `maxPacketSize`. */
export function spelledAsFlag(name: string): string {
  return `--${documentedName(name).replaceAll('_', '-')}`;
}

/**
 * Parse a command line, without checking the values: strings, lists of strings, and `true` for a boolean flag without a value.
 *
 * A boolean flag may be followed by `true`, `false`, `on` or `off`, after `=` or a space. `--no-<flag>` turns it off. `--` ends the flags.
 * @returns the values by the names of the table, and the words that are not flags
 * @throws InvalidInput FLAG_UNKNOWN with the most similar flag, or FLAG_INVALID
 */
export function gatherFlags(
  table: FlagTable,
  args: readonly string[]
): { given: Record<string, unknown>; words: string[] } {
  const names = new Map(
    Object.entries(table).flatMap(([name, row]) => spellingsOf(name, row).map((spelling) => [spelling, name]))
  );
  const options: Record<string, { type: 'string' | 'boolean'; short?: string; multiple: true }> = {};
  for (const [spelling, name] of names) {
    const { type, short } = table[name];
    options[spelling.slice(2)] = {
      type: type === 'boolean' ? 'boolean' : 'string',
      multiple: true,
      ...(short === undefined || spelling !== spelledAsFlag(name) ? {} : { short })
    };
  }
  // in strict mode, parseArgs would refuse an unknown flag without a suggestion
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const given: Record<string, unknown> = {};
  const words: string[] = [];
  const spelled = new Map<string, Spelled>(); // flags with two names, as given last
  let booleanFlag: string | undefined; // the boolean flag just before this token, which may be its value
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (booleanFlag !== undefined && SWITCH_VALUE.test(token.value)) given[booleanFlag] = token.value;
      else words.push(token.value);
    }
    booleanFlag = undefined;
    if (token.kind !== 'option') continue;
    const isOff = !names.has(token.rawName) && token.rawName.startsWith('--no-');
    const spelling = isOff ? `--${token.rawName.slice(5)}` : `--${token.name}`;
    const name = names.get(spelling);
    if (name === undefined || (isOff && table[name].type !== 'boolean'))
      throw unknownFlag(token.rawName, [...names.keys()]);
    const value = flagValue(name, table[name], token.rawName, isOff ? 'false' : token.value, given[name]);
    if (table[name].alsoAs !== undefined) {
      const now = { spelling: token.rawName, value };
      checkSame(spelled.get(name), now);
      spelled.set(name, now);
    }
    given[name] = value;
    if (given[name] === true) booleanFlag = name;
  }
  return { given, words };
}

/** All long spellings of a flag, the documented one first. */
export function spellingsOf(name: string, { alsoAs }: FlagField): string[] {
  return [name, ...(alsoAs === undefined ? [] : [alsoAs])].map(spelledAsFlag);
}

/** Refuse a flag that is given by two names with different values. @throws InvalidInput FLAG_INVALID */
function checkSame(before: Spelled | undefined, now: Spelled): void {
  if (before === undefined || before.spelling === now.spelling || before.value === now.value) return;
  const both = `${before.spelling} ${before.value} and ${now.spelling} ${now.value}`;
  const message = `${both} set the same option to different values; remove one of them`;
  throw new InvalidInput('FLAG_INVALID', now.spelling, 'one value', now.value, message);
}

/** A flag as it is written on the command line. */
interface Spelled {
  readonly spelling: string;
  readonly value: unknown;
}

const SWITCH_VALUE = /^(true|false|on|off)$/;

/** Refuse arguments that are not flags. @throws InvalidInput FLAG_INVALID */
export function refuseWords(words: readonly string[], command: string): void {
  const [word] = words;
  if (word === undefined) return;
  const message = `${command} accepts only flags, not "${word}"; put a value that contains spaces in quotes`;
  throw new InvalidInput('FLAG_INVALID', word, 'flags only', word, message);
}

function flagValue(
  name: string,
  row: FlagField,
  spelling: string,
  value: string | undefined,
  before: unknown
): unknown {
  if (row.type === 'boolean') return value === undefined ? true : value;
  if (value === undefined) {
    throw new InvalidInput('FLAG_INVALID', name, 'a value', undefined, `${spelling} needs a value: ${row.about}`);
  }
  return row.type === 'array' ? [...((before as string[] | undefined) ?? []), value] : value;
}

function unknownFlag(spelling: string, known: readonly string[]): InvalidInput {
  const near = nearest(spelling, known);
  const hint = near === undefined ? '' : `; did you mean ${near}?`;
  return new InvalidInput('FLAG_UNKNOWN', spelling, 'a known flag', spelling, `unknown flag ${spelling}${hint}`);
}

/**
 * Parse a command line and check the values.
 * @returns a value for every flag, given or default, and the words that are not flags
 * @throws InvalidInput FLAG_UNKNOWN, FLAG_INVALID or OPTION_INVALID
 */
export function readFlags<T extends FlagTable>(
  table: T,
  args: readonly string[]
): { values: FlagValues<T>; words: string[] } {
  const { given, words } = gatherFlags(table, args);
  return { values: readAs(table, given, spelledAsFlag) as FlagValues<T>, words };
}

/** Read and check the values of a table. Errors name an option in the spelling of the user, which `spelled` returns. */
export function readAs(
  table: FlagTable,
  given: Readonly<Record<string, unknown>>,
  spelled: (name: string) => string
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(table)) {
    try {
      values[name] = readOptions({ [name]: row }, name in given ? { [name]: given[name] } : {}, '')[name];
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      throw new InvalidInput(error.code, spelled(name), error.expected, error.got);
    }
  }
  return values;
}

/** Describe the flags of a table, one line per flag. */
export function describeFlags(table: FlagTable): string {
  const rows = Object.entries(table).map(([name, row]) => {
    const short = row.short === undefined ? '    ' : `-${row.short}, `;
    const value = row.type === 'boolean' ? '' : ` ${row.value ?? 'VALUE'}`;
    return { left: `  ${short}${spellingsOf(name, row).join(', ')}${value}`, right: row.about + shownDefault(row) };
  });
  const width = Math.max(...rows.map(({ left }) => left.length)) + 2;
  return rows.map(({ left, right }) => `${left.padEnd(width)}${right}`).join('\n');
}

function shownDefault(row: FlagField): string {
  const { default: value } = row;
  if (row.check === checkTime) return value === 0 ? '' : ` [${Number(value) / 1000}]`;
  if (value === undefined || value === false || (Array.isArray(value) && value.length === 0) || value === '') return '';
  if (value === Infinity || value === Number.MAX_SAFE_INTEGER) return ' [no limit]';
  return ` [${String(value)}${row.unit === undefined ? '' : ` ${row.unit}`}]`;
}
