// Every option is a row with its default, unit and range. `readOptions` converts given values (numbers, or strings
// with a unit) to plain numbers, booleans and strings, and accepts the camelCase names and the documented spellings.
// Unknown names are refused, with the most similar known one as a suggestion.

import { InvalidInput, show } from './errors.ts';

/** A duration: a number in the unit of the option, or a string such as `250ms`, `15s`, `5m`, `2h`, `7d`; `infinity` where allowed. */
export type Duration = number | string;
/** A size: a number of bytes, or a string such as `64KB`, `1MB`, `2GB` (powers of 1024). */
export type Size = number | string;

/** One option: its default, and the values that it accepts. */
export interface OptionField<T = unknown> {
  readonly default: T;
  /** The way in which a value is read: which strings and numbers are accepted. */
  readonly kind:
    | 'boolean'
    | 'integer'
    | 'number'
    | 'percent'
    | 'duration'
    | 'size'
    | 'text'
    | 'choice'
    | 'rate'
    | 'object'
    | 'function';
  /** The unit of a plain number; for durations `ms` or `s`. */
  readonly unit?:
    | 'ms'
    | 's'
    | 'bytes'
    | 'messages'
    | 'levels'
    | 'bytes of UTF-8'
    | 'connections'
    | 'ids'
    | 'filters'
    | 'sessions'
    | 'alarms';
  readonly min?: number;
  /** The maximum. For the kind `text`: bytes of UTF-8. */
  readonly max?: number;
  /** The minimum of a change at run time, if it is greater than `min`, and the reason. It does not apply to 0 where that is allowed. */
  readonly leastChange?: { readonly min: number; readonly why: string };
  readonly choices?: readonly string[];
  /** Other documented names of the option, in addition to the name in snake_case. */
  readonly aliases?: readonly string[];
  /** Description of the option and of its special values. README and `embermq help options` show this text. */
  readonly about: string;
  /** Checks a value of the kind `object` or `text` and converts it to the value of the option; throws `InvalidInput`. */
  readonly check?: (value: unknown, field: string) => unknown;
  /**
   * Time at which a change at run time takes effect: at once, or for connections that are accepted from then on. Default: for an option of
   * a zone `next connection`; any other option is fixed when its object is created.
   */
  readonly change?: 'now' | 'next connection';
  /** The reason why the option is fixed when its object is created, for people who try to change it: the end of a sentence. */
  readonly whyFixed?: string;
}

/** Options by camelCase name. */
export type OptionTable = Readonly<Record<string, OptionField>>;
/** The values of the options of a table after they have been read. */
export type Values<T> = { readonly [N in keyof T]: T[N] extends OptionField<infer V> ? V : never };

/** Create a row of a table. */
export function row<V>(
  kind: OptionField['kind'],
  value: V,
  about: string,
  more: Omit<Partial<OptionField>, 'kind' | 'default' | 'about'> = {}
): OptionField<V> {
  return { kind, default: value, about, ...more };
}

/** An amount, such as messages or bytes, per period of time. */
export interface Rate {
  readonly amount: number;
  readonly perMs: number;
}

/** The maximum length of a string in bytes of UTF-8, if its row has no maximum: that of a string in MQTT. */
const MAX_TEXT_BYTES = 65_535;

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000
};
const UNIT_BYTES: Readonly<Record<string, number>> = { '': 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

/** Milliseconds of a duration such as `90s`, `1m30s` or `2h`; undefined if it is not valid. */
export function parseDuration(text: string): number | undefined {
  if (text.length > MAX_TEXT_BYTES) return undefined; // a longer one could overflow the stack of the regular expression
  const trimmed = text.trim().toLowerCase();
  if (trimmed === 'infinity') return Infinity;
  if (!/^(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+$/.test(trimmed)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)/g))
    ms += Number(amount) * UNIT_MS[unit];
  return ms;
}

/** Bytes of a size such as `1MB` or `64 KB`; undefined if it is not valid. */
export function parseSize(text: string): number | undefined {
  const parts = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)?$/i.exec(text.trim());
  return parts === null ? undefined : Math.floor(Number(parts[1]) * UNIT_BYTES[(parts[2] ?? '').toLowerCase()]);
}

