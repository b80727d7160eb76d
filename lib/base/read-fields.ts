// The one reader of fields. It converts given values (numbers, or strings with a unit) to plain numbers, booleans and
// strings. The differences between options, properties and parameters are the columns of a `Policy`.

import { InvalidInput, show } from './errors.ts';
import {
  checkObject,
  type Field,
  type FieldTable,
  type FieldType,
  fieldsOf,
  type GivenTable,
  HIDDEN,
  MAX_TEXT_BYTES,
  nameIndex,
  optionName,
  parseDuration,
  parseSize,
  type Rate,
  UNIT_MS,
  unknownKey,
  type Values
} from './fields.ts';

/**
 * Read given options according to a table.
 * @param where the place of the options, for error messages; '' for the top level
 * @param base the values of options that are not given; default: the defaults of the fields
 * @returns one value per field
 * @throws InvalidInput OPTION_UNKNOWN with the most similar name, or OPTION_INVALID
 */
export function readOptions<T extends GivenTable>(
  table: T,
  given: object,
  where: string,
  base?: Readonly<Record<string, unknown>>
): Values<T> {
  const values: Record<string, unknown> = {};
  for (const [name, one] of Object.entries<{ readonly default?: unknown }>(table))
    values[name] = base === undefined ? one.default : base[name];
  return Object.assign(values, readGiven(table, given, where)) as Values<T>;
}

/** As `readOptions`, but returns only the values of given options. */
export function readGiven(table: GivenTable, given: object, where: string): Record<string, unknown> {
  checkObject(given, where === '' ? 'options' : where);
  return readFields(table, given, OPTIONS, { what: where, path: where === '' ? '' : `${where}.` });
}

/** The differences between the readers of options, properties and parameters. */
export interface Policy {
  /** Codes of the errors for a value that is not valid, and for one that is missing. */
  readonly invalid: string;
  readonly missing: string;
  /** Start of the message for an invalid value, in front of `must be`. Absent: the message of `InvalidInput`. */
  readonly named?: (what: string, field: string) => string;
  readonly missingText?: (what: string, field: string) => string;
  /** Spellings of names that are accepted in addition to those of the table. */
  readonly spelling: 'documented' | 'any case' | 'exact';
  /** Called for a name that the table does not have. Unless it throws, the value is kept. */
  readonly unknown?: (key: string, table: FieldTable, place: Place) => void;
  /** Set if null counts as not given. */
  readonly ignoresNull?: true;
  /** Set if defaults are filled in. */
  readonly fillsIn?: true;
  /** Set if strings are converted to numbers and booleans, and if numbers and strings without limits have those of MQTT. */
  readonly converts?: true;
  /** Tells whether `******` stands for a secret in a value, which is refused then. */
  readonly isHidden?: (field: Field, value: unknown) => boolean;
  /** A choice in messages. */
  readonly shownChoice: (choice: unknown) => string;
}

/** The place of fields, for messages. */
interface Place {
  /** The owner of the fields, such as `mqtt sink`. */
  readonly what: string;
  /** The fields that contain them, followed by a dot; '' for the top level. */
  readonly path?: string;
  /** Called with a sentence for each name that has no effect. */
  readonly warn?: ((text: string) => void) | undefined;
}

const OPTIONS: Policy = {
  invalid: 'OPTION_INVALID',
  missing: 'OPTION_INVALID',
  spelling: 'documented',
  unknown: (key, table, { what }) => {
    throw unknownKey(key, [...nameIndex(table).keys()], what);
  },
  converts: true,
  shownChoice: String
};

/**
 * Read given values according to a table.
 * @returns the values by the names of the table, and those that it does not have
 * @throws InvalidInput with a code of the policy
 */
export function readFields(
  written: GivenTable | undefined,
  given: object,
  policy: Policy,
  place: Place
): Record<string, unknown> {
  const table = fieldsOf(written);
  const { what, path = '' } = place;
  const values = new Map<string, unknown>();
  for (const [key, value] of Object.entries(given)) {
    const name = nameOf(table, key, policy.spelling);
    const isGiven = value !== undefined && (value !== null || policy.ignoresNull !== true);
    if (name === undefined) {
      policy.unknown?.(key, table, place);
      if (isGiven) values.set(key, value);
    } else if (isGiven && (name === key || !Object.hasOwn(given, name))) {
      const shown = policy.spelling === 'any case' ? name : key;
      values.set(name, readValue(table[name], value, path + shown, policy, what));
    }
  }
  for (const [name, one] of Object.entries(table)) {
    if (values.has(name)) continue;
    const field = path + name;
    if (one.required === true)
      throw new InvalidInput(
        policy.missing,
        field,
        expectedOf(one, policy),
        undefined,
        policy.missingText?.(what, field)
      );
    if (policy.fillsIn === true && one.default !== undefined) values.set(name, one.default);
  }
  return Object.fromEntries(values);
}

