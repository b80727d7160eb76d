import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { Subscription } from '../routing/subscription.ts';

/** A retained message as the store keeps it. */
export interface RetainedEntry {
  readonly topic: string;
  readonly message: Message;
  /** Order in which the entries were stored. */
  readonly seq: number;
  /** False once it has been replaced or deleted. */
  readonly live: boolean;
}

/** Where a feed has its entries from. */
export interface FeedSource {
  /** `seq` of the next entry to be stored. */
  readonly next: number;
  /** What the subscription matches, in the order of `seq`. */
  match(subscription: Subscription): readonly RetainedEntry[];
  reaches(subscription: Subscription, topic: string): boolean;
}

/** More than so many that are out ahead of their turn are not kept: each commit would write them. After a crash they come again. */
const MAX_AHEAD_KEPT = 200;

/** What is left of a feed that has been handed out in part. */
export interface PendingFeed {
  readonly filter: string;
  /** `seq` of the next entry. */
  readonly from: number;
  /** Those behind it that are out already. */
  readonly ahead: readonly number[];
}

/** The QoS at which a retained message goes out [MQTT-3.8.4-8]. */
export function handOutQos({ qos }: Message, { qos: granted }: Subscription, upgradeQos: boolean): QoS {
  return upgradeQos === qos < granted ? granted : qos;
}

/**
 * The retained messages that a new subscription is still to get, oldest first. They are looked up when their turn comes and handed out as
 * the session has room: neither a subscription to 200,000 of them nor 100,000 subscriptions in one packet block others.
 */
export class RetainedFeed {
  readonly subscription: Subscription;
  /** Its messages go out at QoS 1 or 2; known once it is loaded. */
  readonly needsQuota: boolean;
  readonly #source: FeedSource;
  /** It is about the entries from the one of this `seq` on, and before that one: later ones came to the subscription live. */
  readonly #from: number;
  readonly before: number;
  /** Undefined until looked up. */
  #entries: readonly RetainedEntry[] | undefined;
  #at = 0;
  /** Given ahead of their turn, because a newer message of their topic overtook them: their `seq`. */
  #ahead: Set<number> | undefined;
  /** Not before the SUBACK. */
  isDeferred = false;

  constructor(subscription: Subscription, source: FeedSource, needsQuota = false, from = 0, before = source.next) {
    this.subscription = subscription;
    this.needsQuota = needsQuota;
    this.#source = source;
    this.#from = from;
    this.before = before;
  }

  /** What was left of one when the process ended. @param pending undefined: all */
  static restored(subscription: Subscription, source: FeedSource, before: number, pending?: PendingFeed): RetainedFeed {
    if (pending === undefined) return new RetainedFeed(subscription, source, false, 0, before);
    const feed = new RetainedFeed(subscription, source, true, pending.from, before);
    if (pending.ahead.length > 0) feed.#ahead = new Set(pending.ahead);
    return feed;
  }

