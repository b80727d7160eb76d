import type { CommitFailure, Durable } from './durable.ts';
import { beginJournal } from './journal.ts';
import { Journals } from './journals.ts';
import { Draft } from './record.ts';

/** Once the store has refused a trial, the changes are tried in parts, at first this fraction of the refused size, and of this size at least. */
const PART = 4;
const LEAST_PART_BYTES = 8_192;

/** The changed objects: which of them the current commit contains, and whether it writes them to a journal or folds the journals. */
export class Changes {
  readonly journals = new Journals();
  readonly #draft = new Draft();
  readonly #journal = new Draft();
  readonly #failed: (error: unknown) => void;
  /** The changes for the next commit, in the order of the first changes. */
  #dirty: Durable[] = [];
  /** The changes in the current commit. */
  #written: Durable[] = [];
  #isFolding = false;
  #isPart = false;
  /** Size at which a commit is full; Infinity: it contains all changes. */
  #partBytes = Infinity;

  /** @param failed called with errors of objects */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  /** True if there are no changes for the next commit. */
  get isEmpty(): boolean {
    return this.#dirty.length === 0;
  }

  /** True if the current commit folds the journals. */
  get isFolding(): boolean {
    return this.#isFolding;
  }

  /** True if the current commit contains only a part of the changes. */
  get isPart(): boolean {
    return this.#isPart;
  }

  /** Bytes of the current commit. */
  get bytes(): number {
    return this.#draft.batch.bytes;
  }

  /** Note that an object has changed. It must not be in the list already. */
  add(item: Durable): void {
    item.isDirty = true;
    this.#dirty.push(item);
  }

  /**
   * Write the changes to the batch of a commit.
   * @param gathered approximate number of bytes of the changes
   * @param isTrial it is the first commit after a failure
   */
  write(commit: number, gathered: number, isTrial: boolean): Draft {
    this.#written = this.#dirty;
    this.#dirty = [];
    this.#draft.clear();
    this.#isFolding = this.journals.isFoldDue(gathered, isTrial);
    this.#isPart = false;
    this.journals.written(0);
    if (this.#isFolding) this.#fold();
    else this.#writeJournal(commit);
    return this.#draft;
  }

  /** Note that the store has the journal of a commit, or has folded the journals. */
  stored(commit: number): void {
    if (this.#isFolding) this.journals.folded();
    else this.journals.committed(commit);
  }

  /** Report to the objects of the current commit that the store has it. */
  committed(): void {
    for (const item of this.#take()) this.#guard(() => item.committed());
  }

  /**
   * Write the changes of the current commit, which has failed, again with the next one, together with those that were made in the meantime.
   */
  commitFailed(failure: Exclude<CommitFailure, 'retried'>): void {
    this.#takeBack(this.#take());
    for (const item of this.#dirty) this.#guard(() => item.commitFailed(failure));
  }

  /** Keep the journals, because the store has no space to fold them; the other changes of the current commit are written again. */
  foldRefused(): void {
    this.journals.foldRefused();
    const written = this.#take();
    this.#takeBack(written);
    for (const item of written) this.#guard(() => item.commitFailed('retried'));
  }

  /** Write all changes with the next commit. */
  writeAll(): void {
    this.#partBytes = Infinity;
  }

  /** Write a part of the changes with the next commit, smaller than the current one. */
  writeParts(): void {
    this.#partBytes = Math.max(LEAST_PART_BYTES, Math.floor(this.bytes / PART));
  }

  #writeJournal(commit: number): void {
    const draft = this.#draft;
    const journal = beginJournal(this.#journal, commit);
    const empty = journal.nested;
    let { nested } = journal;
    const items = this.#written;
    for (let at = 0; at < items.length; at++) {
      if (draft.batch.bytes + nested - empty >= this.#partBytes) {
        this.#dirty = [...items.splice(at), ...this.#dirty];
        break;
      }
      const item = items[at];
      item.isDirty = false;
      this.#guard(() => item.write(draft, journal, this.#partBytes));
      if (journal.nested === nested) continue;
      nested = journal.nested;
      this.journals.items.add(item);
    }
    this.#isPart = this.#partBytes < Infinity && this.#dirty.length > 0;
    if (nested === empty) return;
    journal.unnest().put();
    draft.batch.put(journal.batch.keys[0], journal.batch.values[0] as Buffer);
    this.journals.written(nested);
  }

  #fold(): void {
    for (const item of this.journals.items) if (!item.isDirty) this.#written.push(item);
    for (const item of this.#written) {
      item.isDirty = false;
      this.#guard(() => item.write(this.#draft, undefined, Infinity));
    }
    this.journals.writeDeletions(this.#draft);
  }

  /** End the current commit. @returns its objects */
  #take(): readonly Durable[] {
    const written = this.#written;
    this.#written = [];
    return written;
  }

  /** Restore the changes in the order of the first changes, because a trial may contain a part of them. */
  #takeBack(written: readonly Durable[]): void {
    this.#dirty = [...new Set([...written, ...this.#dirty])];
    for (const item of this.#dirty) item.isDirty = true;
  }

  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#failed(error);
    }
  }
}