/** Milliseconds of a duration; plain numbers are in `unit`. @throws InvalidInput DURATION_INVALID */
export function durationMs(value: Duration, field: string, unit: 'ms' | 's' = 'ms'): number {
  const ms =
    typeof value === 'number' ? value * UNIT_MS[unit] : typeof value === 'string' ? parseDuration(value) : undefined;
  if (ms === undefined || Number.isNaN(ms) || ms < 0) {
    throw new InvalidInput('DURATION_INVALID', field, 'a duration such as "250ms", "90s" or "2h", or a number', value);
  }
  return ms;
}

/** The documented spelling of a camelCase name, for example `max_packet_size` for `maxPacketSize`. */
export function documentedName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Read given options according to a table.
 * @param where the place of the options, for error messages; '' for the top level
 * @param base the values of options that are not given; default: the defaults of the rows
 * @returns one value per row
 * @throws InvalidInput OPTION_UNKNOWN with the most similar name, or OPTION_INVALID
 */
export function readOptions(
  table: OptionTable,
  given: object,
  where: string,
  base?: Readonly<Record<string, unknown>>
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(table)) values[name] = base === undefined ? row.default : base[name];
  return Object.assign(values, readGiven(table, given, where));
}

/** As `readOptions`, but returns only the values of given options. */
export function readGiven(table: OptionTable, given: object, where: string): Record<string, unknown> {
  checkObject(given, where === '' ? 'options' : where);
  const values: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(given)) {
    const name = optionName(table, key);
    if (name === undefined) throw unknownKey(key, [...nameIndex(table).keys()], where);
    if (value !== undefined) values[name] = readValue(table[name], value, where === '' ? key : `${where}.${key}`);
  }
  return values;
}

/** Check that a value is a plain object of options. @throws InvalidInput OPTION_INVALID */
export function checkObject(value: unknown, field: string): void {
  const isGood = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Map);
  if (!isGood) throw new InvalidInput('OPTION_INVALID', field, 'an object', value);
}

/** Check that all keys are in `known`. @throws InvalidInput OPTION_UNKNOWN */
export function checkNames(given: object, known: readonly string[], where: string): void {
  for (const key of Object.keys(given)) if (!known.includes(key)) throw unknownKey(key, known, where);
}

/** The error for an unknown option, with the most similar name as a suggestion. */
export function unknownKey(key: string, known: readonly string[], where: string): InvalidInput {
  const near = nearest(key, known);
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  const place = where === '' ? '' : ` in ${where}`;
  return new InvalidInput('OPTION_UNKNOWN', key, 'a known option', key, `unknown option ${show(key)}${place}${hint}`);
}

/** The name of the row for a key in any spelling (camelCase, documented, or an alias); undefined if there is none. */
export function optionName(table: OptionTable, key: string): string | undefined {
  return nameIndex(table).get(key);
}

const indexes = new WeakMap<OptionTable, Map<string, string>>();

function nameIndex(table: OptionTable): Map<string, string> {
  let index = indexes.get(table);
  if (index === undefined) {
    index = new Map();
    for (const [name, row] of Object.entries(table)) {
      for (const alias of [name, documentedName(name), ...(row.aliases ?? [])]) index.set(alias, name);
    }
    indexes.set(table, index);
  }
  return index;
}

