import type { Cause } from '../../values/cause.ts';

/** The causes of the rows of a window that may be its deepest one: each is deeper than all later ones, so there are few. */
export class HeldCauses {
  readonly #held: { readonly number: number; readonly cause: Cause }[] = [];

  /** The deepest one; undefined: no row has one. */
  get deepest(): Cause | undefined {
    return this.#held[0]?.cause;
  }

  /** @param number that of its row, which only grows */
  add(cause: Cause, number: number): void {
    while (this.#held.length > 0 && this.#held[this.#held.length - 1].cause.length <= cause.length) this.#held.pop();
    this.#held.push({ number, cause });
  }

  /** The rows before a number have left. */
  dropBefore(number: number): void {
    while (this.#held.length > 0 && this.#held[0].number < number) this.#held.shift();
  }
}
