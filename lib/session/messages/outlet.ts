// The path of a message to the client of a session.
//
// `deliver` is called once for each receiver of each message (`Publishing`). Its order is: ended, no local, QoS,
// persist, then send, defer or queue. A message that is persisted and not in memory is found again by `pump`, which
// reads pages of the store when the queue has room. The order in `send` is hooks, expiry, size, packet id, frame: a
// packet id is assigned when nothing can refuse the message but its encoded size, and is freed by `#giveUp`.
//
// `pump` sends packets in flight again, then the queue, then retained messages; at most `MAX_PUMPED` of them in a turn,
// so that one client with a long queue does not delay others. A queued message is checked again before it is sent: the
// commit that contains it may have been refused, and the client may have lost its rights. Deliver hooks are asked when
// a message is sent, not when it is queued. They and listeners may close the connection: code behind such a call
// compares `writer` with the one that it was given, and leaves the message to the next connection.
//
// `outboundFastPath` is a plain field that `Publishing.routeRun` reads. Whatever changes one of the conditions in
// `updateFastPath` must call it afterwards. Frames that need no changes for a client are shared by all receivers
// (`Message.form`); the first byte and the packet id are passed beside the frame (`mark`).

import { TopicAliases } from '../../connection/topic-aliases.ts';
import type { Writer } from '../../connection/writer.ts';
import { Metric, type Metrics } from '../../events/metrics.ts';
import { type DropReason, QOS0_REFUSALS } from '../../events/reasons.ts';
import { detachFromPublisher, type Frame, type Message, originalOf } from '../../packets/message.ts';
import { hasExpired, secondsInBroker } from '../../packets/message-expiry.ts';
import type { QoS } from '../../packets/types.ts';
import { type RetainedFeed, RetainedFeeds } from '../../retained/retained-feed.ts';
import type { DeliveryFollower } from '../../routing/followers.ts';
import { isWithheld } from '../../routing/receiving-rights.ts';
import { effectiveQos, type Subscriber, type Subscription } from '../../routing/subscription.ts';
import type { Waiter } from '../../store/durable.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import { matches, parseSharedFilter } from '../../topics/topic.ts';
import type { Agreement } from '../life/agreement.ts';
import type { SessionPorts } from '../ports.ts';
import type { Session } from '../session.ts';
import type { SessionClient } from '../session-client.ts';
import { encodeForClient } from './client-packet.ts';
import { askDeliverHooks, changedQosOf } from './deliver-hooks.ts';
import { reached } from './delivery-stages.ts';
import { Inflight } from './inflight.ts';
import type { Queued } from './priority-list.ts';
import { Queue } from './queue.ts';
import type { SessionLog } from './session-log.ts';

/** Maximum number of messages of a persisted session that wait in memory; more wait only in the store. */
const MAX_IN_MEMORY = 2_000;
/** Maximum number of messages of the queue and of retained feeds that are sent before other sessions have their turn. */
const MAX_PUMPED = 500;
/**
 * Maximum number of deferred QoS 0 messages; more wait in the queue. QoS 1 and 2 messages are limited by the number that may be in flight.
 */
const MAX_DEFERRED_QOS0 = 2_000;
/** Duration of a look-up step of a retained feed, as the number of messages that could be sent in the same time. */
const STEP_MESSAGES = 50;
/** More bytes than any message has. A small integer, like the sizes that it is compared with. */
const UNBOUNDED = 0x3fff_ffff;

/** A message that is sent after a commit. */
interface DeferredMessage {
  /** The commit to wait for. */
  ticket: number;
  readonly message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly subscriptionIds: readonly number[] | undefined;
  readonly persisted: PersistedMessage | undefined;
  /** Packet id; 0 for QoS 0. */
  readonly id: number;
  /** True once it is sent or refused; a listener may close the connection while the commit is handled. */
  isSettled: boolean;
}

/** The messages of one connection that wait for a commit, in the order in which they are sent. */
interface DeferredMessages {
  list: DeferredMessage[];
  /** Number of QoS 0 messages among them. */
  qos0Count: number;
}

/**
 * Delivers messages to the client of a session.
 *
 * A message is sent at once if the Receive Maximum and the stream allow it, and it need not wait for a commit. Otherwise it is deferred or
 * queued, and queued in the store if the session is persisted.
 */
