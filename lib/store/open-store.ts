// A broker has its state in memory, so it must not continue with a store that is not the one it knows. The store is
// recognized by its time of creation and the number of its last commit; after a failed commit there may be one commit
// more, as only the store knows whether it was written. Before the first write of a new format, the format record is
// written, so that an older version refuses the store. After each wait `generation` is compared, because the broker
// may have been stopped meanwhile; attempts to open a failed store end with success, with `stop`, or if the folder has another
// store than before (STORE_CHANGED).

import type { BaseServices } from '../base/base-services.ts';
import { BrokerError, StateError } from '../base/errors.ts';
import { type Commits, checkFormat, readCommits, writeCommit, writeFormat } from './commits.ts';
import { FormatChange } from './format-change.ts';
import { type Fold, foldJournals } from './journal.ts';
import type { Journals } from './journals.ts';
import { DEFINITIONS_VERSION, FORMAT } from './keys.ts';
import { claim, isClaimedBy, release } from './owners.ts';
import { Draft } from './record.ts';
import type { Store } from './store.ts';

const IN_USE =
  'a broker in this process uses the store. Stop that broker first, or use a separate store for each broker.';
const WRITTEN_BY_ANOTHER =
  'another broker has written to the store, so this broker cannot continue with its state in memory. Create a new broker';
/** Delay until a failed store is opened again. It is doubled with each attempt, up to `SLOWEST_REOPEN_MS`. */
const FIRST_REOPEN_MS = 100;
const SLOWEST_REOPEN_MS = 10_000;

/** A store that one ledger opens, writes, and opens again after a failed commit. It recognizes the store by its time of creation and its commits. */
export class OpenStore {
  readonly #store: Store;
  readonly #services: BaseServices;
  readonly #journals: Journals;
  /** Number of the last commit record. */
  #commit = 0;
  /** False after a failed commit: the store may contain that commit, too. */
  #isCommitKnown = true;
  /** The format record with the time of creation, which identifies the store. */
  #format: FormatChange | undefined;
  /** The attempts to close and open a failed store; settles when the store is open, was replaced by another one, or `stop` was called. */
  #reopening: Promise<void> | undefined;
  #reopenTimer: unknown;
  #reopenMs = FIRST_REOPEN_MS;
  #endPause: (() => void) | undefined;
  #generation = 0;

  constructor(store: Store, services: BaseServices, journals: Journals) {
    this.#store = store;
    this.#services = services;
    this.#journals = journals;
  }

  /** Number of the last commit that is known to be in the store. */
  get commit(): number {
    return this.#commit;
  }

  /** The format record of the store; undefined before it was opened. */
  get format(): FormatChange | undefined {
    return this.#format;
  }

  /** Incremented by `stop`, so that earlier operations do not affect a store that is opened later. */
  get generation(): number {
    return this.#generation;
  }