/** Read the value of one option. @param field the name of the option in errors @throws InvalidInput OPTION_INVALID */
export function readValue(row: OptionField, value: unknown, field: string): unknown {
  const fail = (expected: string): never => {
    throw new InvalidInput('OPTION_INVALID', field, expected, value);
  };
  const { max = MAX_TEXT_BYTES } = row.kind === 'text' ? row : {};
  if (typeof value === 'string' && row.kind !== 'object' && Buffer.byteLength(value) > max)
    return fail(`a string of at most ${max} bytes`);
  switch (row.kind) {
    case 'boolean':
      if (value === true || ['true', 'on', '1'].includes(value as string)) return true;
      if (value === false || ['false', 'off', '0'].includes(value as string)) return false;
      return fail('true or false');
    case 'integer':
    case 'number': {
      const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
      return inRange(row, number, field, value);
    }
    case 'percent': {
      const [, digits] = /^\s*(\d+(?:\.\d+)?)\s*%?\s*$/.exec(String(value)) ?? [];
      const percent = typeof value === 'string' && digits !== undefined ? Number(digits) : value;
      return inRange({ ...row, max: 100 }, percent, field, value);
    }
    case 'duration': {
      const unit = row.unit === 's' ? 's' : 'ms';
      const ms = typeof value === 'string' ? parseDuration(value) : undefined;
      const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
      return inRange(row, ms === undefined ? number : ms / UNIT_MS[unit], field, value);
    }
    case 'size':
      return inRange(row, typeof value === 'string' ? parseSize(value) : value, field, value);
    case 'text':
      if (typeof value !== 'string') return fail('a string');
      return row.check === undefined ? value : row.check(value, field);
    case 'choice':
      return row.choices?.includes(value as string) ? value : fail(`one of ${row.choices?.join(', ')}`);
    case 'rate':
      return readRate(value) ?? fail('a rate such as "100,10s", or { amount, perMs }');
    case 'function':
      return typeof value === 'function' ? value : fail('a function');
    case 'object':
      if (row.check !== undefined) return row.check(value, field);
      return typeof value === 'object' && value !== null ? value : fail('an object');
  }
}

function inRange(row: OptionField, number: unknown, field: string, given: unknown): number {
  const { kind, unit, min = 0, max = Number.MAX_SAFE_INTEGER } = row;
  // MQTT only has whole seconds.
  const isWhole = kind === 'integer' || kind === 'size' || (kind === 'duration' && unit === 's');
  const isGood = typeof number === 'number' && number >= min && number <= max;
  if (isGood && (!isWhole || number === Infinity || Number.isInteger(number))) return number;
  const range = row.max === undefined || max === Infinity ? `of at least ${min}` : `from ${min} to ${max}`;
  const size = `${range}${unit === undefined ? '' : ` ${unit}`}`;
  if (kind === 'duration') throw new InvalidInput('OPTION_INVALID', field, `a duration ${size}, such as "90s"`, given);
  if (kind === 'size') throw new InvalidInput('OPTION_INVALID', field, `a size ${size}, such as "64KB"`, given);
  throw new InvalidInput('OPTION_INVALID', field, `a ${isWhole ? 'whole ' : ''}number ${size}`, given);
}

function readRate(value: unknown): Rate | undefined {
  let rate = value as Partial<Rate> | null;
  if (typeof value === 'string') {
    const parts = value.split(',').map((part) => part.trim());
    rate = parts.length === 2 ? { amount: parseSize(parts[0]), perMs: parseDuration(parts[1]) } : null;
  }
  if (typeof rate !== 'object' || rate === null) return undefined;
  const { amount, perMs } = rate;
  const isGood = Number.isFinite(amount) && Number.isFinite(perMs) && (amount as number) > 0 && (perMs as number) > 0;
  return isGood ? { amount: amount as number, perMs: perMs as number } : undefined;
}

/** The error for a name that is not in `known`, with the most similar name as a suggestion. */
export function unknownName(code: string, field: string, name: unknown, known: readonly string[]): InvalidInput {
  const near = nearest(String(name), known);
  const list = `one of ${known.join(', ')}`;
  const hint = near === undefined ? list : `did you mean "${near}"?`;
  return new InvalidInput(code, field, list, name, `there is no ${field} "${String(name)}"; ${hint}`);
}

/** The known name that is most similar to a misspelled one; undefined if none is similar. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > 100) return undefined; // the duration of the comparison is proportional to the length
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** The minimum number of letters to insert, delete, replace, or exchange with the next one. */
function editDistance(a: string, b: string): number {
  let beforeRow: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isExchanged) next[j] = Math.min(next[j], beforeRow[j - 2] + 1);
    }
    [beforeRow, row] = [row, next];
  }
  return row[b.length];
}
