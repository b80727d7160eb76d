import { Pace, type Pause } from '../base/pace.ts';

/**
 * Walks over all entries of a collection, for lists that have to examine each of them. They run one after the other, so that only one of
 * them needs memory at a time. Requests for the same part share the walk that has not started: the result of a request is never older than
 * the request.
 */
export class SharedWalks {
  readonly #pause: Pause;
  /** The walks that have not started, by what they search. */
  readonly #waiting = new Map<string, Promise<unknown>>();
  #last: Promise<unknown> = Promise.resolve();

  /** @param pause waits for the next slice */
  constructor(pause: Pause) {
    this.#pause = pause;
  }

  /**
   * Start a walk, or share one.
   * @param wanted describes the request as a value that JSON can represent: equal requests share a walk
   * @returns the result of the walk, which several callers may get
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
    this.#last = found.catch(() => undefined); // the callers receive the error
    return found;
  }
}
