import type { BaseServices } from '../base/base-services.ts';
import type { Clock } from '../base/clock.ts';
import { SliceQueue } from '../base/collections/slice-queue.ts';
import { WorkCount } from '../base/pending-work.ts';
import { TimeReading } from '../base/time-reading.ts';
import { TimingWheel } from '../base/timing-wheel.ts';
import { Announcer } from '../events/announcer.ts';
import { Events } from '../events/events.ts';
import { HookRegistry } from '../events/hooks.ts';
import { type GaugeReaders, Metrics } from '../events/metrics.ts';
import { Alarms, type AlarmTable } from '../monitor/alarms.ts';
import { ReasonLog } from '../monitor/reasons/reason-log.ts';
import { Rejections } from '../monitor/rejections.ts';
import { SysNotices } from '../monitor/sys-notices.ts';
import { PacketTaps } from '../monitor/traces/packet-taps.ts';
import { Traces } from '../monitor/traces/traces.ts';
import type { Settings } from './configuration/options.ts';
import { Life } from './life.ts';
import { Turn } from './turn.ts';

/** The functions of other parts of the broker that the services call. These parts are created later. */
interface LaterParts {
  readonly gauges: GaugeReaders;
  /** Called when listeners or packet taps were added or removed. */
  readonly heardChanged: () => void;
  /** Called with the topic filter of a listener. The function that it returns is called when the listener is removed. */
  readonly observe: (filter: string) => () => void;
  /** Called at the end of a turn, when all connections are flushed. */
  readonly flushed: () => void;
  /** The table that keeps past alarms. */
  readonly alarmTable: () => AlarmTable;
}

/**
 * The services that every part of the broker may use: its settings, time, events, hooks and reports. They are created before the parts and
 * know none of them, except for the functions of `LaterParts`.
 */
export class Services implements BaseServices {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly time: TimeReading;
  readonly work = new WorkCount();
  readonly life = new Life();
  readonly wheel: TimingWheel;
  readonly events: Events;
  readonly metrics: Metrics;
  readonly reasons: ReasonLog;
  readonly announcer: Announcer;
  readonly hooks: HookRegistry;
  readonly taps: PacketTaps;
  readonly traces: Traces;
  readonly notices = new SysNotices();
  readonly alarms: Alarms;
  readonly rejections: Rejections;
  readonly turn: Turn;
  /** The time for lists and other long tasks that nothing else waits for. */
  readonly slices: SliceQueue;

  /** @param broker the `Broker` named in messages of the diagnostics channels */
  constructor(settings: Settings, broker: object, later: LaterParts) {
    const { clock } = settings;
    this.settings = settings;
    this.clock = clock;
    this.time = new TimeReading(clock);
    this.wheel = new TimingWheel(
      clock,
      settings.timerResolution,
      (error) => this.failed(error, 'a timer'),
      (run) => this.later(run) // after the poll phase, in which sockets are read
    );
    this.events = new Events(later.heardChanged, later.observe);
    this.metrics = new Metrics(later.gauges);
    this.reasons = new ReasonLog(settings.reasons === false ? 0 : settings.reasons.maxBytes, this.time);
    this.announcer = new Announcer(this.events, this.metrics, this.reasons);
    this.hooks = new HookRegistry(
      clock,
      settings.hookTimeout,
      (error, during, client) => this.announcer.failed(error, during, client),
      this.work
    );
    this.taps = new PacketTaps(broker, later.heardChanged);
    this.traces = new Traces(this, this.events, this.taps);
    this.alarms = this.#makeAlarms(later.alarmTable);
    this.rejections = new Rejections(this.wheel, this.alarms, this.events, () => clock.monotonic(), this.reasons);
    this.turn = new Turn(this, this.time, later.flushed);
    this.slices = new SliceQueue(clock, this.work);
  }

  later(run: () => void): void {
    this.turn.later(run);
  }

  pause(had?: number): Promise<void> {
    return this.slices.next(had);
  }

  failed(error: unknown, during: string): void {
    this.announcer.failed(error, during, undefined);
  }

  #makeAlarms(table: () => AlarmTable): Alarms {
    const { clock, notices, events, settings } = this;
    return new Alarms({
      get table() {
        return table();
      },
      get maxHistory() {
        return settings.maxAlarmHistory;
      },
      now: () => clock.now(),
      raised: (alarm) => {
        notices.raised(alarm);
        if (events.heard['alarm.raised']) events.emit('alarm.raised', { alarm });
      },
      cleared: (alarm) => {
        notices.cleared(alarm);
        if (events.heard['alarm.cleared']) events.emit('alarm.cleared', { alarm });
      },
      failed: (error, during) => this.failed(error, during)
    });
  }
}
