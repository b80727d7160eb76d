import type { Clock } from '../base/clock.ts';
import { unknownName } from '../base/options-table.ts';
import { FunctionTimer, type TimingWheel } from '../base/timing-wheel.ts';
import { COUNTERS, GAUGES, type Metrics, PLAIN_GAUGES } from '../events/metrics.ts';

/** Interval of the samples, and their greatest number: one hour. */
const INTERVAL_MS = 10_000;
const MAX_SAMPLES = 360;

/** Gauges by their names in lists. */
const GAUGE_NAMES = [...GAUGES.map((name) => `${name}.count` as const), ...PLAIN_GAUGES];
/** Names of all figures: counters and gauges. */
export const FIGURE_NAMES: readonly string[] = [...COUNTERS, ...GAUGE_NAMES];

/** The values of all figures at one time. */
interface Sample {
  /** Milliseconds since 1970. */
  at: number;
  /** Counters per second, and gauges, in the order of `FIGURE_NAMES`. */
  readonly values: Float32Array;
}

/** Figures of the last hour. */
export interface FigureSeries {
  /** The times of the samples in milliseconds since 1970, the oldest first. */
  readonly at: readonly number[];
  /** For each figure its values at these times: counters per second since the sample before, gauges as they were. */
  readonly series: Readonly<Record<string, readonly number[]>>;
}

/** What `Figures` uses of the broker. */
interface FigureHost {
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
}

/**
 * All counters and gauges of the last hour, every ten seconds: `broker.monitor.figures`. They are kept only in memory.
 *
 * Sampling begins with the broker. With a virtual clock it begins with `start` or the first `read`, so that a test that lets days pass is
 * not slowed down.
 */
export class Figures {
  readonly #timer = new FunctionTimer((nowMs) => this.#measure(nowMs));
  readonly #host: FigureHost;
  /** A ring from `#next` on, as soon as it is full. */
  readonly #samples: Sample[] = [];
  #next = 0;
  /** The counters at the last sample. */
  readonly #before = new Float64Array(COUNTERS.length);
  #beforeMs = 0;

  /** @internal */
  constructor({ clock, wheel, metrics }: FigureHost) {
    this.#host = { clock, wheel, metrics };
  }

  /** Begin to take samples, unless they are being taken. They end with the broker. */
  start(): void {
    if (this.#timer.dueMs !== Infinity) return;
    const { clock, wheel, metrics } = this.#host;
    this.#before.set(metrics.counts);
    this.#beforeMs = clock.monotonic();
    wheel.arm(this.#timer, INTERVAL_MS);
  }

  /** Take no more samples. Those that were taken stay. */
  stop(): void {
    this.#host.wheel.disarm(this.#timer);
  }

  /**
   * Read figures of the last hour.
   * @param names counters (`messages.received`) and gauges (`connections.count`)
   * @param from the time of the first sample, in milliseconds since 1970. Default: all samples
   * @throws InvalidInput METRIC_UNKNOWN, with a suggestion
   */
  read(names: readonly string[], from = 0): FigureSeries {
    this.start();
    const indexes = names.map((name) => {
      const at = FIGURE_NAMES.indexOf(name);
      if (at < 0) throw unknownName('METRIC_UNKNOWN', 'figure', name, FIGURE_NAMES);
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
    const { clock, wheel, metrics } = this.#host;
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
    this.#before.set(counts);
    this.#beforeMs = nowMs;
  }

  /** The place of a new sample: that of the oldest one if there are enough. */
  #slot(): Sample {
    if (this.#samples.length < MAX_SAMPLES) {
      const sample = { at: 0, values: new Float32Array(FIGURE_NAMES.length) };
      this.#samples.push(sample);
      return sample;
    }
    const sample = this.#samples[this.#next];
    this.#next = (this.#next + 1) % MAX_SAMPLES;
    return sample;
  }
}

/** Rates have as many digits as say something. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
