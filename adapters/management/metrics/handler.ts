import { checkBroker, field } from '../../../lib/adapter.ts';
import type { Broker } from '../../../lib/index.ts';
import {
  type Answer,
  type Call,
  GUARD_OPTIONS,
  type HttpMounts,
  prefixRow,
  readMountOptions
} from '../../rest/index.ts';
import { type GuardOptions, mountPages } from '../guard.ts';
import { expositionFor, type Family } from './exposition.ts';
import type { MetricEntry } from './metric-row.ts';
import { PROCESS_ROWS, ProcessMetrics } from './process-rows.ts';
import { BROKER_ROWS, readingOf } from './rows.ts';

/** Options of `metricsHandler`. */
export interface MetricsOptions extends GuardOptions {
  /** The path of the metrics, or several. Default `/metrics`. */
  prefix?: string | readonly string[];
  /**
   * Also show CPU time, memory and event loop of the process. Default true; false for an app that exports them on its
   * own.
   */
  processMetrics?: boolean;
  /** @deprecated Use `processMetrics`. */
  processFigures?: boolean;
}

const METRICS_OPTIONS = {
  ...GUARD_OPTIONS,
  prefix: prefixRow(['/metrics']),
  processMetrics: field('boolean', true, 'Show the metrics of the process.'),
  processFigures: field('boolean', undefined as boolean | undefined, 'The former name of `processMetrics`.')
};

/**
 * Make a handler that exposes the counters and gauges of a broker to Prometheus, in its text format or, on request, in
 * the OpenMetrics format. Each value has the label `node`.
 *
 * ```ts
 * app.use(metricsHandler(broker).node); // GET /metrics
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function metricsHandler(broker: Broker, options: MetricsOptions = {}): HttpMounts {
  checkBroker(broker, 'metricsHandler');
  const settings = readMountOptions(METRICS_OPTIONS, options, 'metricsHandler');
  const process = (settings.processFigures ?? settings.processMetrics) ? new ProcessMetrics() : undefined;
  const show = async (call: Call): Promise<Answer> => {
    const { contentType, write } = expositionFor(call.header('accept'));
    const headers = { 'content-type': contentType, 'cache-control': 'no-store' };
    const families = familiesOf(BROKER_ROWS, await readingOf(broker));
    if (process !== undefined) families.push(...familiesOf(PROCESS_ROWS, process.read()));
    return { status: 200, headers, body: write(families, { node: broker.settings.node }) };
  };
  return mountPages(broker, settings, [{ paths: settings.prefix, show }]);
}

function familiesOf<R>(rows: readonly MetricEntry<R>[], reading: R): Family[] {
  return rows.map(({ name, kind, about, samples }) => ({ name, kind, about, samples: samples(reading) }));
}