export class Outlet implements Subscriber, Waiter {
  readonly session: Session;
  readonly ports: SessionPorts<Session>;
  readonly client: SessionClient;
  /** The output of the connection of the client; undefined while it is away. */
  writer: Writer<Session> | undefined = undefined;
  /** The agreement of the last connection. */
  agreement: Agreement;
  /** The session in the store; undefined if it is only in memory. */
  log: SessionLog | undefined = undefined;
  /** The packet ids in use; undefined until the first one. */
  inflight: Inflight | undefined = undefined;
  /** The messages that wait; undefined until one has to wait. */
  queue: Queue | undefined = undefined;
  /** Retained messages that are still to be sent for new subscriptions; undefined if there are none. */
  feeds: RetainedFeeds | undefined = undefined;
  /** Layout of the QoS 0 frames that may be forwarded unchanged to this client; 0: none. */
  outboundFastPath: 0 | 4 | 5 = 0;
  /** True if the session has ended: nothing is delivered to it. */
  isOver = false;
  /** True if sending continues in the next turn. */
  isScheduled = false;
  /** Number of messages of this session that were dropped. */
  dropped = 0;
  /** The record of the last drop. */
  lastDrop: object | undefined = undefined;
  /** Number of messages that had to wait in the queue or in the store. */
  enqueued = 0;
  /** The times of receipt of messages in flight whose delivery is measured, by packet id. */
  measured: Map<number, number> | undefined = undefined;
  /** The followers of deliveries that are not at their last stage; undefined if there are none. */
  followers: Map<Message, DeliveryFollower> | undefined = undefined;
  /** Outgoing topic aliases; undefined if the client accepts none. */
  #aliases: TopicAliases | undefined = undefined;
  #deferred: DeferredMessages | undefined = undefined;
  /** True if the ledger notifies this object of commits. */
  #isWaiter = false;

  constructor(session: Session) {
    const { ports, client } = session;
    this.session = session;
    this.ports = ports;
    this.client = client;
    this.agreement = client.agreement;
  }

  get receiver(): SessionClient {
    return this.client;
  }

  get mountpoint(): string {
    return this.client.mountpoint;
  }

  get isOnline(): boolean {
    return this.writer !== undefined;
  }

  get isPersisted(): boolean {
    return this.log !== undefined;
  }

  get maxFrame(): number {
    return this.agreement.maxFrame;
  }

  get hasRoom(): boolean {
    const { writer } = this;
    return writer !== undefined && !writer.isBlocked && this.room() > 0;
  }

  deliverRun(run: Frame, bytes: number, count: number): void {
    const { counts } = this.ports.metrics;
    (this.writer as Writer<Session>).sendRun(run, bytes, count);
    counts[Metric.packetsPublishSent] += count;
    counts[Metric.messagesSent] += count;
    counts[Metric.messagesQos0Sent] += count;
    counts[Metric.messagesDelivered] += count;
  }

  /** @param follower undefined: the delivery has reached its last stage */
  follow(message: Message, follower: DeliveryFollower | undefined): boolean {
    if (follower === undefined) {
      if (this.followers?.delete(message) && this.followers.size === 0) this.followers = undefined;
    } else if (this.followers?.has(message)) return false;
    else (this.followers ??= new Map()).set(message, follower);
    return true;
  }

  /** @param isRetained the message is retained, and sent because of a new subscription */
  deliver(message: Message, subscription: Subscription, isRetained = false, isFirst = false): boolean {
    const { zone } = this.agreement;
    if (this.isOver) return false; // the subscriptions of the session are being removed
    if ((subscription.noLocal || zone.ignoreLoopDeliver) && message.clientId === this.client.clientId) {
      const { own } = subscription;
      if (own !== undefined && !zone.ignoreLoopDeliver) return this.deliver(message, own, isRetained, isFirst);
      this.drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return false;
    }
    const qos = effectiveQos(message, subscription, zone.upgradeQos);
    if (!isRetained && this.feeds !== undefined) this.#handOutFirst(this.feeds, message.topic);
    const retain = isRetained || (subscription.retainAsPublished && message.retain); // [MQTT-3.3.1-12, -13]
    const { subscriptionIds } = subscription;
    const { writer, log } = this;
    let persisted: PersistedMessage | undefined;
    if (log !== undefined && (qos > 0 || writer === undefined || log.qos0Count > 0)) {
      const kept = this.#persist(log, message, qos, retain, subscriptionIds, isFirst);
      if (typeof kept === 'boolean') return kept;
      persisted = kept;
    }
    if (writer === undefined || !this.#maySend(writer, message, qos))
      return this.enqueue(message, qos, retain, subscriptionIds, persisted, isFirst);
    if (this.#mustDefer(message, qos, persisted)) return this.#defer(message, qos, retain, subscriptionIds, persisted);
    return this.send(writer, message, qos, retain, subscriptionIds, persisted, 0);
  }

  // ------------------------------------------------------------------------------------------------- send, defer or queue

  /**
   * Persist a message. It is in memory as well if all earlier messages are and the queue has room.
   * @returns true if it is only in the store, false if it was dropped
   */
  #persist(
    log: SessionLog,
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    isFirst: boolean
  ): PersistedMessage | boolean {
    if (qos === 0 && refusesQos0(this)) {
      this.drop(message, 'qos0_msg');
      return false;
    }
    const isInMemory =
      this.writer !== undefined &&
      log.isCaughtUp &&
      (this.#hasRoomInQueue(MAX_IN_MEMORY) || this.agreement.zone.mqueuePriorities !== undefined);
    const persisted = log.append(message, qos, retain, subscriptionIds, isInMemory, isFirst);
    if (isInMemory) return persisted;
    this.enqueued++;
    if (qos === 0) this.outboundFastPath = 0;
    this.#reportQueued(message);
    if (this.followers !== undefined) reached(this, message, 'stored');
    if (this.ports.ledger?.isFailed) this.ensureQueue().trimStore(); // there may be no commit for a long time
    return true;
  }

  #reportQueued(message: Message): void {
    const { events } = this.ports;
    if (events.heard['message.queued'] && !message.isSystem)
      events.emit('message.queued', { message, client: this.client });
  }

  /** Tell whether the queue has room for more persisted messages, which can wait in the store. */
  #hasRoomInQueue(most: number): boolean {
    const length = this.queue === undefined ? 0 : this.queue.length;
    return length === 0 || (length < most && !this.ports.pressure.totalBacklog.isNearlyFull);
  }

