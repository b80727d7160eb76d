// The clock of the kit leads, and the fake timers follow it. Vitest and Jest fake timers with the same library, which can fire
// the next timer but does not say when it is due. A timer of our own at the end of the step tells: if another timer fires
// first, the date of the fakes is its time. So a step ends exactly where a timer is due, and an hour without timers is one
// step. node:test only has `tick`, whose date is that of its end: there a step has at most 10 ms. Whether others have fired
// at the very end of a step is unknown, so the clock waits for what they cause, and takes a step of no time after it.
//
// `setImmediate`, `process.nextTick` and `queueMicrotask` must be real: streams of Node.js and clients use them, and the
// clock waits for what they do.

// Imported by name, because `mock.timers` replaces the functions of the module.
import { setImmediate as realSetImmediate, setTimeout as realSetTimeout } from 'node:timers';
import { InvalidInput, StateError } from '../base/errors.ts';

/** Fake timers of a test runner: `vi` of Vitest, `jest` of Jest, or `mock.timers` of node:test. */
export type FakeTimers = RunnerTimers | MockTimers;

/** The members of `vi` (Vitest) and `jest` (Jest) that the kit uses. */
export interface RunnerTimers {
  /** Replaces the functions that the configuration names. */
  useFakeTimers(config?: object): unknown;
  /** Restores all functions. */
  useRealTimers(): unknown;
  /** Sets the fake date without firing timers. */
  setSystemTime(now: number): unknown;
  /** Advances to the next fake timer, and fires all that are due then. */
  advanceTimersToNextTimer(): unknown;
  /** The number of fake timers that are armed. */
  getTimerCount(): number;
}

/** The members of `mock.timers` (node:test) that the kit uses. */
export interface MockTimers {
  /** Replaces the functions that `apis` names. */
  enable(options?: object): void;
  /** Restores all functions. */
  reset(): void;
  /** Sets the fake date without firing timers. */
  setTime(now: number): void;
  /** Advances the fake date, and fires all timers that become due. */
  tick(ms: number): void;
}

/** The longest step in milliseconds if the next fake timer is unknown. */
const TICK_MS = 10;
/** The longest step in milliseconds otherwise. Fake timers treat more than 2^31 - 1 as 1. */
const STEP_MS = 86_400_000;
const FAKED = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'];
const REAL = ['setImmediate', 'nextTick', 'queueMicrotask'];
/** Jest fakes everything but these. */
const NOT_FAKED = [
  ...REAL,
  'clearImmediate',
  'hrtime',
  'performance',
  'requestAnimationFrame',
  'cancelAnimationFrame',
  'requestIdleCallback',
  'cancelIdleCallback'
];

/** A test runner's way to fake timers. */
interface Driver {
  /** The call that installs the fakes as the kit needs them, for messages. */
  readonly remedy: string;
  readonly isInstalled: () => boolean;
  /** The functions that must not be faked, but are. */
  readonly wronglyFaked: () => readonly string[];
  readonly install: (now: number) => void;
  readonly restore: () => void;
  readonly setNow: (now: number) => void;
  /** False if no fake timer is armed. */
  readonly mayHaveTimers: () => boolean;
  /** True if `step` tells whether a timer has fired. */
  readonly tells: boolean;
  /** Advance to the next fake timer, at most by `ms`, and fire it. */
  readonly step: (ms: number) => StepOutcome;
}

/**
 * The result of a step: a fake timer has fired; time has passed, perhaps with timers; there is no time left. The last one comes after what
 * the timers at the end of the time have caused has settled, so what they arm for the same time is fired as well.
 */
export type StepOutcome = 'fired' | 'passed' | 'over';

/** The timers that follow the clock of a kit. */
const leaders = new WeakSet<FakeTimers>();

/** The fake timers of a test runner, moved by the clock of one kit. */
export class TimerFollower {
  readonly #timers: FakeTimers;
  readonly #driver: Driver;
  #isOurs = false;

  /** @throws InvalidInput OPTION_INVALID */
  constructor(timers: FakeTimers) {
    const driver = driverOf(timers);
    const expected = '`vi` of Vitest, `jest` of Jest or `mock.timers` of node:test';
    if (driver === undefined) throw new InvalidInput('OPTION_INVALID', 'timers', expected, timers);
    this.#timers = timers;
    this.#driver = driver;
  }

