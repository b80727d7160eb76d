import { HISTORY_METRICS } from '../../../lib/adapter.ts';
import type { Broker } from '../../../lib/index.ts';
import type { LiveKind } from './live-kind.ts';

const NANOSECONDS = 1e6;

/** Reads counters as rates, and gauges as they are. */
class Sampler {
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
    const { metrics, alarms, clock } = this.#broker;
    const counters: Readonly<Record<string, number>> = metrics.counters();
    const gauges: Readonly<Record<string, number>> = metrics.gauges();
    const nowMs = clock.monotonic();
    const seconds = (nowMs - this.#atMs) / 1_000;
    const rateOf = (name: string) => (seconds > 0 ? (counters[name] - this.#counters[name]) / seconds : 0);
    const values = HISTORY_METRICS.map((name) => [name, name in counters ? rateOf(name) : gauges[name]]);
    this.#counters = counters;
    this.#atMs = nowMs;
    const { rss, heapUsed } = process.memoryUsage();
    const loopDelayMs = this.#delay.max / NANOSECONDS;
    this.#delay.reset();
    return {
      at: clock.now(),
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
  open({ broker, emit, everySecond }) {
    const sampler = new Sampler(broker);
    emit(sampler.read());
    const stop = everySecond(() => emit(sampler.read()));
    return {
      close() {
        stop();
        sampler.close();
      }
    };
  }
};
