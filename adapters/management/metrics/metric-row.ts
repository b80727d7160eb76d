/** One value of a metric, with the labels that identify it. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric: its names and the source of its values. */
export interface MetricEntry<R> {
  /** The name in the Prometheus formats, without `_total`: `embermq_received_bytes`. */
  readonly name: string;
  /** The name in OpenTelemetry: `embermq.bytes.received`. */
  readonly dottedName: string;
  readonly kind: 'counter' | 'gauge';
  /** The unit as OpenTelemetry writes it: `By`, `s`, `{packet}`. */
  readonly unit: string;
  readonly about: string;
  samples(reading: R): readonly Sample[];
}
