// `convert` is `cast` of the documented product; the columns of a schema are converted differently, in
// `formats/convert-column.ts`. Each converter returns undefined for what it cannot convert, and the caller throws.
// Integers have 64 bits. A row of the table says how null is handled and whether calls with constants may be
// evaluated once.

import { createHash } from 'node:crypto';
import * as zlib from 'node:zlib';
import { readTime } from '../values/time-pattern.ts';
import { describe, integer, isNumber, printed, StreamFailure, type StreamValue } from '../values/values.ts';
import { bytesOf, floatOf, indexOf, integerOf, textOf } from './arguments.ts';
import { MAX_CHARACTERS } from './bounds.ts';
import { PURE, type StreamFunctionEntry, streamFamily } from './family.ts';
import { roundTo } from './math.ts';

/** The target types of `cast`. */
export const CAST_TYPES = ['bigint', 'float', 'string', 'boolean', 'datetime', 'bytea'];

/**
 * Convert a value to a type.
 * @param offsetAt offset from UTC, in minutes, of times without a zone
 * @throws StreamFailure if the value cannot be converted, or if the type is unknown
 */
export function convert(value: StreamValue, type: StreamValue, offsetAt?: (timeMs: number) => number): StreamValue {
  const converter = typeof type === 'string' && Object.hasOwn(CONVERTERS, type) ? CONVERTERS[type] : undefined;
  if (converter === undefined) throw new StreamFailure(`unknown type ${describe(type)}; use ${CAST_TYPES.join(', ')}`);
  const converted = converter(value, offsetAt);
  if (converted === undefined) throw new StreamFailure(`cannot convert ${describe(value)} to ${type}`);
  return converted;
}

type Converter = (value: StreamValue, offsetAt: ((timeMs: number) => number) | undefined) => StreamValue;

