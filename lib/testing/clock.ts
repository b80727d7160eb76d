import { AsyncLocalStorage } from 'node:async_hooks';
// By name from this module they are out of the reach of fake timers, whenever those are put in place.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import type { Clock } from '../clock.ts';
import { InvalidInput, StateError } from '../errors.ts';
import { type Duration, durationMs } from '../options-table.ts';
import { WorkCount } from '../work.ts';
import { TimerHeap, type VirtualTimer } from './timer-heap.ts';

/** What a virtual clock is made with. */
export interface VirtualClockOptions {
  /** Wall time at the start. Default 2026-01-01T00:00:00Z. */
  readonly now?: Date | number | string;
  /**
   * Real milliseconds that time stands still for a hook that neither answers nor waits for this clock. After them it goes on, so that a
   * hook that never answers can time out. Default 250.
   */
  readonly patienceMs?: number;
  /** Real milliseconds after which other work that does not end is an error. Default 5,000. */
  readonly stuckMs?: number;
}

/** A timer that is armed and has not fired. */
export interface ArmedTimer {
  /** Virtual milliseconds until it fires. */
  readonly inMs: number;
  /** Where it was armed: a line of a stack trace, or an empty text. */
  readonly origin: string;
}

/** 1 January 2026: any fixed day will do, this one is easy to read in a log. */
const START = Date.UTC(2026, 0, 1);

/**
 * Time that a test turns. Nothing passes by itself: `advance` fires what falls due, in the order of due times and then of arming, and after
 * every timer lets everything come to rest that it set off: bytes on their way between streams, hooks that have not answered, commits, and
 * all that hangs on promises and immediates.
 *
 * A hook that waits for this clock itself does not hold it up. Work that nobody counts, such as a file that a device reads, can be told with
 * `track`.
 */
