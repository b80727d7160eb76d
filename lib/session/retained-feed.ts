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
  /** Its messages go out at QoS 1 or 2. */
  readonly needsQuota: boolean;
  readonly #entries: readonly RetainedEntry[];
  #at = 0;
  /** Given ahead of their turn, because a newer message of their topic overtook them. */
  #ahead: Set<RetainedEntry> | undefined;

  /** @param entries in the order of their `seq` */
  constructor(subscription: Subscription, entries: readonly RetainedEntry[], needsQuota = true) {
    this.subscription = subscription;
    this.needsQuota = needsQuota;
    this.#entries = entries;
  }

  /** The same as one or two feeds, messages that leave at QoS 0 apart: they do not wait for send quota [MQTT-3.3.4-10]. */
  split(isZero: (message: Message) => boolean): RetainedFeed[] {
    const { subscription } = this;
    const zeroes: RetainedEntry[] = [];
    const others: RetainedEntry[] = [];
    for (const entry of this.#entries) (isZero(entry.message) ? zeroes : others).push(entry);
    const feeds = [new RetainedFeed(subscription, zeroes, false), new RetainedFeed(subscription, others)];
    return feeds.filter(({ isDone }) => !isDone);
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
    if (this.#ahead?.has(entry) === true || !this.#isWaiting(entry)) return undefined;
    (this.#ahead ??= new Set()).add(entry);
    return entry.message;
  }

  #isWaiting(entry: RetainedEntry): boolean {
    let from = this.#at;
    let end = this.#entries.length;
    while (from < end) {
      const middle = (from + end) >>> 1;
      if (this.#entries[middle].seq < entry.seq) from = middle + 1;
      else end = middle;
    }
    return this.#entries[from] === entry;
  }
}
