import type { AlarmInput, Alarms } from '../alarms.ts';

/** Raises an alarm when a value reaches its high watermark, and clears it when the value is below the low one. */
export class Watermark {
  readonly #alarms: Alarms;
  /** 0: the alarm is never raised. */
  #high = 0;
  #low = 0;
  readonly #describe: (value: number) => AlarmInput;
  /** The alarm that was raised; undefined: none. */
  #raised: string | undefined = undefined;

  /** @param describe creates the alarm, which is not raised before the watermarks are set by `move` */
  constructor(alarms: Alarms, describe: (value: number) => AlarmInput) {
    this.#alarms = alarms;
    this.#describe = describe;
  }

  /**
   * Set the watermarks, and compare the value with them.
   * @param high 0: the alarm is never raised
   * @param value undefined: it is currently unknown
   */
  move(high: number, low: number, value: number | undefined): void {
    this.#high = high;
    this.#low = low;
    if (high === 0) this.#clear();
    else if (value !== undefined) this.is(value);
  }

  /** Compare a new value with the watermarks. */
  is(value: number): void {
    if (this.#raised === undefined) {
      if (this.#high > 0 && value >= this.#high) this.#raise(value);
    } else if (value < this.#low) this.#clear();
  }

  #clear(): void {
    if (this.#raised !== undefined) this.#alarms.clear(this.#raised);
    this.#raised = undefined;
  }

  #raise(value: number): void {
    const alarm = this.#describe(value);
    this.#raised = alarm.id;
    this.#alarms.raise(alarm);
  }
}
