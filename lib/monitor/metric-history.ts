import type { IntervalHistogram } from 'node:perf_hooks';
import type { BaseServices } from '../base/base-services.ts';
import { systemClock } from '../base/clock.ts';
import { unknownName } from '../base/fields.ts';
import { Pace } from '../base/pace.ts';
import { FunctionTimer } from '../base/timing-wheel.ts';
import { COUNTERS, GAUGES, type Metrics, PLAIN_GAUGES } from '../events/metrics.ts';

/** Interval of the samples; the samples of one hour are kept. */
const INTERVAL_MS = 10_000;
const MAX_SAMPLES = 360;

/** Gauges by their names in lists. */
const GAUGE_NAMES = [...GAUGES.map((name) => `${name}.count` as const), ...PLAIN_GAUGES];
/** Values of the process: resident memory and heap in bytes, the longest delay of the event loop in milliseconds, and all queued messages. */
const PROCESS_NAMES = ['process.memory', 'process.heap', 'process.loopDelay', 'messages.queued'] as const;
/** Names of all counters and gauges. */
export const HISTORY_METRICS: readonly string[] = [...COUNTERS, ...GAUGE_NAMES, ...PROCESS_NAMES];

/** The delays of the event loop. */
type LoopDelay = Pick<IntervalHistogram, 'enable' | 'disable' | 'reset' | 'max'>;

/** The values of all counters and gauges at one time. */
interface Sample {
  /** Milliseconds since 1970. */
  at: number;
  /** Counters per second, and gauges, in the order of `HISTORY_METRICS`. */
  readonly values: Float32Array;
}

/** Counters and gauges of the last hour. */
export interface MetricSeries {
  /** The times of the samples in milliseconds since 1970, the oldest first. */
  readonly at: readonly number[];
  /** The values of each counter or gauge at these times: counters per second since the previous sample, gauges unchanged. */
  readonly series: Readonly<Record<string, readonly number[]>>;
}

/**
 * All counters and gauges of the last hour, every ten seconds: `broker.monitor.metricHistory`. They are kept only in memory.
 *
 * Sampling starts with the broker. With a virtual clock it starts with `start` or the first `read`, so that a test that lets days pass is
 * not slowed down.
 */
export class MetricHistory {
  readonly #timer = new FunctionTimer((nowMs) => this.#measure(nowMs));
  readonly #services: BaseServices;
  readonly #metrics: Metrics;
  /** A ring from `#next` on, once it is full. */
  readonly #samples: Sample[] = [];
  #next = 0;
  /** The counters at the last sample. */
  readonly #before = new Float64Array(COUNTERS.length);
  #beforeMs = 0;
  readonly #countQueued: (pace: Pace) => Promise<number>;
  /** The number of queued messages, counted in slices after the previous sample. */
  #queued = 0;
  #isCounting = false;
  /** Undefined: no samples are taken, or the clock is virtual, which does not measure the process. */
  #delay: LoopDelay | undefined;

  /** @internal */
  constructor(services: BaseServices, metrics: Metrics, countQueued: (pace: Pace) => Promise<number>) {
    this.#services = services;
    this.#metrics = metrics;
    this.#countQueued = countQueued;
  }

  /** Start taking samples, unless this has been done. Sampling ends with the broker. */
  start(): void {
    if (this.#timer.dueMs !== Infinity) return;
    const { clock, wheel } = this.#services;
    this.#before.set(this.#metrics.counts);
    this.#beforeMs = clock.monotonic();
    if (clock === systemClock) {
      this.#delay = process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: 20 });
      this.#delay.enable();
    }
    wheel.arm(this.#timer, INTERVAL_MS);
    void this.#count();
  }

  /** Stop taking samples. The existing samples are kept. */
  stop(): void {
    this.#services.wheel.disarm(this.#timer);
    this.#delay?.disable();
    this.#delay = undefined;
  }

  /**
   * Read counters and gauges of the last hour.
   * @param names counters (`messages.received`) and gauges (`connections.count`)
   * @param from the time of the first sample, in milliseconds since 1970. Default: all samples
   * @throws InvalidInput METRIC_UNKNOWN, with a suggestion
   */
  read(names: readonly string[], from = 0): MetricSeries {
    this.start();
    const indexes = names.map((name) => {
      const at = HISTORY_METRICS.indexOf(name);
      if (at < 0) throw unknownName('METRIC_UNKNOWN', 'figure', name, HISTORY_METRICS);
      return at;
    });
    const samples = [...this.#samples.slice(this.#next), ...this.#samples.slice(0, this.#next)];
    const wanted = samples.filter(({ at }) => at >= from);
    return {
      at: wanted.map(({ at }) => at),
      series: Object.fromEntries(
        names.map((name, i) => [name, wanted.map(({ values }) => rounded(values[indexes[i]]))])
      )
    };
  }

  #measure(nowMs: number): void {
    const { clock, wheel } = this.#services;
    const metrics = this.#metrics;
    wheel.arm(this.#timer, INTERVAL_MS);
    const seconds = (nowMs - this.#beforeMs) / 1_000;
    if (seconds <= 0) return;
    const sample = this.#slot();
    sample.at = clock.now();
    const { values } = sample;
    const { counts } = metrics;
    for (let at = 0; at < COUNTERS.length; at++) values[at] = (counts[at] - this.#before[at]) / seconds;
    let at = COUNTERS.length;
    for (const name of GAUGES) values[at++] = metrics.gauge(name);
    for (const name of PLAIN_GAUGES) values[at++] = metrics.gauge(name);
    const { rss, heapUsed } = process.memoryUsage();
    values[at++] = rss;
    values[at++] = heapUsed;
    values[at++] = (this.#delay?.max ?? 0) / 1e6;
    values[at++] = this.#queued;
    void this.#count();
    this.#delay?.reset();
    this.#before.set(counts);
    this.#beforeMs = nowMs;
  }

  /** Count the queued messages for the next sample, unless this is in progress. */
  async #count(): Promise<void> {
    if (this.#isCounting) return;
    this.#isCounting = true;
    try {
      this.#queued = await this.#countQueued(new Pace((had) => this.#services.pause(had)));
    } catch (error) {
      this.#services.failed(error, 'counting queued messages');
    } finally {
      this.#isCounting = false;
    }
  }

  /** The slot of a new sample: that of the oldest one if there are enough. */
  #slot(): Sample {
    if (this.#samples.length < MAX_SAMPLES) {
      const sample = { at: 0, values: new Float32Array(HISTORY_METRICS.length) };
      this.#samples.push(sample);
      return sample;
    }
    const sample = this.#samples[this.#next];
    this.#next = (this.#next + 1) % MAX_SAMPLES;
    return sample;
  }
}

/** Rounds a rate to its significant digits. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
