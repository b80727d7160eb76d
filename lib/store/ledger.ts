import type { Clock } from '../base/clock.ts';
import { BrokerError, StateError } from '../base/errors.ts';
import type { WorkCount } from '../base/pending-work.ts';
import type { Timer, TimingWheel } from '../base/timing-wheel.ts';
import { type Commits, checkFormat, readCommits, writeCommit } from './commits.ts';
import { beginJournal, type Fold, foldJournals } from './journal.ts';
import { FORMAT, Kind } from './keys.ts';
import { claim, isClaimedBy, release } from './owners.ts';
import { Draft } from './record.ts';
import type { Batch, Entry, Store } from './store.ts';
import { Unwritten } from './unwritten.ts';

/** Something that is kept: it says itself what has changed since it was last written. */
export interface Durable {
  /** It is in the list of what is to be written; the ledger's. */
  isDirty: boolean;
  /**
   * Put into the draft all that has changed since the last call.
   * @param journal where to put instead what is soon to change again; undefined: all that was put into journals since the last time there
   *   was none goes into the draft, as far as it still holds
   */
  write(draft: Draft, journal: Draft | undefined): void;
  /** What was written last is kept. */
  committed(): void;
  /** It is not, and has to be written again; what has changed since is refused to whom it was promised, too. The ledger has it in its list. */
  commitFailed(): void;
}

/** Who waits for commits. */
export interface Waiter {
  /** All commits up to this one are kept. @returns false when it waits no longer */
  commitSucceeded(ticket: number): boolean;
  /** The commits up to this one failed, whatever waits for them must give up or ask for another ticket. @returns as above */
  commitFailed(ticket: number, error: Error): boolean;
}

/** What the ledger asks of the broker. */
export interface LedgerHost {
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly work: WorkCount;
  /** Call `turnEnded` when the turn ends. */
  turnLater(): void;
  storeFailed(error: BrokerError): void;
  storeRecovered(): void;
  /** A commit is kept, or has failed. @param bytes of it */
  written(bytes: number): void;
  failed(error: unknown, during: string): void;
}

const IN_USE = 'a broker of this process has it. Stop that one first, or give each a store of its own.';
const STILL_CLOSING =
  'writes from the previous stop() are still in progress. Start again when the disk answers, or end this process.';
const LAST_LOST =
  'the last changes could not be written; none of them was acknowledged. Check the disk before the next start.';
/** What changes without anybody waiting for it is written with the next commit, at most so much later (and a tick of the timing wheel). */
const LAZY_MS = 50;
/** A commit that takes longer is told of, once. */
const SLOW_COMMIT_MS = 10_000;
/** A store that failed is opened again after this, each time twice as long, at most `SLOWEST_REOPEN_MS`. */
const FIRST_REOPEN_MS = 100;
const SLOWEST_REOPEN_MS = 10_000;
/**
 * Journals are folded so long after the first of them; before that when they hold so many bytes, come from so many commits, or speak of
 * so many sessions.
 */
const FOLD_MS = 100;
const FOLD_BYTES = 262_144;
const FOLD_COMMITS = 1_000;
const FOLD_ITEMS = 2_000;

/** Times that commits failed of which it is known what was refused: no message waits for as many. */
const FAILURES_REMEMBERED = 1_000;

/**
 * Group commit. Whatever changed since the last commit leaves as one batch, at the end of the turn; while it is under way the next one
 * gathers. An acknowledgement that promises something takes the `ticket` of the commit that will hold it and waits for that.
 *
 * After a commit that failed nothing more is written on the open store: it is closed and opened again, then all that was lost is
 * written anew. Meanwhile `isFailed`, and nothing that promises is accepted.
 */
