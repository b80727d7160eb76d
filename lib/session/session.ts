import type { Duplex } from 'node:stream';
import type { ClientInfo, ConnectionMeta } from '../client-info.ts';
import { ProtocolError, StateError } from '../errors.ts';
import { asError, type DisconnectReason } from '../events.ts';
import { Metric } from '../metrics.ts';
import { isAllowedCode } from '../packets/allowed-codes.ts';
import { encodeConnack, encodeDisconnect } from '../packets/encode.ts';
import type { Frame, Message, MessageInput, Publisher } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ConnectPacket, Properties, ProtocolVersion, QoS, UserProperty } from '../packets/types.ts';
import type { Alarm } from '../timing-wheel.ts';
import { TextMap } from '../topics/text-map.ts';
import type { Zone } from '../zone.ts';
import { TopicAliases } from './aliases.ts';
import { Connection, Pause } from './connection.ts';
import type { SessionDeeds, SessionEvent } from './deeds.ts';
import { AUTHENTICATING, BEFORE_CONNECT, LIVE, REAUTHENTICATING } from './handlers/tables.ts';
import type { SessionHost } from './host.ts';
import { IdSet } from './id-set.ts';
import { Awaiting, Inflight } from './inflight.ts';
import { markedCopy } from './output.ts';
import { Backlog } from './queue.ts';
import type { RetainedFeed } from './retained-feed.ts';
import type { Route, Subscriber, Subscription } from './subscription.ts';

/** A will as it waits with its session. */
export interface WillState {
  readonly message: MessageInput;
  readonly delayMs: number;
}

/** How a connection ends. */
export interface Ending {
  readonly reason: DisconnectReason;
  readonly reasonCode: number;
  /** Publish the will, unless it is deleted; `drop` deletes it [MQTT-3.14.4-3]. */
  readonly will: 'publish' | 'drop' | 'keep';
  /** Cut the stream instead of ending it. */
  readonly isAbrupt: boolean;
}

/** One round of an authentication exchange in progress; the broker's. */
export interface AuthExchange {
  readonly method: string;
  receive(data: Buffer | undefined): void;
  /** Nobody waits for its end any more. */
  abort(reason: Error): void;
}

const LARGEST_PACKET = 268_435_460;
const NONE = new TextMap<Subscription>();
/** Messages of a backlog or of retained feeds sent in one go, before others have their turn. */
const PUMP_AT_ONCE = 500;

/**
 * What MQTT promises about one client id: subscriptions, messages in flight and waiting, the will. It lives while its chart is not
 * `gone`; its connection comes and goes. Deeds of the chart are here, and the path of a message towards the client.
 */
export class Session implements ClientInfo, Publisher, Subscriber, SessionDeeds, Alarm {
  readonly host: SessionHost;
  zoneSettings: Zone;
  /** Where the chart is: `idle`, `connected`, `disconnected` or `gone`. */
  state: 'idle' | 'connected' | 'disconnected' | 'gone' = 'idle';
  link: Connection | undefined = undefined;
  /** The beginning of a session whose connection this one takes over at the next `admit`. */
  incoming: Session | undefined = undefined;
  actor: { send(event: SessionEvent): void } | undefined = undefined;

  // who
  clientId = '';
  username: string | undefined = undefined;
  protocolVersion: ProtocolVersion = 4;
  keepalive = 0;
  cleanStart = true;
  sessionExpiry = 0;
  /** It is among those the broker counts as persistent. */
  isCountedPersistent = false;
  mountpoint = '';
  isBridge = false;
  isSuperuser = false;
  connection: ConnectionMeta;
  userProperties: readonly UserProperty[] = [];
  connectedAt: number | undefined = undefined;
  disconnectedAt: number | undefined = undefined;
  createdAt = 0;

  // what the client said in CONNECT
  maxFrame = LARGEST_PACKET;
  wantsProblemInformation = true;
  authMethod: string | undefined = undefined;
  auth: AuthExchange | undefined = undefined;
  /** Told when the connection goes while a hook decides on it. */
  abort: { abort(reason: Error): void } | undefined = undefined;
  aliases: TopicAliases | undefined = undefined;
  will: WillState | undefined = undefined;

  // the state MQTT keeps
  /** By filter as stored: rewritten, mounted, with the share prefix. */
  subscriptions: TextMap<Subscription> = NONE;
  inflight: Inflight | undefined = undefined;
  window = 0;
  backlog: Backlog | undefined = undefined;
  feeds: RetainedFeed[] | undefined = undefined;
  awaitingRel: IdSet | undefined = undefined;
  /** Those of them that an earlier connection received: they do not count against the Receive Maximum of this one. */
  #carriedOver: IdSet | undefined = undefined;
  /** Ids in flight that this connection has not sent again yet, for want of send quota [MQTT-4.9.0-2]. */
  resending: Set<number> | undefined = undefined;
  /** Incoming QoS 1 and 2 messages whose acknowledgement waits for a hook. */
  unacknowledged = 0;
  dropped = 0;

