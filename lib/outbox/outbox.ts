// A delivery is in `#deliveries` until it has an outcome; one that was aborted or timed out is removed first, so a
// late answer has no effect. Deliveries that fail during a pause are part of the failure that began it: a server that
// reset 32 deliveries at once was otherwise not tried for a minute. Failures only extend a pause, so that no later
// one shortens the time that a target has asked for. `settled` of the owner is called after the entry has left, and
// may throw.

import { asError, BrokerError, StateError } from '../base/errors.ts';
import { FunctionTimer, type TimingWheel } from '../base/timing-wheel.ts';
import { Attempt } from './attempt.ts';
import { Entries, type OutboxEntry, type Outcome, type QueuedEntry, type StoredEntry } from './entries.ts';
import type { OutboxLimits, OutboxOptions } from './options.ts';
import { SendError } from './send-error.ts';

/** Number of keys that fail without a success in between, from which the target counts as down. */
const DOWN_FROM_KEYS = 3;
/** Number of consecutive failures from which an alarm is raised. */
const ALARM_FROM = 3;
/** Fraction by which delays vary at most. */
const JITTER = 0.25;

/** Dependencies of an outbox on the broker. */
interface OutboxHost {
  readonly wheel: TimingWheel;
  /** The wall-clock time in milliseconds. */
  now(): number;
  /** Create a unique id for an entry. */
  nextId(): string;
  /** Call a function when the turn of the event loop has ended. */
  later(run: () => void): void;
  /** Note that a delivery is in progress. */
  during(delivery: Promise<unknown>): void;
  /** A random number from 0 to 1. */
  random(): number;
  /** Called before an entry is added. @throws StateError BROKER_NOT_STARTED */
  check(): void;
  /** Called when an entry to be persisted was added. @returns false if it is not persisted and may be sent */
  added(entry: QueuedEntry): boolean;
  /** Called when an entry has left the outbox. */
  removed(entry: QueuedEntry): void;
  /** Increment a metric of the broker. */
  counted(what: 'sent' | 'failed' | 'dropped', count: number): void;
  raise(condition: 'failing' | 'overflow', summary: string): void;
  clear(condition: 'failing' | 'overflow'): void;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
  closed(outbox: Outbox): void;
}

/** The counters of an outbox since it was opened. */
export interface OutboxCounters {
  /** Entries that were added. */
  readonly added: number;
  /** Entries that were delivered. */
  readonly sent: number;
  /** Failed attempts. */
  readonly failed: number;
  /** Entries that were not delivered, by reason. */
  readonly dropped: Readonly<Record<Exclude<Outcome, 'sent'>, number>>;
}

/** A delivery in progress. */
interface Delivery {
  readonly entries: readonly QueuedEntry[];
  readonly keys: readonly string[];
  readonly attempt: Attempt;
  readonly timer: FunctionTimer;
}

/**
 * A bounded queue of entries to be sent to a target outside of this process: `broker.outboxes.open`.
 *
 * Entries of one key are sent one by one, those of different keys concurrently. A failed delivery is repeated after a
 * delay that doubles each time; meanwhile only entries of its key wait. If three keys fail without a success in
 * between, the target counts as down: a single delivery is tried after each delay, until one succeeds. A target that is
 * slow or down never delays the broker: if the queue is full, the oldest entry is dropped and counted, and an alarm is
 * raised.
 *
 * An entry may be delivered more than once: if its answer was lost, if it took longer than `timeout`, or if the process
 * ended before its record was deleted. Its id stays the same.
 */
