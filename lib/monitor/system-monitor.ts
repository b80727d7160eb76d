import { PerformanceObserver } from 'node:perf_hooks';
import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { WarningKind } from './sys.ts';

/** Minimum duration of a garbage collection that is reported. */
const LONG_GC_MS = 100;
/** Minimum delay of a timer that is reported. */
const LONG_SCHEDULE_MS = 240;
const CHECK_INTERVAL_MS = 1_000;

/** Detects long garbage collections and long turns of the event loop, which are reported under `$SYS/.../sysmon/`. */
export class SystemMonitor extends BaseTimer {
  readonly #wheel: TimingWheel;
  readonly #toleratedMs: number;
  readonly #warn: (kind: WarningKind, subject: string, text: string) => void;
  #expectedMs = Infinity;
  #collections: PerformanceObserver | undefined;

  /** @param tickMs the tick of the timing wheel, by which its timers may be late */
  constructor(wheel: TimingWheel, tickMs: number, warn: (kind: WarningKind, subject: string, text: string) => void) {
    super();
    this.#wheel = wheel;
    this.#toleratedMs = LONG_SCHEDULE_MS + tickMs;
    this.#warn = warn;
  }

  start(nowMs: number): void {
    this.#armNext(nowMs);
    this.#collections = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) {
        if (duration >= LONG_GC_MS) this.#warn('long_gc', 'process', `took ${Math.round(duration)} ms`);
      }
    });
    this.#collections.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#wheel.disarm(this);
    this.#collections?.disconnect();
    this.#collections = undefined;
  }

  ring(nowMs: number): void {
    const lateMs = nowMs - this.#expectedMs;
    this.#armNext(nowMs);
    if (lateMs >= this.#toleratedMs) this.#warn('long_schedule', 'process', `a turn took ${Math.round(lateMs)} ms`);
  }

  #armNext(nowMs: number): void {
    this.#expectedMs = nowMs + CHECK_INTERVAL_MS;
    this.#wheel.armAt(this, this.#expectedMs);
  }
}
