// `deliver` is called once for each receiver of each message (`Publishing`). Its order is: ended, no local, QoS,
// persist, then send, defer or queue. A message that is persisted and not in memory is found again by `pump`, which
// reads pages of the store when the backlog has room.
//
// `outboundFastPath` is a plain field that `Publishing.routeRun` reads. Whatever changes one of the conditions in
// `updateFastPath` must call it afterwards.

import { Metric } from '../../events/metrics.ts';
import type { DropReason } from '../../events/reasons.ts';
import { detachFromPublisher, type Frame, type Message, originalOf } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import { effectiveQos, type Subscriber, type Subscription } from '../../routing/subscription.ts';
import type { Subscriptions } from '../../routing/subscriptions.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import type { SessionLog } from '../log/log.ts';
import type { DeliveryPorts, Outlet } from '../ports.ts';
import type { SessionClient } from '../session-client.ts';
import { isRefused, mustDefer } from './deferred-messages.ts';
import { type FlowOwner, OutboundFlows } from './outbound-flows.ts';
import type { FeedOwner } from './retained-delivery.ts';
import { WaitingMessages } from './waiting-messages.ts';

/** Maximum number of messages of a persisted session that wait in memory; more wait only in the store. */
const MAX_IN_MEMORY = 2_000;

/** The part of the session that `Delivery` uses. */
interface DeliveryOwner {
  readonly client: SessionClient;
  readonly subscriptions: Subscriptions;
  failInternally(error: unknown, during: string): void;
}

/**
 * Delivers messages to the client of a session.
 *
 * A message is sent at once if the Receive Maximum and the stream allow it (`OutboundFlows`), and it need not wait for a commit. Otherwise
 * it waits (`WaitingMessages`), and in the store if the session is persisted.
 */
export class Delivery implements Subscriber, FlowOwner, FeedOwner {
  readonly flows: OutboundFlows;
  /** Layout of the QoS 0 frames that may be forwarded unchanged to this client; 0: none. */
  outboundFastPath: 0 | 4 | 5 = 0;
  /** The messages that cannot be sent yet; undefined if there are none. */
  waiting: WaitingMessages | undefined = undefined;
  /** Number of messages of this session that were dropped. */
  dropped = 0;
  /** Number of messages that had to wait in the backlog or in the store. */
  enqueued = 0;
  readonly #owner: DeliveryOwner;

  constructor(ports: DeliveryPorts, owner: DeliveryOwner) {
    this.#owner = owner;
    this.flows = new OutboundFlows(ports, owner.client, this);
  }

  // ------------------------------------------------------------------------------------------------------------- subscriber

  get receiver(): SessionClient {
    return this.flows.client;
  }

  get mountpoint(): string {
    return this.flows.client.mountpoint;
  }

  get isOnline(): boolean {
    return this.flows.connection !== undefined;
  }

  get isPersisted(): boolean {
    return this.flows.log !== undefined;
  }

  get maxFrame(): number {
    return this.flows.agreement.maxFrame;
  }

  get subscriptions(): Subscriptions {
    return this.#owner.subscriptions;
  }

  get hasRoom(): boolean {
    const { connection } = this.flows;
    return connection !== undefined && !connection.isBlocked && this.flows.room() > 0;
  }

  deliverRun(run: Frame, bytes: number, count: number): void {
    const { counts } = this.flows.ports.metrics;
    (this.flows.connection as Outlet).sendRun(run, bytes, count);
    counts[Metric.packetsPublishSent] += count;
    counts[Metric.messagesSent] += count;
    counts[Metric.messagesQos0Sent] += count;
    counts[Metric.messagesDelivered] += count;
  }

