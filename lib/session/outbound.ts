import type { Connection } from '../connection/connection.ts';
import { markedCopy } from '../connection/output.ts';
import type { DropReason } from '../events/events.ts';
import { Metric } from '../events/metrics.ts';
import type { Frame, Message } from '../packets/message.ts';
import type { ProtocolVersion, QoS } from '../packets/types.ts';
import type { Zone } from '../records/zone.ts';
import { handOutQos, type RetainedFeed, RetainedFeeds } from '../retained/retained-feed.ts';
import type { Subscriber, Subscription } from '../routing/subscription.ts';
import type { Ledger } from '../store/ledger.ts';
import type { TopicAliases } from './aliases.ts';
import { Backlog } from './backlog.ts';
import { type DeferredMessage, DeferredMessages } from './deferred-messages.ts';
import { Awaiting, Inflight } from './inflight.ts';
import type { SessionLog } from './log.ts';
import type { SessionPorts } from './ports.ts';
import type { PersistedMessage } from './segment.ts';
import type { Session } from './session.ts';

/** Bytes of the largest packet of MQTT: the limit for clients that announce no Maximum Packet Size. */
export const LARGEST_PACKET = 268_435_460;
/** More bytes than any message has. A small integer, like the sizes that it is compared with. */
const UNBOUNDED = 0x3fff_ffff;
/** Most messages of the backlog and of retained feeds that are sent before other sessions have their turn. */
const MAX_PUMPED = 500;
/** Most messages of a persisted session that wait in memory; more wait in the store alone. */
const MAX_IN_MEMORY = 2_000;

/**
 * The outgoing messages of a session.
 *
 * A message is sent at once if the Receive Maximum and the stream allow it. Otherwise it waits in the backlog, and in the store if the
 * session is persisted.
 */
export abstract class Outbound implements Subscriber {
  readonly ports: SessionPorts;
  zoneSettings: Zone;
  /** The state of the chart. */
  state: 'idle' | 'connected' | 'disconnected' | 'gone' = 'idle';
  connection: Connection<Session> | undefined = undefined;
  clientId = '';
  protocolVersion: ProtocolVersion = 4;
  /** Seconds; `Infinity` if the session never expires. */
  sessionExpiry = 0;
  mountpoint = '';
  /** Bytes of the largest packet that the client accepts. */
  maxFrame = LARGEST_PACKET;
  /** Outgoing topic aliases; undefined if the client accepts none. */
  aliases: TopicAliases | undefined = undefined;
  inflight: Inflight | undefined = undefined;
  /** Most packet ids in flight: the Receive Maximum of the client, or `maxInflight` if that is smaller. */
  window = 0;
  backlog: Backlog | undefined = undefined;
  /** Retained messages that new subscriptions are still to be sent. */
  feeds: RetainedFeeds | undefined = undefined;
  /** Packet ids in flight whose message this connection has still to send again, because the send quota is used up [MQTT-4.9.0-2]. */
  resending: Set<number> | undefined = undefined;
  /** The session in the store; undefined if it is in memory alone. */
  log: SessionLog | undefined = undefined;
  /** Messages that wait for a commit. */
  deferred: DeferredMessages | undefined = undefined;
  /** Incoming QoS 2 packet ids on whose messages a hook still decides. They are not persisted: after a crash they count as not received. */
  undecided: Set<number> | undefined = undefined;
  /** Number of messages of this session that were dropped. */
  dropped = 0;
  /** Layout of the QoS 0 frames that may be forwarded unchanged to this client; 0 if none may. */
  outboundFastPath: 0 | 4 | 5 = 0;
  #isPumpScheduled = false;

  constructor(ports: SessionPorts, zone: Zone) {
    this.ports = ports;
    this.zoneSettings = zone;
  }

  /** This session, as hooks, events and ports get it. */
  abstract get client(): Session;

  get isOnline(): boolean {
    return this.state === 'connected';
  }

  get isPersisted(): boolean {
    return this.log !== undefined;
  }

  get hasRoom(): boolean {
    return (
      this.connection !== undefined &&
      this.state === 'connected' &&
      !this.connection.isBlocked &&
      this.#roomInFlight() > 0
    );
  }

