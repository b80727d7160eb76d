/** One record of a store. */
export interface Entry {
  readonly key: Buffer;
  readonly value: Buffer;
}

/**
 * Changes that are kept all or not at all, in the order in which they were added: a later one of the same key wins. What is handed in
 * is not copied: the buffers stay as they are until the commit has settled.
 */
export class Batch {
  readonly keys: Buffer[] = [];
  /** `undefined` at a place: its key is deleted. */
  readonly values: (Buffer | undefined)[] = [];
  /** Of all keys and values. */
  bytes = 0;

  /** How many changes. */
  get length(): number {
    return this.keys.length;
  }

  /** Keep a value under a key, in place of the one that is there. */
  put(key: Buffer, value: Buffer): void {
    this.keys.push(key);
    this.values.push(value);
    this.bytes += key.length + value.length;
  }

  /** Take a key out with its value; nothing happens where it is not there. */
  delete(key: Buffer): void {
    this.keys.push(key);
    this.values.push(undefined);
    this.bytes += key.length;
  }
}

/**
 * Where a broker keeps what must outlive its process: records of bytes under keys of bytes, in the order of the keys' bytes. What is
 * kept, and when it goes, is not a store's business.
 *
 * The broker calls `open` first and `commit` one at a time, `read` also meanwhile; after a commit that failed it calls `close` and
 * `open` on the same store, until it opens. It calls none of `open`, `close` and `repair` before the last of these has settled. `storeContract` of `embermq/testing` tries an implementation.
 */
export interface Store {
  /** How the store is named in errors and events, such as its folder. */
  readonly name: string;
  /**
   * Make it ready; at the first time, make it. Also after `close`. Opening what is open does nothing.
   * @throws BrokerError STORE_LOCKED when another process has it; STORE_DAMAGED when what it has kept is lost or not as it was written, and
   *   only then; STORE_UNUSABLE when it cannot be opened for another reason, such as a full disk or a right that is wanting. `cause` has the
   *   original
   */
  open(): Promise<void>;
  /**
   * Keep a batch, all or nothing. When the promise resolves the batch has survived whatever the store promises to survive, and `read`
   * shows it. When it rejects, either all of it is kept or nothing;
   * which of the two shows when the store was opened again. An error whose `isUntouched` is true says that nothing was written and that the
   * store stays usable: it is not closed, and smaller commits are tried on it.
   * @throws StateError STORE_CLOSED when it is not open; what the medium says
   */
  commit(batch: Batch): Promise<void>;
  /**
   * Entries whose key is at least `from` and less than `to`, in order.
   * @param limit most entries to give; at least 1. Fewer than that come only when there are no more
   * @returns buffers of the caller's own
   * @throws StateError STORE_CLOSED when it is not open; BrokerError STORE_DAMAGED as `open` does; what the medium says
   */
  read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]>;
  /**
   * Make openable again what is damaged, without what can not be saved; it is not open meanwhile. Called only when `open` or `read` failed with
   * STORE_DAMAGED and the user has said that he wants to go on. What is sound must stay, also where the repair fails. Left out where there
   * is nothing that could be done.
   * @throws BrokerError STORE_LOCKED, STORE_UNUSABLE; what the medium says
   */
  repair?(): Promise<void>;
  /**
   * Bytes that all records take, those of deleted ones included that `compact` could give back; roughly.
   * @throws StateError STORE_CLOSED when it is not open
   */
  size?(): Promise<number>;
  /**
   * Give back what deleted records take. Commits and reads go on meanwhile; `close` ends it early. The broker calls it when it keeps much less
   * than `size` says. Left out, with `size`, where deleting gives back the space.
   * @throws StateError STORE_CLOSED when it is not open; what the medium says
   */
  compact?(): Promise<void>;
  /**
   * Bytes that may still be written before the store's reserve is touched; negative when the reserve is in use. The broker asks about once a
   * second while it writes, and after a commit that failed: when little is left, new messages displace the oldest of the largest backlogs, and
   * below 0 it refuses what would make the store grow (option `maxTotalMqueueStoreBytes`). Left out where space is no concern: the store has no
   * bound by space then.
   * @throws StateError STORE_CLOSED when it is not open; what the medium says
   */
  freeBytes?(): Promise<number>;
  /** Resolves when all that is under way has settled and everything is released. Closing what is closed does nothing. */
  close(): Promise<void>;
}
