/** Sinks of stream rules that write to InfluxDB: version 1, and version 2 or later. */
export { influxSink } from './influx.ts';
export { influx2Sink } from './influx2.ts';
