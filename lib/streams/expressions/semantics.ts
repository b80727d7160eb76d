import { constantOf, type Semantics } from '../../sql/compile.ts';
import type { BinaryOperator, Expression } from '../../sql/tree.ts';
import { Float, type Value } from '../../sql/values.ts';
import type { Tuple } from '../values/tuple.ts';
import { integer, isNull, type StreamValue } from '../values/values.ts';
import { COMPUTATIONS, type Computing, negate, not } from './arithmetic.ts';
import { COMPARISONS, type Comparing } from './compare.ts';
import {
  comparison,
  computation,
  conjunction,
  disjunction,
  isAmong,
  isChosen,
  isEqualCase,
  isOutside
} from './conditions.ts';

/**
 * The meaning of expressions over streams. The first row of this table that applies decides the value.
 *
 * | expression | operands | value |
 * |---|---|---|
 * | `12`, `1.5` | | an integer of 64 bits; a float. Numbers of streams without a schema are floats, integers from 2^53 on integers of any size |
 * | `= != < <= > >=` | null on one or both sides | false |
 * | `+ - * / % & \| ^` | null and anything | null |
 * | any operator | array, struct or bytea | fails: `> is an invalid operation for []interface {}` |
 * | `+ - * / %` | integer and integer | an integer, which wraps around; `/` rounds towards zero, `%` has the sign of the left side |
 * | `+ - * /` | integers, of which one has more than 64 bits | an integer if the result has 64 bits, otherwise a float |
 * | `+ - * / %` | float and integer or float | a float |
 * | `/ %` | 0 on the right side, integer or float | fails: `divided by zero` |
 * | `& \| ^` | integer and integer; boolean and boolean | an integer; a boolean |
 * | comparison | integer or float, both sides | by value and exactly, 1 = 1.0 |
 * | comparison | string and string | by the bytes of UTF-8 |
 * | `=` `!=` | boolean and boolean | whether they are the same |
 * | comparison | datetime on the left; datetime, number of milliseconds or ISO string on the right | by time |
 * | any operator | everything else | fails: `invalid operation string(32) > int64(72)` |
 * | `a AND b` | a is false; a is null | false; null: b is not evaluated |
 * | `a OR b` | a is true; a is null | true; null: b is not evaluated |
 * | `a AND b`, `a OR b` | b is null | null |
 * | `NOT a` | null | null |
 * | `a BETWEEN b AND c` | | `a >= b AND a <= c` with the rules above, but fails with `between operator cannot compare ...` |
 * | `a NOT BETWEEN b AND c` | | `a < b OR a > c` in the same way, so false if `a` is null |
 * | `a IN (b, ...)` | | whether `a = b` for one of them; values that cannot be compared are different; an array stands for its elements |
 * | `a NOT IN (b, ...)` | | whether `a != b` for all of them in the same way, so false if `a` or one of them is null |
 * | `a LIKE b` | a or b is null; strings | null; whether the whole of a matches: `%` any characters, `_` one |
 * | `CASE a WHEN b` | | the first branch with `a = b`, ELSE, or null; fails with `evaluate case expression error: ...` |
 * | `CASE WHEN a` | null; boolean | no match; whether it is true |
 * | `a->b`, `a.b` | a is null or has no key b; struct | null; the key, an exact match before one in another case |
 * | `a->b` | everything else | fails: `the result X is not a type of map[string]interface{}` |
 * | `a[0]`, `a[-1]` | a or the index is null; array | null; the element, negative from the end; fails with `out of index: 5 of 3` |
 * | `a[1:3]` | the same | the elements from the first index to before the second one; fails if one is outside |
 * | condition of WHERE, ON, HAVING, FILTER, WHEN | null | false |
 * | condition | not a boolean | fails: `invalid condition that returns non-bool value int64(1)` |
 *
 * AND and OR end at the side that decides, so a failure of the other side has no effect. Operators whose operands are
 * constant, and calls of pure functions with constants, are evaluated once; if this fails, each row fails.
 */
export const STREAMS: Semantics<Tuple, StreamValue> = {
  literal: literalValue,
  unary: {
    NOT:
      ({ evaluate }) =>
      (tuple) =>
        not(evaluate(tuple)),
    '-':
      ({ evaluate }) =>
      (tuple) =>
        negate(evaluate(tuple)),
    '+':
      ({ evaluate }) =>
      (tuple) =>
        COMPUTATIONS['+'](evaluate(tuple), 0n)
  },
  binary: {
    // a side that decides is the value: the other side is not evaluated
    AND: (left, right) => (left.constant?.value === false ? left.evaluate : conjunction(left, right)),
    OR: (left, right) => (left.constant?.value === true ? left.evaluate : disjunction(left, right)),
    ...operators(Object.keys(COMPARISONS) as Comparing[], comparison),
    ...operators(Object.keys(COMPUTATIONS) as Computing[], computation)
  },
  range: (from, to) =>
    constantOf(Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => BigInt(from + index))),
  membership(isNegated, { evaluate }, items) {
    if (items.every((item) => typeof item.constant?.value === 'string')) {
      const values = new Set(items.map((item) => item.constant?.value));
      if (!isNegated) return (tuple) => values.has(evaluate(tuple));
      return (tuple) => {
        const value = evaluate(tuple);
        return !isNull(value) && !values.has(value);
      };
    }
    const evaluates = items.map((item) => item.evaluate);
    return (tuple) => {
      const value = evaluate(tuple);
      if (isNull(value)) return false;
      for (const item of evaluates) {
        const found = item(tuple);
        if (isNegated ? !isOutside(value, found) : isAmong(value, found)) return !isNegated;
      }
      return isNegated;
    };
  },
  isEqual: isEqualCase,
  isTrue: isChosen,
  whenFault: (when) =>
    canBeCondition(when) ? undefined : 'invalid CASE expression, WHEN expression must be a bool condition',
  absent: null
};

type Binary = Semantics<Tuple, StreamValue>['binary'];
type Make = NonNullable<Binary['=']>;

/** The closures of operators that one function makes. */
function operators<Name extends BinaryOperator>(
  names: readonly Name[],
  make: (name: Name, ...sides: Parameters<Make>) => ReturnType<Make>
): Binary {
  return Object.fromEntries(names.map((name) => [name, (...sides: Parameters<Make>) => make(name, ...sides)]));
}

/** The value of a literal of the tree, where integers are safe numbers or bigints and all other numbers are floats. */
function literalValue(value: Value): StreamValue {
  if (value instanceof Float) return value.value;
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
  return typeof value === 'bigint' ? integer(value) : (value as StreamValue);
}

/** Check whether an expression can have a boolean value. */
function canBeCondition(node: Expression): boolean {
  switch (node.type) {
    case 'literal':
      return typeof node.value === 'boolean';
    case 'binary':
      return !['+', '-', '*', '/', '%'].includes(node.operator);
    case 'unary':
      return node.operator === 'NOT';
    case 'list':
    case 'range':
    case 'wildcard':
      return false;
    default:
      return true;
  }
}
