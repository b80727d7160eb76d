// The one description of a named value. Options, flags, properties of sources and sinks, and parameters of actions and
// resources are tables of fields, with one reader. It converts
// given values (numbers, or strings with a unit) to plain numbers, booleans and strings. The differences between options,
// properties and parameters are the columns of a `Policy`. In one file, because the reader alone would be joined with code
// of the broker, which small entry points would then load.

import { InvalidInput, show } from './errors.ts';
import { HIDDEN } from './hidden-text.ts';

/** A duration: a number in the unit of the option, or a string such as `250ms`, `15s`, `5m`, `2h`, `7d`; `infinity` where allowed. */
export type Duration = number | string;
/** A size: a number of bytes, or a string such as `64KB`, `1MB`, `2GB` (powers of 1024). */
export type Size = number | string;

/** The way in which a value is read: which strings and numbers are accepted. */
export type FieldType =
  | 'string'
  | 'boolean'
  | 'integer'
  | 'number'
  | 'percent'
  | 'duration'
  | 'size'
  | 'choice'
  | 'rate'
  | 'object'
  | 'array'
  | 'function'
  | 'any';

/** A named value: an option, a flag, a property of a source or a sink, or a parameter of an action or a resource. */
export interface Field<T = unknown> {
  /** The way in which a value is read. */
  readonly type: FieldType;
  /** Description of the field and of its special values. Pages, `embermq help options` and interfaces show this text. */
  readonly about: string;
  /** The value if none is given. */
  readonly default?: T;
  /** Set if a value must be given. A `default` is then only an example. */
  readonly required?: boolean;
  /** The permitted values. */
  readonly choices?: readonly unknown[];
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
  /** The minimum of a number. */
  readonly min?: number;
  /** The maximum. For the type `string`: bytes of UTF-8. */
  readonly max?: number;
  /** The form of a string: `url` must begin with http:// or https://; `duration` is read as `30s`; others are only shown. */
  readonly format?: string;
  /** The fields of an object. */
  readonly fields?: FieldTable;
  /** The elements of an array. */
  readonly items?: Field;
  /** Other documented names of the field, in addition to the name in snake_case. */
  readonly aliases?: readonly string[];
  /** Checks a value and converts it to the value of the field, in place of the type; strings are checked before. Throws `InvalidInput`. */
  readonly check?: (value: unknown, field: string) => unknown;
  /** Set if the value is shown as `******`. In a change, `******` stands for the current value. */
  readonly isSecret?: true;
  /**
   * Set if a string may be a template such as `a/{{.id}}`, which is filled in for each output; this includes the
   * strings in an object. `url`: the string is a URL, in which values are percent-encoded.
   */
  readonly isTemplate?: true | 'url';
  /** The minimum of a change at run time, if it is greater than `min`, and the reason. It does not apply to 0 where that is allowed. */
  readonly leastChange?: {
    /** The minimum of a change. */
    readonly min: number;
    /** The reason, as the end of a sentence. */
    readonly why: string;
  };
  /**
   * Time at which a change at run time takes effect: at once, or for connections that are accepted from then on. Default: for an option of
   * a zone `next connection`; any other option is fixed when its object is created.
   */
  readonly change?: 'now' | 'next connection';
  /** The reason why the option is fixed when its object is created, for people who try to change it: the end of a sentence. */
  readonly whyFixed?: string;
  /** Title in a form. */
  readonly title?: string;
  /** `title` and `about` in Chinese, for forms that the documented interface shows in two languages. */
  readonly zh?: {
    /** The title in Chinese. */
    readonly title: string;
    /** The description in Chinese. */
    readonly about: string;
  };
  /** Position in a form. Default: the position in the table, from 1. */
  readonly order?: number;
  /** The kind of input in a form. Default: as the type requires. */
  readonly input?: 'textarea' | 'password' | 'file';
}

/** A field with a default. */
export interface Defaulted<V> extends Field<V> {
  /** The value if none is given. */
  readonly default: V;
}

