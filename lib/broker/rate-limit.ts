import type { Rate } from '../options-table.ts';

/**
 * Token bucket of one client: `rate.amount` at once, refilled evenly over `rate.perMs`. Nothing is refused: whoever takes more than
 * there is runs into debt and is told how long to pause.
 */
export class RateLimit {
  readonly #capacity: number;
  readonly #perMs: number;
  #left: number;
  #atMs = -Infinity;

  constructor(rate: Rate) {
    this.#capacity = rate.amount;
    this.#perMs = rate.amount / rate.perMs;
    this.#left = rate.amount;
  }

  /**
   * Take what has just been read.
   * @param amount messages or bytes
   * @param nowMs monotonic milliseconds
   * @returns whole milliseconds to pause reading for; 0: go on
   */
  take(amount: number, nowMs: number): number {
    this.#left = Math.min(this.#capacity, this.#left + (nowMs - this.#atMs) * this.#perMs) - amount;
    this.#atMs = nowMs;
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left / this.#perMs);
  }
}
