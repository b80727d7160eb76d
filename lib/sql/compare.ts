import { checkLevel, SqlFailure } from './sql-error.ts';
import { bytesOf, describe, isList, isNumber, isObject, kindOf, own, type Value, type ValueObject } from './values.ts';

/**
 * Compare values by this table; the first row that applies decides.
 *
 * | left and right, in any order | `=` | `<`, `>` |
 * |---|---|---|
 * | absent and absent | true | false, `<=` and `>=` true |
 * | absent and anything | false | false |
 * | null and anything but a string | only null is equal | false |
 * | number and number | by value, 1 = 1.0 | by value |
 * | number and string | the string is read as a number; the event fails if it is not one | the same |
 * | boolean or null, and string | the word (`true`, `null`) as a string | the same; false for null |
 * | string and string | by the bytes of UTF-8 | the same |
 * | object and object, list and list | element by element; strings are not converted | the same |
 * | everything else | false | number < boolean < object < list < string |
 */
export function equals(left: Value, right: Value): boolean {
  if (typeof left === 'string' && typeof right === 'string') return left === right;
  if (typeof left === 'number' && typeof right === 'number') return left === right;
  if (left === undefined || right === undefined) return left === right;
  return order(left, right) === 0;
}

/**
 * The order of two values.
 * @returns negative, 0 or positive; NaN if they cannot be ordered because one is absent or null
 * @throws SqlFailure for a number and a string that is not a number
 */
export function compare(left: Value, right: Value): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (left === undefined || right === undefined) return left === right ? 0 : Number.NaN;
  if (left === null || right === null) return left === right ? 0 : Number.NaN;
  return order(left, right);
}

const RANKS = { integer: 0, float: 0, absent: 1, null: 1, boolean: 1, object: 2, list: 3, bytes: 4, string: 4 };

/**
 * The order of two operands that are neither absent nor null. A string compared with a number or a word is converted.
 */
function order(left: Value, right: Value): number {
  if (isText(left)) {
    if (isNumber(right)) return compareNumbers(numberIn(left), right);
    if (isWord(right)) return orderAlike(left, String(right), 0);
  } else if (isText(right)) {
    if (isNumber(left)) return compareNumbers(left, numberIn(right));
    if (isWord(left)) return orderAlike(String(left), right, 0);
  }
  return orderPlain(left, right, 0);
}

function isText(value: Value): value is string | Uint8Array {
  return typeof value === 'string' || value instanceof Uint8Array;
}

function isWord(value: Value): value is boolean | null {
  return typeof value === 'boolean' || value === null;
}

/** Compare two values without converting strings. */
export function orderPlain(left: Value, right: Value, level: number): number {
  if (typeof left === 'string' && typeof right === 'string') return compareStrings(left, right);
  const difference = RANKS[kindOf(left)] - RANKS[kindOf(right)];
  return difference === 0 ? orderAlike(left, right, level) : difference;
}

/** The order of two values of the same rank. */
function orderAlike(left: Value, right: Value, level: number): number {
  if (isNumber(left) && isNumber(right)) return compareNumbers(left, right);
  if (isList(left) && isList(right)) return orderLists(left, right, level);
  if (isObject(left) && isObject(right)) return orderObjects(left, right, level);
  if (left instanceof Uint8Array || right instanceof Uint8Array)
    return Buffer.compare(bytesOf(left as string | Uint8Array), bytesOf(right as string | Uint8Array));
  return compareStrings(String(left), String(right)); // true, false, null
}

function orderLists(left: readonly Value[], right: readonly Value[], level: number): number {
  checkLevel(level);
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const difference = orderPlain(left[index], right[index], level + 1);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** Objects are ordered by the number of keys, then by the keys, then by the values. */
function orderObjects(left: ValueObject, right: ValueObject, level: number): number {
  checkLevel(level);
  const [leftKeys, rightKeys] = [Object.keys(left), Object.keys(right)];
  if (leftKeys.length !== rightKeys.length) return leftKeys.length - rightKeys.length;
  for (const keys of [leftKeys, rightKeys]) keys.sort(compareStrings);
  for (const [index, key] of leftKeys.entries()) {
    const difference = compareStrings(key, rightKeys[index]);
    if (difference !== 0) return difference;
  }
  for (const key of leftKeys) {
    const difference = orderPlain(own(left, key), own(right, key), level + 1);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** JavaScript compares integers of any size with floating point numbers exactly. */
function compareNumbers(left: Value, right: Value): number {
  const [a, b] = [(left as number).valueOf(), (right as number).valueOf()];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Maximum length of a string that is read as a number. */
const MAX_CHARACTERS = 1001;

const INTEGER = /^[+-]?\d+$/;
const FLOAT = /^[+-]?\d+\.\d+(?:[eE][+-]?\d+)?$/;

/** Parse a string as a number: an integer such as `+5`, or a float such as `1.0e3`; undefined if it is neither. */
export function parseNumber(text: string): number | bigint | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  if (INTEGER.test(text)) {
    const number = Number(text);
    return Number.isSafeInteger(number) ? number + 0 : BigInt(text.replace(/^\+/, ''));
  }
  if (!FLOAT.test(text)) return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}

function numberIn(text: string | Uint8Array): number | bigint {
  const number = typeof text === 'string' ? parseNumber(text) : undefined;
  if (number === undefined) throw new SqlFailure(`${describe(text)} is compared with a number, but is not one`);
  return number;
}

/** Compare by code point, which equals the order of the UTF-8 bytes. */
export function compareStrings(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const [a, b] = [left.charCodeAt(index), right.charCodeAt(index)];
    if (a === b) continue;
    return weightOf(a) - weightOf(b);
  }
  return left.length - right.length;
}

/** Surrogates sort after all other units, although their numbers are lower than some. */
function weightOf(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Check whether two values are identical: of the same type and equal. 1 equals neither '1' nor 1.0. */
export function isSame(left: Value, right: Value, level = 0): boolean {
  if (left === right) return true;
  const kind = kindOf(left);
  if (kind !== kindOf(right)) return false;
  checkLevel(level);
  if (isList(left)) {
    const other = right as readonly Value[];
    return left.length === other.length && left.every((item, index) => isSame(item, other[index], level + 1));
  }
  if (isObject(left)) {
    const other = right as ValueObject;
    const keys = Object.keys(left);
    return (
      keys.length === Object.keys(other).length &&
      keys.every((key) => Object.hasOwn(other, key) && isSame(left[key], other[key], level + 1))
    );
  }
  if (kind === 'float' || kind === 'bytes') return orderAlike(left, right, level) === 0;
  return false;
}