  /** Tell whether a message may be sent before the queue: the stream and the window have room, and no earlier message waits. */
  #maySend(writer: Writer<Session>, message: Message, qos: QoS): boolean {
    if (writer.isBlocked || writer.isClosed) return false;
    if (qos > 0 && this.room() < message.bytes) return false;
    const { queue } = this;
    return queue === undefined || (qos === 0 ? queue.qos0Count === 0 : queue.length === queue.qos0Count);
  }

  /** Queue a message. @param isFirst see `Queued` @returns false if it was dropped */
  enqueue(
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    isFirst = false
  ): boolean {
    if (qos === 0 && persisted === undefined && refusesQos0(this)) {
      this.drop(message, 'qos0_msg');
      return false;
    }
    this.enqueued++;
    detachFromPublisher(message);
    if (qos === 0) this.outboundFastPath = 0;
    const queue = this.ensureQueue();
    // the limits apply to a persisted message once it is committed. While the store fails, only messages that are never refused are queued
    const isLimited = persisted === undefined || this.ports.ledger?.isFailed === true;
    const isQueued = isLimited
      ? queue.push(message, qos, retain, subscriptionIds, persisted, isFirst)
      : queue.add(persisted);
    if (isQueued) this.#reportQueued(message);
    if (isQueued && this.followers !== undefined)
      reached(this, message, this.writer === undefined ? 'stored' : 'queued');
    return isQueued;
  }

  /** The messages that wait; created at the first use. */
  ensureQueue(): Queue {
    return (this.queue ??= new Queue(this));
  }

  /** The packet ids in use; created at the first use. */
  ensureInflight(): Inflight {
    return (this.inflight ??= new Inflight(this));
  }

  /** Drop a message. @param persisted the stored form of the message */
  drop(message: Message, reason: DropReason, persisted?: PersistedMessage): void {
    this.dropped++;
    if (persisted !== undefined) this.log?.finish(persisted);
    this.ports.announcer.dropped(message, reason, this.client, this, refusalOf(reason, this));
    if (this.followers !== undefined) reached(this, message, 'dropped', reason);
  }

  /**
   * Maximum size of a QoS 1 or 2 message that may be sent now, in bytes; 0: none may be sent. A message larger than `maxInflightBytes` is
   * sent alone.
   */
  room(): number {
    const { inflight } = this;
    if (inflight === undefined) return UNBOUNDED;
    if (inflight.count >= this.agreement.window) return 0;
    const { maxInflightBytes } = this.agreement.zone;
    if (maxInflightBytes === 0 || inflight.bytes === 0) return UNBOUNDED;
    return Math.max(0, maxInflightBytes - inflight.bytes);
  }

  /** Send one message without waiting for a commit. @param id its packet id; 0 if none is assigned yet @returns false if it was dropped */
  send(
    writer: Writer<Session>,
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    id: number
  ): boolean {
    const { ports } = this;
    const { layout, maxFrame } = this.agreement;
    if (ports.hooks.deliver.length > 0 && !message.isSystem) {
      // asked when the message is sent and not when it is queued, so that permissions withdrawn in the meantime count
      const counted = qos > 0 && id === 0 ? this.ensureInflight() : undefined;
      const changed = askDeliverHooks(this, message, counted);
      if (typeof changed === 'string') return this.#giveUp(message, changed, persisted, id);
      if (this.writer !== writer) return this.#leave({ message, qos, retain, subscriptionIds, persisted }, id); // a hook closed it
      if (changed !== message) {
        qos = changedQosOf(changed, message, qos);
        if (changed.retain !== message.retain) retain = changed.retain;
        id = this.#replace(id, changed, qos, retain);
        message = changed;
      }
    }
    const hasPacketId = id > 0;
    let expirySec = -1;
    let isAged = false;
    if (message.expiryInterval >= 0) {
      const seconds = secondsInBroker(message, ports.time.nowMs);
      if (hasExpired(message, ports.time.nowMs)) return this.#giveUp(message, 'expired', persisted, id); // [MQTT-3.3.2-5]
      expirySec = message.expiryInterval - seconds; // [MQTT-3.3.2-6]
      isAged = seconds > 0;
    }
    const isPlain =
      this.#aliases === undefined &&
      this.client.mountpoint === '' &&
      (layout === 4 ||
        (subscriptionIds === undefined &&
          (expirySec < 0 || (!isAged && message.layout === 5 && qos > 0 === message.packetIdAt > 0))));
    let frame: Frame;
    let mark = -1;
    if (isPlain) {
      frame = message.form(layout, qos > 0);
      if (frame.end - frame.start > maxFrame) return this.#giveUp(message, 'too_large', persisted, id); // [MQTT-3.1.2-24, -25]
      if (qos > 0 && id === 0) id = this.ensureInflight().assign(message, qos, retain, subscriptionIds, persisted);
      mark = ((0x30 | (qos << 1) | (retain ? 1 : 0)) << 16) | id;
    } else {
      if (qos > 0 && id === 0) id = this.ensureInflight().assign(message, qos, retain, subscriptionIds, persisted);
      const packet = this.encode(message, qos, retain, false, id, subscriptionIds, expirySec);
      if (packet === undefined) return this.#giveUp(message, 'too_large', persisted, id);
      frame = { buf: packet, start: 0, end: packet.length, packetIdAt: 0 };
    }
    if (hasPacketId) this.inflight?.markSent(id);
    writer.sendMessage(frame, mark);
    if (countSent(ports.metrics, qos)) measure(this, message, qos, retain, id);
    if (persisted !== undefined) {
      if (qos === 0) this.log?.finish(persisted);
      else persisted.sent();
    }
    if (this.followers !== undefined) reached(this, message, qos === 0 ? 'written' : 'sent');
    if (ports.events.heard['message.delivered'] && !message.isSystem)
      ports.events.emit('message.delivered', { message, client: this.client, qos, retain });
    return true;
  }

  /** Drop a message that cannot be sent, and free its packet id. @returns false */
  #giveUp(message: Message, reason: DropReason, persisted: PersistedMessage | undefined, id: number): false {
    if (id > 0) this.inflight?.free(id);
    this.drop(message, reason, persisted);
    return false;
  }

  /**
   * Apply the change of a message by a deliver hook. Its packet id may be in the store, so it stays the same. @returns 0 if no id is needed
   * now
   */
  #replace(id: number, changed: Message, qos: QoS, retain: boolean): number {
    if (id === 0) return 0;
    if (qos > 0) this.inflight?.replaceMessage(id, changed, qos, retain);
    else this.inflight?.free(id);
    return qos > 0 ? id : 0;
  }

  /** Leave a message to the next connection, because a hook has closed this one. @returns false if it was dropped */
  #leave(left: Omit<Queued, 'sequence' | 'isFirst'>, id: number): boolean {
    const { message, qos, retain, subscriptionIds, persisted } = left;
    if (this.isOver) {
      this.drop(message, 'session_terminated', persisted);
      return false;
    }
    if (qos === 0) return persisted !== undefined || this.enqueue(message, qos, retain, subscriptionIds, persisted);
    const inflight = this.ensureInflight();
    if (id === 0) id = inflight.assign(message, qos, retain, subscriptionIds, persisted);
    inflight.markUnsent(id); // messages in flight are sent before queued ones
    return true;
  }

  /**
   * Encode a PUBLISH that no other client can share: because of a mount point, a topic alias, subscription identifiers or the expiry.
   * @returns undefined if the packet is too large for the client
   */
  encode(
    message: Message,
    qos: QoS,
    retain: boolean,
    dup: boolean,
    messageId: number,
    subscriptionIds: readonly number[] | undefined,
    expirySec: number
  ): Buffer | undefined {
    const variation = { qos, retain, dup, messageId, subscriptionIds, expirySec };
    return encodeForClient(this, this.#aliases, message, variation);
  }

  /** The topic of a topic alias that the broker has set. */
  topicOf(alias: number): string | undefined {
    return this.#aliases?.topicOf(alias);
  }

  // ------------------------------------------------------------------------------------------------------ wait for a commit

  /**
   * Tell whether a message must wait for a commit: a QoS 2 message until its packet id is persisted, and any message that its publisher would
   * send again if the commit failed.
   */
  #mustDefer(message: Message, qos: QoS, persisted: PersistedMessage | undefined): boolean {
    const { ledger } = this.ports;
    if (ledger === undefined) return false;
    if (qos === 2 && this.log !== undefined) return true;
    if (message.isDeferred && message.ticket > ledger.settled) return true;
    if (qos === 0 && persisted?.isWritten === true) return true; // otherwise a crash could deliver it twice
    const deferred = this.#deferred;
    if (deferred === undefined) return false;
    return qos === 0 ? deferred.qos0Count > 0 : !ledger.isFailed; // keep the order of the messages
  }

  /** Send a message after its commit. @returns false if it was dropped */
  #defer(
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    if (qos === 0 && this.#hasDeferredMost) return this.enqueue(message, qos, retain, subscriptionIds, persisted);
    detachFromPublisher(message);
    const { log } = this;
    const ledger = this.ports.ledger as Ledger;
    const deferred = (this.#deferred ??= { list: [], qos0Count: 0 });
    if (!this.#isWaiter) {
      this.#isWaiter = true;
      ledger.wait(this);
    }
    if (qos === 0) this.updateFastPath();
    let id = 0;
    if (qos > 0) {
      const inflight = this.ensureInflight();
      id = inflight.assign(message, qos, retain, subscriptionIds, persisted);
      inflight.markUnsent(id);
    }
    const waitsForFlow = log !== undefined && (qos === 2 || (qos === 0 && persisted?.isWritten === true));
    if (qos === 0 && persisted !== undefined) log?.finish(persisted);
    if (waitsForFlow) log.flowChanged();
    const ticket = waitsForFlow ? ledger.ticket : message.isDeferred ? message.ticket : this.lastTicket;
    deferred.list.push({ ticket, message, qos, retain, subscriptionIds, persisted, id, isSettled: false });
    if (qos === 0) deferred.qos0Count++;
    return true;
  }

  /** The commit that the last deferred message waits for; 0 if none waits. */
  get lastTicket(): number {
    return this.#deferred?.list.at(-1)?.ticket ?? 0;
  }

  get #hasDeferredMost(): boolean {
    return this.#deferred !== undefined && this.#deferred.qos0Count >= MAX_DEFERRED_QOS0;
  }

  /** See `Waiter`. */
  commitSucceeded(settled: number): boolean {
    const deferred = this.#deferred;
    if (deferred === undefined) return this.#stillWaits();
    let count = 0;
    for (const one of deferred.list) {
      if (this.#deferred !== deferred || one.ticket > settled) break;
      count++;
      this.#sendDeferred(one);
    }
    return this.#leaveDeferred(deferred, deferred.list.slice(count));
  }

  /** See `Waiter`. */
  commitFailed(ticket: number): boolean {
    const deferred = this.#deferred;
    if (deferred === undefined) return this.#stillWaits();
    const ledger = this.ports.ledger as Ledger;
    const { length } = deferred.list;
    const left = deferred.list.filter((one) => {
      if (one.ticket > ticket) return true;
      if (this.#dropDeferred(one, ledger)) return false;
      if (one.qos !== 1) return true;
      this.#sendDeferred(one); // it waited only for the messages before it
      return false;
    });
    left.push(...deferred.list.slice(length)); // a listener has caused them in the meantime
    for (const one of left) one.ticket = ledger.ticket;
    return this.#leaveDeferred(deferred, left);
  }

  #sendDeferred(one: DeferredMessage): void {
    const { message, qos, retain, subscriptionIds, persisted, id } = one;
    const { writer } = this;
    one.isSettled = true;
    if (writer !== undefined) this.send(writer, message, qos, retain, subscriptionIds, persisted, id);
  }

  /** Drop a message whose commit failed. @returns false if the message waits for the next commit instead */
  #dropDeferred(one: DeferredMessage, ledger: Ledger): boolean {
    const { message, persisted, id } = one;
    if (message.ticket <= ledger.settled) return false;
    one.isSettled = true;
    if (id > 0) this.inflight?.free(id);
    if (persisted !== undefined) this.log?.finish(persisted);
    return true;
  }

  /** @param deferred those of the connection for which the commit was handled; it may have closed in the meantime */
  #leaveDeferred(deferred: DeferredMessages, left: DeferredMessage[]): boolean {
    if (this.#deferred !== deferred) return this.#stillWaits();
    const wasFull = this.#hasDeferredMost;
    deferred.list = left;
    deferred.qos0Count = left.reduce((count, { qos }) => (qos === 0 ? count + 1 : count), 0);
    if (left.length > 0) {
      if (wasFull && !this.#hasDeferredMost) this.pump();
    } else {
      this.#deferred = undefined;
      this.updateFastPath();
      this.pump();
    }
    return this.#stillWaits();
  }

  #stillWaits(): boolean {
    return (this.#isWaiter = this.#deferred !== undefined);
  }

  // -------------------------------------------------------------------------------------------------------- send what waits

  /** Send waiting messages, as far as the window and the stream allow. */
  pump(): void {
    const { writer, log, queue, feeds } = this;
    if (writer === undefined || this.isScheduled) return;
    const isUsed = queue?.isUsed === true;
    if (this.inflight?.resending !== undefined) this.inflight.resendSome();
    if (log !== undefined && !log.isCaughtUp) {
      const hasPriorities = this.agreement.zone.mqueuePriorities !== undefined;
      if (hasPriorities || log.hasUnreadFirst || this.#hasRoomInQueue(MAX_IN_MEMORY / 2)) this.ensureQueue().page();
      // the order by priority is known only when all messages are in memory, and that of messages to be sent first only when all of these
      // are
      if ((!log.isCaughtUp && hasPriorities) || log.hasUnreadFirst) return;
    }
    // messages of a first page that was read just now are sent when the page ends
    if (isUsed || feeds !== undefined) this.#sendWaiting(writer, isUsed ? queue : undefined);
  }

  /** Pump after an acknowledgement if anything but the store can have a message for the client. */
  pumpWaiting(): void {
    if (this.queue?.isUsed || this.feeds !== undefined || this.inflight?.resending !== undefined) this.pump();
  }

  #sendWaiting(writer: Writer<Session>, queue: Queue | undefined): void {
    let left = MAX_PUMPED;
    if (queue !== undefined) left = this.#sendQueue(queue, writer, left);
    if (this.feeds !== undefined) {
      left = this.#sendRetained(this.feeds, writer, left);
      if (this.feeds?.isDone) this.feeds = undefined;
    }
    if (this.writer !== writer) return; // a listener closed it
    if (left <= 0) this.pumpLater();
    else if (this.outboundFastPath === 0 && this.feeds === undefined) this.updateFastPath();
  }

  /** @param left number of messages that may be sent @returns the rest of this number */
  #sendQueue(queue: Queue, writer: Writer<Session>, left: number): number {
    const { ledger, rights } = this.ports;
    while (queue.length > 0 && this.writer === writer && !writer.isBlocked && left > 0 && !this.#hasDeferredMost) {
      const room = this.room();
      const queued = queue.shift(room > 0, room);
      if (queued === undefined) break;
      const { message, qos, retain, subscriptionIds, persisted } = queued;
      if (persisted?.isDone || isRefused(message, ledger)) continue;
      left--;
      if (rights.isActive && !mayReceive(this, message.topic)) {
        this.drop(message, 'not_authorized', persisted);
        continue;
      }
      if (this.#mustDefer(message, qos, persisted)) this.#defer(message, qos, retain, subscriptionIds, persisted);
      else this.send(writer, message, qos, retain, subscriptionIds, persisted, 0);
    }
    return left;
  }

  /** Send the waiting messages in the next turn. */
  pumpLater(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.ports.turn.pumpLater(this);
  }

  /** Continue in the next turn. */
  continuePump(): void {
    this.isScheduled = false;
    try {
      this.pump();
    } catch (error) {
      this.session.failInternally(error, 'sending what waits');
    }
  }

  /** Decide whether runs of QoS 0 frames may be forwarded to this client unchanged. */
  updateFastPath(): void {
    const { writer, log } = this;
    const { layout, zone } = this.agreement;
    const isClear =
      writer !== undefined &&
      !writer.isClosed &&
      !writer.isBlocked &&
      this.#aliases === undefined &&
      this.client.mountpoint === '' &&
      !zone.upgradeQos &&
      this.feeds === undefined &&
      this.#deferred === undefined &&
      (this.queue === undefined || this.queue.qos0Count === 0) &&
      (log === undefined || log.qos0Count === 0);
    this.outboundFastPath = isClear ? layout : 0;
  }

  // ------------------------------------------------------------------------------------------------------ retained messages

  /**
   * Send these retained messages to the client.
   * @param isNew the feed belongs to a new subscription; it waits until `RetainedFeed.release`
   */
  addFeed(feed: RetainedFeed, isNew: boolean): void {
    this.feeds ??= new RetainedFeeds(({ filter }) => this.log?.subscriptionTouched(filter));
    this.feeds.ask(feed);
    if (!isNew) return;
    feed.defer();
    this.updateFastPath();
    this.log?.flowTouched();
  }

  /** Send retained messages as far as the window and the stream allow. @param left number of messages that may be sent @returns the rest */
  #sendRetained(feeds: RetainedFeeds, writer: Writer<Session>, left: number): number {
    while (!feeds.isDone && this.writer === writer && !writer.isBlocked && left > 0) {
      if (feeds.mayLoad) {
        left -= this.#loadRetained(feeds);
        continue;
      }
      const feed = feeds.choose(this.#hasQuota);
      if (feed === undefined || (this.queue !== undefined && this.queue.qos0Count > 0)) break;
      left--;
      const message = feeds.next(feed);
      if (message !== undefined) this.#handOut(feed, message);
    }
    return left;
  }

  /** True if a retained message of QoS 1 or 2 may be sent now. Messages in the queue are sent first. */
  get #hasQuota(): boolean {
    const isFirst = (this.queue?.length ?? 0) === 0 && (this.log === undefined || this.log.isCaughtUp);
    return isFirst && this.room() > 0;
  }

  /** @returns the number of messages that could have been sent in the same time */
  #loadRetained(feeds: RetainedFeeds): number {
    const { subscriptions } = this.session;
    const count = feeds.load(
      (subscription) => subscriptions.get(subscription.filter) === subscription,
      this.agreement.zone.upgradeQos
    );
    return count === undefined ? STEP_MESSAGES : 1 + (count >> 5);
  }

  #handOut(feed: RetainedFeed, message: Message): void {
    const { rights } = this.ports;
    if (rights.isActive) {
      if (rights.isRevoked(feed.subscription)) return;
      if (!rights.mayReceive(this.client, message.topic) || isWithheld(rights, message, this.client)) return;
    }
    this.deliver(message, feed.subscription, true);
  }

  /** Send the retained message of a topic ahead of its turn, so that a newer message does not overtake it. */
  #handOutFirst(feeds: RetainedFeeds, topic: string): void {
    const entry = this.ports.retained.get(topic);
    if (entry === undefined) return;
    for (const feed of feeds) {
      const message = feed.takeAhead(entry);
      if (message !== undefined) this.#handOut(feed, message);
    }
  }

  // -------------------------------------------------------------------------------------------------- connected, away, ended

  /** Persist the session from now on. */
  persistIn(log: SessionLog): void {
    this.log = log;
  }

  /** Note that the client has connected. Messages are sent to this connection as soon as it is not blocked. */
  attach(writer: Writer<Session>): void {
    const { agreement } = this.client;
    const { topicAliases, zone } = agreement;
    if (zone !== this.agreement.zone) this.queue?.limit(zone);
    this.writer = writer;
    this.agreement = agreement;
    this.#aliases = topicAliases > 0 ? new TopicAliases(topicAliases, zone.outboundAliasAfter) : undefined;
    this.inflight?.attach();
  }

  /** Keep the messages that the next connection may send, because this one has closed. */
  detach(): void {
    const { log } = this;
    const deferred = this.#deferred?.list ?? []; // those with a packet id are in flight
    this.writer = this.#aliases = this.#deferred = this.measured = undefined;
    this.outboundFastPath = 0;
    this.inflight?.detach();
    if (this.client.isPersistent) this.feeds?.unload();
    else this.feeds = undefined;
    if (this.feeds?.isDone) this.feeds = undefined;
    if (log !== undefined) {
      for (const { message, qos, retain, subscriptionIds, isFirst } of this.queue?.take(isUnpersisted) ?? [])
        if (!isRefused(message, this.ports.ledger)) log.append(message, qos, retain, subscriptionIds, false, isFirst);
      log.detached();
    }
    for (const { message, qos, isSettled } of deferred) if (qos === 0 && !isSettled) this.drop(message, 'qos0_msg');
    for (const [message] of this.followers ?? []) reached(this, message, 'disconnected');
  }

  /** Note that the session ends. */
  end(): void {
    this.isOver = true;
  }

  /** Remove all messages from memory without dropping them, because they are in the store. */
  unload(): void {
    this.queue?.empty();
    if (this.inflight?.unload()) this.inflight = undefined;
  }

  /**
   * Remove all messages of a session that has ended.
   * @param reason why they are dropped; undefined: they are not dropped, because they are handed over from the store
   * @param giveAway hands messages of share groups over to other members, in order; QoS 2 messages only if they were never sent. It returns
   * false if no member takes the message
   */
  clear(reason: DropReason | undefined, giveAway?: (message: Message) => boolean): void {
    const { inflight } = this;
    if (giveAway !== undefined && inflight !== undefined) {
      for (const id of inflight.inOrder()) {
        const message = inflight.messageOf(id);
        const isFree = (inflight.flagsOf(id) & 3) === 1 || !inflight.wasSent(id); // [MQTT-4.8.2-5]
        if (message !== undefined && isFree && !isRefused(message, this.ports.ledger)) giveAway(originalOf(message));
      }
    }
    if (reason !== undefined) this.queue?.dropAll(reason, giveAway);
    this.feeds = undefined;
    this.unload();
  }
}

