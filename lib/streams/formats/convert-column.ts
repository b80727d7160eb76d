// A reader is made once for a column and called for each row. STRICT_VALIDATION decides about failures, not about
// conversions: with it, a value that cannot be converted is an error of the row, without it the column is null. Only
// an infinite number is always an error. Texts of errors are those of the documented product.

import type { Column, ColumnType } from '../types.ts';
import {
  describe,
  integer,
  printed,
  StreamFailure,
  type StreamValue,
  type StreamValueObject
} from '../values/values.ts';
import { parseColumns } from './json.ts';

/**
 * Parses a time by a pattern of the stream language.
 * @returns Unix time in milliseconds; undefined if the text does not match
 */
export type ParseTime = (text: string, pattern: string) => number | undefined;

/** Settings for reading columns. */
interface ColumnSetup {
  readonly isStrict: boolean;
  readonly timestampFormat?: string | undefined;
  readonly parseTime: ParseTime;
}

/** Converts the value of a column. @param place name of the column, for messages @throws StreamFailure */
export type ColumnReader = (value: StreamValue, place: string) => StreamValue;

/** Converts a value. @returns undefined if it cannot be converted */
type Conversion = (value: StreamValue) => StreamValue;

type SimpleType = Exclude<ColumnType['type'], 'array' | 'struct'>;

/** @param structOf makes the reader of a struct with the given fields */
export function columnReader(
  type: ColumnType,
  setup: ColumnSetup,
  structOf: (fields: readonly Column[]) => (values: StreamValueObject) => StreamValueObject
): ColumnReader {
  switch (type.type) {
    case 'array': {
      const element = columnReader(type.element, setup, structOf);
      return nestedReader('array', setup, (value) => {
        const list = jsonOf(value);
        return Array.isArray(list) ? list.map((each: StreamValue, i) => element(each, `[${i}]`)) : undefined;
      });
    }
    case 'struct': {
      const read = structOf(type.fields);
      return nestedReader('struct', setup, (value) => {
        const object = jsonOf(value);
        return isObject(object) ? read(object) : undefined;
      });
    }
    default:
      return simpleReader(type.type, setup);
  }
}

/** Arrays and structs may be null, and may be JSON in a string. */
function nestedReader(name: string, { isStrict }: ColumnSetup, convert: Conversion): ColumnReader {
  return (value, place) => {
    if (value === null || value === undefined) return null;
    let converted: StreamValue;
    try {
      converted = convert(value);
    } catch (error) {
      throw new StreamFailure(`fail to parse field ${place}: ${(error as Error).message}`);
    }
    if (converted !== undefined) return converted;
    if (isStrict) throw unexpected(place, name, value);
    return null;
  };
}

function simpleReader(type: SimpleType, setup: ColumnSetup): ColumnReader {
  const convert = type === 'datetime' ? datetimeConversion(setup) : CONVERSIONS[type];
  if (!setup.isStrict)
    return type === 'string'
      ? (value, place) => (typeof value === 'string' ? value : textOf(value, place))
      : (value, place) => (value === null ? null : (convert(value) ?? noValue(value, place)));
  const message = MESSAGES[type];
  return (value, place) => {
    const converted = convert(value);
    if (converted === undefined) throw message(place, value);
    return converted;
  };
}

const CONVERSIONS: Readonly<Record<Exclude<SimpleType, 'datetime'>, Conversion>> = {
  bigint: bigintOf,
  float: floatOf,
  string: (value) => (typeof value === 'string' ? value : undefined),
  boolean: booleanOf,
  bytea: bytesOf
};

const MESSAGES: Readonly<Record<SimpleType, (place: string, value: StreamValue) => StreamFailure>> = {
  bigint: (place, value) => unexpected(place, 'bigint', value),
  float: (place, value) => unexpected(place, 'float', value),
  string: (place, value) => unexpected(place, 'string', value),
  boolean: (place, value) => unexpected(place, 'boolean', value),
  datetime: (place, value) =>
    new StreamFailure(`invalid data type for ${place}, cannot convert to datetime: ${describe(value)}`),
  bytea: (place, value) =>
    typeof value === 'string'
      ? new StreamFailure(`${unexpected(place, 'bytea', value).message} which cannot base64 decode`)
      : unexpected(place, 'bytea', value)
};