  /**
   * Install the fakes, unless the test has done this.
   * @param now wall-clock time in milliseconds; undefined: the date of fakes that are installed already
   * @param start the time for fakes that are not installed
   * @returns the time of the fakes
   * @throws StateError KIT_IN_USE, FAKE_TIMERS_UNSUITABLE
   */
  start(now: number | undefined, start: number): number {
    if (leaders.has(this.#timers)) {
      const text =
        'the fake timers follow the clock of another kit; dispose of it first. Tests that run concurrently cannot share them';
      throw new StateError('KIT_IN_USE', text);
    }
    const isInstalled = this.#driver.isInstalled();
    const time = isInstalled ? (now ?? Date.now()) : start;
    if (!isInstalled) {
      this.#driver.install(time);
      this.#isOurs = true;
    }
    try {
      this.setNow(time);
    } catch (error) {
      this.stop();
      throw error;
    }
    leaders.add(this.#timers);
    return time;
  }

  /** Restore the functions, if `start` has replaced them. */
  stop(): void {
    leaders.delete(this.#timers);
    if (this.#isOurs) this.#driver.restore();
    this.#isOurs = false;
  }

  /** Set the fake date, in wall-clock milliseconds, without firing timers. @throws StateError FAKE_TIMERS_UNSUITABLE */
  setNow(now: number): void {
    const date = Math.floor(now); // fakes have whole milliseconds
    const { isInstalled, wronglyFaked, setNow } = this.#driver;
    if (!isInstalled()) throw this.#unsuitable('no timers are faked');
    const wrong = wronglyFaked();
    if (wrong.length > 0) throw this.#unsuitable(`${wrong.join(', ')} must not be faked, because streams need it`);
    if (Date.now() !== date) setNow(date);
    if (Date.now() !== date) throw this.#unsuitable('Date is not faked');
  }

  /** False if no fake timer is armed. */
  get mayHaveTimers(): boolean {
    return this.#driver.mayHaveTimers();
  }

  /** False if a step may pass without a timer that has fired. */
  get tells(): boolean {
    return this.#driver.tells;
  }

  /**
   * Advance from one wall-clock time to the next fake timer, at most to `until`, and fire it. `Date.now()` is then the time that was reached.
   * @throws what a timer throws
   */
  step(from: number, until: number): StepOutcome {
    return this.#driver.step(Math.floor(until) - Math.floor(from));
  }

  #unsuitable(why: string): StateError {
    const text = `kit.clock cannot move the fake timers: ${why}. Leave it to the kit to fake timers, or call ${this.#driver.remedy}`;
    return new StateError('FAKE_TIMERS_UNSUITABLE', text);
  }
}

function driverOf(timers: FakeTimers | undefined | null): Driver | undefined {
  const { tick, advanceTimersToNextTimer } = (timers ?? {}) as { readonly [name: string]: unknown };
  if (typeof advanceTimersToNextTimer === 'function') return runnerDriver(timers as RunnerTimers);
  if (typeof tick === 'function') return mockDriver(timers as MockTimers);
  return undefined;
}

/** The fakes of Vitest and Jest mark each function that they replace with the property `clock`. */
function isMarked(fake: unknown): boolean {
  return typeof fake === 'function' && Object.hasOwn(fake, 'clock');
}

function runnerDriver(timers: RunnerTimers): Driver {
  const isVitest = 'isFakeTimers' in timers;
  return {
    remedy: isVitest
      ? `vi.useFakeTimers({ toFake: [${quoted(FAKED)}] })`
      : `jest.useFakeTimers({ doNotFake: [${quoted(REAL)}] })`,
    isInstalled: () => isMarked(globalThis.setTimeout),
    wronglyFaked: () => {
      const { setImmediate, process, queueMicrotask } = globalThis;
      const functions: { readonly [name: string]: unknown } = {
        setImmediate,
        nextTick: process.nextTick,
        queueMicrotask
      };
      return REAL.filter((name) => isMarked(functions[name]));
    },
    // Each runner reads one of the two lists.
    install: (now) => timers.useFakeTimers(isVitest ? { now, toFake: FAKED } : { now, doNotFake: NOT_FAKED }),
    restore: () => timers.useRealTimers(),
    setNow: (now) => timers.setSystemTime(now),
    mayHaveTimers: () => timers.getTimerCount() > 0,
    tells: true,
    step: (ms) => {
      let hasEnded = false;
      const end = globalThis.setTimeout(() => (hasEnded = true), Math.min(ms, STEP_MS));
      try {
        timers.advanceTimersToNextTimer();
      } finally {
        globalThis.clearTimeout(end);
      }
      if (!hasEnded) return 'fired';
      return ms === 0 ? 'over' : 'passed';
    }
  };
}

function mockDriver(timers: MockTimers): Driver {
  return {
    remedy: "mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] })",
    isInstalled: () => globalThis.setTimeout !== realSetTimeout,
    wronglyFaked: () => (globalThis.setImmediate === realSetImmediate ? [] : ['setImmediate']),
    install: (now) => {
      timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now });
      endClearedIntervals();
    },
    restore: () => timers.reset(),
    setNow: (now) => timers.setTime(now),
    mayHaveTimers: () => true,
    tells: false,
    step: (ms) => {
      timers.tick(Math.min(ms, TICK_MS));
      return ms === 0 ? 'over' : 'passed';
    }
  };
}

/**
 * Make clearing an interval in its own function effective, as MQTT.js does when it connects again: `mock.timers` arms it again after the
 * function. `reset` also restores these functions.
 */
function endClearedIntervals(): void {
  const { setInterval, clearInterval, clearTimeout } = globalThis;
  const cleared = new Set<unknown>();
  const running = new Set<unknown>();
  const clearing =
    (clear: (timer?: never) => void) =>
    (timer?: unknown): void => {
      if (running.has(timer)) cleared.add(timer);
      clear(timer as never);
    };
  globalThis.clearInterval = clearing(clearInterval) as typeof clearInterval;
  globalThis.clearTimeout = clearing(clearTimeout) as typeof clearTimeout;
  globalThis.setInterval = ((run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const timer: unknown = setInterval(() => {
      if (cleared.has(timer)) return;
      running.add(timer);
      try {
        run(...args);
      } finally {
        running.delete(timer);
      }
    }, ms);
    return timer;
  }) as typeof setInterval;
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(', ');
}
