// The values of statements differ from those of rules over events (`lib/sql/values.ts`): integers are bigint, absent
// and null are the same, keys are found without regard to case. Everything that walks a value is bounded in levels
// and in size, because values come from clients. Plain values, for apps and JSON, are made at the end of a plan
// (`plain`, `plainRow`).

import { BrokerError, truncated } from '../../base/errors.ts';
import { compareStrings } from '../../sql/compare.ts';
import { type ObjectWith, setKey, type ValueWith } from '../../sql/values.ts';

/**
 * The values of stream statements.
 *
 * | type of SQL | in JavaScript |
 * |---|---|
 * | bigint | bigint, of 64 bits; larger in rows of streams without a schema |
 * | float | number |
 * | string, boolean | the same |
 * | datetime | Date |
 * | bytea | Uint8Array |
 * | array, struct | array, object |
 * | null, and absent values | null, undefined |
 *
 * Rows of streams without a schema have the numbers of JSON, which are floats. Integers from 2^53 on are bigint, so
 * that they keep their digits.
 */
export type StreamValue = ValueWith<Date>;

/** A row's columns by name, or a struct. */
export type StreamValueObject = ObjectWith<Date>;

type Kind = 'bigint' | 'float' | 'string' | 'boolean' | 'datetime' | 'bytea' | 'array' | 'struct' | 'null';

export function kindOf(value: StreamValue): Kind {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return typeof value as 'string' | 'boolean' | 'bigint';
    case 'number':
      return 'float';
    case 'undefined':
      return 'null';
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (value instanceof Date) return 'datetime';
  return value instanceof Uint8Array ? 'bytea' : 'struct';
}

export function isNull(value: StreamValue): value is null | undefined {
  return value === null || value === undefined;
}

export function isNumber(value: StreamValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

export function isArray(value: StreamValue): value is readonly StreamValue[] {
  return Array.isArray(value);
}

export function isStruct(value: StreamValue): value is StreamValueObject {
  return kindOf(value) === 'struct';
}

/**
 * The value of a key. An exact match takes precedence over one that differs in case [stream rules 3.1, 4.5].
 * @returns undefined if there is none
 */
export function member(object: StreamValueObject, key: string): StreamValue {
  const value = object[key];
  // most columns exist; inherited members are functions, which are never values, and __proto__
  if (value !== undefined && typeof value !== 'function' && key !== '__proto__') return value;
  return Object.hasOwn(object, key) ? value : similarMember(object, key);
}

function similarMember(object: StreamValueObject, key: string): StreamValue {
  const lower = key.toLowerCase();
  for (const name of Object.keys(object))
    if (name.length === key.length && name.toLowerCase() === lower) return object[name];
  return undefined;
}

const TYPE_NAMES: Readonly<Record<Kind, string>> = {
  bigint: 'int64',
  float: 'float64',
  string: 'string',
  boolean: 'bool',
  datetime: 'time.Time',
  bytea: '[]uint8',
  array: '[]interface {}',
  struct: 'map[string]interface {}',
  null: '<nil>'
};

/** The name of a value's type in messages, as in the original: `int64`. */
export function typeName(value: StreamValue): string {
  return TYPE_NAMES[kindOf(value)];
}

/** Maximum nesting of arrays and structs in a value that is printed or compared. */
const MAX_LEVELS = 1000;

/** A value in messages, as in the original: `string(32)`. Long values are shortened. */
export function describe(value: StreamValue): string {
  return `${typeName(value)}(${truncated(brief(value, 3), 100)})`;
}

/** The beginning of a value. */
function brief(value: StreamValue, levels: number): string {
  if (typeof value === 'string') return value.slice(0, 101);
  if (value instanceof Uint8Array) return printed(value.subarray(0, 50));
  if (!isArray(value) && !isStruct(value)) return printed(value);
  if (levels === 0) return '...';
  if (isArray(value)) return `[${Array.from(value.slice(0, 50), (each) => brief(each, levels - 1)).join(' ')}]`;
  const entries: string[] = [];
  for (const key in value) if (entries.push(`${key}:${brief(value[key], levels - 1)}`) === 50) break;
  return `map[${entries.sort().join(' ')}]`;
}

/** Maximum length of a printed array or struct, in characters. */
const MAX_PRINTED = 1_048_576;

/**
 * A value as the original prints it: arrays `[1 2]`, structs `map[a:1]`, null `<nil>`.
 * @throws StreamFailure for an array or a struct with more than 1000 levels, or more than 1048576 characters
 */
export function printed(value: StreamValue): string {
  switch (kindOf(value)) {
    case 'null':
      return '<nil>';
    case 'datetime':
      return Number.isNaN((value as Date).getTime()) ? 'NaN' : (value as Date).toISOString();
    case 'bytea':
      return `[${(value as Uint8Array).join(' ')}]`;
    case 'float':
      return printedFloat(value as number);
    case 'array':
    case 'struct': {
      const printer = new Printer();
      printer.print(value, 0);
      return printer.text;
    }
    default:
      return String(value);
  }
}

let printedCount = 0;

/** Total number of characters of printed arrays and structs: rules count them as work. */
export function printedCharacters(): number {
  return printedCount;
}

/** Prints arrays and structs up to a limit. */
class Printer {
  text = '';

  /** @throws StreamFailure */
  print(value: StreamValue, level: number): void {
    if (isArray(value)) {
      checkLevel(level);
      this.#add('[');
      for (let index = 0; index < value.length; index++) {
        if (index > 0) this.#add(' ');
        this.print(value[index], level + 1);
      }
      this.#add(']');
    } else if (isStruct(value)) {
      checkLevel(level);
      let separator = 'map[';
      for (const key of Object.keys(value).sort()) {
        this.#add(`${separator}${key}:`);
        this.print(value[key], level + 1);
        separator = ' ';
      }
      this.#add(separator === ' ' ? ']' : 'map[]');
    } else this.#add(printed(value));
  }

  #add(part: string): void {
    if (this.text.length + part.length > MAX_PRINTED)
      throw new StreamFailure(`the value has more than ${MAX_PRINTED} characters as text`);
    this.text += part;
    printedCount += part.length;
  }
}