export class Outbox {
  /** The name of the outbox. */
  readonly name: string;
  /** See `OutboxOptions.label`. */
  readonly label: string;
  /** The options after they have been read. */
  readonly limits: OutboxLimits;
  readonly #options: OutboxOptions;
  readonly #host: OutboxHost;
  readonly #entries: Entries;
  readonly #deliveries = new Set<Delivery>();
  /** The keys that have failed since the last success, at most `DOWN_FROM_KEYS`. */
  readonly #failing = new Set<string>();
  /** While it is running, nothing is sent. */
  readonly #pause = new FunctionTimer(() => this.#schedule());
  #failuresInARow = 0;
  #failuresWhileDown = 0;
  #isDown = false;
  #isRunning = false;
  #isClosed = false;
  #isScheduled = false;
  #isOverflowing = false;
  #lastError: Error | undefined;
  #waiting: (() => void)[] = [];
  readonly #counters = {
    added: 0,
    sent: 0,
    failed: 0,
    dropped: { overflow: 0, too_old: 0, refused: 0, removed: 0 }
  };

  /** @internal */
  constructor(options: OutboxOptions, limits: OutboxLimits, host: OutboxHost) {
    this.name = options.name;
    this.label = options.label ?? options.name;
    this.limits = limits;
    this.#options = options;
    this.#host = host;
    this.#entries = new Entries(host.wheel, () => this.#schedule());
  }

  /** Number of entries, including those being sent. */
  get size(): number {
    return this.#entries.size;
  }

  /** Approximate memory of the entries in bytes. */
  get bytes(): number {
    return this.#entries.bytes;
  }

  /**
   * `stopped`: the broker is not started, or the outbox is closed; `down`: deliveries of several keys have failed, and
   * are tried one at a time; `paused`: the target has requested a pause; `failing`: the last deliveries have failed,
   * and an alarm is raised.
   */
  get state(): 'stopped' | 'down' | 'paused' | 'failing' | 'working' {
    if (!this.#isRunning) return 'stopped';
    if (this.#isDown) return 'down';
    if (this.#pause.dueMs !== Infinity) return 'paused';
    return this.#failuresInARow < ALARM_FROM ? 'working' : 'failing';
  }

  /** The reason why the last delivery failed; undefined after a success. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** The current counters. */
  get counters(): OutboxCounters {
    return { ...this.#counters, dropped: { ...this.#counters.dropped } };
  }

  /** @deprecated Use `counters`. */
  get figures(): OutboxCounters {
    return this.counters;
  }

  /** The entries, oldest first. */
  entries(): Iterable<OutboxEntry> {
    return this.#entries;
  }

  /**
   * Add an entry. It is sent after the current turn of the event loop or, if it is persisted, after its commit.
   * Acknowledgements of the broker in the same turn wait for this commit.
   * @param keptBytes memory that is retained for the entry besides its content; it counts towards `maxBytes`
   * @returns its id
   * @throws StateError OUTBOX_CLOSED; BROKER_NOT_STARTED if it is persisted and the store was never open
   */
  add(key: string, content: string | Buffer, keptBytes = 0): string {
    if (this.#isClosed) throw new StateError('OUTBOX_CLOSED', `outbox "${this.name}" is closed`);
    this.#host.check();
    const { maxEntries, maxBytes } = this.limits;
    const id = this.#host.nextId();
    const entry = this.#entries.add({ id, key, content, addedAt: this.#host.now() }, false, keptBytes);
    this.#counters.added++;
    while (this.#entries.size > maxEntries || this.#entries.bytes > maxBytes) {
      // An entry that is larger than the limit is dropped itself, instead of others.
      const oldest = entry.bytes > maxBytes ? entry : this.#entries.oldestAtRest;
      if (oldest === undefined) break;
      this.#overflow();
      this.#leave(oldest, 'overflow', undefined);
      if (oldest === entry) return id;
    }
    if (!this.#host.added(entry)) this.#entries.committed(entry);
    return id;
  }

  /** Take over an entry from the store. @internal */
  restore(stored: StoredEntry): QueuedEntry {
    return this.#entries.add(stored, true);
  }

  /** Note that the record of an entry is committed. @internal */
  committed(entry: QueuedEntry): void {
    this.#entries.committed(entry);
  }

  /** Remove the entries that are not being sent. @param key limits this to one key @returns their number */
  clear(key?: string): number {
    let count = 0;
    for (const entry of [...this.#entries]) {
      if (entry.isSending || (key !== undefined && entry.key !== key)) continue;
      this.#leave(entry, 'removed', undefined);
      count++;
    }
    return count;
  }

  /** End all delays, and send immediately. */
  retryNow(): void {
    this.#host.wheel.disarm(this.#pause);
    this.#entries.wakeAll();
    this.#schedule();
  }

  /**
   * Resolves when nothing is being sent and no entry could be sent at present: all entries are delivered, or wait for a
   * delay.
   */
  idle(): Promise<void> {
    return this.#isIdle ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Stop sending. Deliveries in progress are aborted. Persisted entries stay in the store, and the next outbox of this
   * name continues with them; others are dropped.
   */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.halt();
    this.#clear('failing');
    this.#clear('overflow');
    this.#host.closed(this);
  }

  /** Called when the broker has started. @internal */
  begin(): void {
    if (this.#isClosed) return;
    this.#isRunning = true;
    this.retryNow();
  }

  /** Called when the broker has stopped: abort the deliveries in progress. They do not count as failures. @internal */
  halt(): void {
    this.#isRunning = false;
    this.#host.wheel.disarm(this.#pause);
    const aborted = new StateError('OUTBOX_STOPPED', `outbox "${this.name}" has stopped`);
    for (const delivery of [...this.#deliveries]) {
      this.#end(delivery, 0);
      delivery.attempt.abort(aborted);
    }
    this.#woken();
  }

  // -------------------------------------------------------------------------------------------------------------- sending

  get #isPaused(): boolean {
    return this.#pause.dueMs !== Infinity;
  }

  get #isIdle(): boolean {
    if (!this.#isRunning) return true;
    if (this.#deliveries.size > 0) return false;
    return this.#isPaused || (!this.#isScheduled && !this.#entries.isReady);
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#isRunning) return;
    this.#isScheduled = true;
    this.#host.later(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { concurrency, batch } = this.limits;
    while (this.#isRunning && !this.#isPaused && this.#deliveries.size < (this.#isDown ? 1 : concurrency)) {
      const entries = this.#entries.take(this.#isDown ? 1 : batch);
      if (entries.length === 0) break;
      this.#deliver(entries);
    }
    this.#woken();
  }

  #deliver(entries: readonly QueuedEntry[]): void {
    const attempt = new Attempt();
    const keys = keysOf(entries);
    const timer = new FunctionTimer(() => {
      const text = `no answer from "${this.label}" within ${this.limits.timeout} ms`;
      const error = new BrokerError('SEND_TIMEOUT', text);
      this.#failed(delivery, error);
      attempt.abort(error);
    });
    const delivery: Delivery = { entries, keys, attempt, timer };
    this.#deliveries.add(delivery);
    this.#host.wheel.arm(timer, this.limits.timeout);
    let answer: unknown;
    try {
      answer = this.#options.send(entries, attempt);
    } catch (error) {
      answer = Promise.reject(error);
    }
    // An aborted delivery is no longer in the set, and its answer has no effect.
    const ended = Promise.resolve(answer).then(
      () => this.#deliveries.has(delivery) && this.#delivered(delivery),
      (error: unknown) => this.#deliveries.has(delivery) && this.#failed(delivery, asError(error))
    );
    this.#host.during(ended);
  }

  #delivered(delivery: Delivery): void {
    const { entries } = delivery;
    this.#counters.sent += entries.length;
    this.#host.counted('sent', entries.length);
    this.#failing.clear();
    this.#failuresInARow = this.#failuresWhileDown = 0;
    this.#isDown = false;
    this.#lastError = undefined;
    this.#clear('failing');
    for (const entry of entries) this.#leave(entry, 'sent', undefined);
    this.#end(delivery, 0);
    this.#schedule();
  }

  #failed(delivery: Delivery, error: Error): void {
    const { entries } = delivery;
    const nowMs = this.#host.now();
    const { retryAfterMs, isFinal } = error instanceof SendError ? error : PLAIN;
    this.#counters.failed++;
    this.#host.counted('failed', 1);
    this.#lastError = error;
    for (const entry of entries) {
      if (isFinal) this.#leave(entry, 'refused', error);
      else if (nowMs - entry.addedAt >= this.limits.maxAge) this.#leave(entry, 'too_old', error);
    }
    if (!isFinal) this.#noteFailure(delivery, error, retryAfterMs);
    this.#end(delivery, isFinal ? 0 : 1);
    this.#schedule();
  }

  #noteFailure({ keys }: Delivery, error: Error, retryAfterMs: number | undefined): void {
    const { backOff, maxBackOff } = this.limits;
    if (++this.#failuresInARow === ALARM_FROM) {
      const waiting = this.size === 1 ? '1 entry is waiting' : `${this.size} entries are waiting`;
      const text = `Deliveries to "${this.label}" fail${networkError(error)}. They are repeated; ${waiting}. ${ERROR_PLACE}`;
      this.#host.raise('failing', text);
    }
    for (const key of keys) if (this.#failing.size < DOWN_FROM_KEYS) this.#failing.add(key);
    if (this.#failing.size >= DOWN_FROM_KEYS) this.#isDown = true;
    // During a pause, deliveries that began before it may still fail: they count as part of the same failure,
    // regardless of their number.
    const isNew = this.#isDown && !this.#isPaused;
    const downMs = isNew ? this.#delayMs(++this.#failuresWhileDown, backOff, maxBackOff) : 0;
    const pauseMs = Math.max(downMs, retryAfterMs ?? 0);
    if (pauseMs > 0) this.#host.wheel.armLater(this.#pause, pauseMs);
  }

  /** @param attempts number to be added to the attempts of its entries; 0 if they have not failed, or are refused */
  #end(delivery: Delivery, attempts: number): void {
    const { backOff, maxBackOff } = this.limits;
    const { entries, keys, timer } = delivery;
    this.#deliveries.delete(delivery);
    this.#host.wheel.disarm(timer);
    this.#entries.settle(entries, keys, attempts, (failed) => this.#delayMs(failed, backOff, maxBackOff));
  }

  /** The delay after a number of failures. */
  #delayMs(failures: number, firstMs: number, mostMs: number): number {
    const delayMs = Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 40));
    return delayMs * (1 - JITTER + 2 * JITTER * this.#host.random());
  }

  /** Remove an entry from the outbox. */
  #leave(entry: QueuedEntry, outcome: Outcome, error: Error | undefined): void {
    if (!this.#entries.remove(entry)) return;
    this.#host.removed(entry);
    if (outcome !== 'sent') {
      this.#counters.dropped[outcome]++;
      if (outcome !== 'removed') this.#host.counted('dropped', 1);
    }
    if (this.#isOverflowing && this.size <= this.limits.maxEntries / 2 && this.bytes <= this.limits.maxBytes / 2)
      this.#clear('overflow');
    try {
      this.#options.settled?.(entry, outcome, error);
    } catch (fault) {
      this.#host.failed(fault, `outbox "${this.name}"`);
    }
  }

  #overflow(): void {
    if (this.#isOverflowing) return;
    this.#isOverflowing = true;
    const error = this.#lastError;
    const why =
      error === undefined
        ? ': deliveries take longer than the events arrive.'
        : `: deliveries fail${networkError(error)}. ${ERROR_PLACE}`;
    this.#host.raise('overflow', `The queue for "${this.label}" is full, and its oldest entries are dropped${why}`);
  }

  #clear(condition: 'failing' | 'overflow'): void {
    if (condition === 'overflow') this.#isOverflowing = false;
    this.#host.clear(condition);
  }

  #woken(): void {
    if (this.#waiting.length === 0 || !this.#isIdle) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** The meaning of an error that is not a `SendError`. */
const PLAIN = { retryAfterMs: undefined, isFinal: false };

/** Errors of the network. An alarm names no other ones, because their messages may have values of messages, and every viewer sees alarms. */
const NETWORK_ERRORS = /\b(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EPIPE)\b/;
const ERROR_PLACE = 'The state of the target has the last error.';

/** The part of an alarm about an error. */
function networkError({ message }: Error): string {
  const [code] = NETWORK_ERRORS.exec(message) ?? [];
  return code === undefined ? '' : ` (${code})`;
}

/** The keys of entries, which are grouped by key. */
function keysOf(entries: readonly QueuedEntry[]): string[] {
  const keys = [entries[0].key];
  for (const { key } of entries) if (key !== keys[keys.length - 1]) keys.push(key);
  return keys;
}
