// `route` is the one way of a message to its subscribers, after all that may refuse it; `routeRun` does the same for a
// run of QoS 0 frames, without making messages. Listeners and watchers may change subscriptions, so the route is
// freshened after each of them. The choice of a share group is compared with the time of the turn, which is already
// known, so keeping examples costs nothing for the other messages.

import type { Deciders } from '../../access/deciders.ts';
import type { Connection } from '../../connection/connection.ts';
import { messagesOf } from '../../connection/frames.ts';
import { DECIDERS, type Decider } from '../../events/deciders.ts';
import { Metric } from '../../events/metrics.ts';
import { DROP_REASONS } from '../../events/reasons.ts';
import type { Pressure } from '../../monitor/machine/pressure.ts';
import { ShareSamples } from '../../monitor/reasons/share-samples.ts';
import { type Frame, Message } from '../../packets/message.ts';
import { hasExpired } from '../../packets/message-expiry.ts';
import { dropValues } from '../../packets/message-values.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { FollowedRouting } from '../../routing/followers.ts';
import type { Group, Route } from '../../routing/route.ts';
import type { Routing } from '../../routing/routing.ts';
import type { Subscription } from '../../routing/subscription.ts';
import type { Shared } from '../../routing/watchers.ts';
import type { Session } from '../../session/session.ts';
import type { Ledger } from '../../store/ledger.ts';
import { checkTopicName } from '../../topics/topic.ts';
import type { DelayedMessages } from '../features/delayed.ts';
import { parseDelayed } from '../features/delayed.ts';
import type { Retainer } from '../features/retainer.ts';
import type { TopicRewrite } from '../features/rewrite.ts';
import { publisherOf } from '../new-message.ts';
import { MessageHooks } from '../rights/message-hooks.ts';
import type { Services } from '../services.ts';
import { OwnMessages } from './own-messages.ts';

/** The parts of the broker that `Publishing` and `OwnMessages` use. */
export interface PublishingHost {
  readonly routing: Routing;
  readonly rewrites: TopicRewrite;
  readonly delayed: DelayedMessages;
  readonly retainer: Retainer;
  readonly pressure: Pressure;
  /** undefined: there is no store. */
  readonly ledger: Ledger | undefined;
  readonly access: { readonly deciders: Deciders };
}

/** The path of a message through the broker: retained copy, subscribers. */
export class Publishing {
  /** The decisions of hooks on messages. */
  readonly hooks: MessageHooks;
  /** Messages that do not come from a connection. */
  readonly own: OwnMessages;
  /** Examples of which member of a share group received a message. */
  readonly shareSamples: ShareSamples;
  readonly #services: Services;
  readonly #host: PublishingHost;
  /** undefined: there is no store. */
  readonly #ledger: Ledger | undefined;

  constructor(services: Services, host: PublishingHost) {
    this.#services = services;
    this.#host = host;
    this.#ledger = host.ledger;
    this.hooks = new MessageHooks(services, host.routing, host.rewrites, host.access.deciders);
    this.own = new OwnMessages(services, host, this);
    this.shareSamples = new ShareSamples(services.time, services.settings.reasons !== false);
  }

  /**
   * Tell what refuses a QoS 1 or 2 message, because it would have to be queued for a subscriber on its route although there is no room in
   * memory or in the store. Called before any delivery, and only while `isRefusing`.
   * @returns undefined: nothing
   */
  refusal(message: Message, { targets, groups }: Route): Decider | undefined {
    const { isMemoryExhausted, isSpaceLow } = this.#host.pressure;
    if (message.qos === 0) return undefined;
    const missing = (isPersisted: boolean, hasRoom: boolean): Decider | undefined => {
      if (isPersisted) return isSpaceLow ? DECIDERS.storeFull : undefined;
      return isMemoryExhausted && !hasRoom ? DECIDERS.memoryShort : undefined;
    };
    for (const { subscriber, qos, noLocal } of targets) {
      if (qos === 0 || (noLocal && subscriber.receiver?.clientId === message.clientId)) continue;
      const decider = missing(subscriber.isPersisted, subscriber.hasRoom);
      if (decider !== undefined) return decider;
    }
    for (const group of groups) {
      const decider = missing(group.mayPersist, group.hasRoom);
      if (decider !== undefined) return decider;
    }
    return undefined;
  }

