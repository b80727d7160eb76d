import { CompileBudget } from '../../sql/compile-budget.ts';
import type { Expression } from '../../sql/tree.ts';
import type { Evaluate, Tuple } from '../values/tuple.ts';
import type { Value } from '../values/values.ts';
import { type Compiled, constantOf } from './scope.ts';

const NO_TUPLE = undefined as unknown as Tuple;

/**
 * The constants of a statement: expressions that have the same value in all rows. Each is evaluated once, however often the statement is compiled, and
 * all of them within a budget; those beyond it are evaluated for each row.
 */
export class Constants {
  readonly #budget = new CompileBudget();
  readonly #known = new WeakMap<Expression, Compiled>();
  /** Expressions that fail, or are beyond the budget. */
  readonly #refused = new WeakSet<Expression>();
  readonly #patterns = new Set<string>();

  /** What an expression has been compiled to, if it is a constant. */
  known(node: Expression): Compiled | undefined {
    return this.#known.get(node);
  }

  /**
   * Compile an expression to a constant, if all of its parts are constant.
   * @param evaluate compiled for each row if it is not a constant: it fails, so that each row fails, or it is beyond the budget
   */
  fold(node: Expression, parts: readonly Compiled[], evaluate: Evaluate): Compiled {
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

  /** Compile a regular expression of the statement to check it: each once, and none beyond the budget. @throws what `compile` throws */
  checkPattern(text: string, compile: (text: string) => unknown): void {
    if (this.#patterns.has(text)) return;
    if (this.#budget.takePattern(text)) compile(text);
    this.#patterns.add(text);
  }

  #valueOf(parts: readonly Compiled[], evaluate: Evaluate): Value {
    for (const { constant } of parts) if (!this.#budget.takeValue(constant?.value)) return undefined;
    try {
      const value = evaluate(NO_TUPLE) ?? null;
      return this.#budget.takeValue(value) ? value : undefined;
    } catch {
      return undefined; // each row fails in the same way
    }
  }
}
