import type { Clock } from '../../lib/base/clock.ts';
import type { StreamFunctionTools } from '../../lib/streams/function.ts';
import type { Timers } from '../../lib/streams/operators/operator.ts';

interface VirtualTimer {
  readonly at: number;
  readonly number: number;
  readonly run: () => void;
}

/** If more timers than this fire at the same time, each of them sets the next one: the clock would never advance. */
const MAX_RINGS = 10_000;

/** A clock that stands still until it is advanced. Its timers fire in the order of their times. */
export class VirtualClock implements Clock, Timers {
  #now: number;
  #numbers = 0;
  readonly #timers = new Set<VirtualTimer>();

  constructor(now = 0) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  at(timeMs: number, run: () => void): () => void {
    const timer = { at: timeMs, number: this.#numbers++, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  setTimeout(run: () => void, delayMs: number): unknown {
    return this.at(this.#now + delayMs, run);
  }

  clearTimeout(timer: unknown): void {
    (timer as (() => void) | undefined)?.();
  }

  /** Fire all timers that are due up to a time. */
  advanceTo(time: number): void {
    for (let rings = 0; ; rings++) {
      const due = [...this.#timers]
        .filter(({ at }) => at <= time)
        .sort((a, b) => a.at - b.at || a.number - b.number)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      if (due.at > this.#now) rings = 0;
      else if (rings > MAX_RINGS)
        throw new Error(`more than ${MAX_RINGS} timers were set for ${this.#now} ms, one by another`);
      this.#now = Math.max(this.#now, due.at);
      due.run();
    }
    this.#now = Math.max(this.#now, time);
  }
}

/** Tools for functions, on a clock of the test, in UTC. */
export function testTools(timers: Pick<Timers, 'now'>): StreamFunctionTools {
  return {
    ruleId: 'r1',
    startedAt: timers.now(),
    now: () => timers.now(),
    random: () => 0.5,
    pattern: () => {
      throw new Error('no patterns here');
    },
    offsetMinutes: () => 0,
    property: () => undefined,
    hits: { count: 0, lastAt: 0 },
    groupHits: { count: 0, lastAt: 0 },
    delayed: { until: 0 },
    frame: { range: undefined, rowNumber: 0 }
  } as StreamFunctionTools;
}
