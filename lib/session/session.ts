import type { Duplex } from 'node:stream';
import { ProtocolError } from '../base/errors.ts';
import { Connection } from '../connection/connection.ts';
import { Pause } from '../connection/pause.ts';
import type { ConnectionOwner } from '../connection/ports.ts';
import { asError } from '../events/events.ts';
import { type DisconnectReason, disconnectReasonOf } from '../events/reasons.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ProtocolVersion } from '../packets/types.ts';
import type { TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { Route } from '../routing/subscription.ts';
import { Subscriptions } from '../routing/subscriptions.ts';
import { Kind } from '../store/keys.ts';
import type { Draft } from '../store/record.ts';
import { Delivery } from './delivery.ts';
import { InboundFlows } from './inbound-flows.ts';
import { Lifecycle } from './lifecycle.ts';
import type { SessionLog } from './log.ts';
import type { SessionPorts } from './ports.ts';
import { SessionClient } from './session-client.ts';
import { type SessionRecord, writeSessionRecord } from './session-record.ts';
import { SessionTimers } from './timers.ts';
import { checkControls, checkLevels } from './topic-checks.ts';
import { Will, type WillState } from './will.ts';

/** Error codes of streams whose peer has disconnected. */
const PEER_GONE_CODES = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ETIMEDOUT']);

/**
 * The session of one client id.
 *
 * It consists of parts: who the client is (`client`), what it has subscribed (`subscriptions`), the messages to it (`delivery`) and from it
 * (`inbound`), when it begins and ends (`lifecycle`, `timers`), and what is persisted of it (`log`). This class joins them, and answers to
 * the connection.
 */
export class Session implements ConnectionOwner {
  readonly ports: SessionPorts<Session>;
  readonly client: SessionClient;
  /** By stored topic filter: rewritten, mounted, with the share prefix. */
  readonly subscriptions = new Subscriptions();
  readonly delivery: Delivery;
  readonly lifecycle: Lifecycle;
  readonly timers: SessionTimers;
  /** Undefined until the first incoming message that needs it. */
  inbound: InboundFlows | undefined = undefined;
  connection: Connection<Session> | undefined = undefined;
  /** Wall-clock milliseconds. */
  createdAt = 0;
  /** Place among all sessions in order of creation; 0: not among them yet. */
  number = 0;
  /** Number of PUBLISH packets that were sent on earlier connections. */
  delivered = 0;
  #isCountedPersistent = false;

  /** @param stream undefined for a session from the store; call `restore` then */
  constructor(ports: SessionPorts<Session>, zone: Zone, stream: Duplex | undefined, transportInfo: TransportInfo) {
    this.ports = ports;
    this.client = new SessionClient(zone, transportInfo);
    this.delivery = new Delivery(ports, this);
    this.lifecycle = new Lifecycle(this);
    this.timers = new SessionTimers(this);
    if (stream === undefined) return;
    const maxPacketSize = Math.min(zone.maxConnectSize, zone.maxPacketSize);
    this.connection = new Connection<Session>(stream, ports, this, maxPacketSize);
  }

  /**
   * Restore a session from the store.
   * @param aliveWallMs when the previous process is known to have run last, which counts as the end of connections that it did not close
   */
  restore(record: SessionRecord, aliveWallMs: number): void {
    const { nowMs, wallMs } = this.ports.time;
    const wasConnected = record.disconnectedAt === 0;
    const disconnectedAt = wasConnected ? aliveWallMs : record.disconnectedAt;
    const will = record.will && new Will(record.will);
    this.createdAt = record.createdAt;
    this.client.restore(record, disconnectedAt);
    this.lifecycle.restore(will);
    // the session expiry continues while the broker is stopped
    const goneMs = Math.max(0, wallMs - disconnectedAt);
    this.timers.restore(nowMs + record.sessionExpiry * 1000 - goneMs);
    // if the client was connected, the will delay begins now: its connection has ended with the process [MQTT-3.1.2-8]
    will?.delayFrom(wasConnected ? nowMs : nowMs - goneMs);
  }

  /** See `Lifecycle`. */
  get state(): 'idle' | 'connected' | 'disconnected' | 'gone' {
    return this.lifecycle.state;
  }

  /** The session in the store; undefined if it is in memory alone. */
  get log(): SessionLog | undefined {
    return this.delivery.flows.log;
  }

  get protocolVersion(): ProtocolVersion {
    return this.client.agreement.protocolVersion;
  }

  get zoneSettings(): Zone {
    return this.client.zoneSettings;
  }

  /** The incoming messages that are not complete; created at the first use. */
  ensureInbound(): InboundFlows {
    return (this.inbound ??= new InboundFlows());
  }

  /** An incoming QoS 2 packet id waits for PUBREL. */
  awaitRel(id: number): void {
    const { awaitRelTimeout } = this.client.zoneSettings;
    const { nowMs } = this.ports.time;
    this.ensureInbound().add(id, awaitRelTimeout > 0 ? nowMs : undefined);
    if (awaitRelTimeout > 0) this.timers.dueAt(nowMs + awaitRelTimeout);
  }

  // -------------------------------------------------------------------------------------------------------------- connection

  /** Take over the connection of a provisional session, and what its CONNECT has agreed. */
  takeConnection(other: Session): void {
    this.connection = other.connection;
    other.detach();
    this.client.returned(other.client);
  }

  /** The session has its place among all sessions. @param createdAt wall-clock milliseconds */
  listed(number: number, createdAt: number): void {
    this.number = number;
    this.createdAt = createdAt;
  }

  /** The connection has closed, or belongs to another session now. */
  detach(): void {
    this.delivered += this.connection?.writer.sentMessages ?? 0;
    this.connection = undefined;
  }

  checkRoute(route: Route): void {
    const { zoneSettings } = this.client;
    if (route.hasControls) checkControls(zoneSettings, route.topic, 'topic name');
    checkLevels(zoneSettings, route.levels);
  }

  /** Close the connection after a protocol error or an exceeded limit, with an answer if the protocol version has one. */
  fail(error: ProtocolError, reason: DisconnectReason = disconnectReasonOf(error.reasonCode)): void {
    const { connection } = this;
    if (connection === undefined || connection.isClosed) return;
    this.lifecycle.close(reason, { reasonCode: error.reasonCode, reasonString: error.message });
  }

  /**
   * Report an internal error, and close the connection with `internal_error`. If the session is offline, the session ends.
   * @param during the activity that failed, for the report
   * @param over the connection that the activity was for; if the session has another one now, that one stays open
   */
  failInternally(error: unknown, during: string, over = this.connection): void {
    const { announcer } = this.ports;
    announcer.failed(error, during, this.client);
    const { connection } = this;
    if (over !== connection) return;
    if (connection === undefined || connection.isClosed) {
      if (this.state === 'disconnected') this.lifecycle.end('expired', 'internal_error');
      return;
    }
    try {
      this.lifecycle.close('internal_error');
    } catch (second) {
      announcer.failed(second, 'closing', this.client);
      connection.destroy();
    }
  }

  /**
   * Classify the error of a stream. Errors that a peer can cause are reported by `client.disconnected` alone: lost connections, protocol
   * errors below MQTT (`ProtocolError`), and all errors at a listener. Other errors, of streams of the app, are reported as errors.
   * @returns the reason for which the connection ends
   */
  streamFailed(error: Error): DisconnectReason {
    if (error instanceof ProtocolError) return disconnectReasonOf(error.reasonCode);
    const { code = '' } = error as NodeJS.ErrnoException;
    if (this.client.transportInfo.listener === undefined && !PEER_GONE_CODES.has(code))
      this.ports.announcer.failed(error, 'stream', this.client);
    return 'stream_error';
  }

  connectionLost(reason: DisconnectReason, reasonCode: number = ReasonCode.unspecifiedError): void {
    this.lifecycle.lost({ reason, reasonCode, will: 'publish', isAbrupt: true });
  }

  blocked(): void {
    this.delivery.updateFastPath();
    this.timers.rearm();
  }

  unblocked(): void {
    this.delivery.updateFastPath();
    this.delivery.pump();
  }

  /** A hook has decided on a packet of this connection, which now belongs to this session or to another one. */
  resumeAfterHook(connection: Connection<Session>): void {
    try {
      connection.reader.resume(Pause.hook);
    } catch (error) {
      this.failInternally(asError(error), 'continuing after a hook', connection);
    }
  }

  // --------------------------------------------------------------------------------------------------------------- the store

  /** Persist the session from now on. */
  persistIn(log: SessionLog): void {
    this.delivery.flows.persistIn(log);
  }

  /** What is persisted of the session, beside its subscriptions and messages. @param number number of the record */
  #record(number: number, will: WillState | undefined): SessionRecord {
    const { client, lifecycle, ports, createdAt } = this;
    const { transportInfo } = client;
    // a will that outlives the stop of the broker is restored as after a crash, when the client was still connected
    const disconnectedAt = lifecycle.ending?.will === 'keep' ? undefined : client.disconnectedAt;
    return {
      number,
      node: ports.node,
      clientId: client.clientId,
      username: client.username,
      mountpoint: client.mountpoint,
      protocolVersion: client.protocolVersion,
      isBridge: client.isBridge,
      cleanStart: client.cleanStart,
      isSuperuser: client.isSuperuser,
      keepalive: client.keepalive,
      sessionExpiry: client.sessionExpiry,
      createdAt,
      disconnectedAt: disconnectedAt ?? 0,
      zone: client.zone,
      transport: transportInfo.transport,
      listener: transportInfo.listener ?? '',
      remoteAddress: transportInfo.remoteAddress ?? '',
      userProperties: client.userProperties,
      will
    };
  }

  /** Write what is persisted of the session. @param number number of the session in keys */
  writeRecord(draft: Draft, number: number): void {
    this.#write(draft, Kind.session, number, this.lifecycle.will);
  }

  /** Write only a will of the session. */
  writeWill(draft: Draft, number: number, will: WillState): void {
    this.#write(draft, Kind.will, number, will);
  }

  #write(draft: Draft, kind: number, number: number, will: WillState | undefined): void {
    writeSessionRecord(draft, kind, this.#record(number, will), this.client.identity, this.ports.time);
  }

  /** Delete the session from the store. */
  endLog(): void {
    this.log?.end(Array.from(this.subscriptions.values(), ({ filter }) => filter));
  }

  /** Record whether the session counts as persistent. @returns true if that has changed */
  countPersistent(isPersistent: boolean): boolean {
    if (this.#isCountedPersistent === isPersistent) return false;
    this.#isCountedPersistent = isPersistent;
    return true;
  }
}