  /**
   * Report a message, retain it if requested, and deliver it to the subscribers.
   * @param isCopy it is a copy of another message, and not counted as dropped if it has no subscribers
   * @returns the number of subscribers that accepted it
   */
  route(message: Message, route: Route, isCopy = false): number {
    const { metrics, events, time } = this.#services;
    const { counts } = metrics;
    if (hasExpired(message, time.nowMs)) {
      this.#services.announcer.dropped(message, 'expired', undefined); // it expired while a hook decided [MQTT-3.3.2-5]
      return 0;
    }
    if (!message.isSystem) {
      counts[Metric.messagesPublish]++;
      if (events.heard['message.publish'] && (route.isObserved || events.hearsAll('message.publish'))) {
        const shown = route.schemas.length === 0 ? message : Message.withValue(message);
        events.emit('message.publish', { message: shown, client: publisherOf(message) });
        route = this.#host.routing.freshened(route); // a listener may have changed subscriptions
      }
    }
    let following: FollowedRouting | undefined;
    if (route.watchers.length > 0) {
      const shared: Shared = { value: undefined, following: undefined };
      for (const watcher of route.watchers) watcher.watched(message, shared);
      route = this.#host.routing.freshened(route);
      following = shared.following;
    }
    const { targets, groups } = route;
    if (message.retain) this.#host.retainer.retain(message);
    if (following !== undefined) return this.#routeFollowed(message, route, following);
    let taken = 0;
    for (let at = 0; at < targets.length; at++) if (targets[at].subscriber.deliver(message, targets[at])) taken++;
    for (let at = 0; at < groups.length; at++) if (this.#share(message, groups[at])) taken++;
    if (route.schemas.length > 0) dropValues(message);
    if (taken === 0 && targets.length === 0 && groups.length === 0 && !message.isSystem && !isCopy) {
      this.#services.announcer.unsubscribed(message, route);
    }
    return taken;
  }

  /** Deliver a message that is followed. @returns the number of subscribers that accepted it */
  #routeFollowed(message: Message, route: Route, following: FollowedRouting): number {
    const { targets, groups } = route;
    let taken = 0;
    for (const target of targets) if (following.deliver(target)) taken++;
    for (const group of groups) if (this.#share(message, group, following)) taken++;
    if (targets.length === 0 && groups.length === 0) this.#services.announcer.unsubscribed(message, route);
    dropValues(message);
    following.routed(taken);
    return taken;
  }

  /** Deliver a message to one member of a share group. @returns whether a member accepted it */
  #share(message: Message, group: Group, following?: FollowedRouting): boolean {
    const { announcer, time } = this.#services;
    const member = group.choose(message);
    if (member === undefined) {
      const code = 'no_share_member';
      announcer.dropped(message, code, undefined, undefined, { code, detail: group.members[0]?.filter });
      return false;
    }
    if (time.nowMs >= group.sampledAfterMs) this.shareSamples.add(group, message, member);
    return following === undefined ? member.subscriber.deliver(message, member) : following.deliver(member);
  }

  /** Route a run of QoS 0 frames of one topic on the fast path. Subscribers with another layout get single messages. */
  routeRun(
    connection: Connection<Session>,
    route: Route,
    buf: Buffer,
    start: number,
    end: number,
    count: number,
    longest: number
  ): void {
    const ledger = this.#ledger;
    const { counts } = this.#services.metrics;
    const { targets, groups } = route;
    const { session } = connection;
    counts[Metric.packetsReceived] += count;
    counts[Metric.packetsPublishReceived] += count;
    counts[Metric.messagesReceived] += count;
    counts[Metric.messagesQos0Received] += count;
    counts[Metric.messagesPublish] += count;
    if (targets.length === 0 && groups.length === 0) {
      this.#services.announcer.droppedRun(route, session.client, count);
      return;
    }
    const layout = connection.reader.fastPath;
    const bytes = end - start;
    let run: Frame | undefined;
    let messages: Message[] | undefined;
    const notedBefore = ledger?.unwritten.noted ?? 0;
    for (let at = 0; at < targets.length; at++) {
      const target = targets[at];
      const { subscriber } = target;
      if (
        subscriber.outboundFastPath === layout &&
        target.subscriptionIds === undefined &&
        longest <= subscriber.maxFrame &&
        !(subscriber === session.outlet && isNotForSelf(target, session))
      ) {
        run ??= { buf, start, end, packetIdAt: 0 };
        subscriber.deliverRun(run, bytes, count);
      } else {
        messages ??= this.#unroll(connection, route, buf, start, end);
        for (const message of messages) subscriber.deliver(message, target);
      }
    }
    if (groups.length > 0) {
      messages ??= this.#unroll(connection, route, buf, start, end);
      for (const group of groups) for (const message of messages) this.#share(message, group);
    }
    if (messages !== undefined && ledger !== undefined) connection.chargeUnwritten(ledger, notedBefore);
  }

  /** Create the messages of a run of frames. */
  #unroll(connection: Connection<Session>, route: Route, buf: Buffer, start: number, end: number): Message[] {
    const { session, reader } = connection;
    const { nowMs, wallMs } = this.#services.time;
    const { maxMessageExpiryInterval } = session.client.agreement.zone;
    return messagesOf({ buf, start, end, packetIdAt: 0 }, reader.fastPath === 5 ? 5 : 4, {
      topic: route.topic,
      publisher: session.client,
      nowMs,
      wallMs,
      expiryInterval: maxMessageExpiryInterval === Infinity ? -1 : maxMessageExpiryInterval
    });
  }

  /** Delay a message to `$delayed/<seconds>/<topic>`. @returns a reason code */
  delay(message: Message): number {
    const refusal = this.#addDelayed(message);
    if (refusal === undefined) return ReasonCode.noMatchingSubscribers;
    const [reason, decider] = refusal;
    this.#services.announcer.dropped(message, reason, undefined, undefined, decider);
    return DROP_REASONS[reason].reasonCode;
  }

  #addDelayed(message: Message): readonly [reason: 'topic_invalid' | 'not_authorized' | 'quota', Decider] | undefined {
    const { clock } = this.#services;
    const { delayed } = this.#host;
    if (!delayed.isStarted) return ['topic_invalid', DECIDERS.delayedStopped];
    const delay = parseDelayed(message.topic, clock.now() / 1000);
    if (typeof delay !== 'object' || checkTopicName(delay.topic) !== undefined)
      return ['topic_invalid', DECIDERS.delayedTopic];
    if (/^\$(SYS|delayed)(\/|$)/.test(delay.topic) && publisherOf(message) !== undefined)
      return ['not_authorized', DECIDERS.delayedSystemTopic];
    if (this.#host.pressure.isSpaceLow) return ['quota', DECIDERS.storeFull];
    const isAdded = delayed.add(message, delay.topic, delay.delayMs) === 'added';
    return isAdded ? undefined : ['quota', DECIDERS.delayedFull];
  }
}

function isNotForSelf(target: Subscription, session: Session): boolean {
  return target.noLocal || session.client.agreement.zone.ignoreLoopDeliver;
}
