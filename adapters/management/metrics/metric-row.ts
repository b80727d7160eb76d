/** One value of a metric, with the labels that distinguish it from the others. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric: what it is called in each format, and where its values come from. */
export interface MetricRow<R> {
  /** In the Prometheus formats, without `_total`: `embermq_received_bytes`. */
  readonly name: string;
  /** In OpenTelemetry: `embermq.bytes.received`. */
  readonly dottedName: string;
  readonly kind: 'counter' | 'gauge';
  /** As OpenTelemetry writes units: `By`, `s`, `{packet}`. */
  readonly unit: string;
  readonly about: string;
  samples(reading: R): readonly Sample[];
}
