import type { IntervalHistogram } from 'node:perf_hooks';
import type { MetricEntry } from './metric-row.ts';

/** The process metrics at one moment. Times are in seconds, sizes in bytes. */
interface ProcessReading {
  readonly cpuUser: number;
  readonly cpuSystem: number;
  readonly memory: NodeJS.MemoryUsage;
  /** Delay since the previous reading; undefined on the first reading. */
  readonly delay: { readonly mean: number; readonly p99: number; readonly max: number } | undefined;
}

/** Interval at which the delay of the event loop is measured; it costs 0.3 % of a core. */
const RESOLUTION_MS = 20;
const NS = 1e9;
/** In seconds since 1970. Computed once, because the difference of the two clocks varies. */
const START_TIME = Date.now() / 1000 - process.uptime();

/** Reads the metrics of this process. The delay of the event loop is measured from the first reading. */
export class ProcessMetrics {
  #delays: IntervalHistogram | undefined;

  read(): ProcessReading {
    const { user, system } = process.cpuUsage();
    return {
      cpuUser: user / 1e6,
      cpuSystem: system / 1e6,
      memory: process.memoryUsage(),
      delay: this.#readDelay()
    };
  }

  #readDelay(): ProcessReading['delay'] {
    if (this.#delays === undefined) {
      const { monitorEventLoopDelay } = process.getBuiltinModule('node:perf_hooks');
      this.#delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#delays.enable();
      return undefined;
    }
    const { count, mean, max } = this.#delays;
    if (count === 0) return undefined;
    // Node records the intervals, not the delays
    const seconds = (ns: number) => Math.max(0, ns / NS - RESOLUTION_MS / 1000);
    const delay = { mean: seconds(mean), p99: seconds(this.#delays.percentile(99)), max: seconds(max) };
    this.#delays.reset();
    return delay;
  }
}

function row(
  name: string,
  kind: MetricEntry<ProcessReading>['kind'],
  about: string,
  read: (reading: ProcessReading) => number | undefined
): MetricEntry<ProcessReading> {
  return {
    name,
    dottedName: name.replaceAll('_', '.'),
    kind,
    unit: name.endsWith('_bytes') ? 'By' : 's',
    about,
    samples: (reading) => {
      const value = read(reading);
      return value === undefined ? [] : [{ value }];
    }
  };
}

/** The metrics of the process, under the names that Prometheus client libraries use. */
export const PROCESS_ROWS: readonly MetricEntry<ProcessReading>[] = [
  row('process_cpu_seconds', 'counter', 'CPU time of the process', ({ cpuUser, cpuSystem }) => cpuUser + cpuSystem),
  row('process_cpu_user_seconds', 'counter', 'CPU time of the process in user mode', ({ cpuUser }) => cpuUser),
  row('process_cpu_system_seconds', 'counter', 'CPU time of the process in the kernel', ({ cpuSystem }) => cpuSystem),
  row(
    'process_start_time_seconds',
    'gauge',
    'Time of the start of the process, in seconds since 1970',
    () => START_TIME
  ),
  row('process_resident_memory_bytes', 'gauge', 'Resident memory of the process', ({ memory }) => memory.rss),
  row('nodejs_heap_size_total_bytes', 'gauge', 'Size of the heap of V8', ({ memory }) => memory.heapTotal),
  row('nodejs_heap_size_used_bytes', 'gauge', 'Part of the heap of V8 that is in use', ({ memory }) => memory.heapUsed),
  row(
    'nodejs_external_memory_bytes',
    'gauge',
    'Memory outside the heap that belongs to objects: buffers',
    (reading) => {
      return reading.memory.external;
    }
  ),
  row(
    'nodejs_eventloop_lag_mean_seconds',
    'gauge',
    'Mean delay of the event loop since the previous scrape',
    (reading) => {
      return reading.delay?.mean;
    }
  ),
  row(
    'nodejs_eventloop_lag_p99_seconds',
    'gauge',
    'Delay of the event loop, 99th percentile since the previous scrape',
    (reading) => {
      return reading.delay?.p99;
    }
  ),
  row(
    'nodejs_eventloop_lag_max_seconds',
    'gauge',
    'Maximum delay of the event loop since the previous scrape',
    (reading) => {
      return reading.delay?.max;
    }
  )
];