function unexpected(place: string, type: string, value: StreamValue): StreamFailure {
  return new StreamFailure(`invalid data type for ${place}, expect ${type} but found ${describe(value)}`);
}

/** Integers have 64 bits; larger numbers are not integers. */
function bigintOf(value: StreamValue): bigint | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? within(BigInt(Math.trunc(value))) : undefined;
    case 'bigint':
      return within(value);
    case 'string':
      return /^[+-]?\d{1,30}$/.test(value) ? within(BigInt(value.replace(/^\+/, ''))) : undefined;
    default:
      return undefined;
  }
}

function within(value: bigint): bigint | undefined {
  return integer(value) === value ? value : undefined;
}

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

function floatOf(value: StreamValue): number | undefined {
  switch (typeof value) {
    case 'number':
      return isInfinite(value) ? undefined : value;
    case 'bigint':
      return Number(value);
    case 'string':
      return DECIMAL.test(value) ? Number(value) : undefined;
    default:
      return undefined;
  }
}

const BOOLEANS = new Map<StreamValue, boolean>([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const)
]);

function booleanOf(value: StreamValue): boolean | undefined {
  return typeof value === 'boolean' ? value : BOOLEANS.get(value);
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function bytesOf(value: StreamValue): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  return typeof value === 'string' && BASE64.test(value) ? Buffer.from(value, 'base64') : undefined;
}

/**
 * Without STRICT_VALIDATION, numbers and booleans in a STRING column are printed.
 * @throws StreamFailure for an infinite number
 */
function textOf(value: StreamValue, place: string): string | null {
  if (isInfinite(value)) return noValue(value, place);
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean' ? printed(value) : null;
}

/**
 * The replacement, without STRICT_VALIDATION, for a column value that cannot be converted.
 * @throws StreamFailure for an infinite number
 */
function noValue(value: StreamValue, place: string): null {
  if (isInfinite(value))
    throw new StreamFailure(`the number in ${place} is too large: the greatest float is about 1.8e308`);
  return null;
}

function isInfinite(value: StreamValue): boolean {
  return value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY;
}

function datetimeConversion({ timestampFormat, parseTime }: ColumnSetup): Conversion {
  return (value) => {
    const time = timeOf(value, timestampFormat, parseTime);
    return time === undefined ? undefined : value instanceof Date ? value : new Date(time);
  };
}

const ISO = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i;
/** The latest time that a Date can represent. */
const LATEST = 8.64e15;

/**
 * The Unix time in milliseconds of a number, a datetime or a string.
 * @param format TIMESTAMP_FORMAT; undefined: ISO 8601, in UTC if it has no zone
 * @returns undefined if the value is not a time
 */
export function timeOf(value: StreamValue, format: string | undefined, parseTime: ParseTime): number | undefined {
  if (typeof value === 'string') return format === undefined ? isoTimeOf(value) : parseTime(value, format);
  const time = value instanceof Date ? value.getTime() : typeof value === 'bigint' ? Number(value) : value;
  return typeof time === 'number' && Math.abs(time) <= LATEST ? Math.trunc(time) : undefined;
}

function isoTimeOf(text: string): number | undefined {
  if (!ISO.test(text)) return undefined;
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/i.test(text) && text.length > 10;
  const time = Date.parse(hasZone || text.length === 10 ? text : `${text}Z`);
  return Number.isNaN(time) ? undefined : time;
}

/**
 * The value that a string encodes as JSON; undefined if the string is not valid JSON. Other values are returned as they
 * are.
 */
function jsonOf(value: StreamValue): unknown {
  if (typeof value !== 'string') return value;
  try {
    return parseColumns(value);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is StreamValueObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Date) &&
    !(value instanceof Uint8Array)
  );
}
