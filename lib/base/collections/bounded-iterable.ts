/** Maximum number of values that wait to be read. Beyond it the oldest one is dropped. */
const MAX_WAITING = 10_000;
/** Maximum size of these values in bytes, approximately. */
const MAX_BYTES = 33_554_432;

/** Values that are read as they arrive, such as the outputs of rules. The number of unread values is limited. */
export class BoundedIterable<T> implements AsyncIterableIterator<T> {
  readonly #onEnd: () => void;
  readonly #waiting: { readonly value: T; readonly bytes: number }[] = [];
  #bytes = 0;
  #readers: ((result: IteratorResult<T>) => void)[] = [];
  #isEnded = false;
  /** Values that were dropped. */
  dropped = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** @param bytes approximate memory that the value occupies */
  push(value: T, bytes: number): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ value, done: false });
      return;
    }
    this.#waiting.push({ value, bytes });
    this.#bytes += bytes;
    while (this.#waiting.length > MAX_WAITING || (this.#bytes > MAX_BYTES && this.#waiting.length > 1)) {
      this.#take();
      this.dropped++;
    }
  }

  /** End the iteration. Queued values can still be read. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd();
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }

  next(): Promise<IteratorResult<T>> {
    const value = this.#take();
    if (value !== undefined) return Promise.resolve({ value, done: false });
    if (this.#isEnded) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  return(): Promise<IteratorResult<T>> {
    this.#waiting.length = this.#bytes = 0;
    this.end();
    return Promise.resolve({ value: undefined, done: true });
  }

  #take(): T | undefined {
    const first = this.#waiting.shift();
    if (first !== undefined) this.#bytes -= first.bytes;
    return first?.value;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
