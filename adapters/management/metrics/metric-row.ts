/** One value of a metric, with the labels that identify it. */
export interface Sample {
  /** The end of the name of a series of a histogram. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric: its names and the source of its values. */
export interface MetricEntry<R> {
  /** The name in the Prometheus formats, without `_total`: `embermq_received_bytes`. */
  readonly name: string;
  /** The name in OpenTelemetry: `embermq.bytes.received`. */
  readonly dottedName: string;
  /** A histogram is not exported to OpenTelemetry, whose instruments measure each value when it occurs. */
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** The unit as OpenTelemetry writes it: `By`, `s`, `{packet}`. */
  readonly unit: string;
  readonly about: string;
  samples(reading: R): readonly Sample[];
}
