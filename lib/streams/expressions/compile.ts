// An expression is compiled several times: to check it, and for each start of its rule, since some functions depend
// on the rule; constants are folded once for a statement, within a budget. Only `NameScope` knows what a name means,
// so nothing here depends on streams or rules.

import { type Closure, compileExpression, type ExpressionContext } from '../../sql/compile.ts';
import { SqlError } from '../../sql/sql-error.ts';
import type { Access, Between, Call, Expression, Like, Path, Step } from '../../sql/tree.ts';
import { weighed } from '../limits.ts';
import type { Evaluate, Tuple } from '../values/tuple.ts';
import type { StreamValue } from '../values/values.ts';
import { compileCall } from './calls.ts';
import { isBeyond, likeOf } from './conditions.ts';
import { likePattern } from './like.ts';
import { indexStep, keyStep, partStep, type StepClosure } from './paths.ts';
import type { CompiledExpression, NameScope } from './scope.ts';
import { STREAMS } from './semantics.ts';

/** Compile an expression. @throws SqlError for an unknown name or function, or arguments that it does not accept */
export function compileNode(node: Expression, scope: NameScope): CompiledExpression {
  return compileExpression(node, new StreamContext(scope));
}

class StreamContext implements ExpressionContext<Tuple, StreamValue> {
  readonly semantics = STREAMS;
  readonly #scope: NameScope;

  constructor(scope: NameScope) {
    this.#scope = scope;
  }

  get text(): string {
    return this.#scope.text;
  }

  known(node: Expression): CompiledExpression | undefined {
    return this.#scope.constants.known(node);
  }

  fold(node: Expression, parts: readonly CompiledExpression[], evaluate: Evaluate): CompiledExpression {
    return this.#scope.constants.fold(node, parts, evaluate);
  }

  path(node: Path | Access): CompiledExpression {
    if (node.type === 'access') return this.#stepsOf(this.#compile(node.subject), node.steps);
    const head = this.#scope.resolve(node);
    if (head.type === 'value') return this.#stepsOf(head, node.steps);
    const { name, source, taken } = head;
    const evaluate: Evaluate =
      source === undefined ? (tuple) => tuple.column(name) : (tuple) => tuple.columnOf(source, name);
    if (node.steps.length === taken) return { evaluate, column: { name, source } };
    return this.#stepsOf({ evaluate }, node.steps.slice(taken));
  }

  call(node: Call): CompiledExpression {
    return compileCall(node, this.#scope, (arg) => this.#compile(arg));
  }

  list(items: readonly Closure<Tuple, StreamValue>[]): Evaluate {
    return weighed((tuple) => items.map((item) => item(tuple) ?? null), 'a list', this.#scope.tools);
  }

  other(node: Expression): CompiledExpression {
    switch (node.type) {
      case 'between':
        return this.#between(node);
      case 'like':
        return this.#like(node);
      case 'binary':
        throw this.#error(`statements over streams have no operator ${node.operator}`, node.start);
      default:
        throw this.#error('* is allowed only as an argument of functions such as count(*)', node.start);
    }
  }

  #compile(node: Expression): CompiledExpression {
    return compileExpression(node, this);
  }

  #stepsOf(start: CompiledExpression, steps: readonly Step[]): CompiledExpression {
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

  #step(step: Step): StepClosure {
    switch (step.type) {
      case 'key':
        return keyStep(step.key);
      case 'index':
        return indexStep(this.#compile(step.index).evaluate);
      case 'part':
        return partStep(step.from && this.#compile(step.from).evaluate, step.to && this.#compile(step.to).evaluate);
      case 'slice': // `a[1..2]` includes both ends
        return partStep(
          () => BigInt(step.from),
          () => BigInt(step.to + 1)
        );
    }
  }

  #between(node: Between): CompiledExpression {
    const { isNegated } = node;
    const parts = [node.subject, node.low, node.high].map((part) => this.#compile(part));
    const [subject, low, high] = parts.map(({ evaluate }) => evaluate);
    return this.fold(node, parts, (tuple) => {
      const value = subject(tuple);
      if (isNegated) return isBeyond('<', value, low(tuple)) || isBeyond('>', value, high(tuple));
      return isBeyond('>=', value, low(tuple)) && isBeyond('<=', value, high(tuple));
    });
  }

  #like(node: Like): CompiledExpression {
    const { pattern: patternNode, isNegated } = node;
    const subject = this.#compile(node.subject);
    const pattern = this.#compile(patternNode);
    const { evaluate } = subject;
    const given = pattern.constant?.value;
    if (typeof given !== 'string') {
      if (given !== undefined && given !== null)
        throw this.#error('the pattern of LIKE must be a string', patternNode.start);
      return { evaluate: (tuple) => likeOf(evaluate(tuple), pattern.evaluate(tuple), isNegated) };
    }
    const matches = likePattern(given);
    return this.fold(node, [subject], (tuple) => {
      const value = evaluate(tuple);
      if (typeof value === 'string') return matches(value) !== isNegated;
      return likeOf(value, given, isNegated);
    });
  }

  #error(fault: string, start: number): SqlError {
    return new SqlError(fault, this.text, start);
  }
}
