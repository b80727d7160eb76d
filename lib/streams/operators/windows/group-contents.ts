import { type Cause, deeper } from '../../cause.ts';
import type { Accumulator } from '../../functions/function.ts';
import type { Tuple } from '../../tuple.ts';
import { StreamFailure } from '../../values.ts';
import { adderOf, type Group, type GroupSpec, GroupTable, groupRow, groupsOfNothing, newGroup } from '../groups.ts';
import type { Key } from '../keys.ts';
import { loadTuple, type SavedTuple, saveTuple } from '../saved-tuples.ts';
import type { Contents } from './contents.ts';

/** The state of `GroupContents` in a checkpoint. */
interface SavedGroups {
  readonly length: number;
  readonly firstTime: number;
  readonly lastTime: number;
  readonly failure: string | undefined;
  readonly cause?: Cause | undefined;
  readonly groups: readonly (readonly [key: Key, first: SavedTuple, accumulators: readonly unknown[]])[];
}

/**
 * The groups of a window whose rows leave all at once. Rows are aggregated as they arrive, and not kept.
 *
 * A row that cannot be aggregated makes the emission of its window fail, as it does where rows are aggregated at the end [stream rules 4.7].
 */
export class GroupContents implements Contents {
  readonly #spec: GroupSpec;
  readonly #groups: GroupTable<Group>;
  readonly #add: (accumulators: readonly Accumulator[], tuple: Tuple) => void;
  #failure: unknown;
  length = 0;
  firstTime = Number.NaN;
  lastTime = Number.NaN;
  cause: Cause | undefined;

  constructor(spec: GroupSpec) {
    this.#spec = spec;
    this.#groups = new GroupTable(spec, (key, first) => newGroup(spec, key, first));
    this.#add = adderOf(spec.aggregates);
  }

  add(tuple: Tuple, time: number): void {
    if (this.length === 0) this.firstTime = time;
    this.lastTime = time;
    this.length++;
    const { cause } = tuple;
    if (cause !== undefined) this.cause = deeper(this.cause, cause);
    if (this.#failure !== undefined) return;
    try {
      this.#add(this.#groups.of(tuple).accumulators, tuple);
    } catch (error) {
      this.#failure = error;
    }
  }

  dropBefore(): void {}

  dropTo(): void {}

  read(end: number): readonly Tuple[] {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.length === 0) return groupsOfNothing(this.#spec, end);
    return Array.from(this.#groups.values(), ({ first, accumulators }) => groupRow(first, accumulators));
  }

  clear(): void {
    this.#groups.clear();
    this.#failure = undefined;
    this.cause = undefined;
    this.length = 0;
  }

  save(): SavedGroups {
    const { length, firstTime, lastTime, cause } = this;
    const failure = this.#failure === undefined ? undefined : String((this.#failure as Error).message);
    const groups = Array.from(
      this.#groups.values(),
      ({ key, first, accumulators }) => [key, saveTuple(first), accumulators.map((each) => each.save())] as const
    );
    return { length, firstTime, lastTime, failure, cause, groups };
  }

  load(state: unknown): void {
    const { length, firstTime, lastTime, failure, cause, groups } = state as SavedGroups;
    Object.assign(this, { length, firstTime, lastTime, cause });
    if (failure !== undefined) this.#failure = new StreamFailure(failure);
    const { aggregates, tools } = this.#spec;
    for (const [key, first, states] of groups) {
      const accumulators = aggregates.map((call, index) => call.function.load(tools, states[index]));
      this.#groups.set({ key, first: loadTuple(first), accumulators });
    }
  }
}
