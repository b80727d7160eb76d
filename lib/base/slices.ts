import type { Clock } from './clock.ts';

/** Time for the steps of one turn, in milliseconds. */
const SLICE_MS = 5;

/** Dependencies of work in slices. */
interface SliceSetup {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** Time for all steps, in milliseconds. */
  readonly mostMs: number;
  /** The error of work that takes longer. */
  tooLong(): Error;
}

/**
 * Do work in steps, some in each turn of the event loop, so that others are served meanwhile.
 * @param steps yields after each step, and returns the result
 * @throws what a step throws; `tooLong` after the step with which the bound is passed, unless it was the last one
 */
export async function inSlices<T>(steps: Generator<unknown, T>, setup: SliceSetup): Promise<T> {
  const { clock, pause, mostMs, tooLong } = setup;
  try {
    for (let spentMs = 0; ; await pause()) {
      const begin = clock.monotonic();
      let takenMs = 0;
      while (takenMs < SLICE_MS) {
        const { done, value } = steps.next();
        if (done) return value;
        takenMs = clock.monotonic() - begin;
        if (spentMs + takenMs > mostMs) throw tooLong();
      }
      spentMs += takenMs;
    }
  } finally {
    steps.return(undefined as T);
  }
}

/** Do all steps at once. @returns the result */
export function atOnce<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
