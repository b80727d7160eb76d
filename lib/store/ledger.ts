import type { Clock } from '../base/clock.ts';
import { BrokerError, StateError } from '../base/errors.ts';
import type { WorkCount } from '../base/pending-work.ts';
import type { Timer, TimingWheel } from '../base/timing-wheel.ts';
import { type Commits, checkFormat, readCommits, writeCommit } from './commits.ts';
import { beginJournal, type Fold, foldJournals } from './journal.ts';
import { Journals } from './journals.ts';
import { FORMAT, Kind } from './keys.ts';
import { claim, isClaimedBy, release } from './owners.ts';
import { Draft } from './record.ts';
import type { Batch, Entry, Store } from './store.ts';
import { Unwritten } from './unwritten.ts';

/**
 * What a failed commit means for the changes in it:
 *
 * - `unknown`: they are refused, and the store may contain them;
 * - `untouched`: they are refused, and the store does not contain them;
 * - `retried`: the store does not contain them, and the next commit writes them again. Nothing is refused.
 */
export type CommitFailure = 'unknown' | 'untouched' | 'retried';

/** A persisted object. It knows what has changed since it was last written. */
export interface Durable {
  /** True if the object is in the ledger's list of changed objects. Only the ledger sets it. */
  isDirty: boolean;
  /**
   * Write everything that has changed since the last call.
   * @param journal for records that will soon change again; undefined: write to `draft` everything that was written to journals since the
   *   last call without a journal, as far as it is still valid
   * @param mostBytes size at which the batch of `draft` is full. An object with many records leaves the others for the next commit, and
   *   notes that it is changed (`Ledger.touch`). Infinity except after the store has refused a larger commit
   */
  write(draft: Draft, journal: Draft | undefined, mostBytes: number): void;
  /** Called when the last `write` has been committed. */
  committed(): void;
  /**
   * Called when a commit has failed. The object must write again what the last `write` has written, and refuse, except if the changes are
   * `retried`, these and later changes that were promised to clients. It is in the ledger's list of changed objects.
   */
  commitFailed(failure: CommitFailure): void;
}

/** An object that waits for commits. */
export interface Waiter {
  /** Called when all commits up to this one are in the store. @returns false if the object no longer waits */
  commitSucceeded(ticket: number): boolean;
  /** Called when the commits up to this one have failed. To wait on, take another ticket. @returns false if the object no longer waits */
  commitFailed(ticket: number, error: Error): boolean;
}

/** What the ledger needs from the broker. */
export interface LedgerHost {
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly work: WorkCount;
  /** Request a call of `turnEnded` at the end of the turn. */
  turnLater(): void;
  /** Called when a commit fails, unless the store has failed already. */
  storeFailed(error: BrokerError): void;
  /** Called when a commit succeeds after a failure. */
  storeRecovered(): void;
  /** Called when a commit has succeeded or failed. @param bytes size of the commit */
  written(bytes: number): void;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
}

const IN_USE =
  'a broker in this process uses the store. Stop that broker first, or use a separate store for each broker.';
const STILL_CLOSING =
  'writes from the previous stop() are still in progress. Start again when the disk answers, or end this process.';
const REFUSED =
  'cannot be written at present, so messages and changes that must be persisted are refused. The broker retries; check the disk';
const WRITTEN_BY_ANOTHER =
  'another broker has written to the store, so this broker cannot continue with its state in memory. Create a new broker';
const LAST_LOST =
  'the last changes could not be written; none of them was acknowledged. Check the disk before the next start.';
/** Maximum time until a change is written that nothing waits for, in addition to a tick of the timing wheel. */
const MAX_LAZY_MS = 50;
/** A commit that takes longer than this is reported once. */
const SLOW_COMMIT_MS = 10_000;
/** Delay until a failed store is opened again. It is doubled with each attempt, up to `SLOWEST_REOPEN_MS`. */
const FIRST_REOPEN_MS = 100;
const SLOWEST_REOPEN_MS = 10_000;
/** Journals are folded when the oldest one has this age, or earlier; see `Journals`. */
const FOLD_MS = 100;
/** Delay until journals are folded after the store has refused that for lack of space. */
const FOLD_RETRY_MS = 1_000;
/** Once the store has refused a trial, the changes are tried in parts, at first this fraction of the refused size, and of this size at least. */
const PART = 4;
const LEAST_PART_BYTES = 8_192;

