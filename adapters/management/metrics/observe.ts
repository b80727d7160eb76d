import { checkBroker } from '../../../lib/adapter.ts';
import { type Broker, InvalidInput } from '../../../lib/index.ts';
import { BROKER_ROWS, readingOf } from './rows.ts';

/** A counter or a gauge of a meter. */
export type ObservableInstrument = object;

/** The receiver of the values of instruments. */
export interface ObservationResult {
  /** Report the value of an instrument. */
  observe(instrument: never, value: number, attributes: Record<string, string>): void;
}

/** The part of a meter of `@opentelemetry/api` that is used, version 1.3 or newer: `metrics.getMeter('my-app')`. */
export interface ObservingMeter {
  /** Make an instrument for a counter. */
  createObservableCounter(
    name: string,
    options: {
      /** The description of the counter. */
      description: string;
      /** The unit of its values. */
      unit: string;
    }
  ): ObservableInstrument;
  /** Make an instrument for a gauge. */
  createObservableGauge(
    name: string,
    options: {
      /** The description of the gauge. */
      description: string;
      /** The unit of its values. */
      unit: string;
    }
  ): ObservableInstrument;
  /** Register a function that reports the values of instruments. */
  addBatchObservableCallback(callback: (result: ObservationResult) => void, instruments: never[]): void;
  /** Remove such a function. */
  removeBatchObservableCallback(callback: (result: ObservationResult) => void, instruments: never[]): void;
}

/**
 * Export the counters and gauges of a broker to OpenTelemetry. They are read when the meter collects. Each value has
 * the attribute `embermq.node`. Process metrics are left to the instrumentation of the app, and the histogram of
 * delivery times is only at `/metrics`.
 *
 * ```ts
 * import { metrics } from '@opentelemetry/api';
 * const stop = observeMetrics(broker, metrics.getMeter('my-app'));
 * ```
 * @returns a function that stops the export
 * @throws InvalidInput OPTION_INVALID: the arguments are not a broker and a meter
 */
export function observeMetrics(broker: Broker, meter: ObservingMeter): () => void {
  checkBroker(broker, 'observeMetrics');
  if (typeof meter?.createObservableGauge !== 'function')
    throw new InvalidInput('OPTION_INVALID', 'meter', 'a meter, such as metrics.getMeter("my-app")', meter);
  const rows = BROKER_ROWS.filter(({ kind }) => kind !== 'histogram');
  const instruments = rows.map(({ dottedName, kind, unit, about }) => {
    const options = { description: about, unit };
    return kind === 'counter'
      ? meter.createObservableCounter(dottedName, options)
      : meter.createObservableGauge(dottedName, options);
  });
  const observe = async (result: ObservationResult): Promise<void> => {
    const reading = await readingOf(broker);
    const common = { 'embermq.node': broker.settings.node };
    for (const [at, row] of rows.entries())
      for (const { labels, value } of row.samples(reading))
        result.observe(instruments[at] as never, value, { ...common, ...labels });
  };
  meter.addBatchObservableCallback(observe, instruments as never[]);
  return () => meter.removeBatchObservableCallback(observe, instruments as never[]);
}
