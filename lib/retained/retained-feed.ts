// Retained messages are sent as there is room. A new subscription gets a feed over the matching entries, 500 at a
// time, as window and stream allow. The tree of topics finds few of them at once; otherwise all topics are compared
// with the filter, in slices (`walkRetained`). A newer message on a topic first sends the retained one, so the order
// within a topic holds. With a store, the SUBACK promises the feed: the subscription's record holds where the feed
// ends, the flow record how far it has got.

import type { Message } from '../packets/message.ts';
import { effectiveQos, type Subscription } from '../routing/subscription.ts';

/** A retained message, as `RetainedStore` returns it. */
export interface FeedEntry {
  readonly topic: string;
  readonly message: Message;
  /** Sequence number: the order in which the entries were stored. */
  readonly seq: number;
  /** False after the message was replaced or deleted. */
  readonly isLive: boolean;
}

/** The source of the entries of a feed. */
export interface FeedEntries {
  /** `seq` of the next entry that will be stored. */
  readonly next: number;
  /** False: no entries are delivered, and a feed that is asked for its next message ends. */
  readonly isOpen: boolean;
  /** Find the entries that a subscription matches, in the order of `seq`. Undefined: a step has found none, and others follow. */
  find(subscription: Subscription): Iterable<FeedEntry | undefined>;
  /** Tell whether a subscription matches a topic name. */
  reaches(subscription: Subscription, topic: string): boolean;
}

/**
 * If more entries than this were sent ahead of their turn, they are not persisted, because each commit would write them. They are sent
 * again after a crash.
 */
const MAX_PERSISTED_AHEAD = 200;

/** A look-up of entries that is not complete. */
interface Search {
  readonly from: Iterator<FeedEntry | undefined>;
  /** Entries whose messages are sent at QoS 0, and the others. */
  readonly qos0: FeedEntry[];
  readonly others: FeedEntry[];
}

/** Entries that are found in one step. */
const MAX_FOUND_AT_ONCE = 1_000;

/** The position of a feed that has been sent in part. */
export interface PendingFeed {
  readonly filter: string;
  /** `seq` of the next entry. */
  readonly from: number;
  /** `seq` of the entries after `from` that have already been sent. */
  readonly ahead: readonly number[];
}

/**
 * The retained messages that are still to be sent for a new subscription, oldest first.
 *
 * They are looked up late and sent as the session has room, so that neither a subscription to 200,000 retained messages nor 100,000
 * subscriptions in one packet block other clients.
 */
export class RetainedFeed {
  readonly subscription: Subscription;
  /** True if the messages are sent at QoS 1 or 2, which takes send quota. Known after `load`. */
  readonly needsQuota: boolean;
  readonly #source: FeedEntries;
  /** `seq` of the first entry of the feed. */
  readonly #from: number;
  /** `seq` after the last entry of the feed. Later messages were delivered when they were published. */
  readonly before: number;
  /** undefined: no look-up has started, or it is complete. */
  #search: Search | undefined;
  /** The entries; undefined until they are looked up. */
  #entries: readonly FeedEntry[] | undefined;
  #at = 0;
  /** `seq` of the entries that were sent ahead of their turn, because a newer message of their topic was about to be sent. */
  #ahead: Set<number> | undefined;
  /** True until the SUBACK of the subscription has been sent. */
  isDeferred = false;
  /** Number of times that the messages are sent before the last time: one SUBSCRIBE may contain a filter several times [MQTT-3.8.4-5]. */
  repeats = 0;

  constructor(subscription: Subscription, source: FeedEntries, needsQuota = false, from = 0, before = source.next) {
    this.subscription = subscription;
    this.needsQuota = needsQuota;
    this.#source = source;
    this.#from = from;
    this.before = before;
  }

  /** Recreate the feed of a stored subscription. @param pending the position of the feed; undefined: nothing has been sent */
  static restored(
    subscription: Subscription,
    source: FeedEntries,
    before: number,
    pending?: PendingFeed
  ): RetainedFeed {
    if (pending === undefined) return new RetainedFeed(subscription, source, false, 0, before);
    const feed = new RetainedFeed(subscription, source, true, pending.from, before);
    if (pending.ahead.length > 0) feed.#ahead = new Set(pending.ahead);
    return feed;
  }

  /** Send nothing until `release`. */
  defer(): void {
    this.isDeferred = true;
  }

  /** Allow sending: the SUBACK of the subscription has been sent, or can no longer be. */
  release(): void {
    this.isDeferred = false;
  }

