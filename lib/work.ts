/**
 * Work in flight inside a broker: bytes between streams, output not yet flushed, hooks that have not answered, commits that have not
 * landed. Each begins and ends; `settled` tells when nothing is left. The test kit's clock waits for it after every timer.
 */
export class WorkCount {
  #count = 0;
  #waiting: (() => void)[] = [];

  /** Pieces of work now in flight. */
  get count(): number {
    return this.#count;
  }

  begin(): void {
    this.#count++;
  }

  end(): void {
    if (--this.#count > 0 || this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when the count is, or next becomes, zero. */
  settled(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
