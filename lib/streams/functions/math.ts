// Integers are bigint and stay exact where the documented function has an integer as its result; other results are
// floats. A result that is not a number is null. A row of the table says how null is handled and whether calls with
// constants may be evaluated once.

import { describe, integer, StreamFailure, type StreamValue } from '../values/values.ts';
import { floatOf, indexOf, textOf, tryInteger } from './arguments.ts';
import { PURE, type StreamFunctionEntry, streamFamily } from './family.ts';

/** A function from one number to a float; null where it is not defined. */
function ofFloat(name: string, about: string, compute: (x: number) => number): StreamFunctionEntry {
  return {
    name,
    params: ['number'],
    about,
    ifNull: null,
    isPure: true,
    run: (x: StreamValue) => defined(compute(floatOf(x)))
  };
}

function ofFloats(name: string, about: string, compute: (x: number, y: number) => number): StreamFunctionEntry {
  return {
    name,
    params: ['number', 'number'],
    about,
    ifNull: null,
    isPure: true,
    run: (x: StreamValue, y: StreamValue) => defined(compute(floatOf(x), floatOf(y)))
  };
}

function ofBits(name: string, about: string, compute: (a: bigint, b: bigint) => bigint): StreamFunctionEntry {
  return {
    name,
    params: ['bigint', 'bigint'],
    about,
    ifNull: null,
    isPure: true,
    run: (x: StreamValue, y: StreamValue) => {
      const [a, b] = [tryInteger(x), tryInteger(y)];
      if (a === undefined || b === undefined)
        throw new StreamFailure(`Expect int type for both operands. Got ${describe(x)} and ${describe(y)}.`);
      return compute(a, b);
    }
  };
}

function defined(number: number): number | null {
  return Number.isNaN(number) ? null : number;
}

/** @param isZeroAllowed whether zero is accepted */
function positive(number: number, isZeroAllowed: boolean): number {
  if (number < 0 || (number === 0 && !isZeroAllowed))
    throw new StreamFailure(`The argument must be a positive number but got ${number}`);
  return number;
}

function absolute(value: StreamValue): StreamValue {
  if (typeof value === 'bigint') {
    const size = value < 0n ? -value : value;
    return integer(value) === value ? integer(size) : size;
  }
  return Math.abs(floatOf(value));
}

/** Maximum number of decimals that make a difference. */
const MAX_DECIMALS = 400;

/**
 * Round to a number of decimals, halves away from zero.
 * @param decimals negative numbers round to tens, hundreds, ...
 */
export function roundTo(number: number, decimals: number): number {
  const places = Math.max(-MAX_DECIMALS, Math.min(decimals, MAX_DECIMALS));
  const factor = 10 ** Math.abs(places);
  if (places < 0) return factor === Infinity ? 0 : awayFromZero(number / factor) * factor;
  const scaled = number * factor;
  return Number.isFinite(scaled) ? awayFromZero(scaled) / factor : number;
}

function awayFromZero(number: number): number {
  return number < 0 ? -Math.round(-number) : Math.round(number);
}

function logarithm(...[first, second]: StreamValue[]): StreamValue {
  const [base, number] = second === undefined ? [10, floatOf(first)] : [floatOf(first), floatOf(second)];
  if (number <= 0 || base <= 1) return null;
  return defined(base === 10 ? Math.log10(number) : Math.log(number) / Math.log(base));
}

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';
const [LARGEST_UNSIGNED, LARGEST, SMALLEST] = [2n ** 64n - 1n, 2n ** 63n - 1n, 2n ** 63n];

/**
 * Convert a number between bases from 2 to 36, as MySQL does: characters after the digits are ignored; unless the base
 * is negative, numbers are unsigned.
 */
function convertBase(value: StreamValue, from: StreamValue, to: StreamValue): StreamValue {
  const [fromBase, toBase] = [indexOf(from), indexOf(to)];
  const base = Math.abs(fromBase);
  if (base > 36 || base < 2 || Math.abs(toBase) > 36 || Math.abs(toBase) < 2) return null;
  const text = textOf(value).trim().toLowerCase();
  const isNegative = text.startsWith('-');
  let size = 0n;
  for (let at = /^[+-]/.test(text) ? 1 : 0; at < text.length; at++) {
    const digit = DIGITS.indexOf(text[at]);
    if (digit === -1 || digit >= base) break;
    size = size * BigInt(base) + BigInt(digit);
    if (size > LARGEST_UNSIGNED) throw new StreamFailure(`${describe(value)} has more than 64 bits in base ${base}`);
  }
  if (fromBase < 0) size = isNegative ? minimum(size, SMALLEST) : minimum(size, LARGEST);
  const bits = BigInt.asUintN(64, isNegative ? -size : size);
  const result = toBase < 0 ? BigInt.asIntN(64, bits) : bits;
  return result.toString(Math.abs(toBase)).toUpperCase();
}

