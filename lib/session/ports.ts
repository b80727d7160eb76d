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

/** What the hooks made of a message: a reason code of 0x80 or above refuses it. */
export interface PublishDecision {
  readonly message: Message;
  readonly route: Route;
  readonly reasonCode: number;
}

/**
 * What sessions ask of the broker, by subject. State that a second node would need (routes, ownership of sessions, retained messages) is
 * reached through these ports alone.
 */
export interface SessionPorts extends ConnectionPorts<Session> {
  /** Name of this node. */
  readonly node: string;
  readonly events: Events;
  readonly hooks: HookRegistry;
  readonly work: WorkCount;
  readonly announcer: Announcements;
  /** Group commit of the store; undefined: nothing outlives the process. */
  readonly ledger: Ledger | undefined;
  readonly handlers: SessionHandlers;
  readonly turn: ConnectionPorts<Session>['turn'] & {
    /** Call this session's `continuePump` in the next turn. */
    pumpLater(session: Session): void;
  };
  readonly routing: ConnectionPorts<Session>['routing'] & {
    of(topic: string): Route;
    /** The route itself while it holds, or the one that holds now: a hook may have taken its time, or subscribed somebody. */
    freshened(route: Route): Route;
    /** Whether a subscriber of this route has a session that is persisted. */
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
    /** An AUTH of a connected client. */
    reauthenticate(session: Session, packet: AuthPacket): void;
  };
  readonly subscribing: {
    subscribe(session: Session, packet: SubscribePacket): void;
    unsubscribe(session: Session, packet: UnsubscribePacket): void;
  };
  readonly sessions: SessionIndexPort;
  readonly wills: {
    publish(session: Session, will: WillState): void;
    /** A session has ended, and its will is for the next start of the broker. */
    keep(session: Session): void;
  };
  readonly handOvers: HandOverPort;
  /** Deletes the segments of sessions that have ended. */
  readonly sweeper: { add(session: number): void };
  readonly pressure: PressurePort;
}

/** Handler tables of the states of a session. */
export interface SessionHandlers {
  readonly beforeConnect: HandlerTable<Session>;
  readonly authenticating: HandlerTable<Session>;
  readonly live: HandlerTable<Session>;
}

/** What is announced to the app, and counted. */
export interface Announcements {
  dropped(message: Message, reason: DropReason, client: ClientInfo | undefined): void;
  failed(error: unknown, during: string, client: ClientInfo | undefined): void;
}

/** The path of a message. */
export interface PublishingPort {
  /** Hooks, or a zone, may refuse or change what clients publish. */
  readonly hasHooks: boolean;
  /** Ask the authorizePublish and publish hooks. */
  decide(message: Message, route: Route, session: Session): PublishDecision | Promise<PublishDecision>;
  /** Ask the deliver hooks. */
  mayDeliver(message: Message, session: Session): boolean;
  /** Whether a subscriber of this route would have to queue a message of QoS 1 or 2, and there is no room for it. */
  refuses(message: Message, route: Route): boolean;
  /** Deliver a message to everybody on its route. @returns how many took it */
  route(message: Message, route: Route): number;
  /** Keep a message of `$delayed/...` until its time. @returns a reason code */
  delay(message: Message): number;
}

/** The index of sessions by client id. */
export interface SessionIndexPort {
  /** Make the actor of a session that is offline again. */
  revive(session: Session): void;
  /** The session has ended: remove it. */
  forget(session: Session): void;
  /** It has connected or disconnected. */
  changed(session: Session): void;
  /** Its client does not read; the connection is about to be cut. */
  slowConsumer(session: Session): void;
}

/** Messages of ended sessions that go to other members of their share groups. */
export interface HandOverPort {
  /** Gives messages of a session in memory to other members; undefined if there are none. Its subscriptions are out of the index. */
  giverFor(session: Session): ((message: Message) => boolean) | undefined;
  /** The same for a persisted session; it continues by itself and ends the log. @returns false: nothing to hand over */
  begin(session: Session, reason: DropReason): boolean;
}

/** Shortage of memory and of space in the store. */
export interface PressurePort {
  /** Memory is short: what may be dropped is. */
  readonly isShedding: boolean;
  /** Some messages of QoS 1 and 2 are refused, as there is no room to queue them: ask `publishing.refuses`. */
  readonly isRefusing: boolean;
  /** The reserve of the store is in use: what makes it grow is refused. */
  readonly isSpaceLow: boolean;
  /** The backlogs of all sessions, in memory. */
  readonly totalBacklog: TotalBacklog;
  /** Those in the store. */
  readonly storedBacklog: StoredBacklog;
}
