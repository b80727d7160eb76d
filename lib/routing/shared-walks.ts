import { Pace, type Pause } from '../base/pace.ts';

/**
 * Walks over all entries of a collection, for lists that have to look at each of them. They run one after the other, so that the memory for one
 * walk is enough. Requests for the same part share the walk that has not begun: what a request finds is never older than the request.
 */
export class SharedWalks {
  readonly #pause: Pause;
  /** Those that have not begun, by what is wanted. */
  readonly #waiting = new Map<string, Promise<unknown>>();
  #last: Promise<unknown> = Promise.resolve();

  /** @param pause waits for the next slice */
  constructor(pause: Pause) {
    this.#pause = pause;
  }

  /**
   * Make a walk, or share one.
   * @param wanted what is wanted, as JSON can write it: equal requests find the same
   * @returns what the walk has found, which several callers may have
   */
  share<T>(wanted: unknown, walk: (pace: Pace) => Promise<T>): Promise<T> {
    const key = JSON.stringify(wanted);
    const waiting = this.#waiting.get(key) as Promise<T> | undefined;
    if (waiting !== undefined) return waiting;
    const found = this.#last.then(async () => {
      const pace = new Pace(this.#pause);
      await pace.next();
      this.#waiting.delete(key);
      return walk(pace);
    });
    this.#waiting.set(key, found);
    this.#last = found.catch(() => undefined); // the callers receive it
    return found;
  }
}
