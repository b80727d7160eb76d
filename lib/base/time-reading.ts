import type { Clock } from './clock.ts';

/** The time as last read from the clock. It is read once for each chunk of input, timer and turn, instead of for each packet. */
export class TimeReading {
  /** Monotonic time, in milliseconds. */
  nowMs = 0;
  /** Wall-clock time, in milliseconds since 1970. */
  wallMs = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.read();
  }

  /** Read the monotonic and the wall-clock time. */
  read(): void {
    this.nowMs = this.#clock.monotonic();
    this.wallMs = this.#clock.now();
  }

  /** Use the monotonic time that a timer has read when it rang, and read the wall-clock time. */
  rang(nowMs: number): void {
    this.nowMs = nowMs;
    this.wallMs = this.#clock.now();
  }
}
