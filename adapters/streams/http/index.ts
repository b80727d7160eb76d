/** Sources and sinks of stream rules that speak HTTP. */
export { restSink } from './sink.ts';
