// Parallel arrays instead of an object for each row, because long windows have many. Rows are numbered from the first
// row of the operator; a position in the arrays is the number minus `#base`. Arguments of aggregates are kept with
// the row and not evaluated again when it leaves, because the result need not be the same. A row of a group knows the
// next one of this group, so the first row that is left is found at once. Saved state has the rows only: groups are
// made again by adding them.

import type { Accumulator } from '../../function.ts';
import type { Cause } from '../../values/cause.ts';
import type { Tuple } from '../../values/tuple.ts';
import type { StreamValue } from '../../values/values.ts';
import { type GroupFailures, type GroupSpec, GroupTable, groupRows, groupsOfNothing } from '../groups.ts';
import type { Key } from '../keys.ts';
import { loadTuple, type SavedTuple, saveTuple } from '../saved-tuples.ts';
import type { Contents, RowBudget } from './contents.ts';
import { HeldCauses } from './held-causes.ts';

interface SlidingGroup {
  readonly key: Key;
  readonly accumulators: readonly Accumulator[];
  /** Numbers of its first and its last row, counted from the first row of the operator. */
  first: number;
  last: number;
  rows: number;
  /** Number of its rows that could not be aggregated. */
  failed: number;
  /** The failure of the last one of them. */
  failure: unknown;
}

/** Minimum number of dropped rows at which they are removed from the arrays; they must also outnumber the others. */
const LEAST_DROPPED = 1024;
/** Marks a row without a group, because its keys could not be evaluated or there are too many groups. */
const NO_GROUP = -1;

/**
 * The groups of a window whose rows leave one by one, in order of arrival: the cost of a row does not depend on the
 * length of the window. Arguments are stored with the rows, because evaluating them again may give another result.
 *
 * While a row that cannot be aggregated is in the window, its group fails; if it has no group, it is an error of each
 * emission.
 */
export class SlidingGroupContents implements Contents {
  readonly #spec: GroupSpec;
  readonly #budget: RowBudget;
  readonly #groups: GroupTable<SlidingGroup>;
  readonly #scratch: readonly StreamValue[][];
  readonly #width: number;
  /** Number of the row at position 0 of the arrays. */
  #base = 0;
  #head = 0;
  #tuples: (Tuple | undefined)[] = [];
  #times: number[] = [];
  #rowGroups: (SlidingGroup | undefined)[] = [];
  /** Number of accumulators that include a row: all, unless it could not be aggregated. */
  #added: number[] = [];
  /** Number of the next row of the same group. */
  #next: number[] = [];
  #args: StreamValue[] = [];
  /** Rows without a group, and the reason for the last one. */
  #ungrouped = 0;
  #failure: unknown;
  readonly #causes = new HeldCauses();

