/**
 * The broker's only source of time. Everything that waits or expires asks it, so a test can turn it.
 *
 * `now()` is wall time for deadlines that are stored or shown; `monotonic()` never steps back and decides everything else
 * (an NTP step must not expire a session).
 */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number;
  /** Milliseconds since an arbitrary start; never runs backwards. */
  monotonic(): number;
  /**
   * Call `run` once after at least `delayMs`. Any delay up to `Infinity` is good: `Infinity` arms nothing and returns undefined.
   * @returns what `clearTimeout` takes
   */
  setTimeout(run: () => void, delayMs: number): unknown;
  /** Forget a timer, armed or not. */
  clearTimeout(timer: unknown): void;
  /** The same time for the library's own timers, where a test clock wants to tell them from the app's. Absent: this clock. */
  readonly internal?: Clock;
}

/** Node's setTimeout fires at once past this delay, so longer ones are cut into slices. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

interface SlicedTimer {
  handle: NodeJS.Timeout | undefined;
}

// Taken at import: a test framework's fake timers and dates must not stop the broker's own clock unless the test asks for it.
const { setTimeout, clearTimeout } = globalThis;
const now = Date.now;
const monotonic = performance.now.bind(performance);

/** The machine's clock. Its timers do not keep the process alive. */
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
      // Node's timers count whole milliseconds of their own and may be one early, too.
      if (monotonic() < dueMs) arm(timer, run, dueMs);
      else run();
    },
    Math.min(Math.max(leftMs, 0), LONGEST_TIMEOUT_MS)
  );
  timer.handle.unref();
}
