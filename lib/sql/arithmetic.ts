import { SqlFailure } from './sql-error.ts';
import type { Arithmetic } from './tree.ts';
import { describe, Float, floatOf, integerOf, isNumber, kindOf, type Value } from './values.ts';

/** Maximum length of a string that a function or an operator creates, in characters. */
export const MAX_STRING = 16_777_216;
/** Maximum number of bits of an integer. */
export const MAX_BITS = 65_536;

/** Evaluate `left + right`. @throws SqlFailure */
export function add(left: Value, right: Value): Value {
  if (typeof left === 'number' && typeof right === 'number') {
    const sum = left + right;
    if (Number.isSafeInteger(sum) && Number.isInteger(left) && Number.isInteger(right)) return sum;
  }
  if (typeof left === 'string' && typeof right === 'string') return join(left, right);
  return withNumbers('+', left, right, sumOf, (a, b) => a + b);
}

/** Evaluate `left - right`. @throws SqlFailure */
export function subtract(left: Value, right: Value): Value {
  if (typeof left === 'number' && typeof right === 'number') {
    const difference = left - right;
    if (Number.isSafeInteger(difference) && Number.isInteger(left) && Number.isInteger(right)) return difference;
  }
  return withNumbers(
    '-',
    left,
    right,
    (a, b) => a - b,
    (a, b) => a - b
  );
}

/** Evaluate `left * right`. @throws SqlFailure */
export function multiply(left: Value, right: Value): Value {
  if (typeof left === 'number' && typeof right === 'number') {
    const product = left * right;
    if (Number.isSafeInteger(product) && Number.isInteger(left) && Number.isInteger(right)) return product + 0;
  }
  return withNumbers(
    '*',
    left,
    right,
    (a, b) => a * b,
    (a, b) => a * b
  );
}

/** Evaluate `left / right`. The result is a floating point number, also for 4 / 2. @throws SqlFailure */
export function divide(left: Value, right: Value): Value {
  if (!isNumber(left) || !isNumber(right)) throw noNumbers('/', left, right);
  if (Number(right) === 0) throw new SqlFailure(`${describe(left)} is divided by zero`);
  return finite('/', Number(left) / Number(right));
}

/** Evaluate `div`, which rounds towards zero, or `mod`, which has the sign of the left value. @throws SqlFailure */
export function divideIntegers(operator: 'div' | 'mod', left: Value, right: Value): Value {
  for (const value of [left, right])
    if (kindOf(value) !== 'integer') throw new SqlFailure(`${operator} needs integers, but has ${describe(value)}`);
  if (Number(right) === 0) throw new SqlFailure(`${operator}: ${describe(left)} is divided by zero`);
  if (typeof left === 'number' && typeof right === 'number')
    return operator === 'div' ? Math.trunc(left / right) + 0 : (left % right) + 0;
  const [a, b] = [BigInt(left as bigint), BigInt(right as bigint)];
  return integerOf(operator === 'div' ? a / b : a % b);
}

/** Negate a number. */
export function negate(value: Value): Value {
  if (!isNumber(value)) throw new SqlFailure(`- needs a number, but has ${describe(value)}`);
  if (typeof value === 'bigint') return integerOf(-value);
  if (value instanceof Float) return new Float(-value.value);
  return value === 0 ? 0 : -value;
}

/** Concatenate two strings. @throws SqlFailure */
function join(left: string, right: string): string {
  return bounded(left.length + right.length, () => left + right);
}

/** Create a string of a known length. @throws SqlFailure if it is too long */
export function bounded(length: number, make: () => string): string {
  if (length > MAX_STRING) throw new SqlFailure(`the result has more than ${MAX_STRING} characters`);
  return make();
}

/** Convert an integer to a value. @throws SqlFailure if it is too large */
export function boundedInteger(integer: bigint): number | bigint {
  const value = integerOf(integer);
  if (typeof value === 'bigint' && value.toString(16).length * 4 > MAX_BITS)
    throw new SqlFailure(`the result has more than ${MAX_BITS} bits`);
  return value;
}

/** Convert a floating point number to a value. @throws SqlFailure if it is infinite or NaN */
export function finite(name: string, number: number): number | Float {
  if (Number.isFinite(number)) return floatOf(number);
  throw new SqlFailure(`${name} has no finite result`);
}

function sumOf(left: number, right: number): number {
  return left + right;
}

function withNumbers(
  operator: Arithmetic,
  left: Value,
  right: Value,
  floats: (a: number, b: number) => number,
  integers: (a: bigint, b: bigint) => bigint
): Value {
  if (!isNumber(left) || !isNumber(right)) throw noNumbers(operator, left, right);
  if (kindOf(left) === 'integer' && kindOf(right) === 'integer')
    return boundedInteger(integers(BigInt(left as number), BigInt(right as number)));
  return finite(operator, floats(Number(left), Number(right)));
}

function noNumbers(operator: Arithmetic, left: Value, right: Value): SqlFailure {
  const needed = operator === '+' ? 'two numbers or two strings' : 'two numbers';
  return new SqlFailure(`${operator} needs ${needed}, but has ${describe(left)} and ${describe(right)}`);
}
