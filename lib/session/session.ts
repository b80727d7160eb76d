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

/** The will of a session. */
export interface WillState {
  readonly message: MessageInput;
  readonly delayMs: number;
}

/** How a connection ends. */
export interface Ending {
  readonly reason: DisconnectReason;
  readonly reasonCode: number;
  /** `publish` the will after its delay, `drop` it [MQTT-3.14.4-3], or `keep` it for the next start of the broker. */
  readonly will: 'publish' | 'drop' | 'keep';
  /** Destroy the stream instead of ending it. */
  readonly isAbrupt: boolean;
}

/** An authentication exchange in progress. */
export interface AuthExchange {
  readonly method: string;
  /** Handle the data of an AUTH packet. */
  receive(data: Buffer | undefined): void;
  /** End the exchange without a result. */
  abort(reason: Error): void;
}

/** Error codes of streams whose peer has disconnected. */
const PEER_GONE_CODES = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ETIMEDOUT']);

/**
 * The session of one client id: its subscriptions, its messages in flight and in the backlog, and its will.
 *
 * A session exists until its chart is in the state `gone`; connections are attached and detached. This class implements the actions of
 * the chart, the ends of connections and the timer. `Outbound` implements the outgoing messages.
 */
export class Session extends Outbound implements ClientInfo, Publisher, SessionActions, Timer {
  /** The provisional session whose connection this session takes over at the next `admit`. */
  incoming: Session | undefined = undefined;
  /** An action that was requested while another connection was taking over; it runs after that. */
  whenHandedOver: (() => void) | undefined = undefined;
  actor: { send(event: SessionEvent): void } | undefined = undefined;

  // identity
  username: string | undefined = undefined;
  /** Seconds; 0 if there is no keep alive. */
  keepalive = 0;
  cleanStart = true;
  #isCountedPersistent = false;
  isBridge = false;
  isSuperuser = false;
  transportInfo: TransportInfo;
  userProperties: readonly UserProperty[] = NO_USER_PROPERTIES;
  // wall-clock milliseconds
  connectedAt: number | undefined = undefined;
  disconnectedAt: number | undefined = undefined;
  createdAt = 0;

  // from the CONNECT packet
  wantsProblemInformation = true;
  authMethod: string | undefined = undefined;
  auth: AuthExchange | undefined = undefined;
  /** Aborts the hooks that decide on the CONNECT when the connection closes. */
  abort: { abort(reason: Error): void } | undefined = undefined;
  will: WillState | undefined = undefined;
  /** The persisted will of a session that is not persisted itself. */
  willRecord: { changed(): void } | undefined = undefined;

  // session state of MQTT
  /** By stored topic filter: rewritten, mounted, with the share prefix. */
  readonly subscriptions = new Subscriptions();
  /** Incoming QoS 2 packet ids that wait for PUBREL. */
  awaitingRel: IdSet | undefined = undefined;
  /** Resolves when the publish hooks have decided on the last message that waits for them. */
  deciding: Promise<void> | undefined = undefined;
  /** Ids of `awaitingRel` that an earlier connection received. They do not count for the Receive Maximum of this connection. */
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
  /** End of the current `retryInterval`. */
  #retryDueMs = Infinity;
  /** Mark of the packets that were in flight when that interval began. */
  #retryMark = 0;
  /** The commit that these packets may wait for. */
  #retryTicket = 0;
  #identity: Publisher | undefined = undefined;
  /** When each id of `awaitingRel` was received; only if the zone has an `awaitRelTimeout`. */
  #awaitingSince: Map<number, number> | undefined = undefined;

  /** @param stream undefined for a session from the store; call `restore` then */
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

  /**
   * Restore a session from the store.
   * @param aliveWallMs when the previous process is known to have run last, which counts as the end of connections that it did not close
   */
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
    // the session expiry continues while the broker is stopped
    const goneMs = Math.max(0, wallMs - this.disconnectedAt);
    this.expiresMs = nowMs + this.sessionExpiry * 1000 - goneMs;
    if (this.will === undefined) return;
    // if the client was connected, the will delay begins now: its connection has ended with the process [MQTT-3.1.2-8]
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

