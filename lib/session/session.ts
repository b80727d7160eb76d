import type { Duplex } from 'node:stream';
import { inspect } from 'node:util';
import { ProtocolError, StateError } from '../base/errors.ts';
import { IdSet } from '../base/id-set.ts';
import type { Timer } from '../base/timing-wheel.ts';
import { Connection } from '../connection/connection.ts';
import { Pause } from '../connection/pause.ts';
import { asError, type DisconnectReason } from '../events/events.ts';
import { Metric } from '../events/metrics.ts';
import { isAllowedCode } from '../packets/allowed-codes.ts';
import { encodeConnack, encodeDisconnect } from '../packets/encode.ts';
import type { MessageInput, Publisher } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ConnectPacket, Properties, UserProperty } from '../packets/types.ts';
import { type ClientInfo, clientFacts, type TransportInfo } from '../records/client.ts';
import type { CountedStream } from '../records/listener.ts';
import type { Zone } from '../records/zone.ts';
import type { Route } from '../routing/subscription.ts';
import { Subscriptions } from '../routing/subscriptions.ts';
import { controlIn } from '../topics/topic.ts';
import type { SessionActions, SessionEvent } from './actions.ts';
import { TopicAliases } from './aliases.ts';
import { ticketOf } from './handlers/acknowledgements.ts';
import { LARGEST_PACKET, Outbound } from './outbound.ts';
import type { SessionPorts } from './ports.ts';
import { NO_USER_PROPERTIES, type SessionRecord } from './session-record.ts';

/** A will as it waits with its session. */
export interface WillState {
  readonly message: MessageInput;
  readonly delayMs: number;
}

/** How a connection ends. */
export interface Ending {
  readonly reason: DisconnectReason;
  readonly reasonCode: number;
  /** Publish the will, unless it is deleted; `drop` deletes it [MQTT-3.14.4-3]; `keep`: it is for the next start of the broker. */
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

/** Codes of streams whose peer has gone. */
const PEER_GONE_CODES = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ETIMEDOUT']);

/**
 * What MQTT promises about one client id: subscriptions, messages in flight and waiting, the will. It lives while its chart is not
 * `gone`; its connection comes and goes. Here are the deeds of the chart, endings and times; what goes out is in `Outbound`.
 */
export class Session extends Outbound implements ClientInfo, Publisher, SessionActions, Timer {
  /** The beginning of a session whose connection this one takes over at the next `admit`. */
  incoming: Session | undefined = undefined;
  /** What a listener asked for while another connection was taking over, to be done when that is here. */
  whenHandedOver: (() => void) | undefined = undefined;
  actor: { send(event: SessionEvent): void } | undefined = undefined;

  // who
  username: string | undefined = undefined;
  keepalive = 0;
  cleanStart = true;
  #isCountedPersistent = false;
  isBridge = false;
  isSuperuser = false;
  transportInfo: TransportInfo;
  userProperties: readonly UserProperty[] = NO_USER_PROPERTIES;
  connectedAt: number | undefined = undefined;
  disconnectedAt: number | undefined = undefined;
  createdAt = 0;

  // what the client said in CONNECT
  wantsProblemInformation = true;
  authMethod: string | undefined = undefined;
  auth: AuthExchange | undefined = undefined;
  /** Told when the connection goes while a hook decides on it. */
  abort: { abort(reason: Error): void } | undefined = undefined;
  will: WillState | undefined = undefined;
  /** Where the will is kept, if the session is not. */
  willRecord: { changed(): void } | undefined = undefined;

  // the state MQTT keeps
  /** By filter as stored: rewritten, mounted, with the share prefix. */
  readonly subscriptions = new Subscriptions();
  awaitingRel: IdSet | undefined = undefined;
  /** Resolves when the publish hooks have decided on the last message that waits for them. */
  deciding: Promise<void> | undefined = undefined;
  /** Those of them that an earlier connection received: they do not count against the Receive Maximum of this one. */
  #carriedOver: IdSet | undefined = undefined;