/** Read the value of one field. @param at the name of the field in errors @throws InvalidInput with the code of the policy */
export function readValue(field: Field, value: unknown, at: string, policy: Policy = OPTIONS, what = ''): unknown {
  const { type, choices, check, items } = field;
  const fail = (expected = expectedOf(field, policy), got = value): never => {
    const shown = field.isSecret === true && got !== HIDDEN ? undefined : got;
    const rest = shown === undefined ? '' : `, got ${show(shown)}`;
    const text = policy.named && `${policy.named(what, at)} must be ${expected}${rest}`;
    throw new InvalidInput(policy.invalid, at, expected, shown, text);
  };
  if (policy.isHidden?.(field, value) === true)
    fail(`the value itself; ${HIDDEN} stands for the current one in a change`, HIDDEN);
  if (typeof value === 'string') {
    if (field.isTemplate === true && value.includes('{{')) return value;
    const { max = policy.converts ? MAX_TEXT_BYTES : Infinity } = type === 'string' ? field : {};
    if (!COMPOSITE.has(type) && Buffer.byteLength(value) > max) fail(`a string of at most ${max} bytes`);
  }
  if (check !== undefined && type !== 'string') return check(value, at);
  if (choices !== undefined && !choices.includes(value)) fail();
  switch (type) {
    case 'boolean':
      if (value === true || (policy.converts && ['true', 'on', '1'].includes(value as string))) return true;
      if (value === false || (policy.converts && ['false', 'off', '0'].includes(value as string))) return false;
      return fail();
    case 'string':
      if (typeof value !== 'string' || FORMATS[field.format ?? '']?.accepts(value) === false) return fail();
      return check === undefined ? value : check(value, at);
    case 'rate':
      return readRate(value) ?? fail();
    case 'function':
      return typeof value === 'function' ? value : fail();
    case 'object':
      if (!isObject(value)) return fail();
      return field.fields === undefined ? value : readFields(field.fields, value, policy, { what, path: `${at}.` });
    case 'array':
      if (!Array.isArray(value)) return fail();
      return items === undefined
        ? value
        : value.map((item, index) => readValue(items, item, `${at}[${index}]`, policy, what));
    case 'choice':
    case 'any':
      return value;
    default:
      return inRange(field, numberOf(field, value, policy), policy) ?? fail();
  }
}

/** Types for which the length of a string is not limited. */
const COMPOSITE: ReadonlySet<FieldType> = new Set(['object', 'array', 'any']);

const FORMATS: Readonly<Record<string, { readonly expected: string; accepts(text: string): boolean }>> = {
  url: {
    expected: 'a URL that begins with http:// or https://',
    accepts: (text) => /^https?:\/\/[^/]/i.test(text) && URL.canParse(text)
  },
  duration: {
    expected: 'a duration such as "60s" or "1h30m"',
    accepts: (text) => Number.isFinite(parseDuration(text))
  }
};

/** The number that a value means. */
function numberOf({ type, unit }: Field, value: unknown, { converts }: Policy): unknown {
  if (typeof value !== 'string') return value;
  if (type === 'size') return parseSize(value);
  const ms = type === 'duration' ? parseDuration(value) : undefined;
  if (ms !== undefined) return ms / UNIT_MS[unit === 's' ? 's' : 'ms'];
  if (type === 'percent') return Number(/^\s*(\d+(?:\.\d+)?)\s*%?\s*$/.exec(value)?.[1]);
  return converts && value.trim() !== '' ? Number(value) : value;
}

function boundsOf({ type, min, max }: Field, { converts }: Policy): readonly [min: number, max: number] {
  const [least, most] = converts ? [0, Number.MAX_SAFE_INTEGER] : [-Infinity, Infinity];
  return [min ?? least, type === 'percent' ? 100 : (max ?? most)];
}

/** Check whether only integers are accepted. MQTT has only whole seconds. */
function isWhole({ type, unit }: Field): boolean {
  return type === 'integer' || type === 'size' || (type === 'duration' && unit === 's');
}

function inRange(field: Field, number: unknown, policy: Policy): number | undefined {
  const [min, max] = boundsOf(field, policy);
  if (typeof number !== 'number' || !(number >= min && number <= max)) return undefined;
  return !isWhole(field) || number === Infinity || Number.isInteger(number) ? number : undefined;
}

/** The values that are accepted, for messages. */
function expectedOf(field: Field, policy: Policy): string {
  const { type, choices, format = '', max, unit } = field;
  if (choices !== undefined) return `one of ${choices.map(policy.shownChoice).join(', ')}`;
  if (type === 'string') return FORMATS[format]?.expected ?? 'a string';
  const text = EXPECTED[type];
  if (text !== undefined) return text;
  const [low, high] = boundsOf(field, policy);
  const isOpen = high === Infinity || (max === undefined && type !== 'percent');
  const least = low === -Infinity ? '' : ` of at least ${low}`;
  const range = isOpen ? least : ` from ${low} to ${high}`;
  const suffix = unit === undefined ? '' : ` ${unit}`;
  if (type === 'duration')
    return policy.converts
      ? `a duration${range}${suffix}, such as "90s"`
      : `a number of milliseconds, or a duration such as "10s"${range && `,${range}`}`;
  if (type === 'size') return `a size${range}${suffix}, such as "64KB"`;
  return `a ${isWhole(field) ? 'whole ' : ''}number${range}${suffix}`;
}

const EXPECTED: Readonly<Record<string, string | undefined>> = {
  boolean: 'true or false',
  rate: 'a rate such as "100,10s", or { amount, perMs }',
  object: 'an object',
  array: 'a list',
  function: 'a function',
  any: 'a value'
};

/** Check whether a value is an object with fields: no array, and no bytes. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
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

function nameOf(table: FieldTable, key: string, spelling: Policy['spelling']): string | undefined {
  if (Object.hasOwn(table, key)) return key;
  if (spelling === 'documented') return optionName(table, key);
  const lower = key.toLowerCase();
  return spelling === 'exact' ? undefined : Object.keys(table).find((name) => name.toLowerCase() === lower);
}
