// The forms that are compiled separately, such as a column compared with a number, exist for speed only: each must
// give the same result as the general function of its operator. AND and OR do not evaluate their right side if the
// left one decides or is null.

import type { Evaluate } from '../values/tuple.ts';
import { describe, isArray, isNull, isNumber, StreamFailure, type StreamValue } from '../values/values.ts';
import { COMPUTATIONS, type Computing, noResult } from './arithmetic.ts';
import { COMPARISONS, type Comparing, compareWithNumber } from './compare.ts';
import { likePattern } from './like.ts';
import type { CompiledExpression } from './scope.ts';

const MIRRORED: Readonly<Record<Comparing, Comparing>> = {
  '=': '=',
  '!=': '!=',
  '<': '>',
  '>': '<',
  '<=': '>=',
  '>=': '<='
};

/** Compile a comparison. Comparisons of a column with a constant are the most frequent. */
export function comparison(operator: Comparing, left: CompiledExpression, right: CompiledExpression): Evaluate {
  const [a, b] = [left.evaluate, right.evaluate];
  const constant = right.constant?.value;
  if (constant !== undefined && isNumber(constant)) return comparisonWithNumber(operator, left, constant);
  const first = left.constant?.value;
  if (first !== undefined && isNumber(first) && right.column !== undefined) {
    const mirrored = compareWithNumber(MIRRORED[operator], first);
    const compare = COMPARISONS[operator];
    return (tuple) => {
      const value = b(tuple);
      return typeof value === 'number' || typeof value === 'bigint' ? mirrored(value) : compare(first, value);
    };
  }
  if (typeof constant === 'string' && (operator === '=' || operator === '!=')) {
    const compare = COMPARISONS[operator];
    const isSame = operator === '=';
    return (tuple) => {
      const value = a(tuple);
      return typeof value === 'string' ? (value === constant) === isSame : compare(value, constant);
    };
  }
  const compare = COMPARISONS[operator];
  return (tuple) => compare(a(tuple), b(tuple));
}

function comparisonWithNumber(operator: Comparing, left: CompiledExpression, constant: number | bigint): Evaluate {
  const test = compareWithNumber(operator, constant);
  const { evaluate, column } = left;
  const float = Number(constant);
  const isExact = typeof constant === 'number' || BigInt(float) === constant;
  if (column === undefined || column.source !== undefined || !isExact) return (tuple) => test(evaluate(tuple));
  return compareColumn(operator, column.name, float, test);
}

/**
 * The same for a column, which is nearly always a float: in one call, because a stream may have many rules with such a
 * condition.
 */
function compareColumn(
  operator: Comparing,
  name: string,
  float: number,
  test: (left: StreamValue) => boolean
): Evaluate {
  switch (operator) {
    case '=':
      return (tuple) => {
        const left = tuple.column(name);
        return typeof left === 'number' ? left === float : test(left);
      };
    case '!=':
      return (tuple) => {
        const left = tuple.column(name);
        return typeof left === 'number' ? left !== float : test(left);
      };
    case '<':
      return (tuple) => {
        const left = tuple.column(name);
        return typeof left === 'number' ? left < float : test(left);
      };
    case '>':
      return (tuple) => {
        const left = tuple.column(name);
        return typeof left === 'number' ? left > float : test(left);
      };
    case '<=':
      return (tuple) => {
        const left = tuple.column(name);
        return typeof left === 'number' ? left <= float : test(left);
      };
    case '>=':
      return (tuple) => {
        const left = tuple.column(name);
        return typeof left === 'number' ? left >= float : test(left);
      };
  }
}

/**
 * Compile a computation. The numbers of literals are integers and those of most rows floats, so the float of a literal
 * is created once.
 */
export function computation(operator: Computing, left: CompiledExpression, right: CompiledExpression): Evaluate {
  const compute = COMPUTATIONS[operator];
  const [a, b] = [left.evaluate, right.evaluate];
  const constant = right.constant?.value;
  if (typeof constant !== 'bigint' || '&|^'.includes(operator)) return (tuple) => compute(a(tuple), b(tuple));
  const float = Number(constant);
  return (tuple) => {
    const value = a(tuple);
    return compute(value, typeof value === 'number' ? float : constant);
  };
}

