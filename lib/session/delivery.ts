import { Metric } from '../events/metrics.ts';
import type { DropReason } from '../events/reasons.ts';
import { detachFromPublisher, type Frame, type Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { RetainedFeed } from '../retained/retained-feed.ts';
import { effectiveQos, type Subscriber, type Subscription } from '../routing/subscription.ts';
import type { Subscriptions } from '../routing/subscriptions.ts';
import type { Ledger } from '../store/ledger.ts';
import { Backlog, type Queued } from './backlog.ts';
import { type DeferralOwner, DeferredMessages } from './deferred-messages.ts';
import type { SessionLog } from './log.ts';
import { type FlowOwner, OutboundFlows } from './outbound-flows.ts';
import type { DeliveryPorts, Outlet } from './ports.ts';
import { type FeedOwner, RetainedDelivery } from './retained-delivery.ts';
import type { PersistedMessage } from './segment.ts';
import type { SessionClient } from './session-client.ts';

/** Most messages of the backlog and of retained feeds that are sent before other sessions have their turn. */
const MAX_PUMPED = 500;
/** Most messages of a persisted session that wait in memory; more wait in the store alone. */
const MAX_IN_MEMORY = 2_000;

/** What `Delivery` asks of the session that it belongs to. */
interface DeliveryOwner {
  readonly client: SessionClient;
  readonly subscriptions: Subscriptions;
  failInternally(error: unknown, during: string): void;
}

/**
 * Delivers messages to the client of a session.
 *
 * A message is sent at once if the Receive Maximum and the stream allow it (`OutboundFlows`). Otherwise it waits in the backlog, and in the
 * store if the session is persisted. Messages that another commit must precede are deferred. Retained messages of new subscriptions are
 * sent as there is room.
 */
export class Delivery implements Subscriber, FlowOwner, DeferralOwner, FeedOwner {
  readonly flows: OutboundFlows;
  /** Layout of the QoS 0 frames that may be forwarded unchanged to this client; 0 if none may. */
  outboundFastPath: 0 | 4 | 5 = 0;
  /** Messages that wait for the client. */
  backlog: Backlog | undefined = undefined;
  /** Retained messages that new subscriptions are still to be sent. */
  feeds: RetainedDelivery | undefined = undefined;
  /** Number of messages of this session that were dropped. */
  dropped = 0;
  /** Number of messages that had to wait in the backlog or in the store. */
  enqueued = 0;
  readonly #owner: DeliveryOwner;
  /** Messages that wait for a commit. */
  #deferred: DeferredMessages | undefined = undefined;
  #isPumpScheduled = false;

  constructor(ports: DeliveryPorts, owner: DeliveryOwner) {
    this.#owner = owner;
    this.flows = new OutboundFlows(ports, owner.client, this);
  }

  // ------------------------------------------------------------------------------------------------------------- subscriber

  get clientId(): string {
    return this.flows.client.clientId;
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

  /** The commit that the last deferred message waits for; 0 if none waits. */
  get lastTicket(): number {
    return this.#deferred?.lastTicket ?? 0;
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
  deliver(message: Message, subscription: Subscription, isRetained = false): boolean {
    const { flows } = this;
    const { zone } = flows.agreement;
    if (flows.isOver) return false; // the subscriptions of the session are being removed
    if ((subscription.noLocal || zone.ignoreLoopDeliver) && message.clientId === flows.client.clientId) {
      const { own } = subscription;
      if (own !== undefined && !zone.ignoreLoopDeliver) return this.deliver(message, own, isRetained);
      this.drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return false;
    }
    const qos = effectiveQos(message, subscription, zone.upgradeQos);
    if (!isRetained) this.feeds?.handOutFirst(message.topic);
    const retain = isRetained || (subscription.retainAsPublished && message.retain); // [MQTT-3.3.1-12, -13]
    const { ids } = subscription;
    const { connection, log } = flows;
    let persisted: PersistedMessage | undefined;
    if (log !== undefined && (qos > 0 || connection === undefined || log.messages.qos0Count > 0)) {
      const kept = this.#persist(log, message, qos, retain, ids);
      if (typeof kept === 'boolean') return kept;
      persisted = kept;
    }
    if (connection === undefined || !this.#maySend(connection, message, qos))
      return this.enqueue(message, qos, retain, ids, persisted);
    if (this.#mustDefer(message, qos, persisted)) return this.#defer(message, qos, retain, ids, persisted);
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
    ids: readonly number[] | undefined
  ): PersistedMessage | boolean {
    if (qos === 0 && this.#refusesQos0()) {
      this.drop(message, 'qos0_msg');
      return false;
    }
    const isInMemory =
      this.flows.connection !== undefined &&
      log.messages.isCaughtUp &&
      (this.#hasRoomInBacklog(MAX_IN_MEMORY) || this.flows.agreement.zone.mqueuePriorities !== undefined);
    const persisted = log.append(message, qos, retain, ids, isInMemory);
    if (isInMemory) return persisted;
    this.enqueued++;
    if (qos === 0) this.outboundFastPath = 0;
    if (this.flows.ports.ledger?.isFailed) log.queue.trim(); // there may be no commit for long
    return true;
  }

  /** Whether the backlog has room for more persisted messages, which can wait in the store. */
  #hasRoomInBacklog(most: number): boolean {
    const length = this.backlog?.length ?? 0;
    return length === 0 || (length < most && !this.flows.ports.pressure.totalBacklog.isNearlyFull);
  }

  /** Whether a message may be sent ahead of the backlog: the stream and the window have room, and nothing earlier waits. */
  #maySend(connection: Outlet, message: Message, qos: QoS): boolean {
    const { backlog } = this;
    if (connection.isBlocked || connection.isClosed) return false;
    if (qos === 0) return backlog === undefined || backlog.qos0Count === 0;
    return this.flows.room() >= message.bytes && (backlog === undefined || backlog.length <= backlog.qos0Count);
  }

  enqueue(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    if (qos === 0 && persisted === undefined && this.#refusesQos0()) {
      this.drop(message, 'qos0_msg');
      return false;
    }
    this.enqueued++;
    detachFromPublisher(message);
    if (qos === 0) this.outboundFastPath = 0;
    // the limits apply to a persisted message once it is committed. While the store fails, only messages that are never refused are queued
    const isLimited = persisted === undefined || this.flows.ports.ledger?.isFailed === true;
    if (!isLimited) return this.#ensureBacklog().add(persisted);
    return this.#ensureBacklog().push(message, qos, retain, ids, persisted);
  }

  #refusesQos0(): boolean {
    const { connection, log } = this.flows;
    const { pressure } = this.flows.ports;
    if (connection === undefined && !this.flows.agreement.zone.mqueueStoreQos0) return true;
    return pressure.isShedding || (pressure.isSpaceLow && log !== undefined);
  }

  #ensureBacklog(): Backlog {
    return (this.backlog ??= new Backlog(
      this.flows.agreement.zone,
      (message, reason, persisted) => this.drop(message, reason, persisted),
      this.flows.ports.pressure.totalBacklog
    ));
  }

  /** Whether the publisher of a message was refused, and may send it again. Persisted sessions drop such messages in their log. */
  #isRefused({ isDeferred, ticket }: Message): boolean {
    return isDeferred && this.flows.ports.ledger?.hasRefused(ticket) === true;
  }

  /**
   * Whether a message must wait for a commit: a QoS 2 message until its packet id is persisted, and any message that its publisher would
   * send again if the commit failed.
   */
  #mustDefer(message: Message, qos: QoS, persisted: PersistedMessage | undefined): boolean {
    const { ledger } = this.flows.ports;
    if (ledger === undefined) return false;
    if (qos === 2 && this.flows.log !== undefined) return true;
    if (message.isDeferred && message.ticket > ledger.settled) return true;
    if (qos === 0 && persisted?.isWritten === true) return true; // else a crash could deliver it twice
    if (this.#deferred === undefined) return false;
    return qos === 0 ? this.#deferred.qos0Count > 0 : !ledger.isFailed; // keep the order of the messages
  }

  /** Send a message after its commit. */
  #defer(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    const { flows } = this;
    const { log } = flows;
    const ledger = flows.ports.ledger as Ledger;
    if (qos === 0 && this.#deferred?.isFull) return this.enqueue(message, qos, retain, ids, persisted);
    detachFromPublisher(message);
    this.#deferred ??= new DeferredMessages(this, flows, ledger);
    if (qos === 0) this.outboundFastPath = 0;
    const id = qos > 0 ? flows.takeId(message, qos, retain, ids, persisted) : 0;
    if (id > 0) flows.inflight?.markUnsent(id);
    const waitsForFlow = log !== undefined && (qos === 2 || (qos === 0 && persisted?.isWritten === true));
    if (qos === 0 && persisted !== undefined) log?.finish(persisted);
    if (waitsForFlow) log.flowChanged();
    const ticket = waitsForFlow ? ledger.ticket : message.isDeferred ? message.ticket : this.#deferred.lastTicket;
    this.#deferred.add(ticket, message, qos, retain, ids, persisted, id);
    return true;
  }

  deferralEnded(): void {
    this.#deferred = undefined;
    this.updateFastPath();
    this.pump();
  }

  drop(message: Message, reason: DropReason, persisted?: PersistedMessage): void {
    this.dropped++;
    if (persisted !== undefined) this.flows.log?.finish(persisted);
    this.flows.ports.announcer.dropped(message, reason, this.flows.client);
  }

  // -------------------------------------------------------------------------------------------------------- send what waits

  /** Send waiting messages, as far as the window and the stream allow. */
  pump(): void {
    const { flows, backlog } = this;
    const { connection, log } = flows;
    if (connection === undefined || this.#isPumpScheduled) return;
    if (flows.resending !== undefined) flows.resendSome();
    if (log !== undefined && !log.messages.isCaughtUp) {
      const hasPriorities = this.flows.agreement.zone.mqueuePriorities !== undefined;
      if (hasPriorities || this.#hasRoomInBacklog(MAX_IN_MEMORY / 2)) log.page();
      // the order by priority is known only when all messages are in memory
      if (!log.messages.isCaughtUp && hasPriorities) return;
    }
    if (backlog === undefined && this.feeds === undefined) return;
    let left = MAX_PUMPED;
    if (backlog !== undefined) {
      while (
        backlog.length > 0 &&
        flows.connection === connection &&
        !connection.isBlocked &&
        left > 0 &&
        !this.#deferred?.isFull
      ) {
        const room = flows.room();
        const queued = backlog.shift(room > 0, room);
        if (queued === undefined) break;
        if (queued.persisted?.isDone || this.#isRefused(queued.message)) continue;
        left--;
        const { message, qos, retain, ids, persisted } = queued;
        if (this.#mustDefer(message, qos, persisted)) this.#defer(message, qos, retain, ids, persisted);
        else flows.send(connection, message, qos, retain, ids, persisted, 0);
      }
    }
    if (this.feeds !== undefined) {
      left = this.feeds.pump(connection, left);
      if (this.feeds?.isDone) this.feeds = undefined;
    }
    if (flows.connection !== connection) return; // a listener closed it
    if (left <= 0) {
      this.#isPumpScheduled = true;
      this.flows.ports.turn.pumpLater(this);
    } else if (this.outboundFastPath === 0 && this.feeds === undefined) this.updateFastPath();
  }

  /** Pump if anything but the store can have a message for the client, after an acknowledgement. */
  pumpWaiting(): void {
    if (this.backlog !== undefined || this.feeds !== undefined || this.flows.resending !== undefined) this.pump();
  }

  /** Continue `pump` in the next turn. */
  continuePump(): void {
    this.#isPumpScheduled = false;
    try {
      this.pump();
    } catch (error) {
      this.#owner.failInternally(error, 'sending what waits');
    }
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
      !this.flows.agreement.zone.upgradeQos &&
      this.feeds === undefined &&
      this.#deferred === undefined &&
      (this.backlog?.qos0Count ?? 0) + (flows.log?.messages.qos0Count ?? 0) === 0;
    this.outboundFastPath = isClear ? layout : 0;
  }

  /**
   * Send these retained messages to the client.
   * @param isNew the feed belongs to a new subscription; it waits until `RetainedFeed.release`
   */
  addFeed(feed: RetainedFeed, isNew: boolean): void {
    this.feeds ??= new RetainedDelivery(this, this.flows.ports);
    this.feeds.ask(feed);
    if (!isNew) return;
    feed.defer();
    this.outboundFastPath = 0;
    this.flows.log?.flowTouched();
  }

  // -------------------------------------------------------------------------------------------------- connected, away, ended

  /** The client has connected. Messages are sent to this connection as soon as it is not blocked. */
  attach(connection: Outlet): void {
    const { client, agreement } = this.flows;
    const { zone } = client.agreement;
    if (zone !== agreement.zone) this.backlog = this.backlog?.withLimits(zone);
    this.flows.attach(connection);
  }

  /** The connection has closed: keep the messages that the next one may send. */
  detach(): void {
    const { log } = this.flows;
    this.flows.detach();
    this.outboundFastPath = 0;
    if (this.flows.client.isPersistent) this.feeds?.unload();
    else this.feeds = undefined;
    if (this.feeds?.isDone) this.feeds = undefined;
    this.#deferred?.close();
    this.#deferred = undefined;
    if (log === undefined) return;
    for (const { message, qos, retain, ids } of this.backlog?.take(isUnpersisted) ?? [])
      if (!this.#isRefused(message)) log.append(message, qos, retain, ids, false);
    log.detached();
  }

  /** Add a message that was read from the store to the backlog. */
  queue(persisted: PersistedMessage): void {
    this.#ensureBacklog().add(persisted);
  }

  /** Remove all messages from memory without dropping them, because they are in the store. */
  unload(): void {
    this.backlog?.empty();
    this.backlog = undefined;
    this.flows.unload();
  }

  /**
   * Remove all messages of a session that has ended.
   * @param reason why they are dropped; undefined: they are not dropped, because they are handed over from the store
   * @param giveAway hands messages of share groups over to other members, in order; QoS 2 messages only if they were never sent. It
   *   returns false if no member takes the message
   */
  clear(reason: DropReason | undefined, giveAway?: (message: Message) => boolean): void {
    const { inflight } = this.flows;
    if (giveAway !== undefined && inflight !== undefined) {
      for (const id of inflight.inOrder()) {
        const message = inflight.messageOf(id);
        const isFree = (inflight.flagsOf(id) & 3) === 1 || !inflight.wasSent(id); // [MQTT-4.8.2-5]
        if (message !== undefined && isFree && !this.#isRefused(message)) giveAway(message);
      }
    }
    if (reason !== undefined) this.backlog?.clear(reason, giveAway);
    this.feeds = undefined;
    this.unload();
  }
}

/** Whether a message of a persistent session is in memory only. */
function isUnpersisted({ qos, persisted }: Queued): boolean {
  return qos === 0 && persisted === undefined;
}
