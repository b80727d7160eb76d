import type { Waiter } from './durable.ts';

/** Number of failures whose tickets are remembered; no message waits through more failures than this. */
const MAX_FAILURES = 1_000;

/** The waiters for commits, and the tickets that were refused. */
export class Waiters {
  readonly #waiters = new Set<Waiter>();
  /** First and last ticket of the commits of each failure. All operations that waited for them were refused. */
  readonly #refused: [first: number, last: number][] = [];
  readonly #failed: (error: unknown) => void;

  /** @param failed called with errors of waiters */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  /** Notify a waiter of all commits, until it returns false. */
  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /** Wait until the commit of a ticket is in the store. @throws the error of the commit if it fails */
  until(ticket: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.add({
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

  /** Tell whether the commit of a ticket has failed. Later commits may have succeeded since. */
  hasRefused(ticket: number): boolean {
    return this.#refused.some(([first, last]) => ticket >= first && ticket <= last);
  }

  /** Notify the waiters that all commits up to a ticket are in the store. */
  succeeded(ticket: number): void {
    this.#notify((waiter) => waiter.commitSucceeded(ticket));
  }

  /** Remember that all tickets after those that succeeded, up to this one, are refused. */
  refuse(settled: number, ticket: number): void {
    const last = this.#refused.at(-1);
    if (last !== undefined && last[1] > settled) {
      last[1] = ticket; // nothing has succeeded since the previous failure
      return;
    }
    this.#refused.push([settled + 1, ticket]);
    if (this.#refused.length > MAX_FAILURES) this.#refused.shift();
  }

  /** Notify the waiters that the commits up to a ticket have failed. */
  failed(ticket: number, error: Error): void {
    this.#notify((waiter) => waiter.commitFailed(ticket, error));
  }

  #notify(waits: (waiter: Waiter) => boolean): void {
    for (const waiter of [...this.#waiters]) {
      try {
        if (!waits(waiter)) this.#waiters.delete(waiter);
      } catch (error) {
        this.#failed(error);
      }
    }
  }
}
