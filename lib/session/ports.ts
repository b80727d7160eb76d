import type { Clock } from '../base/clock.ts';
import type { WorkCount } from '../base/pending-work.ts';
import type { TimingWheel } from '../base/timing-wheel.ts';
import type { Connection } from '../connection/connection.ts';
import type { DropReason, Events } from '../events/events.ts';
import type { HookRegistry } from '../events/hooks.ts';
import type { Metrics } from '../events/metrics.ts';
import type { Message } from '../packets/message.ts';
import type { AuthPacket, ConnectPacket, SubscribePacket, UnsubscribePacket } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import type { RetainedEntry } from '../retained/retained-feed.ts';
import type { Route } from '../routing/subscription.ts';
import type { Ledger } from '../store/ledger.ts';
import type { StoredBacklog } from './log.ts';
import type { Session, WillState } from './session.ts';
import type { TotalBacklog } from './total-backlog.ts';

/** What the hooks made of a message: a reason code of 0x80 or above refuses it. */
export interface PublishDecision {
  readonly message: Message;
  readonly route: Route;
  readonly reasonCode: number;
}

/**
 * What sessions and connections ask of the broker. Narrow on purpose: state that a second node would need (routes, ownership of
 * sessions, retained messages) is behind these functions.
 */
export interface SessionHost {
  /** Name of this node. */
  readonly node: string;
  /** Where sessions are kept that outlive the process; undefined: nowhere. */
  readonly ledger: Ledger | undefined;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  readonly events: Events;
  readonly hooks: HookRegistry;
  readonly work: WorkCount;
  /** The retained messages. */
  readonly retained: { get(topic: string): RetainedEntry | undefined };
  readonly outputHighWaterMark: number;
  readonly maxHeldBytes: number;
  /** Monotonic and wall-clock milliseconds, read once for each chunk. */
  nowMs: number;
  wallMs: number;
  /** Nobody watches or changes single messages: runs of QoS 0 frames may pass untouched. */
  isFastPathOpen: boolean;
  /** Memory is short: what may be dropped is. */
  readonly isShedding: boolean;
  /** Some messages of QoS 1 and 2 are refused, as there is no room for them to wait: ask `refuses`. */
  readonly isRefusing: boolean;
  /** The backlogs of all sessions, in memory. */
  readonly totalBacklog: TotalBacklog;
  /** Those in the store. */
  readonly storedBacklog: StoredBacklog;
  /** The reserve of the store is in use: what makes it grow is refused. */
  readonly isSpaceLow: boolean;
  /** Somebody watches packets on the diagnostics channels. */
  isTapped: boolean;

  /** Somebody on this route has a session that is kept. */
  persistsAny(route: Route): boolean;
  /** Delete the segments of a session that is over. */
  sweep(session: number): void;
  /** Read the clocks anew, where no chunk has. */
  readTime(): void;
  /** Number of this turn of the broker. */
  readonly turn: number;
  /** What all connections together may use in this turn beyond their shares, in the units of these. */
  spareUnits: number;
  /** Flush this connection when the turn ends. */
  flushLater(connection: Connection): void;
  /** Call this connection's `serve` when the others that wait have been served. */
  serveLater(connection: Connection): void;
  /** Call this session's `pumpOn` in the next turn. */
  pumpLater(session: Session): void;
  /** See whether somebody watches packets now. */
  lookForTaps(): void;
  tapReceived(connection: Connection, bytes: Buffer): void;
  tapSent(connection: Connection, bytes: Buffer): void;

  /** The route of the topic in `buf[start, end)`. @throws ProtocolError for an invalid name */
  resolve(buf: Buffer, start: number, end: number): Route;
  routeOf(topic: string): Route;
  /** Whether a route still holds. */
  isFresh(route: Route): boolean;
  /** The route itself while it holds, or the one that holds now: a hook may have taken its time, or subscribed somebody. */
  freshened(route: Route): Route;
  /** Somebody on this route would have to wait for a message of QoS 1 or 2, and there is no room for it. */
  refuses(message: Message, route: Route): boolean;
  /**
   * What gives messages of a session that is over to other members of its share groups; undefined where there is none. Its subscriptions
   * are out of the index.
   */
  handOver(session: Session): ((message: Message) => boolean) | undefined;
  /** The same for one in the store, which goes on by itself and ends the log. @returns false: there is nothing to hand over */
  handOverStored(session: Session, reason: DropReason): boolean;
  /** Deliver a message to everybody on its route. @returns how many took it */
  route(message: Message, route: Route): number;
  /** Deliver a run of QoS 0 frames. */
  routeRun(
    connection: Connection,
    route: Route,
    buf: Buffer,
    start: number,
    end: number,
    count: number,
    longest: number
  ): void;
  /** Keep a message of `$delayed/...` until its time. @returns a reason code */
  delay(message: Message): number;
  /** Ask the deliver hooks. */
  mayDeliver(message: Message, session: Session): boolean;
  /** There are rewrite rules. */
  readonly hasRewrites: boolean;
  /** Somebody may refuse or change what clients publish. */
  readonly hasPublishHooks: boolean;
  /** Ask the authorizePublish and publish hooks. */
  decidePublish(message: Message, route: Route, session: Session): PublishDecision | Promise<PublishDecision>;
  rewrite(topic: string, kind: 'publish' | 'subscribe'): string;

  /** Decide on a CONNECT and answer it. */
  onConnect(session: Session, packet: ConnectPacket): void;
  /** An AUTH of a connected client. */
  onAuth(session: Session, packet: AuthPacket): void;
  onSubscribe(session: Session, packet: SubscribePacket): void;
  onUnsubscribe(session: Session, packet: UnsubscribePacket): void;
  publishWill(session: Session, will: WillState): void;
  /** A session is over, and its will is for the next start of the broker. */
  keepWill(session: Session): void;
  /** A connection no longer counts for `maxConnections`: its close is under way. Called once. */
  placeFreed(): void;
  /** The stream has closed; whatever the connection held is free. */
  streamClosed(connection: Connection): void;
  /** Make the actor of a session that is offline again. */
  revive(session: Session): void;
  /** The session has ended: take it out of the index. */
  forget(session: Session): void;
  sessionChanged(session: Session): void;
  /** Its client does not read; the connection is about to be cut. */
  slowConsumer(session: Session): void;
  dropped(message: Message, reason: DropReason, client: ClientInfo | undefined): void;
  failed(error: unknown, during: string, client: ClientInfo | undefined): void;
}
