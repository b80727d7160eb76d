import { HISTORY_METRICS } from '../../../lib/adapter.ts';
import type { Broker } from '../../../lib/index.ts';
import type { LiveKind, SharedSampler } from './live-kind.ts';

const NANOSECONDS = 1e6;
/** Readings of several watches within this time are one: they count from the one before, and a timer reads for all. */
const SAME_MS = 500;
/** The first rates are measured over at least this time: about a second, because the timer that reads may ring soon after the first reading. */
const FIRST_MS = 900;

/** Reads counters as rates, and gauges as they are. The watches of all tabs share one, and its histogram of the delay. */
class Sampler implements SharedSampler {
  watches = 0;
  #last: object | undefined;
  #hasRates = false;
  readonly #broker: Broker;
  #counters: Readonly<Record<string, number>>;
  #atMs: number;
  readonly #delay = process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: 20 });

  constructor(broker: Broker) {
    this.#broker = broker;
    this.#counters = broker.metrics.counters();
    this.#atMs = broker.clock.monotonic();
    this.#delay.enable();
  }

  close(): void {
    this.#delay.disable();
  }

  read(): object {
    const ageMs = this.#broker.clock.monotonic() - this.#atMs;
    this.#hasRates ||= ageMs >= FIRST_MS;
    if (this.#last === undefined || (this.#hasRates && ageMs >= SAME_MS)) this.#last = this.#reading();
    return this.#last;
  }

  #reading(): object {
    const { metrics, alarms, clock } = this.#broker;
    const counters: Readonly<Record<string, number>> = metrics.counters();
    const gauges: Readonly<Record<string, number>> = metrics.gauges();
    const nowMs = clock.monotonic();
    const seconds = (nowMs - this.#atMs) / 1_000;
    const rateOf = (name: string) => (counters[name] - this.#counters[name]) / seconds;
    const names = HISTORY_METRICS.filter((name) => this.#hasRates || !(name in counters));
    const values = names.map((name) => [name, name in counters ? rateOf(name) : gauges[name]]);
    this.#counters = counters;
    this.#atMs = nowMs;
    const { rss, heapUsed } = process.memoryUsage();
    const loopDelayMs = this.#delay.max / NANOSECONDS;
    this.#delay.reset();
    return {
      at: clock.now(),
      hasRates: this.#hasRates,
      values: Object.fromEntries(values),
      alarms: alarms.present().length,
      memory: { rss, heapUsed },
      loopDelayMs
    };
  }
}

/** The state of the broker, once a second. */
export const OVERVIEW: LiveKind<undefined> = {
  read: () => undefined,
  open({ broker, shared, emit, everySecond }) {
    shared.sampler ??= new Sampler(broker);
    const { sampler } = shared;
    sampler.watches++;
    emit(sampler.read());
    const stop = everySecond(() => emit(sampler.read()));
    return {
      close() {
        stop();
        if (--sampler.watches > 0) return;
        sampler.close();
        shared.sampler = undefined;
      }
    };
  }
};
