/** Notifies those who wait for something that arrives, such as a line or a message. */
export class Arrivals {
  readonly #waiting = new Set<() => void>();

  /** Lets all who wait look again. */
  notify(): void {
    for (const look of this.#waiting) look();
  }

  /**
   * Resolves with what `find` returns, when it is not undefined.
   * @param ended rejects the wait when it resolves
   * @throws Error with the text of `failure`, also after a minute
   */
  wait<T>(find: () => T | undefined, failure: () => string, ended?: Promise<unknown>): Promise<T> {
    return new Promise((resolve, reject) => {
      const finish = () => {
        clearTimeout(timer);
        this.#waiting.delete(look);
      };
      const fail = (why: string) => {
        finish();
        reject(new Error(`${why}: ${failure()}`));
      };
      const timer = setTimeout(fail, 60_000, 'after a minute');
      const look = () => {
        const found = find();
        if (found === undefined) return;
        finish();
        resolve(found);
      };
      this.#waiting.add(look);
      look();
      void ended?.then(() => this.#waiting.has(look) && fail('the process has ended'));
    });
  }
}
