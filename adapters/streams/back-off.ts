import type { Clock } from '../../lib/index.ts';

const FIRST_MS = 1000;
const MAX_MS = 30_000;

/** Delays between attempts, growing from one second to thirty. */
export class BackOff {
  readonly #clock: Clock;
  #delayMs = FIRST_MS;
  #timer: unknown;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Call a function after the next delay, in place of a pending one. */
  later(run: () => void): void {
    this.cancel();
    this.#timer = this.#clock.setTimeout(run, this.#delayMs * (0.9 + 0.2 * Math.random()));
    this.#delayMs = Math.min(this.#delayMs * 2, MAX_MS);
  }

  /** Reset the delay after a successful attempt. */
  reset(): void {
    this.#delayMs = FIRST_MS;
  }

  cancel(): void {
    this.#clock.clearTimeout(this.#timer);
  }
}
