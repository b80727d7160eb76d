import type { Rate } from '../options-table.ts';

/**
 * Token bucket of one client: `rate.amount` at once, refilled evenly over `rate.perMs`. Nothing is refused: whoever takes more than
 * there is runs into debt and is told how long to pause.
 */
export class RateLimit {
  readonly #capacity: number;
  readonly #perMs: number;
  #left: number;
  #atMs = -Infinity;

  constructor(rate: Rate) {
    this.#capacity = rate.amount;
    this.#perMs = rate.amount / rate.perMs;
    this.#left = rate.amount;
  }

  /**
   * Take what has just been read.
   * @param amount messages or bytes
   * @param nowMs monotonic milliseconds
   * @returns whole milliseconds to pause reading for; 0: go on
   */
  take(amount: number, nowMs: number): number {
    this.#left = Math.min(this.#capacity, this.#left + (nowMs - this.#atMs) * this.#perMs) - amount;
    this.#atMs = nowMs;
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left / this.#perMs);
  }
}

/** What a connection has received, and how its reading is paused. */
export interface Limited {
  readonly receivedBytes: number;
  readonly receivedMessages: number;
  /** Stop reading for so many milliseconds. */
  pauseFor(delayMs: number): void;
}

/** The rates of one connection's zone: messages and bytes received. */
export class RateLimits {
  readonly #messages: RateLimit | undefined;
  readonly #bytes: RateLimit | undefined;
  #lastMessages = 0;
  #lastBytes = 0;

  constructor(publishLimit: Rate | undefined, rateLimit: Rate | undefined) {
    this.#messages = publishLimit === undefined ? undefined : new RateLimit(publishLimit);
    this.#bytes = rateLimit === undefined ? undefined : new RateLimit(rateLimit);
  }

  /** Count what has come since the last call, and pause the connection if it was too much. */
  settle(connection: Limited, nowMs: number): void {
    const messages = connection.receivedMessages - this.#lastMessages;
    const bytes = connection.receivedBytes - this.#lastBytes;
    this.#lastMessages = connection.receivedMessages;
    this.#lastBytes = connection.receivedBytes;
    const pauseMs = Math.max(this.#messages?.take(messages, nowMs) ?? 0, this.#bytes?.take(bytes, nowMs) ?? 0);
    if (pauseMs > 0) connection.pauseFor(pauseMs);
  }
}
