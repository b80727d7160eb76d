/** A record of a store: a key and its value. */
export interface Entry {
  /** The key; keys are ordered by their bytes. */
  readonly key: Buffer;
  /** The value. */
  readonly value: Buffer;
}

/**
 * A list of changes that a store commits together or not at all. Changes apply in the order in which they were added: the last change of a
 * key wins. Buffers are not copied, so they must not be changed until the commit has settled.
 */
export class Batch {
  /** Keys of the changes. */
  readonly keys: Buffer[] = [];
  /** Values of the changes, by the index of the key; undefined: the key is deleted. */
  readonly values: (Buffer | undefined)[] = [];
  /** Total size of keys and values, in bytes. */
  bytes = 0;

  /** Number of changes. */
  get length(): number {
    return this.keys.length;
  }

  /** Set the value of a key. An existing value is replaced. */
  put(key: Buffer, value: Buffer): void {
    this.keys.push(key);
    this.values.push(value);
    this.bytes += key.length + value.length;
  }

  /** Delete a key and its value. Has no effect if the key does not exist. */
  delete(key: Buffer): void {
    this.keys.push(key);
    this.values.push(undefined);
    this.bytes += key.length;
  }
}

/** The content of a store at one moment, regardless of later commits. */
export interface StoreSnapshot {
  /** Read entries, as `Store.read`. @throws StateError STORE_CLOSED also if the store was closed since; errors of the storage medium */
  read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]>;
  /** Release the resources of the snapshot. Closing a closed snapshot has no effect. */
  close(): Promise<void>;
}

/**
 * The storage that a broker uses for state that must survive its process: a map from keys to values, both of bytes, ordered by the bytes of
 * the keys. The broker decides what is stored and when it is deleted.
 *
 * The broker calls `open` first. It has at most one `commit` in progress, and may call `read` at the same time. After a failed commit it
 * calls `close` and `open` on the same store until it opens. Calls of `open`, `close` and `repair` never overlap. `storeContract` of
 * `embermq/testing` tests an implementation.
 */
export interface Store {
  /** Name of the store in errors and events, for example its folder. */
  readonly name: string;
  /**
   * Open the store, and create it if it does not exist. It can be opened again after `close`. Opening an open store has no effect.
   * @throws BrokerError STORE_LOCKED if another process uses the store; STORE_DAMAGED only if committed records are lost or altered;
   *   STORE_UNUSABLE if it cannot be opened for another reason, such as a full disk or a missing permission. `cause` is the original error
   */
  open(): Promise<void>;
  /**
   * Write all changes of a batch, or none of them.
   *
   * When the promise resolves, the batch is as durable as the store promises, and `read` returns it. When it rejects, either all of the
   * batch is written or nothing; which of the two is known after the store has been opened again. If the property `isUntouched` of the
   * error is true, nothing was written and the store is still usable: the broker does not close it, and tries smaller commits.
   * @throws StateError STORE_CLOSED if the store is not open; any error of the storage medium
   */
  commit(batch: Batch): Promise<void>;
  /**
   * Read the entries whose key is at least `from` and less than `to`, in order.
   * @param limit maximum number of entries, at least 1. Fewer entries are returned only if there are no more
   * @returns entries whose buffers belong to the caller
   * @throws StateError STORE_CLOSED if the store is not open; BrokerError STORE_DAMAGED as for `open`; any error of the storage medium
   */
  read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]>;
  /**
   * Keep the currently committed content readable, for a backup while the broker writes. `close` of the store ends all snapshots. Stores
   * that cannot do this omit this method.
   * @throws StateError STORE_CLOSED if the store is not open
   */
  snapshot?(): Promise<StoreSnapshot>;
  /**
   * Make a damaged store usable again, without the records that cannot be recovered. The store is closed while it is repaired.
   *
   * Called only if `open` or `read` failed with STORE_DAMAGED and the user has asked for a repair. Intact records must be preserved, even
   * if the repair fails. Stores that cannot be repaired omit this method.
   * @throws BrokerError STORE_LOCKED, STORE_UNUSABLE; any error of the storage medium
   */
  repair?(): Promise<void>;
  /**
   * Get the approximate size of the store in bytes, including the space of deleted records that `compact` could free.
   * @throws StateError STORE_CLOSED if the store is not open
   */
  size?(): Promise<number>;
  /**
   * Free the space of deleted records. Commits and reads continue in the meantime; `close` ends the compaction early.
   *
   * The broker calls it when its records take much less space than `size` returns. Stores in which deleting frees the space omit this
   * method and `size`.
   * @throws StateError STORE_CLOSED if the store is not open; any error of the storage medium
   */
  compact?(): Promise<void>;
  /**
   * Get the number of bytes that can be written before the reserve of the store is used; negative while the reserve is in use.
   *
   * The broker calls it about once a second while it writes, and after a failed commit. If little space is left, new messages displace the
   * oldest messages of the largest backlogs. Below 0, the broker refuses everything that would make the store grow (option
   * `maxTotalMqueueStoreBytes`). Without this method, the free space does not limit the store.
   * @throws StateError STORE_CLOSED if the store is not open; any error of the storage medium
   */
  freeBytes?(): Promise<number>;
  /**
   * Close the store. Resolves when all calls in progress have settled and all resources are released. Closing a closed store has no effect.
   */
  close(): Promise<void>;
}
