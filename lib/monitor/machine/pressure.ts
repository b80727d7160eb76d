// An acknowledgement has two limits. A message dropped by a configured bound is not a loss: it is counted and
// announced. Above the watermark, with the bounds exhausted, a message that would have to wait is refused before any
// receiver gets it.

import { BrokerError } from '../../base/errors.ts';
import type { TimingWheel } from '../../base/timing-wheel.ts';
import type { Announcer } from '../../events/announcer.ts';
import { Metric, type Metrics } from '../../events/metrics.ts';
import { TotalBacklog } from '../../session/total-backlog.ts';
import type { Alarms } from '../alarms.ts';
import type { SysNotices } from '../sys-notices.ts';
import { Memory } from './memory.ts';

const SPACE_ALARM = 'store_space_low';
const MEMORY_ALARM = 'memory_high_watermark';

/** The services of the broker that `Pressure` uses. */
interface PressureServices {
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  readonly announcer: Announcer;
  readonly notices: SysNotices;
  readonly alarms: Alarms;
  readonly settings: {
    readonly maxTotalMqueueBytes: number;
    readonly memoryHighWatermark: number;
    readonly memoryUsage: (() => number) | undefined;
  };
}

/** Measures that `Pressure` takes when memory is short. */
interface Relief {
  /** Close the connections whose CONNECT has not been accepted. */
  closeUnadmitted(): void;
  /** Drop all queued QoS 0 messages. */
  shedQos0(): void;
}

/** Detects shortage of memory and of store space, and applies the consequences. */
export class Pressure {
  /** True if the reserve of the store is in use. Operations that would make the store grow are refused. */
  isSpaceLow = false;
  /** The queues of all sessions. */
  readonly totalBacklog: TotalBacklog;
  readonly #services: PressureServices;
  readonly #relief: Relief;
  readonly #memory: Memory;

  constructor(services: PressureServices, relief: Relief) {
    const { settings, wheel } = services;
    this.#services = services;
    this.#relief = relief;
    this.totalBacklog = new TotalBacklog(settings.maxTotalMqueueBytes);
    this.#memory = new Memory(
      settings.memoryHighWatermark,
      wheel,
      (isShort, isChange) => {
        if (isShort) relief.closeUnadmitted();
        if (isChange) this.#shed(isShort);
      },
      settings.memoryUsage
    );
  }

  /** Apply changed limits of memory: `memoryHighWatermark`, `maxTotalMqueueBytes`. */
  configured(): void {
    const { settings } = this.#services;
    this.#memory.limit(settings.memoryHighWatermark);
    this.totalBacklog.limit(settings.maxTotalMqueueBytes);
  }

  /** True if memory is short, so that QoS 0 messages are not queued. */
  get isShedding(): boolean {
    return this.#memory.isShort;
  }

  /** True if memory stays above the high watermark, although the backlogs are within their limits. */
  get isMemoryExhausted(): boolean {
    return this.#memory.isExhausted;
  }

  /** True if some QoS 1 and 2 messages are refused, because there is no room to queue them. */
  get isRefusing(): boolean {
    return this.#memory.isExhausted || this.isSpaceLow;
  }

  /** Start checking memory. */
  start(): void {
    this.#memory.start();
  }

  /** Set whether the reserve of the store is in use. @param storeName the name of the store, for messages */
  spaceIsLow(isLow: boolean, storeName: string): void {
    if (isLow === this.isSpaceLow) return;
    this.isSpaceLow = isLow;
    const summary = `${storeName}: the space of the store is used up; writes that would make it grow are refused until disk space is freed`;
    const { alarms, announcer } = this.#services;
    if (!isLow) {
      alarms.clear(SPACE_ALARM);
      return;
    }
    alarms.raise({ id: SPACE_ALARM, severity: 'critical', title: 'the store is full', summary });
    announcer.failed(new BrokerError('STORE_SPACE_LOW', summary), 'checking the space of the store', undefined);
  }

  #shed(isShort: boolean): void {
    const { notices, alarms, announcer, metrics } = this.#services;
    if (!isShort) {
      alarms.clear(MEMORY_ALARM);
      return;
    }
    const summary =
      'memory in use is above memoryHighWatermark: the broker closes new connections and those whose CONNECT is not accepted yet, except those of clients that return to a stored session, and does not queue QoS 0 messages';
    alarms.raise({ id: MEMORY_ALARM, severity: 'critical', title: 'memory is short', summary });
    metrics.counts[Metric.overloadShed]++;
    this.#relief.shedQos0();
    notices.warn('large_heap', 'process', summary);
    announcer.failed(new BrokerError('MEMORY_SHORT', summary), 'checking memory', undefined);
  }
}
