import type { RuleOutput } from './types.ts';

/** Most outputs that wait to be read. Beyond it the oldest one is dropped. */
const MOST_WAITING = 10_000;
/** Most bytes of the events of these outputs, approximately. */
const MOST_BYTES = 33_554_432;

/** The outputs of rules, as an iterable. */
export class OutputStream implements AsyncIterableIterator<RuleOutput> {
  readonly #onEnd: () => void;
  readonly #waiting: { readonly output: RuleOutput; readonly bytes: number }[] = [];
  #bytes = 0;
  #readers: ((result: IteratorResult<RuleOutput>) => void)[] = [];
  #isEnded = false;
  /** Outputs that were dropped. */
  dropped = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** @param bytes memory that is kept with it, approximately */
  push(output: RuleOutput, bytes: number): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ value: output, done: false });
      return;
    }
    this.#waiting.push({ output, bytes });
    this.#bytes += bytes;
    while (this.#waiting.length > MOST_WAITING || (this.#bytes > MOST_BYTES && this.#waiting.length > 1)) {
      this.#take();
      this.dropped++;
    }
  }

  /** End it. Outputs that are queued can still be read. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd();
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }

  next(): Promise<IteratorResult<RuleOutput>> {
    const value = this.#take();
    if (value !== undefined) return Promise.resolve({ value, done: false });
    if (this.#isEnded) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  return(): Promise<IteratorResult<RuleOutput>> {
    this.#waiting.length = this.#bytes = 0;
    this.end();
    return Promise.resolve({ value: undefined, done: true });
  }

  #take(): RuleOutput | undefined {
    const first = this.#waiting.shift();
    if (first !== undefined) this.#bytes -= first.bytes;
    return first?.output;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