  // times, monotonic milliseconds
  dueMs = Infinity;
  slot: Timer['slot'] = undefined;
  previous: Timer | undefined = undefined;
  next: Timer | undefined = undefined;
  acceptedMs = 0;
  connectDeadlineMs = Infinity;
  willDueMs = Infinity;
  expiresMs = Infinity;
  ending: Ending | undefined = undefined;
  /** When the zone's retryInterval is over; the mark of what was in flight when it began, and the commit that keeps all that. */
  #retryDueMs = Infinity;
  #retryMark = 0;
  #retryTicket = 0;
  #identity: Publisher | undefined = undefined;
  #awaitingSince: Map<number, number> | undefined = undefined;

  /** @param stream undefined: it comes out of the store, and `restore` follows */
  constructor(ports: SessionPorts, zone: Zone, stream: Duplex | undefined, meta: TransportInfo) {
    super(ports, zone);
    this.transportInfo = meta;
    this.acceptedMs = (stream as CountedStream | undefined)?.acceptedAt ?? ports.time.nowMs;
    if (stream !== undefined)
      this.connection = new Connection<Session>(
        stream,
        meta,
        ports,
        this,
        ports.handlers.beforeConnect,
        Math.min(zone.maxConnectSize, zone.maxPacketSize)
      );
  }

  /** It was kept when the process ended. @param aliveWallMs until then the process may have lived, and it was connected, if it was */
  restore(record: SessionRecord, aliveWallMs: number): void {
    const { ports } = this;
    const { nowMs, wallMs } = ports.time;
    this.state = 'disconnected';
    this.clientId = record.clientId;
    this.username = record.username;
    this.mountpoint = record.mountpoint;
    this.protocolVersion = record.protocolVersion;
    this.isBridge = record.isBridge;
    this.cleanStart = record.cleanStart;
    this.isSuperuser = record.isSuperuser;
    this.keepalive = record.keepalive;
    this.sessionExpiry = record.sessionExpiry;
    this.userProperties = record.userProperties;
    this.createdAt = record.createdAt;
    this.disconnectedAt = record.disconnectedAt === 0 ? aliveWallMs : record.disconnectedAt;
    this.will = record.will;
    // time goes on while there is no process
    const goneMs = Math.max(0, wallMs - this.disconnectedAt);
    this.expiresMs = nowMs + this.sessionExpiry * 1000 - goneMs;
    if (this.will === undefined) return;
    // the delay of one that was connected begins now: its connection has gone with the process [MQTT-3.1.2-8]
    this.willDueMs = nowMs + this.will.delayMs - (record.disconnectedAt === 0 ? 0 : goneMs);
  }

  get client(): this {
    return this;
  }

  /** See `Publisher`. */
  get identity(): Publisher {
    const { clientId, username } = this;
    if (this.#identity?.clientId !== clientId || this.#identity.username !== username)
      this.#identity = { clientId, username };
    return this.#identity;
  }

  get zone(): string {
    return this.zoneSettings.name;
  }

  /** Its record is to be written. */
  #noteChange(): void {
    this.log?.changed();
    this.willRecord?.changed();
  }

  /** What `JSON.stringify` and, below, `console.log` show: events and hooks hand this object to the app. */
  toJSON(): ClientInfo {
    return clientFacts(this);
  }

  [inspect.custom](): ClientInfo {
    return clientFacts(this);
  }

