// All long work of a broker shares the slices of a turn. Lists, exports, imports and tests of rules are walked in
// slices of about a millisecond. When each had a slice in every turn, 100 lists at once made turns of 0.1 to 0.6 s:
// 100 slices in one turn, and between them young garbage collections of about 100 ms each, because 100 pages of
// 10,000 records were in memory. `SliceQueue` (base) runs waiting slices one after the other for 4 ms in each turn.
// New work gets every second slice, so a short list does not wait for long ones; of the work that goes on, few take
// turns until they have ended or wait for their clients, so that little is in memory. A page is read in parts while
// it is sent (`Directory.parts`), so a client that does not read holds one part, and no other client waits for it.
// Sessions and streams do not use the queue: nothing of a client waits for a list. `npm run bench -- --only rest`:
// the longest turn was 400 to 600 ms, and is 10 to 24 ms.

// Imported by name, this function and `nextTick` below are not replaced by the fake timers of a test framework.
import { setImmediate } from 'node:timers';
import type { Clock } from '../clock.ts';
import type { WorkCount } from '../pending-work.ts';

/** Not imported from `node:process`: that import opens the standard streams. */
const { nextTick } = process;
/** Maximum number of slices in one turn of the event loop. A slice of a list takes about 1 ms. */
export const SLICES_AT_ONCE = 16;
/** Time after which no further slice starts in a turn, in milliseconds. */
const SLICES_MS = 4;
/** Number of tasks that take turns. The others wait until one of these has ended or waits for something else, such as its client. */
const IN_ROTATION = 8;

/**
 * The slices of long tasks that only their own caller waits for, such as lists. All such tasks of a broker share the time of this queue, so
 * the length of a turn does not depend on how many lists are read at the same time.
 *
 * When a turn begins, waiting slices run one after the other until the time of the turn is used up; sockets are served before the next
 * ones. Every second slice is the first one of its task, if there is one, so short tasks do not wait for long ones. Of the others, few are
 * in rotation, so that the results of slices do not stay in memory for all tasks at once. A task that is alone has one slice in each turn.
 */
export class SliceQueue {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #work: Pick<WorkCount, 'begin' | 'end'>;
  readonly #first: (() => void)[] = [];
  readonly #further: (() => void)[] = [];
  #isFirstNext = true;
  #isScheduled = false;
  /** Number of slices that may still start in this turn, and the time after which none does. */
  #left = 0;
  #untilMs = 0;

  /** @param work counts the slices, so that a virtual clock waits for them */
  constructor(clock: Pick<Clock, 'monotonic'>, work: Pick<WorkCount, 'begin' | 'end'>) {
    this.#clock = clock;
    this.#work = work;
  }

  /**
   * Wait for the next slice, which ends when the caller waits for something else.
   * @param had number of slices that the task has had; default: it is in rotation
   */
  next(had = Infinity): Promise<void> {
    return new Promise((resolve) => {
      this.#work.begin();
      if (had === 0) this.#first.push(resolve);
      else this.#further.splice(had === 1 ? this.#further.length : IN_ROTATION, 0, resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#begin);
  }

  readonly #begin = (): void => {
    // a task that is alone is to have one slice in a turn: its requests from now on are not counted
    this.#left = Math.min(SLICES_AT_ONCE, this.#first.length + this.#further.length);
    this.#untilMs = this.#clock.monotonic() + SLICES_MS;
    this.#run();
  };

  readonly #run = (): void => {
    this.#left--;
    const [some, others] = this.#isFirstNext ? [this.#first, this.#further] : [this.#further, this.#first];
    this.#isFirstNext = !this.#isFirstNext;
    const resolve = some.shift() ?? others.shift();
    resolve?.();
    // a tick that a promise requests comes when no promise has anything left to do: when the slice has ended
    void Promise.resolve().then(() => nextTick(this.#ended));
  };

  readonly #ended = (): void => {
    this.#work.end();
    if (this.#left > 0 && this.#clock.monotonic() < this.#untilMs) {
      this.#run();
      return;
    }
    this.#isScheduled = false;
    if (this.#first.length + this.#further.length > 0) this.#schedule();
  };
}
