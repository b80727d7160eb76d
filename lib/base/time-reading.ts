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

  /** Use the monotonic time that a timer has read when it rang. */
  rang(nowMs: number): void {
    this.nowMs = nowMs;
  }

  /** Read only the monotonic time; sufficient if no message is accepted in the meantime. */
  readMonotonic(): number {
    this.nowMs = this.#clock.monotonic();
    return this.nowMs;
  }
}
