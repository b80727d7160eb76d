import type { WorkCount } from '../base/pending-work.ts';
import type { ConnectionPorts, HandlerTable } from '../connection/ports.ts';
import type { DropReason, Events } from '../events/events.ts';
import type { HookRegistry } from '../events/hooks.ts';
import type { Message } from '../packets/message.ts';
import type { AuthPacket, ConnectPacket, SubscribePacket, UnsubscribePacket } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import type { RetainedEntry } from '../retained/retained-feed.ts';
import type { Route } from '../routing/subscription.ts';
import type { Ledger } from '../store/ledger.ts';
import type { StoredBacklog } from './log.ts';
import type { Session, WillState } from './session.ts';
import type { TotalBacklog } from './total-backlog.ts';

/** The decision of the hooks on a message: a reason code of 0x80 or above refuses it. */
export interface PublishDecision {
  readonly message: Message;
  readonly route: Route;
  readonly reasonCode: number;
}

/**
 * The parts of the broker that sessions use, by subject.
 *
 * State that a second node would need (routes, ownership of sessions, retained messages) is reached only through these ports.
 */
export interface SessionPorts extends ConnectionPorts<Session> {
  /** Name of this node. */
  readonly node: string;
  readonly events: Events;
  readonly hooks: HookRegistry;
  readonly work: WorkCount;
  readonly announcer: Announcements;
  /** Group commit of the store; undefined if the broker has no store. */
  readonly ledger: Ledger | undefined;
  readonly handlers: SessionHandlers;
  readonly turn: ConnectionPorts<Session>['turn'] & {
    /** Call `continuePump` of this session in the next turn. */
    pumpLater(session: Session): void;
  };
  readonly routing: ConnectionPorts<Session>['routing'] & {
    /** The route of a topic name. */
    of(topic: string): Route;
    /** The given route if it is still valid, else the current route of its topic. Use it after hooks: subscriptions may have changed. */
    freshened(route: Route): Route;
    /** Whether a subscriber of this route has a persisted session. */
    persistsAny(route: Route): boolean;
  };
  readonly publishing: ConnectionPorts<Session>['publishing'] & PublishingPort;
  readonly rewrites: {
    readonly hasRules: boolean;
    apply(topic: string, kind: 'publish' | 'subscribe'): string;
  };
  readonly retained: { get(topic: string): RetainedEntry | undefined };
  readonly admission: {
    /** Decide on a CONNECT and answer it. */
    connect(session: Session, packet: ConnectPacket): void;
    /** Handle an AUTH packet of a connected client. */
    reauthenticate(session: Session, packet: AuthPacket): void;
  };
  readonly subscribing: {
    subscribe(session: Session, packet: SubscribePacket): void;
    unsubscribe(session: Session, packet: UnsubscribePacket): void;
  };
  readonly sessions: SessionIndexPort;
  readonly wills: {
    publish(session: Session, will: WillState): void;
    /** Persist the will of a session that has ended, for the next start of the broker. */
    keep(session: Session): void;
  };
  readonly handOvers: HandOverPort;
  /** Deletes the segments of sessions that have ended. @param session number of the session in keys */
  readonly sweeper: { add(session: number): void };
  readonly pressure: PressurePort;
}

/** The handler tables of a session, by state. */
export interface SessionHandlers {
  readonly beforeConnect: HandlerTable<Session>;
  readonly authenticating: HandlerTable<Session>;
  readonly live: HandlerTable<Session>;
}

/** Reports of dropped messages and internal errors, as events and in the metrics. */
export interface Announcements {
  dropped(message: Message, reason: DropReason, client: ClientInfo | undefined): void;
  failed(error: unknown, during: string, client: ClientInfo | undefined): void;
}

/** The path of a published message. */
export interface PublishingPort {
  /** Hooks or zones may refuse or change published messages: ask `decide`. */
  readonly hasHooks: boolean;
  /** Ask the hooks `authorizePublish` and `publish`. */
  decide(message: Message, route: Route, session: Session): PublishDecision | Promise<PublishDecision>;
  /** Ask the hooks `deliver`. */
  mayDeliver(message: Message, session: Session): boolean;
  /** Whether a subscriber of this route would have to queue this QoS 1 or 2 message and has no room for it. */
  refuses(message: Message, route: Route): boolean;
  /** Deliver a message to all subscribers of its route. @returns how many accepted it */
  route(message: Message, route: Route): number;
  /** Store a message to `$delayed/...` until it is due. @returns a reason code */
  delay(message: Message): number;
}

/** The index of sessions by client id. */
export interface SessionIndexPort {
  /** Create an actor for an offline session. */
  revive(session: Session): void;
  /** Remove a session that has ended. */
  forget(session: Session): void;
  /** The session has connected or disconnected. */
  changed(session: Session): void;
  /** The client does not read; its connection will be closed. */
  slowConsumer(session: Session): void;
}

/** Hands messages of ended sessions over to other members of their share groups. */
export interface HandOverPort {
  /**
   * Get a function that gives a message of a session in memory to another member. It returns false if no member takes the message. The
   * subscriptions of the session must no longer be in the index.
   * @returns undefined if there are no other members
   */
  giverFor(session: Session): ((message: Message) => boolean) | undefined;
  /** Start to hand over the messages of a persisted session, and end its log afterwards. @returns false if there is nothing to do */
  begin(session: Session, reason: DropReason): boolean;
}

/** Limits on memory and on space in the store. */
export interface PressurePort {
  /** Memory is short: QoS 0 messages are dropped instead of being queued. */
  readonly isShedding: boolean;
  /** Some QoS 1 and 2 messages are refused, because there is no room to queue them: ask `publishing.refuses`. */
  readonly isRefusing: boolean;
  /** The reserve of the store is in use: changes that make the store grow are refused. */
  readonly isSpaceLow: boolean;
  /** The backlogs of all sessions in memory. */
  readonly totalBacklog: TotalBacklog;
  /** The backlogs of all sessions in the store. */
  readonly storedBacklog: StoredBacklog;
}
