import { BrokerError } from '../base/errors.ts';
import type { TimingWheel } from '../base/timing-wheel.ts';
import type { Announcer } from '../events/announcer.ts';
import { Metric, type Metrics } from '../events/metrics.ts';
import { StoredBacklog } from '../session/log.ts';
import { TotalBacklog } from '../session/total-backlog.ts';
import { Memory } from './memory.ts';
import type { SysNotices } from './sys-notices.ts';

/** What watching for shortage asks of the broker. */
export interface PressureHost {
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  readonly announcer: Announcer;
  readonly notices: SysNotices;
  readonly settings: {
    readonly maxTotalMqueueBytes: number;
    readonly memoryHighWatermark: number;
    readonly memoryUsage: (() => number) | undefined;
  };
  /** Memory is short: close connections whose CONNECT has not been accepted. */
  closeUnadmitted(): void;
  /** Memory is short: drop what is queued at QoS 0. */
  shedQos0(): void;
}

/** Shortage of memory and of space in the store, and what follows from it. */
export class Pressure {
  /** The reserve of the store is in use: what makes it grow is refused. */
  isSpaceLow = false;
  /** The backlogs of all sessions, in memory. */
  readonly totalBacklog: TotalBacklog;
  /** Those in the store. */
  readonly storedBacklog = new StoredBacklog();
  readonly #host: PressureHost;
  readonly #memory: Memory;

  constructor(host: PressureHost) {
    const { settings } = host;
    this.#host = host;
    this.totalBacklog = new TotalBacklog(settings.maxTotalMqueueBytes);
    this.#memory = new Memory(
      settings.memoryHighWatermark,
      host.wheel,
      (isShort, isChange) => {
        if (isShort) host.closeUnadmitted();
        if (isChange) this.#shed(isShort);
      },
      settings.memoryUsage
    );
  }

  /** Memory is short: what may be dropped is. */
  get isShedding(): boolean {
    return this.#memory.isShort;
  }

  /** Memory stays above the mark, though the backlogs keep to their bounds. */
  get isMemoryExhausted(): boolean {
    return this.#memory.isExhausted;
  }

  /** Some messages of QoS 1 and 2 are refused, as there is no room to queue them. */
  get isRefusing(): boolean {
    return this.#memory.isExhausted || this.isSpaceLow;
  }

  /** Begin to watch memory. */
  start(): void {
    this.#memory.start();
  }

  /** Whether the reserve of the store is in use. @param storeName for the message */
  spaceIsLow(isLow: boolean, storeName: string): void {
    if (isLow === this.isSpaceLow) return;
    this.isSpaceLow = isLow;
    const summary = `${storeName}: the space of the store is used up; writes that would make it grow are refused until space is free`;
    const { notices, announcer } = this.#host;
    notices.alarm(isLow ? 'alert' : 'clear', { id: 'store_space_low', title: 'the store is full', summary });
    if (isLow)
      announcer.failed(new BrokerError('STORE_SPACE_LOW', summary), 'looking at the space of the store', undefined);
  }

  #shed(isShort: boolean): void {
    const { notices, announcer, metrics } = this.#host;
    const id = 'memory_high_watermark';
    const summary =
      'memory in use is above memoryHighWatermark: connections whose CONNECT has not been accepted, and new ones, are closed, except those of clients that return to a stored session; QoS 0 messages are not queued';
    notices.alarm(isShort ? 'alert' : 'clear', { id, title: 'memory is short', summary });
    if (!isShort) return;
    metrics.counts[Metric.overloadShed]++;
    this.#host.shedQos0();
    notices.warn('large_heap', 'process', summary);
    announcer.failed(new BrokerError('MEMORY_SHORT', summary), 'watching memory', undefined);
  }
}