  /** Count the session among the persistent ones, or no longer. @returns whether that changes anything */
  countPersistent(isPersistent: boolean): boolean {
    if (this.#isCountedPersistent === isPersistent) return false;
    this.#isCountedPersistent = isPersistent;
    return true;
  }

  /** The hooks that decide on its CONNECT need not answer any more. */
  abortHooks(): void {
    this.abort?.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
    this.abort = undefined;
  }

  send(event: SessionEvent['type']): void {
    this.actor?.send({ type: event });
  }

  // ------------------------------------------------------------------------------------------------------- deeds of the chart

  awaitConnect(): void {
    const { zoneSettings, connection, ports } = this;
    (connection as Connection<Session>).table = ports.handlers.beforeConnect;
    this.connectDeadlineMs = this.acceptedMs + zoneSettings.connectTimeout;
    ports.wheel.armAt(this, Math.min(this.connectDeadlineMs, this.acceptedMs + zoneSettings.idleTimeout));
  }

  authenticate(): void {
    (this.connection as Connection<Session>).table = this.ports.handlers.authenticating;
  }

  admit(): void {
    const { ports } = this;
    if (this.incoming !== undefined) this.#takeFrom(this.incoming);
    const connection = this.connection as Connection<Session>;
    connection.session = this;
    connection.isBlocked = true; // what listeners publish waits for the CONNACK [MQTT-3.2.0-1]
    this.state = 'connected';
    this.transportInfo = connection.transportInfo;
    this.connectedAt = ports.clock.now();
    this.disconnectedAt = undefined;
    this.ending = undefined;
    this.willDueMs = this.expiresMs = Infinity;
    this.#carriedOver = this.awaitingRel?.size ? new IdSet(this.awaitingRel) : undefined;
    this.resending = undefined;
    ports.sessions.changed(this);
  }

  /** The connection that takes over is here. */
  handedOver(): void {
    const run = this.whenHandedOver;
    this.whenHandedOver = undefined;
    run?.();
  }

  goLive(): void {
    const connection = this.connection as Connection<Session>;
    connection.table = this.ports.handlers.live;
  }

  /** CONNACK success is out. */
  connackSent(): void {
    const connection = this.connection as Connection<Session>;
    connection.admitted(this.zoneSettings.maxPacketSize);
    connection.isBlocked = false;
    this.updateFastPath();
    this.#beginRetry(this.ports.clock.monotonic());
    this.rearm();
  }

  reauthenticate(): void {
    (this.connection as Connection<Session>).table = this.ports.handlers.live;
  }

  release(): void {
    const { ports, connection } = this;
    const ending = this.ending ?? CLOSED;
    this.connection = undefined;
    this.outboundFastPath = 0;
    this.state = 'disconnected';
    this.connectedAt = undefined;
    this.disconnectedAt = ports.clock.now();
    this.aliases = undefined;
    this.auth?.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
    this.auth = undefined;
    ports.wheel.disarm(this);
    this.#carriedOver = undefined;
    this.keepFeeds();
    if (this.log !== undefined) this.persistBacklog(this.log);
    this.deferred = undefined;
    ports.sessions.changed(this);
    this.#endConnection(connection, ending.isAbrupt);
    ports.metrics.counts[Metric.clientDisconnected]++;
    if (ports.events.heard['client.disconnected'])
      ports.events.emit('client.disconnected', { client: this, reason: ending.reason, reasonCode: ending.reasonCode });
  }

  #endConnection(connection: Connection<Session> | undefined, isAbrupt: boolean): void {
    try {
      if (isAbrupt) connection?.destroy();
      else connection?.end();
    } catch (error) {
      connection?.destroy();
      throw error;
    }
  }

  awaitExpiry(): void {
    const { ports } = this;
    if (this.state !== 'disconnected') return; // the release before it failed, and ended the session
    const nowMs = ports.clock.monotonic();
    this.actor = undefined;
    this.expiresMs = nowMs + this.sessionExpiry * 1000;
    if (this.will !== undefined) this.willDueMs = nowMs + this.will.delayMs;
    if (this.ending?.will === 'keep') return;
    const isWillDue = this.willDueMs <= nowMs;
    ports.wheel.armAt(this, isWillDue ? this.expiresMs : Math.min(this.expiresMs, this.willDueMs));
    if (isWillDue) this.publishWill();
  }

  /** The broker has started again: what fell due meanwhile comes before the client can be back, and the wheel is told of the rest. */
  rearmOffline(): void {
    if (this.state !== 'disconnected') return;
    const { wheel } = this.ports;
    const { nowMs } = this.ports.time;
    if (this.ending?.will === 'keep') {
      this.ending = { ...this.ending, will: 'publish' };
      if (this.will !== undefined) this.willDueMs = nowMs + this.will.delayMs;
      this.log?.detached(); // when it went is written
    }
    const dueMs = Math.min(this.expiresMs, this.willDueMs);
    if (dueMs <= nowMs) this.ring(nowMs);
    else wheel.armAt(this, dueMs);
  }

