import { type Consumer, NOBODY } from '../graph/consumer.ts';
import type { Row } from '../values/tuple.ts';

/**
 * The rules that get the rows of a source, in the order in which they were attached.
 *
 * A rule that is attached in the middle of a row gets the next one; a rule that is detached gets nothing more.
 */
export class Consumers {
  readonly #list: Consumer[] = [];
  readonly #failed: (error: unknown) => void;
  #isBusy = false;
  #hasGaps = false;

  /** @param failed called with what a rule has thrown; the others get the row all the same */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  add(consumer: Consumer): void {
    this.#list.push(consumer);
  }

  /** Replace a consumer at its place. */
  swap(consumer: Consumer, next: Consumer): void {
    const at = this.#list.indexOf(consumer);
    if (at !== -1) this.#list[at] = next;
  }

  delete(consumer: Consumer): boolean {
    const at = this.#list.indexOf(consumer);
    if (at === -1) return false;
    if (this.#isBusy) {
      this.#list[at] = NOBODY;
      this.#hasGaps = true;
    } else this.#list.splice(at, 1);
    return true;
  }

  /** Hand a row to all. It does not call itself. */
  push(row: Row): void {
    const list = this.#list;
    const count = list.length;
    this.#isBusy = true;
    let at = 0;
    while (at < count)
      try {
        for (; at < count; at++) list[at].push(row);
      } catch (error) {
        at++;
        this.#failed(error);
      }
    this.#isBusy = false;
    if (this.#hasGaps) this.#compact();
  }

  /** Call each, with the same care. */
  each(call: (consumer: Consumer) => void): void {
    const list = this.#list;
    const count = list.length;
    this.#isBusy = true;
    for (let at = 0; at < count; at++)
      try {
        call(list[at]);
      } catch (error) {
        this.#failed(error);
      }
    this.#isBusy = false;
    if (this.#hasGaps) this.#compact();
  }

  #compact(): void {
    let kept = 0;
    for (const each of this.#list) if (each !== NOBODY) this.#list[kept++] = each;
    this.#list.length = kept;
    this.#hasGaps = false;
  }
}