  /** Most bytes of a QoS 1 or 2 message that may be sent now; 0 if none may. A message larger than `maxInflightBytes` is sent alone. */
  #roomInFlight(): number {
    const { inflight } = this;
    if (inflight === undefined) return UNBOUNDED;
    if (inflight.count >= this.window) return 0;
    const { maxInflightBytes } = this.zoneSettings;
    if (maxInflightBytes === 0 || inflight.bytes === 0) return UNBOUNDED;
    return Math.max(0, maxInflightBytes - inflight.bytes);
  }

  get isPersistent(): boolean {
    return this.sessionExpiry > 0;
  }

  /** Decide whether runs of QoS 0 frames of this client, and to this client, may be forwarded unchanged. */
  updateFastPath(): void {
    const { connection } = this;
    const isPlain =
      connection !== undefined && !connection.isClosed && this.state === 'connected' && this.mountpoint === '';
    const layout = this.protocolVersion === 5 ? 5 : 4;
    if (connection !== undefined) connection.inboundFastPath = isPlain ? layout : 0;
    const isClear =
      isPlain &&
      !connection.isBlocked &&
      !this.zoneSettings.upgradeQos &&
      this.aliases === undefined &&
      this.feeds === undefined &&
      this.deferred === undefined &&
      (this.backlog?.qos0Count ?? 0) + (this.log?.qos0Count ?? 0) === 0;
    this.outboundFastPath = isClear ? layout : 0;
  }

  deliverRun(run: Frame, bytes: number, count: number): void {
    const connection = this.connection as Connection<Session>;
    const { counts } = this.ports.metrics;
    connection.push(run, -1, bytes);
    connection.sentPackets += count;
    connection.sentMessages += count;
    counts[Metric.packetsSent] += count;
    counts[Metric.packetsPublishSent] += count;
    counts[Metric.messagesSent] += count;
    counts[Metric.messagesQos0Sent] += count;
    counts[Metric.messagesDelivered] += count;
  }

  deliver(message: Message, subscription: Subscription): boolean {
    const { zoneSettings } = this;
    if (this.state === 'gone') return false; // the subscriptions of the session are being removed
    if ((subscription.noLocal || zoneSettings.ignoreLoopDeliver) && message.clientId === this.clientId) {
      const { own } = subscription;
      if (own !== undefined && !zoneSettings.ignoreLoopDeliver) return this.deliver(message, own);
      this.#drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return false;
    }
    const { qos } = message;
    const granted = subscription.qos;
    const atQos = zoneSettings.upgradeQos ? (qos > granted ? qos : granted) : qos < granted ? qos : granted; // [MQTT-3.8.4-8]
    if (this.feeds !== undefined) this.#handOutRetainedFirst(message.topic);
    return this.#offer(message, atQos, subscription.retainAsPublished && message.retain, subscription.ids); // [MQTT-3.3.1-12, -13]
  }

  #offer(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined): boolean {
    const { log } = this;
    if (log !== undefined && (qos > 0 || this.connection === undefined || log.qos0Count > 0))
      return this.#offerPersisted(log, message, qos, retain, ids);
    return this.#offerNow(message, qos, retain, ids, undefined);
  }

  /** Persist a message. It is in memory as well if all earlier messages are and the backlog has room. */
  #offerPersisted(
    log: SessionLog,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined
  ): boolean {
    const { connection, zoneSettings } = this;
    if (qos === 0 && this.#refusesQos0()) {
      this.#drop(message, 'qos0_msg');
      return false;
    }
    const isInMemory =
      connection !== undefined &&
      log.isCaughtUp &&
      (this.#hasRoomInBacklog(MAX_IN_MEMORY) || zoneSettings.mqueuePriorities !== undefined);
    const persisted = log.append(message, qos, retain, ids, isInMemory);
    if (isInMemory) return this.#offerNow(message, qos, retain, ids, persisted);
    if (qos === 0) this.outboundFastPath = 0;
    log.trim();
    return true;
  }

  /** Whether the backlog has room for more persisted messages, which can wait in the store. */
  #hasRoomInBacklog(most: number): boolean {
    const length = this.backlog?.length ?? 0;
    return length === 0 || (length < most && !this.ports.pressure.totalBacklog.isNearlyFull);
  }

  #offerNow(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    const { connection, backlog } = this;
    if (connection === undefined || connection.isBlocked || connection.isClosed)
      return this.#enqueue(message, qos, retain, ids, persisted);
    if (qos === 0) {
      if (backlog !== undefined && backlog.qos0Count > 0) return this.#enqueue(message, qos, retain, ids, persisted);
    } else if (this.#roomInFlight() < message.bytes || (backlog !== undefined && backlog.length > backlog.qos0Count)) {
      return this.#enqueue(message, qos, retain, ids, persisted);
    }
    return this.#transmit(connection, message, qos, retain, ids, persisted);
  }

  #enqueue(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    if (qos === 0 && persisted === undefined && this.#refusesQos0()) {
      this.#drop(message, 'qos0_msg');
      return false;
    }
    message.detachFromPublisher();
    if (qos === 0) this.outboundFastPath = 0;
    return this.#ensureBacklog().push(message, qos, retain, ids, persisted);
  }

  #refusesQos0(): boolean {
    const { ports } = this;
    if (this.connection === undefined && !this.zoneSettings.mqueueStoreQos0) return true;
    return ports.pressure.isShedding || (ports.pressure.isSpaceLow && this.log !== undefined);
  }

  #ensureBacklog(): Backlog {
    return (this.backlog ??= new Backlog(
      this.zoneSettings,
      (message, reason, persisted) => this.#drop(message, reason, persisted),
      this.ports.pressure.totalBacklog
    ));
  }

  /** Add a message that was read from the store to the backlog. */
  queue(persisted: PersistedMessage): void {
    const backlog = this.#ensureBacklog();
    const { message, qos, retain, ids } = persisted;
    if (this.zoneSettings.mqueuePriorities === undefined) backlog.restore(message, qos, retain, ids, persisted);
    else backlog.push(message, qos, retain, ids, persisted);
  }

  /** Persist the messages that are in memory alone, because the client has disconnected. */
  persistBacklog(log: SessionLog): void {
    this.deferred = undefined;
    for (const { message, qos, retain, ids } of this.backlog?.takeUnpersisted() ?? [])
      if (!this.#isRefused(message)) log.append(message, qos, retain, ids, false);
    log.detached();
  }

  /**
   * Drop all messages of a session in memory that has ended. Messages of share groups are handed over to other members in order; QoS 2
   * messages only if they were never sent.
   */
  clearQueue(reason: DropReason): void {
    const { inflight, backlog } = this;
    const giveAway = this.ports.handOvers.giverFor(this.client);
    if (giveAway !== undefined && inflight !== undefined) {
      for (const id of inflight.inOrder()) {
        const message = inflight.messageOf(id);
        const isFree = (inflight.flagsOf(id) & 3) === 1 || !inflight.wasSent(id); // [MQTT-4.8.2-5]
        if (message !== undefined && isFree && !this.#isRefused(message)) giveAway(message);
      }
    }
    backlog?.clear(reason, giveAway);
  }

  /** Remove all messages from memory: the session is offline and completely in the store. */
  unload(): void {
    this.backlog?.empty();
    this.backlog = this.inflight = this.resending = undefined;
  }

  /** Send one message now. @returns false if it was dropped: expired, or too large for this client */
  #transmit(
    connection: Connection<Session>,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    const { ports } = this;
    if (ports.ledger !== undefined && this.#mustDefer(ports.ledger, message, qos, persisted)) {
      if (qos === 0 && this.deferred?.isFull) return this.#enqueue(message, qos, retain, ids, persisted);
      return this.#defer(ports.ledger, message, qos, retain, ids, persisted);
    }
    return this.#send(connection, message, qos, retain, ids, persisted, 0);
  }

  /** Whether the publisher of a message was refused, and may send it again. Persisted sessions drop such messages in their log. */
  #isRefused({ isDeferred, ticket }: Message): boolean {
    return isDeferred && this.ports.ledger?.hasRefused(ticket) === true;
  }

  /**
   * Whether a message must wait for a commit: a QoS 2 message until its packet id is persisted, and any message that its publisher would
   * send again if the commit failed.
   */
  #mustDefer(ledger: Ledger, message: Message, qos: QoS, persisted: PersistedMessage | undefined): boolean {
    if (qos === 2 && this.log !== undefined) return true;
    if (message.isDeferred && message.ticket > ledger.settled) return true;
    if (qos === 0 && persisted?.isWritten === true) return true; // else a crash could deliver it twice
    if (this.deferred === undefined) return false;
    return qos === 0 ? this.deferred.qos0Count > 0 : !ledger.isFailed; // keep the order of the messages
  }

  #defer(
    ledger: Ledger,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean {
    message.detachFromPublisher();
    this.deferred ??= new DeferredMessages(this.client, ledger);
    if (qos === 0) this.outboundFastPath = 0;
    const id = qos > 0 ? this.#takeId(message, qos, retain, ids, persisted) : 0;
    if (id > 0) this.inflight?.markUnsent(id);
    const waitsForFlow = this.log !== undefined && (qos === 2 || (qos === 0 && persisted?.isWritten === true));
    if (qos === 0 && persisted !== undefined) this.log?.finish(persisted);
    if (waitsForFlow) this.log?.flowChanged();
    const ticket = waitsForFlow ? ledger.ticket : message.isDeferred ? message.ticket : this.deferred.lastTicket;
    this.deferred.add({ ticket, message, qos, retain, ids, persisted, id });
    return true;
  }

  /** Send a message after its commit. */
  sendDeferred({ message, qos, retain, ids, persisted, id }: DeferredMessage): void {
    const { connection } = this;
    if (connection === undefined || this.state !== 'connected') return;
    this.#send(connection, message, qos, retain, ids, persisted, id);
  }

  /** Drop a message whose commit failed. @returns false if the message waits for the next commit instead */
  dropDeferred({ message, persisted, id }: DeferredMessage): boolean {
    if (message.ticket <= (this.ports.ledger as Ledger).settled) return false;
    if (id > 0) this.inflight?.free(id);
    if (persisted !== undefined) this.log?.finish(persisted);
    return true;
  }

  /** Send one message without waiting for a commit. @param id its packet id; 0 if none is assigned yet @returns false if it was dropped */
  #send(
    connection: Connection<Session>,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    id: number
  ): boolean {
    const { ports } = this;
    const hasPacketId = id > 0;
    if (ports.hooks.deliver.length > 0 && !message.isSystem) {
      const taken = this.#askHooks(connection, message, qos, retain, ids, persisted, id);
      if (taken !== undefined) return taken;
    }
    let expirySec = -1;
    let isAged = false;
    if (message.expiryInterval >= 0) {
      const seconds = message.secondsInBroker(ports.time.nowMs);
      if (message.hasExpired(ports.time.nowMs)) {
        if (id > 0) this.inflight?.free(id);
        this.#drop(message, 'expired', persisted); // [MQTT-3.3.2-5]
        return false;
      }
      expirySec = message.expiryInterval - seconds; // [MQTT-3.3.2-6]
      isAged = seconds > 0;
    }
    const layout = this.protocolVersion === 5 ? 5 : 4;
    const first = 0x30 | (qos << 1) | (retain ? 1 : 0);
    const isPlain =
      this.mountpoint === '' &&
      this.aliases === undefined &&
      (layout === 4 ||
        (ids === undefined &&
          (expirySec < 0 || (!isAged && message.layout === 5 && qos > 0 === message.packetIdAt > 0))));
    let frame: Frame;
    let mark = -1;
    if (isPlain) {
      frame = message.form(layout, qos > 0);
      if (frame.end - frame.start > this.maxFrame) {
        if (id > 0) this.inflight?.free(id);
        this.#drop(message, 'too_large', persisted); // [MQTT-3.1.2-24, -25]
        return false;
      }
      if (qos > 0 && id === 0) id = this.#takeId(message, qos, retain, ids, persisted);
      mark = (first << 16) | id;
    } else {
      if (qos > 0 && id === 0) id = this.#takeId(message, qos, retain, ids, persisted);
      const packet = this.#encodeForClient(message, layout, qos, retain, false, id, ids, expirySec);
      if (packet === undefined) {
        if (qos > 0) this.inflight?.free(id);
        this.#drop(message, 'too_large', persisted);
        return false;
      }
      frame = { buf: packet, start: 0, end: packet.length, packetIdAt: 0 };
    }
    if (hasPacketId) this.inflight?.markSent(id);
    connection.push(frame, mark, frame.end - frame.start);
    this.#count(connection, qos);
    if (persisted !== undefined) {
      if (qos === 0) this.log?.finish(persisted);
      else persisted.isSent = true;
    }
    if (ports.taps.isOpen) ports.taps.sent(connection, markedCopy(frame, mark));
    if (ports.events.heard['message.delivered'] && !message.isSystem)
      ports.events.emit('message.delivered', { message, client: this.client, qos, retain });
    return true;
  }

  /**
   * Ask the deliver hooks. They are asked when a message is sent and not when it is queued, so that permissions withdrawn meanwhile count.
   * @returns undefined if the message may be sent; false if it was dropped; true if it was left to the next connection
   */
  #askHooks(
    connection: Connection<Session>,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    id: number
  ): boolean | undefined {
    if (!this.ports.publishing.mayDeliver(message, this.client)) {
      if (id > 0) this.inflight?.free(id);
      this.#drop(message, 'hook', persisted);
      return false;
    }
    return this.connection === connection
      ? undefined
      : this.#leaveToNextConnection(message, qos, retain, ids, persisted, id);
  }

  /** Leave a message to the next connection, because a hook has closed this one. @returns false if it was dropped */
  #leaveToNextConnection(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    id: number
  ): boolean {
    if (this.state === 'gone') {
      this.#drop(message, 'session_terminated', persisted);
      return false;
    }
    if (qos === 0) return persisted !== undefined || this.#enqueue(message, qos, retain, ids, persisted);
    if (id === 0) id = this.#takeId(message, qos, retain, ids, persisted);
    this.inflight?.markUnsent(id); // messages in flight are sent before queued ones
    return true;
  }

  #count(connection: Connection<Session>, qos: QoS): void {
    const { counts } = this.ports.metrics;
    connection.sentPackets++;
    connection.sentMessages++;
    counts[Metric.packetsSent]++;
    counts[Metric.packetsPublishSent]++;
    counts[Metric.messagesSent]++;
    counts[QOS_SENT[qos]]++;
    counts[Metric.messagesDelivered]++;
  }

  #takeId(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): number {
    this.inflight ??= new Inflight();
    if (persisted !== undefined) this.log?.flowTouched();
    let resendable: Message | undefined;
    if (this.isPersistent || this.#isNeededUntilAcked) {
      message.detachFromPublisher();
      resendable = message;
    }
    return this.inflight.take(
      qos === 1 ? Awaiting.puback : Awaiting.pubrec,
      resendable,
      qos | (retain ? 4 : 0),
      resendable === undefined ? undefined : ids,
      persisted
    );
  }

  /** Messages in flight must be stored until they are acknowledged, even if the session ends with its connection. */
  get #isNeededUntilAcked(): boolean {
    const { retryInterval, maxInflightBytes } = this.zoneSettings;
    if (retryInterval > 0 || maxInflightBytes > 0 || this.ports.events.heard['message.acked']) return true;
    return this.client.subscriptions.shared > 0; // handed over to other members of the share group when the session ends
  }

  /**
   * Encode a PUBLISH that no other client can share: because of a mount point, a topic alias, subscription identifiers or the expiry.
   * @returns undefined if the packet is too large for the client
   */
  #encodeForClient(
    message: Message,
    layout: 4 | 5,
    qos: QoS,
    retain: boolean,
    dup: boolean,
    messageId: number,
    ids: readonly number[] | undefined,
    expirySec: number
  ): Buffer | undefined {
    const topic = this.mountpoint === '' ? undefined : unmounted(message.topic, this.mountpoint);
    const plain = { qos, retain, dup, messageId, subscriptionIds: ids, expirySec, alias: 0, topic };
    if (this.aliases !== undefined && layout === 5) {
      const choice = this.aliases.choose(message.topic);
      if (choice !== 0) {
        const alias = Math.abs(choice);
        const packet = message.encode(layout, { ...plain, alias, topic: choice > 0 ? '' : topic });
        if (packet.length <= this.maxFrame) return packet;
        if (choice < 0) this.aliases.forget(message.topic); // without the alias the packet is three bytes shorter
      }
    }
    const packet = message.encode(layout, plain);
    return packet.length <= this.maxFrame ? packet : undefined;
  }

  /** Send waiting messages, as far as the window and the stream allow. */
  pump(): void {
    const { ports, backlog, log } = this;
    const connection = this.connection;
    if (connection === undefined || this.state !== 'connected' || this.#isPumpScheduled) return;
    if (this.resending !== undefined) this.#resendSome(connection);
    if (log !== undefined && !log.isCaughtUp) {
      const hasPriorities = this.zoneSettings.mqueuePriorities !== undefined;
      if (hasPriorities || this.#hasRoomInBacklog(MAX_IN_MEMORY / 2)) log.page();
      // the order by priority is known only when all messages are in memory
      if (!log.isCaughtUp && hasPriorities) return;
    }
    if (backlog === undefined && this.feeds === undefined) return;
    let left = MAX_PUMPED;
    if (backlog !== undefined) {
      while (
        backlog.length > 0 &&
        this.connection === connection &&
        !connection.isBlocked &&
        left > 0 &&
        !this.deferred?.isFull
      ) {
        const room = this.#roomInFlight();
        const queued = backlog.shift(room > 0, room);
        if (queued === undefined) break;
        if (queued.persisted?.isDone || this.#isRefused(queued.message)) continue;
        left--;
        this.#transmit(connection, queued.message, queued.qos, queued.retain, queued.ids, queued.persisted);
      }
    }
    while (this.feeds !== undefined && this.connection === connection && !connection.isBlocked && left > 0) {
      const { feeds } = this;
      if (feeds.mayLoad) left -= 1 + (this.#loadFeeds(feeds) >> 5);
      else {
        const feed = feeds.choose(this.#hasQuota(backlog));
        if (feed === undefined || (backlog !== undefined && backlog.qos0Count > 0)) break;
        left--;
        const message = feeds.next(feed);
        if (message !== undefined) this.#handOut(feed, message);
      }
      if (feeds.isDone) this.feeds = undefined;
    }
    if (this.connection !== connection) return; // a listener closed it
    if (left <= 0) {
      this.#isPumpScheduled = true;
      ports.turn.pumpLater(this.client);
    } else if (this.outboundFastPath === 0 && this.feeds === undefined) this.updateFastPath();
  }

  /** Continue `pump` in the next turn. */
  continuePump(): void {
    this.#isPumpScheduled = false;
    this.pump();
  }

  /** Register the retained messages of a new subscription. They wait until `releaseFeeds`. */
  startFeed(feed: RetainedFeed): void {
    this.restoreFeed(feed);
    feed.isDeferred = true;
    this.outboundFastPath = 0;
    this.log?.flowTouched();
  }

  /** Register the retained messages that a subscription is still to be sent. */
  restoreFeed(feed: RetainedFeed): void {
    this.feeds ??= new RetainedFeeds(({ filter }) => this.log?.subscriptionTouched(filter));
    this.feeds.ask(feed);
  }

  /** Start to send the retained messages of new subscriptions, after their SUBACK. */
  releaseFeeds(feeds: readonly RetainedFeed[]): void {
    for (const feed of feeds) feed.isDeferred = false;
    if (this.state === 'connected' && feeds.length > 0) this.pump();
  }

  /** Whether a retained message of QoS 1 or 2 may be sent now. Messages in the backlog are sent first. */
  #hasQuota(backlog: Backlog | undefined): boolean {
    const isFirst = (backlog?.length ?? 0) === 0 && (this.log === undefined || this.log.isCaughtUp);
    return isFirst && this.#roomInFlight() > 0;
  }

  #loadFeeds(feeds: RetainedFeeds): number {
    return feeds.load(
      (subscription) => this.client.subscriptions.get(subscription.filter) === subscription,
      this.zoneSettings.upgradeQos
    );
  }

  #handOut(feed: RetainedFeed, message: Message): void {
    const { subscription } = feed;
    if ((subscription.noLocal || this.zoneSettings.ignoreLoopDeliver) && message.clientId === this.clientId) {
      this.#drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return;
    }
    const qos = handOutQos(message, subscription, this.zoneSettings.upgradeQos);
    this.#offer(message, qos, true, subscription.ids); // [MQTT-3.3.1-12]
  }

  /** Send the retained message of a topic ahead of its turn, so that a newer message does not overtake it. */
  #handOutRetainedFirst(topic: string): void {
    const entry = this.ports.retained.get(topic);
    if (entry === undefined) return;
    for (const feed of this.feeds as RetainedFeeds) {
      const message = feed.takeAhead(entry);
      if (message !== undefined) this.#handOut(feed, message);
    }
  }

  /** Keep the retained messages that were not sent for the next connection, if the session outlives this one. */
  keepFeeds(): void {
    if (this.isPersistent) this.feeds?.unload();
    else this.feeds = undefined;
    if (this.feeds?.isDone) this.feeds = undefined;
  }

  /**
   * Send unacknowledged packets again, in order and with DUP [MQTT-4.4.0-1, MQTT-3.3.1-1].
   * @param before a `mark` of `inflight`: only packets sent before it
   */
  resend(before?: number): void {
    const { connection, inflight, ports } = this;
    if (connection === undefined || inflight === undefined) return;
    for (const id of inflight.inOrder(before)) {
      if (inflight.stateOf(id) === Awaiting.pubcomp) {
        connection.acknowledge(((0x62 << 24) | (2 << 16) | id) >>> 0);
        ports.metrics.counts[Metric.packetsPubrelSent]++;
      } else if (inflight.persistedOf(id)?.isDone) {
        inflight.free(id); // the message was refused after its packet id was assigned
      } else {
        (this.resending ??= new Set()).add(id);
      }
    }
    if (this.resending !== undefined) this.#resendSome(connection);
  }

  /** Send messages of `resending`, as far as the stream and the Receive Maximum of this connection allow [MQTT-3.3.4-9]. */
  #resendSome(connection: Connection<Session>): void {
    const { inflight, ports, resending } = this;
    if (inflight === undefined || resending === undefined) return;
    const layout = this.protocolVersion === 5 ? 5 : 4;
    for (const id of resending) {
      if (connection.isBlocked || inflight.count - resending.size >= this.window) return;
      resending.delete(id);
      const message = inflight.messageOf(id);
      if (message === undefined) continue;
      const isFirst = !inflight.wasSent(id);
      if (isFirst) {
        const reason = this.#refusal(message);
        if (reason !== undefined) {
          const refused = inflight.persistedOf(id);
          inflight.free(id);
          this.#drop(message, reason, refused);
          continue;
        }
        if (this.connection !== connection) return; // a hook closed it
      }
      const flags = inflight.flagsOf(id);
      const qos = (flags & 3) as QoS;
      const retain = (flags & 4) !== 0;
      const left =
        message.expiryInterval < 0
          ? -1
          : Math.max(0, message.expiryInterval - message.secondsInBroker(ports.time.nowMs)); // [MQTT-4.3.3-7]
      const packet = this.#encodeForClient(
        message,
        layout,
        qos,
        retain,
        !isFirst,
        id,
        inflight.subscriptionIdsOf(id),
        left
      );
      const persisted = inflight.persistedOf(id);
      if (packet === undefined) {
        inflight.free(id);
        this.#drop(message, 'too_large', persisted);
        continue;
      }
      if (persisted !== undefined) persisted.isSent = true;
      inflight.markSent(id);
      connection.push({ buf: packet, start: 0, end: packet.length, packetIdAt: 0 }, -1, packet.length);
      this.#count(connection, qos);
      if (ports.taps.isOpen) ports.taps.sent(connection, packet);
      if (!isFirst || message.isSystem || !ports.events.heard['message.delivered']) continue;
      ports.events.emit('message.delivered', { message, client: this.client, qos, retain });
      if (this.connection !== connection) return; // a listener closed it
    }
    this.resending = undefined;
  }

  /** Check a message that was never sent. @returns why it must be dropped; undefined if it may be sent */
  #refusal(message: Message): DropReason | undefined {
    const { ports } = this;
    const hasHook = ports.hooks.deliver.length > 0 && !message.isSystem;
    if (hasHook && !ports.publishing.mayDeliver(message, this.client)) return 'hook';
    return message.hasExpired(ports.time.nowMs) ? 'expired' : undefined; // [MQTT-3.3.2-5]
  }

  /** @param persisted the message as the store has it */
  #drop(message: Message, reason: DropReason, persisted?: PersistedMessage): void {
    this.dropped++;
    if (persisted !== undefined) this.log?.finish(persisted);
    this.ports.announcer.dropped(message, reason, this.client);
  }
}

const QOS_SENT = [Metric.messagesQos0Sent, Metric.messagesQos1Sent, Metric.messagesQos2Sent];

/** Remove the mount point from a topic name. */
function unmounted(topic: string, mountpoint: string): string {
  return topic.startsWith(mountpoint) ? topic.slice(mountpoint.length) : topic;
}
