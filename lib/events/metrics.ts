import { unknownName } from '../base/options-table.ts';

/**
 * Counters and gauges of a broker. Counters have the documented dotted names; their values are in one typed array, indexed by `Metric`, so
 * that counting on the packet path is a single addition.
 */

/**
 * What each counter counts, in the documented order. Counters start at 0 with the broker and never decrease.
 *
 * For acknowledgements, `missed` counts packet ids that are not in flight, and `inuse` those that are in flight but expect another packet.
 */
export const COUNTER_ABOUT = {
  'bytes.received': 'Bytes received from clients',
  'bytes.sent': 'Bytes sent to clients',
  'packets.received': 'MQTT packets received',
  'packets.sent': 'MQTT packets sent',
  'packets.connect.received': 'CONNECT packets received',
  'packets.connack.sent': 'CONNACK packets sent',
  'packets.connack.error': 'CONNACK packets sent that refuse the client',
  'packets.connack.auth_error': 'CONNACK packets sent that refuse the client because it has no right to connect',
  'packets.publish.received': 'PUBLISH packets received',
  'packets.publish.sent': 'PUBLISH packets sent',
  'packets.publish.error':
    'PUBLISH packets refused because they are malformed, too large or a protocol error, or because of a limit or a hook',
  'packets.publish.auth_error': 'PUBLISH packets refused because the client has no right to publish to the topic',
  'packets.publish.inuse':
    'PUBLISH packets with a packet id that awaits PUBREL: repeated QoS 2 messages, not published again',
  'packets.publish.dropped': 'PUBLISH packets of QoS 2 refused because too many others await PUBREL (maxAwaitingRel)',
  'packets.puback.received': 'PUBACK packets received',
  'packets.puback.sent': 'PUBACK packets sent',
  'packets.puback.missed': 'PUBACK packets received for packet ids that are not in flight',
  'packets.puback.inuse': 'PUBACK packets received for packet ids that expect another packet',
  'packets.pubrec.received': 'PUBREC packets received',
  'packets.pubrec.sent': 'PUBREC packets sent',
  'packets.pubrec.missed': 'PUBREC packets received for packet ids that are not in flight',
  'packets.pubrec.inuse': 'PUBREC packets received for packet ids that expect another packet',
  'packets.pubrel.received': 'PUBREL packets received',
  'packets.pubrel.sent': 'PUBREL packets sent',
  'packets.pubrel.missed': 'PUBREL packets received for packet ids that do not await one',
  'packets.pubcomp.received': 'PUBCOMP packets received',
  'packets.pubcomp.sent': 'PUBCOMP packets sent',
  'packets.pubcomp.missed': 'PUBCOMP packets received for packet ids that are not in flight',
  'packets.pubcomp.inuse': 'PUBCOMP packets received for packet ids that expect another packet',
  'packets.subscribe.received': 'SUBSCRIBE packets received',
  'packets.subscribe.error':
    'Topic filters in SUBSCRIBE packets that were refused for another reason than missing rights',
  'packets.subscribe.auth_error': 'Topic filters in SUBSCRIBE packets that were refused because of missing rights',
  'packets.suback.sent': 'SUBACK packets sent',
  'packets.unsubscribe.received': 'UNSUBSCRIBE packets received',
  'packets.unsubscribe.error': 'Topic filters in UNSUBSCRIBE packets that were refused',
  'packets.unsuback.sent': 'UNSUBACK packets sent',
  'packets.pingreq.received': 'PINGREQ packets received',
  'packets.pingresp.sent': 'PINGRESP packets sent',
  'packets.disconnect.received': 'DISCONNECT packets received',
  'packets.disconnect.sent': 'DISCONNECT packets sent',
  'packets.auth.received': 'AUTH packets received',
  'packets.auth.sent': 'AUTH packets sent',
  'messages.received': 'Messages received from clients',
  'messages.sent': 'Messages sent to clients',
  'messages.qos0.received': 'Messages received with QoS 0',
  'messages.qos0.sent': 'Messages sent with QoS 0',
  'messages.qos1.received': 'Messages received with QoS 1',
  'messages.qos1.sent': 'Messages sent with QoS 1',
  'messages.qos2.received': 'Messages received with QoS 2',
  'messages.qos2.sent': 'Messages sent with QoS 2',
  'messages.qos2.expired': 'Messages of QoS 2 whose PUBREL has not come in time (awaitRelTimeout)',
  'messages.qos2.dropped': 'Messages of QoS 2 refused because too many others await PUBREL (maxAwaitingRel)',
  'messages.publish': 'Messages published by clients, the app and the broker',
  'messages.dropped': 'Messages that no receiver got',
  'messages.dropped.expired': 'Messages that expired before routing, while a hook decided about them',
  'messages.dropped.no_subscribers': 'Messages that no subscription matched',
  'messages.not_retained': 'Messages that were delivered, but not retained because of a limit',
  'messages.expired': 'Messages that have expired, and deliveries of messages that have expired',
  'messages.forward': 'Messages forwarded to other nodes: always 0, because there is no cluster',
  'messages.delivered': 'Messages handed to the connections of receivers',
  'messages.acked': 'Messages acknowledged by receivers',
  'delivery.dropped': 'Deliveries dropped, for any reason',
  'delivery.dropped.no_local': 'Deliveries dropped because the receiver published the message itself (No Local)',
  'delivery.dropped.too_large': 'Deliveries dropped because the packet would be larger than the receiver accepts',
  'delivery.dropped.qos0_msg': 'Deliveries dropped because messages of QoS 0 were not queued',
  'delivery.dropped.queue_full': 'Deliveries dropped because a queue was full',
  'delivery.dropped.expired': 'Deliveries dropped because the message expired in a queue',
  'delivery.dropped.hook': 'Deliveries dropped by a hook',
  'delivery.dropped.slow_consumer': 'Deliveries dropped because the connection was closed as a slow consumer',
  'client.connect': 'Well-formed CONNECT packets, before any decision about them',
  'client.connack': 'Answers to CONNECT',
  'client.connected': 'Clients that were accepted',
  'client.authenticate': 'Decisions about the credentials of clients',
  'client.auth.anonymous': 'Clients admitted without a user name, because nothing decides about them',
  'client.auth.success': 'Clients approved by a hook or a source of authentication',
  'client.auth.failure': 'Clients refused by a hook or a source of authentication',
  'client.auth.ignore': 'Clients about which no hook or source of authentication has decided',
  'client.check_acl': 'Decisions about publishing and subscribing',
  'client.acl.allow': 'Messages, wills and subscriptions allowed by a hook, a source or a rule',
  'client.acl.deny': 'Messages, wills and subscriptions refused by a hook, a source or a rule',
  'client.acl.ignore': 'Messages, wills and subscriptions that nothing decides about, so that aclNomatch does',
  'client.acl.cache_hit':
    'Verdicts used again from the cache of a connection; messages on the fast path are not counted',
  'client.subscribe': 'Topic filters in SUBSCRIBE packets',
  'client.unsubscribe': 'Topic filters in UNSUBSCRIBE packets',
  'client.disconnected': 'Connections of accepted clients that have ended',
  'session.created': 'Sessions that have begun',
  'session.resumed': 'Sessions resumed by a new connection',
  'session.takeovered': 'Sessions taken over by another connection with the same client id',
  'session.discarded': 'Sessions ended by a Clean Start',
  'session.terminated': 'Sessions that have ended',
  'connections.refused': 'Connections closed at once because there were too many',
  'overload.shed': 'Times at which queued messages of QoS 0 were dropped because memory was short',
  'outbox.sent': 'Entries of outboxes that were delivered to their target, such as webhook requests',
  'outbox.failed': 'Deliveries of outboxes that have failed; they are repeated',
  'outbox.dropped': 'Entries of outboxes that were dropped: too many, too old, or refused by their target',
  'rules.matched': 'Events of the topics of rules, counted for each rule',
  'actions.success': 'Actions of rules that have succeeded',
  'actions.failure': 'Actions of rules that have failed'
} as const;