/** Fields by name. */
export type FieldTable = Readonly<Record<string, Field>>;
/** The values of the fields of a table after they have been read. */
export type Values<T> = { readonly [N in keyof T]: T[N] extends { readonly default: infer V } ? V : unknown };

/** Create a field with a default. */
export function field<V>(
  type: FieldType,
  value: V,
  about: string,
  more: Omit<Partial<Field>, 'type' | 'default' | 'about'> = {}
): Defaulted<V> {
  return { type, default: value, about, ...more };
}

/** A string for display, in the languages of the documented interface. */
export interface Localized {
  /** In English. */
  readonly en: string;
  /** In Chinese. */
  readonly zh: string;
}

/** @deprecated Use `Field`. */
export type OptionRow<T = unknown> = Omit<Field<T>, 'type' | 'default' | 'choices'> & {
  /** The value if none is given. */
  readonly default: T;
  /** The way in which a value is read. */
  readonly kind: Exclude<FieldType, 'string' | 'array' | 'any'> | 'text';
  /** The permitted values. */
  readonly choices?: readonly string[];
};
/** @deprecated Use `FieldTable`. */
export type OptionTable = Readonly<Record<string, OptionRow>>;
/** @deprecated Use `Field`. */
export type PropertyRow = Field & {
  /** The minimum and the maximum. */
  readonly range?: readonly [least: number, greatest: number];
};
/** @deprecated Use `FieldTable`. */
export type PropertyTable = Readonly<Record<string, PropertyRow>>;

/** A parameter in the form of the documented interface, in which lists of actions and of resource types show it. */
export type DocumentedParam = Omit<Field, 'type' | 'about' | 'title' | 'items'> & {
  /** The type of the value in JSON. */
  readonly type: JsonType | 'float';
  /** The title. */
  readonly title: Localized;
  /** The description. */
  readonly description: Localized;
  /** The permitted values. Absent: any. */
  readonly enum?: readonly unknown[];
  /** The minimum and the maximum. Absent: no limits. */
  readonly range?: readonly [number, number];
  /** The parameters of an object. */
  readonly schema?: ParamTable;
  /** The elements of an array. */
  readonly items?: object;
};
/** Parameters by name, in the form of the documented interface. */
export type ParamTable = Readonly<Record<string, DocumentedParam>>;

/** @deprecated Use `field`. */
export function optionRow<V>(
  kind: OptionRow['kind'],
  value: V,
  about: string,
  more: Omit<Partial<OptionRow>, 'kind' | 'default' | 'about'> = {}
): OptionRow<V> {
  return { kind, default: value, about, ...more };
}

/**
 * A field as apps may give it: a `Field`, or one in a form of 0.2. One interface and not a union of the forms, for which an editor shows no texts.
 */
export interface GivenField extends Omit<Field, 'type' | 'about' | 'title' | 'items'> {
  /** The way in which a value is read. */
  readonly type?: FieldType | 'float';
  /** Description of the field and of its special values. Pages and interfaces show this text. */
  readonly about?: string;
  /** Title in a form. */
  readonly title?: string | Localized;
  /** The elements of an array. */
  readonly items?: object;
  /** As `type`, in options of 0.2. */
  readonly kind?: FieldType | 'text';
  /** As `about` and `zh.about`, in the form of the documented interface. */
  readonly description?: Localized;
  /** As `choices`, in the form of the documented interface. */
  readonly enum?: readonly unknown[];
  /** As `min` and `max`, in the form of the documented interface. */
  readonly range?: readonly [least: number, greatest: number];
  /** As `fields`, in the form of the documented interface. */
  readonly schema?: GivenTable;
}

/** Fields as apps may give them: also in the forms of 0.2. */
export type GivenTable = Readonly<Record<string, GivenField>>;

const NO_FIELDS: FieldTable = {};
const current = new WeakMap<GivenTable, FieldTable>();

