import { FunctionTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { RuleCounters } from './types.ts';

/** Seconds between two ticks. */
export const TICK_SEC = 10;
/** Ticks in five minutes. */
const TICKS_OF_5M = 30;

/** Counts the events of a rule by their result. */
export class Meter {
  #matched = 0;
  #passed = 0;
  #exception = 0;
  #noResult = 0;
  #matchedAtTick = 0;
  #speeds: number[] = [];
  #speedMax = 0;

  /** Count an event of the topics of the rule. @returns whether it is the first one */
  match(): boolean {
    return this.#matched++ === 0;
  }

  /** Count an event with an output. */
  pass(): void {
    this.#passed++;
  }

  /** Count an event that WHERE excluded. */
  exclude(): void {
    this.#noResult++;
  }

  /** Count an event for which the statement failed. */
  fail(): void {
    this.#exception++;
  }

  /** Measure the speed since the last tick. Called every `TICK_SEC` from the first match on. */
  tick(): void {
    const speed = (this.#matched - this.#matchedAtTick) / TICK_SEC;
    this.#matchedAtTick = this.#matched;
    this.#speedMax = Math.max(this.#speedMax, speed);
    this.#speeds.push(speed);
    if (this.#speeds.length > TICKS_OF_5M) this.#speeds.shift();
  }

  get counters(): RuleCounters {
    const speeds = this.#speeds;
    const exception = this.#exception;
    const noResult = this.#noResult;
    const mean = speeds.length === 0 ? 0 : speeds.reduce((sum, speed) => sum + speed, 0) / speeds.length;
    return {
      matched: this.#matched,
      passed: this.#passed,
      failed: exception + noResult,
      exception,
      noResult,
      speed: rounded(speeds[speeds.length - 1] ?? 0),
      speedMax: this.#speedMax,
      speedLast5m: rounded(mean)
    };
  }
}

/** Ticks of the meters that have matched an event. */
export class Meters {
  readonly #wheel: TimingWheel;
  readonly #all = new Set<Meter>();
  readonly #tick = new FunctionTimer(() => {
    for (const meter of this.#all) meter.tick();
    this.begin();
  });

  constructor(wheel: TimingWheel) {
    this.#wheel = wheel;
  }

  /** Called when the first event has matched. */
  add(meter: Meter): void {
    this.#all.add(meter);
    this.begin();
  }

  delete(meter: Meter): void {
    this.#all.delete(meter);
  }

  /** Called when the broker has started: timers end at a stop. */
  begin(): void {
    if (this.#all.size > 0 && this.#tick.dueMs === Infinity) this.#wheel.arm(this.#tick, TICK_SEC * 1000);
  }
}

function rounded(speed: number): number {
  return Math.round(speed * 100) / 100;
}
