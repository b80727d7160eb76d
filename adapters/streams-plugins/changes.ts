import { StateError } from '../../lib/index.ts';

/** Changes that may wait for the one that is in progress. */
const MAX_WAITING = 100;

/** Runs changes one after the other. */
export class Changes {
  readonly #closing: AbortSignal;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(closing: AbortSignal) {
    this.#closing = closing;
  }

  /** @throws StateError PLUGINS_BUSY, PLUGINS_CLOSED; what the change throws */
  async run<T>(change: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING)
      throw new StateError('PLUGINS_BUSY', `${MAX_WAITING} changes of plugins wait already; try again later`);
    this.#waiting++;
    const result = this.#last.then(() => {
      this.#waiting--;
      this.#closing.throwIfAborted();
      return change();
    });
    this.#last = result.catch(() => {});
    return result;
  }
}