  rawLayout: 0 | 4 | 5 = 0;

  // times, monotonic milliseconds
  dueMs = Infinity;
  slot: Alarm['slot'] = undefined;
  previous: Alarm | undefined = undefined;
  next: Alarm | undefined = undefined;
  acceptedMs = 0;
  deadlineMs = Infinity;
  willDueMs = Infinity;
  expiresMs = Infinity;
  ending: Ending | undefined = undefined;
  /** When the zone's retryInterval is over, and the mark of what was in flight when it began. */
  #retryDueMs = Infinity;
  #retryMark = 0;
  #awaitingSince: Map<number, number> | undefined = undefined;

  constructor(host: SessionHost, zone: Zone, stream: Duplex, meta: ConnectionMeta) {
    this.host = host;
    this.zoneSettings = zone;
    this.connection = meta;
    this.acceptedMs = host.nowMs;
    this.link = new Connection(stream, meta, host, this, zone.maxPacketSize);
  }

  get zone(): string {
    return this.zoneSettings.name;
  }

  get isOnline(): boolean {
    return this.state === 'connected';
  }

  get hasRoom(): boolean {
    return (
      this.link !== undefined &&
      this.state === 'connected' &&
      !this.link.isBlocked &&
      (this.inflight?.count ?? 0) < this.window
    );
  }

  get isPersistent(): boolean {
    return this.sessionExpiry > 0;
  }

  send(event: SessionEvent['type']): void {
    this.actor?.send({ type: event });
  }

  // ------------------------------------------------------------------------------------------------------- deeds of the chart

  awaitConnect(): void {
    const { zoneSettings, link, host } = this;
    (link as Connection).table = BEFORE_CONNECT;
    this.deadlineMs = this.acceptedMs + zoneSettings.connectTimeout;
    host.wheel.armAt(this, Math.min(this.deadlineMs, this.acceptedMs + zoneSettings.idleTimeout));
  }

  authenticate(): void {
    (this.link as Connection).table = AUTHENTICATING;
  }

  admit(): void {
    const { host } = this;
    if (this.incoming !== undefined) this.#takeFrom(this.incoming);
    const link = this.link as Connection;
    link.session = this;
    link.isBlocked = true; // what listeners publish waits for the CONNACK [MQTT-3.2.0-1]
    this.state = 'connected';
    this.connection = link.meta;
    this.connectedAt = host.clock.now();
    this.disconnectedAt = undefined;
    this.ending = undefined;
    this.willDueMs = this.expiresMs = Infinity;
    this.#carriedOver = this.awaitingRel?.size ? new IdSet(this.awaitingRel) : undefined;
    this.resending = undefined;
    host.sessionChanged(this);
  }

  goLive(): void {
    const link = this.link as Connection;
    link.table = LIVE;
  }

  /** CONNACK success is out. */
  welcomed(): void {
    const link = this.link as Connection;
    link.isWelcomed = true;
    link.isBlocked = false;
    this.updateLane();
    this.#beginRetry(this.host.clock.monotonic());
    this.rearm();
  }

  reauthenticate(): void {
    (this.link as Connection).table = REAUTHENTICATING;
  }

  release(): void {
    const { host, link } = this;
    const ending = this.ending ?? CLOSED;
    this.link = undefined;
    this.rawLayout = 0;
    this.state = 'disconnected';
    this.connectedAt = undefined;
    this.disconnectedAt = host.clock.now();
    this.aliases = undefined;
    this.auth?.abort(new StateError('CONNECTION_CLOSED', 'the connection has gone'));
    this.auth = undefined;
    this.unacknowledged = 0;
    host.wheel.disarm(this);
    this.#keepFeeds();
    host.sessionChanged(this);
    this.#endLink(link, ending.isAbrupt);
    host.metrics.counts[Metric.clientDisconnected]++;
    if (host.events.heard['client.disconnected'])
      host.events.emit('client.disconnected', { client: this, reason: ending.reason, reasonCode: ending.reasonCode });
  }

