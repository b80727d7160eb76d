// Two linked lists share the entries: all of them by age, and those of each key, so that an entry is removed in
// constant time wherever it is. The entries of a key, its queue, are sent in order, and a queue is in one state at a
// time; only an entry whose record is committed can be taken. A queue waits after a failure even if the entry is
// dropped: otherwise thousands of entries that were too old were each tried once without a delay.

import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';

/** An entry to be delivered to the target of an outbox. */
export interface OutboxEntry {
  /** A unique id, which is the same at each attempt, also after a restart of the process. */
  readonly id: string;
  /** Entries of one key are delivered in the order in which they were added. */
  readonly key: string;
  /** The content, as it was added. */
  readonly content: string | Buffer;
  /** Wall-clock time in milliseconds. */
  readonly addedAt: number;
  /** Number of failed attempts of this process so far. */
  readonly attempts: number;
}

/** The reason why an entry has left its outbox. */
export type Outcome =
  /** The entry was delivered. */
  | 'sent'
  /** The outbox was full, and the entry was the oldest one or larger than the limit. */
  | 'overflow'
  /** A delivery failed, and the entry is older than `maxAge`. */
  | 'too_old'
  /** The target will never accept the entry; see `SendError.isFinal`. */
  | 'refused'
  /** The entry was removed by `clear`. */
  | 'removed';

/** An entry as stored in its record. */
export type StoredEntry = Omit<OutboxEntry, 'attempts'>;

/** Approximate memory of an entry besides its content and key, in bytes. */
const OVERHEAD_BYTES = 250;

/** An entry of `Entries`, which only that class modifies. */
export class QueuedEntry implements OutboxEntry {
  readonly id: string;
  readonly key: string;
  readonly content: string | Buffer;
  readonly addedAt: number;
  readonly bytes: number;
  attempts = 0;
  /** False if the entry must not be sent yet, because its record is not committed. */
  isCommitted: boolean;
  isSending = false;
  /** The queue of its key; undefined if the entry has left the outbox. */
  queue: KeyQueue | undefined;
  /** The neighbours among all entries, and among those of the queue. */
  older: QueuedEntry | undefined = undefined;
  newer: QueuedEntry | undefined = undefined;
  before: QueuedEntry | undefined = undefined;
  after: QueuedEntry | undefined = undefined;

  constructor({ id, key, content, addedAt }: StoredEntry, isCommitted: boolean, queue: KeyQueue, keptBytes: number) {
    this.id = id;
    this.key = key;
    this.content = content;
    this.addedAt = addedAt;
    this.bytes = content.length + key.length + OVERHEAD_BYTES + keptBytes;
    this.isCommitted = isCommitted;
    this.queue = queue;
  }
}

/** The entries of one key. As a timer, it fires when they may be sent again after a failure. */
class KeyQueue extends BaseTimer {
  readonly key: string;
  /**
   * `ready`: in the list of queues that may send; `waiting`: for its timer; `resting`: it has no entry that may be sent.
   */
  state: 'resting' | 'ready' | 'sending' | 'waiting' = 'resting';
  oldest: QueuedEntry | undefined = undefined;
  newest: QueuedEntry | undefined = undefined;
  /** Number of failures since the last success. */
  failures = 0;
  readonly owner: Entries;

  constructor(key: string, owner: Entries) {
    super();
    this.key = key;
    this.owner = owner;
  }

  ring(): void {
    this.owner.rung(this);
  }
}

/**
 * The entries of an outbox, in order of arrival and by key. This class determines which entries may be sent, but not
 * when.
 */
export class Entries {
  /** Number of entries, including those being sent. */
  size = 0;
  bytes = 0;
  readonly #wheel: TimingWheel;
  readonly #onReady: () => void;
  readonly #queues = new Map<string, KeyQueue>();
  #oldest: QueuedEntry | undefined;
  #newest: QueuedEntry | undefined;
  /**
   * Queues that may send, in turn; those before `#readyAt` have been taken. A queue whose state is no longer `ready` is
   * skipped.
   */
  #ready: KeyQueue[] = [];
  #readyAt = 0;

  /** @param onReady called when a queue becomes ready to send */
  constructor(wheel: TimingWheel, onReady: () => void) {
    this.#wheel = wheel;
    this.#onReady = onReady;
  }