export class Ledger {
  /** Raised by every change that an acknowledgement has to wait for: who compares it before and after knows whether to. */
  promises = 0;
  /** The last commit that is kept. */
  settled = 0;
  isFailed = false;
  /** The tickets of commits that failed, first and last of each time that they did: what waited for those was refused. */
  readonly #refused: [first: number, last: number][] = [];
  /** Bytes that wait to be written, roughly, and who caused them. */
  readonly unwritten: Unwritten;
  readonly store: Store;
  readonly #host: LedgerHost;
  readonly #draft = new Draft();
  readonly #journal = new Draft();
  /** Commits since the last fold that left a journal, the bytes of these, and who wrote there. */
  #journals: number[] = [];
  #journalBytes = 0;
  readonly #unfolded = new Set<Durable>();
  /** The commit under way ends the journals before it. */
  #isFolding = false;
  #mustFold = false;
  /** Number of the commit under way or the last one. */
  #ticket = 0;
  /** Number of the last commit record. Tickets of commits with nothing to write leave none. */
  #commit = 0;
  /** Whether the store has that one is known: after a commit that failed, the next one may be there. */
  #isCommitKnown = true;
  /** When the store was made that was opened first: another one in its place is not taken. */
  #madeAt: number | undefined;
  #isUrgent = false;
  #isWaiting = false;
  #isPulseDue = false;
  #isBusy = false;
  #dirty: Durable[] = [];
  #written: Durable[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #lazy: Timer;
  /** Closing and opening a store that failed, until it is open or the ledger is closed. */
  #reopening: Promise<void> | undefined;
  #reopenTimer: unknown;
  #endPause: (() => void) | undefined;
  #onIdle: (() => void) | undefined;
  /** Raised by `close`: what goes on of before must not touch what is opened after. */
  #life = 0;
  /** From `open` on until `close` has written all. */
  isOpen = false;
  #closing: Promise<void> | undefined;
  /** A commit that tries whether the store can be written again. */
  #isTrial = false;
  #reopenMs = FIRST_REOPEN_MS;
  readonly #slow: Timer;
  readonly #foldLater: Timer;

