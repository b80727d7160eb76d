import type { Collection, Tuple } from '../../values/tuple.ts';
import type { Operator, OperatorSetup } from '../operator.ts';
import type { Contents } from './contents.ts';
import { emit, emitAndClear, RowTimes } from './emission.ts';
import type { ShapeOf, WindowSpec } from './spec.ts';

interface SavedCount {
  readonly seen: number;
  readonly last: number;
  readonly contents: unknown;
}

/**
 * A count window: after each interval of rows it contains the last `count` rows, once there are that many [stream rules
 * 5.2].
 */
export class CountWindow implements Operator<Tuple> {
  readonly #setup: OperatorSetup<Collection>;
  readonly #contents: Contents;
  readonly #times: RowTimes;
  readonly #count: number;
  readonly #interval: number;
  /** Rows since the last trigger. */
  #seen = 0;

  constructor(spec: WindowSpec<ShapeOf<'count'>>, setup: OperatorSetup<Collection>, contents: Contents) {
    this.#setup = setup;
    this.#contents = contents;
    this.#times = new RowTimes(setup.timers, spec.isEventTime);
    this.#count = spec.count;
    this.#interval = spec.interval;
  }

  push(tuple: Tuple): void {
    const contents = this.#contents;
    contents.dropTo(this.#count - 1);
    contents.add(tuple, this.#times.of(tuple));
    if (++this.#seen < this.#interval) return;
    this.#seen = 0;
    if (contents.length < this.#count) return;
    if (this.#interval === this.#count) emitAndClear(this.#setup, contents, contents.firstTime, contents.lastTime);
    else emit(this.#setup, contents, contents.firstTime, contents.lastTime);
  }

  save(): SavedCount {
    return { seen: this.#seen, last: this.#times.last, contents: this.#contents.save() };
  }

  load(state: unknown): void {
    const { seen, last, contents } = state as SavedCount;
    this.#seen = seen;
    this.#times.load(last);
    this.#contents.load(contents);
  }
}