  cancelExpiry(): void {
    this.ports.wheel.disarm(this);
    this.willDueMs = this.expiresMs = Infinity;
  }

  forget(): void {
    const { ports, connection } = this;
    const reached = this.state !== 'idle';
    this.state = 'gone';
    ports.wheel.disarm(this);
    if (!reached) {
      // never got as far as CONNACK, or its connection is now another session's
      this.connection = undefined;
      if (connection !== undefined && connection.session === this) connection.end();
    }
    this.actor = undefined;
    const reason = this.ending?.reason === 'slow_consumer' ? 'slow_consumer' : 'session_terminated';
    const isHandedOver = reached && ports.handOvers.begin(this, reason);
    if (!isHandedOver) this.endLog();
    ports.sessions.forget(this);
    if (reached && this.ending?.will === 'keep') ports.wills.keep(this);
    else if (reached) this.publishWill(); // when its own subscriptions are out: a share group must not pick them
    if (isHandedOver) {
      this.sessionExpiry = 0; // its record says by this that it is over
      this.backlog?.empty();
    } else if (reached && this.log === undefined) this.clearQueue(reason);
    else this.backlog?.clear(reason);
    this.backlog = this.inflight = this.feeds = this.awaitingRel = undefined;
  }

  /** Nothing of it is to be in the store any more. */
  endLog(): void {
    this.log?.end(Array.from(this.subscriptions.values(), ({ filter }) => filter));
  }

  // ----------------------------------------------------------------------------------------------------------------- endings

  /** A rule of MQTT was broken, or a bound passed: answer where the version allows an answer, and close. */
  fail(error: ProtocolError, reason: DisconnectReason = reasonOf(error.reasonCode)): void {
    const { connection } = this;
    if (connection === undefined || connection.isClosed) return;
    this.close(reason, error.reasonCode, { reasonString: error.message });
  }

  /**
   * Something of ours broke while it worked for this session: that session alone ends, and it is told of.
   * @param over the connection that it worked for, where the session may have another one since: that one goes on
   */
  failInternally(error: unknown, during: string, over = this.connection): void {
    this.ports.announcer.failed(error, during, this);
    const { connection } = this;
    if (over !== connection) return;
    if (connection === undefined || connection.isClosed) {
      if (this.state === 'disconnected') this.end('expired', 'internal_error');
      return;
    }
    try {
      this.close('internal_error', ReasonCode.implementationSpecificError);
    } catch (second) {
      this.ports.announcer.failed(second, 'closing', this);
      connection.destroy();
    }
  }

  /**
   * The stream failed. A peer that vanishes, or breaks a rule below MQTT (`ProtocolError`), is told of by client.disconnected; so is all
   * that goes wrong at a listener, where any peer can bring it about. What is left is a stream of the app's own.
   * @returns why the connection ends
   */
  streamFailed(error: Error): DisconnectReason {
    if (error instanceof ProtocolError) return reasonOf(error.reasonCode);
    const { code = '' } = error as NodeJS.ErrnoException;
    if (this.transportInfo.listener === undefined && !PEER_GONE_CODES.has(code))
      this.ports.announcer.failed(error, 'stream', this);
    return 'stream_error';
  }

  /** The stream is gone. */
  connectionLost(reason: DisconnectReason, reasonCode: number = ReasonCode.unspecifiedError): void {
    this.#endWith({ reason, reasonCode, will: 'publish', isAbrupt: true });
  }

  /** DISCONNECT came. */
  disconnectReceived(reasonCode: number): void {
    const isNormal = reasonCode === ReasonCode.success;
    this.#endWith({
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
    const { connection } = this;
    const { reasonString, serverReference, will = 'publish', isAbrupt = false } = options;
    if (connection?.isConnackSent) reasonCode = disconnectCode(reasonCode);
    if (options.end) this.sessionExpiry = 0;
    if (connection !== undefined && !connection.isClosed) {
      if (connection.isConnackSent) {
        if (this.protocolVersion === 5)
          connection.send(
            this.#disconnectPacket(reasonCode, reasonString, serverReference),
            Metric.packetsDisconnectSent
          );
      } else {
        this.#refuse(connection, reasonCode, reasonString, serverReference);
      }
    }
    this.#endWith({ reason, reasonCode, will, isAbrupt });
  }