function minimum(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function cotangent(value: StreamValue): StreamValue {
  const result = 1 / Math.tan(floatOf(value));
  if (Number.isNaN(result)) return null;
  if (!Number.isFinite(result)) throw new StreamFailure(`out-of-range error: cot(${floatOf(value)}) is infinite`);
  return result;
}

const power = (name: string) => ofFloats(name, 'The first number to the power of the second.', (x, y) => x ** y);

export const MATH_FUNCTIONS = streamFamily('math', [
  {
    name: 'abs',
    params: ['number'],
    about: 'The number without its sign; an integer for an integer.',
    ...PURE,
    run: absolute
  },
  ofFloat('acos', 'Inverse cosine, in radians; null outside of -1 to 1.', Math.acos),
  ofFloat('asin', 'Inverse sine, in radians; null outside of -1 to 1.', Math.asin),
  ofFloat('atan', 'Inverse tangent, in radians.', Math.atan),
  ofFloats('atan2', 'The angle of the point (x, y), in radians: atan2(y, x).', Math.atan2),
  ofFloat('ceil', 'The number rounded up to a whole one, as a float.', Math.ceil),
  ofFloat('ceiling', 'The same as ceil.', Math.ceil),
  ofFloat('cos', 'Cosine of radians.', Math.cos),
  ofFloat('cosh', 'Hyperbolic cosine.', Math.cosh),
  { name: 'cot', params: ['number'], about: 'Cotangent of radians.', ...PURE, run: cotangent },
  ofFloat('degrees', 'Radians as degrees.', (x) => x * (180 / Math.PI)),
  ofFloat('exp', 'e to the power of the number.', Math.exp),
  ofFloat('floor', 'The number rounded down to a whole one, as a float.', Math.floor),
  ofFloat('ln', 'Natural logarithm of a positive number.', (x) => Math.log(positive(x, false))),
  {
    name: 'log',
    params: ['number', 'number?'],
    about: 'log(x): logarithm to base 10; log(base, x). null for x up to 0, or a base up to 1.',
    ...PURE,
    run: logarithm
  },
  ofFloats('mod', 'Remainder of a division, as a float.', (x, y) => x % y),
  { name: 'pi', params: [], about: 'The number pi.', isPure: true, run: () => Math.PI },
  power('pow'),
  power('power'),
  ofFloat('radians', 'Degrees as radians.', (x) => x * (Math.PI / 180)),
  {
    name: 'rand',
    params: [],
    about: 'A random float from 0 (inclusive) to 1 (exclusive).',
    make: (tools) => () => tools.random()
  },
  {
    name: 'round',
    params: ['number', 'bigint?'],
    about: 'The number rounded to whole ones, or to a number of decimals; halves away from zero.',
    ...PURE,
    run: (x: StreamValue, decimals: StreamValue = 0) => roundTo(floatOf(x), indexOf(decimals))
  },
  {
    name: 'sign',
    params: ['number'],
    about: '-1, 0 or 1 by the sign of the number.',
    ...PURE,
    run: (x: StreamValue) => (floatOf(x) > 0 ? 1n : floatOf(x) < 0 ? -1n : 0n)
  },
  ofFloat('sin', 'Sine of radians.', Math.sin),
  ofFloat('sinh', 'Hyperbolic sine.', Math.sinh),
  ofFloat('sqrt', 'Square root of a number that is not negative.', (x) => Math.sqrt(positive(x, true))),
  ofFloat('tan', 'Tangent of radians.', Math.tan),
  ofFloat('tanh', 'Hyperbolic tangent.', Math.tanh),
  ofBits('bitand', 'The bits that both integers have.', (a, b) => a & b),
  ofBits('bitor', 'The bits that at least one of the integers has.', (a, b) => a | b),
  ofBits('bitxor', 'The bits that exactly one of the integers has.', (a, b) => a ^ b),
  {
    name: 'bitnot',
    params: ['bigint'],
    about: 'The bits that the integer does not have.',
    ...PURE,
    run: (x: StreamValue) => {
      const bits = tryInteger(x);
      if (bits === undefined) throw new StreamFailure(`Expect int type for operand. Got ${describe(x)}.`);
      return ~bits;
    }
  },
  {
    name: 'conv',
    params: ['any', 'bigint', 'bigint'],
    about: 'conv(number, from, to): a number in another base, from 2 to 36; a negative base stands for signed numbers.',
    ...PURE,
    run: convertBase
  }
]);
