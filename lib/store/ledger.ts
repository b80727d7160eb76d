// A failed commit refuses what it contained. Publishers get 0x97 (3.x: the connection ends). What was not sent yet is
// forgotten; what was sent stays and is written later; a replaced retained message is restored. The store is closed
// and opened again before anything else is written, because a LevelDB handle on which a write failed may accept
// writes that are gone at the next open. Only a store that says that it has written nothing (`isUntouched`) stays
// open. Whether it has the failed commit is known when it is open again: if not, nothing has changed, and what the
// journals contain stays there; if so, its records are replaced by a fold.
//
// The first commit after a failure contains everything that waits, not a probe: space for a few bytes is not space
// for the rest, and the alarm would flap. The last committed record must be there again. If it is not, an error is
// announced and the commit numbers keep a gap that the next start finds. On a full disk this commit must not be what
// keeps the store from working, because a failed store admits no client that would drain its queue. So it folds no
// journals (256 KB of messages that can not be acknowledged now), and if it is refused for lack of space, the changes
// are written in parts: a quarter of the refused bytes at first, later less, at least one object at a time, in the
// order of the first changes. These parts leave out refused data that may be large: messages that no other client
// will acknowledge (sent, but the client is gone), queued messages of QoS 0, and retained messages that the store
// has. Each part that is accepted leaves less, so the store works again as soon as it has space for the state of one
// session at a time. While it works, the store may refuse a fold for lack of space: the journals stay, the other
// changes are committed without it, and a second later it is tried again.

import type { BaseServices } from '../base/base-services.ts';
import { BrokerError, errorText, StateError } from '../base/errors.ts';
import { FunctionTimer, type Timer } from '../base/timing-wheel.ts';
import { awaitCommit, type Message } from '../packets/message.ts';
import { Changes } from './changes.ts';
import type { StoreActions, StoreEvent } from './chart.ts';
import type { Commits } from './commits.ts';
import type { Durable, Waiter } from './durable.ts';
import type { Fold } from './journal.ts';
import { OpenStore } from './open-store.ts';
import type { Entry, Store } from './store.ts';
import { Unwritten } from './unwritten.ts';
import { Waiters } from './waiters.ts';

/** The part of the broker that the ledger uses. */
export interface LedgerHost {
  /** Start the chart of the store. Called once. */
  startChart(actions: StoreActions): { send(type: StoreEvent['type']): void };
  /** Request a call of `turnEnded` at the end of the turn. */
  turnLater(): void;
  /** Called when a commit fails, unless the store has failed already. */
  storeFailed(error: BrokerError): void;
  /** Called when a commit succeeds after a failure. */
  storeRecovered(): void;
  /** Called when a commit has succeeded or failed. @param bytes size of the commit */
  written(bytes: number): void;
}

const STILL_CLOSING =
  'writes from the previous stop() are still in progress. Start again when the disk answers, or end this process.';
const REFUSED =
  'cannot be written at present, so messages and changes that must be persisted are refused. The broker retries; check the disk';
const LAST_LOST =
  'the last changes could not be written; none of them was acknowledged. Check the disk before the next start.';
/** Maximum delay of a change that nothing waits for, in addition to a tick of the timing wheel. */
const MAX_LAZY_MS = 50;
/** A commit that takes longer than this is reported once. */
const SLOW_COMMIT_MS = 10_000;
/** Journals are folded when the oldest one has this age, or earlier; see `Journals`. */
const FOLD_MS = 100;
/** Delay until journals are folded after the store has refused this for lack of space. */
const FOLD_RETRY_MS = 1_000;

/**
 * Writes changes to the store in group commits.
 *
 * All changes since the last commit are committed as one batch, at the end of the turn. Changes during a commit wait for the next one. An
 * acknowledgement that must not be sent before a change is persisted takes the `ticket` of its commit and waits for that commit.
 *
 * After a failed commit, the store is closed and opened again, and then the lost changes are written again. Meanwhile `isFailed` is true,
 * and operations that promise persistence are refused.
 *
 * The chart of the store (`store.machine.ts`) decides what happens when; its actions are methods of this class. `isOpen`, `isFailed` and
 * `#isBusy` say in which states it is, because messages ask for them and must not ask an actor: only actions write them. What is due
 * (`#isUrgent`, `#isPulseDue`) or stopped (`isWaiting`) is a field that may be true in every state.
 */
