import type { Durable } from './durable.ts';
import { Kind } from './keys.ts';
import type { Draft } from './record.ts';

/** Limits of journals. They are folded when they have this many bytes, commits or changed objects, or by time. */
const FOLD_BYTES = 262_144;
const FOLD_COMMITS = 1_000;
const FOLD_ITEMS = 2_000;

/** The journals that the store has, and when they are folded. */
export class Journals {
  /** The objects with records in them. */
  readonly items = new Set<Durable>();
  /** Bytes in the journal of the present commit, or of the last one; 0: it has none. */
  #written = 0;
  /** They are to be folded, if the store has space for that. */
  #isFoldWanted = false;
  /** The store has refused to fold them, and nothing has been folded since. */
  #isFoldRefused = false;
  /** They must be folded before anything else is written, because a commit that was reported as failed is in the store. */
  mustFold = false;
  /** The commits that contain them. */
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

  /** Fold them with the next commit, if the store has space for that. */
  requestFold(): void {
    this.#isFoldWanted = true;
  }

  /** Try again to fold what the store has refused to fold. */
  retryFold(): void {
    this.#isFoldRefused = false;
  }

  /** Note the bytes in the journal of the present commit; 0: it has none. */
  written(bytes: number): void {
    this.#written = bytes;
  }

  /** Tell whether the next commit folds them. @param gathered bytes of that commit @param isTrial it is the first one after a failure */
  isFoldDue(gathered: number, isTrial: boolean): boolean {
    // a trial is small, so that the store can accept it: folding is no precondition for anything else
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

  /** Note that a commit that was reported as failed is in the store. A fold replaces its records; without it, nothing would have changed. */
  foundFailed(commit: number): void {
    this.mustFold = true;
    this.committed(commit);
  }

  /** Write what deletes them. */
  writeDeletions(draft: Draft): void {
    for (const commit of this.#commits) draft.key(Kind.journal).u48(commit).delete();
  }

  /** Note that they have been folded. */
  folded(): void {
    this.mustFold = this.#isFoldWanted = this.#isFoldRefused = false;
    this.#commits = [];
    this.#bytes = 0;
    this.items.clear();
  }

  /** Note that the store has no space to fold them. */
  foldRefused(): void {
    this.#isFoldWanted = false;
    this.#isFoldRefused = true;
  }
}
