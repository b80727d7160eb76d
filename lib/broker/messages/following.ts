// A follower is attached to the routes of its topics, as schemas and watchers are, so that it costs nothing for others.
// A message that is followed is replaced by a copy with other user properties before it is routed, so that what is
// retained, queued, stored or bridged has them, too; each receiver gets another copy. Tracing must not change who
// receives a message: a receiver for which the copy might be too large gets the message as it was published.

import { InvalidInput } from '../../base/errors.ts';
import type { Monitor } from '../../monitor/monitor.ts';
import { awaitCommit, Message } from '../../packets/message.ts';
import type { UserProperty } from '../../packets/types.ts';
import type { FollowedRouting, MessageFollower, MessageTrail, RoutingFollower } from '../../routing/followers.ts';
import type { Routing } from '../../routing/routing.ts';
import { type Subscription, surelyFits } from '../../routing/subscription.ts';
import type { TopicSchema } from '../../routing/topic-schemas.ts';
import type { Shared, Watcher } from '../../routing/watchers.ts';
import type { Ledger } from '../../store/ledger.ts';
import { checkTopicFilter, matches } from '../../topics/topic.ts';
import { boundProperties } from '../new-message.ts';

/** Messages above this size are not copied for each receiver: all of them get the same user properties. */
const MAX_COPIED_BYTES = 65_536;

/** A message that is followed, as it was published. */
interface Followed {
  readonly trail: MessageTrail;
  readonly published: Message;
}

/** The followed messages on their way to `Publishing`, by the copy that is routed. */
const FOLLOWED = new WeakMap<Message, Followed>();

/** The parts of the broker that following uses. */
interface FollowedBroker {
  readonly routing: Routing;
  /** undefined: there is no store. */
  readonly ledger: Ledger | undefined;
  /** Reports the errors of followers, which must not reach the publisher. */
  readonly services: { failed(error: unknown, during: string): void };
}

/** The functions of `Monitor` about followers. */
export function following(host: FollowedBroker): Pick<Monitor, 'follow' | 'sending'> {
  const followers: { readonly filter: string; readonly follower: MessageFollower }[] = [];
  return {
    follow: (filter, follower) => {
      const end = follow(host, filter, follower);
      const entry = { filter, follower };
      followers.push(entry);
      return () => {
        end();
        const at = followers.indexOf(entry);
        if (at >= 0) followers.splice(at, 1);
      };
    },
    sending: (message, connector) => {
      for (const { filter, follower } of followers) {
        if (!matches(filter, message.topic)) continue;
        const sending = guarded(host, () => follower.sending?.(message, connector));
        if (sending !== undefined) return sending;
      }
      return undefined;
    }
  };
}

/**
 * Follow the messages of the topics that a filter matches. A message is followed by the first follower that accepts it.
 * @returns a function that stops following further messages
 * @throws InvalidInput TOPIC_FILTER_INVALID
 */
function follow(host: FollowedBroker, filter: string, follower: MessageFollower): () => void {
  const { routing } = host;
  const isText = typeof filter === 'string';
  const fault = isText ? checkTopicFilter(filter) : 'the filter must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
  const act: TopicSchema['act'] = (message) => {
    if (FOLLOWED.has(message)) return message;
    const followed = guarded(host, () => {
      const trail = follower.accepted(message);
      if (trail === undefined) return undefined;
      const copy = withUserProperties(message, trail.userProperties);
      FOLLOWED.set(copy, { trail, published: message });
      return copy;
    });
    return followed ?? message;
  };
  const watcher: Watcher = {
    order: -2, // before rules
    watched: (message, shared: Shared) => {
      const followed = FOLLOWED.get(message);
      if (followed === undefined) return;
      FOLLOWED.delete(message);
      const routing = guarded(host, () => followed.trail.routing());
      if (routing !== undefined) shared.following = new Routed(message, followed.published, routing, host);
    }
  };
  const check = {
    filter,
    act,
    decode: 'bytes',
    hasPlainIssues: true,
    validate: (value: unknown) => ({ value })
  } as const;
  const ends = [routing.watch(filter, watcher), routing.check(check)];
  return () => {
    for (const end of ends.splice(0)) end();
  };
}

/** Call a follower. @returns undefined if it throws */
function guarded<T>(host: FollowedBroker, call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    host.services.failed(error, 'following a message');
    return undefined;
  }
}

/** The routing of a message that is followed. */
class Routed implements FollowedRouting {
  readonly #message: Message;
  readonly #published: Message;
  readonly #follower: RoutingFollower;
  readonly #host: FollowedBroker;
  readonly #promises: number | undefined;
  readonly #copies: Message[] = [];

  constructor(message: Message, published: Message, follower: RoutingFollower, host: FollowedBroker) {
    this.#message = message;
    this.#published = published;
    this.#follower = follower;
    this.#host = host;
    this.#promises = host.ledger?.promises;
  }

  rule(id: string, run: () => void): void {
    let isRun = false;
    const runOnce = () => {
      if (isRun) return;
      isRun = true;
      run();
    };
    guarded(this.#host, () => this.#follower.rule(id, runOnce));
    runOnce();
  }

  deliver(subscription: Subscription): boolean {
    const { subscriber } = subscription;
    const message = this.#message;
    const clientId = subscriber.receiver?.clientId;
    const delivery = guarded(this.#host, () => this.#follower.delivering(clientId, subscription.filter));
    if (delivery === undefined) return subscriber.deliver(this.#fitting(message, subscription), subscription);
    if (subscriber.follow === undefined) {
      const isTaken = subscriber.deliver(message, subscription);
      guarded(this.#host, () => delivery.reached('handled'));
      return isTaken;
    }
    const isCopied = message.bytes <= MAX_COPIED_BYTES;
    const copy = isCopied ? withUserProperties(message, delivery.userProperties) : message;
    let sent = this.#fitting(copy, subscription);
    if (!subscriber.follow(sent, delivery)) {
      sent = this.#asCommitted(Message.viewOf(sent)); // the other one is for another subscription of the client
      subscriber.follow(sent, delivery);
    }
    return subscriber.deliver(sent, subscription);
  }

  /** The message for a receiver, or as it was published if it may be too large. */
  #fitting(message: Message, subscription: Subscription): Message {
    const sent = surelyFits(message, subscription) ? message : this.#published;
    return sent === this.#message ? sent : this.#asCommitted(sent);
  }

  /** Let a copy depend on the same commit as the message. */
  #asCommitted(copy: Message): Message {
    awaitCommit(copy, this.#message.ticket, this.#message.isDeferred);
    this.#copies.push(copy);
    return copy;
  }

  routed(receivers: number): void {
    // as `ticketOfAnswer` does for the message: if nothing was promised, its publisher is answered now
    if (this.#host.ledger?.promises === this.#promises && !this.#message.isDeferred)
      for (const copy of this.#copies) awaitCommit(copy, 0);
    guarded(this.#host, () => this.#follower.routed(receivers));
  }
}

/** A copy of a message with other user properties, which replace those with the same names. */
function withUserProperties(message: Message, given: readonly UserProperty[]): Message {
  const { topic, payload, qos, retain, origin, takenAtMs, timestamp, isSystem } = message;
  const properties = boundProperties(message);
  const names = new Set(given.map(([name]) => name));
  const others = (properties?.userProperties ?? []).filter(([name]) => !names.has(name));
  const input = { topic, payload, qos, retain, properties: { ...properties, userProperties: [...others, ...given] } };
  return Message.from(input, origin, takenAtMs, timestamp, isSystem);
}
