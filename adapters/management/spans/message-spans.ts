// Spans have the times of the broker's clock: wall-clock time when the message was accepted, plus monotonic time since.
// Attributes follow the semantic conventions of OpenTelemetry for messaging. The names of spans do not contain topics,
// because these often contain ids of devices, and names should have few values.

import type {
  Broker,
  BrokerEvents,
  DeliveryFollower,
  DeliveryStage,
  Message,
  MessageFollower,
  MessageTrail,
  RoutingFollower,
  SendingConnector,
  SendingFollower,
  UserProperty
} from '../../../lib/index.ts';
import { contextOf, isSampled, parentOf, propertiesOf, remoteSpan } from './trace-context.ts';
import type { SpanAttributes, SpanParent, SpanTime, SpanTracer, StartedSpan } from './tracer.ts';

/** Kinds of spans, as the API of OpenTelemetry numbers them. */
const Kind = { internal: 0, client: 2, producer: 3, consumer: 4 } as const;
const STATUS_ERROR = 2;
/** Maximum number of deliveries of one message that have spans. */
const MAX_DELIVERIES = 100;
/** Maximum number of messages that are accepted and not yet routed, such as those that wait for a commit. */
const MAX_OPEN = 1_000;

/** The messages of one call of `observeSpans`. */
export class MessageSpans implements MessageFollower {
  readonly #broker: Broker;
  readonly #tracer: SpanTracer;
  readonly #sample: number;
  /** The `publish` spans that have not ended, by span id. */
  readonly #open = new Map<string, TracedMessage>();
  /** The span of the rule that is evaluated now; what it publishes belongs to its trace. */
  #rule: StartedSpan | undefined;

  constructor(broker: Broker, tracer: SpanTracer, sample: number) {
    this.#broker = broker;
    this.#tracer = tracer;
    this.#sample = sample;
  }

  accepted(message: Message): MessageTrail | undefined {
    const span = this.#begin(message);
    if (span === undefined) return undefined;
    const traced = new TracedMessage(this, message, span);
    if (message.topic.startsWith('$delayed/'))
      traced.end(); // a new span begins after the delay
    else this.#opened(traced);
    return traced;
  }

  sending(message: Message, { kind, name, url }: SendingConnector): SendingFollower | undefined {
    const context = contextOf(message);
    if (context === undefined || !isSampled(context)) return undefined;
    const attributes = this.attributesOf(message, kind, 'send');
    attributes['embermq.connector.name'] = name;
    if (url !== undefined) {
      attributes['server.address'] = url.hostname;
      if (url.port !== '') attributes['server.port'] = Number(url.port);
    }
    const parent = parentOf(remoteSpan({ ...context, isRemote: false }));
    const span = this.start(kind, Kind.client, attributes, this.timeSince(message), parent);
    return {
      headers: propertiesOf(span.spanContext()),
      ended: (reason) => {
        if (reason !== undefined) fail(span, reason);
        span.end(this.timeSince(message));
      }
    };
  }

  /** Note that a message was refused before it was routed, or that it has no subscribers. */
  readonly dropped = ({ message, reason, client }: BrokerEvents['message.dropped']): void => {
    if (client !== undefined) return; // the span of its delivery has the reason
    const context = contextOf(message);
    const traced = context === undefined ? undefined : this.#open.get(context.spanId);
    if (traced !== undefined) traced.dropped(reason);
    else {
      const span = this.#begin(message);
      if (span !== undefined) new TracedMessage(this, message, span).dropped(reason);
    }
  };

