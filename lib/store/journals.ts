import type { Durable } from './durable.ts';
import { Kind } from './keys.ts';
import type { Draft } from './record.ts';

/** Limits of journals, in bytes, commits and changed objects. They are also folded by time. */
const FOLD_BYTES = 262_144;
const FOLD_COMMITS = 1_000;
const FOLD_ITEMS = 2_000;

/** The journals in the store, and the conditions under which they are folded. */
export class Journals {
  /** The objects with records in the journals. */
  readonly items = new Set<Durable>();
  /** Bytes in the journal of the current commit, or of the last one; 0: it has none. */
  #written = 0;
  /** True if the journals are to be folded when the store has space for it. */
  #isFoldWanted = false;
  /** True if the store has refused to fold the journals, and nothing has been folded since. */
  #isFoldRefused = false;
  /** True if the journals must be folded before anything else is written, because a commit that was reported as failed is in the store. */
  mustFold = false;
  /** The commits that contain the journals. */
  #commits: number[] = [];
  #bytes = 0;

  /** Number of journals. */
  get count(): number {
    return this.#commits.length;
  }

  /** True if there are journals that the store has not refused to fold. */
  get canFold(): boolean {
    return this.count > 0 && !this.#isFoldRefused;
  }

  /** Fold the journals with the next commit, if the store has space for it. */
  requestFold(): void {
    this.#isFoldWanted = true;
  }

  /** Try again to fold the journals that the store has refused to fold. */
  retryFold(): void {
    this.#isFoldRefused = false;
  }

  /** Note the bytes in the journal of the current commit; 0: it has none. */
  written(bytes: number): void {
    this.#written = bytes;
  }

  /**
   * Tell whether the next commit folds the journals. @param gathered bytes of that commit @param isTrial it is the first one after a
   * failure
   */
  isFoldDue(gathered: number, isTrial: boolean): boolean {
    // a trial is small, so that the store can accept it: nothing else depends on folding
    if (this.mustFold || isTrial) return this.mustFold;
    if (this.#isFoldWanted || this.#isFoldRefused) return this.#isFoldWanted;
    return this.#bytes + gathered > FOLD_BYTES || this.#commits.length >= FOLD_COMMITS || this.items.size >= FOLD_ITEMS;
  }

  /** Note that the store has a commit, with the journal in it. */
  committed(commit: number): void {
    if (this.#written === 0) return;
    this.#commits.push(commit);
    this.#bytes += this.#written;
  }

  /**
   * Note that a commit that was reported as failed is in the store. A fold replaces its records; without a fold, nothing would have
   * changed.
   */
  foundFailed(commit: number): void {
    this.mustFold = true;
    this.committed(commit);
  }

  /** Write the deletions of the journals. */
  writeDeletions(draft: Draft): void {
    for (const commit of this.#commits) draft.key(Kind.journal).u48(commit).delete();
  }

  /** Note that the journals have been folded. */
  folded(): void {
    this.mustFold = this.#isFoldWanted = this.#isFoldRefused = false;
    this.#commits = [];
    this.#bytes = 0;
    this.items.clear();
  }

  /** Note that the store has no space to fold the journals. */
  foldRefused(): void {
    this.#isFoldWanted = false;
    this.#isFoldRefused = true;
  }
}
