import { boundedInteger, divideIntegers, finite, MAX_STRING } from '../arithmetic.ts';
import { orderPlain } from '../compare.ts';
import { SqlFailure } from '../sql-error.ts';
import { Float, integerFrom, integerOf, kindOf, type Value } from '../values.ts';
import { type FunctionWork, family, type SqlFunctionEntry } from './function.ts';

type Numeric = number | bigint | Float;

/** Maximum number of places of a shift to the left. */
const MAX_SHIFT = 65_536;

/** Functions from one number to a floating point number. */
const REAL_FUNCTIONS: readonly [name: string, about: string, run: (x: number) => number][] = [
  ['sin', 'Sine.', Math.sin],
  ['cos', 'Cosine.', Math.cos],
  ['tan', 'Tangent.', Math.tan],
  ['asin', 'Arc sine.', Math.asin],
  ['acos', 'Arc cosine.', Math.acos],
  ['atan', 'Arc tangent.', Math.atan],
  ['sinh', 'Hyperbolic sine.', Math.sinh],
  ['cosh', 'Hyperbolic cosine.', Math.cosh],
  ['tanh', 'Hyperbolic tangent.', Math.tanh],
  ['asinh', 'Inverse hyperbolic sine.', Math.asinh],
  ['acosh', 'Inverse hyperbolic cosine.', Math.acosh],
  ['atanh', 'Inverse hyperbolic tangent.', Math.atanh],
  ['exp', 'Exponential function.', Math.exp],
  ['log', 'Natural logarithm.', Math.log],
  ['log10', 'Logarithm to the base 10.', Math.log10],
  ['log2', 'Logarithm to the base 2.', Math.log2],
  ['sqrt', 'Square root.', Math.sqrt]
];

/** Functions that round a floating point number to an integer. */
const ROUNDING: readonly [name: string, about: string, run: (x: number) => number][] = [
  ['ceil', 'The next integer above.', Math.ceil],
  ['floor', 'The next integer below.', Math.floor],
  ['round', 'The next integer; half is rounded away from zero.', (x) => Math.sign(x) * Math.round(Math.abs(x))]
];

const realRow = ([name, about, run]: (typeof REAL_FUNCTIONS)[number]): SqlFunctionEntry => ({
  name,
  params: ['number'],
  returns: 'number',
  about,
  run: (x: Numeric) => finite(name, run(Number(x)))
});

const roundingRow = ([name, about, run]: (typeof ROUNDING)[number]): SqlFunctionEntry => ({
  name,
  params: ['number'],
  returns: 'integer',
  about,
  isTotal: true,
  run: (x: Numeric) => (kindOf(x) === 'integer' ? x : integerFrom(run(Number(x))))
});

export const NUMBER_FUNCTIONS = family('mathematics', [
  {
    name: 'div',
    params: ['integer', 'integer'],
    returns: 'integer',
    about: 'Quotient, rounded towards zero.',
    countsWork: true,
    run: (work: FunctionWork, a: Value, b: Value) => {
      work.divided(a);
      return divideIntegers('div', a, b);
    }
  },
  {
    name: 'mod',
    params: ['integer', 'integer'],
    returns: 'integer',
    about: 'Remainder, with the sign of the first argument.',
    countsWork: true,
    run: (work: FunctionWork, a: Value, b: Value) => {
      work.divided(a);
      return divideIntegers('mod', a, b);
    }
  },
  {
    name: 'eq',
    params: ['any', 'any'],
    returns: 'boolean',
    about: 'Whether two values are equal; a string and a number never are.',
    isTotal: true,
    countsWork: true,
    run: (work: FunctionWork, a: Value, b: Value) =>
      a === undefined || b === undefined ? a === b : orderPlain(a, b, 0, work) === 0
  },
  {
    name: 'abs',
    params: ['number'],
    returns: 'number',
    about: 'Absolute value.',
    isTotal: true,
    run: (x: Numeric) =>
      x instanceof Float ? new Float(Math.abs(x.value)) : typeof x === 'bigint' ? (x < 0n ? -x : x) : Math.abs(x)
  },
  ...ROUNDING.map(roundingRow),
  ...REAL_FUNCTIONS.map(realRow),
  {
    name: 'power',
    params: ['number', 'number'],
    returns: 'number',
    about: 'The first argument to the power of the second.',
    run: (x: Numeric, y: Numeric) => finite('power', Number(x) ** Number(y))
  },
  {
    name: 'fmod',
    params: ['number', 'number'],
    returns: 'number',
    about: 'Remainder of floating point numbers, with the sign of the first argument.',
    run: (x: Numeric, y: Numeric) => finite('fmod', Number(x) % Number(y))
  },
  {
    name: 'random',
    params: [],
    returns: 'number',
    about: 'A random number from 0 to 1.',
    isTotal: true,
    make: (tools) => () => finite('random', tools.random())
  }
]);

/** Most bit operations have 32-bit arguments, for which JavaScript has operators. */
function isShort(integer: number | bigint): integer is number {
  return typeof integer === 'number' && (integer | 0) === integer;
}

function bitwise(
  name: string,
  about: string,
  short: (a: number, b: number) => number,
  long: (a: bigint, b: bigint) => bigint
): SqlFunctionEntry {
  return {
    name,
    params: ['integer', 'integer'],
    returns: 'integer',
    about,
    isTotal: true,
    run: (a: number | bigint, b: number | bigint) =>
      isShort(a) && isShort(b) ? short(a, b) : integerOf(long(BigInt(a), BigInt(b)))
  };
}

/** @param places to the left; to the right if negative */
function shift(integer: number | bigint, places: number | bigint): Value {
  if (places > MAX_SHIFT) throw new SqlFailure(`a shift by ${places} bits is more than ${MAX_SHIFT}`);
  const value = BigInt(integer);
  if (places >= 0) return boundedInteger(value << BigInt(places));
  return integerOf(value >> (places < -MAX_STRING ? BigInt(MAX_STRING) : BigInt(-places)));
}

export const BIT_FUNCTIONS = family('bits', [
  {
    name: 'bitnot',
    params: ['integer'],
    returns: 'integer',
    about: 'All bits inverted: -x - 1.',
    isTotal: true,
    run: (x: number | bigint) => integerOf(~BigInt(x))
  },
  bitwise(
    'bitand',
    'Bits that are set in both.',
    (a, b) => a & b,
    (a, b) => a & b
  ),
  bitwise(
    'bitor',
    'Bits that are set in at least one of them.',
    (a, b) => a | b,
    (a, b) => a | b
  ),
  bitwise(
    'bitxor',
    'Bits that differ.',
    (a, b) => a ^ b,
    (a, b) => a ^ b
  ),
  {
    name: 'bitsl',
    params: ['integer', 'integer'],
    returns: 'integer',
    about: 'Bits shifted to the left; a negative number of places shifts to the right.',
    run: (x: number | bigint, places: number | bigint) => shift(x, places)
  },
  {
    name: 'bitsr',
    params: ['integer', 'integer'],
    returns: 'integer',
    about: 'Bits shifted to the right, with the sign kept; a negative number of places shifts to the left.',
    run: (x: number | bigint, places: number | bigint) => shift(x, -places)
  }
]);
