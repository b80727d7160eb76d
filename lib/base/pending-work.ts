// Imported by name, these timers are not replaced by the fake timers of a test framework.
import { clearTimeout, setTimeout } from 'node:timers';

/** Time for which virtual time waits for another process, in milliseconds of real time. */
const OTHER_PROCESS_MS = 250;

/**
 * Counts the pending work of a broker: bytes between streams, output that is not flushed, unanswered hooks and unfinished commits.
 *
 * The clock of the test kit waits after every timer until the count is zero.
 */
export class WorkCount {
  #watch: (<Q, A>(task: (request: Q) => A, request: Q) => A) | undefined = undefined;
  #count = 0;
  #waiting: (() => void)[] = [];

  /** Number of pending operations. */
  get count(): number {
    return this.#count;
  }

  /** Let a test clock call the code of the application, so that code that waits for the clock does not count; undefined: stop this. */
  watchedBy(watch: (<Q, A>(task: (request: Q) => A, request: Q) => A) | undefined): void {
    this.#watch = watch;
  }

  /** True while a test clock calls the code of the application. */
  get isWatched(): boolean {
    return this.#watch !== undefined;
  }

  /** Count an operation that begins. */
  begin(): void {
    this.#count++;
  }

  /** Count an operation that has ended. */
  end(): void {
    if (--this.#count > 0 || this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Call code of the application, such as a hook. If it returns a promise, the promise counts as work until it settles. */
  run<Q, A>(task: (request: Q) => A, request: Q): A {
    return this.#watch === undefined ? this.during(task(request)) : this.#watch(task, request);
  }

  /** Count the answer of application code: if it is a promise, it counts as work until it settles. @returns the answer */
  during<A>(answer: A): A {
    const promise = answer as PromiseLike<unknown> | undefined | null;
    if (typeof promise?.then === 'function') {
      this.begin();
      const end = () => this.end();
      promise.then(end, end);
    }
    return answer;
  }

  /**
   * Count the work of another process, but only for a short time, so that virtual time continues while a server does not answer. Without a
   * test clock, nothing is counted.
   */
  forAWhile(promise: Promise<unknown>): void {
    if (this.#watch === undefined) return;
    let isOver = false;
    const end = () => {
      if (!isOver) this.end();
      isOver = true;
      clearTimeout(timer);
    };
    this.begin();
    const timer = setTimeout(end, OTHER_PROCESS_MS);
    promise.then(end, end);
  }

  /** Wait until the count is zero; resolves at once if it is zero now. */
  settled(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