/** Number of failures whose tickets are remembered; no message waits through more failures than this. */
const MAX_FAILURES = 1_000;

/**
 * Writes changes to the store in group commits.
 *
 * All changes since the last commit are committed as one batch, at the end of the turn. Changes during a commit wait for the next one. An
 * acknowledgement that must not be sent before a change is persisted takes the `ticket` of its commit and waits for that commit.
 *
 * After a failed commit, the store is closed and opened again, and then the lost changes are written again. Meanwhile `isFailed` is true,
 * and operations that promise persistence are refused.
 */
export class Ledger {
  /**
   * Incremented by every change that an acknowledgement must wait for. Compare it before and after an operation to know whether to wait.
   */
  promises = 0;
  /** Ticket of the last successful commit. */
  settled = 0;
  /** True from a failed commit until the next successful one. */
  isFailed = false;
  /** First and last ticket of the commits of each failure. Everything that waited for them was refused. */
  readonly #refused: [first: number, last: number][] = [];
  /** Approximate number of bytes that wait to be written, and the publishers that have caused them. */
  readonly unwritten: Unwritten;
  /** The store that the ledger writes to. */
  readonly store: Store;
  readonly #host: LedgerHost;
  readonly #draft = new Draft();
  readonly #journal = new Draft();
  readonly #journals = new Journals();
  /** True if the present commit folds the journals. */
  #isFolding = false;
  /** Size at which a trial is full; Infinity: it contains all changes. */
  #partBytes = Infinity;
  /** The present commit is a trial that contains only a part of the changes. */
  #isPart = false;
  /** Ticket of the present commit, or of the last one. */
  #ticket = 0;
  /** Number of the last commit record. It differs from the ticket, because commits without changes have no record. */
  #commit = 0;
  /** False after a failed commit: the store may contain that commit, too. */
  #isCommitKnown = true;
  /** Time of creation of the store, by which a different store is recognized when it is opened again. */
  #madeAt: number | undefined;
  #isUrgent = false;
  #isWaiting = false;
  #isPulseDue = false;
  #isBusy = false;
  #dirty: Durable[] = [];
  #written: Durable[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #lazy: Timer;
  /** The attempts to close and open a failed store; settles when the store is open or the ledger is closed. */
  #reopening: Promise<void> | undefined;
  #reopenTimer: unknown;
  #endPause: (() => void) | undefined;
  #onIdle: (() => void) | undefined;
  /** Incremented by `close`, so that earlier operations do not affect a store that is opened later. */
  #generation = 0;
  /** True from `open` until `close` has written all changes. */
  isOpen = false;
  #closing: Promise<void> | undefined;
  /** True if the next commit tests whether the store can be written again. */
  #isTrial = false;
  #reopenMs = FIRST_REOPEN_MS;
  readonly #slow: Timer;
  readonly #foldLater: Timer;

