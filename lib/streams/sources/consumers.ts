import { type Consumer, NO_CONSUMER } from '../graph/consumer.ts';
import type { StreamRow } from '../values/tuple.ts';

/**
 * The rules that receive the rows of a source, in the order in which they were attached.
 *
 * A rule that is attached while a row is being processed receives the next one; detached consumers receive no further
 * rows.
 */
export class Consumers {
  readonly #list: Consumer[] = [];
  readonly #failed: (error: unknown) => void;
  #isBusy = false;
  #hasGaps = false;

  /** @param failed called with the error of a rule; the others still receive the row */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  add(consumer: Consumer): void {
    this.#list.push(consumer);
  }

  /** Replace a consumer, keeping its position. */
  swap(consumer: Consumer, next: Consumer): void {
    const at = this.#list.indexOf(consumer);
    if (at !== -1) this.#list[at] = next;
  }

  delete(consumer: Consumer): boolean {
    const at = this.#list.indexOf(consumer);
    if (at === -1) return false;
    if (this.#isBusy) {
      this.#list[at] = NO_CONSUMER;
      this.#hasGaps = true;
    } else this.#list.splice(at, 1);
    return true;
  }

  /** Push a row to every consumer. Not re-entrant. */
  push(row: StreamRow): void {
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

  /** Call a function for each consumer; an error is reported and does not stop the loop. */
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
    for (const each of this.#list) if (each !== NO_CONSUMER) this.#list[kept++] = each;
    this.#list.length = kept;
    this.#hasGaps = false;
  }
}