/** Tell whether QoS 0 messages are not queued. */
function refusesQos0({ ports, writer, agreement, log }: Outlet): boolean {
  if (writer === undefined && !agreement.zone.mqueueStoreQos0) return true;
  return ports.pressure.isShedding || (ports.pressure.isSpaceLow && log !== undefined);
}

/** The reason why a QoS 0 message is not queued; undefined: the option `mqueueStoreQos0`, the end of the connection, or another drop. */
function refusalOf(reason: DropReason, { ports, writer, agreement }: Outlet) {
  if (reason !== 'qos0_msg') return undefined;
  if (writer === undefined && !agreement.zone.mqueueStoreQos0) return undefined;
  if (ports.pressure.isShedding) return QOS0_REFUSALS.memory;
  return ports.pressure.isSpaceLow ? QOS0_REFUSALS.space : undefined;
}

/** Tell whether the publisher of a message was refused, and may send it again. Persisted sessions drop such messages in their log. */
function isRefused(message: Message, ledger: Ledger | undefined): boolean {
  return message.isDeferred && ledger?.hasRefused(message.ticket) === true;
}

/** Tell whether a message of a persistent session is in memory only. */
function isUnpersisted({ qos, persisted }: Queued): boolean {
  return qos === 0 && persisted === undefined;
}

