import type { Cause } from '../../values/cause.ts';

/**
 * The causes of the rows of a window that may become its longest one: each is longer than all later ones, so there are
 * few.
 */
export class HeldCauses {
  readonly #held: { readonly number: number; readonly cause: Cause }[] = [];

  /** The longest cause; undefined if no row has one. */
  get deepest(): Cause | undefined {
    return this.#held[0]?.cause;
  }

  /** @param number the number of its row; numbers increase */
  add(cause: Cause, number: number): void {
    while (this.#held.length > 0 && this.#held[this.#held.length - 1].cause.length <= cause.length) this.#held.pop();
    this.#held.push({ number, cause });
  }

  /** Remove the causes of rows before a number. */
  dropBefore(number: number): void {
    while (this.#held.length > 0 && this.#held[0].number < number) this.#held.shift();
  }
}
