import type { Draft } from './record.ts';

/**
 * The meaning of a failed commit for the changes in it:
 *
 * - `unknown`: they are refused, and the store may contain them;
 * - `untouched`: they are refused, and the store does not contain them;
 * - `retried`: the store does not contain them, and the next commit writes them again. Nothing is refused.
 */
export type CommitFailure = 'unknown' | 'untouched' | 'retried';

/** A persisted object. It tracks what has changed since it was last written. */
export interface Durable {
  /** True if the object is in the ledger's list of changed objects. Only the ledger sets it. */
  isDirty: boolean;
  /**
   * Write everything that has changed since the last call.
   * @param journal for records that will soon change again; undefined: write to `draft` everything that was written to journals since the
   * last call without a journal, as far as it is still valid
   * @param mostBytes size at which the batch of `draft` is full. An object with many records leaves the others for the next commit, and
   * notes that it is changed (`Ledger.touch`). Infinity except after the store has refused a larger commit
   */
  write(draft: Draft, journal: Draft | undefined, mostBytes: number): void;
  /** Called when the last `write` has been committed. */
  committed(): void;
  /**
   * Called when a commit has failed. The object must write the changes of the last `write` again, and refuse, except if the changes are
   * `retried`, these and later changes that were promised to clients. It is in the ledger's list of changed objects.
   */
  commitFailed(failure: CommitFailure): void;
}

/** An object that waits for commits. */
export interface Waiter {
  /** Called when all commits up to this one are in the store. @returns false if the object no longer waits */
  commitSucceeded(ticket: number): boolean;
  /**
   * Called when the commits up to this one have failed. To continue waiting, take another ticket. @returns false if the object no longer
   * waits
   */
  commitFailed(ticket: number, error: Error): boolean;
}
