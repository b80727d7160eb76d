import type { Clock } from './clock.ts';

/** Time within which the end of the previous connection of a client is read, unless the process is very busy. */
const HOLD_MS = 500;
/** Maximum number of waiting newcomers; further ones are refused at once. */
const MAX_HELD = 100;

/** The owner of the places that newcomers wait for. */
interface NewcomerHost<T> {
  /** Check whether there is a place. */
  hasRoom(newcomer: T): boolean;
  /** Serve a newcomer that has a place. */
  serve(newcomer: T): void;
  /** Refuse a newcomer that has waited too long. */
  refuse(newcomer: T): void;
}

/**
 * Newcomers that wait for a place for a moment, before they are refused.
 *
 * A client that closes its connection and opens another one at once may find its place still taken, because the new connection can be
 * accepted before the end of the old one is read.
 */
export class Newcomers<T extends object> {
  readonly #clock: Clock;
  readonly #host: NewcomerHost<T>;
  /** In the order of their arrival, each with its timer. */
  readonly #held = new Map<T, unknown>();
  #isServing = false;

  constructor(clock: Clock, host: NewcomerHost<T>) {
    this.#clock = clock;
    this.#host = host;
  }

  /** Check whether a newcomer waits. */
  has(newcomer: T): boolean {
    return this.#held.has(newcomer);
  }

  /** Let a newcomer wait. @returns false if too many wait already */
  hold(newcomer: T): boolean {
    if (this.#held.size >= MAX_HELD) return false;
    const refuse = () => {
      this.#held.delete(newcomer);
      this.#host.refuse(newcomer);
    };
    this.#held.set(newcomer, this.#clock.setTimeout(refuse, HOLD_MS));
    return true;
  }

  /** Note that a place may be free. Newcomers get it after the current function, which may still be ending a connection. */
  placeFreed(): void {
    if (this.#held.size === 0 || this.#isServing) return;
    this.#isServing = true;
    void Promise.resolve().then(() => {
      this.#isServing = false;
      for (const [newcomer, timer] of this.#held) {
        if (!this.#host.hasRoom(newcomer)) continue;
        this.#held.delete(newcomer);
        this.#clock.clearTimeout(timer);
        this.#host.serve(newcomer);
      }
    });
  }

  /** Refuse all waiting newcomers. */
  refuseAll(): void {
    for (const [newcomer, timer] of this.#held) {
      this.#held.delete(newcomer);
      this.#clock.clearTimeout(timer);
      this.#host.refuse(newcomer);
    }
  }
}