/** Name of a counter. */
export type CounterName = keyof typeof COUNTER_ABOUT;

/** Names of all counters, in the documented order. */
export const COUNTERS = Object.keys(COUNTER_ABOUT) as readonly CounterName[];

type Camel<S extends string> = S extends `${infer A}.${infer B}`
  ? `${A}${Capitalize<Camel<B>>}`
  : S extends `${infer A}_${infer B}`
    ? `${A}${Capitalize<Camel<B>>}`
    : S;

function camel(name: string): string {
  return name.replace(/[._]([a-z0-9])/g, (_, c: string) => c.toUpperCase());
}

/** Index of each counter in `Metrics.counts`, by the name in camelCase: `Metric.packetsPublishReceived`. */
export const Metric = Object.freeze(Object.fromEntries(COUNTERS.map((name, at) => [camel(name), at]))) as {
  readonly [N in CounterName as Camel<N>]: number;
};

/** What each gauge with a high-water mark shows. */
export const GAUGE_ABOUT = {
  connections: 'Clients that are connected',
  channels: 'Sessions, connected or not, under a second name',
  sessions: 'Sessions, connected or not',
  'sessions.persistent': 'Sessions that outlive their connection',
  topics: 'Topic filters with subscriptions',
  suboptions: 'Subscriptions, as options of sessions for topic filters',
  subscribers: 'Sessions with subscriptions',
  subscriptions: 'Subscriptions',
  'subscriptions.shared': 'Shared subscriptions',
  routes: 'Topic filters with subscriptions, as routes to this node',
  retained: 'Retained messages',
  rules: 'Rules, enabled or not',
  actions: 'Kinds of actions that rules can use',
  resources: 'Resources of rules'
} as const;

