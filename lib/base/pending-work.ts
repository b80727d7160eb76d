/**
 * Work in flight inside a broker: bytes between streams, output not yet flushed, hooks that have not answered, commits that have not
 * landed. Each begins and ends; `settled` tells when nothing is left. The test kit's clock waits for it after every timer.
 */
export class WorkCount {
  /** A test clock puts itself here: it leaves code of the app out of the count while that waits for the clock itself. */
  watch: (<Q, A>(task: (request: Q) => A, request: Q) => A) | undefined = undefined;
  #count = 0;
  #waiting: (() => void)[] = [];

  /** Pieces of work now in flight. */
  get count(): number {
    return this.#count;
  }

  /** One more piece. */
  begin(): void {
    this.#count++;
  }

  /** One piece is done. */
  end(): void {
    if (--this.#count > 0 || this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Call code of the app, such as a hook. A promise that it returns counts as work until it settles. */
  run<Q, A>(task: (request: Q) => A, request: Q): A {
    return this.watch === undefined ? this.during(task(request)) : this.watch(task, request);
  }

  /** Count what code of the app has answered: a promise is work until it settles. @returns the answer */
  during<A>(answer: A): A {
    const promise = answer as PromiseLike<unknown> | undefined | null;
    if (typeof promise?.then === 'function') {
      this.begin();
      const end = () => this.end();
      promise.then(end, end);
    }
    return answer;
  }

  /** Resolves when the count is, or next becomes, zero. */
  settled(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
