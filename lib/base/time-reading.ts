import type { Clock } from './clock.ts';

/** The time as it was last read from the clock: once for each chunk of input, timer and turn, not for each packet. */
export class TimeReading {
  /** Monotonic milliseconds. */
  nowMs = 0;
  /** Wall-clock milliseconds. */
  wallMs = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.read();
  }

  /** Read both clocks. */
  read(): void {
    this.nowMs = this.#clock.monotonic();
    this.wallMs = this.#clock.now();
  }

  /** Read the monotonic clock alone: enough where no message is taken in. */
  readMonotonic(): number {
    this.nowMs = this.#clock.monotonic();
    return this.nowMs;
  }
}