/** Name of a gauge that has a high-water mark. */
export type GaugeName = keyof typeof GAUGE_ABOUT;

/** Names of the gauges that have a high-water mark: `<name>.count` is the present value, `<name>.max` the highest one. */
export const GAUGES = Object.keys(GAUGE_ABOUT) as readonly GaugeName[];

/** What each gauge without a high-water mark shows; the documented lists have them among the counters. */
export const PLAIN_GAUGE_ABOUT = {
  'messages.retained': 'Retained messages',
  'messages.delayed': 'Delayed messages that wait to be published',
  'outbox.waiting': 'Entries of outboxes that wait to be delivered'
} as const;

/** Name of a gauge without a high-water mark. */
export type PlainGaugeName = keyof typeof PLAIN_GAUGE_ABOUT;

/** Names of the gauges without a high-water mark. */
export const PLAIN_GAUGES = Object.keys(PLAIN_GAUGE_ABOUT) as readonly PlainGaugeName[];

/** Functions that return the present value of each gauge; called only when gauges are read. */
export type GaugeReaders = { readonly [N in GaugeName | PlainGaugeName]: () => number };

/** The counters and gauges of one broker. */
export class Metrics {
  /** Counter values, indexed by `Metric`. */
  readonly counts: Float64Array = new Float64Array(COUNTERS.length);
  readonly #readers: GaugeReaders;
  readonly #highest = new Map<GaugeName, number>();

  /** @internal */
  constructor(readers: GaugeReaders) {
    this.#readers = readers;
  }

  /**
   * Get one counter by its documented name.
   * @throws InvalidInput METRIC_UNKNOWN, with a suggestion, if there is no such counter
   */
  counter(name: CounterName): number {
    const at = COUNTERS.indexOf(name);
    if (at < 0) throw unknownName('METRIC_UNKNOWN', 'counter', name, COUNTERS);
    return this.counts[at];
  }

  /** Get all counters by their documented names. */
  counters(): Record<CounterName, number> {
    return Object.fromEntries(COUNTERS.map((name, at) => [name, this.counts[at]])) as Record<CounterName, number>;
  }

  /**
   * Get the present value of one gauge.
   * @throws InvalidInput METRIC_UNKNOWN, with a suggestion, if there is no such gauge
   */
  gauge(name: GaugeName | PlainGaugeName): number {
    if (!Object.hasOwn(this.#readers, name))
      throw unknownName('METRIC_UNKNOWN', 'gauge', name, [...GAUGES, ...PLAIN_GAUGES]);
    return this.#readers[name]();
  }

  /** Get all gauges: `<name>.count` and `<name>.max`, or `<name>` for those without a high-water mark. Reading also updates the marks. */
  gauges(): Record<`${GaugeName}.${'count' | 'max'}` | PlainGaugeName, number> {
    const all = {} as ReturnType<Metrics['gauges']>;
    for (const name of GAUGES) {
      const value = this.#readers[name]();
      all[`${name}.count`] = value;
      all[`${name}.max`] = this.note(name, value);
    }
    for (const name of PLAIN_GAUGES) all[name] = this.#readers[name]();
    return all;
  }

  /**
   * Raise the high-water mark of a gauge to a value, if it is higher. For gauges that may have peaked since they were read last.
   * @returns the high-water mark
   */
  note(name: GaugeName, value: number): number {
    const highest = this.#highest.get(name) ?? 0;
    if (value <= highest) return highest;
    this.#highest.set(name, value);
    return value;
  }
}