  /** Write the record of the session, or of its will, with the next commit. */
  #noteChange(): void {
    this.log?.changed();
    this.willRecord?.changed();
  }

  /** The properties for `JSON.stringify` (and below for `console.log`), since events and hooks pass this object to the app. */
  toJSON(): ClientInfo {
    return clientFacts(this);
  }

  [inspect.custom](): ClientInfo {
    return clientFacts(this);
  }

  /** Record whether the session counts as persistent. @returns true if that has changed */
  countPersistent(isPersistent: boolean): boolean {
    if (this.#isCountedPersistent === isPersistent) return false;
    this.#isCountedPersistent = isPersistent;
    return true;
  }

  /** Abort the hooks that decide on the CONNECT. */
  abortHooks(): void {
    this.abort?.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
    this.abort = undefined;
  }

  send(event: SessionEvent['type']): void {
    this.actor?.send({ type: event });
  }

  // ----------------------------------------------------------------------------------------------------- actions of the chart

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
    connection.isBlocked = true; // messages that listeners publish are sent after the CONNACK [MQTT-3.2.0-1]
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

  /** Run the action that was requested while another connection was taking over. */
  handedOver(): void {
    const run = this.whenHandedOver;
    this.whenHandedOver = undefined;
    run?.();
  }

  goLive(): void {
    const connection = this.connection as Connection<Session>;
    connection.table = this.ports.handlers.live;
  }

  /** CONNACK with success has been sent: messages may follow. */
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
    if (this.state !== 'disconnected') return; // an error in `release` has ended the session
    const nowMs = ports.clock.monotonic();
    this.actor = undefined;
    this.expiresMs = nowMs + this.sessionExpiry * 1000;
    if (this.will !== undefined) this.willDueMs = nowMs + this.will.delayMs;
    if (this.ending?.will === 'keep') return;
    const isWillDue = this.willDueMs <= nowMs;
    ports.wheel.armAt(this, isWillDue ? this.expiresMs : Math.min(this.expiresMs, this.willDueMs));
    if (isWillDue) this.publishWill();
  }

  /** After the start of the broker: end the session or publish its will if they are due, and set the timer for the rest. */
  rearmOffline(): void {
    if (this.state !== 'disconnected') return;
    const { wheel } = this.ports;
    const { nowMs } = this.ports.time;
    if (this.ending?.will === 'keep') {
      this.ending = { ...this.ending, will: 'publish' };
      if (this.will !== undefined) this.willDueMs = nowMs + this.will.delayMs;
      this.log?.detached(); // writes the time of the disconnect
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
      // there was no CONNACK, or the connection belongs to another session now
      this.connection = undefined;
      if (connection !== undefined && connection.session === this) connection.end();
    }
    this.actor = undefined;
    const reason = this.ending?.reason === 'slow_consumer' ? 'slow_consumer' : 'session_terminated';
    const isHandedOver = reached && ports.handOvers.begin(this, reason);
    if (!isHandedOver) this.endLog();
    ports.sessions.forget(this);
    if (reached && this.ending?.will === 'keep') ports.wills.keep(this);
    else if (reached) this.publishWill(); // after the removal of its subscriptions, which must not receive the will
    if (isHandedOver) {
      this.sessionExpiry = 0; // marks the session as ended in its record
      this.backlog?.empty();
    } else if (reached && this.log === undefined) this.clearQueue(reason);
    else this.backlog?.clear(reason);
    this.backlog = this.inflight = this.feeds = this.awaitingRel = undefined;
  }

  /** Delete the session from the store. */
  endLog(): void {
    this.log?.end(Array.from(this.subscriptions.values(), ({ filter }) => filter));
  }

  // ----------------------------------------------------------------------------------------------------------------- endings

  /** Close the connection after a protocol error or an exceeded limit, with an answer if the protocol version has one. */
  fail(error: ProtocolError, reason: DisconnectReason = reasonOf(error.reasonCode)): void {
    const { connection } = this;
    if (connection === undefined || connection.isClosed) return;
    this.close(reason, error.reasonCode, { reasonString: error.message });
  }

  /**
   * Report an internal error, and close the connection with `internal_error`. If the session is offline, the session ends.
   * @param during the activity that failed, for the report
   * @param over the connection that the activity was for; if the session has another one now, that one stays open
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
   * Classify the error of a stream. Errors that a peer can cause are reported by `client.disconnected` alone: lost connections, protocol
   * errors below MQTT (`ProtocolError`), and all errors at a listener. Other errors, of streams of the app, are reported as errors.
   * @returns the reason for which the connection ends
   */
  streamFailed(error: Error): DisconnectReason {
    if (error instanceof ProtocolError) return reasonOf(error.reasonCode);
    const { code = '' } = error as NodeJS.ErrnoException;
    if (this.transportInfo.listener === undefined && !PEER_GONE_CODES.has(code))
      this.ports.announcer.failed(error, 'stream', this);
    return 'stream_error';
  }

  /** The stream has closed. */
  connectionLost(reason: DisconnectReason, reasonCode: number = ReasonCode.unspecifiedError): void {
    this.#endWith({ reason, reasonCode, will: 'publish', isAbrupt: true });
  }

  /** The client has sent DISCONNECT. */
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
   * Close the connection, with CONNACK or DISCONNECT if the protocol version has them.
   * @param options `end`: end the session as well; `will`: see `Ending`, default `publish`
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
   * Detach the connection, because another one with the same client id takes the session over.
   * @returns the will to publish after the CONNACK; undefined if there is none. A delayed will is deleted [MQTT-3.1.3-9].
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

  /** End an offline session. */
  end(event: 'expired' | 'discarded', reason: DisconnectReason): void {
    this.ending = { ...(this.ending ?? CLOSED), reason };
    if (this.state !== 'disconnected') return;
    this.actor = undefined; // an offline session has no live actor
    this.ports.sessions.revive(this);
    this.send(event);
  }

  #endWith(ending: Ending): void {
    if (this.state === 'gone') return;
    // without a CONNACK there is no will [MQTT-3.1.4-6]
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
    if (version === undefined) return; // the CONNECT was not readable, or a CONNACK has been sent [MQTT-3.2.0-2]
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

  /** Delete the will. */
  dropWill(): void {
    if (this.will === undefined) return;
    this.will = undefined;
    this.willDueMs = Infinity;
    this.#noteChange();
  }

  /** Publish the will now, if there is one. */
  publishWill(): void {
    const { will } = this;
    this.will = undefined;
    this.willDueMs = Infinity;
    if (will === undefined) return;
    this.#noteChange(); // the same commit deletes the will and persists the message
    this.ports.wills.publish(this, will);
  }

  // ------------------------------------------------------------------------------------------------------------------- times

  /** Set the timer of a connected session to the next time at which something is due. */
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

  /** Begin a `retryInterval`. In MQTT 5.0 packets are sent again only after a reconnect [MQTT-4.4.0-1]. */
  #beginRetry(nowMs: number): void {
    const { retryInterval } = this.zoneSettings;
    this.#retryDueMs = retryInterval > 0 && this.protocolVersion !== 5 ? nowMs + retryInterval : Infinity;
    this.#retryMark = this.inflight?.mark ?? 0;
    this.#retryTicket = Math.max(ticketOf(this), this.deferred?.lastTicket ?? 0);
  }

  /** Whether everything that was in flight when the interval began has been sent, and no longer waits for a commit. */
  get #mayRetry(): boolean {
    return this.#retryTicket <= (this.ports.ledger?.settled ?? 0);
  }

  #keepAliveMs(): number {
    return this.keepalive * 1000 * this.zoneSettings.keepaliveBackoff * 2; // [MQTT-3.1.2-22]
  }

  /** Handle everything that is due when the timer rings. */
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

  /** Take over the connection of a provisional session, and what its CONNECT has negotiated. */
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
    this.will = other.will; // a reconnect deletes a delayed will [MQTT-3.1.3-9]
  }

  /** Adopt the properties of a CONNECT packet. */
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

  /** Number of messages of this connection that the broker has not acknowledged, for the Receive Maximum [MQTT-3.3.4-7]. */
  get inboundUnacknowledged(): number {
    return (
      (this.awaitingRel?.size ?? 0) - (this.#carriedOver?.size ?? 0) + (this.connection?.pendingAcks?.pubacks ?? 0)
    );
  }

  /** The client has repeated a QoS 2 PUBLISH: its packet id counts for this connection now. */
  noteRepeated(id: number): void {
    this.#carriedOver?.delete(id);
  }

  /** Free an incoming QoS 2 packet id. @returns false if it was not in use */
  forgetIncoming(id: number): boolean {
    this.#carriedOver?.delete(id);
    return this.awaitingRel?.delete(id) ?? false;
  }

  /**
   * Check a topic name that the client publishes to.
   * @throws ProtocolError 0x81 for control characters that the zone refuses, 0x90 for too many levels
   */
  checkRoute(route: Route): void {
    if (route.hasControls) this.checkControls(route.topic, 'topic name');
    this.checkLevels(route.levels);
  }

  /**
   * Refuse control characters and non-characters if the zone does so (MQTT 5.0 section 1.5.4).
   * @param what name of the string for the error message
   * @throws ProtocolError 0x81
   */
  checkControls(text: string | undefined, what: string): void {
    if (text === undefined || this.zoneSettings.controlCharacters === 'allow') return;
    const control = controlIn(text);
    if (control === undefined) return;
    const why = `contains ${control}; control characters and non-characters are not allowed (option controlCharacters)`;
    throw new ProtocolError(ReasonCode.malformedPacket, `${what}: ${why}`);
  }

  /** Check the number of topic levels. @throws ProtocolError 0x90 if it exceeds `maxTopicLevels` */
  checkLevels(levels: number): void {
    const { maxTopicLevels } = this.zoneSettings;
    if (maxTopicLevels > 0 && levels > maxTopicLevels) {
      throw new ProtocolError(
        ReasonCode.topicNameInvalid,
        `the topic has ${levels} levels, more than the limit of ${maxTopicLevels} (option maxTopicLevels)`
      );
    }
  }

  /** Record when an incoming QoS 2 packet id was received, if the zone has an `awaitRelTimeout`. */
  noteAwaitingRel(id: number): void {
    if (this.zoneSettings.awaitRelTimeout === 0) return;
    (this.#awaitingSince ??= new Map()).delete(id);
    this.#awaitingSince.set(id, this.ports.time.nowMs);
    if (this.dueMs > this.ports.time.nowMs + this.zoneSettings.awaitRelTimeout) this.rearm();
  }

  /** The same for a packet id that was read from the store: its time begins when the client returns. */
  noteRestored(id: number): void {
    if (this.#awaitingSince?.has(id) !== true) this.noteAwaitingRel(id);
  }

  /** Free the packet ids whose `awaitRelTimeout` is over. @returns monotonic milliseconds at which the next one ends */
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
      this.failInternally(asError(error), 'continuing after a hook', connection);
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

/** Map a reason code to one that CONNACK has [MQTT-3.2.2-8]. */
function connackCode(code: number): number {
  if (code === ReasonCode.serverShuttingDown) return ReasonCode.serverUnavailable;
  return code >= 0x80 && isAllowedCode('connack', code) ? code : ReasonCode.unspecifiedError;
}

/** Map a reason code to one that DISCONNECT of a server has [MQTT-3.14.2-1]. */
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