  /**
   * The connection gives way to another one of the same client id.
   * @returns the will to be published once CONNACK is out; one that was to wait is deleted by the reconnect [MQTT-3.1.3-9]
   */
  takeOver(): WillState | undefined {
    const { connection, will } = this;
    if (connection?.isConnackSent && !connection.isClosed && this.protocolVersion === 5) {
      connection.send(
        this.#disconnectPacket(ReasonCode.sessionTakenOver, undefined, undefined),
        Metric.packetsDisconnectSent
      ); // [MQTT-3.1.4-3]
    }
    this.will = undefined;
    this.ending = { reason: 'takeovered', reasonCode: ReasonCode.sessionTakenOver, will: 'drop', isAbrupt: false };
    this.send('takenOver');
    return will?.delayMs === 0 && connection?.isConnackSent ? will : undefined;
  }

  /** End a session that is offline. */
  end(event: 'expired' | 'discarded', reason: DisconnectReason): void {
    this.ending = { ...(this.ending ?? CLOSED), reason };
    if (this.state !== 'disconnected') return;
    this.actor = undefined; // in this state none is kept
    this.ports.sessions.revive(this);
    this.send(event);
  }

  #endWith(ending: Ending): void {
    if (this.state === 'gone') return;
    // a client that has had no CONNACK leaves no will [MQTT-3.1.4-6]
    if (this.connection?.isConnackSent === false) ending = { ...ending, will: 'drop' };
    this.ending = ending;
    if (this.state === 'idle') {
      this.send('closed');
      return;
    }
    if (this.state !== 'connected') return;
    if (ending.will === 'drop') this.dropWill();
    this.send(this.isPersistent ? 'detached' : 'closed');
  }

