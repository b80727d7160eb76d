import type { Clock } from '../../lib/base/clock.ts';

interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

/** If more timers than this ring at the same time, each of them sets the next one: the clock would never advance. */
const MAX_RINGS = 10_000;

/** A clock that moves only on request, and calls due timers synchronously, in order of due time. */
export class ManualClock implements Clock {
  /** The number of calls of `setTimeout`. */
  timersSet = 0;
  /** Wall time minus monotonic time. */
  wallOffsetMs: number;
  #nowMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(wallStartMs = 0) {
    this.wallOffsetMs = wallStartMs;
  }

  now(): number {
    return this.wallOffsetMs + this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  setTimeout(run: () => void, delayMs: number): Timer {
    this.timersSet++;
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), run };
    this.#timers.add(timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as Timer);
  }

  /** The number of pending timers. */
  get pending(): number {
    return this.#timers.size;
  }

  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    let rings = 0;
    for (let timer = this.#first(); timer !== undefined && timer.dueMs <= untilMs; timer = this.#first()) {
      this.#timers.delete(timer);
      if (timer.dueMs > this.#nowMs) rings = 0;
      else if (++rings > MAX_RINGS)
        throw new Error(`more than ${MAX_RINGS} timers were set for ${this.#nowMs} ms, one by another`);
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.run();
    }
    this.#nowMs = untilMs;
  }

  /** Lets time pass without calling timers, as when the event loop is blocked. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) if (first === undefined || timer.dueMs < first.dueMs) first = timer;
    return first;
  }
}
