import { StateError } from '../../lib/index.ts';

/** Maximum number of changes that wait for the one in progress. */
const MAX_WAITING = 100;

/** Runs changes sequentially. */
export class Changes {
  readonly #closing: AbortSignal;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(closing: AbortSignal) {
    this.#closing = closing;
  }

  /** @throws StateError PLUGINS_BUSY, PLUGINS_CLOSED; errors of the change */
  async run<T>(change: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING)
      throw new StateError('PLUGINS_BUSY', `${MAX_WAITING} changes of plugins are already queued; try again later`);
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
