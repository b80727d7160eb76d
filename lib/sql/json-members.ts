// Members of short JSON texts are read from the bytes, without decoding the rest. This is an optimization that may
// always give up: a result of `undefined` means that the caller decodes the whole text, so whatever is not certain to
// give the same value as `decodeJson` (escapes, characters beyond ASCII, long or delicate numbers, deep nesting) must
// end in `undefined`. The whole text is validated even if all members have been found.

import { floatOf, type Value } from './values.ts';

/** Maximum length of texts read here: for long strings, the engine's decoder is faster. */
const MAX_BYTES = 2048;
/** Maximum nesting of texts read here; deeper texts are decoded as a whole. */
const MAX_LEVELS = 32;
/** Maximum number of members for which comparing each key with all of them pays off. */
const MAX_MEMBERS = 8;
/** Maximum number of digits; longer numbers may not be exact. */
const MAX_DIGITS = 15;
const POWERS = Array.from({ length: MAX_DIGITS + 1 }, (_, power) => 10 ** power);

/** The members of a JSON object that a statement reads. */
export class Members {
  /** The names, in order. */
  readonly names: readonly string[];
  /** The names as encoded in JSON. */
  readonly keys: readonly Uint8Array[];

  private constructor(names: readonly string[]) {
    this.names = names;
    this.keys = names.map((name) => Buffer.from(name));
  }

  /** @returns undefined if reading these members separately does not pay off, or if comparing bytes cannot find them */
  static of(names: Iterable<string>): Members | undefined {
    const all = [...names];
    const isPlain = all.every((name) => /^[ !#-[\]-~]{1,64}$/.test(name) && !(name in Object.prototype));
    return isPlain && all.length > 0 && all.length <= MAX_MEMBERS ? new Members(all) : undefined;
  }
}

/**
 * Read members of a JSON object from its text, without the cost of decoding the others. The whole text is validated.
 * @returns an object with these members, as `decodeJson` returns them. Undefined if the text should be decoded as a
 *   whole: it may contain something other than a valid object with short numbers and ASCII text, or a member is a list
 *   or an object
 */
export function readMembers(bytes: Buffer, start: number, end: number, members: Members): Output | undefined {
  return read(bytes, start, end, members, false);
}

/**
 * Read a JSON object that has exactly these members, in this order.
 * @returns undefined if it has other members or another order, or if it should be decoded as a whole for the reasons
 *   given at `readMembers`
 */
export function readObject(bytes: Buffer, start: number, end: number, members: Members): Output | undefined {
  return read(bytes, start, end, members, true);
}

function read(bytes: Buffer, start: number, end: number, members: Members, isWhole: boolean): Output | undefined {
  const { names, keys } = members;
  if (end - start > MAX_BYTES) return undefined;
  let at = skipSpace(bytes, start, end);
  if (bytes[at] !== 0x7b || at >= end) return undefined;
  const output: Output = {};
  at = skipSpace(bytes, at + 1, end);
  if (bytes[at] === 0x7d && at < end) return !isWhole && skipSpace(bytes, at + 1, end) === end ? output : undefined;
  for (let count = 0; ; count++) {
    if (bytes[at] !== 0x22 || at >= end) return undefined;
    const keyAt = at + 1;
    const keyEnd = skipPlainString(bytes, keyAt, end);
    if (keyEnd === -1) return undefined;
    at = skipSpace(bytes, keyEnd, end);
    if (bytes[at] !== 0x3a || at >= end) return undefined;
    at = skipSpace(bytes, at + 1, end);
    const valueAt = at;
    at = skipValue(bytes, at, end, 0);
    if (at === -1) return undefined;
    const index = indexOf(bytes, keyAt, keyEnd - 1, keys, isWhole ? count : 0);
    if (isWhole && index !== count) return undefined;
    if (index !== -1) {
      const value = scalar(bytes, valueAt, at);
      if (value === undefined) return undefined;
      output[names[index]] = value;
    }
    at = skipSpace(bytes, at, end);
    if (at >= end) return undefined;
    const next = bytes[at];
    at = skipSpace(bytes, at + 1, end);
    if (next === 0x7d) return at === end && (!isWhole || count === names.length - 1) ? output : undefined;
    if (next !== 0x2c) return undefined;
  }
}

type Output = Record<string, Value>;

function skipSpace(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    at++;
  }
  return at;
}

/**
 * Skip a string of ASCII characters without escapes, from after its opening quote to after its closing quote. Returns
 * -1 if it is a different one.
 */
function skipPlainString(bytes: Buffer, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte === 0x22) return at + 1;
    if (byte < 0x20 || byte > 0x7f || byte === 0x5c) return -1;
  }
  return -1;
}

