// The largest queues give way first. All queues together are bounded by half the watermark. Queues stand in rings by
// powers of two of their size, so the largest is found in a few steps with any number of sessions. A message in
// several queues counts once. An online session that sends at once touches none of this. V8 leaves garbage far below
// its heap limit for long, so at the watermark it is asked to collect before anything is refused. 1.5 GB for 60
// offline sessions with a watermark of 220 MB: 280 MB resident instead of 1,460, every publish acknowledged
// (`test/queue-flood.ts`).

import { BySize, Sized } from '../base/collections/by-size.ts';
import type { DropReason } from '../events/reasons.ts';
import { addedToBacklog, type Message, removedFromBacklog } from '../packets/message.ts';

/** Approximate memory of an entry of a queue, without the message. */
const ENTRY_BYTES = 96;
/** Approximate memory of a message, without its packet. */
const MESSAGE_BYTES = 256;
/** Above this share of the limit, persisted messages are not read into memory ahead of their turn. */
const NEARLY = 7 / 8;

/** The messages of a session in memory, as the limit on those of all sessions sees them. */
export abstract class Shortenable extends Sized {
  /** Drop the oldest message of the lowest priority that is not persisted. @returns false if there is none */
  abstract dropOldestUnpersisted(reason: DropReason): boolean;
}

/** The queue of a session in the store, as the limit on all queues sees it. */
export abstract class StoredQueue extends Sized {
  /** Drop the oldest committed messages of the lowest priority until at most `mostBytes` of them wait, as far as this is possible now. */
  abstract shorten(mostBytes: number): Promise<void>;
}

/**
 * The queues of all sessions: their memory, with its limit `maxTotalMqueueBytes`, and their bytes in the store.
 *
 * A message that waits in several queues is in memory once, and counts once. Above the limit, messages are dropped from the largest
 * queues.
 */
export class TotalBacklog {
  /** Approximate memory of all queues. */
  bytes = 0;
  /** Bytes of all persisted messages, including those in flight and those that are being handed over. */
  storedBytes = 0;
  /** The queues in the store, by the bytes that wait in each. */
  readonly inStore = new BySize<StoredQueue>();
  /** 0: unlimited. */
  #limit: number;
  /** The queues in memory by the bytes of their unpersisted messages. Persisted messages are not dropped to free memory. */
  readonly #bySize = new BySize<Shortenable>();
  /** Bytes that `shorten` still has to free. */
  #excess = 0;
  #isShortening = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Change the limit, and drop messages beyond it. */
  limit(limit: number): void {
    this.#limit = limit;
    this.shorten();
  }

  /** True if persisted messages should not be read into memory ahead of their turn. */
  get isNearlyFull(): boolean {
    return this.#limit > 0 && this.bytes > this.#limit * NEARLY;
  }

  /** Count a message that was added to a queue. @param unpersistedBytes the new value of that queue */
  added(queue: Shortenable, message: Message, unpersistedBytes: number): void {
    this.bytes += ENTRY_BYTES;
    if (addedToBacklog(message)) this.bytes += MESSAGE_BYTES + message.bytes;
    this.#bySize.resize(queue, unpersistedBytes);
  }

  /** Count a message that was removed from a queue. @param unpersistedBytes the new value of that queue */
  removed(queue: Shortenable, message: Message, unpersistedBytes: number): void {
    const freed = ENTRY_BYTES + (removedFromBacklog(message) ? MESSAGE_BYTES + message.bytes : 0);
    this.bytes -= freed;
    this.#excess -= freed;
    this.#bySize.resize(queue, unpersistedBytes);
  }

  /** Count a change of a queue in the store. @param more bytes that were added @param waitingBytes the bytes that wait now */
  stored(queue: StoredQueue, more: number, waitingBytes: number): void {
    this.storedBytes += more;
    this.inStore.resize(queue, waitingBytes);
  }

  /**
   * Drop messages from the largest queues until the limit is met. Messages that listeners publish in the meantime count for the next
   * call.
   */
  shorten(): void {
    if (this.#limit === 0 || this.bytes <= this.#limit || this.#isShortening) return;
    this.#excess = this.bytes - this.#limit;
    this.#isShortening = true;
    try {
      while (this.#excess > 0) {
        const largest = this.#bySize.largest();
        if (largest === undefined) return;
        if (!largest.dropOldestUnpersisted('total_queue_full')) this.#bySize.resize(largest, 0);
      }
    } finally {
      this.#isShortening = false;
    }
  }
}