/** The fields of a table that an app has given. */
export function fieldsOf(given: GivenTable = NO_FIELDS): FieldTable {
  let table = current.get(given);
  if (table === undefined) {
    const entries = Object.entries(given).map(([name, one]) => [name, currentField(one)] as const);
    const isCurrent = entries.every(([name, one]) => one === given[name]);
    table = isCurrent ? (given as FieldTable) : Object.fromEntries(entries);
    current.set(given, table);
  }
  return table;
}

function currentField(given: GivenField): Field {
  const {
    kind,
    description,
    enum: choices,
    range,
    schema,
    items,
    ...others
  } = given as Omit<GivenField, 'about' | 'title'> & Pick<Field, 'about'>;
  const { title, type } = given as DocumentedParam;
  const isDuration = type === 'number' && others.unit === 'ms';
  // elements without a type are not checked
  const element = items !== undefined && 'type' in items ? currentField(items as Field) : undefined;
  const isCurrent = [kind, description, choices, range, schema].every((one) => one === undefined);
  if (isCurrent && type !== 'float' && !isDuration && element === items) return given as Field;
  return {
    ...others,
    type: isDuration ? 'duration' : kind === 'text' ? 'string' : (kind ?? (type === 'float' ? 'number' : type)),
    ...(kind === 'object' && { check: others.check ?? checkAnyObject }),
    ...(choices && { choices }),
    ...(range && { min: range[0], max: range[1] }),
    ...(schema && { fields: fieldsOf(schema) }),
    ...(element && { items: element }),
    ...(description && { about: description.en, title: title.en, zh: { title: title.zh, about: description.zh } })
  };
}

/** Objects of earlier options may be arrays. */
function checkAnyObject(value: unknown, field: string): unknown {
  if (typeof value === 'object' && value !== null) return value;
  throw new InvalidInput('OPTION_INVALID', field, 'an object', value);
}

/** The types of values in JSON, as interfaces show them. */
export type JsonType = 'string' | 'number' | 'boolean' | 'object' | 'array' | 'any';

/** The type of the values of a field in JSON. */
export function jsonTypeOf({ type }: Field): JsonType {
  switch (type) {
    case 'choice':
    case 'rate':
      return 'string';
    case 'function':
      return 'any';
    case 'integer':
    case 'percent':
    case 'duration':
    case 'size':
      return 'number';
    default:
      return type;
  }
}