  #endLink(link: Connection | undefined, isAbrupt: boolean): void {
    try {
      if (isAbrupt) link?.destroy();
      else link?.end();
    } catch (error) {
      link?.destroy();
      throw error;
    }
  }

  awaitExpiry(): void {
    const { host } = this;
    const nowMs = host.clock.monotonic();
    this.actor = undefined;
    this.expiresMs = nowMs + this.sessionExpiry * 1000;
    if (this.will !== undefined) this.willDueMs = nowMs + this.will.delayMs;
    const isWillDue = this.willDueMs <= nowMs;
    host.wheel.armAt(this, isWillDue ? this.expiresMs : Math.min(this.expiresMs, this.willDueMs));
    if (isWillDue) this.#publishWill();
  }

  /** The broker has started again: the wheel knows nothing of this session. */
  rearmOffline(): void {
    if (this.state === 'disconnected') this.host.wheel.armAt(this, Math.min(this.expiresMs, this.willDueMs));
  }

  cancelExpiry(): void {
    this.host.wheel.disarm(this);
    this.willDueMs = this.expiresMs = Infinity;
  }

  forget(): void {
    const { host, link } = this;
    const reached = this.state !== 'idle';
    this.state = 'gone';
    host.wheel.disarm(this);
    if (!reached) {
      // never got as far as CONNACK, or its connection is now another session's
      this.link = undefined;
      if (link !== undefined && link.session === this) link.end();
    }
    this.actor = undefined;
    host.forget(this);
    if (reached) this.#publishWill(); // when its own subscriptions are out: a share group must not pick them
    this.backlog?.clear('session_terminated');
    this.backlog = this.inflight = this.feeds = this.awaitingRel = undefined;
  }

  // ----------------------------------------------------------------------------------------------------------------- endings

  /** A rule of MQTT was broken, or a bound passed: answer where the version allows an answer, and close. */
  fail(error: ProtocolError, reason: DisconnectReason = reasonOf(error.reasonCode)): void {
    const { link } = this;
    if (link === undefined || link.isClosed) return;
    this.close(reason, error.reasonCode, { reasonString: error.message });
  }

  /** Something of ours broke while it worked for this session: that session alone ends, and it is told of. */
  broke(error: unknown, during: string): void {
    this.host.failed(error, during, this);
    const { link } = this;
    if (link === undefined || link.isClosed) {
      if (this.state === 'disconnected') this.end('expired', 'internal_error');
      return;
    }
    try {
      this.close('internal_error', ReasonCode.implementationSpecificError);
    } catch (second) {
      this.host.failed(second, 'closing', this);
      link.destroy();
    }
  }

  streamFailed(error: Error): void {
    const code = (error as NodeJS.ErrnoException).code;
    // A peer that vanishes is nobody's fault and told by client.disconnected.
    if (code !== 'ECONNRESET' && code !== 'EPIPE' && code !== 'ERR_STREAM_PREMATURE_CLOSE' && code !== 'ETIMEDOUT')
      this.host.failed(error, 'stream', this);
  }

  /** The stream is gone. */
  connectionLost(reason: DisconnectReason): void {
    this.#ended({ reason, reasonCode: ReasonCode.unspecifiedError, will: 'publish', isAbrupt: true });
  }

  /** DISCONNECT came. */
  left(reasonCode: number): void {
    const isNormal = reasonCode === ReasonCode.success;
    this.#ended({
      reason: isNormal ? 'normal' : 'disconnect_with_will',
      reasonCode,
      will: isNormal ? 'drop' : 'publish',
      isAbrupt: false
    });
  }

  /**
   * Close the connection from our side, with CONNACK or DISCONNECT where the version has them.
   * @param options `end`: the session ends too; `will`: what becomes of it
   */
  close(
    reason: DisconnectReason,
    reasonCode: number,
    options: {
      reasonString?: string;
      serverReference?: string;
      end?: boolean;
      will?: Ending['will'];
      isAbrupt?: boolean;
    } = {}
  ): void {
    const { link } = this;
    const { reasonString, serverReference, will = 'publish', isAbrupt = false } = options;
    if (link?.isWelcomed) reasonCode = disconnectCode(reasonCode);
    if (options.end) this.sessionExpiry = 0;
    if (link !== undefined && !link.isClosed) {
      if (link.isWelcomed) {
        if (this.protocolVersion === 5)
          link.send(this.#disconnectPacket(reasonCode, reasonString, serverReference), Metric.packetsDisconnectSent);
      } else {
        this.#refuse(link, reasonCode, reasonString, serverReference);
      }
    }
    this.#ended({ reason, reasonCode, will, isAbrupt });
  }

  /**
   * The connection gives way to another one of the same client id.
   * @returns the will to be published once CONNACK is out; one that was to wait is deleted by the reconnect [MQTT-3.1.3-9]
   */
  takeOver(): WillState | undefined {
    const { link, will } = this;
    if (link?.isWelcomed && !link.isClosed && this.protocolVersion === 5) {
      link.send(
        this.#disconnectPacket(ReasonCode.sessionTakenOver, undefined, undefined),
        Metric.packetsDisconnectSent
      ); // [MQTT-3.1.4-3]
    }
    this.will = undefined;
    this.ending = { reason: 'takeovered', reasonCode: ReasonCode.sessionTakenOver, will: 'drop', isAbrupt: false };
    this.send('takenOver');
    return will?.delayMs === 0 ? will : undefined;
  }

  /** End a session that is offline. */
  end(event: 'expired' | 'discarded', reason: DisconnectReason): void {
    this.ending = { ...(this.ending ?? CLOSED), reason };
    if (this.state !== 'disconnected') return;
    if (this.actor === undefined) this.host.revive(this);
    this.send(event);
  }

  #ended(ending: Ending): void {
    if (this.state === 'gone') return;
    this.ending = ending;
    if (this.state === 'idle') {
      this.send('closed');
      return;
    }
    if (this.state !== 'connected') return;
    if (ending.will === 'drop') this.will = undefined;
    else if (ending.will === 'keep') this.will = undefined;
    this.send(this.isPersistent ? 'detached' : 'closed');
  }

  #refuse(
    link: Connection,
    reasonCode: number,
    reasonString: string | undefined,
    serverReference: string | undefined
  ): void {
    const version = link.answerVersion;
    const { host } = this;
    if (version === undefined) return; // nothing is sent before a CONNECT that can be read, and nothing twice [MQTT-3.2.0-2]
    link.answerVersion = undefined;
    const code = connackCode(reasonCode);
    host.metrics.counts[Metric.packetsConnackError]++;
    if (AUTH_CODES.has(reasonCode)) host.metrics.counts[Metric.packetsConnackAuthError]++;
    host.metrics.counts[Metric.clientConnack]++;
    const properties: Properties = {};
    if (reasonString !== undefined) properties.reasonString = reasonString;
    if (serverReference !== undefined) properties.serverReference = serverReference;
    let packet = encodeConnack({ cmd: 'connack', sessionPresent: false, reasonCode: code, properties }, version);
    // [MQTT-3.2.2-19]
    if (packet.length > this.maxFrame)
      packet = encodeConnack({ cmd: 'connack', sessionPresent: false, reasonCode: code }, version);
    if (packet.length <= this.maxFrame) link.send(packet, Metric.packetsConnackSent);
    if (host.events.heard['client.connack']) host.events.emit('client.connack', { client: this, reasonCode: code });
  }

  #disconnectPacket(reasonCode: number, reasonString: string | undefined, serverReference: string | undefined): Buffer {
    const properties: Properties = {};
    if (reasonString !== undefined) properties.reasonString = reasonString;
    if (serverReference !== undefined) properties.serverReference = serverReference;
    const packet = encodeDisconnect({ cmd: 'disconnect', reasonCode, properties });
    return packet.length <= this.maxFrame ? packet : encodeDisconnect({ cmd: 'disconnect', reasonCode }); // [MQTT-3.14.2-3]
  }

  #publishWill(): void {
    const { will } = this;
    this.will = undefined;
    this.willDueMs = Infinity;
    if (will !== undefined) this.host.publishWill(this, will);
  }

  // ------------------------------------------------------------------------------------------------------------------- times

  /** Set the alarm to the next thing that can be due. */
  rearm(): void {
    const { link, host, zoneSettings } = this;
    if (link === undefined || this.state !== 'connected') return;
    let dueMs = Infinity;
    if (this.keepalive > 0) dueMs = link.lastReceivedMs + this.#keepAliveMs();
    if (link.isBlocked && zoneSettings.slowConsumerTimeout > 0)
      dueMs = Math.min(dueMs, link.lastProgressMs + zoneSettings.slowConsumerTimeout);
    dueMs = Math.min(dueMs, this.#retryDueMs);
    if (this.#awaitingSince !== undefined) dueMs = Math.min(dueMs, this.#forgetAwaitingRel(host.clock.monotonic()));
    if (dueMs !== this.dueMs) host.wheel.armAt(this, dueMs);
  }

  /** MQTT 5.0 sends again on reconnect alone [MQTT-4.4.0-1]. */
  #beginRetry(nowMs: number): void {
    const { retryInterval } = this.zoneSettings;
    this.#retryDueMs = retryInterval > 0 && this.protocolVersion !== 5 ? nowMs + retryInterval : Infinity;
    this.#retryMark = this.inflight?.mark ?? 0;
  }

  #keepAliveMs(): number {
    return this.keepalive * 1000 * this.zoneSettings.keepaliveBackoff * 2; // [MQTT-3.1.2-22]
  }

  ring(nowMs: number): void {
    const { link, zoneSettings } = this;
    this.host.nowMs = nowMs;
    if (this.state === 'idle') {
      if (nowMs >= this.deadlineMs) this.close('connect_timeout', ReasonCode.keepAliveTimeout);
      else if (link !== undefined && link.receivedBytes === 0) this.close('idle_timeout', ReasonCode.keepAliveTimeout);
      else this.host.wheel.armAt(this, this.deadlineMs);
    } else if (this.state === 'disconnected') {
      if (nowMs >= this.expiresMs) this.end('expired', 'expired');
      else {
        if (nowMs >= this.willDueMs) this.#publishWill();
        this.host.wheel.armAt(this, Math.min(this.expiresMs, this.willDueMs));
      }
    } else if (link !== undefined) {
      if (this.keepalive > 0 && link.pauses === 0 && nowMs >= link.lastReceivedMs + this.#keepAliveMs()) {
        this.close('keepalive_timeout', ReasonCode.keepAliveTimeout);
        return;
      }
      if (link.pauses !== 0) link.lastReceivedMs = nowMs;
      if (
        link.isBlocked &&
        zoneSettings.slowConsumerTimeout > 0 &&
        nowMs >= link.lastProgressMs + zoneSettings.slowConsumerTimeout
      ) {
        this.host.slowConsumer(this);
        this.close('slow_consumer', ReasonCode.quotaExceeded, { isAbrupt: true });
        return;
      }
      if (nowMs >= this.#retryDueMs) {
        if (!link.isBlocked) this.resend(this.#retryMark);
        this.#beginRetry(nowMs);
      }
      this.rearm();
    }
  }

  // ---------------------------------------------------------------------------------------------------------- towards the client

  /** May runs of QoS 0 frames pass untouched, in and out? */
  updateLane(): void {
    const { link } = this;
    const isPlain = link !== undefined && !link.isClosed && this.state === 'connected' && this.mountpoint === '';
    const layout = this.protocolVersion === 5 ? 5 : 4;
    if (link !== undefined) link.laneLayout = isPlain ? layout : 0;
    const isClear =
      isPlain &&
      !link.isBlocked &&
      this.aliases === undefined &&
      this.feeds === undefined &&
      (this.backlog?.zeroes ?? 0) === 0;
    this.rawLayout = isClear ? layout : 0;
  }

  deliverRun(run: Frame, bytes: number, count: number): void {
    const link = this.link as Connection;
    const { counts } = this.host.metrics;
    link.push(run, -1, bytes);
    link.sentPackets += count;
    link.sentMessages += count;
    counts[Metric.packetsSent] += count;
    counts[Metric.packetsPublishSent] += count;
    counts[Metric.messagesSent] += count;
    counts[Metric.messagesQos0Sent] += count;
    counts[Metric.messagesDelivered] += count;
  }

  deliver(message: Message, subscription: Subscription): boolean {
    const { host, zoneSettings } = this;
    if (this.state === 'gone') return false; // its subscriptions are being taken out
    if (
      message.origin === this
        ? subscription.nl || zoneSettings.ignoreLoopDeliver
        : subscription.nl && message.clientId === this.clientId // of an earlier session
    ) {
      const { own } = subscription;
      if (own !== undefined && !zoneSettings.ignoreLoopDeliver) return this.deliver(message, own);
      this.#drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return false;
    }
    if (host.hooks.deliver.length > 0 && !message.isSystem && !host.mayDeliver(message, this)) {
      this.#drop(message, 'hook');
      return false;
    }
    const { qos } = message;
    const granted = subscription.qos;
    const atQos = zoneSettings.upgradeQos ? (qos > granted ? qos : granted) : qos < granted ? qos : granted; // [MQTT-3.8.4-8]
    if (this.feeds !== undefined) this.#feedAhead(message.topic);
    return this.#offer(message, atQos, subscription.rap && message.retain, subscription.ids); // [MQTT-3.3.1-12, -13]
  }

  #offer(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined): boolean {
    const { link, backlog } = this;
    if (link === undefined || link.isBlocked || link.isClosed) return this.#enqueue(message, qos, retain, ids);
    if (qos === 0) {
      if (backlog !== undefined && backlog.zeroes > 0) return this.#enqueue(message, qos, retain, ids);
    } else if (
      (this.inflight !== undefined && this.inflight.count >= this.window) ||
      (backlog !== undefined && backlog.length > backlog.zeroes)
    ) {
      return this.#enqueue(message, qos, retain, ids);
    }
    return this.#transmit(link, message, qos, retain, ids);
  }

  #enqueue(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined): boolean {
    const { zoneSettings, host } = this;
    if (qos === 0 && ((this.link === undefined && !zoneSettings.mqueueStoreQos0) || host.isShedding)) {
      this.#drop(message, 'qos0_msg');
      return false;
    }
    message.keep();
    this.backlog ??= new Backlog(zoneSettings, (dropped, reason) => this.#drop(dropped, reason));
    if (qos === 0) this.rawLayout = 0;
    return this.backlog.push(message, qos, retain, ids);
  }

  /** Send one message now. @returns false if it was dropped: expired, or too large for this client */
  #transmit(
    link: Connection,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined
  ): boolean {
    const { host } = this;
    let expirySec = -1;
    let isAged = false;
    if (message.expiryInterval >= 0) {
      const seconds = message.secondsHere(host.nowMs);
      // not specified: an interval of 0 means those that are there now
      if (host.nowMs >= message.expiresAtMs && host.nowMs > message.takenAtMs) {
        this.#drop(message, 'expired'); // [MQTT-3.3.2-5]
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
        (ids === undefined && (expirySec < 0 || (!isAged && message.layout === 5 && qos > 0 === message.idAt > 0))));
    let frame: Frame;
    let mark = -1;
    if (isPlain) {
      frame = message.form(layout, qos > 0);
      if (frame.end - frame.start > this.maxFrame) {
        this.#drop(message, 'too_large'); // [MQTT-3.1.2-24, -25]
        return false;
      }
      mark = (first << 16) | (qos > 0 ? this.#takeId(message, qos, retain, ids) : 0);
    } else {
      const id = qos > 0 ? this.#takeId(message, qos, retain, ids) : 0;
      const packet = this.#encodeOwn(message, layout, qos, retain, false, id, ids, expirySec);
      if (packet === undefined) {
        if (qos > 0) this.inflight?.free(id);
        this.#drop(message, 'too_large');
        return false;
      }
      frame = { buf: packet, start: 0, end: packet.length, idAt: 0 };
    }
    link.push(frame, mark, frame.end - frame.start);
    this.#count(link, qos);
    if (host.isTapped) host.tapSent(link, markedCopy(frame, mark));
    if (host.events.heard['message.delivered'] && !message.isSystem)
      host.events.emit('message.delivered', { message, client: this, qos, retain });
    return true;
  }

  #count(link: Connection, qos: QoS): void {
    const { counts } = this.host.metrics;
    link.sentPackets++;
    link.sentMessages++;
    counts[Metric.packetsSent]++;
    counts[Metric.packetsPublishSent]++;
    counts[Metric.messagesSent]++;
    counts[QOS_SENT[qos]]++;
    counts[Metric.messagesDelivered]++;
  }

  #takeId(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined): number {
    this.inflight ??= new Inflight();
    let kept: Message | undefined;
    if (this.isPersistent || this.zoneSettings.retryInterval > 0 || this.host.events.heard['message.acked']) {
      message.keep();
      kept = message;
    }
    return this.inflight.take(
      qos === 1 ? Awaiting.puback : Awaiting.pubrec,
      kept,
      qos | (retain ? 4 : 0),
      kept === undefined ? undefined : ids
    );
  }

  /** A packet that nobody else can share: mount point, alias, subscription identifiers, time left. */
  #encodeOwn(
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
    const plain = { qos, retain, dup, messageId, ids, expirySec, alias: 0, topic };
    if (this.aliases !== undefined && layout === 5) {
      const choice = this.aliases.choose(message.topic);
      if (choice !== 0) {
        const alias = Math.abs(choice);
        const packet = message.encode(layout, { ...plain, alias, topic: choice > 0 ? '' : topic });
        if (packet.length <= this.maxFrame) return packet;
        if (choice < 0) this.aliases.forget(message.topic); // without it three bytes fewer
      }
    }
    const packet = message.encode(layout, plain);
    return packet.length <= this.maxFrame ? packet : undefined;
  }

  /** Send what waits, as far as the window and the stream allow. */
  pump(): void {
    const { host, backlog } = this;
    const link = this.link;
    if (link === undefined || this.state !== 'connected') return;
    if (this.resending !== undefined) this.#resendSome(link);
    if (backlog === undefined && this.feeds === undefined) return;
    let left = PUMP_AT_ONCE;
    if (backlog !== undefined) {
      while (backlog.length > 0 && !link.isBlocked && left > 0) {
        const queued = backlog.shift((this.inflight?.count ?? 0) < this.window);
        if (queued === undefined) break;
        left--;
        this.#transmit(link, queued.message, queued.qos, queued.retain, queued.ids);
      }
    }
    for (; this.feeds !== undefined && !link.isBlocked && left > 0; left--) {
      const feed = this.#nextFeed(this.feeds);
      if (feed === undefined) break;
      this.#feedOne(feed, this.feeds);
    }
    if (left === 0) host.pumpLater(this);
    else if (this.rawLayout === 0) this.updateLane();
  }

  /** Hand out retained messages for a new subscription, as there is room. */
  feed(feed: RetainedFeed): void {
    if (this.state !== 'connected') return;
    if (this.feeds === undefined) this.feeds = [];
    this.feeds.push(...feed.split((message) => this.#handOutQos(message, feed.subscription) === 0));
    this.rawLayout = 0;
    this.pump();
  }

  /** The first feed that may go on: what waits in the backlog goes before it. */
  #nextFeed(feeds: readonly RetainedFeed[]): RetainedFeed | undefined {
    const { backlog, inflight } = this;
    if (backlog !== undefined && backlog.zeroes > 0) return undefined;
    const hasQuota = (inflight?.count ?? 0) < this.window && (backlog?.length ?? 0) === 0;
    for (const feed of feeds) if (hasQuota || !feed.needsQuota) return feed;
    return undefined;
  }

  #feedOne(feed: RetainedFeed, feeds: RetainedFeed[]): void {
    const message = feed.next();
    if (message !== undefined) this.#handOut(feed, message);
    if (feed.isDone) {
      feeds.splice(feeds.indexOf(feed), 1);
      if (feeds.length === 0) this.feeds = undefined;
    }
  }

  #handOut(feed: RetainedFeed, message: Message): void {
    const { subscription } = feed;
    if ((subscription.nl || this.zoneSettings.ignoreLoopDeliver) && message.clientId === this.clientId) {
      this.#drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return;
    }
    if (this.host.hooks.deliver.length > 0 && !message.isSystem && !this.host.mayDeliver(message, this)) {
      this.#drop(message, 'hook');
      return;
    }
    this.#offer(message, this.#handOutQos(message, subscription), true, subscription.ids); // [MQTT-3.3.1-12]
  }

  #handOutQos({ qos }: Message, { qos: granted }: Subscription): QoS {
    return this.zoneSettings.upgradeQos === qos < granted ? granted : qos;
  }

  /** A newer message must not overtake the retained one of its topic. */
  #feedAhead(topic: string): void {
    for (const feed of this.feeds as RetainedFeed[]) {
      const message = this.host.pendingRetained(feed, topic);
      if (message !== undefined) this.#handOut(feed, message);
    }
  }

  /** The connection goes before all retained messages are out: a session that outlives it keeps the rest in its backlog. */
  #keepFeeds(): void {
    const { feeds } = this;
    this.feeds = undefined;
    if (feeds === undefined || !this.isPersistent) return;
    for (const feed of feeds) {
      for (let message = feed.next(); message !== undefined; message = feed.next()) {
        if (this.#handOutQos(message, feed.subscription) > 0) this.#handOut(feed, message);
      }
    }
  }

  /**
   * Send again what was not acknowledged, in order, with DUP [MQTT-4.4.0-1, MQTT-3.3.1-1].
   * @param before a mark of `inflight`: only what was sent until then
   */
  resend(before?: number): void {
    const { link, inflight, host } = this;
    if (link === undefined || inflight === undefined) return;
    for (const id of inflight.inOrder(before)) {
      if (inflight.stateOf(id) === Awaiting.pubcomp) {
        link.acknowledge(((0x62 << 24) | (2 << 16) | id) >>> 0);
        host.metrics.counts[Metric.packetsPubrelSent]++;
      } else {
        (this.resending ??= new Set()).add(id);
      }
    }
    if (this.resending !== undefined) this.#resendSome(link);
  }

  /** The next of those to be sent again, as far as the stream and the Receive Maximum of this connection allow [MQTT-3.3.4-9]. */
  #resendSome(link: Connection): void {
    const { inflight, host, resending } = this;
    if (inflight === undefined || resending === undefined) return;
    const layout = this.protocolVersion === 5 ? 5 : 4;
    for (const id of resending) {
      if (link.isBlocked || inflight.count - resending.size >= this.window) return;
      resending.delete(id);
      const message = inflight.messageOf(id);
      if (message === undefined) continue;
      const flags = inflight.flagsOf(id);
      const qos = (flags & 3) as QoS;
      const left =
        message.expiryInterval < 0 ? -1 : Math.max(0, message.expiryInterval - message.secondsHere(host.nowMs)); // [MQTT-4.3.3-7]
      const packet = this.#encodeOwn(
        message,
        layout,
        qos,
        (flags & 4) !== 0,
        true,
        id,
        inflight.subscriptionIdsOf(id),
        left
      );
      if (packet === undefined) {
        inflight.free(id);
        this.#drop(message, 'too_large');
        continue;
      }
      link.push({ buf: packet, start: 0, end: packet.length, idAt: 0 }, -1, packet.length);
      this.#count(link, qos);
      if (host.isTapped) host.tapSent(link, packet);
    }
    this.resending = undefined;
  }

  /** Take over the connection, and what was agreed on it. */
  #takeFrom(other: Session): void {
    this.link = other.link;
    other.link = undefined;
    this.incoming = undefined;
    this.zoneSettings = other.zoneSettings;
    this.username = other.username;
    this.protocolVersion = other.protocolVersion;
    this.keepalive = other.keepalive;
    this.cleanStart = other.cleanStart;
    this.sessionExpiry = other.sessionExpiry;
    this.mountpoint = other.mountpoint;
    this.isBridge = other.isBridge;
    this.isSuperuser = other.isSuperuser;
    this.userProperties = other.userProperties;
    this.maxFrame = other.maxFrame;
    this.wantsProblemInformation = other.wantsProblemInformation;
    this.authMethod = other.authMethod;
    this.aliases = other.aliases;
    this.window = other.window;
    this.will = other.will; // a reconnect in time deletes the one before [MQTT-3.1.3-9]
  }

  /** Adopt what a CONNECT says of the connection and the session. */
  adopt(packet: ConnectPacket): void {
    const { properties = {} } = packet;
    const { zoneSettings } = this;
    this.protocolVersion = packet.protocolVersion;
    this.cleanStart = packet.clean;
    this.isBridge = packet.bridge;
    this.userProperties = properties.userProperties ?? [];
    this.maxFrame = properties.maximumPacketSize ?? LARGEST_PACKET;
    this.wantsProblemInformation = properties.requestProblemInformation !== 0;
    this.authMethod = properties.authenticationMethod;
    const receiveMaximum = properties.receiveMaximum ?? 65_535;
    this.window = zoneSettings.maxInflight === 0 ? receiveMaximum : Math.min(receiveMaximum, zoneSettings.maxInflight);
    const aliases = Math.min(properties.topicAliasMaximum ?? 0, zoneSettings.maxOutboundTopicAlias);
    this.aliases = aliases > 0 ? new TopicAliases(aliases) : undefined;
  }

  #drop(message: Message, reason: Parameters<SessionHost['dropped']>[1]): void {
    this.dropped++;
    this.host.dropped(message, reason, this);
  }

  /** Room between what it may have unacknowledged and what it has [MQTT-3.3.4-7]. */
  get inboundUnacknowledged(): number {
    return (this.awaitingRel?.size ?? 0) - (this.#carriedOver?.size ?? 0) + this.unacknowledged;
  }

  /** A QoS 2 id that waits for PUBREL has come again: on this connection. */
  noteRepeated(id: number): void {
    this.#carriedOver?.delete(id);
  }

  /** The flow of an incoming QoS 2 id has ended. @returns false if there was none */
  forgetIncoming(id: number): boolean {
    this.#carriedOver?.delete(id);
    return this.awaitingRel?.delete(id) ?? false;
  }

  /** @throws ProtocolError 0x90 for a topic with too many levels */
  checkLevels(route: Route): void {
    const { maxTopicLevels } = this.zoneSettings;
    if (maxTopicLevels > 0 && route.levels > maxTopicLevels) {
      throw new ProtocolError(
        ReasonCode.topicNameInvalid,
        `a topic of ${route.levels} levels, ${maxTopicLevels} are allowed (option maxTopicLevels)`
      );
    }
  }

  /** When an incoming QoS 2 id came, where the zone forgets those that get no PUBREL. */
  noteAwaitingRel(id: number): void {
    if (this.zoneSettings.awaitRelTimeout === 0) return;
    (this.#awaitingSince ??= new Map()).delete(id);
    this.#awaitingSince.set(id, this.host.nowMs);
    if (this.dueMs > this.host.nowMs + this.zoneSettings.awaitRelTimeout) this.rearm();
  }

  /** @returns monotonic milliseconds at which the next one is to be forgotten */
  #forgetAwaitingRel(nowMs: number): number {
    const { awaitRelTimeout } = this.zoneSettings;
    for (const [id, sinceMs] of this.#awaitingSince ?? []) {
      if (sinceMs + awaitRelTimeout > nowMs) return sinceMs + awaitRelTimeout;
      this.#awaitingSince?.delete(id);
      if (this.forgetIncoming(id)) this.host.metrics.counts[Metric.messagesQos2Expired]++;
    }
    return Infinity;
  }

  wantSubscriptions(): TextMap<Subscription> {
    if (this.subscriptions === NONE) this.subscriptions = new TextMap();
    return this.subscriptions;
  }

  wantIdSet(): IdSet {
    return (this.awaitingRel ??= new IdSet());
  }

  pauseForHook(): void {
    this.link?.pause(Pause.hook);
  }

  resumeAfterHook(link: Connection): void {
    try {
      link.resume(Pause.hook);
    } catch (error) {
      this.broke(asError(error), 'going on after a hook');
    }
  }
}

