import { TextMap } from '../base/collections/text-map.ts';
import type { Message } from '../packets/message.ts';
import type { CommitFailure, Durable } from '../store/durable.ts';
import { Kind } from '../store/keys.ts';
import type { Ledger } from '../store/ledger.ts';
import { writeMessage } from '../store/message-record.ts';
import type { Draft } from '../store/record.ts';
import type { RetainedMessages } from './retained-messages.ts';
import type { RetainedEntry } from './retained-store.ts';

/** The part of the broker that `RetainedRecords` uses. */
interface RetainedRecordsHost {
  readonly messages: RetainedMessages;
  /** Undo a change whose commit failed. @param before the message to retain again; undefined: none */
  retainAgain(topic: string, before: RetainedEntry<Message> | undefined): void;
}

/** Approximate size of a change until it is written. */
const CHANGE_BYTES = 64;

/** A topic whose retained message has changed since it was last written. */
export class RetainedChange {
  /** True if `before` is retained again when the commit fails. */
  isRevocable = false;
  /** The previous retained message; undefined if there was none. */
  before: RetainedEntry<Message> | undefined = undefined;
  /** True if the store has `before`, so that nothing need be written when it is retained again. */
  isBeforeStored = false;
  /** True if the store has a message of the topic. */
  isStored: boolean;
  /** The value of `isStored` if the last commit, which failed, turns out to have been written. */
  isStoredIfCommitted: boolean;

  constructor(isStored: boolean) {
    this.isStored = this.isStoredIfCommitted = isStored;
  }
}

/**
 * The retained messages that have changed since they were last written.
 *
 * A topic is listed only while it has a retained message or the store may have one. Clients choose topics, so the list would otherwise grow
 * without limit while the store fails.
 */
export class RetainedRecords implements Durable {
  isDirty = false;
  readonly #ledger: Ledger;
  readonly #host: RetainedRecordsHost;
  #topics = new TextMap<RetainedChange>();
  #writing = new TextMap<RetainedChange>();
  /** Number of the last commit in the store at the time of the last `write`. */
  #lastCommit = 0;

  constructor(ledger: Ledger, host: RetainedRecordsHost) {
    this.#ledger = ledger;
    this.#host = host;
  }

  /**
   * Note that a message is retained, or that the retained message of its topic was deleted. @param before the previous retained message of
   * the topic
   */
  retained(message: Message, isRetained: boolean, before: RetainedEntry<Message> | undefined): void {
    const { topic, ticket, qos, origin } = message;
    const isPromised = qos > 0 || origin === undefined; // the promise of broker.publish waits for it
    if (!this.#changed(topic, isRetained, before, isPromised && ticket > 0)) return;
    if (isPromised) this.#ledger.promise(this, CHANGE_BYTES);
    else this.#ledger.touch(this, CHANGE_BYTES);
  }

  /**
   * Note that the retained message of a topic was deleted without another message, and that a promise waits for this. @param before the
   * message
   */
  deleted(before: RetainedEntry<Message>): void {
    this.#changed(before.topic, false, before, true);
    this.#ledger.promise(this, CHANGE_BYTES);
  }

  /** Write the record of a retained message again, because it lacks the position of the message in the order. */
  placed(topic: string): void {
    this.#changed(topic, true, this.#host.messages.get(topic), false);
    this.#ledger.touch(this, CHANGE_BYTES);
  }

  /**
   * Note that the retained message of a topic was set, replaced or deleted.
   * @param isRetained true if the topic has a retained message now
   * @param before the previous retained message, even if it had expired
   * @param isRevocable true if the publisher is refused after a failed commit; the change is then undone
   * @returns false if there is nothing to write
   */
  #changed(
    topic: string,
    isRetained: boolean,
    before: RetainedEntry<Message> | undefined,
    isRevocable: boolean
  ): boolean {
    let change = this.#topics.get(topic);
    if (change === undefined) {
      const isInCommit = this.#writing.has(topic);
      if (before === undefined && !isRetained && !isInCommit) return false;
      this.#topics.set(topic, (change = new RetainedChange(before !== undefined)));
      change.isBeforeStored = !isInCommit;
    }
    if (!isRevocable) makePermanent(change);
    else if (!change.isRevocable) {
      // if the commit of several such changes fails, all of them are undone: `before` is that of the first
      change.isRevocable = true;
      change.before = before;
    }
    if (!isRetained && !this.#writing.has(topic) && isSettled(change)) this.#topics.delete(topic);
    return true;
  }

  /** Note that the retained message of a topic was removed, because it has expired or there is no room for it. Its record is deleted. */
  removed(topic: string): void {
    const change = this.#topics.get(topic);
    if (change === undefined) this.#topics.set(topic, new RetainedChange(true));
    else {
      makePermanent(change);
      if (!this.#writing.has(topic) && isSettled(change)) this.#topics.delete(topic);
    }
    this.#ledger.touch(this, CHANGE_BYTES);
  }

  write(draft: Draft, _journal: Draft | undefined, mostBytes: number): void {
    const { messages } = this.#host;
    const { commit } = this.#ledger;
    const isCommitted = commit > this.#lastCommit; // if the previous commit failed, this has been known since the store was opened again
    this.#lastCommit = commit;
    const writing = this.#topics;
    this.#topics = new TextMap();
    this.#writing = writing;
    writing.forEach((change, topic) => {
      if (isCommitted) change.isStored = change.isStoredIfCommitted;
      else change.isStoredIfCommitted = change.isStored;
      if (draft.batch.bytes >= mostBytes) {
        writing.delete(topic);
        this.#topics.set(topic, change);
        this.#ledger.touch(this);
        return;
      }
      const entry = messages.get(topic);
      if (entry === undefined && !change.isStored) {
        if (isSettled(change)) writing.delete(topic);
        return;
      }
      change.isStoredIfCommitted = entry !== undefined;
      draft.key(Kind.retained).tail(topic);
      if (entry === undefined) draft.delete();
      else {
        writeMessage(draft.value(), entry.message, undefined);
        draft.varint(entry.seq).put();
      }
    });
  }

  committed(): void {
    this.#writing = new TextMap();
  }

  commitFailed(failure: CommitFailure): void {
    const changed = this.#topics;
    this.#writing.forEach((change, topic) => {
      if (failure !== 'unknown') change.isStoredIfCommitted = change.isStored;
      const later = changed.get(topic);
      if (later !== undefined && !(later.isRevocable && change.isRevocable)) {
        change.isRevocable = later.isRevocable;
        change.before = later.before;
        change.isBeforeStored = false;
      }
      changed.set(topic, change);
    });
    this.#writing = new TextMap();
    if (failure === 'retried') return;
    changed.forEach((change, topic) => {
      const isUndone = change.isRevocable && change.isBeforeStored && failure === 'untouched';
      if (change.isRevocable) this.#host.retainAgain(topic, change.before);
      makePermanent(change);
      if (isUndone) changed.delete(topic);
    });
  }
}

/** Keep a change even if its commit fails. */
function makePermanent(change: RetainedChange): void {
  change.isRevocable = change.isBeforeStored = false;
  change.before = undefined;
}

/** Tell whether nothing needs to be written for a topic that has no retained message. */
function isSettled({ isStored, isStoredIfCommitted, before }: RetainedChange): boolean {
  return !isStored && !isStoredIfCommitted && before === undefined;
}