/** Tell whether a client may still receive the messages of a topic that were queued for it. */
function mayReceive({ ports, client, session }: Outlet, topic: string): boolean {
  const { rights } = ports;
  if (!rights.mayReceive(client, topic)) return false;
  if (!rights.hasRevoked) return true;
  let isRevoked = false;
  for (const subscription of session.subscriptions.values()) {
    const shared = parseSharedFilter(subscription.filter);
    if (!matches(typeof shared === 'object' ? shared.filter : subscription.filter, topic)) continue;
    if (!rights.isRevoked(subscription)) return true;
    isRevoked = true;
  }
  return !isRevoked; // the client may have unsubscribed: messages that were queued before are sent
}

/** Count a PUBLISH that was sent. @returns whether the time of its delivery should be measured */
export function countSent({ counts, deliveryTimes }: Metrics, qos: QoS): boolean {
  counts[Metric.packetsPublishSent]++;
  counts[Metric.messagesSent]++;
  counts[Metric.messagesDelivered]++;
  return ++counts[QOS_SENT[qos]] >= deliveryTimes.due[qos];
}

/** Measure the time of a delivery, unless the message has waited for the client: it was retained, or the client was away. */
function measure(outlet: Outlet, message: Message, qos: QoS, retain: boolean, id: number): void {
  const { session, ports } = outlet;
  const { counts, deliveryTimes } = ports.metrics;
  const sent = counts[QOS_SENT[qos]];
  if (message.isSystem || retain || message.takenAtMs < session.lifecycle.connectedMs)
    deliveryTimes.postpone(qos, sent);
  else if (qos === 0) deliveryTimes.sent(message.takenAtMs, sent);
  else {
    deliveryTimes.chosen(qos, sent);
    (outlet.measured ??= new Map()).set(id, message.takenAtMs);
  }
}

/** Measure the time until an acknowledgement, while deliveries are measured. */
export function measuredAck(outlet: Outlet, id: number, qos: QoS): void {
  const { measured, ports } = outlet;
  const sinceMs = measured?.get(id);
  if (sinceMs === undefined) return;
  measured?.delete(id);
  if (measured?.size === 0) outlet.measured = undefined;
  ports.metrics.deliveryTimes.acknowledged(qos, ports.time.nowMs - sinceMs);
}

const QOS_SENT = [Metric.messagesQos0Sent, Metric.messagesQos1Sent, Metric.messagesQos2Sent];
