import { parseArgs } from 'node:util';
import { documentedName, durationMs, InvalidInput, nearest, type OptionRow, readOptions } from '../../lib/index.ts';

/** A flag: an option that can also be written on the command line, `maxPacketSize` as `--max-packet-size`. */
export interface FlagRow<T = unknown> extends OptionRow<T> {
  /** One letter: `p` for `-p`. */
  readonly short?: string;
  /** What stands for the value in the help: `PORT`. Flags of kind boolean have none. */
  readonly value?: string;
  /** May be given more than once; the value is a list. */
  readonly isList?: boolean;
}

export type FlagTable = Readonly<Record<string, FlagRow>>;

/** Values of a table of flags. */
export type FlagValues<T> = { readonly [N in keyof T]: T[N] extends FlagRow<infer V> ? V : never };

/** Make a flag that takes a value. */
export function flag<V>(
  kind: OptionRow['kind'],
  value: V,
  about: string,
  more: Partial<Omit<FlagRow, 'default'>> = {}
): FlagRow<V> {
  return { kind, default: value, about, ...more };
}

/**
 * Make a flag for a length of time: a number counts in seconds and may have a fraction, text is `250ms` or `2m`.
 * @param valueMs default, in milliseconds; so is what is read
 */
export function timeFlag(
  valueMs: number,
  about: string,
  more: Partial<Omit<FlagRow, 'default'>> = {}
): FlagRow<number> {
  return { kind: 'object', default: valueMs, about, value: 'SECONDS', check: checkTime, ...more };
}

function checkTime(value: unknown, field: string): number {
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
  return durationMs(Number.isNaN(seconds) ? (value as string) : seconds, field, 's');
}

/** Make a flag that can be given several times. */
export function listFlag(about: string, more: Partial<Omit<FlagRow, 'default'>> = {}): FlagRow<readonly string[]> {
  return { kind: 'object', default: [], about, isList: true, ...more };
}

/** `maxPacketSize` -> `--max-packet-size` */
export function spelledAsFlag(name: string): string {
  return `--${documentedName(name).replaceAll('_', '-')}`;
}

/**
 * What the command line says, unread: texts, `true` and `false` for switches, lists. Keys are the names in the table.
 *
 * A switch may have `true`, `false`, `on` or `off` behind it, after `=` or a space, and can be turned off by `--no-<flag>`; `--` ends
 * the flags.
 * @throws InvalidInput FLAG_UNKNOWN with the nearest flag, or FLAG_INVALID
 */
export function gatherFlags(
  table: FlagTable,
  args: readonly string[]
): { given: Record<string, unknown>; words: string[] } {
  const names = new Map(Object.keys(table).map((name) => [spelledAsFlag(name), name]));
  const options: Record<string, { type: 'string' | 'boolean'; short?: string; multiple: true }> = {};
  for (const [name, { kind, short }] of Object.entries(table)) {
    options[spelledAsFlag(name).slice(2)] = {
      type: kind === 'boolean' ? 'boolean' : 'string',
      multiple: true,
      ...(short === undefined ? {} : { short })
    };
  }
  // Not strict: parseArgs would refuse an unknown flag itself, without a suggestion.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const given: Record<string, unknown> = {};
  const words: string[] = [];
  let open: string | undefined; // the switch that stands before
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (open !== undefined && SWITCH_VALUE.test(token.value)) given[open] = token.value;
      else words.push(token.value);
    }
    open = undefined;
    if (token.kind !== 'option') continue;
    const isOff = !names.has(token.rawName) && token.rawName.startsWith('--no-');
    const spelling = isOff ? `--${token.rawName.slice(5)}` : `--${token.name}`;
    const name = names.get(spelling);
    if (name === undefined || (isOff && table[name].kind !== 'boolean'))
      throw unknownFlag(token.rawName, [...names.keys()]);
    given[name] = taken(name, table[name], token.rawName, isOff ? 'false' : token.value, given[name]);
    if (given[name] === true) open = name;
  }
  return { given, words };
}

const SWITCH_VALUE = /^(true|false|on|off)$/;

/** Refuse words that are no flags. @throws InvalidInput FLAG_INVALID */
export function refuseWords(words: readonly string[], command: string): void {
  const [word] = words;
  if (word === undefined) return;
  const message = `${command} takes no "${word}", only flags; a value with spaces needs quotes`;
  throw new InvalidInput('FLAG_INVALID', word, 'flags only', word, message);
}

function taken(name: string, row: FlagRow, spelling: string, value: string | undefined, before: unknown): unknown {
  if (row.kind === 'boolean') return value === undefined ? true : value;
  if (value === undefined) {
    throw new InvalidInput('FLAG_INVALID', name, 'a value', undefined, `${spelling} needs a value: ${row.about}`);
  }
  return row.isList === true ? [...((before as string[] | undefined) ?? []), value] : value;
}

function unknownFlag(spelling: string, known: readonly string[]): InvalidInput {
  const near = nearest(spelling, known);
  const hint = near === undefined ? '' : `; did you mean ${near}?`;
  return new InvalidInput('FLAG_UNKNOWN', spelling, 'a known flag', spelling, `unknown flag ${spelling}${hint}`);
}

/**
 * Read a command line by a table of flags.
 * @returns a value for every flag, given or default, and the words that are no flags
 * @throws InvalidInput FLAG_UNKNOWN, FLAG_INVALID or OPTION_INVALID
 */
export function readFlags<T extends FlagTable>(
  table: T,
  args: readonly string[]
): { values: FlagValues<T>; words: string[] } {
  const { given, words } = gatherFlags(table, args);
  return { values: readAs(table, given, spelledAsFlag) as FlagValues<T>, words };
}

/** Read values by a table; an error names an option as `spelled` writes it, because that is what the user wrote. */
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

/** The flags of a table as lines of help. */
export function describeFlags(table: FlagTable): string {
  const rows = Object.entries(table).map(([name, row]) => {
    const short = row.short === undefined ? '    ' : `-${row.short}, `;
    const value = row.kind === 'boolean' ? '' : ` ${row.value ?? 'VALUE'}`;
    return { left: `  ${short}${spelledAsFlag(name)}${value}`, right: row.about + shownDefault(row) };
  });
  const width = Math.max(...rows.map(({ left }) => left.length)) + 2;
  return rows.map(({ left, right }) => `${left.padEnd(width)}${right}`).join('\n');
}

function shownDefault(row: FlagRow): string {
  const { default: value } = row;
  if (row.check === checkTime) return value === 0 ? '' : ` [${Number(value) / 1000}]`;
  if (value === undefined || value === false || (Array.isArray(value) && value.length === 0) || value === '') return '';
  return ` [${String(value)}${row.unit === undefined ? '' : ` ${row.unit}`}]`;
}