  /** @param isRetained the message is retained, and sent because of a new subscription */
  deliver(message: Message, subscription: Subscription, isRetained = false, isFirst = false): boolean {
    const { flows } = this;
    const { zone } = flows.agreement;
    if (flows.isOver) return false; // the subscriptions of the session are being removed
    if ((subscription.noLocal || zone.ignoreLoopDeliver) && message.clientId === flows.client.clientId) {
      const { own } = subscription;
      if (own !== undefined && !zone.ignoreLoopDeliver) return this.deliver(message, own, isRetained, isFirst);
      this.drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return false;
    }
    const qos = effectiveQos(message, subscription, zone.upgradeQos);
    if (!isRetained) this.waiting?.feeds?.handOutFirst(message.topic);
    const retain = isRetained || (subscription.retainAsPublished && message.retain); // [MQTT-3.3.1-12, -13]
    const { ids } = subscription;
    const { connection, log } = flows;
    let persisted: PersistedMessage | undefined;
    if (log !== undefined && (qos > 0 || connection === undefined || log.messages.qos0Count > 0)) {
      const kept = this.#persist(log, message, qos, retain, ids, isFirst);
      if (typeof kept === 'boolean') return kept;
      persisted = kept;
    }
    if (connection === undefined || !this.#maySend(connection, message, qos))
      return this.enqueue(message, qos, retain, ids, persisted, isFirst);
    if (mustDefer(flows, this.waiting, message, qos, persisted))
      return this.ensureWaiting().defer(message, qos, retain, ids, persisted);
    return flows.send(connection, message, qos, retain, ids, persisted, 0);
  }

  // ------------------------------------------------------------------------------------------------- send, defer or queue

  /**
   * Persist a message. It is in memory as well if all earlier messages are and the backlog has room.
   * @returns true if it is only in the store, false if it was dropped
   */
  #persist(
    log: SessionLog,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    isFirst: boolean
  ): PersistedMessage | boolean {
    if (qos === 0 && this.#refusesQos0()) {
      this.drop(message, 'qos0_msg');
      return false;
    }
    const isInMemory =
      this.flows.connection !== undefined &&
      log.messages.isCaughtUp &&
      (this.#hasRoomInBacklog(MAX_IN_MEMORY) || this.flows.agreement.zone.mqueuePriorities !== undefined);
    const persisted = log.append(message, qos, retain, ids, isInMemory, isFirst);
    if (isInMemory) return persisted;
    this.enqueued++;
    if (qos === 0) this.outboundFastPath = 0;
    this.#reportQueued(message);
    if (this.flows.ports.ledger?.isFailed) log.queue.trim(); // there may be no commit for a long time
    return true;
  }

  #reportQueued(message: Message): void {
    const { events } = this.flows.ports;
    if (events.heard['message.queued'] && !message.isSystem)
      events.emit('message.queued', { message, client: this.flows.client });
  }

