/**
 * The values of statements.
 *
 * | value | in JavaScript |
 * |---|---|
 * | string | string |
 * | bytes that are not UTF-8 | Uint8Array |
 * | integer | a safe integer as number, others as bigint |
 * | floating point number | number; `Float` if it has no fraction |
 * | boolean, null of JSON | the same |
 * | absent | undefined |
 * | list, object | array, object |
 */
export type Value = ValueWith<Float>;

/** An object of a statement, such as its output. */
export type ValueObject = ObjectWith<Float>;

/** The values of a language. One of their classes differs: `Float`, or `Date` in streams. */
export type ValueWith<Own> =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Own
  | Uint8Array
  | readonly ValueWith<Own>[]
  | ObjectWith<Own>;

/** An object with values of a language. */
export type ObjectWith<Own> = { readonly [key: string]: ValueWith<Own> };

/** Maximum nesting of lists and objects that are compared, encoded or decoded exactly. */
export const MAX_LEVELS = 1000;

/**
 * Maximum number of digits of an integer, which exceeds 65536 bits. Converting longer ones would take more than linear
 * time.
 */
export const MAX_DIGITS = 20_000;

/** A floating point number without a fraction, kept distinct from an integer: 1.0. */
export class Float {
  /** The number. */
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }

  /** The number. */
  valueOf(): number {
    return this.value;
  }

  /** The number. */
  toJSON(): number {
    return this.value;
  }
}

/** Convert a floating point number to a value. */
export function floatOf(number: number): number | Float {
  return Number.isInteger(number) ? new Float(number) : number;
}

/** Convert an exact number without a fraction, or a bigint, to a value. */
export function integerOf(integer: bigint): number | bigint {
  return integer >= MIN_SAFE && integer <= MAX_SAFE ? Number(integer) : integer;
}

/**
 * Convert a number without a fraction to a value. Infinite numbers, which only functions of the app return, stay as
 * they are.
 */
export function integerFrom(number: number): number | bigint {
  return Number.isFinite(number) ? integerOf(BigInt(number)) : number;
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const MIN_SAFE = BigInt(Number.MIN_SAFE_INTEGER);

export type Kind = 'string' | 'bytes' | 'integer' | 'float' | 'boolean' | 'null' | 'absent' | 'list' | 'object';

export function kindOf(value: Value): Kind {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'number':
      return Number.isInteger(value) ? 'integer' : 'float';
    case 'bigint':
      return 'integer';
    case 'boolean':
      return 'boolean';
    case 'undefined':
      return 'absent';
  }
  if (value === null) return 'null';
  if (value instanceof Float) return 'float';
  if (Array.isArray(value)) return 'list';
  return value instanceof Uint8Array ? 'bytes' : 'object';
}

/** Check whether a value is a list. */
export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Check whether a value is an object, as opposed to a list, bytes or a number. */
export function isObject(value: Value): value is ValueObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Float) &&
    !(value instanceof Uint8Array)
  );
}

/** The value of a key; undefined if it is not an own key of the object. */
export function own(object: ValueObject, key: string): Value {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Set a key of an object under construction; `__proto__` is a key like any other. */
export function setKey<T>(object: Record<string, T>, key: string, value: NoInfer<T>): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** A description of a value and its type, for messages. */
export function describe(value: Value): string {
  switch (kindOf(value)) {
    case 'absent':
      return 'an absent value';
    case 'null':
      return 'null';
    case 'bytes':
      return 'bytes that are not UTF-8';
    case 'string':
      return `the string ${quote(value as string)}`;
    case 'boolean':
      return String(value);
    case 'list':
      return 'a list';
    case 'object':
      return 'an object';
    case 'integer':
      return `the integer ${value}`;
    default:
      return `the number ${formatFloat(Number(value))}`;
  }
}

function quote(text: string): string {
  return `'${text.length > 40 ? `${text.slice(0, 37)}...` : text}'`;
}

/** The shortest form of a floating point number that is distinguishable from an integer: `1.0`, `1.5`, `1.0e21`. */
export function formatFloat(number: number): string {
  const text = String(number);
  const [mantissa, exponent] = text.split('e');
  const digits = mantissa.includes('.') ? mantissa : `${Object.is(number, -0) ? '-0' : mantissa}.0`;
  return exponent === undefined ? digits : `${digits}e${exponent.replace('+', '')}`;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Convert bytes to a value: a string if they are valid UTF-8. */
export function textOf(bytes: Uint8Array): string | Uint8Array {
  try {
    return decoder.decode(bytes);
  } catch {
    return bytes;
  }
}

/** Convert a string or bytes to bytes. */
export function bytesOf(text: string | Uint8Array): Uint8Array {
  return typeof text === 'string' ? Buffer.from(text) : text;
}

/** Check whether a value is an integer or a floating point number. */
export function isNumber(value: Value): value is number | bigint | Float {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof Float;
}
