import { errorText } from '../../base/errors.ts';
import type { Accumulator, AggregateFunction, StreamFunctionTools } from '../function.ts';
import type { Cause } from '../values/cause.ts';
import { type Evaluate, GroupRow, StreamRow, type Tuple } from '../values/tuple.ts';
import { StreamFailure, type StreamValue } from '../values/values.ts';
import { type Key, keyOf } from './keys.ts';
import type { OperatorSetup } from './operator.ts';

/** A call of an aggregate function. For `*`, the argument is 1 or the columns of the row, as the function requires. */
export interface AggregateCall {
  readonly function: AggregateFunction;
  readonly args: readonly Evaluate[];
}

/** The grouping of rows and the values computed for each group. */
export interface GroupSpec {
  /** The expressions of GROUP BY besides the window. Without any, all rows form one group. */
  readonly keys: readonly Evaluate[];
  /** The results are the `aggregates` of the group rows, in this order. */
  readonly aggregates: readonly AggregateCall[];
  readonly tools: StreamFunctionTools;
  /** The limit `groups`. */
  readonly mostGroups: number;
}

/** A group under construction. */
export interface Group {
  readonly key: Key;
  readonly first: Tuple;
  readonly accumulators: readonly Accumulator[];
  /** The reason why a row could not be aggregated: the group has no result. */
  failure?: unknown;
}

/**
 * The failures of one emission: the failure of a group does not affect the others. All are counted, and the first is
 * sent.
 */
export class GroupFailures {
  #first: unknown;
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  add(error: unknown): void {
    if (this.#count++ === 0) this.#first = error;
  }

  /** Count the failures, and send the first one. */
  report({ failed }: Pick<OperatorSetup<unknown>, 'failed'>, cause: Cause | undefined): void {
    if (this.#count === 0) return;
    const others = this.#count - 1;
    const reason =
      others === 0
        ? this.#first
        : new StreamFailure(`${errorText(this.#first)} (${others} more groups failed)`, this.#first);
    failed(reason, cause, this.#count);
  }
}

/** The rows of the groups that have a result. */
export function groupRows(
  groups: Iterable<{
    readonly first: Tuple;
    readonly accumulators: readonly Accumulator[];
    readonly failure?: unknown;
  }>,
  failures: GroupFailures
): GroupRow[] {
  const rows: GroupRow[] = [];
  for (const { first, accumulators, failure } of groups) {
    if (failure !== undefined) {
      failures.add(failure);
      continue;
    }
    try {
      rows.push(groupRow(first, accumulators));
    } catch (error) {
      failures.add(error);
    }
  }
  return rows;
}

/**
 * Make a function that adds a row to its group. A failure affects only this group, or only this row if it has no group.
 */
export function grouperOf(
  spec: GroupSpec,
  groups: GroupTable<Group>,
  ungrouped: (error: unknown) => void
): (tuple: Tuple) => void {
  const add = adderOf(spec.aggregates);
  return (tuple) => {
    let group: Group | undefined;
    try {
      group = groups.of(tuple);
      if (group.failure === undefined) add(group.accumulators, tuple);
    } catch (error) {
      if (group === undefined) ungrouped(error);
      else group.failure = error;
    }
  };
}

/** Groups by the values of their keys, in the order of their first rows. */
export class GroupTable<G extends { readonly key: Key }> {
  readonly #groups = new Map<Key, G>();
  readonly #keyOf: (tuple: Tuple) => Key;
  readonly #make: (key: Key, tuple: Tuple) => G;
  readonly #most: number;

  constructor(spec: Pick<GroupSpec, 'keys' | 'mostGroups'>, make: (key: Key, tuple: Tuple) => G) {
    this.#keyOf = keyOf(spec.keys);
    this.#most = spec.mostGroups;
    this.#make = make;
  }

  get size(): number {
    return this.#groups.size;
  }

  /** The group of a tuple; created for its first tuple. @throws StreamFailure if there are too many groups */
  of(tuple: Tuple): G {
    const key = this.#keyOf(tuple);
    const found = this.#groups.get(key);
    if (found !== undefined) return found;
    if (this.#groups.size >= this.#most)
      throw new StreamFailure(
        `a window has at most ${this.#most} groups: group by an expression with fewer values, or raise bounds.groups`
      );
    const group = this.#make(key, tuple);
    this.#groups.set(key, group);
    return group;
  }

  values(): IterableIterator<G> {
    return this.#groups.values();
  }

  set(group: G): void {
    this.#groups.set(group.key, group);
  }

  delete(group: G): void {
    this.#groups.delete(group.key);
  }

  clear(): void {
    this.#groups.clear();
  }
}

/** Create a group without rows. */
export function newGroup({ aggregates, tools }: GroupSpec, key: Key, first: Tuple): Group {
  return { key, first, accumulators: aggregates.map((call) => call.function.make(tools)) };
}

/** Make a function that adds a row to the accumulators of its group. @returns a function that throws StreamFailure */
function adderOf(aggregates: readonly AggregateCall[]): (accumulators: readonly Accumulator[], tuple: Tuple) => void {
  const rows = aggregates.map(({ args }) => ({ args, scratch: args.map((): StreamValue => undefined) }));
  return (accumulators, tuple) => {
    for (let index = 0; index < rows.length; index++) {
      const { args, scratch } = rows[index];
      for (let at = 0; at < args.length; at++) scratch[at] = args[at](tuple);
      accumulators[index].add(scratch, tuple);
    }
  };
}

/** Convert a group to a tuple. Uses separate slots: those of the first row were filled before grouping. */
function groupRow(first: Tuple, accumulators: readonly Accumulator[]): GroupRow {
  const results = new Array<StreamValue>(accumulators.length);
  for (let index = 0; index < accumulators.length; index++) results[index] = accumulators[index].result();
  return new GroupRow(first, results, first.slots.length === 0 ? first.slots : first.slots.slice());
}

/** The groups of an empty window: one if there are no keys, as for `count(*)` without rows. */
export function groupsOfNothing(spec: GroupSpec, time: number): GroupRow[] {
  if (spec.keys.length > 0) return [];
  const first = new StreamRow({}, time);
  return [groupRow(first, newGroup(spec, null, first).accumulators)];
}
