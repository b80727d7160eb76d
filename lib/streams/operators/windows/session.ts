import type { Collection, Tuple } from '../../values/tuple.ts';
import type { Operator, OperatorSetup } from '../operator.ts';
import { type Boundaries, boundariesOf } from './boundaries.ts';
import type { Contents } from './contents.ts';
import { emitAndClear, RowTimes, WindowTimer } from './emission.ts';
import type { ShapeOf, WindowSpec } from './spec.ts';

interface SavedSession {
  readonly tick: number | undefined;
  readonly latest: number;
  readonly last: number;
  readonly contents: unknown;
}

/**
 * A session window: it ends when no row has arrived for the timeout, or at the second boundary of the maximum duration
 * after its first row. A row at the end belongs to the next session, in processing time and in event time [stream rules
 * 5.2, 17.11].
 */
export class SessionWindow implements Operator<Tuple> {
  readonly #setup: OperatorSetup<Collection>;
  readonly #contents: Contents;
  readonly #boundaries: Boundaries;
  readonly #times: RowTimes;
  readonly #timer: WindowTimer;
  readonly #lengthMs: number;
  readonly #timeoutMs: number;
  readonly #isEventTime: boolean;
  /** A boundary in processing time, from which the others are counted. */
  #tick: number | undefined;
  /** The latest end of the session. */
  #latest = 0;

  constructor(spec: WindowSpec<ShapeOf<'session'>>, setup: OperatorSetup<Collection>, contents: Contents) {
    this.#setup = setup;
    this.#contents = contents;
    this.#boundaries = boundariesOf({ ...spec, intervalMs: spec.lengthMs });
    this.#times = new RowTimes(setup.timers, spec.isEventTime);
    this.#timer = new WindowTimer(setup.timers, () => this.#ring());
    this.#lengthMs = spec.lengthMs;
    this.#timeoutMs = spec.timeoutMs;
    this.#isEventTime = spec.isEventTime;
  }

  open(): void {
    if (this.#isEventTime) return;
    this.#tick ??= this.#boundaries.first(this.#setup.timers.now());
    this.#arm();
  }

  push(tuple: Tuple): void {
    const time = this.#times.of(tuple);
    this.#advance(time);
    const isFirst = this.#contents.length === 0;
    this.#contents.add(tuple, time);
    if (!isFirst) return;
    this.#latest = this.#latestEnd(time);
    if (!this.#timer.isSet) this.#arm();
  }

  flush(time: number): void {
    this.#advance(time);
    this.#setup.output.flush(time);
  }

  close(): void {
    this.#timer.clear();
  }

  save(): SavedSession {
    return { tick: this.#tick, latest: this.#latest, last: this.#times.last, contents: this.#contents.save() };
  }

  load(state: unknown): void {
    const { tick, latest, last, contents } = state as SavedSession;
    this.#tick = tick;
    this.#latest = latest;
    this.#times.load(last);
    this.#contents.load(contents);
  }

  #latestEnd(first: number): number {
    if (this.#isEventTime) return Math.floor(first / this.#lengthMs) * this.#lengthMs + 2 * this.#lengthMs;
    // the first boundary that is not before the row, and the next one
    const { first: firstOf, skip, next } = this.#boundaries;
    const tick = this.#tick ?? firstOf(first);
    this.#tick = tick > first ? tick : skip(tick, first - 1);
    return next(this.#tick);
  }

  #end(): number {
    return Math.min(this.#contents.lastTime + this.#timeoutMs, this.#latest);
  }

  /** End the session if it is over at a time. */
  #advance(time: number): void {
    if (this.#contents.length === 0) return;
    const end = this.#end();
    if (time >= end) emitAndClear(this.#setup, this.#contents, this.#contents.firstTime, end);
  }

  #arm(): void {
    if (!this.#isEventTime && this.#contents.length > 0) this.#timer.set(this.#end());
  }

  /**
   * Rows only record their times. The timer fires at the end that was known when it was set, and is set again for the
   * remaining time.
   */
  #ring(): void {
    this.#advance(this.#setup.timers.now());
    this.#arm();
  }
}
