import { checkedSize } from './patterns.ts';
import { weightOf } from './weight.ts';

/** Most that is computed when a statement is compiled: the weight of the arguments and results of its constant calls. 1 MiB. */
const MAX_COMPILED = 1_048_576;
/** Cost of a part of a regular expression, in the same unit. */
const PATTERN_PART = 200;

/**
 * The work that one statement causes when it is compiled, besides parsing it: constant calls that are evaluated, and regular expressions that are
 * checked. When it is used up, the others are left for the rows. It counts work instead of time, so that a statement is always compiled alike.
 */
export class CompileBudget {
  #left = MAX_COMPILED;

  /** Take the weight of a value. @returns false: there is not enough left, and nothing is left now */
  takeValue(value: unknown): boolean {
    return this.#take(weightOf(value, this.#left));
  }

  /** Take the cost of a regular expression. @returns false: there is not enough left, and nothing is left now. @throws SqlFailure if it is too large at all */
  takePattern(text: string): boolean {
    return this.#take(PATTERN_PART * checkedSize(text));
  }

  #take(cost: number): boolean {
    this.#left = cost <= this.#left ? this.#left - cost : 0;
    return this.#left > 0;
  }
}
