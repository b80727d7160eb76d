// A function gets bytes as a string if they are valid UTF-8 and as a `Uint8Array` otherwise, and returns them in the
// same way (`textOf`). The results of decompression are limited, because a short input can become any length. A row
// says what arguments a function takes, which are checked before it runs.

import { createHash, randomUUID } from 'node:crypto';
import { deflateRawSync, deflateSync, gunzipSync, gzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import { boundedInteger, finite, MAX_BITS, MAX_STRING } from '../arithmetic.ts';
import { decodeJson, encodeJson } from '../json.ts';
import { SqlFailure } from '../sql-error.ts';
import { bytesOf, textOf, type Value } from '../values.ts';
import { family, type SqlFunctionEntry } from './function.ts';

type Bytes = string | Uint8Array;

const hash = (name: string, algorithm: string): SqlFunctionEntry => ({
  name,
  params: ['bytes'],
  returns: 'string',
  about: `${name.toUpperCase()} hash, as hexadecimal digits in lower case.`,
  isTotal: true,
  run: (data: Bytes) => createHash(algorithm).update(data).digest('hex')
});

/** Of a length divisible by 4; a group for every 4 digits would need a stack proportional to the text. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function decodeBase64(text: string): Value {
  const digits = text.replace(/[ \t\r\n]/g, '');
  if (digits.length % 4 !== 0 || !BASE64.test(digits))
    throw new SqlFailure('base64_decode: the text is not valid base64');
  return textOf(Buffer.from(digits, 'base64'));
}

function decodeHex(text: string): Value {
  if (!/^[0-9a-fA-F]*$/.test(text)) throw new SqlFailure('hexstr2bin: the text does not consist of hexadecimal digits');
  return textOf(Buffer.from(text.length % 2 === 1 ? `0${text}` : text, 'hex'));
}

const hexOf = (data: Bytes) => Buffer.from(bytesOf(data)).toString('hex').toUpperCase();

const compression = (name: string, about: string, run: (data: Uint8Array) => Uint8Array): SqlFunctionEntry => ({
  name,
  params: ['bytes'],
  returns: 'bytes',
  about,
  run: (data: Bytes) => {
    try {
      return textOf(run(bytesOf(data)));
    } catch (error) {
      throw new SqlFailure(`${name}: ${(error as Error).message}`);
    }
  }
});

const LIMIT = { maxOutputLength: MAX_STRING };

/** @param start the first bit, from 1 */
function bits(
  data: Bytes,
  start: number | bigint,
  length: number | bigint,
  type = 'integer',
  signedness = 'unsigned',
  order = 'big'
): Value {
  const bytes = bytesOf(data);
  const [first, count] = [Number(start) - 1, Math.min(Number(length), bytes.length * 8 - Number(start) + 1)];
  if (first < 0 || Number(length) < 0) throw new SqlFailure(`subbits: start ${start} or length ${length} is too small`);
  if (count <= 0) return undefined;
  if (type === 'integer' && count > MAX_BITS) throw new SqlFailure(`subbits: an integer has at most ${MAX_BITS} bits`);
  const whole = BigInt(`0x0${Buffer.from(bytes.subarray(first >> 3, (first + count + 7) >> 3)).toString('hex')}`);
  const value = (whole >> BigInt((8 - ((first + count) % 8)) % 8)) & ((1n << BigInt(count)) - 1n);
  const paddedBits = Math.ceil(count / 8) * 8;
  const ordered = Buffer.from(value.toString(16).padStart(paddedBits / 4, '0'), 'hex');
  if (order === 'little') ordered.reverse();
  if (type === 'bits') return textOf(ordered);
  if (type === 'float') return floatIn(ordered, count);
  const integer = BigInt(`0x${ordered.toString('hex')}`);
  return boundedInteger(signedness === 'signed' ? BigInt.asIntN(count, integer) : integer);
}

function floatIn(bytes: Uint8Array, count: number): Value {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (count === 32) return finite('subbits', view.getFloat32(0));
  if (count === 64) return finite('subbits', view.getFloat64(0));
  throw new SqlFailure(`subbits: a float has 32 or 64 bits, not ${count}`);
}

export const ENCODING_FUNCTIONS = family('hashes and encodings', [
  hash('md5', 'md5'),
  hash('sha', 'sha1'),
  hash('sha256', 'sha256'),
  {
    name: 'base64_encode',
    params: ['bytes'],
    returns: 'string',
    about: 'Base64 of a string or of bytes.',
    isTotal: true,
    run: (data: Bytes) => Buffer.from(bytesOf(data)).toString('base64')
  },
  {
    name: 'base64_decode',
    params: ['string'],
    returns: 'bytes',
    about: 'The text or bytes that a base64 string encodes.',
    run: decodeBase64
  },
  { name: 'json_encode', params: ['any'], returns: 'string', about: 'A value as JSON.', run: encodeJson },
  {
    name: 'json_decode',
    params: ['string'],
    returns: 'any',
    weighs: 'sum',
    about: 'The value that a JSON text encodes.',
    run: (text: string) => {
      const value = decodeJson(text);
      if (value === undefined) throw new SqlFailure('json_decode: the text is not valid JSON');
      return value;
    }
  },
  {
    name: 'bin2hexstr',
    params: ['bytes'],
    returns: 'string',
    about: 'The bytes as hexadecimal digits.',
    isTotal: true,
    run: hexOf
  },
  {
    name: 'hexstr2bin',
    params: ['string'],
    returns: 'bytes',
    about: 'The bytes that hexadecimal digits encode; an odd number of digits is preceded by 0.',
    run: decodeHex
  },
  {
    name: 'bitsize',
    params: ['bytes'],
    returns: 'integer',
    about: 'Number of bits.',
    isTotal: true,
    run: (data: Bytes) => bytesOf(data).length * 8
  },
  {
    name: 'subbits',
    params: ['bytes', 'integer', 'integer?', 'string?', 'string?', 'string?'],
    returns: 'any',
    about:
      'subbits(bytes, length) or subbits(bytes, start, length, type, sign, order): bits as integer (default), float or bits; start is from 1.',
    choices: { 3: ['integer', 'float', 'bits'], 4: ['unsigned', 'signed'], 5: ['big', 'little'] },
    run: (data: Bytes, first: number, second: number | undefined, type?: string, sign?: string, order?: string) =>
      second === undefined ? bits(data, 1, first) : bits(data, first, second, type, sign, order)
  },
  compression('gzip', 'Compressed with gzip.', (data) => gzipSync(data)),
  compression('gunzip', 'Decompressed with gzip.', (data) => gunzipSync(data, LIMIT)),
  compression('zip', 'Compressed with raw deflate.', (data) => deflateRawSync(data)),
  compression('unzip', 'Decompressed with raw deflate.', (data) => inflateRawSync(data, LIMIT)),
  compression('zip_compress', 'Compressed with zlib.', (data) => deflateSync(data)),
  compression('zip_uncompress', 'Decompressed with zlib.', (data) => inflateSync(data, LIMIT)),
  { name: 'uuid_v4', params: [], returns: 'string', about: 'A random UUID.', isTotal: true, run: () => randomUUID() },
  {
    name: 'uuid_v4_no_hyphen',
    params: [],
    returns: 'string',
    about: 'A random UUID without hyphens.',
    isTotal: true,
    run: () => randomUUID().replaceAll('-', '')
  }
]);

/** Maximum number of entries of the table that rules share. */
const MAX_ENTRIES = 10_000;

export const STORE_FUNCTIONS = family('shared values', [
  {
    name: 'kv_store_put',
    params: ['string', 'any'],
    returns: 'any',
    about: 'Store a value under a key, in memory, for all rules; returns the value.',
    make: (tools) => (key: string, value: Value) => {
      if (tools.table.size >= MAX_ENTRIES && !tools.table.has(key))
        throw new SqlFailure(`kv_store_put: the table already has ${MAX_ENTRIES} keys; delete some with kv_store_del`);
      tools.table.set(key, value);
      return value;
    }
  },
  {
    name: 'kv_store_get',
    params: ['string', 'any?'],
    returns: 'any',
    about: 'The value stored under a key, or else the second argument.',
    isTotal: true,
    make: (tools) => (key: string, fallback: Value) => tools.table.get(key) ?? fallback
  },
  {
    name: 'kv_store_del',
    params: ['string'],
    returns: 'any',
    about: 'Delete a key; returns the value that was stored.',
    isTotal: true,
    make: (tools) => (key: string) => {
      const value = tools.table.get(key);
      tools.table.delete(key);
      return value;
    }
  }
]);
