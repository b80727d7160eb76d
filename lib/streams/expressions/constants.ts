import { constantOf } from '../../sql/compile.ts';
import { CompileBudget } from '../../sql/compile-budget.ts';
import type { Expression } from '../../sql/tree.ts';
import type { Evaluate, Tuple } from '../values/tuple.ts';
import type { StreamValue } from '../values/values.ts';
import type { CompiledExpression } from './scope.ts';

const NO_TUPLE = undefined as unknown as Tuple;

/**
 * The constants of a statement: expressions that have the same value in all rows. Each is evaluated once, however often
 * the statement is compiled, within a common budget; those beyond the budget are evaluated for each row.
 */
export class Constants {
  readonly #budget = new CompileBudget();
  readonly #known = new WeakMap<Expression, CompiledExpression>();
  /** Expressions that fail or exceed the budget. */
  readonly #refused = new WeakSet<Expression>();
  readonly #patterns = new Set<string>();

  /** The compiled form of an expression that is a constant. */
  known(node: Expression): CompiledExpression | undefined {
    return this.#known.get(node);
  }

  /**
   * Compile an expression to a constant if all of its parts are constant.
   * @param evaluate the compiled form for each row, used if it is not a constant, if it fails, so that each row fails,
   *   or if it exceeds the budget
   */
  fold(node: Expression, parts: readonly CompiledExpression[], evaluate: Evaluate): CompiledExpression {
    if (this.#refused.has(node) || parts.some(({ constant }) => constant === undefined)) return { evaluate };
    const value = this.#valueOf(parts, evaluate);
    if (value === undefined) {
      this.#refused.add(node);
      return { evaluate };
    }
    const compiled = constantOf(value);
    this.#known.set(node, compiled);
    return compiled;
  }

  /**
   * Compile a regular expression of the statement to check it, once each and within the budget.
   * @throws the errors of `compile`
   */
  checkPattern(text: string, compile: (text: string) => unknown): void {
    if (this.#patterns.has(text)) return;
    if (this.#budget.takePattern(text)) compile(text);
    this.#patterns.add(text);
  }

  #valueOf(parts: readonly CompiledExpression[], evaluate: Evaluate): StreamValue {
    for (const { constant } of parts) if (!this.#budget.takeValue(constant?.value)) return undefined;
    try {
      const value = evaluate(NO_TUPLE) ?? null;
      return this.#budget.takeValue(value) ? value : undefined;
    } catch {
      return undefined; // each row fails in the same way
    }
  }
}