export class Ledger {
  /**
   * Number of changes so far that an acknowledgement must wait for. To know whether to wait after an operation, pass the number before it to
   * `ticketSince`.
   */
  promises = 0;
  /** Ticket of the last successful commit. */
  settled = 0;
  /** True in the state `failed`: from a failed commit until the next successful one. */
  isFailed = false;
  /** True in the states `open` and `failed`: from `open` until `close` has written all changes. */
  isOpen = false;
  /** Approximate number of bytes that wait to be written, and the publishers that have caused them. */
  readonly unwritten: Unwritten;
  /** The store that the ledger writes to. */
  readonly store: Store;
  readonly #services: BaseServices;
  readonly #host: LedgerHost;
  readonly #opened: OpenStore;
  readonly #changes: Changes;
  readonly #waiters: Waiters;
  /** Ticket of the current commit, or of the last one. */
  #ticket = 0;
  /** True while a commit is in progress: in the states `open.writing` and `failed.trying`. */
  #isBusy = false;
  /** True if a commit is due at the end of the turn. */
  #isUrgent = false;
  #isWaiting = false;
  #isPulseDue = false;
  /** undefined: the store was never opened. */
  #chart: { send(type: StoreEvent['type']): void } | undefined;
  /** The error of the commit that is being reported as failed. */
  #cause: unknown;
  readonly #lazy: Timer;
  #onIdle: (() => void) | undefined;
  #closing: Promise<void> | undefined;
  readonly #slow: Timer;
  readonly #foldLater: Timer;

