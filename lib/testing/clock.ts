// Real timers are used only for patience: everything else happens in virtual time, and only inside `advance`,
// `runNext` and `settle`, one call after the other. After each timer the clock waits until all counted work has
// ended; work that is not counted in a `WorkCount` is invisible to it, so asynchronous code of the library must count
// what it waits for. Hooks are work, too, except while they wait for this clock; which timers belong to a hook is
// known from `AsyncLocalStorage`.

import { AsyncLocalStorage } from 'node:async_hooks';
// Imported by name, so that fake timers of a test framework do not replace them.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import type { Clock } from '../base/clock.ts';
import { TimerHeap, type VirtualTimer } from '../base/collections/timer-heap.ts';
import { InvalidInput, StateError } from '../base/errors.ts';
import { checkNames, type Duration, durationMs } from '../base/fields.ts';
import { WorkCount } from '../base/pending-work.ts';
import type { StepOutcome, TimerFollower } from './fake-timers.ts';
import { originOf, traceOf } from './origin.ts';

/** Options of a virtual clock. */
export interface VirtualClockOptions {
  /** Wall-clock time at the start. Default: 2026-01-01T00:00:00Z. */
  readonly now?: Date | number | string;
  /**
   * Real time in milliseconds for which virtual time stops for a hook that neither returns nor waits for this clock. Afterwards virtual
   * time continues, so that a hook that never returns can time out. Default: 250.
   */
  readonly patienceMs?: number;
  /** Real time in milliseconds after which other work that does not end is an error. Default: 5,000. */
  readonly stuckMs?: number;
}

/** A timer that is armed and has not fired. */
export interface ArmedTimer {
  /** Virtual milliseconds until it fires. */
  readonly inMs: number;
  /** The origin: a line of a stack trace, or an empty string. */
  readonly origin: string;
}

/** 1 January 2026, a fixed date that is easy to read in logs. */
const START = Date.UTC(2026, 0, 1);

/**
 * A clock that a test advances. Time passes only when the test advances it.
 *
 * `advance` fires timers in the order of their due times, then of arming. After each timer it waits until everything that the timer caused
 * has settled: bytes in transit between streams, hooks that have not returned, commits, promises and immediates. A hook that itself waits
 * for this clock does not stop it. Use `track` for other asynchronous work, such as reading a file.
 */
export class VirtualClock implements Clock {
  /** The same clock for the timers of the library: they are not listed in `timers`, and hooks do not wait for them. */
  readonly internal: Clock;
  readonly #heap = new TimerHeap();
  readonly #calls = new AsyncLocalStorage<Call>();
  readonly #openCalls = new Set<Call>();
  readonly #tracked = new WorkCount();
  #works: readonly WorkCount[] = [this.#tracked];
  readonly #patienceMs: number;
  readonly #stuckMs: number;
  #monotonicMs = 0;
  #wallOffsetMs: number;
  #follower: TimerFollower | undefined = undefined;
  /** While fake timers fire: the latest time that they can have reached. */
  #stepUntilMs: number | undefined = undefined;
  #lastTask: Promise<unknown> = Promise.resolve();

  /** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, DATE_INVALID */
  constructor(options: VirtualClockOptions = {}) {
    checkNames(options, ['now', 'patienceMs', 'stuckMs'], 'the clock');
    this.#wallOffsetMs = wallMs(options.now ?? START, 'now');
    this.#patienceMs = realMs(options.patienceMs ?? 250, 'patienceMs');
    this.#stuckMs = realMs(options.stuckMs ?? 5_000, 'stuckMs');
    this.internal = {
      now: () => this.now(),
      monotonic: () => this.monotonic(),
      setTimeout: (run, delayMs) => this.#arm(run, delayMs, undefined, undefined),
      clearTimeout: (timer) => this.clearTimeout(timer)
    };
  }

  now(): number {
    return this.#wallOffsetMs + this.monotonic();
  }

  monotonic(): number {
    return this.#stepUntilMs === undefined ? this.#monotonicMs : this.#reachedMs(this.#stepUntilMs);
  }

  setTimeout(run: () => void, delayMs: number): unknown {
    return this.#arm(run, delayMs, traceOf(this.setTimeout), this.#calls.getStore());
  }

