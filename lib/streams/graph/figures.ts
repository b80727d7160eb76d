import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';

/** Latency and the time of the last item are taken for one item in so many, and for the first. A power of 2. */
export const SAMPLE = 64;

/** What the status shows of a node. Counters are exact; times are those of a sample of the items. */
export class Figures {
  recordsIn = 0;
  recordsOut = 0;
  exceptions = 0;
  /** Microseconds that the last sampled item took. */
  latencyUs = 0;
  /** Wall-clock milliseconds; 0: never. */
  lastAt = 0;
  lastException = '';
  lastExceptionAt = 0;
  /** Counters of the operator, such as `late_total`. undefined: there are none. */
  more: Map<string, number> | undefined;

  /** Add to a counter of the operator. */
  count(name: string, by: number): void {
    this.more ??= new Map();
    this.more.set(name, (this.more.get(name) ?? 0) + by);
  }

  /** An item has arrived. @returns whether its time is to be taken */
  arrived(): boolean {
    return this.recordsIn++ % SAMPLE === 0;
  }

  /** An item has been passed on. */
  passed(): void {
    this.recordsOut++;
  }

  /** Items have arrived and been passed on that were counted elsewhere. */
  add(recordsIn: number, recordsOut: number): void {
    this.recordsIn += recordsIn;
    this.recordsOut += recordsOut;
  }

  /** The time of an item of the sample. */
  seen(nowMs: number): void {
    this.lastAt = nowMs;
  }

  /** @param startedAt monotonic milliseconds of an item of the sample */
  took(clock: Clock, startedAt: number): void {
    this.latencyUs = Math.round((clock.monotonic() - startedAt) * 1000);
  }

  failed(error: unknown, nowMs: number): void {
    this.exceptions++;
    this.lastException = errorText(error);
    this.lastExceptionAt = nowMs;
  }
}
