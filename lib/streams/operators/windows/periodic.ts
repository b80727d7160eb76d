import type { Collection, Tuple } from '../../values/tuple.ts';
import type { Operator, OperatorSetup } from '../operator.ts';
import { type Boundaries, boundariesOf } from './boundaries.ts';
import type { Contents } from './contents.ts';
import { emit, emitAndClear, RowTimes, WindowTimer } from './emission.ts';
import type { ShapeOf, WindowSpec } from './spec.ts';

/** Maximum number of empty windows that are emitted in sequence when time has jumped. */
const MAX_EMPTY = 1000;

interface SavedPeriodic {
  readonly end: number | undefined;
  readonly last: number;
  readonly contents: unknown;
}

/**
 * A tumbling or a hopping window.
 *
 * A window is half-open, in processing time and in event time: it contains the rows at its start, and a row at its end
 * belongs to the next one [stream rules 5.2, 17.11]. A window that is due is emitted before a later row enters.
 */
export class PeriodicWindow implements Operator<Tuple> {
  readonly #setup: OperatorSetup<Collection>;
  readonly #contents: Contents;
  readonly #boundaries: Boundaries;
  readonly #times: RowTimes;
  readonly #timer: WindowTimer;
  readonly #lengthMs: number;
  readonly #isHopping: boolean;
  readonly #isEventTime: boolean;
  readonly #emitsEmpty: boolean;
  /** End of the current window; undefined in event time before the first row. */
  #end: number | undefined;

  constructor(
    spec: WindowSpec<ShapeOf<'tumbling'> | ShapeOf<'hopping'>>,
    setup: OperatorSetup<Collection>,
    contents: Contents
  ) {
    const intervalMs = spec.kind === 'hopping' ? spec.intervalMs : spec.lengthMs;
    this.#setup = setup;
    this.#contents = contents;
    this.#boundaries = boundariesOf({ ...spec, intervalMs });
    this.#times = new RowTimes(setup.timers, spec.isEventTime);
    this.#timer = new WindowTimer(setup.timers, () => this.#ring());
    this.#lengthMs = spec.lengthMs;
    this.#isHopping = intervalMs !== spec.lengthMs;
    this.#isEventTime = spec.isEventTime;
    this.#emitsEmpty = spec.emitsEmpty;
  }

  open(): void {
    if (this.#isEventTime) return;
    this.#end ??= this.#boundaries.first(this.#setup.timers.now());
    this.#arm();
  }

  push(tuple: Tuple): void {
    const time = this.#times.of(tuple);
    this.#end ??= this.#boundaries.first(time);
    if (this.#end <= time) this.#advance(time);
    this.#contents.add(tuple, time);
    if (!this.#isEventTime && !this.#timer.isSet) this.#arm();
  }

  flush(time: number): void {
    if (this.#isEventTime && this.#end !== undefined && this.#end <= time) this.#advance(time);
    this.#setup.output.flush(time);
  }

  close(): void {
    this.#timer.clear();
  }

  save(): SavedPeriodic {
    return { end: this.#end, last: this.#times.last, contents: this.#contents.save() };
  }

  load(state: unknown): void {
    const { end, last, contents } = state as SavedPeriodic;
    this.#end = end;
    this.#times.load(last);
    this.#contents.load(contents);
  }

  /** Set the timer, only while there is something to emit. */
  #arm(): void {
    if (this.#contents.length > 0 || this.#emitsEmpty) this.#timer.set(this.#end as number);
  }

  #ring(): void {
    const now = this.#setup.timers.now();
    if (now >= (this.#end as number)) this.#advance(now);
    this.#arm();
  }

  /** Emit the windows that are due at a time. */
  #advance(time: number): void {
    let end = this.#end as number;
    for (let empty = 0; end <= time; ) {
      if (this.#isHopping) this.#contents.dropBefore(end - this.#lengthMs);
      const isEmpty = this.#contents.length === 0;
      if (isEmpty && (!this.#emitsEmpty || ++empty > MAX_EMPTY)) {
        this.#end = this.#boundaries.skip(end, time);
        return;
      }
      this.#end = this.#boundaries.next(end);
      (this.#isHopping ? emit : emitAndClear)(this.#setup, this.#contents, end - this.#lengthMs, end);
      end = this.#end;
    }
  }
}
