import { add, divide, divideIntegers, multiply, negate, subtract } from './arithmetic.ts';
import { compare, equals, isSame } from './compare.ts';
import type { Semantics } from './compile.ts';
import type { EventClosure, Scope } from './row.ts';
import { SqlFailure } from './sql-error.ts';
import { describe, isNumber, type Value } from './values.ts';

/**
 * The meaning of expressions in rules over events: NOT, AND and OR accept only true and false and treat any other value
 * as neither; comparisons follow the table of `compare.ts`; IN and CASE do not convert strings.
 */
export const EVENTS: Semantics<Scope, Value> = {
  literal: (value) => value,
  unary: {
    NOT:
      ({ evaluate }) =>
      (scope) =>
        evaluate(scope) === false,
    '-': ({ evaluate, constant }) => {
      if (constant === undefined || !isNumber(constant.value)) return (scope) => negate(evaluate(scope));
      const negative = negate(constant.value);
      return () => negative;
    },
    '+':
      ({ evaluate }) =>
      (scope) => {
        const number = evaluate(scope);
        if (!isNumber(number)) throw new SqlFailure(`+ needs a number, but has ${describe(number)}`);
        return number;
      }
  },
  binary: {
    AND: operator((left, right) => (scope) => left(scope) === true && right(scope) === true),
    OR: operator((left, right) => (scope) => left(scope) === true || right(scope) === true),
    '=': operator((left, right) => (scope) => equals(left(scope), right(scope), scope)),
    '!=': operator((left, right) => (scope) => !equals(left(scope), right(scope), scope)),
    '<': operator((left, right) => (scope) => compare(left(scope), right(scope), scope) < 0),
    '>': operator((left, right) => (scope) => compare(left(scope), right(scope), scope) > 0),
    '<=': operator((left, right) => (scope) => compare(left(scope), right(scope), scope) <= 0),
    '>=': operator((left, right) => (scope) => compare(left(scope), right(scope), scope) >= 0),
    '+': operator((left, right) => (scope) => scope.counted(add(left(scope), right(scope)))),
    '-': operator((left, right) => (scope) => subtract(left(scope), right(scope))),
    '*': operator((left, right) => (scope) => multiply(left(scope), right(scope))),
    '/': operator((left, right) => (scope) => divide(left(scope), right(scope))),
    div: division('div'),
    mod: division('mod')
  },
  range(from, to) {
    const length = Math.max(0, to - from + 1); // consumers of the output may change the list, so each event gets its own
    const make = () => Array.from({ length }, (_, index) => from + index);
    return { evaluate: (scope) => scope.made(make(), 'list', undefined, 0) };
  },
  membership(isNegated, { evaluate }, items) {
    const evaluates = items.map((item) => item.evaluate);
    return (scope) => {
      const value = evaluate(scope);
      return evaluates.some((item) => isSame(value, item(scope), scope)) !== isNegated;
    };
  },
  isEqual: isSame,
  isTrue: (value) => value === true,
  absent: undefined
};

function division(name: 'div' | 'mod'): Operator {
  return operator((left, right) => (scope) => {
    const value = left(scope);
    scope.divided(value);
    return divideIntegers(name, value, right(scope));
  });
}

type Operator = NonNullable<Semantics<Scope, Value>['binary']['=']>;

function operator(make: (left: EventClosure, right: EventClosure) => EventClosure): Operator {
  return (left, right) => make(left.evaluate, right.evaluate);
}