  /**
   * Take a step of looking up the entries.
   * @returns whether the look-up is complete: then `parts` follows
   */
  search(upgradeQos: boolean): boolean {
    this.#search ??= { from: this.#source.find(this.subscription)[Symbol.iterator](), qos0: [], others: [] };
    const { from, qos0, others } = this.#search;
    for (let left = MAX_FOUND_AT_ONCE; left > 0; left--) {
      const { done, value: entry } = from.next();
      if (done === true) return true;
      if (entry === undefined) return false;
      if (entry.seq < this.#from || entry.seq >= this.before || this.#ahead?.has(entry.seq)) continue;
      if (effectiveQos(entry.message, this.subscription, upgradeQos) > 0) others.push(entry);
      else if (!this.needsQuota) qos0.push(entry);
    }
    return false;
  }

  /** Drop the result of an incomplete look-up, so that no entries are referenced. */
  endSearch(): void {
    this.#search = undefined;
  }

  /**
   * Use the entries that were found.
   * @returns up to two feeds that replace this one: messages sent at QoS 0 are separate, because they do not wait for send quota
   *   [MQTT-3.3.4-10]
   */
  parts(): RetainedFeed[] {
    const { qos0 = [], others = [] } = this.#search ?? {};
    this.endSearch();
    return [this.#part(qos0, false), this.#part(others, true)].filter(({ waiting }) => waiting > 0);
  }

  #part(entries: readonly FeedEntry[], needsQuota: boolean): RetainedFeed {
    const part = new RetainedFeed(this.subscription, this.#source, needsQuota, this.#from, this.before);
    part.#entries = entries;
    part.#ahead = this.#ahead;
    return part;
  }

  /** Create a feed of the remaining entries that looks them up again, so that no entries are referenced in the meantime. */
  unload(): RetainedFeed {
    const next = this.#entries?.[this.#at];
    if (next === undefined) return this;
    const rest = new RetainedFeed(this.subscription, this.#source, this.needsQuota, next.seq, this.before);
    rest.#ahead = this.#ahead;
    return rest;
  }

  /** The position of the feed; undefined if nothing has been sent. */
  get pending(): PendingFeed | undefined {
    const from = this.#entries?.[this.#at]?.seq ?? this.#from;
    if (from === 0 && this.#ahead === undefined) return undefined;
    const isSmall = this.#ahead !== undefined && this.#ahead.size <= MAX_PERSISTED_AHEAD;
    return { filter: this.subscription.filter, from, ahead: isSmall ? [...(this.#ahead as Set<number>)] : [] };
  }

  /** Number of entries that have been looked up but not sent. */
  get waiting(): number {
    return this.#entries === undefined ? 0 : this.#entries.length - this.#at;
  }

  /** Take the next message to send. @returns undefined if there are no more */
  next(): Message | undefined {
    const entries = this.#entries as readonly FeedEntry[];
    if (!this.#source.isOpen) this.#at = entries.length;
    while (this.#at < entries.length) {
      const entry = entries[this.#at++];
      if (this.#ahead?.delete(entry.seq) !== true && entry.isLive) return entry.message;
    }
    return undefined;
  }

  /** Take an entry ahead of its turn. @returns its message; undefined if the entry is not in the feed or has been sent */
  takeAhead(entry: FeedEntry): Message | undefined {
    if (!this.#source.isOpen || this.#ahead?.has(entry.seq) === true || !this.#isWaiting(entry)) return undefined;
    (this.#ahead ??= new Set()).add(entry.seq);
    return entry.message;
  }

  #isWaiting(entry: FeedEntry): boolean {
    const entries = this.#entries;
    if (entries === undefined) {
      const isOurs = entry.seq >= this.#from && entry.seq < this.before;
      return isOurs && this.#source.reaches(this.subscription, entry.topic);
    }
    let from = this.#at;
    let end = entries.length;
    while (from < end) {
      const middle = (from + end) >>> 1;
      if (entries[middle].seq < entry.seq) from = middle + 1;
      else end = middle;
    }
    return entries[from] === entry;
  }
}

/** If a session has at least this many entries to send, no more are looked up for it. */
const MAX_LOADED_ENTRIES = 1_000;
/** Maximum number of feeds that are checked for an older message when a message is published, to limit the cost of a publish. */
const MAX_CHECKED_FEEDS = 100;

/** The feeds of one session. Some have looked up their entries (loaded), the others wait for it (asked). */
export class RetainedFeeds {
  #loaded: RetainedFeed[] = [];
  /** Number of entries to send in the loaded feeds. */
  #waiting = 0;
  #asked = new Map<Subscription, RetainedFeed>();
  readonly #onDone: (subscription: Subscription) => void;

  /** @param onDone called when all messages of a subscription that are sent at QoS 1 or 2 have been sent */
  constructor(onDone: (subscription: Subscription) => void) {
    this.#onDone = onDone;
  }

  /**
   * Add the feed of a new subscription. The feed of a repeated subscription starts again from the beginning; the messages are sent once for each
   * time that one SUBSCRIBE contains its filter.
   */
  ask(feed: RetainedFeed): void {
    const before = this.#asked.get(feed.subscription);
    if (before?.isDeferred) feed.repeats = before.repeats + 1;
    this.#asked.delete(feed.subscription);
    this.#asked.set(feed.subscription, feed);
  }

  get isDone(): boolean {
    return this.#loaded.length === 0 && this.#asked.size === 0;
  }

  /** True if the next feed may be loaded. */
  get mayLoad(): boolean {
    if (this.#asked.size === 0 || this.#waiting >= MAX_LOADED_ENTRIES || this.#loaded.length >= MAX_CHECKED_FEEDS)
      return false;
    const [feed] = this.#asked.values();
    return !feed.isDeferred;
  }

  /** Get the `seq` after the last entry that is to be sent for a subscription. @returns undefined if all entries have been sent */
  pendingBefore(subscription: Subscription): number | undefined {
    const isOurs = (feed: RetainedFeed) => feed.subscription === subscription && feed.needsQuota;
    return (this.#asked.get(subscription) ?? this.#loaded.findLast(isOurs))?.before;
  }

  /** The positions of all feeds that were sent in part; for each topic filter that of its latest feed. */
  get pending(): PendingFeed[] {
    const byFilter = new Map<string, RetainedFeed>();
    for (const feed of this.#loaded) if (feed.needsQuota) byFilter.set(feed.subscription.filter, feed);
    for (const feed of this.#asked.values()) byFilter.set(feed.subscription.filter, feed);
    return [...byFilter.values()].flatMap(({ pending }) => pending ?? []);
  }

  /**
   * Take a step of looking up the entries of the next feed.
   * @param hasSubscription tells whether the session still has the subscription
   * @param upgradeQos the option of the zone
   * @returns the number of entries found; undefined: others follow
   */
  load(hasSubscription: (subscription: Subscription) => boolean, upgradeQos: boolean): number | undefined {
    const [feed] = this.#asked.values();
    const isSubscribed = hasSubscription(feed.subscription);
    if (isSubscribed && !feed.search(upgradeQos)) return undefined;
    const isLast = feed.repeats === 0 || !isSubscribed;
    if (isLast) this.#asked.delete(feed.subscription);
    else feed.repeats--;
    if (!isSubscribed) return 0;
    let count = 0;
    let isDone = isLast;
    for (const part of feed.parts()) {
      this.#loaded.push(part);
      count += part.waiting;
      if (part.needsQuota) isDone = false;
    }
    if (isDone) this.#onDone(feed.subscription);
    this.#waiting += count;
    return count;
  }

  /** Choose the first loaded feed from which a message may be sent. @param hasQuota whether send quota is left */
  choose(hasQuota: boolean): RetainedFeed | undefined {
    const loaded = this.#loaded;
    for (let at = 0; at < loaded.length; at++) if (hasQuota || !loaded[at].needsQuota) return loaded[at];
    return undefined;
  }

  /** Take the next message of a loaded feed. The feed is removed after its last message. @returns undefined if there was no message left */
  next(feed: RetainedFeed): Message | undefined {
    const { waiting } = feed;
    const message = feed.next();
    this.#waiting -= waiting - feed.waiting;
    if (feed.waiting > 0) return message;
    this.#loaded.splice(this.#loaded.indexOf(feed), 1);
    if (feed.needsQuota) this.#onDone(feed.subscription);
    return message;
  }

  /** Unload all feeds after the connection has closed. Messages of QoS 1 and 2 are sent on the next connection. */
  unload(): void {
    const asked = [...this.#asked.values()];
    this.#asked = new Map();
    for (const feed of this.#loaded) if (feed.needsQuota && feed.waiting > 0) this.ask(feed.unload());
    for (const feed of asked) {
      feed.release(); // its SUBACK can no longer be sent
      feed.endSearch();
      this.ask(feed);
    }
    this.#loaded = [];
    this.#waiting = 0;
  }

  /** The feeds that may contain a message that a newer one must not overtake; at most `MAX_CHECKED_FEEDS` that are not loaded. */
  *[Symbol.iterator](): IterableIterator<RetainedFeed> {
    yield* [...this.#loaded];
    let left = MAX_CHECKED_FEEDS;
    for (const feed of this.#asked.values()) {
      if (left-- === 0) return;
      yield feed;
    }
  }
}
