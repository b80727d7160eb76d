import type { Collection, Tuple } from '../../values/tuple.ts';
import { type Test, testOf } from '../condition.ts';
import type { Operator, OperatorSetup } from '../operator.ts';
import type { Contents } from './contents.ts';
import { emit, RowTimes, WindowTimer } from './emission.ts';
import type { ShapeOf, WindowSpec } from './spec.ts';

interface SavedSliding {
  readonly last: number;
  readonly triggered: number;
  readonly pending: readonly number[];
  readonly contents: unknown;
}

/**
 * A sliding window without a delay. In processing time each row triggers it; in event time each distinct row time, once
 * the watermark has reached it [stream rules 5.2, 5.3]. It contains the rows from its length before the trigger up to
 * the trigger, both inclusive.
 */
export class SlidingWindow implements Operator<Tuple> {
  readonly #setup: OperatorSetup<Collection>;
  readonly #contents: Contents;
  readonly #times: RowTimes;
  readonly #lengthMs: number;
  readonly #isEventTime: boolean;
  readonly #isTrigger: Test;
  /** The last time that triggered, and the next one to trigger when the watermark has reached it. */
  #triggered = Number.NEGATIVE_INFINITY;
  #pending: number | undefined;

  constructor(spec: WindowSpec<ShapeOf<'sliding'>>, setup: OperatorSetup<Collection>, contents: Contents) {
    this.#setup = setup;
    this.#contents = contents;
    this.#times = new RowTimes(setup.timers, spec.isEventTime);
    this.#lengthMs = spec.lengthMs;
    this.#isEventTime = spec.isEventTime;
    this.#isTrigger = spec.when === undefined ? () => true : testOf(spec.when);
  }

  push(tuple: Tuple): void {
    const time = this.#times.of(tuple);
    if (this.#pending !== undefined && this.#pending < time) this.#trigger(this.#pending);
    this.#contents.dropBefore(time - this.#lengthMs);
    this.#contents.add(tuple, time);
    if (!this.#isTrigger(tuple)) return;
    if (!this.#isEventTime) emit(this.#setup, this.#contents, time - this.#lengthMs, time);
    else if (time > this.#triggered) this.#pending = time;
  }

  flush(time: number): void {
    if (this.#pending !== undefined && this.#pending <= time) this.#trigger(this.#pending);
    this.#setup.output.flush(time);
  }

  save(): SavedSliding {
    const pending = this.#pending === undefined ? [] : [this.#pending];
    return { last: this.#times.last, triggered: this.#triggered, pending, contents: this.#contents.save() };
  }

  load(state: unknown): void {
    const { last, triggered, pending, contents } = state as SavedSliding;
    this.#times.load(last);
    this.#triggered = triggered;
    this.#pending = pending[0];
    this.#contents.load(contents);
  }

  #trigger(time: number): void {
    this.#triggered = time;
    this.#pending = undefined;
    emit(this.#setup, this.#contents, time - this.#lengthMs, time);
  }
}

/**
 * A sliding window with a delay: it is emitted after its trigger by the delay, with the rows from its length before the
 * trigger up to, but not including, the emission [stream rules 5.2].
 */
export class DelayedSlidingWindow implements Operator<Tuple> {
  readonly #setup: OperatorSetup<Collection>;
  readonly #contents: Contents;
  readonly #times: RowTimes;
  readonly #timer: WindowTimer;
  readonly #lengthMs: number;
  readonly #delayMs: number;
  readonly #isEventTime: boolean;
  readonly #isTrigger: Test;
  /** Times of triggers that are not emitted yet, from `#head` on. There are at most as many as rows. */
  #pending: number[] = [];
  #head = 0;

  constructor(spec: WindowSpec<ShapeOf<'sliding'>>, setup: OperatorSetup<Collection>, contents: Contents) {
    this.#setup = setup;
    this.#contents = contents;
    this.#times = new RowTimes(setup.timers, spec.isEventTime);
    this.#timer = new WindowTimer(setup.timers, () => this.#ring());
    this.#lengthMs = spec.lengthMs;
    this.#delayMs = spec.delayMs;
    this.#isEventTime = spec.isEventTime;
    this.#isTrigger = spec.when === undefined ? () => true : testOf(spec.when);
  }

  open(): void {
    this.#arm();
  }

  push(tuple: Tuple): void {
    const time = this.#times.of(tuple);
    this.#advance(time);
    this.#contents.dropBefore((this.#pending[this.#head] ?? time) - this.#lengthMs);
    this.#contents.add(tuple, time);
    if (!this.#isTrigger(tuple)) return;
    if (this.#isEventTime && this.#pending[this.#pending.length - 1] === time) return;
    this.#pending.push(time);
    if (!this.#timer.isSet) this.#arm();
  }

  flush(time: number): void {
    this.#advance(time);
    this.#setup.output.flush(time);
  }

  close(): void {
    this.#timer.clear();
  }

  save(): SavedSliding {
    const pending = this.#pending.slice(this.#head);
    return { last: this.#times.last, triggered: 0, pending, contents: this.#contents.save() };
  }

  load(state: unknown): void {
    const { last, pending, contents } = state as SavedSliding;
    this.#times.load(last);
    this.#pending = [...pending];
    this.#contents.load(contents);
  }

  #arm(): void {
    if (!this.#isEventTime && this.#head < this.#pending.length)
      this.#timer.set(this.#pending[this.#head] + this.#delayMs);
  }

  #ring(): void {
    this.#advance(this.#setup.timers.now());
    this.#arm();
  }

  /** Emit the windows that are due at a time. */
  #advance(time: number): void {
    while (this.#head < this.#pending.length) {
      const start = this.#pending[this.#head] - this.#lengthMs;
      const end = this.#pending[this.#head] + this.#delayMs;
      if (end > time) return;
      this.#head++;
      this.#contents.dropBefore(start);
      emit(this.#setup, this.#contents, start, end);
    }
    this.#pending = [];
    this.#head = 0;
  }
}
