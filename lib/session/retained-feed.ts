import type { Message } from '../packets/message.ts';
import type { Subscription } from './subscription.ts';

/** A retained message as the store keeps it. */
export interface RetainedEntry {
  readonly topic: string;
  readonly message: Message;
  /** Order in which the entries were stored. */
  readonly seq: number;
  /** False once it has been replaced or deleted. */
  readonly live: boolean;
}

/**
 * The retained messages that a new subscription is still to get, oldest first. They are handed out as the session has room, so a
 * subscription to 200,000 of them neither blocks others nor overflows the session's backlog.
 */
export class RetainedFeed {
  readonly subscription: Subscription;
  readonly #entries: readonly RetainedEntry[];
  #at = 0;
  /** Given ahead of their turn, because a newer message of their topic overtook them. */
  #ahead: Set<RetainedEntry> | undefined;

  /** @param entries in the order of their `seq` */
  constructor(subscription: Subscription, entries: readonly RetainedEntry[]) {
    this.subscription = subscription;
    this.#entries = entries;
  }

  /** The next one to hand out; undefined when all are. */
  next(): Message | undefined {
    while (this.#at < this.#entries.length) {
      const entry = this.#entries[this.#at++];
      if (entry.live && this.#ahead?.has(entry) !== true) return entry.message;
    }
    return undefined;
  }

  get isDone(): boolean {
    return this.#at >= this.#entries.length;
  }

  /** Take an entry out of its turn. @returns its message, or undefined if it is none of the feed's or has been handed out */
  takeAhead(entry: RetainedEntry): Message | undefined {
    const turn = this.#entries[this.#at];
    if (turn === undefined || entry.seq < turn.seq || this.#ahead?.has(entry) === true) return undefined;
    if (entry.seq > this.#entries[this.#entries.length - 1].seq) return undefined;
    (this.#ahead ??= new Set()).add(entry);
    return entry.message;
  }
}
