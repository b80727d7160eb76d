import { bounded, finite, MAX_STRING } from '../arithmetic.ts';
import { encodeJson, fixed, stringOf } from '../json.ts';
import { SqlFailure } from '../sql-error.ts';
import { describe, isNumber, kindOf, type Value } from '../values.ts';
import { lengthOf, partOf } from './characters.ts';
import type { FunctionWork } from './function.ts';

/** `~`, width, precision, padding, modifier, and the type of the value. */
const CONTROL = /~(-?\d+)?(?:\.(\d*)(?:\.(.))?)?[tl]?([\s\S]|$)/gu;
const MAX_DECIMALS = 100;

/**
 * Format values by the controls of Erlang's format strings.
 * @param work counts the text of each value, and the characters that a width or a precision must find
 * @throws SqlFailure for too few or too many values, or one of the wrong type
 */
export function formatText(name: string, format: string, values: readonly Value[], work: FunctionWork): string {
  let used = 0;
  let length = format.length;
  const take = (control: string): Value => {
    if (used >= values.length)
      throw new SqlFailure(`${name}: the format has more controls than values, from ${JSON.stringify(control)} on`);
    return values[used++];
  };
  const text = format.replace(CONTROL, (control, width, precision, fill, what) => {
    if (what === '~') return '~';
    if (what === 'n') return '\n';
    if (what === 'i') {
      take(control);
      return '';
    }
    const convert = CONTROLS[what];
    if (convert === undefined) throw new SqlFailure(`${name}: unknown control ${JSON.stringify(control)}`);
    const limit = precision === undefined || precision === '' ? undefined : Number(precision);
    const piece = convert(take(control), limit, name, work);
    const padded = width === undefined ? piece : padTo(piece, Number(width), fill ?? ' ', work);
    length += padded.length;
    return bounded(length, () => padded);
  });
  if (used < values.length)
    throw new SqlFailure(`${name}: the format has ${used} controls, but there are ${values.length} values`);
  return text;
}

type Convert = (value: Value, precision: number | undefined, name: string, work: FunctionWork) => string;

const CONTROLS: Readonly<Record<string, Convert | undefined>> = {
  s: (value, precision, name, work) => {
    if (typeof value !== 'string' && typeof value !== 'boolean' && !(value instanceof Uint8Array))
      throw wrong(name, '~s needs a string', value);
    const text = work.readText(stringOf(value));
    return precision === undefined ? text : partOf(work.segmentText(text), 0, precision);
  },
  p: (value, _, __, work) => work.readText(termOf(value)),
  w: (value, _, __, work) => work.readText(termOf(value)),
  b: (value, precision, name, work) => work.readText(digits(value, precision, name)),
  B: (value, precision, name, work) => work.readText(digits(value, precision, name)).toUpperCase(),
  c: (value, _, name) => {
    const number = Number.isSafeInteger(value) ? (value as number) : -1;
    if (number < 0 || number > 0x10ffff || (number >= 0xd800 && number < 0xe000))
      throw wrong(name, '~c needs the number of a character', value);
    return String.fromCodePoint(number);
  },
  f: (value, precision = 6, name) => fixed(numberOf(value, name), decimals(precision, name)),
  e: (value, precision = 6, name) => numberOf(value, name).toExponential(decimals(precision, name) - 1),
  g: (value, precision = 6, name) => {
    const number = numberOf(value, name);
    const size = Math.abs(number);
    return size >= 0.1 && size < 10_000
      ? number.toFixed(decimals(precision, name))
      : number.toExponential(decimals(precision, name) - 1);
  }
};

/** Any value, with strings encoded as in JSON. */
function termOf(value: Value): string {
  return value === undefined ? 'undefined' : isNumber(value) ? stringOf(value) : encodeJson(value);
}

function digits(value: Value, base = 10, name: string): string {
  if (kindOf(value) !== 'integer') throw wrong(name, '~b needs an integer', value);
  if (base < 2 || base > 36) throw new SqlFailure(`${name}: the base ${base} of ~b is not from 2 to 36`);
  return (value as number | bigint).toString(base);
}

function numberOf(value: Value, name: string): number {
  if (!isNumber(value)) throw wrong(name, '~f, ~e and ~g need a number', value);
  return Number(finite(name, Number(value)));
}

function decimals(precision: number, name: string): number {
  if (precision < 1 || precision > MAX_DECIMALS)
    throw new SqlFailure(`${name}: the precision ${precision} is not from 1 to ${MAX_DECIMALS}`);
  return precision;
}

function padTo(text: string, width: number, fill: string, work: FunctionWork): string {
  const size = Math.abs(width);
  if (size > MAX_STRING) throw new SqlFailure(`the width ${size} is more than ${MAX_STRING}`);
  const padding = fill.repeat(Math.max(0, size - lengthOf(work.segmentText(text))));
  return width < 0 ? text + padding : padding + text;
}

function wrong(name: string, needed: string, value: Value): SqlFailure {
  return new SqlFailure(`${name}: ${needed}, but has ${describe(value)}`);
}
