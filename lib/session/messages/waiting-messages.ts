// `pump` sends the backlog first, then retained messages; at most `MAX_PUMPED` of them in a turn, so that one client
// with a long queue does not delay others. A queued message is checked again before it is sent: the commit that
// contains it may have been refused, and the client may have lost its rights. When the connection closes, the QoS 0
// messages of a persisted session that are only in memory are appended to its log.

import type { DropReason } from '../../events/reasons.ts';
import { detachFromPublisher, type Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { RetainedFeed } from '../../retained/retained-feed.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import { matches, parseSharedFilter } from '../../topics/topic.ts';
import type { Outlet } from '../ports.ts';
import { Backlog, type BacklogLimits, type Queued } from './backlog.ts';
import { type DeferralOwner, DeferredMessages, isRefused, mustDefer } from './deferred-messages.ts';
import { type FeedOwner, RetainedDelivery } from './retained-delivery.ts';

/** Maximum number of messages of the backlog and of retained feeds that are sent before other sessions have their turn. */
const MAX_PUMPED = 500;

/** The part of the delivery that `WaitingMessages` uses. */
interface WaitingOwner extends FeedOwner {
  readonly outboundFastPath: number;
  enqueue(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean;
  drop(message: Message, reason: DropReason, persisted?: PersistedMessage): void;
  pump(): void;
  releaseUnused(): void;
  updateFastPath(): void;
}

/**
 * The messages that cannot be sent at once: the backlog, the retained messages of new subscriptions, and those deferred until a commit.
 * They are sent as the stream, the window and the store allow.
 *
 * Created when a message has to wait, and removed when no message waits, unless it has a backlog: a backlog stays, even if it is empty,
 * until the session ends or is only in the store.
 */
export class WaitingMessages implements DeferralOwner {
  /** Messages that wait until the client is connected, reads, or acknowledges earlier ones. */
  backlog: Backlog | undefined = undefined;
  /** Retained messages that are still to be sent for new subscriptions. */
  feeds: RetainedDelivery | undefined = undefined;
  /** Messages that wait for a commit. */
  deferred: DeferredMessages | undefined = undefined;
  /** True if sending continues in the next turn. */
  isScheduled = false;
  readonly #owner: WaitingOwner;
  readonly #session: { failInternally(error: unknown, during: string): void };

  constructor(owner: WaitingOwner, session: { failInternally(error: unknown, during: string): void }) {
    this.#owner = owner;
    this.#session = session;
  }

  /** The commit that the last deferred message waits for; 0 if none waits. */
  get lastTicket(): number {
    return this.deferred?.lastTicket ?? 0;
  }

  /** True if nothing waits, so that the session does not need this object. */
  get isUnused(): boolean {
    return !this.hasMessages && this.deferred === undefined && !this.isScheduled;
  }

  /** True if `pump` can have a message for the client. */
  get hasMessages(): boolean {
    return this.backlog !== undefined || this.feeds !== undefined;
  }

  /** True if runs of QoS 0 frames must not be sent before the waiting messages. */
  get closesFastPath(): boolean {
    return this.feeds !== undefined || this.deferred !== undefined || (this.backlog?.qos0Count ?? 0) > 0;
  }

  /** Tell whether messages in the backlog must be sent before a new message of this QoS. */
  precedes(qos: QoS): boolean {
    const { backlog } = this;
    if (backlog === undefined) return false;
    return qos === 0 ? backlog.qos0Count > 0 : backlog.length > backlog.qos0Count;
  }

  // --------------------------------------------------------------------------------------------------------------------- add

  /** Add a message to the backlog. @param isFirst see `Queued` @returns false if it was dropped */
  enqueue(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    isFirst: boolean
  ): boolean {
    // the limits apply to a persisted message once it is committed. While the store fails, only messages that are never refused are queued
    const isLimited = persisted === undefined || this.#owner.flows.ports.ledger?.isFailed === true;
    if (!isLimited) return this.queue(persisted);
    return this.#ensureBacklog().push(message, qos, retain, ids, persisted, isFirst);
  }

  /** Add a persisted message to the backlog, without checking the limits. @returns true, because it is not dropped */
  queue(persisted: PersistedMessage): true {
    return this.#ensureBacklog().add(persisted);
  }

  #ensureBacklog(): Backlog {
    return (this.backlog ??= new Backlog(
      this.#owner.flows.agreement.zone,
      (message, reason, persisted) => this.#owner.drop(message, reason, persisted),
      this.#owner.flows.ports.pressure.totalBacklog
    ));
  }

  /** Send a message after its commit; see `mustDefer`. @returns false if it was dropped */
  defer(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    const owner = this.#owner;
    if (qos === 0 && this.deferred?.isFull) return owner.enqueue(message, qos, retain, ids, persisted);
    detachFromPublisher(message);
    this.deferred ??= new DeferredMessages(this, owner.flows, owner.flows.ports.ledger as Ledger);
    if (qos === 0) owner.updateFastPath();
    this.deferred.add(message, qos, retain, ids, persisted);
    return true;
  }

  deferralEnded(): void {
    this.deferred = undefined;
    this.#owner.updateFastPath();
    this.#owner.pump();
  }

  /**
   * Send these retained messages to the client.
   * @param isNew the feed belongs to a new subscription; it waits until `RetainedFeed.release`
   */
  addFeed(feed: RetainedFeed, isNew: boolean): void {
    this.feeds ??= new RetainedDelivery(this.#owner, this.#owner.flows.ports);
    this.feeds.ask(feed);
    if (!isNew) return;
    feed.defer();
    this.#owner.updateFastPath();
    this.#owner.flows.log?.flowTouched();
  }

  // -------------------------------------------------------------------------------------------------------------------- send

  /** See `DeferralOwner`. */
  pump(): void {
    this.#owner.pump();
  }

  /**
   * Send the backlog and retained messages, as far as the window and the stream allow.
   * @param backlog the backlog, unless it was created for a page of the store just now
   */
  sendTo(connection: Outlet, backlog: Backlog | undefined): void {
    if (backlog === undefined && this.feeds === undefined) return;
    const owner = this.#owner;
    let left = MAX_PUMPED;
    if (backlog !== undefined) left = this.#sendBacklog(backlog, connection, left);
    if (this.feeds !== undefined) {
      left = this.feeds.pump(connection, left);
      if (this.feeds?.isDone) this.feeds = undefined;
    }
    if (owner.flows.connection !== connection) return; // a listener closed it
    if (left <= 0) {
      this.pumpLater();
    } else if (owner.outboundFastPath === 0 && this.feeds === undefined) owner.updateFastPath();
  }

  /** @param left number of messages that may be sent @returns the rest of this number */
  #sendBacklog(backlog: Backlog, connection: Outlet, left: number): number {
    const { flows } = this.#owner;
    const { ledger, rights } = flows.ports;
    while (
      backlog.length > 0 &&
      flows.connection === connection &&
      !connection.isBlocked &&
      left > 0 &&
      !this.deferred?.isFull
    ) {
      const room = flows.room();
      const queued = backlog.shift(room > 0, room);
      if (queued === undefined) break;
      const { message, qos, retain, ids, persisted } = queued;
      if (persisted?.isDone || isRefused(message, ledger)) continue;
      left--;
      if (rights.isActive && !this.#mayReceive(message.topic)) {
        this.#owner.drop(message, 'not_authorized', persisted);
        continue;
      }
      if (mustDefer(flows, this, message, qos, persisted)) this.defer(message, qos, retain, ids, persisted);
      else flows.send(connection, message, qos, retain, ids, persisted, 0);
    }
    return left;
  }

  /** Tell whether the client may still receive the messages of a topic that were queued for it. */
  #mayReceive(topic: string): boolean {
    const { flows, subscriptions } = this.#owner;
    const { rights } = flows.ports;
    if (!rights.mayReceive(flows.client, topic)) return false;
    if (!rights.hasRevoked) return true;
    let isRevoked = false;
    for (const subscription of subscriptions.values()) {
      const shared = parseSharedFilter(subscription.filter);
      if (!matches(typeof shared === 'object' ? shared.filter : subscription.filter, topic)) continue;
      if (!rights.isRevoked(subscription)) return true;
      isRevoked = true;
    }
    return !isRevoked; // the client may have unsubscribed: messages that were queued before are sent
  }

  /** Send the waiting messages in the next turn. */
  pumpLater(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.#owner.flows.ports.turn.pumpLater(this);
  }

  /** Continue in the next turn. */
  continuePump(): void {
    this.isScheduled = false;
    try {
      this.#owner.pump();
      this.#owner.releaseUnused(); // the connection may have closed since
    } catch (error) {
      this.#session.failInternally(error, 'sending what waits');
    }
  }

  // -------------------------------------------------------------------------------------------------- connected, away, ended

  /** Apply the limits of the zone in which the client has connected. */
  limit(limits: BacklogLimits): void {
    this.backlog = this.backlog?.withLimits(limits);
  }

  /** Keep the messages that the next connection may send, because this one has closed. */
  detach(): void {
    const { client, log, ports } = this.#owner.flows;
    if (client.isPersistent) this.feeds?.unload();
    else this.feeds = undefined;
    if (this.feeds?.isDone) this.feeds = undefined;
    this.deferred?.close();
    this.deferred = undefined;
    if (log === undefined) return;
    for (const { message, qos, retain, ids, isFirst } of this.backlog?.take(isUnpersisted) ?? [])
      if (!isRefused(message, ports.ledger)) log.append(message, qos, retain, ids, false, isFirst);
  }

  /** Remove the backlog from memory without dropping its messages, because they are in the store. */
  unload(): void {
    this.backlog?.empty();
    this.backlog = undefined;
  }

  /**
   * Drop messages of the backlog, of each list the oldest first.
   * @param end drop only messages with a lower sequence number; see `Backlog.end`
   * @param before drop only persisted messages with a lower number
   * @param most maximum number of messages to drop
   * @returns how many messages were removed, and how many of them were dropped, because they were not done
   */
  dropBacklog(end: number, before: number, most: number): { readonly removed: number; readonly dropped: number } {
    // first all, because a listener of the drop may publish
    const isTaken = ({ sequence, persisted }: Queued) =>
      persisted === undefined ? sequence < end : persisted.seq < before;
    const taken = this.backlog?.take(isTaken, most) ?? [];
    let count = 0;
    for (const { message, persisted } of taken) {
      if (persisted?.isDone) continue;
      count++;
      this.#owner.drop(message, 'queue_cleared', persisted);
    }
    this.#owner.updateFastPath();
    return { removed: taken.length, dropped: count };
  }

  /** Remove the messages of a session that has ended; see `Delivery.clear`. */
  clear(reason: DropReason | undefined, giveAway?: (message: Message) => boolean): void {
    if (reason !== undefined) this.backlog?.clear(reason, giveAway);
    this.feeds = undefined;
    this.unload();
  }
}

/** Tell whether a message of a persistent session is in memory only. */
function isUnpersisted({ qos, persisted }: Queued): boolean {
  return qos === 0 && persisted === undefined;
}
