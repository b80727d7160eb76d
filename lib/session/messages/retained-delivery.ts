import type { Message } from '../../packets/message.ts';
import { type PendingFeed, type RetainedFeed, RetainedFeeds } from '../../retained/retained-feed.ts';
import { isWithheld } from '../../routing/receiving-rights.ts';
import type { Subscription } from '../../routing/subscription.ts';
import type { Subscriptions } from '../../routing/subscriptions.ts';
import type { DeliveryPorts, Outlet } from '../ports.ts';
import type { OutboundFlows } from './outbound-flows.ts';

/** Duration of a look-up step, as the number of messages that could be sent in the same time. */
const STEP_MESSAGES = 50;

/** The part of the delivery that `RetainedDelivery` uses. */
export interface FeedOwner {
  readonly flows: OutboundFlows;
  readonly subscriptions: Subscriptions;
  readonly waiting:
    | { readonly backlog: { readonly length: number; readonly qos0Count: number } | undefined }
    | undefined;
  deliver(message: Message, subscription: Subscription, isRetained: boolean): boolean;
}

/** Sends the retained messages of new subscriptions, as far as the window and the stream allow. It exists while there are any. */
export class RetainedDelivery {
  readonly #feeds: RetainedFeeds;
  readonly #owner: FeedOwner;
  readonly #ports: DeliveryPorts;

  constructor(owner: FeedOwner, ports: DeliveryPorts) {
    this.#owner = owner;
    this.#ports = ports;
    this.#feeds = new RetainedFeeds(({ filter }) => owner.flows.log?.subscriptionTouched(filter));
  }

  get isDone(): boolean {
    return this.#feeds.isDone;
  }

  /** The positions of feeds that were sent in part, for the flow record. */
  get pending(): PendingFeed[] {
    return this.#feeds.pending;
  }

  /** See `RetainedFeeds`. */
  pendingBefore(subscription: Subscription): number | undefined {
    return this.#feeds.pendingBefore(subscription);
  }

  ask(feed: RetainedFeed): void {
    this.#feeds.ask(feed);
  }

  /** Keep the messages that the next connection has to send, because this one has closed. */
  unload(): void {
    this.#feeds.unload();
  }

  /** @param left number of messages that may be sent @returns the rest of this number */
  pump(connection: Outlet, left: number): number {
    const owner = this.#owner;
    const feeds = this.#feeds;
    while (!feeds.isDone && owner.flows.connection === connection && !connection.isBlocked && left > 0) {
      if (feeds.mayLoad) {
        left -= this.#load();
        continue;
      }
      const backlog = owner.waiting?.backlog;
      const feed = feeds.choose(this.#hasQuota);
      if (feed === undefined || (backlog !== undefined && backlog.qos0Count > 0)) break;
      left--;
      const message = feeds.next(feed);
      if (message !== undefined) this.#handOut(feed, message);
    }
    return left;
  }

  /** True if a retained message of QoS 1 or 2 may be sent now. Messages in the backlog are sent first. */
  get #hasQuota(): boolean {
    const { waiting, flows } = this.#owner;
    const isFirst = (waiting?.backlog?.length ?? 0) === 0 && (flows.log === undefined || flows.log.messages.isCaughtUp);
    return isFirst && flows.room() > 0;
  }

  /** @returns the number of messages that could have been sent in the same time */
  #load(): number {
    const { subscriptions, flows } = this.#owner;
    const count = this.#feeds.load(
      (subscription) => subscriptions.get(subscription.filter) === subscription,
      flows.agreement.zone.upgradeQos
    );
    return count === undefined ? STEP_MESSAGES : 1 + (count >> 5);
  }

  #handOut(feed: RetainedFeed, message: Message): void {
    const { rights } = this.#ports;
    if (rights.isActive) {
      if (rights.isRevoked(feed.subscription)) return;
      const { client } = this.#owner.flows;
      if (!rights.mayReceive(client, message.topic) || isWithheld(rights, message, client)) return;
    }
    this.#owner.deliver(message, feed.subscription, true);
  }

  /** Send the retained message of a topic ahead of its turn, so that a newer message does not overtake it. */
  handOutFirst(topic: string): void {
    const entry = this.#ports.retained.get(topic);
    if (entry === undefined) return;
    for (const feed of this.#feeds) {
      const message = feed.takeAhead(entry);
      if (message !== undefined) this.#handOut(feed, message);
    }
  }
}
