import type { SubscriptionOptions } from '../events/subscription-options.ts';
import type { Frame, Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { DeliveryFollower } from './followers.ts';
import type { Receiver } from './receiving-rights.ts';

/** A receiver of messages: a session, or a handler of the app. Routing knows nothing else about its targets. */
export interface Subscriber {
  /** The client of the subscriber, whose rights apply; undefined: a handler of the app, which may receive all messages. */
  readonly receiver: Receiver | undefined;
  /** Prefix of all topics of the subscriber; empty if there is none. */
  readonly mountpoint: string;
  /** True if the subscriber has a connection or needs none. */
  readonly isOnline: boolean;
  /** True if a QoS 1 or 2 message can be sent at once. */
  readonly hasRoom: boolean;
  /** True if messages to the subscriber are persisted. */
  readonly isPersisted: boolean;
  /** Packet layout (4: MQTT 3.x, 5: MQTT 5.0) in which `deliverRun` accepts QoS 0 frames; 0: only `deliver` may be used. */
  readonly outboundFastPath: 0 | 4 | 5;
  /** Maximum size of a frame, in bytes. */
  readonly maxFrame: number;
  /**
   * Send, queue or drop a message. Does not throw.
   * @param isFirst the message was queued for another subscriber, and is sent before those that are queued for this one
   * @returns false if the message was dropped
   */
  deliver(message: Message, subscription: Subscription, isRetained?: false, isFirst?: boolean): boolean;
  /**
   * Follow a message that is delivered next. Missing: a delivery ends when `deliver` returns.
   * @returns false if this object is followed already: the subscriber receives the message a second time
   */
  follow?(message: Message, follower: DeliveryFollower): boolean;
  /** Send adjacent QoS 0 frames without the retain flag. Allowed only if `outboundFastPath` is their layout. */
  deliverRun(run: Frame, bytes: number, count: number): void;
}

/** A subscription, or the combination of several subscriptions of one subscriber that match the same topic. */
export class Subscription {
  readonly subscriber: Subscriber;
  /** The topic filter as subscribed, including the share prefix if there is one. */
  readonly filter: string;
  qos: QoS;
  /** No Local. */
  noLocal: boolean;
  /** Retain As Published. */
  retainAsPublished: boolean;
  /** Retain Handling. */
  retainHandling: 0 | 1 | 2;
  /** Subscription Identifiers of the matching subscriptions; undefined if none has one. */
  subscriptionIds: readonly number[] | undefined;
  constructor(
    subscriber: Subscriber,
    filter: string,
    qos: QoS,
    noLocal: boolean,
    retainAsPublished: boolean,
    retainHandling: 0 | 1 | 2,
    subscriptionIds: readonly number[] | undefined
  ) {
    this.subscriber = subscriber;
    this.filter = filter;
    this.qos = qos;
    this.noLocal = noLocal;
    this.retainAsPublished = retainAsPublished;
    this.retainHandling = retainHandling;
    this.subscriptionIds = subscriptionIds;
  }

  /** Change the options of a subscription [MQTT-3.8.4-3]. `Routing.changed` must follow. */
  change(options: SubscriptionOptions, subscriptionIds: readonly number[] | undefined): void {
    this.qos = options.qos;
    this.noLocal = options.noLocal;
    this.retainAsPublished = options.retainAsPublished;
    this.retainHandling = options.retainHandling;
    this.subscriptionIds = subscriptionIds;
  }

  /** The combination to use for the subscriber's own messages, if some but not all of the subscriptions have No Local. */
  get own(): Subscription | undefined {
    return undefined;
  }
}

/**
 * The subscriptions that clients have made while there were sources which must be asked: these sources are asked again when their answers
 * expire. Most brokers have no such subscriptions, so this is not a field of each subscription.
 */
export const ASKED_SUBSCRIPTIONS = new WeakSet<Subscription>();

/** The combination of several subscriptions of one subscriber for one topic. */
class MergedSubscription extends Subscription {
  readonly #own: Subscription | undefined;

  /** @param all at least two subscriptions, all of one subscriber */
  constructor(all: readonly Subscription[]) {
    const qos = all.reduce<QoS>((highest, { qos }) => (qos > highest ? qos : highest), 0); // [MQTT-3.3.4-2]
    const subscriptionIds = all.flatMap(({ subscriptionIds }) => subscriptionIds ?? []); // [MQTT-3.3.4-4]
    const isLocal = all.filter(({ noLocal }) => !noLocal);
    const hasNoLocal = isLocal.length < all.length;
    super(
      all[0].subscriber,
      all[0].filter,
      qos,
      hasNoLocal,
      all.some(({ retainAsPublished }) => retainAsPublished),
      0,
      subscriptionIds.length > 0 ? subscriptionIds : undefined
    );
    this.#own = hasNoLocal && isLocal.length > 0 ? merge(isLocal) : undefined;
  }

  override get own(): Subscription | undefined {
    return this.#own;
  }
}

/** Combine the subscriptions of one subscriber that match a topic. @param all at least one */
export function merge(all: readonly Subscription[]): Subscription {
  return all.length === 1 ? all[0] : new MergedSubscription(all);
}

/**
 * Tell whether a filter that matches a topic also matches it for a client with this mount point. Such a client sees the topic without the
 * mount point; if what is left begins with `$`, a filter that begins with a wildcard there does not match it [MQTT-4.7.2-1].
 * @param filter the topic filter, including the mount point, without the share prefix
 */
export function mayReach(mountpoint: string, filter: string, topic: string): boolean {
  const at = mountpoint.length;
  if (at === 0 || topic.charCodeAt(at) !== 0x24) return true;
  const first = filter.charCodeAt(at);
  return (first !== 0x2b && first !== 0x23) || !filter.startsWith(mountpoint);
}

/**
 * Upper limit of the bytes that the broker adds to a received PUBLISH: packet id, properties and longer lengths, without the subscription
 * identifiers.
 */
const MAX_ADDED_BYTES = 32;
/** Maximum size of a subscription identifier with its property identifier, in bytes. */
const ID_BYTES = 5;

/** Tell whether a subscriber certainly accepts a message of this size: its packet may be 32 bytes longer than the received packet. */
export function surelyFits(message: Message, { subscriber, subscriptionIds }: Subscription): boolean {
  const added = MAX_ADDED_BYTES + (subscriptionIds === undefined ? 0 : subscriptionIds.length * ID_BYTES);
  return message.bytes + added <= subscriber.maxFrame;
}

/** The QoS at which a message is sent for a subscription [MQTT-3.8.4-8]. @param upgradeQos zone option: the higher QoS of the two */
export function effectiveQos({ qos }: Message, { qos: granted }: Subscription, upgradeQos: boolean): QoS {
  return upgradeQos === qos < granted ? granted : qos;
}