  /** All entries, the oldest first. */
  *[Symbol.iterator](): Iterator<QueuedEntry> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.newer) yield entry;
  }

  /**
   * Add the newest entry.
   * @param isCommitted whether it may already be sent
   * @param keptBytes memory that is retained for it besides its content
   */
  add(stored: StoredEntry, isCommitted: boolean, keptBytes = 0): QueuedEntry {
    let queue = this.#queues.get(stored.key);
    if (queue === undefined) this.#queues.set(stored.key, (queue = new KeyQueue(stored.key, this)));
    const entry = new QueuedEntry(stored, isCommitted, queue, keptBytes);
    entry.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
    entry.before = queue.newest;
    if (queue.newest === undefined) queue.oldest = entry;
    else queue.newest.after = entry;
    queue.newest = entry;
    this.size++;
    this.bytes += entry.bytes;
    if (isCommitted) this.#wake(queue);
    return entry;
  }

  /** Note that the record of an entry is committed: it may be sent. */
  committed(entry: QueuedEntry): void {
    entry.isCommitted = true;
    if (entry.queue !== undefined) this.#wake(entry.queue);
  }

  /** The oldest entry that is not being sent. */
  get oldestAtRest(): QueuedEntry | undefined {
    for (const entry of this) if (!entry.isSending) return entry; // the entries being sent are few, and old
    return undefined;
  }

  /** Remove an entry. @returns false if it has already been removed */
  remove(entry: QueuedEntry): boolean {
    const { queue, older, newer, before, after } = entry;
    if (queue === undefined) return false;
    entry.queue = undefined;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    if (before === undefined) queue.oldest = after;
    else before.after = after;
    if (after === undefined) queue.newest = before;
    else after.before = before;
    entry.older = entry.newer = entry.before = entry.after = undefined;
    this.size--;
    this.bytes -= entry.bytes;
    if (queue.oldest === undefined && queue.state !== 'sending') this.#forget(queue);
    else if (queue.state === 'ready' && !queue.oldest?.isCommitted) queue.state = 'resting';
    return true;
  }

  /** True if there is an entry that may be sent now. */
  get isReady(): boolean {
    this.#passOver();
    return this.#readyAt < this.#ready.length;
  }

  /**
   * Take entries to be sent, from the queues in turn. An entry that has failed before is sent alone.
   * @param most maximum number of entries
   */
  take(most: number): QueuedEntry[] {
    const taken: QueuedEntry[] = [];
    while (taken.length < most && this.isReady) {
      const queue = this.#ready[this.#readyAt];
      const isAgain = (queue.oldest?.attempts ?? 0) > 0;
      if (isAgain && taken.length > 0) break;
      this.#readyAt++;
      queue.state = 'sending';
      const limit = isAgain ? 1 : most;
      for (let entry = queue.oldest; entry?.isCommitted && taken.length < limit; entry = entry.after) {
        if (entry.attempts > 0 && !isAgain) break;
        entry.isSending = true;
        taken.push(entry);
      }
      if (isAgain) break;
    }
    return taken;
  }

  /**
   * Note that entries that were taken are no longer being sent. Delivered and dropped entries have been removed before.
   * @param attempts number to be added to the attempts of the entries; 0 if they have not failed
   * @param delayMs delay until entries of their keys may be sent again, by the number of failures of the key
   */
  settle(
    taken: readonly QueuedEntry[],
    keys: readonly string[],
    attempts: number,
    delayMs: (failures: number) => number
  ): void {
    for (const entry of taken) {
      entry.isSending = false;
      entry.attempts += attempts;
    }
    for (const key of keys) {
      const queue = this.#queues.get(key);
      if (queue?.state !== 'sending') continue;
      const { oldest } = queue;
      queue.state = 'resting';
      queue.failures = attempts === 0 ? 0 : queue.failures + attempts;
      if (oldest === undefined) this.#forget(queue);
      else if (attempts === 0) this.#wake(queue);
      else {
        queue.state = 'waiting'; // also if the failed entry is dropped, because the next one would fail, too
        this.#wheel.arm(queue, delayMs(queue.failures));
      }
    }
  }

  /** End the back-off of a queue. */
  rung(queue: KeyQueue): void {
    if (queue.state !== 'waiting') return;
    queue.state = 'resting';
    this.#wake(queue);
  }

  /** End all back-offs. */
  wakeAll(): void {
    for (const queue of this.#queues.values()) {
      this.#wheel.disarm(queue);
      this.rung(queue);
    }
  }

  #wake(queue: KeyQueue): void {
    if (queue.state !== 'resting' || !queue.oldest?.isCommitted) return;
    queue.state = 'ready';
    // while nothing is taken, queues are added and removed
    if (this.#ready.length > 64 && this.#ready.length - this.#readyAt > 2 * this.#queues.size) this.#sweep();
    this.#ready.push(queue);
    this.#onReady();
  }

  #forget(queue: KeyQueue): void {
    this.#wheel.disarm(queue);
    queue.state = 'resting';
    this.#queues.delete(queue.key);
  }

  /** Remove the queues that are no longer ready. */
  #sweep(): void {
    const ready = new Set<KeyQueue>();
    for (const queue of this.#ready.slice(this.#readyAt)) if (queue.state === 'ready') ready.add(queue);
    this.#ready = [...ready];
    this.#readyAt = 0;
  }

  #passOver(): void {
    const ready = this.#ready;
    while (this.#readyAt < ready.length && ready[this.#readyAt].state !== 'ready') this.#readyAt++;
    if (this.#readyAt < 64 || this.#readyAt < ready.length / 2) return;
    this.#ready = ready.slice(this.#readyAt);
    this.#readyAt = 0;
  }
}
