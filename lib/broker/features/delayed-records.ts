import type { DelayedMessage } from '../../store/delayed-record.ts';
import type { CommitFailure, Durable } from '../../store/durable.ts';
import { Kind } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import { writeMessage } from '../../store/message-record.ts';
import type { Draft } from '../../store/record.ts';
import type { DelayedMessages } from './delayed.ts';

/** The records of delayed messages in the store. */
export class DelayedRecords implements Durable {
  isDirty = false;
  readonly #ledger: Ledger;
  readonly #delayed: DelayedMessages;
  #number = 0;
  #numbers = new Map<DelayedMessage, number>();
  #changed = new Map<number, DelayedMessage | undefined>();
  #writing = new Map<number, DelayedMessage | undefined>();
  /** The changes of a commit that failed. */
  #lost = new Map<number, DelayedMessage | undefined>();
  /** The highest number that was written, and the highest number that may be in the store. A failed commit may be in the store or not. */
  #written = 0;
  #stored = 0;
  /** The last commit in the store at the time of the last write. */
  #lastCommit = 0;

  constructor(ledger: Ledger, delayed: DelayedMessages) {
    this.#ledger = ledger;
    this.#delayed = delayed;
  }

  /** A message is delayed. */
  added(waiting: DelayedMessage): void {
    this.#numbers.set(waiting, ++this.#number);
    this.#changed.set(this.#number, waiting);
    this.#ledger.promise(this, waiting.message.bytes + 64);
  }

  /** A message has been published. */
  removed(waiting: DelayedMessage): void {
    this.#remove(waiting);
    this.#ledger.promise(this);
  }

  #remove(waiting: DelayedMessage): void {
    const number = this.#numbers.get(waiting);
    if (number === undefined) return;
    this.#numbers.delete(waiting);
    if (number > this.#written) this.#changed.delete(number);
    else this.#changed.set(number, undefined);
  }

  /** A message is delayed again that is in the store. @param number its number there */
  restored(waiting: DelayedMessage, number: number): void {
    this.#number = this.#written = this.#stored = Math.max(this.#number, number);
    this.#numbers.set(waiting, number);
  }

  write(draft: Draft): void {
    const { commit } = this.#ledger;
    if (commit > this.#lastCommit) {
      this.#stored = this.#written;
      // The commit that was reported as failed is in the store after all.
      for (const [number, waiting] of this.#lost)
        if (this.#changed.get(number) === waiting) this.#changed.delete(number);
    }
    this.#lost = new Map();
    this.#lastCommit = commit;
    this.#written = this.#number;
    this.#writing = this.#changed;
    this.#changed = new Map();
    for (const [number, waiting] of this.#writing) {
      if (waiting === undefined && number > this.#stored) {
        this.#writing.delete(number);
        continue;
      }
      draft.key(Kind.delayed).u48(number);
      if (waiting === undefined) {
        draft.delete();
        continue;
      }
      draft.value().f64(waiting.dueWallMs).text(waiting.topic);
      writeMessage(draft, waiting.message, undefined);
      draft.put();
    }
  }

  committed(): void {
    this.#stored = this.#written;
    this.#writing = new Map();
  }

  commitFailed(failure: CommitFailure): void {
    this.#changed = new Map([...this.#writing, ...this.#changed]);
    if (failure === 'unknown') this.#lost = this.#writing;
    else if (this.#writing.size > 0) this.#written = this.#stored;
    this.#writing = new Map();
    if (failure === 'retried') return;
    for (const waiting of this.#changed.values()) {
      if (waiting === undefined || waiting.message.ticket <= this.#ledger.settled) continue;
      this.#delayed.cancel(waiting); // the publisher gets the refusal
      this.#remove(waiting);
    }
  }
}