/** An amount, such as messages or bytes, per period of time. */
export interface Rate {
  /** The amount in one period. */
  readonly amount: number;
  /** The period in milliseconds. */
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
  /** Set if null counts as not given, also for an unknown name. */
  readonly ignoresNull?: true;
  /** Set if defaults are filled in. */
  readonly fillsIn?: true;
  /** Set if strings are converted to numbers and booleans, and if numbers and strings without limits have those of MQTT. */
  readonly converts?: true;
  /** Tells whether `******` stands for a secret in a value, which is refused then. */
  readonly isHidden?: (field: Field, value: unknown) => boolean;
  /** Hides secrets in a value that messages show. */
  readonly hideIn?: (value: unknown, fields?: FieldTable) => unknown;
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
    throw unknownKey(key, [...nameIndex(table).keys()], what, Object.keys(table));
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
  const isGiven = (value: unknown) => value !== undefined && (value !== null || policy.ignoresNull !== true);
  if (policy.spelling === 'any case') checkSpellings(given, policy.invalid, place);
  const all = new Map<string, unknown>(Object.entries(given));
  for (const [key, value] of all) {
    const name = nameOf(table, key, policy.spelling);
    if (name === undefined) {
      if (isGiven(value) || policy.ignoresNull !== true) policy.unknown?.(key, table, place);
      if (isGiven(value)) values.set(key, value);
    } else if (isGiven(value) && (name === key || !isGiven(all.get(name)))) {
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

/**
 * Refuse names that differ only in case where case has no meaning, since readers could disagree about the value.
 * @throws InvalidInput with the code
 */
export function checkSpellings(given: object, code: string, { what, path = '' }: Place): void {
  const spelled = new Map<string, string>();
  for (const key of Object.keys(given)) {
    const other = spelled.get(key.toLowerCase());
    if (other !== undefined) {
      const text = `${what}: "${path}${other}" and "${path}${key}" are the same property; remove one of them`;
      throw new InvalidInput(code, path + key, 'every property once', undefined, text);
    }
    spelled.set(key.toLowerCase(), key);
  }
}

/** Read the value of one field. @param at the name of the field in errors @throws InvalidInput with the code of the policy */
export function readValue(field: Field, value: unknown, at: string, policy: Policy = OPTIONS, what = ''): unknown {
  const { type, choices, check, items } = field;
  const fail = (expected = expectedOf(field, policy)): never => {
    const { hideIn = (one: unknown) => one } = policy;
    const shown = field.isSecret === true ? undefined : hideIn(value, field.fields);
    const rest = shown === undefined ? '' : `, got ${show(shown)}`;
    const text = policy.named && `${policy.named(what, at)} must be ${expected}${rest}`;
    throw new InvalidInput(policy.invalid, at, expected, shown, text);
  };
  if (policy.isHidden?.(field, value) === true)
    fail(`the value itself; ${HIDDEN} stands for the current one in a change`);
  if (typeof value === 'string') {
    if (field.isTemplate !== undefined && value.includes('{{')) return value;
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
  if (choices !== undefined)
    return `one of ${choices.map((choice) => (choice === '' ? '""' : policy.shownChoice(choice))).join(', ')}`;
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

/** Check whether a value is an object, as opposed to a list and null. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Check whether a value is an object with fields: no array, and no bytes. */
function isObject(value: unknown): value is object {
  return isPlainObject(value) && !ArrayBuffer.isView(value);
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

/** Check that a value is a plain object of options. @throws InvalidInput OPTION_INVALID */
export function checkObject(value: unknown, field: string): void {
  if (!isPlainObject(value) || value instanceof Map)
    throw new InvalidInput('OPTION_INVALID', field, 'an object', value);
}

/** Check that all keys are in `known`. @throws InvalidInput OPTION_UNKNOWN */
export function checkNames(given: object, known: readonly string[], where: string): void {
  for (const key of Object.keys(given)) if (!known.includes(key)) throw unknownKey(key, known, where);
}

/** An error lists the known names if there are not more, and none is similar. */
const MAX_LISTED_NAMES = 24;

/**
 * The error for an unknown option, with the most similar name as a suggestion, or else with all of them if they are few.
 * @param listed the known names without their other spellings
 */
export function unknownKey(key: string, known: readonly string[], where: string, listed = known): InvalidInput {
  const near = nearest(key, known);
  const list = listed.length > 0 && listed.length <= MAX_LISTED_NAMES ? `; expected one of ${listed.join(', ')}` : '';
  const hint = near === undefined ? list : `; did you mean "${near}"?`;
  const place = where === '' ? '' : ` in ${where}`;
  return new InvalidInput('OPTION_UNKNOWN', key, 'a known option', key, `unknown option ${show(key)}${place}${hint}`);
}

/** The name of the field for a key in any spelling (camelCase, documented, or an alias); undefined if there is none. */
export function optionName(table: FieldTable | OptionTable, key: string): string | undefined {
  return nameIndex(table).get(key);
}

const indexes = new WeakMap<FieldTable | OptionTable, Map<string, string>>();

/** The names of fields by each of their spellings. */
function nameIndex(table: FieldTable | OptionTable): Map<string, string> {
  let index = indexes.get(table);
  if (index === undefined) {
    index = new Map();
    for (const [name, { aliases = [] }] of Object.entries(table)) {
      for (const alias of [name, documentedName(name), ...aliases]) index.set(alias, name);
    }
    indexes.set(table, index);
  }
  return index;
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
  // of a word of three letters, two different ones are another word
  let bestDistance = (word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3))) + 1;
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
