// The dependencies of sessions on the broker. Nothing in `lib/session` imports from `lib/broker`; a session that
// needs more of the broker gets a member here, with the fewest functions that suffice, and the broker passes the part
// that has them. The objects are the parts themselves, not copies, so fields such as `isRefusing` are read when they
// are needed.

import type { Chart, Charted } from '../base/charted.ts';
import type { WorkCount } from '../base/pending-work.ts';
import type { TimeReading } from '../base/time-reading.ts';
import type { ConnectionOwner, ConnectionPorts, HandlerTable } from '../connection/ports.ts';
import type { PublishedTopics } from '../connection/published-topics.ts';
import type { DropPlace } from '../events/announcer.ts';
import type { Decider } from '../events/deciders.ts';
import type { Events } from '../events/events.ts';
import type { HookRegistry } from '../events/hooks.ts';
import type { Metrics } from '../events/metrics.ts';
import type { DisconnectReason, DropReason } from '../events/reasons.ts';
import type { Message } from '../packets/message.ts';
import type { AuthPacket, ConnectPacket, QoS, SubscribePacket, UnsubscribePacket } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import type { LastTraffic } from '../records/last-traffic.ts';
import type { FeedEntry } from '../retained/retained-feed.ts';
import type { ReceivingRights } from '../routing/receiving-rights.ts';
import type { Route } from '../routing/route.ts';
import type { Ledger } from '../store/ledger.ts';
import type { WillState } from './life/will.ts';
import type { SessionClient } from './session-client.ts';
import type { TotalBacklog } from './total-backlog.ts';

/** The decision of the hooks on a message: a reason code of 0x80 or above refuses it, and then there is a decider. */
export interface PublishDecision {
  readonly message: Message;
  readonly route: Route;
  readonly reasonCode: number;
  readonly decider?: Decider | undefined;
}

/** The code of the record of a PUBLISH that is not allowed, and ends the connection. */
export type ForbiddenCode = 'packet_too_large' | 'qos_not_allowed' | 'topic_not_allowed';

/** The code of the record of a refused CONNECT. */
export type ConnectCode = 'wrong_password' | 'token_expired' | 'banned' | 'connection_limit' | 'connect_refused';

interface ForbiddenMessage {
  readonly publisher: string;
  /** undefined: it is not known. */
  readonly topic: string | undefined;
  readonly qos: QoS;
  readonly detail: string;
}

/** A client that the broker rejects. */
interface RejectedClient {
  readonly client: ClientInfo;
  readonly address: undefined;
  readonly reason: DisconnectReason;
  readonly reasonCode: number;
  /** For the operator. */
  readonly why: string;
}

/**
 * The parts of the broker that sessions use, by subject. `S` is the session.
 *
 * State that a second node would need (routes, ownership of sessions, retained messages) is reached only through these ports.
 */
export interface SessionPorts<S extends ConnectionOwner & Charted> extends ConnectionPorts<S> {
  /** The chart that all sessions run. */
  readonly chart: Chart<S>;
  readonly events: Events;
  readonly hooks: HookRegistry;
  readonly announcer: Announcements;
  /** Group commit of the store; undefined if the broker has no store. */
  readonly ledger: Ledger | undefined;
  /** The rights of clients to receive messages, and to publish under `$SYS`. */
  readonly rights: ReceivingRights & { mayPublishSystem(client: SessionClient, topic: string): boolean };
  /** The retained messages, by topic. */
  readonly retained: { get(topic: string): FeedEntry | undefined };
  readonly pressure: PressurePort;
  /** The time as last read from the clock. */
  readonly time: TimeReading;
  readonly metrics: Metrics;
  readonly rejections: {
    /** Report that the broker refuses a client, or ends its connection because of what it sends. */
    add(rejected: RejectedClient): void;
  };
  /** The log of what happens to clients, for operators. */
  readonly reasons: {
    add(
      code: `disconnected_${DisconnectReason}`,
      subject: { readonly clientId: string; readonly detail?: string; readonly since?: number }
    ): void;
    add(code: ForbiddenCode, subject: ForbiddenMessage): void;
    /** Record a message that its receiver refuses; many different ones are summarised. */
    drop(
      topic: string,
      qos: QoS,
      publisher: string,
      code: 'receiver_refused',
      receiver: string,
      count: number,
      detail: string
    ): void;
    add(
      code: 'will_dropped',
      subject: {
        readonly publisher: string;
        readonly topic: string;
        readonly qos?: QoS;
        readonly detail: string | undefined;
      }
    ): void;
    add(
      code: ConnectCode,
      subject: {
        readonly clientId: string | undefined;
        readonly address: string | undefined;
        readonly detail: string;
      }
    ): void;
  };
  /** Name of this node. */
  readonly node: string;
  /** The counters of the last connections of sessions. */
  readonly lastTraffic: LastTraffic;
  /** Counts pending operations, for which the clock of the test kit waits. */
  readonly work: WorkCount;
  readonly handlers: SessionHandlers<S>;
  readonly turn: ConnectionPorts<S>['turn'] & {
    /** Call `continuePump` in the next turn. */
    pumpLater(waiting: { continuePump(): void }): void;
    /** Resolves in the next turn. */
    pause(): Promise<void>;
  };
  /** The time for lists. */
  readonly slices: {
    /** Wait for the next slice. @param had number of slices that the list has had */
    next(had?: number): Promise<void>;
  };
  readonly routing: ConnectionPorts<S>['routing'] & {
    /** The route of a topic name. */
    of(topic: string): Route;
    /**
     * The given route if it is still valid, otherwise the current route of its topic. Use it after hooks, because subscriptions may have
     * changed.
     */
    freshened(route: Route): Route;
    /** Tell whether a message would be persisted: retained, delayed, or queued for a persisted session. */
    persists(message: Message, route: Route): boolean;
  };
  readonly publishing: ConnectionPorts<S>['publishing'] & PublishingPort;
  /** The rules that replace topics and filters of clients. */
  readonly rewrites: {
    readonly hasRules: boolean;
    apply(topic: string, kind: 'publish' | 'subscribe'): string;
  };
  readonly admission: {
    /** Decide on a CONNECT and answer it. */
    connect(session: S, packet: ConnectPacket): void;
    /** Handle an AUTH packet of a connected client. */
    reauthenticate(session: S, packet: AuthPacket): void;
  };
  readonly subscribing: {
    subscribe(session: S, packet: SubscribePacket): void;
    unsubscribe(session: S, packet: UnsubscribePacket): void;
  };
  readonly sessions: SessionIndexPort<S>;
  readonly wills: {
    publish(session: S, will: WillState): void;
    /** Persist the will of a session that has ended, for the next start of the broker. */
    keep(session: S): void;
  };
  readonly handOvers: HandOverPort<S>;
  /** Deletes the segments of sessions that have ended. @param session number of the session in keys */
  readonly sweeper: { add(session: number): void };
}

