import { type Collection, rangeOf, type Tuple } from '../../values/tuple.ts';
import { GroupFailures } from '../groups.ts';
import type { OperatorSetup, Timers } from '../operator.ts';
import type { Contents } from './contents.ts';

/** Emit the contents of a window. If they cannot be read, the emission is an error. */
export function emit(setup: OperatorSetup<Collection>, contents: Contents, start: number, end: number): void {
  emitThen(setup, contents, { start, end }, false);
}

/**
 * Emit the contents of a window and clear them. Rows that the emission causes immediately belong to the next window.
 */
export function emitAndClear(setup: OperatorSetup<Collection>, contents: Contents, start: number, end: number): void {
  emitThen(setup, contents, { start, end }, true);
}

function emitThen(
  setup: OperatorSetup<Collection>,
  contents: Contents,
  { start, end }: { readonly start: number; readonly end: number },
  isCleared: boolean
): void {
  const { cause } = contents;
  const failures = new GroupFailures();
  let tuples: readonly Tuple[];
  try {
    tuples = contents.read(end, failures);
  } catch (error) {
    if (isCleared) contents.clear();
    setup.failed(error, cause);
    return;
  }
  if (isCleared) contents.clear();
  failures.report(setup, cause);
  if (tuples.length > 0 || failures.isEmpty) setup.output.push({ tuples, range: rangeOf(start, end, cause) });
}

/**
 * The times of the rows of one window, which never decrease. In processing time they are never in the future, so that
 * no row can stall a window.
 */
export class RowTimes {
  readonly #timers: Timers;
  readonly #isEventTime: boolean;
  #present = Number.NEGATIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  constructor(timers: Timers, isEventTime: boolean) {
    this.#timers = timers;
    this.#isEventTime = isEventTime;
  }

  of(tuple: Tuple): number {
    let time = tuple.timestamp;
    if (!this.#isEventTime && time > this.#present) {
      this.#present = this.#timers.now();
      if (time > this.#present) time = this.#present;
    }
    return time > this.#last ? (this.#last = time) : this.#last;
  }

  get last(): number {
    return this.#last;
  }

  /** Continue after a time. */
  load(last: number): void {
    this.#last = last;
  }
}

/** A single timer, which fires at most once. */
export class WindowTimer {
  readonly #timers: Timers;
  readonly #run: () => void;
  #cancel: (() => void) | undefined;

  constructor(timers: Timers, run: () => void) {
    this.#timers = timers;
    this.#run = run;
  }

  get isSet(): boolean {
    return this.#cancel !== undefined;
  }

  set(timeMs: number): void {
    this.#cancel?.();
    this.#cancel = this.#timers.at(timeMs, () => {
      this.#cancel = undefined;
      this.#run();
    });
  }

  clear(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
