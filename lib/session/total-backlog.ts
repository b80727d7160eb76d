import { BySize, Sized } from '../base/by-size.ts';
import type { DropReason } from '../events/events.ts';
import type { Message } from '../packets/message.ts';

/** What an entry of a backlog takes besides its message, and a message besides its packet; roughly. */
const ENTRY_BYTES = 96;
const MESSAGE_BYTES = 256;
/** From this share of the bound on, what the store has is not read ahead of its turn. */
const NEARLY = 7 / 8;

/** A backlog that can be made shorter. */
export abstract class Shortenable extends Sized {
  /** Drop the oldest message of the lowest priority that is not in the store. @returns false if there is none */
  abstract dropOldestUnpersisted(reason: DropReason): boolean;
}

/**
 * The backlogs of all sessions together, in memory: what they take, and what goes when that is more than `maxTotalMqueueBytes`. A message
 * that waits in many of them is in memory once, and counts once.
 */
export class TotalBacklog {
  /** What they take, roughly. */
  bytes = 0;
  /** 0: unlimited. */
  readonly #limit: number;
  /** By the bytes of what is in memory alone: what the store has as well is not lost for want of memory. */
  readonly #bySize = new BySize<Shortenable>();
  /** What `shorten` has still to free. */
  #excess = 0;
  #isShortening = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What is in the store should wait there. */
  get isNearlyFull(): boolean {
    return this.#limit > 0 && this.bytes > this.#limit * NEARLY;
  }

  /** A message waits in one more backlog. @param unpersistedBytes of that backlog, by now */
  added(backlog: Shortenable, message: Message, unpersistedBytes: number): void {
    this.bytes += ENTRY_BYTES;
    if (message.backlogs++ === 0) this.bytes += MESSAGE_BYTES + message.bytes;
    this.#bySize.resize(backlog, unpersistedBytes);
  }

  /** It waits there no longer. */
  removed(backlog: Shortenable, message: Message, unpersistedBytes: number): void {
    const freed = ENTRY_BYTES + (--message.backlogs === 0 ? MESSAGE_BYTES + message.bytes : 0);
    this.bytes -= freed;
    this.#excess -= freed;
    this.#bySize.resize(backlog, unpersistedBytes);
  }

  /** Drop what is too much, from the largest backlogs in turn. What listeners publish meanwhile is for the next time. */
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
