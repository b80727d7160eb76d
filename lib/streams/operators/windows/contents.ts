import type { Cause } from '../../values/cause.ts';
import type { Tuple } from '../../values/tuple.ts';
import { StreamFailure } from '../../values/values.ts';
import type { GroupFailures } from '../groups.ts';
import { loadTuple, type SavedTuple, saveTuple } from '../saved-tuples.ts';
import { HeldCauses } from './held-causes.ts';

/**
 * The contents of a window: rows, or groups that are aggregated as rows arrive. Rows are added in the order of their
 * times.
 */
export interface Contents {
  /** Number of rows, even if they are not stored. */
  readonly length: number;
  /** Times of the first and the last row. */
  readonly firstTime: number;
  readonly lastTime: number;
  /** The longest cause of the rows; undefined if they have none. */
  readonly cause: Cause | undefined;
  /** @throws StreamFailure if there are too many rows */
  add(tuple: Tuple, time: number): void;
  /** Drop the rows with an earlier time. */
  dropBefore(time: number): void;
  /** Drop the oldest rows until this many are left. */
  dropTo(length: number): void;
  /**
   * The tuples of an emission.
   * @param end the end of the window
   * @param failures receives the failures of groups without a result
   * @throws StreamFailure
   */
  read(end: number, failures: GroupFailures): readonly Tuple[];
  clear(): void;
  save(): unknown;
  load(state: unknown): void;
}

/** Counts the rows that the windows of an operator hold together, up to the limit `windowRows`. */
export class RowBudget {
  readonly #most: number;
  #held = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** @throws StreamFailure if the limit is reached */
  take(): void {
    if (this.#held >= this.#most)
      throw new StreamFailure(
        `a window holds at most ${this.#most} rows: make it shorter, filter rows before it, or raise bounds.windowRows`
      );
    this.#held++;
  }

  release(count: number): void {
    this.#held -= count;
  }
}

/** Minimum number of dropped rows at which they are removed from the arrays; they must also outnumber the others. */
const LEAST_DROPPED = 1024;

/** The state of `RowContents` in a checkpoint. */
type SavedRows = readonly (readonly [time: number, tuple: SavedTuple])[];

/** The rows of a window, in two arrays, with the position of the first row that has not been dropped. */
export class RowContents implements Contents {
  readonly #budget: RowBudget;
  #tuples: (Tuple | undefined)[] = [];
  #times: number[] = [];
  #head = 0;
  /** Number of the row at position 0 of the arrays. */
  #base = 0;
  readonly #causes = new HeldCauses();

  constructor(budget: RowBudget) {
    this.#budget = budget;
  }

  get length(): number {
    return this.#tuples.length - this.#head;
  }

  get firstTime(): number {
    return this.#times[this.#head];
  }

  get lastTime(): number {
    return this.#times[this.#times.length - 1];
  }

  get cause(): Cause | undefined {
    return this.#causes.deepest;
  }

  add(tuple: Tuple, time: number): void {
    this.#budget.take();
    const { cause } = tuple;
    if (cause !== undefined) this.#causes.add(cause, this.#base + this.#tuples.length);
    this.#tuples.push(tuple);
    this.#times.push(time);
  }

  dropBefore(time: number): void {
    let end = this.#head;
    while (end < this.#times.length && this.#times[end] < time) end++;
    if (end > this.#head) this.#drop(end);
  }

  dropTo(length: number): void {
    const end = this.#tuples.length - length;
    if (end > this.#head) this.#drop(end);
  }

  read(): readonly Tuple[] {
    return this.#tuples.slice(this.#head) as Tuple[];
  }

  clear(): void {
    this.#budget.release(this.length);
    this.#base += this.#tuples.length;
    this.#causes.dropBefore(this.#base);
    this.#tuples = [];
    this.#times = [];
    this.#head = 0;
  }

  save(): SavedRows {
    return this.read().map((tuple, index) => [this.#times[this.#head + index], saveTuple(tuple)]);
  }

  load(state: unknown): void {
    for (const [time, tuple] of state as SavedRows) this.add(loadTuple(tuple), time);
  }

  #drop(end: number): void {
    this.#budget.release(end - this.#head);
    this.#tuples.fill(undefined, this.#head, end);
    this.#head = end;
    this.#causes.dropBefore(this.#base + end);
    if (end < LEAST_DROPPED || end * 2 < this.#tuples.length) return;
    this.#tuples = this.#tuples.slice(end);
    this.#times = this.#times.slice(end);
    this.#base += end;
    this.#head = 0;
  }
}
