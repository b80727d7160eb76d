// The life of a target, whatever its type: opening, checking and closing have time limits; it is checked again every
// minute while it cannot be reached, and closed once for each opening. A target that opens after it was given up
// is closed; the answer to a check that was given up has no effect.

import type { Clock } from '../base/clock.ts';
import { asError, BrokerError } from '../base/errors.ts';
import type { Awaitable } from '../events/hooks.ts';

/** Time limit of an opening, in milliseconds. Opening does not require a connection. */
export const OPEN_MS = 30_000;
/** Time limit of a check, in milliseconds. */
const CHECK_MS = 5_000;
/** Time limit of a close, in milliseconds. */
const CLOSE_MS = 5_000;
/** Interval between attempts to reach a target that is not alive, in milliseconds. */
const RETRY_MS = 60_000;

/** A target, or an object with a target. */
interface OpenerSetup<T> {
  /** The target in messages, such as `the resource "r"`. */
  readonly what: string;
  /** The code of the error if opening takes too long. */
  readonly code: string;
  readonly clock: Clock;
  /** @throws the reason why it can never be used */
  open(): Awaitable<T>;
  /** Absent: whether the target can be reached is not known. */
  check?(opened: T, signal: AbortSignal): Awaitable<void>;
  close(opened: T): Awaitable<void>;
  /** Called when the target can be reached, or no longer. @param reason undefined if it can be reached */
  changed?(reason: Error | undefined): void;
  /** Note that work of another process is in progress. */
  during(work: Promise<unknown>): void;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
}

/** Work with a time limit, which ends earlier if `limit` is aborted. */
interface Limited<T> {
  readonly limit: AbortController;
  readonly result: Promise<T>;
}

/** Opens a target, checks it and closes it, any number of times. */
export class Opener<T> {
  readonly #setup: OpenerSetup<T>;
  #opening: Limited<T> | undefined;
  #checking: Limited<void> | undefined;
  /** The result of the last check. */
  isAlive = false;
  /** The reason why the target cannot be used or reached. */
  lastError: Error | undefined = undefined;
  /** True if the broker has stopped. */
  #isHalted = false;
  #retry: unknown;

  constructor(setup: OpenerSetup<T>) {
    this.#setup = setup;
  }

  /** Open the target unless it is open. Concurrent calls share one opening. @throws as its type */
  open(): Promise<T> {
    if (this.#opening !== undefined) return this.#opening.result;
    const opening = this.#begin(() => this.#setup.open());
    this.#opening = opening;
    opening.result.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening.result;
  }

  /**
   * Open another target, and close the current one.
   * @param accept called before the other one takes its place. If it throws, nothing has changed
   */
  async change(open: () => Awaitable<T>, accept: (opened: T) => Awaitable<void>): Promise<void> {
    const next = this.#begin(open);
    const opened = await next.result;
    try {
      await accept(opened);
    } catch (error) {
      await this.#close(next, asError(error));
      throw error;
    }
    const before = this.#opening;
    this.#opening = next;
    const reason = new BrokerError('RESOURCE_DOWN', `${this.#setup.what} has been changed`);
    this.#endCheck(reason);
    await this.#close(before, reason);
    if (this.#isHalted) await this.halt(reason);
  }

  /**
   * Check whether the target can be reached, and open it for that. Concurrent calls share one check.
   * @throws the reason why it cannot be reached
   */
  reach(): Promise<void> {
    if (this.#isHalted) return Promise.reject(new BrokerError('RESOURCE_DOWN', 'the broker has stopped'));
    if (this.#checking === undefined) {
      const checking = this.#limited(async (signal) => this.#setup.check?.(await this.open(), signal), {
        ms: CHECK_MS,
        tooLate: new BrokerError('RESOURCE_DOWN', `no connection within ${CHECK_MS} ms`)
      });
      this.#checking = checking;
      this.#setup.during(
        checking.result.then(
          () => this.#checked(checking, undefined),
          (error: unknown) => this.#checked(checking, asError(error))
        )
      );
    }
    return this.#checking.result;
  }

  /** As `reach`. @returns whether it can be reached */
  async check(): Promise<boolean> {
    await this.reach().catch(() => undefined);
    return this.isAlive;
  }

  /** Record why the target cannot be used. */
  down(reason: Error): void {
    const isNew = this.isAlive || this.lastError === undefined;
    this.isAlive = false;
    this.lastError = reason;
    const { clock, changed } = this.#setup;
    clock.clearTimeout(this.#retry);
    this.#retry = clock.setTimeout(() => void this.check(), RETRY_MS);
    if (isNew) changed?.(reason);
  }

  /** Close the target, because the broker has stopped, and check it no more until `begin` is called. */
  async halt(reason: Error): Promise<void> {
    this.#isHalted = true;
    this.isAlive = false;
    await this.close(reason);
  }

  /** Allow checks again, because the broker has started. */
  begin(): void {
    this.#isHalted = false;
  }

  /** Close the target, and end an opening or check in progress. */
  async close(reason: Error): Promise<void> {
    this.#endCheck(reason);
    this.#setup.clock.clearTimeout(this.#retry);
    const opening = this.#opening;
    this.#opening = undefined;
    await this.#close(opening, reason);
  }

  #begin(open: () => Awaitable<T>): Limited<T> {
    const { code, what } = this.#setup;
    return this.#limited(async () => open(), {
      ms: OPEN_MS,
      tooLate: new BrokerError(code, `${what} is not open after ${OPEN_MS} ms`),
      late: (opened) => void this.#closed(opened)
    });
  }

  /** @param late called with the result of work that was given up */
  #limited<R>(
    work: (signal: AbortSignal) => Promise<R>,
    { ms, tooLate, late }: { readonly ms: number; readonly tooLate: Error; readonly late?: (result: R) => void }
  ): Limited<R> {
    const { clock } = this.#setup;
    const limit = new AbortController();
    const { signal } = limit;
    const result = new Promise<R>((resolve, reject) => {
      const timer = clock.setTimeout(() => limit.abort(tooLate), ms);
      signal.addEventListener('abort', () => {
        clock.clearTimeout(timer);
        reject(signal.reason as Error);
      });
      work(signal)
        .finally(() => clock.clearTimeout(timer))
        .then((value) => (signal.aborted ? late?.(value) : resolve(value)), reject);
    });
    return { limit, result };
  }

  /** End an opening, and close what it has opened. */
  async #close(opening: Limited<T> | undefined, reason: Error): Promise<void> {
    opening?.limit.abort(reason);
    const opened = await opening?.result.catch(() => undefined);
    if (opened !== undefined) await this.#closed(opened);
  }

  async #closed(opened: T): Promise<void> {
    const { code, what } = this.#setup;
    const tooLate = new BrokerError(code, `${what} is not closed after ${CLOSE_MS} ms`);
    const closing = this.#limited(async () => this.#setup.close(opened), { ms: CLOSE_MS, tooLate });
    await closing.result.catch((error) => this.#setup.failed(error, `closing ${what}`));
  }

  #checked(checking: Limited<void>, reason: Error | undefined): void {
    if (this.#checking !== checking) return;
    this.#checking = undefined;
    if (reason !== undefined) {
      this.down(reason);
      return;
    }
    this.lastError = undefined;
    this.#setup.clock.clearTimeout(this.#retry);
    if (this.isAlive) return;
    this.isAlive = true;
    this.#setup.changed?.(undefined);
  }

  #endCheck(reason: Error): void {
    const checking = this.#checking;
    this.#checking = undefined;
    checking?.limit.abort(reason);
  }
}
