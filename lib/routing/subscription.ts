import type { Frame, Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';

/**
 * What a message can be delivered to: a session of this process, a handler of the app, later a session of another node. This is the
 * whole of what routing knows of its targets.
 */
export interface Subscriber {
  readonly clientId: string;
  /** Stands in front of its topics; empty: none. */
  readonly mountpoint: string;
  /** Has a connection (or needs none). */
  readonly isOnline: boolean;
  /** Could send a QoS 1 or 2 message at once. */
  readonly hasRoom: boolean;
  /** What it is to get is kept in the store. */
  readonly isPersisted: boolean;
  /** Layout in which whole runs of QoS 0 frames may be handed over untouched; 0: each message by `deliver`. */
  readonly outboundFastPath: 0 | 4 | 5;
  /** Longest frame it takes. */
  readonly maxFrame: number;
  /** Send, queue or drop; never throws. @returns false if the message was dropped */
  deliver(message: Message, subscription: Subscription): boolean;
  /** Take frames that lie one behind the other, all QoS 0 and not retained. Only while `rawLayout` is theirs. */
  deliverRun(run: Frame, bytes: number, count: number): void;
}

/** One subscription, or what several of one subscriber that match a topic come to. */
export class Subscription {
  readonly subscriber: Subscriber;
  /** As subscribed, with the share prefix where there is one. */
  readonly filter: string;
  qos: QoS;
  /** No Local */
  noLocal: boolean;
  /** Retain As Published */
  retainAsPublished: boolean;
  /** Retain Handling */
  retainHandling: 0 | 1 | 2;
  /** Subscription Identifiers, one for each matching subscription that has one. */
  ids: readonly number[] | undefined;
  constructor(
    subscriber: Subscriber,
    filter: string,
    qos: QoS,
    noLocal: boolean,
    retainAsPublished: boolean,
    retainHandling: 0 | 1 | 2,
    ids: readonly number[] | undefined
  ) {
    this.subscriber = subscriber;
    this.filter = filter;
    this.qos = qos;
    this.noLocal = noLocal;
    this.retainAsPublished = retainAsPublished;
    this.retainHandling = retainHandling;
    this.ids = ids;
  }

  /** For the subscriber's own messages, where only some of several subscriptions have No Local. */
  get own(): Subscription | undefined {
    return undefined;
  }
}

/** What several subscriptions of one subscriber come to for one topic. */
class MergedSubscription extends Subscription {
  readonly #own: Subscription | undefined;

  /** @param all at least two, of one subscriber */
  constructor(all: readonly Subscription[]) {
    const qos = all.reduce<QoS>((highest, { qos }) => (qos > highest ? qos : highest), 0); // [MQTT-3.3.4-2]
    const ids = all.flatMap(({ ids }) => ids ?? []); // [MQTT-3.3.4-4]
    const isLocal = all.filter(({ noLocal }) => !noLocal);
    const hasNoLocal = isLocal.length < all.length;
    super(
      all[0].subscriber,
      all[0].filter,
      qos,
      hasNoLocal,
      all.some(({ retainAsPublished }) => retainAsPublished),
      0,
      ids.length > 0 ? ids : undefined
    );
    this.#own = hasNoLocal && isLocal.length > 0 ? merge(isLocal) : undefined;
  }

  override get own(): Subscription | undefined {
    return this.#own;
  }
}

/** One subscription that stands for all of one subscriber's. */
export function merge(all: readonly Subscription[]): Subscription {
  return all.length === 1 ? all[0] : new MergedSubscription(all);
}

/**
 * Whether a filter that matches a topic may do so under the subscriber's mount point: topics begin behind it, and there, too, a leading
 * wildcard does not reach `$` [MQTT-4.7.2-1].
 * @param filter without share prefix
 */
export function mayReach(mountpoint: string, filter: string, topic: string): boolean {
  const at = mountpoint.length;
  if (at === 0 || topic.charCodeAt(at) !== 0x24) return true;
  const first = filter.charCodeAt(at);
  return (first !== 0x2b && first !== 0x23) || !filter.startsWith(mountpoint);
}

/** What kind of topic a PUBLISH names. */
export const TopicKind = { ordinary: 0, system: 1, delayed: 2 } as const;

/** A share group, as far as delivery goes. */
export interface Group {
  /** What some member is to get is kept in the store. */
  readonly mayPersist: boolean;
  /** Some member could send a QoS 1 or 2 message at once. */
  readonly hasRoom: boolean;
  choose(message: Message): Subscription | undefined;
}

/**
 * Where the messages of one topic go: computed once, kept until a subscription changes it. One that leaves the cache loses its targets,
 * so take them before anything is called that may subscribe somebody, or ask whether it `isFresh`.
 */
export interface Route {
  readonly topic: string;
  /** The topic's bytes as they stand in packets; empty as long as none has come that is worth remembering. */
  readonly bytes: Buffer;
  readonly kind: number;
  readonly levels: number;
  /** The topic has control characters or non-characters, which a zone may refuse. */
  readonly hasControls: boolean;
  /** One for each subscriber, overlapping subscriptions merged. */
  readonly targets: readonly Subscription[];
  readonly groups: readonly Group[];
  /** State of the subscriptions that it was computed for; -1 once it has lost its targets. */
  readonly version: number;
  isStale: boolean;
  generation: number;
  weight: number;
}