  /** Tell whether the backlog has room for more persisted messages, which can wait in the store. */
  #hasRoomInBacklog(most: number): boolean {
    const length = this.waiting?.backlog?.length ?? 0;
    return length === 0 || (length < most && !this.flows.ports.pressure.totalBacklog.isNearlyFull);
  }

  /** Tell whether a message may be sent before the backlog: the stream and the window have room, and no earlier message waits. */
  #maySend(connection: Outlet, message: Message, qos: QoS): boolean {
    if (connection.isBlocked || connection.isClosed) return false;
    if (qos > 0 && this.flows.room() < message.bytes) return false;
    return this.waiting === undefined || !this.waiting.precedes(qos);
  }

  enqueue(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    isFirst = false
  ): boolean {
    if (qos === 0 && persisted === undefined && this.#refusesQos0()) {
      this.drop(message, 'qos0_msg');
      return false;
    }
    this.enqueued++;
    detachFromPublisher(message);
    if (qos === 0) this.outboundFastPath = 0;
    const isQueued = this.ensureWaiting().enqueue(message, qos, retain, ids, persisted, isFirst);
    if (isQueued) this.#reportQueued(message);
    return isQueued;
  }

  #refusesQos0(): boolean {
    const { connection, log } = this.flows;
    const { pressure } = this.flows.ports;
    if (connection === undefined && !this.flows.agreement.zone.mqueueStoreQos0) return true;
    return pressure.isShedding || (pressure.isSpaceLow && log !== undefined);
  }

  /** The messages that cannot be sent yet; created when one has to wait. */
  ensureWaiting(): WaitingMessages {
    return (this.waiting ??= new WaitingMessages(this, this.#owner));
  }

  drop(message: Message, reason: DropReason, persisted?: PersistedMessage): void {
    this.dropped++;
    if (persisted !== undefined) this.flows.log?.finish(persisted);
    this.flows.ports.announcer.dropped(message, reason, this.flows.client);
  }

  // -------------------------------------------------------------------------------------------------------- send what waits

  /** Send waiting messages, as far as the window and the stream allow. */
  pump(): void {
    const { flows, waiting } = this;
    const { connection, log } = flows;
    if (connection === undefined || waiting?.isScheduled) return;
    const backlog = waiting?.backlog;
    if (flows.resending !== undefined) flows.resendSome();
    if (log !== undefined && !log.messages.isCaughtUp) {
      const hasPriorities = flows.agreement.zone.mqueuePriorities !== undefined;
      const { messages } = log;
      if (hasPriorities || messages.hasUnreadFirst || this.#hasRoomInBacklog(MAX_IN_MEMORY / 2)) log.page();
      // the order by priority is known only when all messages are in memory, and that of messages to be sent first only when all of these
      // are
      if ((!messages.isCaughtUp && hasPriorities) || messages.hasUnreadFirst) return;
    }
    if (waiting === undefined) return;
    waiting.sendTo(connection, backlog);
    this.releaseUnused();
  }

  /** Pump after an acknowledgement if anything but the store can have a message for the client. */
  pumpWaiting(): void {
    if (this.waiting?.hasMessages || this.flows.resending !== undefined) this.pump();
  }

  /** Remove `waiting` if nothing waits. */
  releaseUnused(): void {
    if (this.waiting?.isUnused) this.waiting = undefined;
  }

  /** Decide whether runs of QoS 0 frames may be forwarded to this client unchanged. */
  updateFastPath(): void {
    const { flows } = this;
    const { connection } = flows;
    const { layout } = flows.agreement;
    if (connection === undefined) {
      this.outboundFastPath = 0;
      return;
    }
    const isClear =
      !connection.isClosed &&
      !connection.isBlocked &&
      flows.isPlain &&
      !flows.agreement.zone.upgradeQos &&
      !this.waiting?.closesFastPath &&
      (flows.log === undefined || flows.log.messages.qos0Count === 0);
    this.outboundFastPath = isClear ? layout : 0;
  }

  // -------------------------------------------------------------------------------------------------- connected, away, ended

  /** Note that the client has connected. Messages are sent to this connection as soon as it is not blocked. */
  attach(connection: Outlet): void {
    const { client, agreement } = this.flows;
    const { zone } = client.agreement;
    if (zone !== agreement.zone) this.waiting?.limit(zone);
    this.flows.attach(connection);
  }

  /** Keep the messages that the next connection may send, because this one has closed. */
  detach(): void {
    this.flows.detach();
    this.outboundFastPath = 0;
    this.waiting?.detach();
    this.releaseUnused();
    this.flows.log?.detached();
  }

  /** Remove all messages from memory without dropping them, because they are in the store. */
  unload(): void {
    this.waiting?.unload();
    this.releaseUnused();
    this.flows.unload();
  }

  /**
   * Remove all messages of a session that has ended.
   * @param reason why they are dropped; undefined: they are not dropped, because they are handed over from the store
   * @param giveAway hands messages of share groups over to other members, in order; QoS 2 messages only if they were never sent. It returns
   * false if no member takes the message
   */
  clear(reason: DropReason | undefined, giveAway?: (message: Message) => boolean): void {
    const { inflight, ports } = this.flows;
    if (giveAway !== undefined && inflight !== undefined) {
      for (const id of inflight.inOrder()) {
        const message = inflight.messageOf(id);
        const isFree = (inflight.flagsOf(id) & 3) === 1 || !inflight.wasSent(id); // [MQTT-4.8.2-5]
        if (message !== undefined && isFree && !isRefused(message, ports.ledger)) giveAway(originalOf(message));
      }
    }
    this.waiting?.clear(reason, giveAway);
    this.unload();
  }
}
