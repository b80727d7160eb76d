// The table in the comment of `compileNode` is the specification of values; a change of an operator begins there. An
// expression is compiled several times: to check it, and for each start of its rule, since some functions depend on
// the rule; constants are folded once for a statement, within a budget. Only `Scope` knows what a name means, so
// nothing here depends on streams or rules.

import { SqlError } from '../../sql/sql-error.ts';
import type { Between, Binary, Case, Expression, Like, Membership, Path, Step, Unary } from '../../sql/tree.ts';
import { Float, type Value } from '../../sql/values.ts';
import { weighed } from '../limits.ts';
import type { Evaluate } from '../values/tuple.ts';
import { integer, isNull, type StreamValue } from '../values/values.ts';
import { COMPUTATIONS, type Computing, negate, not } from './arithmetic.ts';
import { compileCall } from './calls.ts';
import { COMPARISONS, type Comparing } from './compare.ts';
import {
  comparison,
  computation,
  conjunction,
  disjunction,
  isAmong,
  isBeyond,
  isChosen,
  isEqualCase,
  isOutside,
  likeOf
} from './conditions.ts';
import { likePattern } from './like.ts';
import { type CompiledStep, indexStep, keyStep, partStep } from './paths.ts';
import { type Compiled, constantOf, type Scope } from './scope.ts';

/**
 * Compile an expression. The first row of this table that applies decides its value.
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
 * @throws SqlError for an unknown name or function, or arguments that a function does not accept
 */
export function compileNode(node: Expression, scope: Scope): Compiled {
  return new ExpressionCompiler(scope).compile(node);
}

class ExpressionCompiler {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  compile(node: Expression): Compiled {
    return this.#scope.constants.known(node) ?? this.#compile(node);
  }