/** The handler tables of a session, by state. */
export interface SessionHandlers<S> {
  readonly beforeConnect: HandlerTable<S>;
  readonly authenticating: HandlerTable<S>;
  readonly live: HandlerTable<S>;
}

/** Reports of dropped messages and internal errors, as events and in the metrics. */
export interface Announcements {
  dropped(
    message: Message,
    reason: DropReason,
    client: ClientInfo | undefined,
    place?: DropPlace,
    refusal?: { readonly code: string; readonly detail: string | undefined }
  ): void;
  failed(error: unknown, during: string, client: ClientInfo | undefined): void;
}

/** The path of a published message. */
interface PublishingPort {
  readonly hooks: {
    /** True if hooks or zones may refuse or change published messages: then call `decide`. */
    readonly hasHooks: boolean;
    /** Ask the hooks `authorizePublish` and `publish`. */
    decide(
      message: Message,
      route: Route,
      client: SessionClient,
      topics: PublishedTopics
    ): PublishDecision | Promise<PublishDecision>;
    /** Report a decision that needs no hook to its listeners. */
    announce(message: Message, route: Route, client: SessionClient, isAllowed: boolean): void;
    /** Ask the hooks `deliver`. @returns the message for this receiver; undefined if it does not get it */
    deliverable(message: Message, client: ClientInfo): Message | undefined;
  };
  /**
   * Tell what refuses a QoS 1 or 2 message, because a subscriber of this route would have to queue it and has no room for it.
   * @returns undefined: nothing
   */
  refusal(message: Message, route: Route): Decider | undefined;
  /** Deliver a message to all subscribers of its route. @returns how many accepted it */
  route(message: Message, route: Route): number;
  /** Store a message to `$delayed/...` until it is due. @returns a reason code */
  delay(message: Message): number;
}

/** The index of sessions by client id. */
interface SessionIndexPort<S> {
  /** Remove a session that has ended. */
  forget(session: S): void;
  /** Called when the session has connected or disconnected. */
  changed(session: S, isConnected: boolean): void;
  /** Called when the client does not read; its connection will be closed. */
  slowConsumer(session: S): void;
}

/** Hands messages of ended sessions over to other members of their share groups. */
export interface HandOverPort<S> {
  /**
   * Get a function that hands a message of a session in memory over to another member. It returns false if no member takes the message. The
   * subscriptions of the session must no longer be in the index.
   * @returns undefined if there are no other members
   */
  giverFor(session: S): ((message: Message) => boolean) | undefined;
  /** Start to hand over the messages of a persisted session, and end its log afterwards. @returns false if there is nothing to do */
  begin(session: S, reason: DropReason): boolean;
}

/** Limits on memory and on space in the store. */
interface PressurePort {
  /** True if memory is short: QoS 0 messages are dropped instead of being queued. */
  readonly isShedding: boolean;
  /** True if some QoS 1 and 2 messages are refused, because there is no room to queue them: then call `publishing.refuses`. */
  readonly isRefusing: boolean;
  /** True if the reserve of the store is in use: changes that make the store grow are refused. */
  readonly isSpaceLow: boolean;
  /** The queues of all sessions. */
  readonly totalBacklog: TotalBacklog;
}