/** @throws StreamFailure if a value has more than 1000 levels */
export function checkLevel(level: number): void {
  if (level >= MAX_LEVELS)
    throw new StreamFailure(`the value has more than ${MAX_LEVELS} levels of arrays and structs`);
}

/** A float as the original prints it, in its shortest form: `3`, `25.5`, `1.541152486013e+12`. */
export function printedFloat(number: number): string {
  if (Number.isNaN(number)) return 'NaN';
  if (!Number.isFinite(number)) return number > 0 ? '+Inf' : '-Inf';
  if (number === 0) return Object.is(number, -0) ? '-0' : '0';
  const size = Math.abs(number);
  if (size >= 1e-4 && size < 1e6) return String(number);
  const [mantissa, exponent] = number.toExponential().split('e');
  const digits = exponent.slice(1).padStart(2, '0');
  return `${mantissa}e${exponent[0]}${digits}`;
}

/** An integer of 64 bits; larger ones wrap around, as in the original. */
export function integer(value: bigint): bigint {
  return BigInt.asIntN(64, value);
}

/**
 * Convert a value for the app and for JSON: integers become numbers where these are exact; NaN and infinity become
 * null.
 * @throws StreamFailure for more than 1000 levels
 */
export function plain(value: StreamValue): unknown {
  return new PlainCopy(Infinity).of(value, 0);
}

/**
 * Convert a row of a result in the same way, weighing it at the same time.
 * @throws StreamFailure for more than 1000 levels, or if it is too heavy
 */
export function plainRow(row: StreamValueObject, most: number): StreamValueObject {
  return new PlainCopy(most).of(row, 0) as StreamValueObject;
}

/** Copies values up to a limit of their weight, which is defined as in `weightOf`. */
class PlainCopy {
  readonly #most: number;
  #rest: number;

  constructor(most: number) {
    this.#most = most;
    this.#rest = most;
  }

  /** @throws StreamFailure */
  of(value: StreamValue, level: number): unknown {
    switch (typeof value) {
      case 'string':
        this.#take(value.length + 2);
        return value;
      case 'object':
        if (value !== null) return this.#object(value, level);
    }
    this.#take(8);
    if (typeof value === 'number') return Number.isFinite(value) ? value : null;
    if (typeof value !== 'bigint') return value;
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }

  #object(value: object, level: number): unknown {
    this.#take(value instanceof Uint8Array ? Math.ceil(value.length * (4 / 3)) : 2);
    if (value instanceof Date || value instanceof Uint8Array) return value;
    checkLevel(level);
    if (Array.isArray(value)) {
      this.#take(value.length);
      return value.map((each: StreamValue) => this.of(each, level + 1));
    }
    const copy: Record<string, unknown> = {};
    const object = value as StreamValueObject;
    for (const key of Object.keys(object)) {
      this.#take(key.length + 4);
      setKey(copy, key, this.of(object[key], level + 1));
    }
    return copy;
  }

  #take(weight: number): void {
    this.#rest -= weight;
    if (this.#rest < 0) throw tooHeavy('a row of the result', this.#most);
  }
}

/** Compare two values of one type that has an order: strings, numbers, booleans or dates. Negative, 0 or positive. */
export function compareAlike(left: StreamValue, right: StreamValue): number {
  if (typeof left === 'string') return compareStrings(left, right as string);
  const [a, b] = [left as number, right as number]; // also bigint, boolean and Date, which JavaScript compares by value
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @param what subject of the message: `the row` */
export function tooHeavy(what: string, most: number): StreamFailure {
  return new StreamFailure(`${what} is larger than ${most} bytes as JSON (bounds.rowWeight)`);
}

/** The failure to evaluate an expression or an operator for a row. `code` is `STREAM_FAILED`. */
export class StreamFailure extends BrokerError {
  constructor(message: string, cause?: unknown) {
    super('STREAM_FAILED', message, cause === undefined ? undefined : { cause });
  }
}
