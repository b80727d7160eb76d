// `JSON.parse` rounds integers from 2^53 on. Its result is walked for such numbers, which costs 1 to 30 % of it, and
// only then is the text decoded exactly; a search for runs of digits in the bytes costs more (12 to 87 %), as does a
// regular expression. Lists of numbers have a separate loop, which the engine compiles for unboxed floats.
//
// If a rule needs few columns, or payloads are alike, members are read from the bytes without decoding the rest. This
// may always give up, and does for a while if it often fails, so that other payloads cost little more than without
// it.

import { truncated } from '../../base/errors.ts';
import { decodeExactly } from '../../sql/json.ts';
import { Members, readMembers, readObject } from '../../sql/json-members.ts';
import { Float, setKey, type Value } from '../../sql/values.ts';
import { bufferOf, type Format, type FormatSetup, type FormatType } from '../format.ts';
import { describe, StreamFailure, type StreamValue, type StreamValueObject } from '../values/values.ts';
import { jsonText } from './json-text.ts';

/**
 * From here on, floats do not distinguish adjacent integers: the text may contain another integer than JSON.parse
 * returns.
 */
const NOT_EXACT = 2 ** 53;
/** Nesting up to which numbers are examined; deeper levels are never printed or compared. */
const MAX_LEVELS = 1000;

/**
 * Number of payloads without a needed member, in excess of those with all members, after which the next payloads are
 * decoded as a whole.
 */
const MAX_MISSES = 32;
const SKIPPED = 1000;

/** Payloads that are JSON objects, or arrays of objects: one row for each object. */
export const JSON_FORMAT: FormatType = {
  name: 'json',
  about: 'A JSON object, or an array of objects with one row for each.',
  make: (setup) => ({
    name: 'json',
    decode: decoder(setup),
    encode: (value) => Buffer.from(jsonText(value)),
    text: jsonText
  })
};

function decoder({ columns, needed, integers = false }: FormatSetup): Format['decode'] {
  const whole = columns !== undefined ? parseColumns : integers ? withIntegers : parseJson;
  const decodeWhole = (payload: Uint8Array) => rowsOf(whole(textOf(payload)));
  if (whole === withIntegers) return decodeWhole;
  if (needed === undefined) return alike(decodeWhole);
  const members = Members.of(needed);
  return members === undefined ? decodeWhole : pruned(members, decodeWhole);
}

type Rows = StreamValueObject | readonly StreamValueObject[];

/** Reads objects that have the same members in the same order as the last object that was decoded as a whole. */
function alike(decodeWhole: (payload: Uint8Array) => Rows): Format['decode'] {
  let members: Members | undefined;
  let misses = 0;
  let skips = 0;
  return (payload) => {
    if (skips > 0) {
      skips--;
      return decodeWhole(payload);
    }
    const found = members === undefined ? undefined : readObject(bufferOf(payload), 0, payload.length, members);
    if (found !== undefined) {
      if (misses > 0) misses--;
      return withoutFloats(found as Record<string, unknown>);
    }
    const rows = decodeWhole(payload);
    members = isFlat(rows) ? Members.of(Object.keys(rows)) : undefined;
    if (++misses > MAX_MISSES) {
      misses = 0;
      skips = SKIPPED;
    }
    return rows;
  };
}

/** Convert the numbers to floats. */
function withoutFloats(found: Record<string, unknown>): StreamValueObject {
  for (const name in found) {
    const value = found[name];
    if (value instanceof Float) found[name] = value.value;
  }
  return found as StreamValueObject;
}

function isFlat(rows: Rows): boolean {
  return !Array.isArray(rows) && Object.values(rows).every((value) => typeof value !== 'object' || value === null);
}

/** Reads only the needed members. Payloads of another form, or without one of the members, are decoded as a whole. */
function pruned(members: Members, decodeWhole: (payload: Uint8Array) => Rows): Format['decode'] {
  const { names } = members;
  let misses = 0;
  let skips = 0;
  return (payload) => {
    if (skips > 0) {
      skips--;
      return decodeWhole(payload);
    }
    const found = readMembers(bufferOf(payload), 0, payload.length, members) as Record<string, unknown> | undefined;
    if (found !== undefined && completed(found, names)) {
      if (misses > 0) misses--;
      return found as StreamValueObject;
    }
    if (++misses > MAX_MISSES) {
      misses = 0;
      skips = SKIPPED;
    }
    return decodeWhole(payload);
  };
}

/**
 * Convert the numbers to floats.
 * @returns whether all members are present; a missing one may be written in another case
 */
