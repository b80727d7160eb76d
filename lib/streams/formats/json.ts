import { decodeJson } from '../../sql/json.ts';
import { Members, readMembers, readObject } from '../../sql/json-members.ts';
import { Float, setKey } from '../../sql/values.ts';
import type { ColumnType } from '../types.ts';
import { describe, StreamFailure, type Value, type ValueObject } from '../values.ts';
import { bufferOf, type Format, type FormatSetup, type FormatType } from './format.ts';
import { jsonText } from './json-text.ts';

/** A number that JSON.parse may not keep exactly. */
const LONG_NUMBER = /\d{16}/;
/** So many payloads without a needed member, more than with all, and the next ones are decoded as a whole. */
const MOST_MISSES = 32;
const SKIPPED = 1000;

const LEAST_INTEGER = -(2n ** 63n);
const GREATEST_INTEGER = 2n ** 63n - 1n;

/** Payloads that are JSON objects, or arrays of objects: one row for each. */
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
  const isExact = columns?.some(({ type }) => hasIntegers(type)) ?? false;
  const whole = columns === undefined && integers ? withIntegers : isExact ? parseExact : parse;
  const decodeWhole = (payload: Uint8Array) => rowsOf(whole(textOf(payload)));
  if (whole === withIntegers) return decodeWhole;
  if (needed === undefined) return alike(decodeWhole);
  const members = Members.of(needed);
  return members === undefined ? decodeWhole : pruned(members, decodeWhole);
}

type Rows = ValueObject | readonly ValueObject[];

/** Reads objects that have the same members, in the same order, as the last one that was decoded as a whole. */
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
    if (++misses > MOST_MISSES) {
      misses = 0;
      skips = SKIPPED;
    }
    return rows;
  };
}

/** Make floats of the numbers. */
function withoutFloats(found: Record<string, unknown>): ValueObject {
  for (const name in found) {
    const value = found[name];
    if (value instanceof Float) found[name] = value.value;
  }
  return found as ValueObject;
}

function isFlat(rows: Rows): boolean {
  return !Array.isArray(rows) && Object.values(rows).every((value) => typeof value !== 'object' || value === null);
}

/** Reads only the members that are needed. What has another form, or lacks one of them, is decoded as a whole. */
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
      return found as ValueObject;
    }
    if (++misses > MOST_MISSES) {
      misses = 0;
      skips = SKIPPED;
    }
    return decodeWhole(payload);
  };
}

/** Make floats of the numbers. @returns whether all members are there; a missing one may be written with other letters */
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new StreamFailure(`the payload is no JSON: ${(error as Error).message}`);
  }
}

/** Decode JSON. Numbers with many digits are exact: these are bigints. @throws StreamFailure */
export function parseExact(text: string): unknown {
  return LONG_NUMBER.test(text) ? normalized(exact(text), floatOf) : parse(text);
}

function withIntegers(text: string): unknown {
  return normalized(exact(text), integerOf);
}

function exact(text: string): unknown {
  // what it refuses has an error of its own if JSON.parse refuses it too
  return decodeJson(text) ?? parse(text);
}

function floatOf(value: unknown): unknown {
  return value instanceof Float ? value.value : value;
}

/** The decoder has told 1 from 1.0, which is a Float. */
function integerOf(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (typeof value !== 'bigint') return floatOf(value);
  return value < LEAST_INTEGER || value > GREATEST_INTEGER ? Number(value) : value;
}

/** Change the numbers in a tree that nobody else has. */
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
  throw new StreamFailure(`the payload is no JSON object or array of objects: it has ${describe(found as Value)}`);
}

function isObject(value: unknown): value is ValueObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasIntegers(type: ColumnType): boolean {
  if (type.type === 'array') return hasIntegers(type.element);
  if (type.type === 'struct') return type.fields.some((field) => hasIntegers(field.type));
  return type.type === 'bigint';
}