  constructor(store: Store, services: BaseServices, host: LedgerHost, maxUnwritten: number) {
    this.store = store;
    this.#services = services;
    this.#host = host;
    this.unwritten = new Unwritten(maxUnwritten, this);
    const failed = (error: unknown) => services.failed(error, 'a commit');
    this.#changes = new Changes(failed);
    this.#waiters = new Waiters(failed);
    this.#opened = new OpenStore(store, services, this.#changes.journals);
    this.#lazy = new FunctionTimer(() => this.#requestCommit());
    this.#foldLater = new FunctionTimer(() => {
      this.#changes.journals.requestFold();
      this.#requestCommit();
    });
    this.#slow = new FunctionTimer(() => {
      const text = `${store.name}: a commit takes longer than ${SLOW_COMMIT_MS / 1000} s; messages that wait for it are not acknowledged. Check the disk.`;
      services.failed(new BrokerError('STORE_SLOW', text), 'writing to the store');
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
    this.#chart ??= this.#host.startChart(this.#actions());
    this.#send('open');
    try {
      const seen = await this.#opened.open(look);
      this.#send('opened');
      return seen;
    } catch (error) {
      this.#send('refused');
      throw error;
    }
  }

  #accept(): void {
    this.isOpen = true;
    this.#changes.writeAll();
    this.#isUrgent = false;
    if (!this.#changes.isEmpty) this.#requestCommit(); // changes that could not be written before
  }

  /** Bytes of the commit in progress. */
  get bytesInProgress(): number {
    return this.#isBusy ? this.#changes.bytes : 0;
  }

  /** Number of the last commit that is known to be in the store. */
  get commit(): number {
    return this.#opened.commit;
  }

  /** The version of the definitions in the store, which is open; see `DEFINITIONS_VERSION`. */
  get definitions(): number {
    return this.#opened.format?.definitions ?? 0;
  }

  /** Note that the differences of the definitions were reported: the store gets the current version. */
  definitionsReported(): void {
    if (this.#opened.format !== undefined) this.touch(this.#opened.format);
  }

  /** Ticket of the commit that will contain the current changes. */
  get ticket(): number {
    return this.#ticket + 1;
  }

  /** Get the ticket of the commit that contains, or will contain, the last change of an item; 0 if that change is committed. */
  ticketOf(item: Durable): number {
    return item.isDirty ? this.ticket : this.#isBusy ? this.#ticket : 0;
  }

  /** Tell whether the commit of a ticket has failed. Later commits may have succeeded since. */
  hasRefused(ticket: number): boolean {
    return this.#waiters.hasRefused(ticket);
  }

  /**
   * Note a change of an item for which no acknowledgement waits. It is written with the next commit, after MAX_LAZY_MS at the latest.
   * @param bytes approximate size of the change
   */
  touch(item: Durable, bytes = 0): void {
    this.unwritten.note(bytes);
    if (item.isDirty) return;
    this.#changes.add(item);
    if (this.#lazy.dueMs === Infinity && !this.isFailed) this.#services.wheel.arm(this.#lazy, MAX_LAZY_MS);
  }

  /**
   * Note a change of an item for which an acknowledgement waits, until the commit `ticket`. This commit starts at the end of the turn, or
   * when the current one has ended.
   * @param bytes approximate size of the change
   */
  promise(item: Durable, bytes = 0): void {
    this.unwritten.note(bytes);
    this.promises++;
    if (!item.isDirty) this.#changes.add(item);
    this.#requestCommit();
  }

  /** Commit the current time. After a crash it shows how long the process ran and its clients were connected. */
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
   * @throws StateError STORE_CLOSED if `close` was called in the meantime; BrokerError STORE_UNUSABLE if the store throws an error that is
   * not a BrokerError; any BrokerError of the store
   */
  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    const { generation } = this.#opened;
    try {
      return await this.store.read(from, to, limit);
    } catch (error) {
      if (!this.isOpen || this.#opened.generation !== generation)
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
    if (ticket > this.#ticket) this.#requestCommit(); // nothing else may need this commit
    return this.#waiters.until(ticket);
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
    this.#send('commit');
  }

  #send(type: StoreEvent['type']): void {
    this.#chart?.send(type);
  }

  #actions(): StoreActions {
    return {
      accept: () => this.#accept(),
      write: () => this.#write(),
      end: () => this.#end(),
      notify: () => this.#notify(),
      notifyPart: () => this.#changes.committed(),
      rest: () => this.#rest(),
      keepJournals: () => this.#keepJournals(),
      refuse: () => this.#refuse(),
      raise: () => this.#host.storeFailed(commitError(this.store, this.#cause)),
      reject: () => this.#reject(),
      shrink: () => {
        if (isUntouched(this.#cause)) this.#changes.writeParts();
      },
      reopen: () => this.#reopen(),
      recover: () => this.#recover(),
      shut: () => {
        this.isOpen = this.isFailed = false;
      }
    };
  }

  #write(): void {
    const { wheel, work } = this.#services;
    const changes = this.#changes;
    const isTrial = this.isFailed;
    this.#isUrgent = false;
    wheel.disarm(this.#lazy);
    const { gathered } = this.unwritten;
    this.unwritten.begun();
    this.#ticket++;
    const draft = changes.write(this.#opened.commit + 1, gathered, isTrial);
    if (changes.isFolding) wheel.disarm(this.#foldLater);
    this.#isBusy = true;
    if (draft.batch.length === 0 && !this.#isPulseDue && !isTrial) {
      this.#succeeded(); // the actor takes the event when it has entered the state
      return;
    }
    this.#isPulseDue = false;
    wheel.arm(this.#slow, SLOW_COMMIT_MS);
    work.begin();
    this.#opened.write(draft).then(
      () => {
        this.#succeeded();
        work.end();
      },
      (error: unknown) => {
        this.#failed(error ?? new Error('the commit was rejected'));
        work.end();
      }
    );
  }

  #succeeded(): void {
    const { isPart } = this.#changes;
    this.#changes.stored(this.#opened.commit);
    if (!isPart) this.settled = this.#ticket;
    this.#send(isPart ? 'partCommitted' : 'committed');
  }

  #failed(error: unknown): void {
    const { isFolding, journals } = this.#changes;
    this.#cause = error;
    this.#send(isFolding && !journals.mustFold && isUntouched(error) ? 'foldRefused' : 'failed');
    this.#cause = undefined;
  }

  #end(): void {
    this.#services.wheel.disarm(this.#slow);
    this.#isBusy = false;
    this.unwritten.ended();
    this.#host.written(this.#changes.bytes);
  }

  #notify(): void {
    this.#changes.committed();
    this.#waiters.succeeded(this.settled);
  }

  #rest(): void {
    const { wheel } = this.#services;
    const changes = this.#changes;
    // notified waiters may have made changes
    if (this.#isUrgent) this.#host.turnLater();
    else if (!changes.isEmpty && this.#lazy.dueMs === Infinity) wheel.arm(this.#lazy, MAX_LAZY_MS);
    if (changes.journals.count > 0 && this.#foldLater.dueMs === Infinity) wheel.arm(this.#foldLater, FOLD_MS);
    this.#onIdle?.();
  }

  #recover(): void {
    this.isFailed = false;
    this.#opened.works();
    this.#changes.writeAll();
    this.#host.storeRecovered();
  }

  /** Write the same changes without folding the journals, which is tried again later. */
  #keepJournals(): void {
    this.#changes.foldRefused();
    this.#services.wheel.arm(this.#foldLater, FOLD_RETRY_MS);
  }

  #refuse(): void {
    this.isFailed = true;
    const isStillOpen = isUntouched(this.#cause);
    if (!isStillOpen) this.#changes.writeAll(); // each object must see at its next write whether this commit is in the store
    this.#changes.commitFailed(isStillOpen ? 'untouched' : 'unknown');
    this.#isUrgent = true;
    this.#services.wheel.disarm(this.#lazy);
  }

  #reject(): void {
    // changes since the failed commit started wait for the next ticket, which fails as well
    const ticket = this.ticket;
    this.#ticket++;
    this.#waiters.refuse(this.settled, ticket);
    this.#waiters.failed(ticket, commitError(this.store, this.#cause));
  }

  #reopen(): void {
    this.#opened.reopen(isUntouched(this.#cause), () => this.#send('reopened'));
    this.#onIdle?.();
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
    const changes = this.#changes;
    if (!this.#opened.isClaimed) return; // the store was never opened, and another ledger may use it
    changes.journals.retryFold();
    // journals that the store has no space to fold are folded after the next start
    const hasWork = () => !changes.isEmpty || changes.journals.canFold;
    while (this.isOpen && (this.#isBusy || (!this.isFailed && hasWork()))) {
      changes.journals.requestFold();
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
        this.#send('commit'); // ignored while a commit is in progress
      });
    }
    this.#onIdle = undefined;
    const hasFailed = this.isFailed;
    this.#send('close');
    await this.#opened.stop();
    this.#services.wheel.disarm(this.#lazy);
    this.#services.wheel.disarm(this.#foldLater);
    const isLost = hasFailed && !changes.isEmpty;
    this.#isUrgent = false;
    try {
      await this.#opened.close();
    } catch (error) {
      if (!isLost) throw error;
      this.#services.failed(error, 'closing the store');
    } finally {
      this.#send('closed');
    }
    if (isLost) throw new BrokerError('STORE_FAILED', `${this.store.name}: ${LAST_LOST}`);
  }
}

