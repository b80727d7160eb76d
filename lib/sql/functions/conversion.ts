import { finite } from '../arithmetic.ts';
import { parseNumber } from '../compare.ts';
import { fixed, stringOf } from '../json.ts';
import { SqlFailure } from '../sql-error.ts';
import { describe, Float, floatOf, integerFrom, isObject, type Kind, kindOf, type Value } from '../values.ts';
import { family, type SqlFunctionEntry } from './function.ts';

/** @throws SqlFailure */
function cannot(name: string, value: Value): SqlFailure {
  return new SqlFailure(`${name} cannot convert ${describe(value)}`);
}

/** Floating point numbers are rounded down. */
function toInteger(value: Value): Value {
  if (typeof value === 'boolean') return value ? 1 : 0;
  const number = typeof value === 'string' ? parseNumber(value) : value;
  switch (kindOf(number)) {
    case 'integer':
      return number;
    case 'float':
      return integerFrom(Math.floor(Number(number)));
  }
  throw cannot('int', value);
}

function toFloat(value: Value): Value {
  const number = typeof value === 'string' ? parseNumber(value) : value;
  const kind = kindOf(number);
  if (kind !== 'integer' && kind !== 'float') throw cannot('float', value);
  const converted = Number(number);
  if (!Number.isFinite(converted)) throw cannot('float', value);
  return floatOf(converted);
}

function toBoolean(value: Value): Value {
  if (typeof value === 'boolean') return value;
  if (value === 'true') return true;
  if (value === 'false') return false;
  const number = typeof value === 'number' || value instanceof Float ? Number(value) : undefined;
  if (number === 1 || number === 0) return number === 1;
  throw cannot('bool', value);
}

function toObject(value: Value): Value {
  if (!isObject(value)) throw cannot('map', value);
  return value;
}

function utf8(value: Value): Value {
  if (value instanceof Uint8Array) throw cannot('str_utf8', value);
  return stringOf(value);
}

export const CONVERSION_FUNCTIONS = family('conversion', [
  { name: 'str', params: ['any'], returns: 'string', about: 'A value as text.', run: stringOf },
  { name: 'str_utf8', params: ['any'], returns: 'string', about: 'A value as text in UTF-8.', run: utf8 },
  {
    name: 'int',
    params: ['any'],
    returns: 'integer',
    about: 'An integer; fractions are rounded down.',
    run: toInteger
  },
  { name: 'float', params: ['any'], returns: 'number', about: 'A floating point number.', run: toFloat },
  {
    name: 'bool',
    params: ['any'],
    returns: 'boolean',
    about: 'A boolean, from true, 1 and their text.',
    run: toBoolean
  },
  { name: 'map', params: ['json'], returns: 'object', weighs: 'part', about: 'An object, from JSON.', run: toObject },
  {
    name: 'float2str',
    params: ['number', 'integer'],
    returns: 'string',
    about: 'A number as text with at most this many decimals.',
    run: (number: number, decimals: number) => {
      if (decimals < 0 || decimals > 100) throw new SqlFailure(`float2str: ${decimals} decimals are not from 0 to 100`);
      const text = fixed(Number(finite('float2str', Number(number))), decimals);
      const short = text.includes('.') ? text.replace(/0+$/, '') : text;
      return short.endsWith('.') ? `${short}0` : short;
    }
  }
]);

function test(name: string, about: string, kinds: readonly Kind[], isTrue = true): SqlFunctionEntry {
  return {
    name,
    params: ['any'],
    returns: 'boolean',
    about,
    isTotal: true,
    run: (value: Value) => kinds.includes(kindOf(value)) === isTrue
  };
}

/** @param nullIsAbsent whether JSON null counts as absent */
export function typeTests(nullIsAbsent: boolean) {
  const nothing: readonly Kind[] = nullIsAbsent ? ['absent', 'null'] : ['absent'];
  return family('type tests', [
    test('is_null', 'Whether a value is absent.', nothing),
    test('is_not_null', 'Whether a value is present.', nothing, false),
    test('is_str', 'Whether a value is a string.', ['string', 'bytes']),
    test('is_bool', 'Whether a value is a boolean.', ['boolean']),
    test('is_int', 'Whether a value is an integer.', ['integer']),
    test('is_float', 'Whether a value is a floating point number.', ['float']),
    test('is_num', 'Whether a value is a number.', ['integer', 'float']),
    test('is_map', 'Whether a value is an object.', ['object']),
    test('is_array', 'Whether a value is a list.', ['list'])
  ]);
}
