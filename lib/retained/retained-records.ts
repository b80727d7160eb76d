import { TextMap } from '../base/text-map.ts';
import type { Message } from '../packets/message.ts';
import { Kind } from '../store/keys.ts';
import type { Durable, Ledger } from '../store/ledger.ts';
import { writeMessage } from '../store/message-record.ts';
import type { Draft } from '../store/record.ts';
import type { RetainedMessages } from './retained-messages.ts';
import type { RetainedEntry } from './retained-store.ts';

/** What recording retained messages asks of the broker. */
export interface RetainedRecordsHost {
  readonly ledger: Ledger | undefined;
  readonly retained: RetainedMessages;
  readonly retainer: { retainAgain(topic: string, before: RetainedEntry<Message> | undefined): void };
}

/** A topic whose retained message has changed since it was last written. */
export class RetainedChange {
  /** Should the commit fail, `before` is retained again. */
  isRevocable = false;
  /** undefined: nothing was. */
  before: RetainedEntry<Message> | undefined = undefined;
  /** The store holds a message of this topic. */
  isStored: boolean;
  /** It does if the commit that failed last was kept after all. */
  isStoredIfKept: boolean;

  constructor(isStored: boolean) {
    this.isStored = this.isStoredIfKept = isStored;
  }
}

/**
 * Which retained messages have changed. A topic is noted only while it is retained, or the store may hold it: strangers choose topics,
 * and while the store fails there is no end of them.
 */
export class RetainedRecords implements Durable {
  isDirty = false;
  readonly #host: RetainedRecordsHost;
  #topics = new TextMap<RetainedChange>();
  #writing = new TextMap<RetainedChange>();
  /** Last commit in the store when this was written. */
  #lastCommit = 0;

  constructor(host: RetainedRecordsHost) {
    this.#host = host;
  }

  /**
   * Another message is retained, or none.
   * @param isRetained one is
   * @param before what was until now, whether its time was over or not
   * @param isRevocable who has changed it is told should that not be kept
   * @returns false if that changes nothing
   */
  changed(
    topic: string,
    isRetained: boolean,
    before: RetainedEntry<Message> | undefined,
    isRevocable: boolean
  ): boolean {
    let change = this.#topics.get(topic);
    if (change === undefined) {
      if (before === undefined && !isRetained && !this.#writing.has(topic)) return false;
      this.#topics.set(topic, (change = new RetainedChange(before !== undefined)));
    }
    if (!isRevocable) stand(change);
    else if (!change.isRevocable) {
      // of several such changes none stands, if their commit fails
      change.isRevocable = true;
      change.before = before;
    }
    if (!isRetained && !this.#writing.has(topic) && isSettled(change)) this.#topics.delete(topic);
    return true;
  }

  /** What the store holds of a topic is retained no longer. */
  removed(topic: string): void {
    const change = this.#topics.get(topic);
    if (change === undefined) this.#topics.set(topic, new RetainedChange(true));
    else {
      stand(change);
      if (!this.#writing.has(topic) && isSettled(change)) this.#topics.delete(topic);
    }
  }

  write(draft: Draft): void {
    const { retained, ledger } = this.#host;
    const commit = ledger?.commit ?? 0;
    const isKept = commit > this.#lastCommit; // after a failure that was not known
    this.#lastCommit = commit;
    const writing = this.#topics;
    this.#topics = new TextMap();
    this.#writing = writing;
    writing.forEach((change, topic) => {
      if (isKept) change.isStored = change.isStoredIfKept;
      else change.isStoredIfKept = change.isStored;
      const entry = retained.get(topic);
      if (entry === undefined && !change.isStored) {
        if (isSettled(change)) writing.delete(topic);
        return;
      }
      change.isStoredIfKept = entry !== undefined;
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

  commitFailed(): void {
    const changed = this.#topics;
    this.#writing.forEach((change, topic) => {
      const later = changed.get(topic);
      if (later !== undefined && !(later.isRevocable && change.isRevocable)) {
        change.isRevocable = later.isRevocable;
        change.before = later.before;
      }
      changed.set(topic, change);
    });
    this.#writing = new TextMap();
    changed.forEach((change, topic) => {
      if (change.isRevocable) this.#host.retainer.retainAgain(topic, change.before);
      stand(change);
    });
  }
}

/** The change is to stay, whatever becomes of its commit. */
function stand(change: RetainedChange): void {
  change.isRevocable = false;
  change.before = undefined;
}

/** If nothing is retained, there is nothing to be written either. */
function isSettled({ isStored, isStoredIfKept, before }: RetainedChange): boolean {
  return !isStored && !isStoredIfKept && before === undefined;
}