/** Ticket of the commit to wait for if changes were promised since `promises` had this value; 0 if none were. */
export function ticketSince(ledger: Ledger, promises: number): number {
  return ledger.promises === promises ? 0 : ledger.ticket;
}

/**
 * Find out which commit the publisher of a message must wait for, after `awaitCommit` and the delivery of the message. If there is none, its
 * publisher is answered now, so a commit that fails later must not refuse the message.
 * @param promises the value of `Ledger.promises` before the delivery
 * @returns ticket of the commit; 0: none
 */
export function ticketOfAnswer(ledger: Ledger, promises: number, message: Message): number {
  const ticket = ticketSince(ledger, promises);
  if (ticket === 0) awaitCommit(message, 0);
  return ticket;
}

/** Tell whether the store has refused a commit before it wrote anything; see `Store.commit`. */
function isUntouched(error: unknown): boolean {
  return error instanceof Error && (error as { isUntouched?: unknown }).isUntouched === true;
}

function commitError({ name }: Store, cause: unknown): BrokerError {
  const why = errorText(cause);
  const text = `${name}: a commit failed: ${why}. The broker retries; check the disk`;
  return new BrokerError('STORE_FAILED', text, { cause });
}

function readError({ name }: Store, error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  const why = errorText(error);
  return new BrokerError('STORE_UNUSABLE', `${name}: the store cannot be read: ${why}`, { cause: error });
}
