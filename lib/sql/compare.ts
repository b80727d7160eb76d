// Values come from devices, and a comparison of two large ones is a loop: each part is counted before it is read, so that parts which
// are not reached do not count towards the limit of an event. Two strings count with the length of the shorter one, also if they differ at once.

import { checkLevel, SqlFailure } from './sql-error.ts';
import { bytesOf, describe, isList, isNumber, isObject, kindOf, own, type Value, type ValueObject } from './values.ts';

/** Counts the work of a comparison, so that values from devices cannot make it long. */
export interface CompareWork {
  /** Count characters, bytes and elements before they are compared. @throws SqlFailure if they are more than is allowed */
  compared(work: number): void;
}

/** Strings up to this length are compared without counting the work. */
const SHORT = 64;
/** The work counted for an element of a list, and for a member of an object with its key. */
const ELEMENT_WORK = 8;

/** Count the comparison of two texts: it ends with the shorter one. */
function countTexts(left: string | Uint8Array, right: string | Uint8Array, work: CompareWork | undefined): void {
  const length = Math.min(left.length, right.length);
  if (length > SHORT) work?.compared(length);
}

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
 *
 * Bytes that are not UTF-8 are compared as a string is, by their bytes, and equal no string.
 */
export function equals(left: Value, right: Value, work?: CompareWork): boolean {
  if (typeof left === 'string' && typeof right === 'string') return isSameText(left, right, work);
  if (typeof left === 'number' && typeof right === 'number') return left === right;
  if (left === undefined || right === undefined) return left === right;
  return order(left, right, work) === 0;
}

/** Strings of different lengths differ, without a look at their characters. */
function isSameText(left: string, right: string, work: CompareWork | undefined): boolean {
  if (left.length === right.length) countTexts(left, right, work);
  return left === right;
}

/**
 * The order of two values.
 * @returns negative, 0 or positive; NaN if they cannot be ordered because one is absent or null
 * @throws SqlFailure for a number and a string that is not a number
 */
export function compare(left: Value, right: Value, work?: CompareWork): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (left === undefined || right === undefined) return left === right ? 0 : Number.NaN;
  if (left === null || right === null) return left === right ? 0 : Number.NaN;
  return order(left, right, work);
}

const RANKS = { integer: 0, float: 0, absent: 1, null: 1, boolean: 1, object: 2, list: 3, bytes: 4, string: 4 };

/**
 * The order of two operands that are neither absent nor null. A string compared with a number or a word is converted.
 */
function order(left: Value, right: Value, work: CompareWork | undefined): number {
  if (isText(left)) {
    if (isNumber(right)) return compareNumbers(numberIn(left), right);
    if (isWord(right)) return orderAlike(left, String(right), 0, work);
  } else if (isText(right)) {
    if (isNumber(left)) return compareNumbers(left, numberIn(right));
    if (isWord(left)) return orderAlike(String(left), right, 0, work);
  }
  return orderPlain(left, right, 0, work);
}

function isText(value: Value): value is string | Uint8Array {
  return typeof value === 'string' || value instanceof Uint8Array;
}

function isWord(value: Value): value is boolean | null {
  return typeof value === 'boolean' || value === null;
}

/** Compare two values without converting strings. */
export function orderPlain(left: Value, right: Value, level: number, work?: CompareWork): number {
  const difference = RANKS[kindOf(left)] - RANKS[kindOf(right)];
  return difference === 0 ? orderAlike(left, right, level, work) : difference;
}

/** The order of two values of the same rank. */
function orderAlike(left: Value, right: Value, level: number, work: CompareWork | undefined): number {
  if (isNumber(left) && isNumber(right)) return compareNumbers(left, right);
  if (isList(left) && isList(right)) return orderLists(left, right, level, work);
  if (isObject(left) && isObject(right)) return orderObjects(left, right, level, work);
  if (isText(left) && isText(right)) return orderTexts(left, right, work);
  return compareStrings(String(left), String(right)); // true, false, null
}

function orderTexts(left: string | Uint8Array, right: string | Uint8Array, work: CompareWork | undefined): number {
  countTexts(left, right, work);
  if (typeof left === 'string' && typeof right === 'string') return compareStrings(left, right);
  return Buffer.compare(beginningOf(left, right.length), beginningOf(right, left.length));
}

/** The bytes of a text, as far as they are compared with this number of others. A character has at least one byte. */
function beginningOf(text: string | Uint8Array, length: number): Uint8Array {
  return bytesOf(typeof text === 'string' ? text.slice(0, length + 1) : text);
}

function orderLists(
  left: readonly Value[],
  right: readonly Value[],
  level: number,
  work: CompareWork | undefined
): number {
  checkLevel(level);
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    work?.compared(ELEMENT_WORK);
    const difference = orderPlain(left[index], right[index], level + 1, work);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** Objects are ordered by the number of keys, then by the keys, then by the values. */
function orderObjects(left: ValueObject, right: ValueObject, level: number, work: CompareWork | undefined): number {
  checkLevel(level);
  const [leftKeys, rightKeys] = [Object.keys(left), Object.keys(right)];
  work?.compared(leftKeys.length + rightKeys.length);
  if (leftKeys.length !== rightKeys.length) return leftKeys.length - rightKeys.length;
  for (const keys of [leftKeys, rightKeys]) {
    work?.compared(keys.reduce((sum, { length }) => sum + length, ELEMENT_WORK * keys.length));
    keys.sort(compareStrings);
  }
  for (const [index, key] of leftKeys.entries()) {
    const difference = compareStrings(key, rightKeys[index]);
    if (difference !== 0) return difference;
  }
  for (const key of leftKeys) {
    const difference = orderPlain(own(left, key), own(right, key), level + 1, work);
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
export function isSame(left: Value, right: Value, work?: CompareWork, level = 0): boolean {
  if (typeof left === 'string' && typeof right === 'string') return isSameText(left, right, work);
  if (left === right) return true;
  const kind = kindOf(left);
  if (kind !== kindOf(right)) return false;
  checkLevel(level);
  if (isList(left)) {
    const other = right as readonly Value[];
    return left.length === other.length && left.every((item, index) => isSameElement(item, other[index], work, level));
  }
  if (isObject(left)) {
    const other = right as ValueObject;
    const [keys, { length }] = [Object.keys(left), Object.keys(other)];
    work?.compared(keys.length + length);
    return (
      keys.length === length &&
      keys.every((key) => {
        work?.compared(key.length);
        return Object.hasOwn(other, key) && isSameElement(left[key], other[key], work, level);
      })
    );
  }
  if (kind === 'float' || kind === 'bytes') return orderAlike(left, right, level, work) === 0;
  return false;
}

function isSameElement(left: Value, right: Value, work: CompareWork | undefined, level: number): boolean {
  work?.compared(ELEMENT_WORK);
  return isSame(left, right, work, level + 1);
}
