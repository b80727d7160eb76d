// Counters and gauges of a broker. Counters have the documented dotted names; their values are in one typed array,
// indexed by `Metric`, so that counting on the packet path is a single addition. A new counter is a new line in the
// documented order. Gauges are functions that are called when they are read; a gauge that may have had a higher value
// in between is reported with `note` where it changes, or its high-water mark is too low.

import { unknownName } from '../base/fields.ts';
import { DeliveryTimes } from './delivery-times.ts';

/** Names of all counters, in the documented order. Counters start at 0 with the broker and never decrease. */
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
  'packets.publish.inuse',
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
  'messages.dropped.expired',
  'messages.dropped.no_subscribers',
  'messages.dropped.schema',
  'messages.not_retained',
  'messages.expired',
  'messages.forward',
  'messages.delivered',
  'messages.acked',
  'delivery.dropped',
  'delivery.dropped.no_local',
  'delivery.dropped.no_share_member',
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
  'client.auth.success',
  'client.auth.failure',
  'client.auth.ignore',
  'client.check_acl',
  'client.acl.allow',
  'client.acl.deny',
  'client.acl.ignore',
  'client.acl.cache_hit',
  'client.subscribe',
  'client.unsubscribe',
  'client.disconnected',
  'session.created',
  'session.resumed',
  'session.takeovered',
  'session.discarded',
  'session.terminated',
  'connections.refused',
  'overload.shed',
  'outbox.sent',
  'outbox.failed',
  'outbox.dropped',
  'rules.matched',
  'actions.success',
  'actions.failure'
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

/** Index of each counter in `Metrics.counts`, by the name in camelCase: `Metric.packetsPublishReceived`. */
export const Metric = Object.freeze(Object.fromEntries(COUNTERS.map((name, at) => [camel(name), at]))) as {
  readonly [N in CounterName as Camel<N>]: number;
};

/** Names of the gauges with a high-water mark: `<name>.count` is the current value, `<name>.max` the highest one. */
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
  'retained',
  'rules',
  'actions',
  'resources'
] as const;

/** Name of a gauge that has a high-water mark. */
export type GaugeName = (typeof GAUGES)[number];

/** Names of the gauges without a high-water mark, which the documented lists contain among the counters. */
export const PLAIN_GAUGES = ['messages.retained', 'messages.delayed', 'outbox.waiting'] as const;

/** Name of a gauge without a high-water mark. */
export type PlainGaugeName = (typeof PLAIN_GAUGES)[number];

/** Functions that return the current value of each gauge; called only when gauges are read. */
export type GaugeReaders = { readonly [N in GaugeName | PlainGaugeName]: () => number };

/** The counters and gauges of one broker. */
export class Metrics {
  /** Counter values, indexed by `Metric`. */
  readonly counts: Float64Array = new Float64Array(COUNTERS.length);
  /** The times from the receipt of messages to their write or acknowledgement. */
  readonly deliveryTimes = new DeliveryTimes();
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
   * Get the current value of one gauge.
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