const DECIMAL = /^[+-]?\d{1,40}$/;
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const BOOLEANS: Readonly<Record<string, boolean>> = {
  ...Object.fromEntries(['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true])),
  ...Object.fromEntries(['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false]))
};

/** Each converter returns undefined for values that cannot be converted. */
const CONVERTERS: Readonly<Record<string, Converter>> = {
  bigint(value) {
    if (typeof value === 'bigint') return within64(value);
    if (typeof value === 'boolean') return value ? 1n : 0n;
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : BigInt(value.getTime());
    if (typeof value === 'number') return Number.isFinite(value) ? within64(BigInt(Math.trunc(value))) : undefined;
    return typeof value === 'string' && DECIMAL.test(value) ? within64(BigInt(value.replace('+', ''))) : undefined;
  },
  float(value) {
    if (isNumber(value)) return Number(value);
    if (typeof value === 'boolean') return value ? 1 : 0;
    return typeof value === 'string' && value.length < 1000 && NUMBER.test(value) ? Number(value) : undefined;
  },
  string(value) {
    if (typeof value === 'object' && !(value instanceof Date) && !(value instanceof Uint8Array)) return undefined;
    return value instanceof Uint8Array ? textOf(value) : printed(value);
  },
  boolean(value) {
    if (typeof value === 'boolean') return value;
    if (isNumber(value)) return Number(value) !== 0;
    return typeof value === 'string' && Object.hasOwn(BOOLEANS, value) ? BOOLEANS[value] : undefined;
  },
  datetime(value, offsetAt) {
    if (value instanceof Date) return value;
    const timeMs = isNumber(value) ? Math.trunc(Number(value)) : undefined;
    const time = new Date(
      timeMs ?? (typeof value === 'string' ? readTime(value, offsetAt)?.timeMs : undefined) ?? Number.NaN
    );
    return Number.isNaN(time.getTime()) ? undefined : time;
  },
  bytea(value) {
    if (value instanceof Uint8Array) return value;
    return typeof value === 'string' ? fromBase64(value) : undefined;
  }
};

function within64(value: bigint): bigint | undefined {
  return integer(value) === value ? value : undefined;
}

function fromBase64(text: string): Uint8Array | undefined {
  return text.length % 4 === 0 && BASE64.test(text) ? Buffer.from(text, 'base64') : undefined;
}

/** The code of a character, as in the original. */
function characterCode(value: StreamValue): bigint {
  if (isNumber(value)) {
    const code = Math.trunc(Number(value));
    if (code >= 0 && code <= 0x10ffff) return BigInt(code);
    throw new StreamFailure(`${describe(value)} is not the code of a character`);
  }
  if (typeof value !== 'string')
    throw new StreamFailure(
      `Only bigint, float and string type can be convert to char type, but got ${describe(value)}.`
    );
  const code = value.codePointAt(0);
  if (code === undefined) throw new StreamFailure('chr: the string is empty');
  if (value.length > String.fromCodePoint(code).length)
    throw new StreamFailure(`Parameter length cannot larger than 1, but got ${describe(value)}.`);
  return BigInt(code);
}

const LARGEST_HEX = /^[+-]?[0-9a-fA-F]{1,17}$/;

function fromHex(value: StreamValue): bigint {
  if (typeof value !== 'string')
    throw new StreamFailure(`invalid input type: ${describe(value)} please input hex string`);
  const digits = value.replace(/^0x/, '');
  const size = LARGEST_HEX.test(digits) ? BigInt(`0x0${digits.replace(/^[+-]/, '')}`) : undefined;
  const number = size === undefined ? undefined : within64(digits.startsWith('-') ? -size : size);
  if (number === undefined) throw new StreamFailure(`invalid hexadecimal value: ${digits.slice(0, 40)}`);
  return number;
}

function checkBase64([, encoding]: readonly (StreamValue | undefined)[]): string | undefined {
  return encoding === undefined || encoding === 'base64'
    ? undefined
    : 'Only base64 is supported for the 2nd parameter.';
}

function onlyBase64(encoding: StreamValue): void {
  if (typeof encoding !== 'string' || encoding.toLowerCase() !== 'base64')
    throw new StreamFailure(`Only base64 encoding is supported, but got ${describe(encoding)}.`);
}

function encode(value: StreamValue, encoding: StreamValue): StreamValue {
  onlyBase64(encoding);
  if (typeof value !== 'string' && !(value instanceof Uint8Array))
    throw new StreamFailure(`Only string type can be encoded, but got ${describe(value)}.`);
  return Buffer.from(bytesOf(value)).toString('base64');
}

function decode(value: StreamValue, encoding: StreamValue): StreamValue {
  onlyBase64(encoding);
  if (typeof value !== 'string')
    throw new StreamFailure(`Only string type can be decoded, but got ${describe(value)}.`);
  const bytes = fromBase64(value);
  if (bytes === undefined) throw new StreamFailure(`fail to decode base64 string: ${describe(value)}`);
  return bytes;
}

type Transform = (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;

/** Functions of later versions of Node; version 20 has no zstd. */
const { zstdCompressSync, zstdDecompressSync } = zlib as {
  zstdCompressSync?: Transform;
  zstdDecompressSync?: Transform;
};

const METHODS: Readonly<Record<string, { readonly compress?: Transform; readonly decompress?: Transform }>> = {
  zlib: { compress: zlib.deflateSync, decompress: zlib.inflateSync },
  gzip: { compress: zlib.gzipSync, decompress: zlib.gunzipSync },
  flate: { compress: zlib.deflateRawSync, decompress: zlib.inflateRawSync },
  zstd: {
    ...(zstdCompressSync === undefined ? {} : { compress: zstdCompressSync }),
    ...(zstdDecompressSync === undefined ? {} : { decompress: zstdDecompressSync })
  }
};

function compression(name: 'compress' | 'decompress', about: string): StreamFunctionEntry {
  return {
    name,
    params: ['any', 'string'],
    about,
    choices: { 1: Object.keys(METHODS) },
    ifNull: null,
    isPure: true,
    run: (value: StreamValue, method: StreamValue) => {
      if (typeof value !== 'string' && !(value instanceof Uint8Array))
        throw new StreamFailure(`require string or bytea parameter, but got ${describe(value)}`);
      const known = typeof method === 'string' && Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
      if (known === undefined)
        throw new StreamFailure(`${name}: unknown method ${describe(method)}; use ${Object.keys(METHODS).join(', ')}`);
      const run = known[name];
      if (run === undefined) throw new StreamFailure(`${name}: this version of Node has no ${method}; use gzip`);
      return transformed(name, bytesOf(value), run);
    }
  };
}

function transformed(name: string, bytes: Uint8Array, run: Transform): Uint8Array {
  try {
    return run(bytes, { maxOutputLength: MAX_CHARACTERS });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new StreamFailure(`${name}: the result has more than ${MAX_CHARACTERS} bytes`, cause);
    throw new StreamFailure(`${name}: ${(cause as Error).message}`, cause);
  }
}

export const CONVERSION_FUNCTIONS = streamFamily('conversion', [
  {
    name: 'cast',
    params: ['any', 'string'],
    about: 'A value as another type: bigint, float, string, boolean, datetime or bytea.',
    check: ([, type]) =>
      typeof type !== 'string' || CAST_TYPES.includes(type)
        ? undefined
        : `Expect one of following value for the 2nd parameter: ${CAST_TYPES.join(', ')}.`,
    ifNull: null,
    make: ({ offsetMinutes }) => {
      const offsetAt = (timeMs: number) => offsetMinutes(timeMs);
      return (value: StreamValue, type: StreamValue) => convert(value, type, offsetAt);
    }
  },
  { name: 'chr', params: ['any'], about: 'The number of a character.', ...PURE, run: characterCode },
  {
    name: 'encode',
    params: ['any', 'string'],
    about: 'Base64 of a string or of bytes: encode(value, "base64").',
    check: checkBase64,
    ...PURE,
    run: encode
  },
  {
    name: 'decode',
    params: ['string', 'string'],
    about: 'The bytes that a base64 string encodes: decode(text, "base64").',
    check: checkBase64,
    ...PURE,
    run: decode
  },
  {
    name: 'trunc',
    params: ['number', 'bigint'],
    about: 'A number rounded to decimals, from 0 to 34; halves away from zero.',
    ...PURE,
    run: (x: StreamValue, decimals: StreamValue) => roundTo(floatOf(x), Math.max(0, Math.min(indexOf(decimals), 34)))
  },
  {
    name: 'hex2dec',
    params: ['string'],
    about: 'The integer of hexadecimal digits, which may begin with 0x.',
    ...PURE,
    run: fromHex
  },
  {
    name: 'dec2hex',
    params: ['bigint'],
    about: 'An integer as hexadecimal digits after 0x.',
    ...PURE,
    run: (value: StreamValue) => `0x${integerOf(value).toString(16)}`
  },
  compression('compress', 'A string or bytes, compressed with zlib, gzip, flate or zstd.'),
  compression('decompress', 'Bytes, decompressed with zlib, gzip, flate or zstd.')
]);

function hash(name: string): StreamFunctionEntry {
  return {
    name,
    params: ['string'],
    about: `${name.toUpperCase()} hash, as hexadecimal digits in lower case.`,
    ifNull: null,
    isPure: true,
    run: (value: StreamValue) => createHash(name).update(bytesOf(value)).digest('hex')
  };
}

export const HASH_FUNCTIONS = streamFamily('hashes', [
  hash('md5'),
  hash('sha1'),
  hash('sha224'),
  hash('sha256'),
  hash('sha384'),
  hash('sha512'),
  {
    name: 'crc32',
    params: ['string'],
    about: 'CRC-32 checksum (IEEE), as hexadecimal digits in lower case.',
    ...PURE,
    run: (value: StreamValue) => zlib.crc32(bytesOf(value)).toString(16)
  }
]);
