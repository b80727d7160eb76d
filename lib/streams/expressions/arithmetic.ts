import { describe, integer, isNull, isNumber, StreamFailure, type StreamValue } from '../values/values.ts';
import { invalidOperation, refuseComposite } from './compare.ts';

/** Operators that compute a value. `|`, `&` and `^` are for integers and booleans. */
export type Computing = '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^';

/** Computes a value from two. @throws StreamFailure; the table is in `semantics.ts` */
type Compute = (left: StreamValue, right: StreamValue) => StreamValue;

/** The computations by operator. Floats are tested first, because most rows have them. */
export const COMPUTATIONS: Readonly<Record<Computing, Compute>> = {
  '+': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left + right;
    if (typeof left === 'bigint' && typeof right === 'bigint') return wrapped('+', left + right, left, right);
    return mixed('+', left, right);
  },
  '-': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left - right;
    if (typeof left === 'bigint' && typeof right === 'bigint') return wrapped('-', left - right, left, right);
    return mixed('-', left, right);
  },
  '*': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left * right;
    if (typeof left === 'bigint' && typeof right === 'bigint') return wrapped('*', left * right, left, right);
    return mixed('*', left, right);
  },
  '/': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left / divisor(right);
    if (typeof left === 'bigint' && typeof right === 'bigint')
      return wrapped('/', left / integerDivisor(right), left, right);
    return mixed('/', left, right);
  },
  '%': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left % divisor(right);
    if (typeof left === 'bigint' && typeof right === 'bigint') return left % integerDivisor(right);
    return mixed('%', left, right);
  },
  '&': (left, right) => {
    if (typeof left === 'bigint' && typeof right === 'bigint') return left & right;
    if (typeof left === 'boolean' && typeof right === 'boolean') return left && right;
    return noResult('&', left, right);
  },
  '|': (left, right) => {
    if (typeof left === 'bigint' && typeof right === 'bigint') return left | right;
    if (typeof left === 'boolean' && typeof right === 'boolean') return left || right;
    return noResult('|', left, right);
  },
  '^': (left, right) => {
    if (typeof left === 'bigint' && typeof right === 'bigint') return left ^ right;
    if (typeof left === 'boolean' && typeof right === 'boolean') return left !== right;
    return noResult('^', left, right);
  }
};

/** Evaluate `-value`. @throws StreamFailure */
export function negate(value: StreamValue): StreamValue {
  if (typeof value === 'number') return -value;
  if (typeof value === 'bigint') return wrapped('-', -value, 0n, value);
  return COMPUTATIONS['-'](0n, value);
}

/** Evaluate NOT. @throws StreamFailure */
export function not(value: StreamValue): StreamValue {
  if (typeof value === 'boolean') return !value;
  if (isNull(value)) return null;
  throw new StreamFailure(`invalid operation NOT ${describe(value)}`);
}

/**
 * Integers of 64 bits wrap around. A larger integer, which only JSON produces, counts as a float unless the result
 * fits.
 */
function wrapped(operator: '+' | '-' | '*' | '/', result: bigint, left: bigint, right: bigint): StreamValue {
  const wrapped = integer(result);
  if (wrapped === result || (integer(left) === left && integer(right) === right)) return wrapped;
  return mixed(operator, Number(left), Number(right));
}

/** An integer combined with a float counts as a float. */
function mixed(operator: '+' | '-' | '*' | '/' | '%', left: StreamValue, right: StreamValue): StreamValue {
  if (isNumber(left) && isNumber(right)) return COMPUTATIONS[operator](Number(left), Number(right));
  return noResult(operator, left, right);
}

/** Null if a side is null. @throws StreamFailure otherwise */
export function noResult(operator: string, left: StreamValue, right: StreamValue): null {
  if (isNull(left) || isNull(right)) return null;
  refuseComposite(operator, left);
  refuseComposite(operator, right);
  throw invalidOperation(operator, left, right);
}

function divisor(value: number): number {
  if (value === 0) throw dividedByZero();
  return value;
}

function integerDivisor(value: bigint): bigint {
  if (value === 0n) throw dividedByZero();
  return value;
}

function dividedByZero(): StreamFailure {
  return new StreamFailure('divided by zero');
}