/** `a AND b`. */
export function conjunction(left: CompiledExpression, right: CompiledExpression): Evaluate {
  const [a, b] = [left.evaluate, right.evaluate];
  return (tuple) => {
    const first = a(tuple);
    if (first === false) return false;
    if (isNull(first)) return null;
    const second = b(tuple);
    return first === true && typeof second === 'boolean' ? second : noResult('AND', first, second);
  };
}

/** `a OR b`. */
export function disjunction(left: CompiledExpression, right: CompiledExpression): Evaluate {
  const [a, b] = [left.evaluate, right.evaluate];
  return (tuple) => {
    const first = a(tuple);
    if (first === true) return true;
    if (isNull(first)) return null;
    const second = b(tuple);
    return first === false && typeof second === 'boolean' ? second : noResult('OR', first, second);
  };
}

/** Check whether a value equals an item of IN, or an element of the item. */
export function isAmong(value: StreamValue, item: StreamValue): boolean {
  return isArray(item) ? item.some((element) => isEqual(value, element)) : isEqual(value, item);
}

/**
 * Check whether a value that is not null differs from an item of NOT IN, or from all of its elements. The result is
 * false if one of them is null.
 */
export function isOutside(value: StreamValue, item: StreamValue): boolean {
  if (isArray(item)) return !item.some((element) => isNull(element) || isEqual(value, element));
  return !isNull(item) && !isEqual(value, item);
}

/** As `=`, except that values that cannot be compared are different. */
function isEqual(left: StreamValue, right: StreamValue): boolean {
  if (!isNull(left) && !isNull(right) && typeof left !== typeof right && !(isNumber(left) && isNumber(right)))
    return left instanceof Date && isComparable(left, right);
  if (typeof left === 'object' && typeof right === 'object' && !isNull(left) && !isNull(right))
    return isComparable(left, right);
  return COMPARISONS['='](left, right);
}

function isComparable(left: StreamValue, right: StreamValue): boolean {
  try {
    return COMPARISONS['='](left, right);
  } catch (error) {
    if (error instanceof StreamFailure) return false;
    throw error;
  }
}

/** One side of BETWEEN. */
export function isBeyond(operator: '>=' | '<=' | '>' | '<', value: StreamValue, bound: StreamValue): boolean {
  try {
    return COMPARISONS[operator](value, bound);
  } catch (error) {
    if (!(error instanceof StreamFailure)) throw error;
    throw new StreamFailure(`between operator cannot compare ${describe(value)} and ${describe(bound)}`, error);
  }
}

/** LIKE for operands that are not known to be strings. */
export function likeOf(value: StreamValue, pattern: StreamValue, isNegated: boolean): StreamValue {
  if (isNull(value) || isNull(pattern)) return null;
  for (const [side, operand] of [
    ['left', value],
    ['right', pattern]
  ] as const)
    if (typeof operand !== 'string')
      throw new StreamFailure(`LIKE operator ${side} operand expects string, but found ${describe(operand)}`);
  return likePattern(pattern as string)(value as string) !== isNegated;
}

/** Check whether the WHEN of a CASE without a subject holds. */
export function isChosen(when: StreamValue): boolean {
  if (typeof when === 'boolean') return when;
  if (isNull(when)) return false;
  throw new StreamFailure(`evaluate case expression error: WHEN has ${describe(when)}, which is not a bool`);
}

/** Check whether the WHEN of a CASE equals its subject. */
export function isEqualCase(value: StreamValue, when: StreamValue): boolean {
  try {
    return COMPARISONS['='](value, when);
  } catch (error) {
    if (!(error instanceof StreamFailure)) throw error;
    throw new StreamFailure(`evaluate case expression error: ${error.message}`, error);
  }
}
