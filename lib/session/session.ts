// Each accepted connection begins with a provisional session, before its client id is known. If the client returns to
// a stored session, the connection, and what CONNECT has negotiated, move to that session (`Takeover`), and the
// provisional one ends. So code that waits remembers the connection and compares it with `session.connection` before
// it continues.
//
// An error of the client ends its connection with `fail`; an error of the broker, a hook or a listener ends it with
// `failInternally`, which also reports it.

import type { ByteStream } from '../base/byte-stream.ts';
import { Charted, type ChartState } from '../base/charted.ts';
import { asError, ProtocolError } from '../base/errors.ts';
import { Connection } from '../connection/connection.ts';
import { Pause } from '../connection/pause.ts';
import type { ConnectionOwner } from '../connection/ports.ts';
import { type DisconnectReason, disconnectReasonOf } from '../events/reasons.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ProtocolVersion } from '../packets/types.ts';
import type { Zone } from '../records/zone.ts';
import type { Route } from '../routing/route.ts';
import { Subscriptions } from '../routing/subscriptions.ts';
import { recordForbidden } from './forbidden-publish.ts';
import type { SessionState } from './life/chart.ts';
import { Lifecycle } from './life/lifecycle.ts';
import { SessionTimers } from './life/timers.ts';
import { Will } from './life/will.ts';
import { Outlet } from './messages/outlet.ts';
import type { SessionLog } from './messages/session-log.ts';
import type { SessionEntry } from './messages/session-record.ts';
import type { SessionPorts } from './ports.ts';
import { SessionClient } from './session-client.ts';
import { checkControls, checkLevels } from './topic-checks.ts';

/** Error codes of streams whose peer has disconnected. */
const PEER_GONE_CODES = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ETIMEDOUT']);

/**
 * The session of one client id.
 *
 * It consists of parts: the identity of the client (`client`), its subscriptions (`subscriptions`), the messages to it (`outlet`), the
 * packet ids in use in both directions (`outlet.inflight`), its beginning and end (`lifecycle`, `timers`), and its persisted state (`log`).
 * This class joins them, and answers to the connection.
 */
export class Session extends Charted<SessionState> implements ConnectionOwner {
  readonly ports: SessionPorts<Session>;
  readonly client: SessionClient;
  /** By stored topic filter: rewritten, mounted, with the share prefix. */
  readonly subscriptions = new Subscriptions();
  readonly outlet: Outlet;
  readonly lifecycle: Lifecycle;
  readonly timers: SessionTimers;
  connection: Connection<Session> | undefined = undefined;
  /** Wall-clock milliseconds. */
  createdAt = 0;
  /** Position among all sessions in order of creation; 0: not among them yet. */
  number = 0;
  /** Number of PUBLISH packets that were sent on earlier connections. */
  delivered = 0;
  #isCountedPersistent = false;

  /** @param stream undefined for a session from the store */
  constructor(
    ports: SessionPorts<Session>,
    client: SessionClient,
    stream: ByteStream | undefined,
    state: ChartState = ports.chart.initial
  ) {
    super(state);
    this.ports = ports;
    this.client = client;
    this.outlet = new Outlet(this);
    this.lifecycle = new Lifecycle(this);
    this.timers = new SessionTimers(this);
    if (stream === undefined) return;
    const { zone } = client.agreement;
    const maxPacketSize = Math.min(zone.maxConnectSize, zone.maxPacketSize);
    this.connection = new Connection<Session>(stream, ports, this, maxPacketSize);
  }

  /**
   * Create a session from a record in the store.
   * @param state `gone`: it has ended, and its messages are to be handed over
   * @param aliveWallMs time at which the previous process is known to have run last, which counts as the end of connections that it did not
   * close
   */
  static restored(
    ports: SessionPorts<Session>,
    state: 'disconnected' | 'gone',
    zone: Zone,
    record: SessionEntry,
    aliveWallMs: number
  ): Session {
    const { nowMs, wallMs } = ports.time;
    const wasConnected = record.disconnectedAt === 0;
    const disconnectedAt = wasConnected ? aliveWallMs : record.disconnectedAt;
    const client = SessionClient.restored(zone, record, disconnectedAt);
    const session = new Session(
      ports,
      client,
      undefined,
      ports.chart.stateAt(state === 'gone' ? state : 'disconnected.waiting')
    );
    if (state === 'gone') session.outlet.end();
    const will = record.will && new Will(record.will);
    session.createdAt = record.createdAt;
    session.lifecycle.restore(will, record.connectedAt);
    // the session expiry continues while the broker is stopped
    const goneMs = Math.max(0, wallMs - disconnectedAt);
    session.timers.restore(nowMs + record.sessionExpiry * 1000 - goneMs);
    // if the client was connected, the will delay starts now: its connection has ended with the process [MQTT-3.1.2-8]
    will?.delayFrom(wasConnected ? nowMs : nowMs - goneMs);
    return session;
  }

  /** The session in the store; undefined if it is only in memory. */
  get log(): SessionLog | undefined {
    return this.outlet.log;
  }

  get protocolVersion(): ProtocolVersion {
    return this.client.agreement.protocolVersion;
  }

  // -------------------------------------------------------------------------------------------------------------- connection

  /** Note that the session has its position among all sessions. @param createdAt wall-clock milliseconds */
  listed(number: number, createdAt: number): void {
    this.number = number;
    this.createdAt = createdAt;
  }

  /** Assign this connection to the session. Undefined: its connection has closed, or belongs to another session. */
  attach(connection: Connection<Session> | undefined): void {
    const previous = this.connection;
    if (previous !== undefined) {
      this.delivered += previous.writer.sentMessages;
      this.ports.lastTraffic.keep(this.number, previous);
    }
    this.connection = connection;
  }

  checkRoute(route: Route): void {
    const { zone } = this.client.agreement;
    if (route.hasControls) checkControls(zone, route.topic, 'topic name');
    checkLevels(zone, route.levels);
  }

  publishFailed(error: ProtocolError, buf: Buffer, start: number): void {
    recordForbidden(this, error, buf, start);
    this.fail(error);
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
    if (error instanceof ProtocolError) {
      const { reasonCode, message: why } = error;
      const reason = disconnectReasonOf(reasonCode);
      this.ports.rejections.add({ client: this.client, address: undefined, reason, reasonCode, why });
      return reason;
    }
    const { code = '' } = error as NodeJS.ErrnoException;
    if (this.client.transportInfo.listener === undefined && !PEER_GONE_CODES.has(code))
      this.ports.announcer.failed(error, 'stream', this.client);
    return 'stream_error';
  }

  connectionLost(reason: DisconnectReason, reasonCode: number = ReasonCode.unspecifiedError): void {
    this.lifecycle.lost({ reason, reasonCode, will: 'publish', isAbrupt: true });
  }

  blocked(): void {
    this.outlet.updateFastPath();
    this.timers.rearm();
  }

  unblocked(): void {
    this.outlet.updateFastPath();
    this.outlet.pump();
  }

  /** Record whether the session counts as persistent. @returns true if that has changed */
  countPersistent(isPersistent: boolean): boolean {
    if (this.#isCountedPersistent === isPersistent) return false;
    this.#isCountedPersistent = isPersistent;
    return true;
  }
}

/** Process the packets after one of this connection on which a hook has decided. */
export function resumeAfterHook(connection: Connection<Session>): void {
  try {
    connection.reader.resume(Pause.hook);
  } catch (error) {
    connection.session.failInternally(asError(error), 'continuing after a hook', connection);
  }
}
