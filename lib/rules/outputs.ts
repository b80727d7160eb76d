import type { RuleOutput } from './types.ts';

/** Most outputs that wait to be read. Beyond it the oldest one is dropped. */
const MOST_WAITING = 10_000;

/** The outputs of rules, as an iterable. */
export class OutputStream implements AsyncIterableIterator<RuleOutput> {
  readonly #onEnd: () => void;
  readonly #waiting: RuleOutput[] = [];
  #readers: ((result: IteratorResult<RuleOutput>) => void)[] = [];
  #isEnded = false;
  /** Outputs that were dropped. */
  dropped = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  push(output: RuleOutput): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ value: output, done: false });
      return;
    }
    this.#waiting.push(output);
    if (this.#waiting.length <= MOST_WAITING) return;
    this.#waiting.shift();
    this.dropped++;
  }

  /** End it. Outputs that are queued can still be read. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd();
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }

  next(): Promise<IteratorResult<RuleOutput>> {
    const value = this.#waiting.shift();
    if (value !== undefined) return Promise.resolve({ value, done: false });
    if (this.#isEnded) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  return(): Promise<IteratorResult<RuleOutput>> {
    this.#waiting.length = 0;
    this.end();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