  constructor(spec: GroupSpec, budget: RowBudget) {
    const { aggregates, tools } = spec;
    this.#spec = spec;
    this.#budget = budget;
    this.#scratch = aggregates.map(({ args }) => args.map((): StreamValue => undefined));
    this.#width = aggregates.reduce((sum, { args }) => sum + args.length, 0);
    this.#groups = new GroupTable(spec, (key) => {
      const accumulators = aggregates.map(({ function: each }) => (each.makeSliding ?? each.make)(tools));
      return { key, accumulators, first: 0, last: 0, rows: 0, failed: 0, failure: undefined };
    });
  }

  get length(): number {
    return this.#times.length - this.#head;
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
    const argsAt = this.#args.length;
    const { cause } = tuple;
    if (cause !== undefined) this.#causes.add(cause, this.#base + this.#tuples.length);
    for (let index = 0; index < this.#width; index++) this.#args.push(undefined);
    this.#tuples.push(tuple);
    this.#times.push(time);
    this.#rowGroups.push(undefined);
    this.#added.push(NO_GROUP);
    this.#next.push(0);
    try {
      this.#aggregate(tuple, this.#times.length - 1, argsAt);
    } catch (error) {
      const group = this.#rowGroups[this.#times.length - 1];
      if (group === undefined) {
        this.#ungrouped++;
        this.#failure = error;
      } else {
        group.failed++;
        group.failure = error;
      }
    }
  }

  dropBefore(time: number): void {
    let end = this.#head;
    while (end < this.#times.length && this.#times[end] < time) this.#remove(end++);
    this.#drop(end);
  }

  dropTo(length: number): void {
    const end = Math.max(this.#times.length - length, this.#head);
    for (let at = this.#head; at < end; at++) this.#remove(at);
    this.#drop(end);
  }

  read(end: number, failures: GroupFailures): readonly Tuple[] {
    if (this.#ungrouped > 0) failures.add(this.#failure);
    if (this.length === 0) return groupsOfNothing(this.#spec, end);
    const groups = [...this.#groups.values()];
    // the first row of a group is its first row that is still in the window
    let isSorted = true;
    for (let index = 1; index < groups.length && isSorted; index++)
      isSorted = groups[index - 1].first < groups[index].first;
    if (!isSorted) groups.sort((a, b) => a.first - b.first);
    const rows = groups.map(({ first, accumulators, failed, failure }) => ({
      first: this.#tuples[first - this.#base] as Tuple,
      accumulators,
      failure: failed > 0 ? failure : undefined
    }));
    return groupRows(rows, failures);
  }

  clear(): void {
    this.dropTo(0);
  }

  save(): readonly (readonly [time: number, tuple: SavedTuple])[] {
    const times = this.#times.slice(this.#head);
    return times.map((time, index) => [time, saveTuple(this.#tuples[this.#head + index] as Tuple)]);
  }

  load(state: unknown): void {
    for (const [time, tuple] of state as ReturnType<SlidingGroupContents['save']>) this.add(loadTuple(tuple), time);
  }

  #aggregate(tuple: Tuple, at: number, argsAt: number): void {
    const group = this.#groups.of(tuple);
    const number = this.#base + at;
    if (group.rows++ === 0) group.first = number;
    else this.#next[group.last - this.#base] = number;
    group.last = number;
    this.#rowGroups[at] = group;
    this.#added[at] = 0;
    const { aggregates } = this.#spec;
    let argAt = argsAt;
    for (let index = 0; index < aggregates.length; index++) {
      const { args } = aggregates[index];
      const scratch = this.#scratch[index];
      for (let each = 0; each < args.length; each++) this.#args[argAt++] = scratch[each] = args[each](tuple);
      group.accumulators[index].add(scratch, tuple);
      this.#added[at]++;
    }
  }

  /** Remove a row from its group. */
  #remove(at: number): void {
    const group = this.#rowGroups[at];
    const added = this.#added[at];
    if (group === undefined) {
      this.#ungrouped--;
      return;
    }
    if (added < this.#spec.aggregates.length) group.failed--;
    if (--group.rows === 0) {
      this.#groups.delete(group);
      return;
    }
    group.first = this.#next[at];
    let argAt = at * this.#width;
    for (let index = 0; index < added; index++) {
      const scratch = this.#scratch[index];
      for (let each = 0; each < scratch.length; each++) scratch[each] = this.#args[argAt++];
      group.accumulators[index].remove?.(scratch, this.#tuples[at] as Tuple);
    }
  }

  /** Release the rows before a position. */
  #drop(end: number): void {
    if (end === this.#head) return;
    this.#budget.release(end - this.#head);
    this.#tuples.fill(undefined, this.#head, end);
    this.#rowGroups.fill(undefined, this.#head, end);
    this.#args.fill(undefined, this.#head * this.#width, end * this.#width);
    this.#head = end;
    this.#causes.dropBefore(this.#base + end);
    if (end < LEAST_DROPPED || end * 2 < this.#times.length) return;
    this.#tuples = this.#tuples.slice(end);
    this.#times = this.#times.slice(end);
    this.#rowGroups = this.#rowGroups.slice(end);
    this.#added = this.#added.slice(end);
    this.#next = this.#next.slice(end);
    this.#args = this.#args.slice(end * this.#width);
    this.#base += end;
    this.#head = 0;
  }
}
