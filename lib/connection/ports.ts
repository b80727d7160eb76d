import type { Clock } from '../base/clock.ts';
import type { ProtocolError } from '../base/errors.ts';
import type { TimeReading } from '../base/time-reading.ts';
import type { TimingWheel } from '../base/timing-wheel.ts';
import type { DisconnectReason } from '../events/events.ts';
import type { Metrics } from '../events/metrics.ts';
import type { ProtocolVersion } from '../packets/types.ts';
import type { Route } from '../routing/subscription.ts';
import type { Connection } from './connection.ts';

/** Handles one packet of type `S`'s connection: it lies in `buf[start, end)`, its body begins at `body`. */
export type PacketHandler<S> = (
  session: S,
  flags: number,
  buf: Buffer,
  start: number,
  body: number,
  end: number
) => void;

/** Handlers by packet type. A packet that is illegal now has a handler that refuses it. */
export type HandlerTable<S> = readonly PacketHandler<S>[];

/** What a connection asks of the session that its packets are for. */
export interface ConnectionOwner {
  readonly protocolVersion: ProtocolVersion;
  /** Check the topic of a route before publishing to it. @throws ProtocolError */
  checkRoute(route: Route): void;
  /** A rule of MQTT was broken, or a bound exceeded: answer where the version allows an answer, and close. */
  fail(error: ProtocolError, reason?: DisconnectReason): void;
  /** An error of the broker itself while it worked for this session. */
  failInternally(error: unknown, during: string): void;
  /** The stream failed. @returns why the connection ends */
  streamFailed(error: Error): DisconnectReason;
  /** The stream has closed. */
  connectionLost(reason: DisconnectReason, reasonCode?: number): void;
  /** Set the session's timer to the next time at which something is due. */
  rearm(): void;
  /** Decide anew whether runs of QoS 0 frames may use the fast path. */
  updateFastPath(): void;
  /** Send what is queued, as far as the window and the stream allow. */
  pump(): void;
}

/** What a connection asks of the broker. */
export interface ConnectionPorts<S extends ConnectionOwner> {
  readonly clock: Clock;
  readonly time: TimeReading;
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  readonly limits: {
    /** Unsent bytes of a connection from which its messages are queued. */
    readonly outputHighWaterMark: number;
    /** Bytes of a connection kept while a hook decides. */
    readonly maxHeldBytes: number;
  };
  readonly turn: {
    /** Number of this turn. */
    readonly number: number;
    /** Take a share of what all connections together may use beyond their own. @returns its units; 0: none is left */
    drawShare(): number;
    /** Flush this connection when the turn ends. */
    flushLater(connection: Connection<S>): void;
    /** Call this connection's `serve` after the other connections that wait. */
    serveLater(connection: Connection<S>): void;
  };
  readonly taps: {
    /** Somebody watches packets on the diagnostics channels. */
    readonly isOpen: boolean;
    /** See whether somebody watches packets now. */
    look(): void;
    received(connection: Connection<S>, bytes: Buffer): void;
    sent(connection: Connection<S>, bytes: Buffer): void;
  };
  readonly routing: {
    /** The route of the topic in `buf[start, end)`. @throws ProtocolError for an invalid name */
    resolve(buf: Buffer, start: number, end: number): Route;
    /** Whether a route still holds. */
    isFresh(route: Route): boolean;
  };
  readonly publishing: {
    /** Nobody watches or changes single messages: runs of QoS 0 frames may be forwarded as they are. */
    readonly isFastPathOpen: boolean;
    /** Deliver a run of QoS 0 frames. */
    routeRun(
      connection: Connection<S>,
      route: Route,
      buf: Buffer,
      start: number,
      end: number,
      count: number,
      longest: number
    ): void;
  };
  readonly connections: {
    /** The connection no longer counts for `maxConnections`: its close is under way. Called once. */
    placeFreed(): void;
    /** The stream has closed. */
    streamClosed(connection: Connection<S>): void;
  };
}
