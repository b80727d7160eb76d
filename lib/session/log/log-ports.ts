import type { WorkCount } from '../../base/pending-work.ts';
import type { DropReason } from '../../events/reasons.ts';
import type { Message } from '../../packets/message.ts';
import type { PendingFeed } from '../../retained/retained-feed.ts';
import type { Subscription } from '../../routing/subscription.ts';
import type { Subscriptions } from '../../routing/subscriptions.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import type { Backlog } from '../messages/backlog.ts';
import type { InboundFlows } from '../messages/inbound-flows.ts';
import type { Inflight } from '../messages/inflight.ts';
import type { PersistedSession } from '../messages/session-writer.ts';
import type { Announcements } from '../ports.ts';
import type { OfflineFlights } from './offline-flights.ts';
import type { StoredBacklog } from './stored-backlog.ts';
import type { StoredMessages } from './stored-messages.ts';

/** The part of the delivery that the log of the session uses. */
interface LoggedDelivery {
  readonly flows: {
    readonly inflight: Inflight | undefined;
    /** undefined: the client is not connected. */
    readonly connection: unknown;
    /** Use these packet ids; their messages follow (`Inflight.restoreMessage`). */
    restore(inflight: Inflight | undefined): void;
  };
  readonly waiting:
    | {
        readonly backlog: Backlog | undefined;
        /** Drop waiting messages in memory; see `WaitingMessages`. */
        dropBacklog(end: number, before: number, most: number): { readonly removed: number; readonly dropped: number };
        readonly feeds:
          | { readonly pending: readonly PendingFeed[]; pendingBefore(subscription: Subscription): number | undefined }
          | undefined;
      }
    | undefined;
  ensureWaiting(): {
    /** Add a message that was read from the store to the backlog. */
    queue(persisted: PersistedMessage): void;
  };
  /** Remove all messages from memory. */
  unload(): void;
  /** Send waiting messages. */
  pump(): void;
  /** Count and report a dropped message. */
  drop(message: Message, reason: DropReason): void;
}

/** The part of the session that its log uses. */
export interface LogOwner extends PersistedSession {
  readonly ports: PersistedSession['ports'] & {
    readonly work: WorkCount;
    readonly announcer: Announcements;
    readonly turn: { pause(): Promise<void> };
    readonly pressure: { readonly storedBacklog: StoredBacklog };
    /** Deletes the segments of sessions that have ended. @param session number of the session in keys */
    readonly sweeper: { add(session: number): void };
  };
  readonly subscriptions: Subscriptions;
  readonly state: 'idle' | 'connected' | 'disconnected' | 'gone';
  readonly inbound: InboundFlows | undefined;
  readonly delivery: LoggedDelivery;
  readonly lifecycle: PersistedSession['lifecycle'] & { close(reason: 'store_failed'): void };
  ensureInbound(): InboundFlows;
  failInternally(error: unknown, during: string): void;
}

/** The interface of the log for its parts. */
export interface LogPorts {
  /** Number of the session in keys. */
  readonly number: number;
  readonly session: LogOwner;
  readonly ledger: Ledger;
  readonly messages: StoredMessages;
  readonly queue: {
    /** Report the bytes to the limit on all queues. */
    resized(): void;
    /** Drop messages in memory beyond the limits. */
    trimBacklog(): void;
  };
  /** The packet ids of the session while its client is away; undefined: they are in the session. */
  readonly offline: OfflineFlights | undefined;
  /** Note that a message is acknowledged, released or dropped, so that it is not sent again. */
  finish(persisted: PersistedMessage): void;
  /** Note that the state of messages has changed. Nothing waits for the commit. */
  flowTouched(): void;
  /**
   * Read the next page of messages into memory, unless one is being read.
   * @param dropped read these messages and drop those that would wait; resolves when that is done, or the client has disconnected
   */
  page(dropped?: DroppedPages): Promise<void> | undefined;
}

/** Messages that are dropped when they are read. */
export interface DroppedPages {
  /** Upper bound: messages with a lower number are dropped. */
  readonly to: number;
  drop(persisted: PersistedMessage): void;
}
