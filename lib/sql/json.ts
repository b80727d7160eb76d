// `JSON.parse` rounds long integers and does not tell 1.0 from 1. A regular expression finds texts that may contain
// such numbers; only those are decoded by the slower exact decoder, which must accept and refuse the same texts as
// `JSON.parse`. Its levels are limited, because it recurses.

import { checkLevel } from './sql-error.ts';
import {
  bytesOf,
  Float,
  floatOf,
  formatFloat,
  integerOf,
  MAX_DIGITS,
  MAX_LEVELS,
  setKey,
  type Value
} from './values.ts';

/** Numbers that `JSON.parse` would not preserve: long integers, and floating point numbers without a fraction. */
const DELICATE = /\d(?:\d{15}|\.0+(?!\d)|[eE][-+\d])/;

/**
 * Decode JSON. Integers are exact, and 1.0 is distinct from 1.
 * @returns undefined if the text is not valid JSON, or if an integer has more than 20000 digits
 */
export function decodeJson(text: string): Value {
  try {
    return DELICATE.test(text) ? decodeExactly(text, tooLarge) : (JSON.parse(text) as Value);
  } catch {
    return undefined;
  }
}

/**
 * Decode JSON as `decodeJson` does, with a callback for numbers that exceed the range of floating point numbers.
 * @param infinite called with the text of such a number, which may or may not be an integer
 * @throws SyntaxError if the text is not valid JSON; errors of `infinite`
 */
export function decodeExactly(text: string, infinite: (number: string) => Value): Value {
  return new ExactDecoder(text, infinite).decode();
}

/** Floating point numbers that overflow cannot be represented, but integers can. */
function tooLarge(number: string): Value {
  if (/[.eE]/.test(number) || number.length > MAX_DIGITS) throw new SyntaxError('too large');
  return BigInt(number);
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS: readonly (readonly [string, Value])[] = [
  ['true', true],
  ['false', false],
  ['null', null]
];

/** Decodes JSON without loss of precision. */
class ExactDecoder {
  readonly #text: string;
  readonly #infinite: (number: string) => Value;
  #at = 0;

  constructor(text: string, infinite: (number: string) => Value) {
    this.#text = text;
    this.#infinite = infinite;
  }

  /** @throws SyntaxError */
  decode(): Value {
    const value = this.#value(0);
    this.#match(SPACE);
    if (this.#at < this.#text.length) throw new SyntaxError('more follows');
    return value;
  }

  #value(level: number): Value {
    if (level > MAX_LEVELS) throw new SyntaxError('too many levels');
    this.#match(SPACE);
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(level);
      case '[':
        return this.#list(level);
      case '"':
        return this.#string();
    }
    for (const [word, value] of WORDS)
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    return this.#number();
  }

  #object(level: number): Value {
    const object: Record<string, Value> = {};
    this.#at++;
    if (this.#takes('}')) return object;
    do {
      this.#match(SPACE);
      const key = this.#string();
      if (!this.#takes(':')) throw new SyntaxError('missing colon');
      setKey(object, key, this.#value(level + 1));
    } while (this.#takes(','));
    if (!this.#takes('}')) throw new SyntaxError('the object is not closed');
    return object;
  }

  #list(level: number): Value {
    const list: Value[] = [];
    this.#at++;
    if (this.#takes(']')) return list;
    do list.push(this.#value(level + 1));
    while (this.#takes(','));
    if (!this.#takes(']')) throw new SyntaxError('the list is not closed');
    return list;
  }

  #string(): string {
    const start = this.#at;
    if (this.#text[start] !== '"') throw new SyntaxError('a string is missing');
    let end = start;
    do end = this.#text.indexOf('"', end + 1);
    while (end !== -1 && this.#isEscaped(end));
    if (end === -1) throw new SyntaxError('the string is not closed');
    this.#at = end + 1;
    return JSON.parse(this.#text.slice(start, end + 1)) as string;
  }

  /** Check whether an odd number of backslashes precedes an offset. */
  #isEscaped(offset: number): boolean {
    let first = offset;
    while (this.#text[first - 1] === '\\') first--;
    return (offset - first) % 2 === 1;
  }

  #number(): Value {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (found === null) throw new SyntaxError('a value is missing');
    this.#at = NUMBER.lastIndex;
    const number = Number(found[0]);
    if (!Number.isFinite(number)) return this.#infinite(found[0]);
    return found[1] !== undefined || found[2] !== undefined ? floatOf(number) : integerOf(BigInt(found[0]));
  }

  /** Skip white space and consume a character if it follows. */
  #takes(character: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return undefined;
    this.#at = pattern.lastIndex;
    return found[0];
  }
}

/**
 * Encode a value as compact JSON. Integers of any size keep their digits, 1.0 stays `1.0`, and bytes that are not UTF-8
 * are repaired. Absent values of an object are omitted.
 * @throws SqlFailure for more than 1000 levels
 */
export function encodeJson(value: Value): string {
  return encode(value, 0);
}

function encode(value: Value, level: number): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'undefined':
      return 'null';
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null';
    case 'bigint':
    case 'boolean':
      return String(value);
  }
  if (value === null) return 'null';
  checkLevel(level);
  if (Array.isArray(value)) return `[${value.map((item: Value) => encode(item, level + 1)).join(',')}]`;
  if (value instanceof Float) return Number.isFinite(value.value) ? formatFloat(value.value) : 'null';
  if (value instanceof Uint8Array)
    return JSON.stringify(Buffer.from(value.buffer, value.byteOffset, value.length).toString());
  let text = '';
  for (const [key, item] of Object.entries(value))
    if (item !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${encode(item, level + 1)}`;
  return `{${text}}`;
}

/**
 * Convert a value to text, as the function `str` and placeholders do: strings as they are, lists and objects as JSON.
 */
export function stringOf(value: Value): string {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      return Number.isInteger(value) ? String(value) : decimal(value);
    case 'object':
      if (value instanceof Float) return decimal(value.value);
      if (value instanceof Uint8Array) return Buffer.from(bytesOf(value)).toString();
      return encodeJson(value);
    default:
      return String(value);
  }
}

/**
 * A floating point number with one to ten decimals and no exponent. Infinite numbers come only from functions of the
 * app.
 */
function decimal(number: number): string {
  if (!Number.isFinite(number)) return String(number);
  const text = fixed(number, 10).replace(/0+$/, '');
  return text.endsWith('.') ? `${text}0` : text;
}

/** A finite number with the given number of decimals, from 0 to 100, and no exponent. */
export function fixed(number: number, decimals: number): string {
  if (Math.abs(number) < 1e21) return number.toFixed(decimals);
  return `${BigInt(number)}${decimals === 0 ? '' : '.'.padEnd(decimals + 1, '0')}`;
}