  /**
   * Look the entries up.
   * @returns the same as up to two feeds, messages that leave at QoS 0 apart: they do not wait for send quota [MQTT-3.3.4-10]
   */
  load(upgradeQos: boolean): RetainedFeed[] {
    const qos0Count: RetainedEntry[] = [];
    const others: RetainedEntry[] = [];
    for (const entry of this.#source.match(this.subscription)) {
      if (entry.seq < this.#from || entry.seq >= this.before || this.#ahead?.has(entry.seq)) continue;
      if (handOutQos(entry.message, this.subscription, upgradeQos) > 0) others.push(entry);
      else if (!this.needsQuota) qos0Count.push(entry);
    }
    return [this.#part(qos0Count, false), this.#part(others, true)].filter(({ waiting }) => waiting > 0);
  }

  #part(entries: readonly RetainedEntry[], needsQuota: boolean): RetainedFeed {
    const part = new RetainedFeed(this.subscription, this.#source, needsQuota, this.#from, this.before);
    part.#entries = entries;
    part.#ahead = this.#ahead;
    return part;
  }

  /** What is left of it, to be looked up again: nothing is kept alive meanwhile. */
  unload(): RetainedFeed {
    const next = this.#entries?.[this.#at];
    if (next === undefined) return this;
    const rest = new RetainedFeed(this.subscription, this.#source, this.needsQuota, next.seq, this.before);
    rest.#ahead = this.#ahead;
    return rest;
  }

  /** What is left of it; undefined: all. */
  get pending(): PendingFeed | undefined {
    const from = this.#entries?.[this.#at]?.seq ?? this.#from;
    if (from === 0 && this.#ahead === undefined) return undefined;
    const isShort = this.#ahead !== undefined && this.#ahead.size <= MAX_AHEAD_KEPT;
    return { filter: this.subscription.filter, from, ahead: isShort ? [...(this.#ahead as Set<number>)] : [] };
  }

  /** Entries that have been looked up and not handed out. */
  get waiting(): number {
    return this.#entries === undefined ? 0 : this.#entries.length - this.#at;
  }

  /** The next one to hand out; undefined when all are. */
  next(): Message | undefined {
    const entries = this.#entries as readonly RetainedEntry[];
    while (this.#at < entries.length) {
      const entry = entries[this.#at++];
      if (this.#ahead?.delete(entry.seq) !== true && entry.live) return entry.message;
    }
    return undefined;
  }

  /** Take an entry out of its turn. @returns its message, or undefined if it is none of the feed's or has been handed out */
  takeAhead(entry: RetainedEntry): Message | undefined {
    if (this.#ahead?.has(entry.seq) === true || !this.#isWaiting(entry)) return undefined;
    (this.#ahead ??= new Set()).add(entry.seq);
    return entry.message;
  }

  #isWaiting(entry: RetainedEntry): boolean {
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

/** Entries looked up and waiting from which on no more are looked up for a session. */
const LOADED_AT_ONCE = 1_000;
/** Feeds not looked up yet that are asked when a newer message comes: a bound on what a publish may cost. */
const ASKED_AHEAD = 100;

/** The feeds of one session: some looked up, the others waiting for that. */
export class RetainedFeeds {
  #loaded: RetainedFeed[] = [];
  /** Entries that wait in those. */
  #waiting = 0;
  #asked = new Map<Subscription, RetainedFeed>();
  readonly #onDone: (subscription: Subscription) => void;

  /** @param onDone told when all that leaves at QoS 1 and 2 is handed out for a subscription */
  constructor(onDone: (subscription: Subscription) => void) {
    this.#onDone = onDone;
  }

  /** Another subscription, or one made again: that begins anew. */
  ask(feed: RetainedFeed): void {
    this.#asked.delete(feed.subscription);
    this.#asked.set(feed.subscription, feed);
  }

  get isDone(): boolean {
    return this.#loaded.length === 0 && this.#asked.size === 0;
  }

  /** More may be looked up. */
  get mayLoad(): boolean {
    if (this.#asked.size === 0 || this.#waiting >= LOADED_AT_ONCE || this.#loaded.length >= ASKED_AHEAD) return false;
    const [feed] = this.#asked.values();
    return !feed.isDeferred;
  }

  /** What a subscription is still to get is about entries before the one of this `seq`; undefined: it has got all. */
  pendingBefore(subscription: Subscription): number | undefined {
    const isOurs = (feed: RetainedFeed) => feed.subscription === subscription && feed.needsQuota;
    return (this.#asked.get(subscription) ?? this.#loaded.findLast(isOurs))?.before;
  }

  /** Those that have been handed out in part; of several for one filter the last one counts. */
  get pending(): PendingFeed[] {
    const byFilter = new Map<string, RetainedFeed>();
    for (const feed of this.#loaded) if (feed.needsQuota) byFilter.set(feed.subscription.filter, feed);
    for (const feed of this.#asked.values()) byFilter.set(feed.subscription.filter, feed);
    return [...byFilter.values()].flatMap(({ pending }) => pending ?? []);
  }

  /**
   * Look up the entries of the next feed.
   * @param isDeferred whether the session still has the subscription
   * @param upgradeQos as of its zone
   * @returns how many entries there are
   */
  load(isDeferred: (subscription: Subscription) => boolean, upgradeQos: boolean): number {
    const [feed] = this.#asked.values();
    this.#asked.delete(feed.subscription);
    if (!isDeferred(feed.subscription)) return 0;
    let count = 0;
    let isDone = true;
    for (const part of feed.load(upgradeQos)) {
      this.#loaded.push(part);
      count += part.waiting;
      if (part.needsQuota) isDone = false;
    }
    if (isDone) this.#onDone(feed.subscription);
    this.#waiting += count;
    return count;
  }

  /** The first that may go on. */
  choose(hasQuota: boolean): RetainedFeed | undefined {
    const loaded = this.#loaded;
    for (let at = 0; at < loaded.length; at++) if (hasQuota || !loaded[at].needsQuota) return loaded[at];
    return undefined;
  }

  /** The next message to hand out of one of them; undefined when that was all, and then it is forgotten. */
  next(feed: RetainedFeed): Message | undefined {
    const { waiting } = feed;
    const message = feed.next();
    this.#waiting -= waiting - feed.waiting;
    if (feed.waiting > 0) return message;
    this.#loaded.splice(this.#loaded.indexOf(feed), 1);
    if (feed.needsQuota) this.#onDone(feed.subscription);
    return message;
  }

  /** The connection has gone: what was to go out at QoS 1 and 2 waits for the next one. */
  unload(): void {
    const asked = [...this.#asked.values()];
    this.#asked = new Map();
    for (const feed of this.#loaded) if (feed.needsQuota && feed.waiting > 0) this.ask(feed.unload());
    for (const feed of asked) {
      feed.isDeferred = false; // that SUBACK will never be
      this.ask(feed);
    }
    this.#loaded = [];
    this.#waiting = 0;
  }

  /** Those in which a message may still wait that a newer one must not overtake. */
  *[Symbol.iterator](): IterableIterator<RetainedFeed> {
    yield* [...this.#loaded];
    let left = ASKED_AHEAD;
    for (const feed of this.#asked.values()) {
      if (left-- === 0) return;
      yield feed;
    }
  }
}
