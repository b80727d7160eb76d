import { checkedSize } from './patterns.ts';
import { weightOf } from './weight.ts';

/** Maximum work of compiling a statement: the weight of the arguments and results of its constant calls. 1 MiB. */
const MAX_COMPILED = 1_048_576;
/** Cost of a part of a regular expression, in the same unit. */
const PATTERN_PART = 200;

/**
 * The work of compiling one statement, apart from parsing: evaluating constant calls and checking regular expressions.
 * When the budget is used up, the rest is evaluated for each row. Work is counted instead of time, so that a statement
 * always compiles the same way.
 */
export class CompileBudget {
  #left = MAX_COMPILED;

  /** Take the weight of a value. @returns false if not enough is left; the budget is then used up */
  takeValue(value: unknown): boolean {
    return this.#take(weightOf(value, this.#left));
  }

  /**
   * Take the cost of a regular expression. @returns false if not enough is left; the budget is then used up. @throws
   * SqlFailure if the expression exceeds the general limit
   */
  takePattern(text: string): boolean {
    return this.#take(PATTERN_PART * checkedSize(text));
  }

  #take(cost: number): boolean {
    this.#left = cost <= this.#left ? this.#left - cost : 0;
    return this.#left > 0;
  }
}
