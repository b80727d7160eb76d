import { checkBroker, field, readOptions } from '../../../lib/adapter.ts';
import { type Broker, InvalidInput } from '../../../lib/index.ts';
import { MessageSpans } from './message-spans.ts';
import type { SpanTracer } from './tracer.ts';

/** Options of `observeSpans`. */
export interface SpansOptions {
  /** The topic filter of the messages that are observed. Default `#`: all topics that do not begin with `$`. */
  filter?: string;
  /** Portion of the messages without a `traceparent` that are traced, from 0 to 1. Default 0.01. */
  sample?: number;
}

const SPANS_OPTIONS = {
  filter: field('string', '#', 'The topic filter of the messages that are observed.'),
  sample: field('number', 0.01, 'Portion of the messages without a `traceparent` that are traced.', { min: 0, max: 1 })
};

/**
 * Trace messages with OpenTelemetry: spans for `publish`, `route`, `deliver` to each receiver, `rule` and `webhook`.
 *
 * The trace context is in the user properties `traceparent` and `tracestate`, as in the MQTT binding of W3C Trace Context. A message whose
 * publisher has sampled it is always traced, as a child of its span; one whose publisher has not sampled it is never traced; of messages
 * without a trace context, `sample` is the portion. What a receiver gets continues the trace; messages that are not traced keep their bytes.
 *
 * Messages of the observed topics leave the fast path for QoS 0; those of other topics cost nothing, so `filter` should name the topics that
 * matter. At most 100 deliveries of a message have spans.
 *
 * ```ts
 * import { trace } from '@opentelemetry/api';
 * const stop = observeSpans(broker, trace.getTracer('my-app'), { filter: 'orders/#' });
 * ```
 * @returns a function that stops the tracing of further messages
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN, TOPIC_FILTER_INVALID
 */
export function observeSpans(broker: Broker, tracer: SpanTracer, options: SpansOptions = {}): () => void {
  checkBroker(broker, 'observeSpans');
  if (typeof tracer?.startSpan !== 'function')
    throw new InvalidInput('OPTION_INVALID', 'tracer', 'a tracer, such as trace.getTracer("my-app")', tracer);
  const { filter, sample } = readOptions(SPANS_OPTIONS, options, 'observeSpans');
  const spans = new MessageSpans(broker, tracer, sample);
  const unfollow = broker.monitor.follow(filter, spans);
  broker.on('message.dropped', spans.dropped, { filter });
  return () => {
    unfollow();
    broker.off('message.dropped', spans.dropped);
  };
}
