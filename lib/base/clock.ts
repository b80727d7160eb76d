/**
 * The only source of time of a broker. A test can replace it by a virtual clock.
 *
 * `now()` is used for times that are stored or shown. Everything else uses `monotonic()`, so that a correction of the system time does not
 * expire a session.
 */
export interface Clock {
  /** Get the wall-clock time, in milliseconds since 1970 (UTC). */
  now(): number;
  /** Get the milliseconds since an arbitrary start; the value never decreases. */
  monotonic(): number;
  /**
   * Call `run` once, after at least `delayMs`. There is no maximum delay. With `Infinity`, no timer is set and undefined is returned.
   * @returns the timer, for `clearTimeout`
   */
  setTimeout(run: () => void, delayMs: number): unknown;
  /** Cancel a timer. Has no effect if it has fired or is undefined. */
  clearTimeout(timer: unknown): void;
  /** The clock for the timers of the library, if a test clock distinguishes them from those of the application. Default: this clock. */
  readonly internal?: Clock;
}

/** Node's setTimeout fires at once if the delay is longer than this; longer delays are split. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

interface SlicedTimer {
  handle: NodeJS.Timeout | undefined;
}

// Saved at import, so that fake timers and dates of a test framework do not stop this clock.
const { setTimeout, clearTimeout } = globalThis;
const now = Date.now;
const monotonic = performance.now.bind(performance);

/** The clock of the system. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now,
  monotonic,
  setTimeout(run, delayMs) {
    if (delayMs === Infinity) return undefined;
    const timer: SlicedTimer = { handle: undefined };
    arm(timer, run, monotonic() + delayMs);
    return timer;
  },
  clearTimeout(timer) {
    clearTimeout((timer as SlicedTimer | undefined)?.handle);
  }
};

function arm(timer: SlicedTimer, run: () => void, dueMs: number): void {
  const leftMs = Math.ceil(dueMs - monotonic());
  timer.handle = setTimeout(
    () => {
      // Node rounds times to whole milliseconds, so a timer may fire up to 1 ms early.
      if (monotonic() < dueMs) arm(timer, run, dueMs);
      else run();
    },
    Math.min(Math.max(leftMs, 0), MAX_TIMEOUT_MS)
  );
  timer.handle.unref();
}