  constructor(store: Store, host: LedgerHost, maxUnwritten: number) {
    this.store = store;
    this.#host = host;
    this.unwritten = new Unwritten(maxUnwritten, this);
    this.#lazy = timer(() => this.#hurry());
    this.#foldLater = timer(() => {
      this.#mustFold = true;
      this.#hurry();
    });
    this.#slow = timer(() => {
      const text = `${store.name}: a commit takes longer than ${SLOW_COMMIT_MS / 1000} s; what waits for it is not acknowledged. Check the disk.`;
      host.failed(new BrokerError('STORE_SLOW', text), 'writing to the store');
    });
  }

  /**
   * Open the store and see whether all its commits are there.
   * @param look reads what else is there, before anything is written: a store that it refuses is closed as it was
   * @throws BrokerError STORE_TOO_NEW; StateError STORE_CHANGED, STORE_IN_USE (also while `close` is under way); what the store and `look` throw
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
        this.#checkOurs(commits.last);
        this.#checkLast(commits.last);
      } else this.#commit = commits.last;
      const seen = await look(commits, fold);
      // what this one has written since it was opened first, it knows better
      if (fold.draft.batch.length > 0 && this.#journals.length === 0) {
        // until when clients were connected is what that time says: nobody has been since
        writeCommit(fold.draft, this.#commit + 1, commits.lastWallMs);
        await this.store.commit(fold.draft.batch);
        this.#commit++;
      }
      const madeAt = found?.madeAt ?? this.#host.clock.now();
      if (found?.format !== FORMAT) {
        // before anything that an older version cannot read
        this.#draft.clear();
        this.#draft.key(Kind.format).value().u8(FORMAT).f64(madeAt).put();
        await this.store.commit(this.#draft.batch);
      }
      this.#madeAt = madeAt;
      this.isOpen = this.#isCommitKnown = true;
      this.#isUrgent = false;
      if (this.#dirty.length > 0) this.#hurry(); // what could not be written before
      return seen;
    } catch (error) {
      await this.#closeStore();
      release(this.store);
      throw error;
    }
  }

  /** What it fails with is told. */
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

  /** Number of the last commit that the store is known to hold. */
  get commit(): number {
    return this.#commit;
  }

  /** The commit that will hold what is changed now. */
  get ticket(): number {
    return this.#ticket + 1;
  }

  /** The commit that holds, or will hold, the last change of an item; 0: it is kept. */
  ticketOf(item: Durable): number {
    return item.isDirty ? this.ticket : this.#isBusy ? this.#ticket : 0;
  }

  /** Whoever waited for this commit was told that it failed. A later one may be settled since. */
  hasRefused(ticket: number): boolean {
    return this.#refused.some(([first, last]) => ticket >= first && ticket <= last);
  }

  /** It has changed; nobody waits for that. @param bytes what it will take, roughly */
  touch(item: Durable, bytes = 0): void {
    this.unwritten.noted += bytes;
    if (item.isDirty) return;
    item.isDirty = true;
    this.#dirty.push(item);
    if (this.#lazy.dueMs === Infinity && !this.isFailed) this.#host.wheel.arm(this.#lazy, LAZY_MS);
  }

  /** It has changed, and somebody waits for that with `ticket`. */
  promise(item: Durable, bytes = 0): void {
    this.unwritten.noted += bytes;
    this.promises++;
    if (!item.isDirty) {
      item.isDirty = true;
      this.#dirty.push(item);
    }
    this.#hurry();
  }

  /** Write down the time: until now there was a process, and who is connected was. */
  pulse(): void {
    this.#isPulseDue = true;
    this.#hurry();
  }

  #hurry(): void {
    if (this.#isUrgent) return;
    this.#isUrgent = true;
    if (!this.#isBusy) this.#host.turnLater();
  }

  /** Have a waiter told of every commit until it wants no more. */
  wait(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /**
   * What the store has, see `Store.read`.
   * @throws StateError STORE_CLOSED when `close` was called meanwhile; BrokerError STORE_UNUSABLE, or what a store says by an error of its own
   */
  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    const life = this.#life;
    try {
      return await this.store.read(from, to, limit);
    } catch (error) {
      if (!this.isOpen || this.#life !== life) throw new StateError('STORE_CLOSED', `${this.store.name}: was closed`);
      if (error instanceof BrokerError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new BrokerError('STORE_UNUSABLE', `${this.store.name}: the store cannot be read: ${why}`, {
        cause: error
      });
    }
  }

  /** Why nothing that promises is accepted while `isFailed`. */
  refusal(): BrokerError {
    return new BrokerError(
      'STORE_FAILED',
      `${this.store.name}: cannot be written at present, so messages and changes that must be persisted are refused. The broker retries; check the disk`
    );
  }

  /** Resolves when the commit of this ticket is kept. @throws BrokerError STORE_FAILED */
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

  /** Let commits wait, or go on: what waits for them waits as well, and publishers pause. */
  set isWaiting(isWaiting: boolean) {
    this.#isWaiting = isWaiting;
    if (!isWaiting && this.#isUrgent && !this.#isBusy) this.#host.turnLater();
  }

  /** The turn is over: what it changed leaves, unless a commit is under way. */
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
    this.#isFolding = this.#isFoldDue(gathered);
    if (this.#isFolding) this.#fold(draft);
    else this.#writeJournal(draft, number);
    this.#isBusy = true;
    work.begin();
    if (draft.batch.length === 0 && !this.#isPulseDue && !this.#isTrial) {
      this.#done(undefined);
      return;
    }
    this.#isPulseDue = false;
    writeCommit(draft, number, clock.now());
    wheel.arm(this.#slow, SLOW_COMMIT_MS);
    this.#commitNow(draft.batch).then(
      () => {
        this.#commit = number;
        this.#done(undefined);
      },
      (error: unknown) => this.#done(error ?? new Error('the commit was rejected'))
    );
  }

  #isFoldDue(gathered: number): boolean {
    return (
      this.#mustFold ||
      this.#journalBytes + gathered > FOLD_BYTES ||
      this.#journals.length >= FOLD_COMMITS ||
      this.#unfolded.size >= FOLD_ITEMS
    );
  }

  #writeJournal(draft: Draft, number: number): void {
    const journal = beginJournal(this.#journal, number);
    const empty = journal.nested;
    let { nested } = journal;
    for (const item of this.#written) {
      item.isDirty = false;
      this.#guard(() => item.write(draft, journal));
      if (journal.nested === nested) continue;
      nested = journal.nested;
      this.#unfolded.add(item);
    }
    if (nested === empty) return;
    journal.unnest().put();
    draft.batch.put(journal.batch.keys[0], journal.batch.values[0] as Buffer);
    this.#journals.push(number);
    this.#journalBytes += nested;
  }

  #fold(draft: Draft): void {
    this.#host.wheel.disarm(this.#foldLater);
    for (const item of this.#unfolded) if (!item.isDirty) this.#written.push(item);
    for (const item of this.#written) {
      item.isDirty = false;
      this.#guard(() => item.write(draft, undefined));
    }
    for (const number of this.#journals) draft.key(Kind.journal).u48(number).delete();
  }

  #folded(): void {
    this.#isFolding = this.#mustFold = false;
    this.#journals = [];
    this.#journalBytes = 0;
    this.#unfolded.clear();
  }

  async #commitNow(batch: Batch): Promise<void> {
    await this.store.commit(batch);
  }

  #done(error: unknown): void {
    this.#host.wheel.disarm(this.#slow);
    this.#host.written(this.#draft.batch.bytes);
    this.#isBusy = false;
    this.unwritten.ended();
    const written = this.#written;
    this.#written = [];
    if (error === undefined) {
      this.settled = this.#ticket;
      if (this.#isFolding) this.#folded();
      if (this.isFailed) this.#recovered();
      for (const item of written) this.#guard(() => item.committed());
      this.#tell((waiter) => waiter.commitSucceeded(this.settled));
    } else this.#fail(error, written);
    // those who waited have changed something in their turn
    if (this.#isUrgent && !this.isFailed) this.#host.turnLater();
    else if (this.#dirty.length > 0 && this.#lazy.dueMs === Infinity && !this.isFailed)
      this.#host.wheel.arm(this.#lazy, LAZY_MS);
    if (this.#journals.length > 0 && this.#foldLater.dueMs === Infinity && !this.isFailed)
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

  #tell(waits: (waiter: Waiter) => boolean): void {
    for (const waiter of [...this.#waiters]) {
      this.#guard(() => {
        if (!waits(waiter)) this.#waiters.delete(waiter);
      });
    }
  }

  #fail(cause: unknown, written: readonly Durable[]): void {
    const why = cause instanceof Error ? cause.message : String(cause);
    const error = new BrokerError(
      'STORE_FAILED',
      `${this.store.name}: a commit failed: ${why}. The broker retries; check the disk`,
      { cause }
    );
    const isNew = !this.isFailed;
    this.isFailed = true;
    const isUntouched = cause instanceof Error && (cause as { isUntouched?: unknown }).isUntouched === true;
    if (!isUntouched) this.#isCommitKnown = false;
    this.#mustFold = true; // what is in the store is known then, whether it has taken this commit or not
    this.#isTrial = false;
    for (const item of written) {
      if (item.isDirty) continue;
      item.isDirty = true;
      this.#dirty.push(item);
    }
    for (const item of this.#dirty) this.#guard(() => item.commitFailed());
    this.#isUrgent = true;
    this.#host.wheel.disarm(this.#lazy);
    if (isNew) this.#host.storeFailed(error);
    // what gathered since the failing commit began waits for the next one: that, too, is not to be had now
    const ticket = this.ticket;
    this.#ticket++;
    if (isNew) {
      this.#refused.push([this.settled + 1, ticket]);
      if (this.#refused.length > FAILURES_REMEMBERED) this.#refused.shift();
    } else (this.#refused.at(-1) as [number, number])[1] = ticket;
    this.#tell((waiter) => waiter.commitFailed(ticket, error));
    this.#reopening = this.#reopen(isUntouched);
  }

  /**
   * A handle on which a write failed may never write again (LevelDB's does not), and says nothing of what it has kept. Opened anew it is
   * tried with all that waits: room for less is not enough.
   * @param isOpen nothing was written: it is only tried again
   */
  async #reopen(isOpen: boolean): Promise<void> {
    const { clock, work } = this.#host;
    const life = this.#life;
    let isOtherTold = false;
    while (this.#life === life) {
      if (!isOpen) await work.during(this.#closeStore());
      if (this.#life !== life) return;
      const delayMs = this.#reopenMs;
      this.#reopenMs = Math.min(delayMs * 2, SLOWEST_REOPEN_MS);
      await new Promise<void>((resolve) => {
        this.#endPause = resolve;
        this.#reopenTimer = (clock.internal ?? clock).setTimeout(resolve, delayMs);
      });
      if (this.#life !== life) return;
      if (isOpen) break;
      try {
        await work.during(this.#openAgain());
        break;
      } catch (error) {
        // for all else, it has been told that the store failed
        const isOther = error instanceof OtherStore; // the one that was there may come back
        if (!isChanged(error) || (isOther && isOtherTold)) continue;
        this.#host.failed(error, 'opening the store again');
        isOtherTold = isOther;
        if (isOther) continue;
        await this.#closeStore();
        return;
      }
    }
    if (this.#life !== life) return;
    this.#isTrial = true;
    this.#begin();
  }

  async #openAgain(): Promise<void> {
    await this.store.open();
    this.#checkSame((await checkFormat(this.store))?.madeAt);
    const { last } = await readCommits(this.store);
    this.#checkOurs(last);
    this.#checkLast(last);
  }

  /** @throws OtherStore */
  #checkSame(madeAt: number | undefined): void {
    if (madeAt !== this.#madeAt) throw new OtherStore(this.store);
  }

  /** @throws StateError STORE_CHANGED */
  #checkOurs(last: number): void {
    const isBehind = this.#isCommitKnown && last < this.#commit;
    if (!isBehind && last <= this.#commit + (this.#isCommitKnown ? 0 : 1)) return;
    throw new StateError(
      'STORE_CHANGED',
      `${this.store.name}: another broker has written to it, so this one cannot continue with its state in memory: create a new broker`
    );
  }

  /** The last commit that was kept has to be there; one more may be, of which nobody knew whether it was. */
  #checkLast(last: number): void {
    if (last < this.#commit) {
      const text = `${this.store.name}: commits ${last + 1} to ${this.#commit} were kept and are missing since it was opened again. What they held is lost; the next start names them, and goes on without them if the option repairStore says so.`;
      this.#host.failed(new BrokerError('STORE_CORRUPT', text), 'opening the store again');
    }
    // what is missing stays a gap, which the next start finds
    this.#commit = Math.max(this.#commit, last);
  }

  #recovered(): void {
    this.isFailed = this.#isTrial = false;
    this.#isCommitKnown = true;
    this.#reopenMs = FIRST_REOPEN_MS;
    this.#host.storeRecovered();
  }

  /** `close` is under way: a commit may hang for long. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** Write what is left and close the store; while that is under way, the same again. @throws BrokerError STORE_FAILED if that is not kept */
  close(): Promise<void> {
    this.#closing ??= this.#close().finally(() => {
      this.#closing = undefined;
    });
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (!isClaimedBy(this.store, this)) return; // it was never opened, and another ledger may have it
    while (this.#isBusy || (!this.isFailed && (this.#dirty.length > 0 || this.#journals.length > 0))) {
      this.#mustFold = true;
      if (!this.#isBusy) this.#begin();
      if (this.#isBusy)
        await new Promise<void>((resolve) => {
          this.#onIdle = resolve;
        });
    }
    this.#onIdle = undefined;
    this.#life++;
    this.isOpen = false;
    const { clock, wheel } = this.#host;
    (clock.internal ?? clock).clearTimeout(this.#reopenTimer);
    this.#endPause?.();
    await this.#reopening; // what is being opened can be closed then
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

/** What is opened again is not what was open before. */
class OtherStore extends StateError {
  constructor({ name }: Store) {
    super('STORE_CHANGED', `${name}: another store is in the place of the one that was open: put that one back`);
  }
}

function isChanged(error: unknown): error is StateError {
  return error instanceof StateError && error.code === 'STORE_CHANGED';
}

function timer(ring: () => void): Timer {
  return { dueMs: Infinity, slot: undefined, previous: undefined, next: undefined, ring };
}
