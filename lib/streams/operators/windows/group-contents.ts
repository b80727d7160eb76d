import { errorText } from '../../../base/errors.ts';
import { type Cause, deeper } from '../../values/cause.ts';
import type { Tuple } from '../../values/tuple.ts';
import { StreamFailure } from '../../values/values.ts';
import {
  type Group,
  type GroupFailures,
  type GroupSpec,
  GroupTable,
  grouperOf,
  groupRows,
  groupsOfNothing,
  newGroup
} from '../groups.ts';
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
  readonly groups: readonly (readonly [
    key: Key,
    first: SavedTuple,
    accumulators: readonly unknown[],
    failure?: string
  ])[];
}

/**
 * The groups of a window whose rows leave all at once. Rows are aggregated as they arrive, and not stored.
 *
 * A row that cannot be aggregated makes its group fail, as it does when rows are aggregated at the end. A row without a
 * group, because its key cannot be evaluated or there are too many groups, is skipped with an error.
 */
export class GroupContents implements Contents {
  readonly #spec: GroupSpec;
  readonly #groups: GroupTable<Group>;
  readonly #add: (tuple: Tuple) => void;
  /** The failure of the first row without a group. */
  #failure: unknown;
  length = 0;
  firstTime = Number.NaN;
  lastTime = Number.NaN;
  cause: Cause | undefined;

  constructor(spec: GroupSpec) {
    this.#spec = spec;
    this.#groups = new GroupTable(spec, (key, first) => newGroup(spec, key, first));
    this.#add = grouperOf(spec, this.#groups, (error) => {
      this.#failure ??= error;
    });
  }

  add(tuple: Tuple, time: number): void {
    if (this.length === 0) this.firstTime = time;
    this.lastTime = time;
    this.length++;
    const { cause } = tuple;
    if (cause !== undefined) this.cause = deeper(this.cause, cause);
    this.#add(tuple);
  }

  dropBefore(): void {}

  dropTo(): void {}

  read(end: number, failures: GroupFailures): readonly Tuple[] {
    if (this.#failure !== undefined) failures.add(this.#failure);
    return this.length === 0 ? groupsOfNothing(this.#spec, end) : groupRows(this.#groups.values(), failures);
  }

  clear(): void {
    this.#groups.clear();
    this.#failure = undefined;
    this.cause = undefined;
    this.length = 0;
  }

  save(): SavedGroups {
    const { length, firstTime, lastTime, cause } = this;
    const failure = textOf(this.#failure);
    const groups = Array.from(
      this.#groups.values(),
      ({ key, first, accumulators, failure }) =>
        [key, saveTuple(first), accumulators.map((each) => each.save()), textOf(failure)] as const
    );
    return { length, firstTime, lastTime, failure, cause, groups };
  }

  load(state: unknown): void {
    const { length, firstTime, lastTime, failure, cause, groups } = state as SavedGroups;
    Object.assign(this, { length, firstTime, lastTime, cause });
    if (failure !== undefined) this.#failure = new StreamFailure(failure);
    const { aggregates, tools } = this.#spec;
    for (const [key, first, states, failed] of groups) {
      const accumulators = aggregates.map((call, index) => call.function.load(tools, states[index]));
      const group: Group = { key, first: loadTuple(first), accumulators };
      if (failed !== undefined) group.failure = new StreamFailure(failed);
      this.#groups.set(group);
    }
  }
}

function textOf(failure: unknown): string | undefined {
  return failure === undefined ? undefined : errorText(failure);
}