  /** Start the first span of a message. @returns undefined: the message is not traced */
  #begin(message: Message): StartedSpan | undefined {
    const context = contextOf(message);
    const parent = this.#rule ?? (context && remoteSpan(context));
    const isWanted = parent === undefined ? Math.random() < this.#sample : isSampled(parent.spanContext());
    if (!isWanted) return undefined;
    const attributes: SpanAttributes = {
      ...this.attributesOf(message, 'publish', 'receive'),
      'messaging.message.envelope.size': message.bytes,
      'embermq.qos': message.qos,
      'embermq.retain': message.retain
    };
    if (message.clientId !== '') attributes['messaging.client.id'] = message.clientId;
    const span = this.start('publish', Kind.consumer, attributes, timeOf(message.timestamp), parentOf(parent));
    if (span.isRecording() && isSampled(span.spanContext())) return span;
    span.end(this.timeSince(message)); // a sampler of the tracer has refused it
    return undefined;
  }

  #opened(traced: TracedMessage): void {
    const [oldest] = this.#open.values();
    if (this.#open.size >= MAX_OPEN) oldest.end();
    this.#open.set(traced.id, traced);
  }

  /** Note that a `publish` span has ended. */
  closed(id: string): void {
    this.#open.delete(id);
  }

  start(name: string, kind: number, attributes: SpanAttributes, startTime: SpanTime, parent: SpanParent): StartedSpan {
    return this.#tracer.startSpan(name, { kind, attributes, startTime }, parent);
  }

  /** The attributes that all spans of a message have. */
  attributesOf({ topic, payload }: Message, operation: string, type: string): SpanAttributes {
    return {
      'messaging.system': 'mqtt',
      'messaging.operation.name': operation,
      'messaging.operation.type': type,
      'messaging.destination.name': topic,
      'messaging.message.body.size': payload.length,
      'embermq.node': this.#broker.settings.node
    };
  }

  /** The current time, with the time at which the broker accepted a message as its base. */
  timeSince({ timestamp, takenAtMs }: Message): SpanTime {
    return timeOf(timestamp + Math.max(0, this.#broker.clock.monotonic() - takenAtMs));
  }

  /** Run a rule; the messages that it publishes meanwhile are children of its span. */
  during(span: StartedSpan, run: () => void): void {
    const before = this.#rule;
    this.#rule = span;
    try {
      run();
    } finally {
      this.#rule = before;
    }
  }
}

/** A message that is traced, from its acceptance to the end of its routing. */
class TracedMessage implements MessageTrail, RoutingFollower {
  readonly id: string;
  readonly userProperties: readonly UserProperty[];
  readonly #spans: MessageSpans;
  readonly #message: Message;
  readonly #publish: StartedSpan;
  readonly #parent: SpanParent;
  #route: StartedSpan | undefined;
  #deliveries = 0;
  #isEnded = false;

  constructor(spans: MessageSpans, message: Message, publish: StartedSpan) {
    this.#spans = spans;
    this.#message = message;
    this.#publish = publish;
    this.#parent = parentOf(publish);
    this.id = publish.spanContext().spanId;
    this.userProperties = propertiesOf(publish.spanContext());
  }

  routing(): RoutingFollower {
    this.#route = this.#start('route', Kind.internal, 'process', {});
    return this;
  }

  rule(id: string, run: () => void): void {
    const span = this.#start('rule', Kind.internal, 'process', { 'embermq.rule.id': id });
    try {
      this.#spans.during(span, run);
    } finally {
      span.end(this.#now);
    }
  }

  delivering(clientId: string | undefined, filter: string): DeliveryFollower | undefined {
    if (++this.#deliveries > MAX_DELIVERIES) return undefined;
    const attributes: SpanAttributes = { 'messaging.destination.subscription.name': filter };
    if (clientId !== undefined) attributes['messaging.client.id'] = clientId;
    const [, group] = /^\$share\/([^/]+)\//.exec(filter) ?? [];
    if (group !== undefined) attributes['messaging.consumer.group.name'] = group;
    const span = this.#start('deliver', Kind.producer, 'send', attributes);
    return new Delivery(span, () => this.#now);
  }

  routed(receivers: number): void {
    this.#route?.setAttribute('embermq.receivers', receivers);
    this.#route?.end(this.#now);
    this.end();
  }

  /** Note that no receiver gets the message. */
  dropped(reason: string): void {
    this.#publish.setAttribute('embermq.drop.reason', reason);
    if (reason === 'no_subscribers') return; // it is routed, and the span ends then
    fail(this.#publish, reason);
    this.end();
  }

  /** End the `publish` span. */
  end(): void {
    this.#spans.closed(this.id);
    if (!this.#isEnded) this.#publish.end(this.#now);
    this.#isEnded = true;
  }

  #start(name: string, kind: number, type: string, attributes: SpanAttributes): StartedSpan {
    const all = { ...this.#spans.attributesOf(this.#message, name, type), ...attributes };
    return this.#spans.start(name, kind, all, this.#now, this.#parent);
  }

  get #now(): SpanTime {
    return this.#spans.timeSince(this.#message);
  }
}

/** The delivery of a traced message to one receiver. */
class Delivery implements DeliveryFollower {
  readonly userProperties: readonly UserProperty[];
  readonly #span: StartedSpan;
  readonly #now: () => SpanTime;

  constructor(span: StartedSpan, now: () => SpanTime) {
    this.userProperties = propertiesOf(span.spanContext());
    this.#span = span;
    this.#now = now;
  }

  reached(stage: DeliveryStage, reason?: string): void {
    if (stage === 'queued' || stage === 'sent') {
      this.#span.addEvent(stage, {}, this.#now());
      return;
    }
    this.#span.setAttribute('embermq.delivery.outcome', stage);
    if (stage === 'dropped') fail(this.#span, reason ?? stage);
    this.#span.end(this.#now());
  }
}

function fail(span: StartedSpan, reason: string): void {
  span.setAttribute('error.type', reason);
  span.setStatus({ code: STATUS_ERROR, message: reason });
}

function timeOf(ms: number): SpanTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.min(999_999_999, Math.round((ms - seconds * 1000) * 1e6))];
}
