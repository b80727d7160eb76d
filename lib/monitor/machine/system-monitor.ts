import type { PerformanceObserver } from 'node:perf_hooks';
import { perfHooks } from '../../base/builtins.ts';
import { BaseTimer, type TimingWheel } from '../../base/timing-wheel.ts';
import type { Alarms } from '../alarms.ts';
import type { WarningKind } from '../sys.ts';

/** Minimum duration of a garbage collection that is reported. */
const LONG_GC_MS = 100;
/** Minimum delay of a timer that is reported. */
const LONG_SCHEDULE_MS = 240;
const CHECK_INTERVAL_MS = 1_000;
/** Mask of the checks that the alarm considers, one bit each. */
const RECENT_CHECKS = 0x3ff;
/** Number of these checks with a long turn at which the alarm is raised. It is cleared if there is none. */
const LATE_CHECKS = 3;
const ALARM = 'event_loop_delay';

/** The services of the broker that `SystemMonitor` uses. */
interface MonitorServices {
  readonly wheel: TimingWheel;
  readonly notices: { warn(kind: WarningKind, subject: string, text: string): void };
  readonly alarms: Alarms;
  readonly settings: { readonly timerResolution: number };
}

/**
 * Detects long garbage collections and long turns of the event loop, which are reported under `$SYS/.../sysmon/`. Several long turns within
 * ten seconds raise an alarm.
 */
export class SystemMonitor extends BaseTimer {
  readonly #wheel: TimingWheel;
  readonly #toleratedMs: number;
  readonly #notices: MonitorServices['notices'];
  readonly #alarms: Alarms;
  #expectedMs = Infinity;
  /** The results of the last checks; 1: a turn was too long. */
  #lateness = 0;
  #isRaised = false;
  #collections: PerformanceObserver | undefined;

  constructor({ wheel, notices, alarms, settings }: MonitorServices) {
    super();
    this.#wheel = wheel;
    this.#toleratedMs = LONG_SCHEDULE_MS + settings.timerResolution; // the delay up to which timers are not late
    this.#notices = notices;
    this.#alarms = alarms;
  }

  start(nowMs: number): void {
    this.#armNext(nowMs);
    this.#collections = new (perfHooks().PerformanceObserver)((list) => {
      for (const { duration } of list.getEntries()) {
        if (duration >= LONG_GC_MS) this.#notices.warn('long_gc', 'process', `took ${Math.round(duration)} ms`);
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
    const isLate = lateMs >= this.#toleratedMs;
    if (isLate) this.#notices.warn('long_schedule', 'process', `a turn took ${Math.round(lateMs)} ms`);
    this.#lateness = ((this.#lateness << 1) | Number(isLate)) & RECENT_CHECKS;
    if (isLate || this.#isRaised) this.#setAlarm();
  }

  #setAlarm(): void {
    const count = this.#lateness.toString(2).replaceAll('0', '').length;
    if (!this.#isRaised && count >= LATE_CHECKS) {
      this.#isRaised = true;
      const summary = `${count} of the last 10 checks found that a turn of the event loop took ${LONG_SCHEDULE_MS} ms or more. The process has more work than one processor can do, or something in it blocks.`;
      this.#alarms.raise({ id: ALARM, title: 'the event loop is delayed', summary });
    } else if (this.#isRaised && count === 0) {
      this.#isRaised = false;
      this.#alarms.clear(ALARM);
    }
  }

  #armNext(nowMs: number): void {
    this.#expectedMs = nowMs + CHECK_INTERVAL_MS;
    this.#wheel.armAt(this, this.#expectedMs);
  }
}