const CLOSED: Ending = { reason: 'closed', reasonCode: ReasonCode.unspecifiedError, will: 'publish', isAbrupt: true };

const QOS_SENT = [Metric.messagesQos0Sent, Metric.messagesQos1Sent, Metric.messagesQos2Sent];

const AUTH_CODES = new Set<number>([
  ReasonCode.badUserNameOrPassword,
  ReasonCode.notAuthorized,
  ReasonCode.badAuthenticationMethod,
  ReasonCode.banned
]);

/** What a CONNACK can say of a refusal [MQTT-3.2.2-8]. */
function connackCode(code: number): number {
  if (code === ReasonCode.serverShuttingDown) return ReasonCode.serverUnavailable;
  return code >= 0x80 && isAllowedCode('connack', code) ? code : ReasonCode.unspecifiedError;
}

/** What a DISCONNECT can say of it [MQTT-3.14.2-1]. */
function disconnectCode(code: number): number {
  if (isAllowedCode('disconnectFromServer', code)) return code;
  return AUTH_CODES.has(code) ? ReasonCode.notAuthorized : ReasonCode.unspecifiedError;
}

function reasonOf(reasonCode: number): DisconnectReason {
  switch (reasonCode) {
    case ReasonCode.packetTooLarge:
      return 'packet_too_large';
    case ReasonCode.notAuthorized:
    case ReasonCode.badUserNameOrPassword:
      return 'not_authorized';
    default:
      return 'protocol_error';
  }
}

/** A topic as the client knows it: without the mount point. */
export function unmounted(topic: string, mountpoint: string): string {
  return topic.startsWith(mountpoint) ? topic.slice(mountpoint.length) : topic;
}
