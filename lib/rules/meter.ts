import type { RuleFigures } from './types.ts';

/** Seconds between two ticks. */
export const TICK_SEC = 10;
/** Ticks in five minutes. */
const TICKS_OF_5M = 30;

/** Counts what becomes of the events of a rule. */
export class Meter {
  #matched = 0;
  #passed = 0;
  #exception = 0;
  #noResult = 0;
  #matchedAtTick = 0;
  #speeds: number[] = [];
  #speedMax = 0;

  /** An event of the topics of the rule. @returns whether it is the first one */
  match(): boolean {
    return this.#matched++ === 0;
  }

  /** The event has an output. */
  pass(): void {
    this.#passed++;
  }

  /** WHERE has excluded the event. */
  exclude(): void {
    this.#noResult++;
  }

  /** The statement has failed for the event. */
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

  get figures(): RuleFigures {
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

function rounded(speed: number): number {
  return Math.round(speed * 100) / 100;
}