  #refuse(
    connection: Connection<Session>,
    reasonCode: number,
    reasonString: string | undefined,
    serverReference: string | undefined
  ): void {
    const version = connection.answerVersion;
    const { ports } = this;
    if (version === undefined) return; // nothing is sent before a CONNECT that can be read, and nothing twice [MQTT-3.2.0-2]
    connection.answerVersion = undefined;
    const code = connackCode(reasonCode);
    ports.metrics.counts[Metric.packetsConnackError]++;
    if (AUTH_CODES.has(reasonCode)) ports.metrics.counts[Metric.packetsConnackAuthError]++;
    ports.metrics.counts[Metric.clientConnack]++;
    const properties: Properties = {};
    if (reasonString !== undefined) properties.reasonString = reasonString;
    if (serverReference !== undefined) properties.serverReference = serverReference;
    let packet = encodeConnack({ cmd: 'connack', sessionPresent: false, reasonCode: code, properties }, version);
    // [MQTT-3.2.2-19]
    if (packet.length > this.maxFrame)
      packet = encodeConnack({ cmd: 'connack', sessionPresent: false, reasonCode: code }, version);
    if (packet.length <= this.maxFrame) connection.send(packet, Metric.packetsConnackSent);
    if (ports.events.heard['client.connack']) ports.events.emit('client.connack', { client: this, reasonCode: code });
  }

  #disconnectPacket(reasonCode: number, reasonString: string | undefined, serverReference: string | undefined): Buffer {
    const properties: Properties = {};
    if (reasonString !== undefined) properties.reasonString = reasonString;
    if (serverReference !== undefined) properties.serverReference = serverReference;
    const packet = encodeDisconnect({ cmd: 'disconnect', reasonCode, properties });
    return packet.length <= this.maxFrame ? packet : encodeDisconnect({ cmd: 'disconnect', reasonCode }); // [MQTT-3.14.2-3]
  }

  /** It is not to be published after all. */
  dropWill(): void {
    if (this.will === undefined) return;
    this.will = undefined;
    this.willDueMs = Infinity;
    this.#noteChange();
  }

  publishWill(): void {
    const { will } = this;
    this.will = undefined;
    this.willDueMs = Infinity;
    if (will === undefined) return;
    this.#noteChange(); // the same commit keeps what becomes of it
    this.ports.wills.publish(this, will);
  }

  // ------------------------------------------------------------------------------------------------------------------- times

  /** Set the alarm to the next thing that can be due. */
  rearm(): void {
    const { connection, ports, zoneSettings } = this;
    if (connection === undefined || this.state !== 'connected') return;
    let dueMs = Infinity;
    if (this.keepalive > 0) dueMs = connection.lastReceivedMs + this.#keepAliveMs();
    if (connection.isBlocked && zoneSettings.slowConsumerTimeout > 0)
      dueMs = Math.min(dueMs, connection.lastProgressMs + zoneSettings.slowConsumerTimeout);
    dueMs = Math.min(dueMs, this.#retryDueMs);
    if (this.#awaitingSince !== undefined) dueMs = Math.min(dueMs, this.#forgetAwaitingRel(ports.clock.monotonic()));
    if (dueMs !== this.dueMs) ports.wheel.armAt(this, dueMs);
  }

  /** MQTT 5.0 sends again on reconnect alone [MQTT-4.4.0-1]. */
  #beginRetry(nowMs: number): void {
    const { retryInterval } = this.zoneSettings;
    this.#retryDueMs = retryInterval > 0 && this.protocolVersion !== 5 ? nowMs + retryInterval : Infinity;
    this.#retryMark = this.inflight?.mark ?? 0;
    this.#retryTicket = Math.max(ticketOf(this), this.deferred?.lastTicket ?? 0);
  }

  /** What was in flight when the interval began has gone out: nothing of it waits for a commit any more. */
  get #mayRetry(): boolean {
    return this.#retryTicket <= (this.ports.ledger?.settled ?? 0);
  }

  #keepAliveMs(): number {
    return this.keepalive * 1000 * this.zoneSettings.keepaliveBackoff * 2; // [MQTT-3.1.2-22]
  }

  ring(nowMs: number): void {
    const { connection, zoneSettings } = this;
    this.ports.time.nowMs = nowMs;
    if (this.state === 'idle') {
      if (nowMs >= this.connectDeadlineMs) this.close('connect_timeout', ReasonCode.keepAliveTimeout);
      else if (connection !== undefined && connection.receivedBytes === 0)
        this.close('idle_timeout', ReasonCode.keepAliveTimeout);
      else this.ports.wheel.armAt(this, this.connectDeadlineMs);
    } else if (this.state === 'disconnected') {
      if (nowMs >= this.expiresMs) this.end('expired', 'expired');
      else {
        if (nowMs >= this.willDueMs) this.publishWill();
        this.ports.wheel.armAt(this, Math.min(this.expiresMs, this.willDueMs));
      }
    } else if (connection !== undefined) {
      if (this.keepalive > 0 && connection.pauses === 0 && nowMs >= connection.lastReceivedMs + this.#keepAliveMs()) {
        this.close('keepalive_timeout', ReasonCode.keepAliveTimeout);
        return;
      }
      if (connection.pauses !== 0) connection.lastReceivedMs = nowMs;
      if (connection.isBlocked && zoneSettings.slowConsumerTimeout > 0) {
        connection.checkProgress(nowMs);
        if (nowMs >= connection.lastProgressMs + zoneSettings.slowConsumerTimeout) {
          this.ports.sessions.slowConsumer(this);
          this.close('slow_consumer', ReasonCode.quotaExceeded, { isAbrupt: true });
          return;
        }
      }
      if (nowMs >= this.#retryDueMs) {
        if (!connection.isBlocked && this.#mayRetry) this.resend(this.#retryMark);
        this.#beginRetry(nowMs);
      }
      this.rearm();
    }
  }

  /** Take over the connection, and what was agreed on it. */
  #takeFrom(other: Session): void {
    if (other.zoneSettings !== this.zoneSettings) this.backlog = this.backlog?.withLimits(other.zoneSettings);
    this.connection = other.connection;
    other.connection = undefined;
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
    this.userProperties = properties.userProperties ?? NO_USER_PROPERTIES;
    this.maxFrame = properties.maximumPacketSize ?? LARGEST_PACKET;
    this.wantsProblemInformation = properties.requestProblemInformation !== 0;
    this.authMethod = properties.authenticationMethod;
    const receiveMaximum = properties.receiveMaximum ?? 65_535;
    this.window = zoneSettings.maxInflight === 0 ? receiveMaximum : Math.min(receiveMaximum, zoneSettings.maxInflight);
    const aliases = Math.min(properties.topicAliasMaximum ?? 0, zoneSettings.maxOutboundTopicAlias);
    this.aliases = aliases > 0 ? new TopicAliases(aliases, zoneSettings.outboundAliasAfter) : undefined;
  }

  /** What the client has unacknowledged on this connection: QoS 1 is acknowledged before more is read [MQTT-3.3.4-7]. */
  get inboundUnacknowledged(): number {
    return (
      (this.awaitingRel?.size ?? 0) - (this.#carriedOver?.size ?? 0) + (this.connection?.pendingAcks?.pubacks ?? 0)
    );
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

  /**
   * Check the topic of a route that the client publishes to.
   * @throws ProtocolError 0x81 for control characters that the zone refuses, 0x90 for too many levels
   */
  checkRoute(route: Route): void {
    if (route.hasControls) this.checkControls(route.topic, 'topic name');
    this.checkLevels(route.levels);
  }

  /**
   * Refuse control characters and non-characters where the zone does (MQTT 5.0 section 1.5.4).
   * @param what names the string in the error message
   * @throws ProtocolError 0x81
   */
  checkControls(text: string | undefined, what: string): void {
    if (text === undefined || this.zoneSettings.controlCharacters === 'allow') return;
    const control = controlIn(text);
    if (control === undefined) return;
    const why = `has ${control}; control characters and non-characters are refused here (option controlCharacters)`;
    throw new ProtocolError(ReasonCode.malformedPacket, `${what}: ${why}`);
  }

  /** @throws ProtocolError 0x90 for a topic with too many levels */
  checkLevels(levels: number): void {
    const { maxTopicLevels } = this.zoneSettings;
    if (maxTopicLevels > 0 && levels > maxTopicLevels) {
      throw new ProtocolError(
        ReasonCode.topicNameInvalid,
        `a topic of ${levels} levels, ${maxTopicLevels} are allowed (option maxTopicLevels)`
      );
    }
  }

  /** When an incoming QoS 2 id came, where the zone forgets those that get no PUBREL. */
  noteAwaitingRel(id: number): void {
    if (this.zoneSettings.awaitRelTimeout === 0) return;
    (this.#awaitingSince ??= new Map()).delete(id);
    this.#awaitingSince.set(id, this.ports.time.nowMs);
    if (this.dueMs > this.ports.time.nowMs + this.zoneSettings.awaitRelTimeout) this.rearm();
  }

  /** One that came before the broker was started: its time begins when its client is back. */
  noteRestored(id: number): void {
    if (this.#awaitingSince?.has(id) !== true) this.noteAwaitingRel(id);
  }

  /** @returns monotonic milliseconds at which the next one is to be forgotten */
  #forgetAwaitingRel(nowMs: number): number {
    const { awaitRelTimeout } = this.zoneSettings;
    for (const [id, sinceMs] of this.#awaitingSince ?? []) {
      if (sinceMs + awaitRelTimeout > nowMs) return sinceMs + awaitRelTimeout;
      this.#awaitingSince?.delete(id);
      if (!this.forgetIncoming(id)) continue;
      this.ports.metrics.counts[Metric.messagesQos2Expired]++;
      this.log?.flowTouched();
    }
    return Infinity;
  }

  ensureAwaitingRel(): IdSet {
    return (this.awaitingRel ??= new IdSet());
  }

  pauseForHook(): void {
    this.connection?.pause(Pause.hook);
  }

  resumeAfterHook(connection: Connection<Session>): void {
    try {
      connection.resume(Pause.hook);
    } catch (error) {
      this.failInternally(asError(error), 'going on after a hook', connection);
    }
  }
}

const CLOSED: Ending = { reason: 'closed', reasonCode: ReasonCode.unspecifiedError, will: 'publish', isAbrupt: true };

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
    case ReasonCode.keepAliveTimeout:
      return 'keepalive_timeout';
    default:
      return 'protocol_error';
  }
}