export class VirtualClock implements Clock {
  /** The same time for the library's own timers: they are not in `timers`, and a hook does not wait for them. */
  readonly internal: Clock;
  readonly #heap = new TimerHeap();
  readonly #calls = new AsyncLocalStorage<Call>();
  readonly #open = new Set<Call>();
  readonly #own = new WorkCount();
  #works: readonly WorkCount[] = [this.#own];
  readonly #patienceMs: number;
  readonly #stuckMs: number;
  #monotonicMs = 0;
  #wallOffsetMs: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: VirtualClockOptions = {}) {
    this.#wallOffsetMs = wallMs(options.now ?? START, 'now');
    this.#patienceMs = options.patienceMs ?? 250;
    this.#stuckMs = options.stuckMs ?? 5_000;
    this.internal = {
      now: () => this.now(),
      monotonic: () => this.#monotonicMs,
      setTimeout: (run, delayMs) => this.#arm(run, delayMs, undefined, undefined),
      clearTimeout: (timer) => this.clearTimeout(timer)
    };
  }

  now(): number {
    return this.#wallOffsetMs + this.#monotonicMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  setTimeout(run: () => void, delayMs: number): unknown {
    return this.#arm(run, delayMs, new Error(), this.#calls.getStore());
  }

  clearTimeout(timer: unknown): void {
    const known = timer as (VirtualTimer & { readonly call?: Call }) | undefined;
    if (this.#heap.remove(known)) known?.call?.disarmed();
  }

  /**
   * Let time pass. Calls made at once run one after the other, each adding its time.
   *
   * @param duration milliseconds, or text such as `90s`, `1h30m`
   * @throws what a timer throws, at its time: later ones stay armed. StateError CLOCK_BUSY inside a hook that this clock waits for,
   *   CLOCK_STUCK when counted work does not end. InvalidInput DURATION_INVALID
   */
  async advance(duration: Duration): Promise<void> {
    const ms = finiteMs(duration, 'duration');
    return this.#alone(() => this.#runUntil(this.#monotonicMs + ms));
  }

  /**
   * Let time pass until a wall time.
   * @throws InvalidInput DATE_INVALID for a date that is past or none; otherwise as `advance`
   */
  async advanceTo(date: Date | number | string): Promise<void> {
    const untilMs = wallMs(date, 'date');
    return this.#alone(() => {
      if (untilMs < this.now()) {
        const now = new Date(this.now()).toISOString();
        throw new InvalidInput(
          'DATE_INVALID',
          'date',
          `a date from ${now} on; use stepWall to turn the wall clock back`,
          date
        );
      }
      return this.#runUntil(untilMs - this.#wallOffsetMs);
    });
  }

  /**
   * Pass on to the next timer, fire it, and come to rest.
   * @param options.within only if it is due within so long
   * @returns false when there was none; then no time has passed
   */
  async runNext(options: { readonly within?: Duration } = {}): Promise<boolean> {
    const withinMs = durationMs(options.within ?? Infinity, 'within');
    return this.#alone(async () => {
      await this.#rest();
      return this.#fire(this.#monotonicMs + withinMs);
    });
  }

  /** Come to rest without letting time pass. */
  async settle(): Promise<void> {
    await this.#alone(() => this.#rest());
  }

  /** Move the wall clock alone, as a correction by NTP would: no timer fires. */
  stepWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Count a promise as work in flight: time stands still until it settles. @returns the promise */
  track<T>(promise: PromiseLike<T>): PromiseLike<T> {
    return this.#own.run(() => promise, undefined);
  }

  /** Let time stand still while this work is in flight; the kit does so for its broker. */
  attach(work: WorkCount): void {
    this.#works = [...this.#works, work];
    work.watch = (task, request) => this.#watch(work, task, request);
  }

  /** Time does not wait for this work any more. */
  detach(work: WorkCount): void {
    this.#works = this.#works.filter((other) => other !== work);
    work.watch = undefined;
    if (this.#works.length === 1) this.#calls.disable();
  }

  /** What `setTimeout` armed and has not fired, next first. The library's own are not among them. */
  get timers(): readonly ArmedTimer[] {
    return this.#heap
      .list()
      .filter(({ trace }) => trace !== undefined)
      .map(({ dueMs, trace }) => ({ inMs: dueMs - this.#monotonicMs, origin: originOf(trace) }));
  }

  #arm(run: () => void, delayMs: number, trace: Error | undefined, call: Call | undefined): unknown {
    if (delayMs === Infinity) return undefined;
    const dueMs = this.#monotonicMs + Math.max(delayMs || 0, 0);
    const timer = { dueMs, run, trace, call, order: 0, isArmed: false };
    this.#heap.add(timer);
    call?.armed();
    return timer;
  }

  async #runUntil(untilMs: number): Promise<void> {
    await this.#rest();
    while (await this.#fire(untilMs));
    this.#monotonicMs = Math.max(this.#monotonicMs, untilMs);
  }

  /** Fire the next timer if it is due by then, and come to rest. @returns false when there is none */
  #fire(untilMs: number): Promise<boolean> | false {
    const timer = this.#heap.take(untilMs) as (VirtualTimer & { readonly call?: Call }) | undefined;
    if (timer === undefined) return false;
    if (timer.dueMs > this.#monotonicMs) this.#monotonicMs = timer.dueMs;
    const { call, run } = timer;
    try {
      if (call === undefined) run();
      else {
        call.disarmed();
        this.#calls.run(call, run); // what it arms is still that hook's
      }
    } catch (error) {
      return this.#rest().then(() => {
        throw error;
      });
    }
    return this.#rest();
  }

  /** One after the other: time is one. */
  #alone<T>(task: () => T | Promise<T>): Promise<T> {
    if (this.#calls.getStore()?.isOpen) {
      const text = 'time can not be advanced inside a hook that it stands still for; arm a timer with clock.setTimeout';
      return Promise.reject(new StateError('CLOCK_BUSY', text));
    }
    const result = this.#last.then(task);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Wait until nothing is in flight. An immediate comes behind all that hangs on promises and ticks; the counts tell of the rest. */
  #rest(): Promise<true> {
    return new Promise((resolve, reject) => {
      setImmediate(() => {
        if (this.#isIdle()) resolve(true);
        else this.#restFromWork().then(resolve, reject);
      });
    });
  }

  #isIdle(): boolean {
    for (const { count } of this.#works) if (count > 0) return false;
    return true;
  }

  /** Work that ends may begin other work, any number of times. */
  async #restFromWork(): Promise<true> {
    for (let stuckMs = 0; !this.#isIdle(); ) {
      const busy = this.#works.filter(({ count }) => count > 0);
      if (await settledWithin(busy, this.#patienceMs)) stuckMs = 0;
      else if (this.#open.size > 0) for (const call of this.#open) call.abandon();
      else if ((stuckMs += this.#patienceMs) >= this.#stuckMs) throw this.#stuck(busy);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    return true;
  }

  #stuck(busy: readonly WorkCount[]): StateError {
    const pieces = busy.reduce((sum, { count }) => sum + count, 0);
    const what = busy.includes(this.#own) ? 'a promise given to clock.track' : 'streams or commits of the broker';
    return new StateError(
      'CLOCK_STUCK',
      `time stands still: ${pieces} piece(s) of work (${what}) did not end within ${this.#stuckMs} ms of real time`
    );
  }

  #watch<Q, A>(work: WorkCount, task: (request: Q) => A, request: Q): A {
    const call = new Call(work, this.#open);
    const answer = this.#calls.run(call, task, request);
    const promise = answer as PromiseLike<unknown> | undefined | null;
    if (typeof promise?.then === 'function') {
      call.open();
      const close = () => call.close();
      promise.then(close, close);
    }
    return answer;
  }
}

/** A hook at work: counted from the moment it turns out asynchronous until it answers, but not while timers that it armed are out. */
class Call {
  isOpen = false;
  readonly #work: WorkCount;
  readonly #counted: Set<Call>;
  #timers = 0;
  #isAbandoned = false;

  constructor(work: WorkCount, counted: Set<Call>) {
    this.#work = work;
    this.#counted = counted;
  }

  open(): void {
    this.isOpen = true;
    this.#recount();
  }

  close(): void {
    this.isOpen = false;
    this.#recount();
  }

  armed(): void {
    this.#timers++;
    this.#recount();
  }

  disarmed(): void {
    this.#timers--;
    this.#recount();
  }

  /** It took too long in real time: time goes on without it. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#recount();
  }

  #recount(): void {
    const isCounted = this.isOpen && this.#timers === 0 && !this.#isAbandoned;
    if (isCounted === this.#counted.has(this)) return;
    if (isCounted) {
      this.#counted.add(this);
      this.#work.begin();
    } else {
      this.#counted.delete(this);
      this.#work.end();
    }
  }
}

/** @returns false when real time ran out before all of it settled */
function settledWithin(busy: readonly WorkCount[], realMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), realMs);
    void Promise.all(busy.map((work) => work.settled())).then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

function finiteMs(duration: Duration, field: string): number {
  const ms = durationMs(duration, field);
  if (ms === Infinity) throw new InvalidInput('DURATION_INVALID', field, 'a finite duration', duration);
  return ms;
}

function wallMs(date: Date | number | string, field: string): number {
  const ms = new Date(date).getTime();
  if (Number.isNaN(ms)) throw new InvalidInput('DATE_INVALID', field, 'a date', date);
  return ms;
}

/** The line of the stack that called setTimeout. */
function originOf(trace: Error | undefined): string {
  return trace?.stack?.split('\n')[2]?.trim().replace(/^at /, '') ?? '';
}
