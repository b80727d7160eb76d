import type { CommitFailure, Durable } from './durable.ts';
import type { Ledger } from './ledger.ts';
import type { Draft } from './record.ts';

/** The part of the owner of the items that `NumberedRecords` uses. */
interface NumberedItems<T> {
  /** The kind of the records; see `Kind`. */
  readonly kind: number;
  /** Write the body of the record of an item. */
  write(draft: Draft, item: T): void;
  /** Called when items were committed. */
  committed?(items: Iterable<T>): void;
  /**
   * Called when the commit that would have contained these items has failed, and the operations that depend on them are refused. @returns
   * those that are withdrawn
   */
  refused?(items: readonly T[]): readonly T[];
}

/** Records of items that are added and removed, but never changed, with a number as their key. */
export class NumberedRecords<T extends object> implements Durable {
  isDirty = false;
  readonly #ledger: Ledger;
  readonly #items: NumberedItems<T>;
  #number = 0;
  #numbers = new Map<T, number>();
  #changed = new Map<number, T | undefined>();
  #writing = new Map<number, T | undefined>();
  /** The changes of a commit that failed. */
  #lost = new Map<number, T | undefined>();
  /** The highest number that was written, and the highest number that may be in the store. A failed commit may be in the store or not. */
  #written = 0;
  #stored = 0;
  /** The last commit in the store at the time of the last write. */
  #lastCommit = 0;

  constructor(ledger: Ledger, items: NumberedItems<T>) {
    this.#ledger = ledger;
    this.#items = items;
  }

  /**
   * Note that an item was added. What happens in this turn is acknowledged when its record is committed. @param bytes approximate size of
   * the record
   */
  added(item: T, bytes: number): void {
    this.#numbers.set(item, ++this.#number);
    this.#changed.set(this.#number, item);
    this.#ledger.promise(this, bytes);
  }

  /** Note that an item was removed. What happens in this turn is acknowledged when its record is deleted. */
  removed(item: T): void {
    this.#remove(item);
    this.#ledger.promise(this);
  }

  /** Note that an item was removed, and that nothing waits for the deletion of its record. */
  forgotten(item: T): void {
    this.#remove(item);
    this.#ledger.touch(this);
  }

  #remove(item: T): void {
    const number = this.#numbers.get(item);
    if (number === undefined) return;
    this.#numbers.delete(item);
    if (number > this.#written) this.#changed.delete(number);
    else this.#changed.set(number, undefined);
  }

  /** Note that an item was read from the store. @param number its number there */
  restored(item: T, number: number): void {
    this.#number = this.#written = this.#stored = Math.max(this.#number, number);
    this.#numbers.set(item, number);
  }

  /** The numbers of all items. */
  numbers(): ReadonlySet<number> {
    return new Set(this.#numbers.values());
  }

  write(draft: Draft): void {
    const { commit } = this.#ledger;
    if (commit > this.#lastCommit) {
      this.#stored = this.#written;
      // The commit that was reported as failed is in the store after all.
      for (const [number, item] of this.#lost) if (this.#changed.get(number) === item) this.#changed.delete(number);
    }
    this.#lost = new Map();
    this.#lastCommit = commit;
    this.#written = this.#number;
    this.#writing = this.#changed;
    this.#changed = new Map();
    for (const [number, item] of this.#writing) {
      if (item === undefined && number > this.#stored) {
        this.#writing.delete(number);
        continue;
      }
      draft.key(this.#items.kind).u48(number);
      if (item === undefined) {
        draft.delete();
        continue;
      }
      this.#items.write(draft.value(), item);
      draft.put();
    }
  }

  committed(): void {
    this.#stored = this.#written;
    const written = this.#writing;
    this.#writing = new Map();
    this.#items.committed?.(present(written));
  }

  commitFailed(failure: CommitFailure): void {
    this.#changed = new Map([...this.#writing, ...this.#changed]);
    if (failure === 'unknown') this.#lost = this.#writing;
    else if (this.#writing.size > 0) this.#written = this.#stored;
    this.#writing = new Map();
    if (failure === 'retried') return;
    for (const item of this.#items.refused?.([...present(this.#changed)]) ?? []) this.#remove(item);
  }
}

function* present<T>(changes: ReadonlyMap<number, T | undefined>): Iterable<T> {
  for (const item of changes.values()) if (item !== undefined) yield item;
}