function completed(found: Record<string, unknown>, names: readonly string[]): boolean {
  for (const name of names) {
    const value = found[name];
    if (value === undefined) return false;
    if (value instanceof Float) found[name] = value.value;
  }
  return true;
}

function textOf(payload: Uint8Array): string {
  return bufferOf(payload).toString();
}

/** @throws StreamFailure */
function parse(text: string, fault = 'the payload is not JSON'): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new StreamFailure(`${fault}: ${(error as Error).message}`, error);
  }
}

/**
 * Decode JSON. Integers from 2^53 on are bigints, other numbers are floats.
 * @param fault beginning of the message for a text that is not JSON
 * @throws StreamFailure, also for a number that exceeds the range of floats
 */
export function parseJson(text: string, fault?: string): unknown {
  const value = parse(text, fault);
  return isExact(value) ? value : normalized(exact(text, refuse), floatOf);
}

/**
 * As `parseJson`, but a number that exceeds the range of floats is infinite, and fails when a column reads it.
 * @throws StreamFailure
 */
export function parseColumns(text: string): unknown {
  const value = parse(text);
  return isExact(value) ? value : normalized(exact(text, Number), floatOf);
}

/** As `parseJson`, but numbers without a fraction or an exponent are bigints. @throws StreamFailure */
function withIntegers(text: string): unknown {
  return normalized(exact(text, refuse), integerOf);
}

/**
 * Check whether all numbers of a result of JSON.parse are exact. The walk costs 1 to 30 % of JSON.parse: only lists and
 * objects cost a call, and lists of numbers have a separate loop.
 */
function isExact(value: unknown): boolean {
  return typeof value === 'object' && value !== null
    ? isExactWithin(value, 0)
    : typeof value !== 'number' || isSmall(value);
}

function isExactWithin(value: object, level: number): boolean {
  if (level > MAX_LEVELS) return true;
  if (Array.isArray(value)) return isExactList(value, level);
  for (const key in value) {
    const each = (value as Record<string, unknown>)[key];
    if (typeof each === 'number') {
      if (!isSmall(each)) return false;
    } else if (typeof each === 'object' && each !== null && !isExactWithin(each, level + 1)) return false;
  }
  return true;
}

function isExactList(list: readonly unknown[], level: number): boolean {
  if (typeof list[0] === 'number' && areSmall(list as readonly number[])) return true;
  for (let at = 0; at < list.length; at++) {
    const each = list[at];
    if (typeof each === 'number') {
      if (!isSmall(each)) return false;
    } else if (typeof each === 'object' && each !== null && !isExactWithin(each, level + 1)) return false;
  }
  return true;
}

/**
 * A separate function, so that the engine compiles it for lists of floats, which it stores without an object for each.
 */
function areSmall(list: readonly number[]): boolean {
  for (let at = 0; at < list.length; at++) if (typeof list[at] !== 'number' || !isSmall(list[at])) return false;
  return true;
}

function isSmall(value: number): boolean {
  return value < NOT_EXACT && value > -NOT_EXACT;
}

/** @throws StreamFailure */
function exact(text: string, infinite: (number: string) => StreamValue): unknown {
  try {
    return decodeExactly(text, infinite as (number: string) => Value);
  } catch (error) {
    if (error instanceof StreamFailure) throw error;
    return parse(text); // text that is not JSON yields the error of JSON.parse; levels beyond 1000 are not exact
  }
}

/** @throws StreamFailure */
function refuse(number: string): never {
  throw new StreamFailure(`the number ${truncated(number, 40)} is too large: the greatest float is about 1.8e308`);
}

function floatOf(value: unknown): unknown {
  return value instanceof Float ? value.value : value;
}

/** The decoder distinguishes 1 from 1.0, which is a Float. */
function integerOf(value: unknown): unknown {
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : floatOf(value);
}

/** Convert the numbers of a tree in place; the tree must not be shared. */
function normalized(value: unknown, change: (scalar: unknown) => unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Float) return change(value);
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) value[i] = normalized(value[i], change);
  else
    for (const [key, each] of Object.entries(value))
      setKey(value as Record<string, unknown>, key, normalized(each, change));
  return value;
}

function rowsOf(value: unknown): Rows {
  if (isObject(value)) return value;
  if (Array.isArray(value) && value.every(isObject)) return value;
  const found = Array.isArray(value) ? value.find((each) => !isObject(each)) : value;
  throw new StreamFailure(
    `the payload is not a JSON object or array of objects: it has ${describe(found as StreamValue)}`
  );
}

function isObject(value: unknown): value is StreamValueObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
