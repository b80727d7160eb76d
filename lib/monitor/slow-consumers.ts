import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { Alarms } from './alarms.ts';

/** Number of clients disconnected as slow consumers within `WINDOW_MS` at which the alarm is raised. */
const MANY = 10;
const WINDOW_MS = 60_000;
const ALARM = 'slow_consumers';

/** Raises an alarm when many clients do not read, and clears it when there was none for a minute. */
export class SlowConsumers extends BaseTimer {
  readonly #wheel: TimingWheel;
  readonly #alarms: Alarms;
  /** Number of slow consumers since `#sinceMs`. */
  #count = 0;
  #sinceMs = -Infinity;

  constructor(wheel: TimingWheel, alarms: Alarms) {
    super();
    this.#wheel = wheel;
    this.#alarms = alarms;
  }

  /** Count a client that was disconnected because it did not read. */
  add(nowMs: number): void {
    if (nowMs - this.#sinceMs >= WINDOW_MS) {
      this.#sinceMs = nowMs;
      this.#count = 0;
    }
    this.#wheel.arm(this, WINDOW_MS);
    if (++this.#count !== MANY || this.#alarms.get(ALARM) !== undefined) return;
    const summary = `${MANY} clients were disconnected within ${WINDOW_MS / 1000} s because they did not read (option slowConsumerTimeout). Their network, or this machine, may be overloaded.`;
    this.#alarms.raise({ id: ALARM, title: 'many slow consumers', summary });
  }

  /** Clear the alarm, because the broker stops. */
  stop(): void {
    this.#wheel.disarm(this);
    this.ring();
  }

  ring(): void {
    this.#alarms.clear(ALARM);
    this.#sinceMs = -Infinity;
  }
}