  /** See `Ledger.open`. */
  async open<T>(look: (commits: Commits, fold: Fold) => Promise<T>): Promise<T> {
    const store = this.#store;
    claim(store, this, IN_USE);
    try {
      await store.open();
      const found = await checkFormat(store);
      if (this.#format !== undefined) this.#checkSame(found?.madeAt);
      const fold = await foldJournals(store);
      const commits = await readCommits(store);
      if (this.#format !== undefined) {
        this.#checkUnchanged(commits.last);
        this.#checkLast(commits.last);
      } else this.#commit = commits.last;
      const seen = await look(commits, fold);
      // journals that this ledger has written itself are not folded from the store: it has their records in memory
      if (fold.draft.batch.length > 0 && this.#journals.count === 0) {
        // the time of the last commit shows how long clients were connected, so it does not change
        writeCommit(fold.draft, this.#commit + 1, commits.lastWallMs);
        await store.commit(fold.draft.batch);
        this.#commit++;
      }
      const madeAt = found?.madeAt ?? this.#services.clock.now();
      const definitions = found?.definitions ?? DEFINITIONS_VERSION;
      if (found?.format !== FORMAT) {
        // written before any record that an older version cannot read
        const draft = new Draft();
        writeFormat(draft, madeAt, definitions);
        await store.commit(draft.batch);
      }
      this.#format ??= new FormatChange(madeAt, definitions);
      this.works();
      return seen;
    } catch (error) {
      await this.#closeQuietly();
      release(store);
      throw error;
    }
  }

  /** Write a batch, with the record of a new commit. */
  async write(draft: Draft): Promise<void> {
    const number = this.#commit + 1;
    writeCommit(draft, number, this.#services.clock.now());
    await this.#store.commit(draft.batch);
    this.#commit = number;
  }

  /** Note that the store works: every commit so far is known to be in it. */
  works(): void {
    this.#isCommitKnown = true;
    this.#reopenMs = FIRST_REOPEN_MS;
  }

  /**
   * Close and open the store until that succeeds, each time after a longer pause.
   *
   * After a failed write, a store that stays open may never write again (LevelDB does not), and does not report what it has written.
   * @param isUntouched true if the failed commit has written nothing: the store stays open
   * @param reopened called when the store may be written again, unless `stop` was called before
   */
  reopen(isUntouched: boolean, reopened: () => void): void {
    if (!isUntouched) this.#isCommitKnown = false;
    this.#reopening = this.#reopen(isUntouched, reopened);
  }

  /** True if the store was opened and not closed since. Otherwise another ledger may use it. */
  get isClaimed(): boolean {
    return isClaimedBy(this.#store, this);
  }

  /** End the attempts to open the store again, and wait until the one in progress has ended. */
  async stop(): Promise<void> {
    this.#generation++;
    const { clock } = this.#services;
    (clock.internal ?? clock).clearTimeout(this.#reopenTimer);
    this.#endPause?.();
    await this.#reopening; // so that a store that is being opened is closed as well
  }

  /** Close the store. @throws errors of the store */
  async close(): Promise<void> {
    try {
      await this.#store.close();
    } finally {
      release(this.#store);
    }
  }

  async #reopen(isOpen: boolean, reopened: () => void): Promise<void> {
    const { clock, work } = this.#services;
    const generation = this.#generation;
    let isOtherReported = false;
    while (this.#generation === generation) {
      if (!isOpen) await work.during(this.#closeQuietly());
      if (this.#generation !== generation) return;
      const delayMs = this.#reopenMs;
      this.#reopenMs = Math.min(delayMs * 2, SLOWEST_REOPEN_MS);
      await new Promise<void>((resolve) => {
        this.#endPause = resolve;
        this.#reopenTimer = (clock.internal ?? clock).setTimeout(resolve, delayMs);
      });
      if (this.#generation !== generation) return;
      if (isOpen) break;
      try {
        await work.during(this.#openAgain());
        break;
      } catch (error) {
        // other errors are not reported: `LedgerHost.storeFailed` has been called
        const isOther = error instanceof OtherStore; // the previous store may be restored
        if (!isStoreChanged(error) || (isOther && isOtherReported)) continue;
        this.#services.failed(error, 'opening the store again');
        isOtherReported = isOther;
        if (isOther) continue;
        await this.#closeQuietly();
        return;
      }
    }
    if (this.#generation === generation) reopened();
  }

  async #openAgain(): Promise<void> {
    await this.#store.open();
    this.#checkSame((await checkFormat(this.#store))?.madeAt);
    const { last } = await readCommits(this.#store);
    this.#checkUnchanged(last);
    this.#checkLast(last);
  }

  /** Close the store. Errors are reported, not thrown. */
  async #closeQuietly(): Promise<void> {
    try {
      await this.#store.close();
    } catch (error) {
      this.#services.failed(error, 'closing the store');
    }
  }

  /** @throws OtherStore */
  #checkSame(madeAt: number | undefined): void {
    if (madeAt !== this.#format?.madeAt) throw new OtherStore(this.#store);
  }

  /** @throws StateError STORE_CHANGED */
  #checkUnchanged(last: number): void {
    const isBehind = this.#isCommitKnown && last < this.#commit;
    if (!isBehind && last <= this.#commit + (this.#isCommitKnown ? 0 : 1)) return;
    throw new StateError('STORE_CHANGED', `${this.#store.name}: ${WRITTEN_BY_ANOTHER}`);
  }

  /** Check that the last commit is in the store, and report an error if it is missing. After a failed commit, one more may be there. */
  #checkLast(last: number): void {
    if (last < this.#commit) {
      const text = `${this.#store.name}: commits ${last + 1} to ${this.#commit} had been written, but are missing after the store was opened again. Their changes are lost. The next start reports them, and continues without them only if the option repairStore is set.`;
      this.#services.failed(new BrokerError('STORE_CORRUPT', text), 'opening the store again');
    }
    if (last > this.#commit) this.#journals.foundFailed(last);
    // the missing commits leave a gap, which the next start finds
    this.#commit = Math.max(this.#commit, last);
  }
}

/** The store that was opened again is not the previous one. */
class OtherStore extends StateError {
  constructor({ name }: Store) {
    super('STORE_CHANGED', `${name}: this is not the store that was open before. Restore the previous store`);
  }
}

function isStoreChanged(error: unknown): error is StateError {
  return error instanceof StateError && error.code === 'STORE_CHANGED';
}
