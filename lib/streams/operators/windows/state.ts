import type { Collection, Tuple } from '../../values/tuple.ts';
import { StreamFailure } from '../../values/values.ts';
import { type Test, testOf } from '../condition.ts';
import { type Key, keyOf } from '../keys.ts';
import type { Operator, OperatorSetup } from '../operator.ts';
import type { Contents } from './contents.ts';
import { emitAndClear, RowTimes } from './emission.ts';
import type { ShapeOf, WindowSpec } from './spec.ts';

interface SavedState {
  readonly last: number;
  readonly partitions: readonly (readonly [key: Key, contents: unknown])[];
}

/**
 * A state window. With two conditions, it contains the rows from one that satisfies the first up to a later one that
 * satisfies the second, both inclusive. With one condition, each row that satisfies it ends the current window and
 * begins the next one.
 */
export class StateWindow implements Operator<Tuple> {
  readonly #setup: OperatorSetup<Collection>;
  readonly #makeContents: () => Contents;
  readonly #times: RowTimes;
  readonly #begins: Test;
  readonly #ends: Test | undefined;
  readonly #keyOf: (tuple: Tuple) => Key;
  readonly #most: number;
  /** The windows that have begun, by partition. */
  readonly #open = new Map<Key, Contents>();

  constructor(spec: WindowSpec<ShapeOf<'state'>>, setup: OperatorSetup<Collection>, makeContents: () => Contents) {
    const [begin, end] = spec.conditions;
    this.#setup = setup;
    this.#makeContents = makeContents;
    this.#times = new RowTimes(setup.timers, spec.isEventTime);
    this.#begins = testOf(begin);
    this.#ends = end && testOf(end);
    this.#keyOf = keyOf(spec.partitionBy);
    this.#most = spec.mostGroups;
  }

  push(tuple: Tuple): void {
    const time = this.#times.of(tuple);
    const key = this.#keyOf(tuple);
    const contents = this.#open.get(key);
    if (contents === undefined) this.#begin(key, tuple, time);
    else if (this.#ends === undefined) this.#continue(contents, tuple, time);
    else this.#end(this.#ends, key, contents, tuple, time);
  }

  save(): SavedState {
    const partitions = Array.from(this.#open, ([key, contents]) => [key, contents.save()] as const);
    return { last: this.#times.last, partitions };
  }

  load(state: unknown): void {
    const { last, partitions } = state as SavedState;
    this.#times.load(last);
    for (const [key, saved] of partitions) {
      const contents = this.#makeContents();
      contents.load(saved);
      this.#open.set(key, contents);
    }
  }

  #begin(key: Key, tuple: Tuple, time: number): void {
    if (!this.#begins(tuple)) return;
    if (this.#open.size >= this.#most)
      throw new StreamFailure(
        `a state window has at most ${this.#most} partitions: partition by an expression with fewer values, or raise bounds.groups`
      );
    const contents = this.#makeContents();
    contents.add(tuple, time);
    this.#open.set(key, contents);
  }

  #continue(contents: Contents, tuple: Tuple, time: number): void {
    if (this.#begins(tuple)) emitAndClear(this.#setup, contents, contents.firstTime, time);
    contents.add(tuple, time);
  }

  #end(ends: Test, key: Key, contents: Contents, tuple: Tuple, time: number): void {
    contents.add(tuple, time);
    if (!ends(tuple)) return;
    this.#open.delete(key);
    emitAndClear(this.#setup, contents, contents.firstTime, time);
  }
}