  /** An operator over parts. If all are constant, so is its value, unless it fails. */
  #folded(node: Expression, parts: readonly Compiled[], evaluate: Evaluate): Compiled {
    return this.#scope.constants.fold(node, parts, evaluate);
  }

  #compile(node: Expression): Compiled {
    switch (node.type) {
      case 'literal':
        return constantOf(literalValue(node.value));
      case 'path':
        return this.#path(node);
      case 'access':
        return this.#stepsOf(this.compile(node.subject), node.steps);
      case 'call':
        return compileCall(node, this.#scope, (arg) => this.compile(arg));
      case 'unary':
        return this.#unary(node);
      case 'binary':
        return this.#binary(node);
      case 'in':
        return this.#membership(node);
      case 'between':
        return this.#between(node);
      case 'like':
        return this.#like(node);
      case 'case':
        return this.#case(node);
      case 'list': {
        const items = node.items.map((item) => this.compile(item));
        return this.#folded(node, items, weighed(this.#listOf(items), 'a list', this.#scope.tools));
      }
      case 'range': {
        const { from, to } = node;
        return constantOf(Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => BigInt(from + index)));
      }
      case 'wildcard':
        throw this.#error('* is allowed only as an argument of functions such as count(*)', node.start);
    }
  }

  #listOf(items: readonly Compiled[]): Evaluate {
    const evaluates = items.map(({ evaluate }) => evaluate);
    return (tuple) => evaluates.map((evaluate) => evaluate(tuple) ?? null);
  }

  #path(node: Path): Compiled {
    const head = this.#scope.resolve(node);
    if (head.type === 'value') return this.#stepsOf(head, node.steps);
    const { name, source, taken } = head;
    const evaluate: Evaluate =
      source === undefined ? (tuple) => tuple.column(name) : (tuple) => tuple.columnOf(source, name);
    if (node.steps.length === taken) return { evaluate, column: { name, source } };
    return this.#stepsOf({ evaluate }, node.steps.slice(taken));
  }

  #stepsOf(start: Compiled, steps: readonly Step[]): Compiled {
    const compiled = steps.map((step) => this.#step(step));
    const { evaluate } = start;
    const [first, second] = compiled;
    switch (compiled.length) {
      case 0:
        return { evaluate };
      case 1:
        return { evaluate: (tuple) => first(evaluate(tuple), tuple) };
      case 2:
        return { evaluate: (tuple) => second(first(evaluate(tuple), tuple), tuple) };
    }
    return {
      evaluate: (tuple) => {
        let value = evaluate(tuple);
        for (const step of compiled) value = step(value, tuple);
        return value;
      }
    };
  }

  #step(step: Step): CompiledStep {
    switch (step.type) {
      case 'key':
        return keyStep(step.key);
      case 'index':
        return indexStep(this.compile(step.index).evaluate);
      case 'part':
        return partStep(step.from && this.compile(step.from).evaluate, step.to && this.compile(step.to).evaluate);
      case 'slice': // `a[1..2]` includes both ends
        return partStep(
          () => BigInt(step.from),
          () => BigInt(step.to + 1)
        );
    }
  }

  #unary(node: Unary): Compiled {
    const { operator, operand } = node;
    const inner = this.compile(operand);
    const { evaluate } = inner;
    if (operator === 'NOT') return this.#folded(node, [inner], (tuple) => not(evaluate(tuple)));
    if (operator === '-') return this.#folded(node, [inner], (tuple) => negate(evaluate(tuple)));
    return this.#folded(node, [inner], (tuple) => COMPUTATIONS['+'](evaluate(tuple), 0n));
  }

  #binary(node: Binary): Compiled {
    const { operator, start } = node;
    const left = this.compile(node.left);
    const right = this.compile(node.right);
    if (operator === 'AND' || operator === 'OR') {
      if (left.constant?.value === (operator === 'OR')) return left; // the other side is not evaluated
      return this.#folded(node, [left, right], (operator === 'AND' ? conjunction : disjunction)(left, right));
    }
    if (isComparing(operator)) return this.#folded(node, [left, right], comparison(operator, left, right));
    if (!isComputing(operator)) throw this.#error(`statements over streams have no operator ${operator}`, start);
    return this.#folded(node, [left, right], computation(operator, left, right));
  }

  #membership(node: Membership): Compiled {
    const { isNegated } = node;
    const subject = this.compile(node.subject);
    const items = node.items.map((item) => this.compile(item));
    const { evaluate } = subject;
    if (items.every((item) => typeof item.constant?.value === 'string')) {
      const values = new Set(items.map((item) => item.constant?.value));
      if (!isNegated) return this.#folded(node, [subject], (tuple) => values.has(evaluate(tuple)));
      return this.#folded(node, [subject], (tuple) => {
        const value = evaluate(tuple);
        return !isNull(value) && !values.has(value);
      });
    }
    const evaluates = items.map((item) => item.evaluate);
    return this.#folded(node, [subject, ...items], (tuple) => {
      const value = evaluate(tuple);
      if (isNull(value)) return false;
      for (const item of evaluates) {
        const found = item(tuple);
        if (isNegated ? !isOutside(value, found) : isAmong(value, found)) return !isNegated;
      }
      return isNegated;
    });
  }

  #between(node: Between): Compiled {
    const { isNegated } = node;
    const parts = [node.subject, node.low, node.high].map((part) => this.compile(part));
    const [subject, low, high] = parts.map(({ evaluate }) => evaluate);
    return this.#folded(node, parts, (tuple) => {
      const value = subject(tuple);
      if (isNegated) return isBeyond('<', value, low(tuple)) || isBeyond('>', value, high(tuple));
      return isBeyond('>=', value, low(tuple)) && isBeyond('<=', value, high(tuple));
    });
  }

  #like(node: Like): Compiled {
    const { pattern: patternNode, isNegated } = node;
    const subject = this.compile(node.subject);
    const pattern = this.compile(patternNode);
    const { evaluate } = subject;
    const given = pattern.constant?.value;
    if (typeof given !== 'string') {
      if (given !== undefined && given !== null)
        throw this.#error('the pattern of LIKE must be a string', patternNode.start);
      return { evaluate: (tuple) => likeOf(evaluate(tuple), pattern.evaluate(tuple), isNegated) };
    }
    const matches = likePattern(given);
    return this.#folded(node, [subject], (tuple) => {
      const value = evaluate(tuple);
      if (typeof value === 'string') return matches(value) !== isNegated;
      return likeOf(value, given, isNegated);
    });
  }

  #case(node: Case): Compiled {
    const { subject, branches, otherwise } = node;
    if (subject === undefined)
      for (const { when } of branches)
        if (!canBeCondition(when))
          throw this.#error('invalid CASE expression, WHEN expression must be a bool condition', when.start);
    const value = subject && this.compile(subject).evaluate;
    const compiled = branches.map(({ when, result }) => ({
      when: this.compile(when).evaluate,
      result: this.compile(result).evaluate
    }));
    const last = otherwise && this.compile(otherwise).evaluate;
    return {
      evaluate: (tuple) => {
        const sought = value?.(tuple);
        for (const { when, result } of compiled)
          if (value === undefined ? isChosen(when, tuple) : isEqualCase(sought, when(tuple))) return result(tuple);
        return last === undefined ? null : last(tuple);
      }
    };
  }

  #error(fault: string, start: number): SqlError {
    return new SqlError(fault, this.#scope.text, start);
  }
}

/** The value of a literal of the tree, where integers are safe numbers or bigints and all other numbers are floats. */
function literalValue(value: Value): StreamValue {
  if (value instanceof Float) return value.value;
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
  return typeof value === 'bigint' ? integer(value) : (value as StreamValue);
}

function isComparing(operator: string): operator is Comparing {
  return Object.hasOwn(COMPARISONS, operator);
}

function isComputing(operator: string): operator is Computing {
  return Object.hasOwn(COMPUTATIONS, operator);
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
