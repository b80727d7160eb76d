import type { ByteStream } from '../base/byte-stream.ts';
import type { Clock } from '../base/clock.ts';
import type { ProtocolError } from '../base/errors.ts';
import type { TimeReading } from '../base/time-reading.ts';
import type { TimingWheel } from '../base/timing-wheel.ts';
import type { Metrics } from '../events/metrics.ts';
import type { DisconnectReason } from '../events/reasons.ts';
import type { ProtocolVersion } from '../packets/types.ts';
import type { Route } from '../routing/route.ts';
import type { PausedConnection } from './pause.ts';

/** Handles one packet of the session `S`. The packet is `buf[start, end)`; its body begins at `body`. */
export type PacketHandler<S> = (
  session: S,
  flags: number,
  buf: Buffer,
  start: number,
  body: number,
  end: number
) => void;

/** Handlers by packet type. The handler of a packet that is not allowed in the current state refuses it. */
export type HandlerTable<S> = readonly PacketHandler<S>[];

/** The part of a session that its connection uses. */
export interface ConnectionOwner {
  readonly protocolVersion: ProtocolVersion;
  /** Check the topic of a route before publishing to it. @throws ProtocolError */
  checkRoute(route: Route): void;
  /** Close the connection after a protocol error or an exceeded limit, with an answer if the protocol version has one. */
  fail(error: ProtocolError, reason?: DisconnectReason): void;
  /**
   * As `fail`, after an error of a PUBLISH of a connected client. The packet begins at `buf[start]`; it may be incomplete.
   */
  publishFailed(error: ProtocolError, buf: Buffer, start: number): void;
  /** Close the connection after an error of the broker itself. @param during the activity that failed, for the report */
  failInternally(error: unknown, during: string): void;
  /** Called when the stream failed. @returns the reason for which the connection ends */
  streamFailed(error: Error): DisconnectReason;
  /** Called when the stream has closed. */
  connectionLost(reason: DisconnectReason, reasonCode?: number): void;
  /** Called when the stream has too many unsent bytes, so that messages must wait. */
  blocked(): void;
  /** Called when the stream has sent them: send the messages that wait, as far as the Receive Maximum and the stream allow. */
  unblocked(): void;
}

/** The interface of a connection for its parts and, through `ConnectionPorts`, for the broker. */
export interface ConnectionCore<S extends ConnectionOwner> extends PausedConnection {
  readonly stream: ByteStream;
  readonly ports: ConnectionPorts<S>;
  /** The session that handles the packets. */
  readonly session: S;
}

/** The parts of the broker that a connection uses. */
export interface ConnectionPorts<S extends ConnectionOwner> {
  readonly clock: Clock;
  readonly time: TimeReading;
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  readonly limits: {
    /** Messages are queued when a connection has more unsent bytes than this. */
    readonly outputHighWaterMark: number;
    /** Maximum number of bytes of a connection that are stored while a hook decides. */
    readonly maxHeldBytes: number;
  };
  readonly handlers: {
    /** The handlers that apply until a CONNECT has been received. */
    readonly beforeConnect: HandlerTable<S>;
  };
  readonly turn: {
    /** Number of this turn. */
    readonly number: number;
    /** Take some of the units that all connections share in this turn. @returns the units; 0 if none are left */
    drawShare(): number;
    /** Call `flush` of this connection's writer when the turn ends. */
    flushLater(connection: ConnectionCore<S>): void;
    /** Call `serve` of this connection's reader after the other connections that wait. */
    serveLater(connection: ConnectionCore<S>): void;
  };
  readonly taps: {
    /** True if the diagnostics channels for packets have subscribers. */
    readonly isOpen: boolean;
    /** Check whether the diagnostics channels have subscribers now. */
    look(): void;
    received(connection: ConnectionCore<S>, bytes: Buffer): void;
    sent(connection: ConnectionCore<S>, bytes: Buffer): void;
  };
  readonly routing: {
    /** The route of the topic in `buf[start, end)`. @throws ProtocolError for an invalid name */
    resolve(buf: Buffer, start: number, end: number): Route;
    /** Tell whether a route is still valid. */
    isFresh(route: Route): boolean;
  };
  readonly publishing: {
    readonly hooks: {
      /** True if no hook or listener needs single messages: runs of QoS 0 frames may be forwarded unchanged. */
      readonly isFastPathOpen: boolean;
      /** True if hooks or a zone may refuse messages: only topics with a verdict use the fast path. */
      readonly hasHooks: boolean;
      /** Changes when the verdicts about all clients must be decided again. */
      readonly verdictEpoch: number;
    };
    /** Deliver a run of QoS 0 frames to one topic. @param count number of frames @param longest bytes of the longest frame */
    routeRun(
      connection: ConnectionCore<S>,
      route: Route,
      buf: Buffer,
      start: number,
      end: number,
      count: number,
      longest: number
    ): void;
  };
  readonly connections: {
    /** Called once, when the connection is closing and no longer counts for `maxConnections` and `maxConnectionsPerAddress`. */
    placeFreed(connection: ConnectionCore<S>): void;
    /** Called when the stream has closed. */
    streamClosed(connection: ConnectionCore<S>): void;
  };
}