/** @returns the offset after a value; -1 if there is no simple value */
function skipValue(bytes: Buffer, start: number, end: number, level: number): number {
  if (start >= end || level > MAX_LEVELS) return -1;
  switch (bytes[start]) {
    case 0x22:
      return skipPlainString(bytes, start + 1, end);
    case 0x7b:
      return skipList(bytes, start + 1, end, level + 1, 0x7d);
    case 0x5b:
      return skipList(bytes, start + 1, end, level + 1, 0x5d);
    case 0x74:
      return skipWord(bytes, start, end, TRUE);
    case 0x66:
      return skipWord(bytes, start, end, FALSE);
    case 0x6e:
      return skipWord(bytes, start, end, NULL);
    default:
      return skipNumber(bytes, start, end);
  }
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

function skipWord(bytes: Buffer, start: number, end: number, word: Uint8Array): number {
  if (start + word.length > end) return -1;
  for (let i = 1; i < word.length; i++) if (bytes[start + i] !== word[i]) return -1;
  return start + word.length;
}

/** Skip the rest of a list or an object. @param close its closing byte */
function skipList(bytes: Buffer, start: number, end: number, level: number, close: number): number {
  let at = skipSpace(bytes, start, end);
  if (at < end && bytes[at] === close) return at + 1;
  for (;;) {
    if (close === 0x7d) {
      if (at >= end || bytes[at] !== 0x22) return -1;
      at = skipPlainString(bytes, at + 1, end);
      if (at === -1) return -1;
      at = skipSpace(bytes, at, end);
      if (at >= end || bytes[at] !== 0x3a) return -1;
      at = skipSpace(bytes, at + 1, end);
    }
    at = skipValue(bytes, at, end, level);
    if (at === -1) return -1;
    at = skipSpace(bytes, at, end);
    if (at >= end) return -1;
    const next = bytes[at++];
    if (next === close) return at;
    if (next !== 0x2c) return -1;
    at = skipSpace(bytes, at, end);
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** Skip a number without an exponent. */
function skipNumber(bytes: Buffer, start: number, end: number): number {
  let at = bytes[start] === 0x2d ? start + 1 : start;
  const integerAt = at;
  while (at < end && isDigit(bytes[at])) at++;
  if (at === integerAt || (bytes[integerAt] === 0x30 && at > integerAt + 1)) return -1;
  if (at < end && bytes[at] === 0x2e) {
    const fractionAt = ++at;
    while (at < end && isDigit(bytes[at])) at++;
    if (at === fractionAt) return -1;
  }
  return at;
}

/**
 * The index of the key between two offsets; -1 if it is not in the list. @param from the lowest index that it may have
 */
function indexOf(bytes: Buffer, start: number, end: number, keys: readonly Uint8Array[], from: number): number {
  const length = end - start;
  for (let index = from; index < keys.length; index++) {
    const key = keys[index];
    if (key.length !== length) continue;
    let i = 0;
    while (i < length && bytes[start + i] === key[i]) i++;
    if (i === length) return index;
  }
  return -1;
}

/** The skipped value between two offsets. Undefined for a list, an object, or a number that needs exact decoding. */
function scalar(bytes: Buffer, start: number, end: number): Value {
  switch (bytes[start]) {
    case 0x22:
      return bytes.toString('latin1', start + 1, end - 1);
    case 0x7b:
    case 0x5b:
      return undefined;
    case 0x74:
      return true;
    case 0x66:
      return false;
    case 0x6e:
      return null;
    default:
      return numberAt(bytes, start, end);
  }
}

/**
 * A number of at most 15 digits: its digits and the power of ten are exact, so their quotient is the nearest floating
 * point number.
 */
function numberAt(bytes: Buffer, start: number, end: number): Value {
  const isNegative = bytes[start] === 0x2d;
  const first = isNegative ? start + 1 : start;
  if (end - first > MAX_DIGITS) return undefined;
  let digits = 0;
  let point = -1;
  for (let at = first; at < end; at++) {
    const byte = bytes[at];
    if (byte === 0x2e) point = at;
    else digits = digits * 10 + byte - 0x30;
  }
  if (digits === 0 && isNegative) return undefined;
  if (isNegative) digits = -digits;
  return point === -1 ? digits : floatOf(digits / POWERS[end - point - 1]);
}