  constructor(store: Store, host: LedgerHost, maxUnwritten: number) {
    this.store = store;
    this.#host = host;
    this.unwritten = new Unwritten(maxUnwritten, this);
    this.#lazy = timer(() => this.#requestCommit());
    this.#foldLater = timer(() => {
      this.#journals.isFoldWanted = true;
      this.#requestCommit();
    });
    this.#slow = timer(() => {
      const text = `${store.name}: a commit takes longer than ${SLOW_COMMIT_MS / 1000} s; messages that wait for it are not acknowledged. Check the disk.`;
      host.failed(new BrokerError('STORE_SLOW', text), 'writing to the store');
    });
  }

  /**
   * Open the store and check its commits.
   * @param look reads the other records before anything is written; if it throws, the store is closed unchanged
   * @throws BrokerError STORE_CORRUPT, STORE_TOO_NEW, IMPORT_UNFINISHED; StateError STORE_CHANGED, STORE_IN_USE (also while `close` is in
   *   progress); errors of the store and of `look`
   */
  async open<T>(look: (commits: Commits, fold: Fold) => Promise<T>): Promise<T> {
    if (this.isClosing) throw new StateError('STORE_IN_USE', `${this.store.name}: ${STILL_CLOSING}`);
    claim(this.store, this, IN_USE);
    try {
      await this.store.open();
      const found = await checkFormat(this.store);
      if (this.#madeAt !== undefined) this.#checkSame(found?.madeAt);
      const fold = await foldJournals(this.store);
      const commits = await readCommits(this.store);
      if (this.#madeAt !== undefined) {
        this.#checkUnchanged(commits.last);
        this.#checkLast(commits.last);
      } else this.#commit = commits.last;
      const seen = await look(commits, fold);
      // journals that this ledger has written itself are not folded from the store: it has their records in memory
      if (fold.draft.batch.length > 0 && this.#journals.count === 0) {
        // the time of the last commit tells how long clients were connected, so it does not change
        writeCommit(fold.draft, this.#commit + 1, commits.lastWallMs);
        await this.store.commit(fold.draft.batch);
        this.#commit++;
      }
      const madeAt = found?.madeAt ?? this.#host.clock.now();
      if (found?.format !== FORMAT) {
        // written before any record that an older version cannot read
        this.#draft.clear();
        this.#draft.key(Kind.format).value().u8(FORMAT).f64(madeAt).put();
        await this.store.commit(this.#draft.batch);
      }
      this.#madeAt = madeAt;
      this.isOpen = this.#isCommitKnown = true;
      [this.#partBytes, this.#reopenMs] = [Infinity, FIRST_REOPEN_MS];
      this.#isUrgent = false;
      if (this.#dirty.length > 0) this.#requestCommit(); // changes that could not be written before
      return seen;
    } catch (error) {
      await this.#closeStore();
      release(this.store);
      throw error;
    }
  }

  /** Close the store. Errors are reported, not thrown. */
  async #closeStore(): Promise<void> {
    try {
      await this.store.close();
    } catch (error) {
      this.#host.failed(error, 'closing the store');
    }
  }

  /** Bytes of the commit in progress. */
  get bytesInProgress(): number {
    return this.#isBusy ? this.#draft.batch.bytes : 0;
  }

  /** Number of the last commit that is known to be in the store. */
  get commit(): number {
    return this.#commit;
  }

  /** Ticket of the commit that will contain the present changes. */
  get ticket(): number {
    return this.#ticket + 1;
  }

  /** Get the ticket of the commit that contains, or will contain, the last change of an item; 0 if that change is committed. */
  ticketOf(item: Durable): number {
    return item.isDirty ? this.ticket : this.#isBusy ? this.#ticket : 0;
  }

  /** Tell whether the commit of a ticket has failed. Later commits may have succeeded since. */
  hasRefused(ticket: number): boolean {
    return this.#refused.some(([first, last]) => ticket >= first && ticket <= last);
  }

  /** Note that an item has changed, if nothing waits for the commit. @param bytes approximate size of the change */
  touch(item: Durable, bytes = 0): void {
    this.unwritten.noted += bytes;
    if (item.isDirty) return;
    item.isDirty = true;
    this.#dirty.push(item);
    if (this.#lazy.dueMs === Infinity && !this.isFailed) this.#host.wheel.arm(this.#lazy, MAX_LAZY_MS);
  }

  /** Note that an item has changed, if an acknowledgement waits for the commit `ticket`. @param bytes approximate size of the change */
  promise(item: Durable, bytes = 0): void {
    this.unwritten.noted += bytes;
    this.promises++;
    if (!item.isDirty) {
      item.isDirty = true;
      this.#dirty.push(item);
    }
    this.#requestCommit();
  }

  /** Commit the present time. After a crash it tells how long the process ran and its clients were connected. */
  pulse(): void {
    this.#isPulseDue = true;
    this.#requestCommit();
  }

  #requestCommit(): void {
    if (this.#isUrgent) return;
    this.#isUrgent = true;
    if (!this.#isBusy) this.#host.turnLater();
  }

  /** Notify a waiter of all commits, until it returns false. */
  wait(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /**
   * Read from the store; see `Store.read`.
   * @throws StateError STORE_CLOSED if `close` was called meanwhile; BrokerError STORE_UNUSABLE if the store throws an error that is not a
   *   BrokerError; any BrokerError of the store
   */
  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    const generation = this.#generation;
    try {
      return await this.store.read(from, to, limit);
    } catch (error) {
      if (!this.isOpen || this.#generation !== generation)
        throw new StateError('STORE_CLOSED', `${this.store.name}: the store was closed`);
      throw readError(this.store, error);
    }
  }

  /** Create the error with which operations are refused while `isFailed`. */
  refusal(): BrokerError {
    return new BrokerError('STORE_FAILED', `${this.store.name}: ${REFUSED}`);
  }

  /** Wait until the commit of a ticket is in the store. @throws BrokerError STORE_FAILED if it fails */
  committed(ticket: number): Promise<void> {
    if (ticket <= this.settled) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.wait({
        commitSucceeded: (settled) => {
          if (settled < ticket) return true;
          resolve();
          return false;
        },
        commitFailed: (_ticket, error) => {
          reject(error);
          return false;
        }
      });
    });
  }

  /**
   * Stop or continue commits. While they are stopped, acknowledgements wait, and publishers are paused when too many bytes are unwritten.
   */
  set isWaiting(isWaiting: boolean) {
    this.#isWaiting = isWaiting;
    if (!isWaiting && this.#isUrgent && !this.#isBusy) this.#host.turnLater();
  }

  /** Commit the changes of the turn that has ended, unless a commit is in progress. */
  turnEnded(): void {
    if (!this.#isUrgent || this.#isBusy || this.#isWaiting || this.isFailed || !this.isOpen) return;
    this.#begin();
  }

  #begin(): void {
    const { clock, wheel, work } = this.#host;
    const draft = this.#draft;
    this.#isUrgent = false;
    wheel.disarm(this.#lazy);
    this.#written = this.#dirty;
    this.#dirty = [];
    const { gathered } = this.unwritten;
    this.unwritten.begun();
    this.#ticket++;
    draft.clear();
    const number = this.#commit + 1;
    this.#isFolding = this.#journals.isFoldDue(gathered, this.#isTrial);
    this.#isPart = false;
    this.#journals.written = 0;
    if (this.#isFolding) this.#fold(draft);
    else this.#writeJournal(draft, number);
    this.#isBusy = true;
    work.begin();
    if (draft.batch.length === 0 && !this.#isPulseDue && !this.#isTrial) {
      this.#commitEnded(undefined);
      return;
    }
    this.#isPulseDue = false;
    writeCommit(draft, number, clock.now());
    wheel.arm(this.#slow, SLOW_COMMIT_MS);
    this.#commitNow(draft.batch).then(
      () => {
        this.#commit = number;
        this.#commitEnded(undefined);
      },
      (error: unknown) => this.#commitEnded(error ?? new Error('the commit was rejected'))
    );
  }

  #writeJournal(draft: Draft, number: number): void {
    const journal = beginJournal(this.#journal, number);
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
      this.#journals.items.add(item);
    }
    this.#isPart = this.#partBytes < Infinity && this.#dirty.length > 0;
    if (nested === empty) return;
    journal.unnest().put();
    draft.batch.put(journal.batch.keys[0], journal.batch.values[0] as Buffer);
    this.#journals.written = nested;
  }

  #fold(draft: Draft): void {
    this.#host.wheel.disarm(this.#foldLater);
    for (const item of this.#journals.items) if (!item.isDirty) this.#written.push(item);
    for (const item of this.#written) {
      item.isDirty = false;
      this.#guard(() => item.write(draft, undefined, Infinity));
    }
    this.#journals.writeDeletions(draft);
  }

  async #commitNow(batch: Batch): Promise<void> {
    await this.store.commit(batch);
  }

  #commitEnded(error: unknown): void {
    this.#host.wheel.disarm(this.#slow);
    this.#isBusy = false;
    this.unwritten.ended();
    const written = this.#written;
    const { bytes } = this.#draft.batch;
    this.#written = [];
    if (error === undefined) {
      if (this.#isFolding) this.#journals.folded();
      else this.#journals.committed(this.#commit);
      if (!this.#isPart) this.settled = this.#ticket;
      if (this.isFailed && !this.#isPart) this.#recovered();
      for (const item of written) this.#guard(() => item.committed());
      if (this.#isPart) this.#begin();
      else this.#notify((waiter) => waiter.commitSucceeded(this.settled));
    } else if (this.#isFolding && !this.#journals.mustFold && isUntouched(error)) this.#foldRefused(written);
    else this.#fail(error, written);
    this.#host.written(bytes);
    // the waiters may have made changes
    if (this.#isUrgent && !this.isFailed) this.#host.turnLater();
    else if (this.#dirty.length > 0 && this.#lazy.dueMs === Infinity && !this.isFailed)
      this.#host.wheel.arm(this.#lazy, MAX_LAZY_MS);
    if (this.#journals.count > 0 && this.#foldLater.dueMs === Infinity && !this.isFailed)
      this.#host.wheel.arm(this.#foldLater, FOLD_MS);
    if (!this.#isBusy) this.#onIdle?.();
    this.#host.work.end();
  }

  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#host.failed(error, 'a commit');
    }
  }

  #notify(waits: (waiter: Waiter) => boolean): void {
    for (const waiter of [...this.#waiters]) {
      this.#guard(() => {
        if (!waits(waiter)) this.#waiters.delete(waiter);
      });
    }
  }

  #fail(cause: unknown, written: readonly Durable[]): void {
    const error = commitError(this.store, cause);
    const isNew = !this.isFailed;
    this.isFailed = true;
    const isStillOpen = isUntouched(cause);
    if (!isStillOpen) {
      this.#isCommitKnown = false;
      this.#partBytes = Infinity; // each object must see at its next write whether this commit is in the store
    } else if (!isNew) this.#partBytes = Math.max(LEAST_PART_BYTES, Math.floor(this.#draft.batch.bytes / PART));
    this.#isTrial = false;
    this.#takeBack(written);
    for (const item of this.#dirty) this.#guard(() => item.commitFailed(isStillOpen ? 'untouched' : 'unknown'));
    this.#isUrgent = true;
    this.#host.wheel.disarm(this.#lazy);
    if (isNew) this.#host.storeFailed(error);
    // changes since the failed commit began wait for the next ticket, which fails as well
    const ticket = this.ticket;
    this.#ticket++;
    if (isNew) {
      this.#refused.push([this.settled + 1, ticket]);
      if (this.#refused.length > MAX_FAILURES) this.#refused.shift();
    } else (this.#refused.at(-1) as [number, number])[1] = ticket;
    this.#notify((waiter) => waiter.commitFailed(ticket, error));
    this.#reopening = this.#reopen(isStillOpen);
  }

  /** Note that the items of a failed commit are changed. The order of the first changes is kept, because a trial may contain a part of them. */
  #takeBack(written: readonly Durable[]): void {
    this.#dirty = [...new Set([...written, ...this.#dirty])];
    for (const item of this.#dirty) item.isDirty = true;
  }

  /** The store has no space to fold the journals. They stay as they are, and the other changes of the commit are written again. */
  #foldRefused(written: readonly Durable[]): void {
    this.#journals.foldRefused();
    this.#takeBack(written);
    for (const item of written) this.#guard(() => item.commitFailed('retried'));
    this.#begin();
    this.#host.wheel.arm(this.#foldLater, FOLD_RETRY_MS);
  }

  /**
   * Close and open the store until that succeeds, and then try a commit with all pending changes.
   *
   * After a failed write, a store that stays open may never write again (LevelDB does not), and does not tell what it has written.
   * @param isOpen true if nothing was written: the store stays open, and only the commit is tried again
   */
  async #reopen(isOpen: boolean): Promise<void> {
    const { clock, work } = this.#host;
    const generation = this.#generation;
    let isOtherReported = false;
    while (this.#generation === generation) {
      if (!isOpen) await work.during(this.#closeStore());
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
        // other errors are not reported: `storeFailed` has been called
        const isOther = error instanceof OtherStore; // the previous store may be restored
        if (!isStoreChanged(error) || (isOther && isOtherReported)) continue;
        this.#host.failed(error, 'opening the store again');
        isOtherReported = isOther;
        if (isOther) continue;
        await this.#closeStore();
        return;
      }
    }
    if (this.#generation !== generation) return;
    this.#isTrial = true;
    this.#begin();
  }

  async #openAgain(): Promise<void> {
    await this.store.open();
    this.#checkSame((await checkFormat(this.store))?.madeAt);
    const { last } = await readCommits(this.store);
    this.#checkUnchanged(last);
    this.#checkLast(last);
  }

  /** @throws OtherStore */
  #checkSame(madeAt: number | undefined): void {
    if (madeAt !== this.#madeAt) throw new OtherStore(this.store);
  }

  /** @throws StateError STORE_CHANGED */
  #checkUnchanged(last: number): void {
    const isBehind = this.#isCommitKnown && last < this.#commit;
    if (!isBehind && last <= this.#commit + (this.#isCommitKnown ? 0 : 1)) return;
    throw new StateError('STORE_CHANGED', `${this.store.name}: ${WRITTEN_BY_ANOTHER}`);
  }

  /** Check that the last commit is in the store, and report an error if it is missing. After a failed commit, one more may be there. */
  #checkLast(last: number): void {
    if (last < this.#commit) {
      const text = `${this.store.name}: commits ${last + 1} to ${this.#commit} had been written, but are missing after the store was opened again. Their changes are lost. The next start reports them, and continues without them only if the option repairStore is set.`;
      this.#host.failed(new BrokerError('STORE_CORRUPT', text), 'opening the store again');
    }
    if (last > this.#commit) this.#journals.foundFailed(last);
    // the missing commits leave a gap, which the next start finds
    this.#commit = Math.max(this.#commit, last);
  }

  #recovered(): void {
    this.isFailed = this.#isTrial = false;
    this.#isCommitKnown = true;
    [this.#partBytes, this.#reopenMs] = [Infinity, FIRST_REOPEN_MS];
    this.#host.storeRecovered();
  }

  /** True while `close` is in progress, which may take long if a commit hangs. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /**
   * Write the pending changes and close the store. Calls during a close return the same promise.
   * @throws BrokerError STORE_FAILED if the changes cannot be written; errors of closing the store
   */
  close(): Promise<void> {
    this.#closing ??= this.#close().finally(() => {
      this.#closing = undefined;
    });
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (!isClaimedBy(this.store, this)) return; // the store was never opened, and another ledger may use it
    this.#journals.isFoldRefused = false;
    // journals that the store has no space to fold are folded after the next start
    const hasWork = () => this.#dirty.length > 0 || (this.#journals.count > 0 && !this.#journals.isFoldRefused);
    while (this.#isBusy || (!this.isFailed && hasWork())) {
      this.#journals.isFoldWanted = true;
      if (!this.#isBusy) this.#begin();
      if (this.#isBusy)
        await new Promise<void>((resolve) => {
          this.#onIdle = resolve;
        });
    }
    this.#onIdle = undefined;
    this.#generation++;
    this.isOpen = false;
    const { clock, wheel } = this.#host;
    (clock.internal ?? clock).clearTimeout(this.#reopenTimer);
    this.#endPause?.();
    await this.#reopening; // so that a store that is being opened is closed as well
    wheel.disarm(this.#lazy);
    wheel.disarm(this.#foldLater);
    const isLost = this.isFailed && this.#dirty.length > 0;
    this.isFailed = this.#isTrial = this.#isUrgent = false;
    try {
      await this.store.close();
    } catch (error) {
      if (!isLost) throw error;
      this.#host.failed(error, 'closing the store');
    } finally {
      release(this.store);
    }
    if (isLost) throw new BrokerError('STORE_FAILED', `${this.store.name}: ${LAST_LOST}`);
  }
}

/** The store that was opened again is not the previous one. */
class OtherStore extends StateError {
  constructor({ name }: Store) {
    super('STORE_CHANGED', `${name}: this is not the store that was open before. Restore the previous store`);
  }
}

/** Tells whether the store has refused a commit before it wrote anything; see `Store.commit`. */
function isUntouched(error: unknown): boolean {
  return error instanceof Error && (error as { isUntouched?: unknown }).isUntouched === true;
}

function commitError({ name }: Store, cause: unknown): BrokerError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const text = `${name}: a commit failed: ${why}. The broker retries; check the disk`;
  return new BrokerError('STORE_FAILED', text, { cause });
}

function readError({ name }: Store, error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new BrokerError('STORE_UNUSABLE', `${name}: the store cannot be read: ${why}`, { cause: error });
}

function isStoreChanged(error: unknown): error is StateError {
  return error instanceof StateError && error.code === 'STORE_CHANGED';
}

function timer(ring: () => void): Timer {
  return { dueMs: Infinity, slot: undefined, previous: undefined, next: undefined, ring };
}
