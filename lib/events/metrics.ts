import { unknownName } from '../base/options-table.ts';

/**
 * Counters and gauges of a broker: one table, one array of numbers. The names are the documented dotted ones; `Metric` gives the
 * index of each, so counting on the packet path is one addition into a typed array.
 */

/**
 * Every counter, in the documented order. They count since start and never fall.
 *
 * Of an acknowledgement, `missed` means that its packet id is not in flight, `inuse` that it is, but waits for another packet. A PUBLISH
 * is an `error` when it can not be published, for any reason but rights: it is malformed or breaks a rule, is too large, or a bound or a
 * hook's reason code refuses it.
 */
export const COUNTERS = [
  'bytes.received',
  'bytes.sent',
  'packets.received',
  'packets.sent',
  'packets.connect.received',
  'packets.connack.sent',
  'packets.connack.error',
  'packets.connack.auth_error',
  'packets.publish.received',
  'packets.publish.sent',
  'packets.publish.error',
  'packets.publish.auth_error',
  'packets.publish.inuse', // a QoS 2 id that waits for PUBREL: sent again, and not published again
  'packets.publish.dropped',
  'packets.puback.received',
  'packets.puback.sent',
  'packets.puback.missed',
  'packets.puback.inuse',
  'packets.pubrec.received',
  'packets.pubrec.sent',
  'packets.pubrec.missed',
  'packets.pubrec.inuse',
  'packets.pubrel.received',
  'packets.pubrel.sent',
  'packets.pubrel.missed',
  'packets.pubcomp.received',
  'packets.pubcomp.sent',
  'packets.pubcomp.missed',
  'packets.pubcomp.inuse',
  'packets.subscribe.received',
  'packets.subscribe.error',
  'packets.subscribe.auth_error',
  'packets.suback.sent',
  'packets.unsubscribe.received',
  'packets.unsubscribe.error',
  'packets.unsuback.sent',
  'packets.pingreq.received',
  'packets.pingresp.sent',
  'packets.disconnect.received',
  'packets.disconnect.sent',
  'packets.auth.received',
  'packets.auth.sent',
  'messages.received',
  'messages.sent',
  'messages.qos0.received',
  'messages.qos0.sent',
  'messages.qos1.received',
  'messages.qos1.sent',
  'messages.qos2.received',
  'messages.qos2.sent',
  'messages.qos2.expired',
  'messages.qos2.dropped',
  'messages.publish',
  'messages.dropped',
  'messages.dropped.expired', // before they were routed: a hook took longer than the message had
  'messages.dropped.no_subscribers',
  'messages.not_retained', // refused by a bound of what is retained, and routed all the same
  'messages.expired',
  'messages.forward', // to other nodes: always 0, because a broker is the only one
  'messages.delivered',
  'messages.acked',
  'delivery.dropped',
  'delivery.dropped.no_local',
  'delivery.dropped.too_large',
  'delivery.dropped.qos0_msg',
  'delivery.dropped.queue_full',
  'delivery.dropped.expired',
  'delivery.dropped.hook',
  'delivery.dropped.slow_consumer',
  'client.connect',
  'client.connack',
  'client.connected',
  'client.authenticate',
  'client.auth.anonymous',
  'client.check_acl',
  'client.subscribe',
  'client.unsubscribe',
  'client.disconnected',
  'session.created',
  'session.resumed',
  'session.takeovered',
  'session.discarded',
  'session.terminated',
  'connections.refused',
  'overload.shed'
] as const;

/** Name of a counter. */
export type CounterName = (typeof COUNTERS)[number];

type Camel<S extends string> = S extends `${infer A}.${infer B}`
  ? `${A}${Capitalize<Camel<B>>}`
  : S extends `${infer A}_${infer B}`
    ? `${A}${Capitalize<Camel<B>>}`
    : S;

function camel(name: string): string {
  return name.replace(/[._]([a-z0-9])/g, (_, c: string) => c.toUpperCase());
}

/** Index of a counter by its name in camelCase: `Metric.packetsPublishReceived`. */
export const Metric = Object.freeze(Object.fromEntries(COUNTERS.map((name, at) => [camel(name), at]))) as {
  readonly [N in CounterName as Camel<N>]: number;
};

/** Gauges: a value now and its high-water mark, named `<name>.count` and `<name>.max` as documented. */
export const GAUGES = [
  'connections',
  'channels',
  'sessions',
  'sessions.persistent',
  'topics',
  'suboptions',
  'subscribers',
  'subscriptions',
  'subscriptions.shared',
  'routes',
  'retained'
] as const;

/** Name of a gauge that has a high-water mark. */
export type GaugeName = (typeof GAUGES)[number];

/** Gauges that the documented lists show among the counters, without a high-water mark. */
export const PLAIN_GAUGES = ['messages.retained', 'messages.delayed'] as const;

/** Name of a gauge without one. */
export type PlainGaugeName = (typeof PLAIN_GAUGES)[number];

/** What a broker's metrics read their gauges from; called only when somebody looks. */
export type GaugeReaders = { readonly [N in GaugeName | PlainGaugeName]: () => number };

/** The counters and gauges of one broker. */
export class Metrics {
  /** Counter values by `Metric` index; the packet path adds into it. */
  readonly counts: Float64Array = new Float64Array(COUNTERS.length);
  readonly #readers: GaugeReaders;
  readonly #highest = new Map<GaugeName, number>();

  /** @internal */
  constructor(readers: GaugeReaders) {
    this.#readers = readers;
  }

  /** One counter by name. @throws InvalidInput METRIC_UNKNOWN with a suggestion */
  counter(name: CounterName): number {
    const at = COUNTERS.indexOf(name);
    if (at < 0) throw unknownName('METRIC_UNKNOWN', 'counter', name, COUNTERS);
    return this.counts[at];
  }

  /** All counters, by documented name. */
  counters(): Record<CounterName, number> {
    return Object.fromEntries(COUNTERS.map((name, at) => [name, this.counts[at]])) as Record<CounterName, number>;
  }

  /** One gauge as it is now. @throws InvalidInput METRIC_UNKNOWN with a suggestion */
  gauge(name: GaugeName | PlainGaugeName): number {
    if (!Object.hasOwn(this.#readers, name))
      throw unknownName('METRIC_UNKNOWN', 'gauge', name, [...GAUGES, ...PLAIN_GAUGES]);
    return this.#readers[name]();
  }

  /** All gauges as `<name>.count` and `<name>.max`, the plain ones as `<name>`. The mark is raised by `note` and by looking. */
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

  /** Raise a high-water mark where a gauge may have grown between two looks. @returns the mark */
  note(name: GaugeName, value: number): number {
    const highest = this.#highest.get(name) ?? 0;
    if (value <= highest) return highest;
    this.#highest.set(name, value);
    return value;
  }
}
