import type { Clock } from './clock.ts';

/** Time for the steps of one slice, in milliseconds. */
const SLICE_MS = 5;

/** The time that work in steps takes, in its turns alone. */
export class WorkTime {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #mostMs: number;
  #spentMs = 0;
  #begunMs: number | undefined = undefined;

  /** @param mostMs time for all steps, in milliseconds */
  constructor(clock: Pick<Clock, 'monotonic'>, mostMs: number) {
    this.#clock = clock;
    this.#mostMs = mostMs;
  }

  /** Note that a turn begins. */
  begin(): void {
    this.#begunMs = this.#clock.monotonic();
  }

  /** Note that a turn ends. */
  end(): void {
    this.#spentMs += this.turnMs;
    this.#begunMs = undefined;
  }

  /** Time in this turn, in milliseconds. */
  get turnMs(): number {
    return this.#begunMs === undefined ? 0 : this.#clock.monotonic() - this.#begunMs;
  }

  /** True if the steps have taken more time than is allowed for all of them. Long steps check this, and fail. */
  get isOver(): boolean {
    return this.#spentMs + this.turnMs > this.#mostMs;
  }
}

/** Dependencies of work in slices. */
interface SliceSetup {
  readonly time: WorkTime;
  /** Wait for the next slice of long work. */
  pause(): Promise<void>;
  /** The error of work that takes longer. */
  tooLong(): Error;
}

/**
 * Do work in steps, some in each slice, so that others are served in the meantime.
 * @param steps yields after each step, and returns the result
 * @throws what a step throws; `tooLong` if the time is over when a step yields or throws
 */
export async function inSlices<T>(steps: Generator<unknown, T>, setup: SliceSetup): Promise<T> {
  const { time, pause, tooLong } = setup;
  try {
    for (;;) {
      await pause();
      time.begin();
      do {
        const { done, value } = steps.next();
        if (done) return value;
        if (time.isOver) throw tooLong();
      } while (time.turnMs < SLICE_MS);
      time.end();
    }
  } catch (error) {
    throw time.isOver ? tooLong() : error;
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