  clearTimeout(timer: unknown): void {
    const known = timer as (VirtualTimer & { readonly call?: Call }) | undefined;
    if (this.#heap.remove(known)) known?.call?.disarmed();
  }

  /**
   * Advance virtual time. Concurrent calls run one after the other, and each adds its time.
   *
   * @param duration milliseconds, or a string such as `90s`, `1h30m`
   * @throws the error that a timer throws, at its time; later timers stay armed. StateError CLOCK_BUSY inside a hook that this clock waits
   *   for, CLOCK_STUCK if counted work does not end. InvalidInput DURATION_INVALID
   */
  async advance(duration: Duration): Promise<void> {
    const ms = finiteMs(duration, 'duration');
    return this.#runExclusively(() => this.#runUntil(this.#monotonicMs + ms));
  }

  /**
   * Advance virtual time to a wall-clock time.
   * @throws InvalidInput DATE_INVALID for an invalid date or a date in the past; otherwise like `advance`
   */
  async advanceTo(date: Date | number | string): Promise<void> {
    const untilMs = wallMs(date, 'date');
    return this.#runExclusively(() => {
      if (untilMs < this.now()) {
        const now = new Date(this.now()).toISOString();
        throw new InvalidInput(
          'DATE_INVALID',
          'date',
          `a date not before ${now} (use stepWall to set the wall clock back)`,
          date
        );
      }
      return this.#runUntil(untilMs - this.#wallOffsetMs);
    });
  }

  /**
   * Advance virtual time to the next timer, fire it, and settle.
   * @returns false if no timer is due within that time. Virtual time is then unchanged, or with fake timers (option `timers` of the kit) at the
   *   end of that time
   * @throws StateError FAKE_TIMERS_UNSUITABLE with `mock.timers` of node:test
   */
  async runNext(
    options: {
      /** The maximum time to advance. Default: unlimited. */
      readonly within?: Duration;
    } = {}
  ): Promise<boolean> {
    const withinMs = durationMs(options.within ?? Infinity, 'within');
    if (this.#follower?.tells === false) {
      const text = 'mock.timers of node:test do not tell when the next timer is due; use clock.advance';
      throw new StateError('FAKE_TIMERS_UNSUITABLE', `clock.runNext: ${text}`);
    }
    return this.#runStep(withinMs, 'fired');
  }

  /** As `runNext`, but a step of fake timers without a timer also counts. @internal */
  step(withinMs: number): Promise<boolean> {
    return this.#runStep(withinMs, 'passed');
  }

  #runStep(withinMs: number, goal: 'fired' | 'passed'): Promise<boolean> {
    return this.#runExclusively(async () => {
      const untilMs = this.#monotonicMs + withinMs;
      let outcome: StepOutcome | undefined;
      await this.#settle(() => {
        if (outcome === 'fired' || outcome === goal) return false;
        outcome = this.#fire(untilMs);
        return outcome !== 'over';
      });
      if (outcome === 'over') await this.#settleFakes();
      return outcome !== 'over';
    });
  }

  /** Wait until everything in progress has settled, without advancing virtual time. */
  async settle(): Promise<void> {
    await this.#runExclusively(() => this.#settle());
  }

  /** Move the wall clock only, as a correction by NTP would. No timer fires. */
  stepWall(ms: number): void {
    this.#wallOffsetMs += ms;
    this.#follower?.setNow(this.now());
  }

  /**
   * Move fake timers of a test runner together with this clock; undefined: no more.
   * @param follower its date is that of this clock, which may follow from fakes that the test has installed
   * @internal
   */
  lead(follower: TimerFollower | undefined, nowMs = this.now()): void {
    this.#follower = follower;
    this.#wallOffsetMs = nowMs - this.#monotonicMs;
  }

  /** Count a promise as work in progress: virtual time stops until it settles. @returns the promise */
  track<T>(promise: PromiseLike<T>): PromiseLike<T> {
    return this.#tracked.run(() => promise, undefined);
  }

  /** Stop virtual time while this work is in progress. The kit calls this for its broker. */
  attach(work: WorkCount): void {
    this.#works = [...this.#works, work];
    work.watchedBy((task, request) => this.#runCall(work, task, request));
  }

  /** Undo `attach`: virtual time no longer stops for this work. */
  detach(work: WorkCount): void {
    this.#works = this.#works.filter((other) => other !== work);
    work.watchedBy(undefined);
    if (this.#works.length === 1) this.#calls.disable();
  }

  /** The armed timers in the order of firing, without the timers of the library. */
  get timers(): readonly ArmedTimer[] {
    return this.#heap
      .list()
      .filter(({ trace }) => trace !== undefined)
      .map(({ dueMs, trace }) => ({ inMs: dueMs - this.#monotonicMs, origin: originOf(trace) }));
  }

  #arm(run: () => void, delayMs: number, trace: Error | undefined, call: Call | undefined): unknown {
    if (delayMs === Infinity) return undefined;
    const dueMs = this.monotonic() + Math.max(delayMs || 0, 0);
    const timer = { dueMs, run, trace, call, order: 0, isArmed: false };
    this.#heap.add(timer);
    call?.armed();
    return timer;
  }

  async #runUntil(untilMs: number): Promise<void> {
    await this.#settle(() => this.#fire(untilMs) !== 'over');
    await this.#settleFakes();
    this.#monotonicMs = Math.max(this.#monotonicMs, untilMs);
  }

  /** Wait for what fake timers have caused in the last step, which may have fired some. */
  async #settleFakes(): Promise<void> {
    if (this.#follower !== undefined) await this.#settle();
  }

  /** Fire the next timer if it is due by `untilMs`. @returns `over` if there is none @throws what the timer throws */
  #fire(untilMs: number): StepOutcome {
    if (this.#follower !== undefined) {
      const dueMs = Math.min(this.#heap.dueMs, untilMs);
      if (dueMs === Infinity && !this.#follower.mayHaveTimers) return 'over';
      const outcome = this.#step(this.#follower, dueMs);
      if (outcome !== 'over') return outcome;
    }
    const timer = this.#heap.takeDue(untilMs) as (VirtualTimer & { readonly call?: Call }) | undefined;
    if (timer === undefined) return 'over';
    if (timer.dueMs > this.#monotonicMs) this.#monotonicMs = timer.dueMs;
    const { call, run } = timer;
    if (call === undefined) run();
    else {
      call.disarmed();
      this.#calls.run(call, run); // timers that it arms also belong to the hook
    }
    return 'fired';
  }

  /** Fire the next fake timers if they are due by `untilMs`. @throws what a timer throws */
  #step(follower: TimerFollower, untilMs: number): StepOutcome {
    const offsetMs = this.#wallOffsetMs;
    follower.setNow(this.now());
    this.#stepUntilMs = untilMs;
    let outcome: StepOutcome = 'passed';
    try {
      outcome = follower.step(offsetMs + this.#monotonicMs, offsetMs + untilMs);
    } finally {
      this.#monotonicMs = outcome === 'over' ? untilMs : this.#reachedMs(untilMs);
      this.#stepUntilMs = undefined;
    }
    return outcome;
  }

  /** The virtual time that the fake timers have reached. */
  #reachedMs(untilMs: number): number {
    return Math.min(Math.max(Date.now() - this.#wallOffsetMs, this.#monotonicMs), untilMs);
  }

  /** Run a task after all earlier ones, because they share the virtual time. */
  #runExclusively<T>(task: () => T | Promise<T>): Promise<T> {
    if (this.#calls.getStore()?.isOpen) {
      const text = 'clock: cannot be advanced inside a hook that it waits for; use clock.setTimeout to wait in a hook';
      return Promise.reject(new StateError('CLOCK_BUSY', text));
    }
    const result = this.#lastTask.then(task);
    this.#lastTask = result.catch(() => {});
    return result;
  }

  /**
   * Wait until all queued callbacks of promises and ticks have run and no counted work is in progress.
   * @param next called at that point. As long as it returns true, the clock waits and calls it again
   * @throws the error of `next`, after waiting for what `next` has started
   */
  #settle(next?: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = (): void => {
        try {
          if (next?.() === true) setImmediate(settled);
          else resolve();
        } catch (error) {
          this.#settle().then(() => reject(error), reject);
        }
      };
      const settled = (): void => {
        if (this.#isIdle()) step();
        else this.#waitForWork().then(step, reject);
      };
      setImmediate(settled);
    });
  }

  #isIdle(): boolean {
    for (const { count } of this.#works) if (count > 0) return false;
    return true;
  }

  /** Wait until all counted work has ended. Work that ends may start other work, any number of times. */
  async #waitForWork(): Promise<void> {
    for (let stuckMs = 0; !this.#isIdle(); ) {
      const busy = this.#works.filter(({ count }) => count > 0);
      if (await settledWithin(busy, this.#patienceMs)) stuckMs = 0;
      else if (this.#openCalls.size > 0) for (const call of this.#openCalls) call.abandon();
      else if ((stuckMs += this.#patienceMs) >= this.#stuckMs) throw this.#stuckError(busy);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  #stuckError(busy: readonly WorkCount[]): StateError {
    const pieces = busy.reduce((sum, { count }) => sum + count, 0);
    const what = busy.includes(this.#tracked) ? 'a promise given to clock.track' : 'streams or commits of the broker';
    return new StateError(
      'CLOCK_STUCK',
      `clock: ${pieces} unit(s) of work (${what}) did not end within ${this.#stuckMs} ms of real time; make sure that it ends without waiting for this clock, or raise stuckMs`
    );
  }

  #runCall<Q, A>(work: WorkCount, task: (request: Q) => A, request: Q): A {
    const call = new Call(work, this.#openCalls);
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

/** A hook that is running. An asynchronous hook is counted as work until it returns, except while timers that it armed are pending. */
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
    this.#updateWorkCount();
  }

  close(): void {
    this.isOpen = false;
    this.#updateWorkCount();
  }

  armed(): void {
    this.#timers++;
    this.#updateWorkCount();
  }

  disarmed(): void {
    this.#timers--;
    this.#updateWorkCount();
  }

  /** Stop waiting for the hook, because it took too long in real time. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#updateWorkCount();
  }

  #updateWorkCount(): void {
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

/** Wait for work to settle. @returns false if it did not settle within `realMs` of real time */
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

function realMs(ms: number, field: string): number {
  if (typeof ms === 'number' && ms >= 0) return ms;
  throw new InvalidInput('OPTION_INVALID', field, 'milliseconds, 0 or more', ms);
}
