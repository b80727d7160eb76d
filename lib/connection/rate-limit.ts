import type { Rate } from '../base/options-table.ts';

/** Not specified: a client that is not read for longer gives the connection up, and comes back to a new limit. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * Token bucket of one client: `rate.amount` at once, refilled evenly over `rate.perMs`. Nothing is refused: whoever takes more than
 * there is runs into debt and is told how long to pause. A debt that a minute, or the rate's own time where that is longer, would not
 * pay off is forgiven: a chunk of tiny messages, or a large one, may hold many times the amount.
 */
export class RateLimit {
  readonly #capacity: number;
  readonly #perMs: number;
  readonly #lowest: number;
  #left: number;
  #atMs = -Infinity;

  constructor(rate: Rate) {
    this.#capacity = rate.amount;
    this.#perMs = rate.amount / rate.perMs;
    this.#lowest = -this.#perMs * Math.max(rate.perMs, LONGEST_PAUSE_MS);
    this.#left = rate.amount;
  }

  /**
   * Take what has just been read.
   * @param amount messages or bytes
   * @param nowMs monotonic milliseconds
   * @returns whole milliseconds to pause reading for; 0: go on
   */
  take(amount: number, nowMs: number): number {
    const left = Math.min(this.#capacity, this.#left + (nowMs - this.#atMs) * this.#perMs) - amount;
    this.#left = Math.max(left, this.#lowest);
    this.#atMs = nowMs;
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left / this.#perMs);
  }
}

/** What a connection has received, and how its reading is paused. */
export interface RateLimitedConnection {
  readonly receivedBytes: number;
  readonly receivedMessages: number;
  /** Stop reading for so many milliseconds. */
  pauseFor(delayMs: number): void;
}

/** The rates that bind one connection: its own, and those it shares with others. */
export class RateLimits {
  readonly #messages: readonly RateLimit[];
  readonly #bytes: readonly RateLimit[];
  #lastMessages = 0;
  #lastBytes = 0;

  constructor(messages: readonly RateLimit[], bytes: readonly RateLimit[]) {
    this.#messages = messages;
    this.#bytes = bytes;
  }

  /** Count what has come since the last call, and pause the connection if it was too much. */
  charge(connection: RateLimitedConnection, nowMs: number): void {
    const messages = connection.receivedMessages - this.#lastMessages;
    const bytes = connection.receivedBytes - this.#lastBytes;
    this.#lastMessages = connection.receivedMessages;
    this.#lastBytes = connection.receivedBytes;
    let pauseMs = 0;
    for (const limit of this.#messages) pauseMs = Math.max(pauseMs, limit.take(messages, nowMs));
    for (const limit of this.#bytes) pauseMs = Math.max(pauseMs, limit.take(bytes, nowMs));
    if (pauseMs > 0) connection.pauseFor(pauseMs);
  }
}

/** What a zone says of rates. */
export interface RateSettings {
  readonly publishLimit: Rate | undefined;
  readonly rateLimit: Rate | undefined;
  readonly totalPublishLimit: Rate | undefined;
  readonly totalRateLimit: Rate | undefined;
}

/** Gives each connection its limits; connections of a zone share the zone's own. */
export class ZoneRates {
  readonly #shared = new Map<RateSettings, { messages: RateLimit[]; bytes: RateLimit[] }>();

  /** @returns undefined where nothing is limited */
  of(zone: RateSettings): RateLimits | undefined {
    const { publishLimit, rateLimit, totalPublishLimit, totalRateLimit } = zone;
    if (!publishLimit && !rateLimit && !totalPublishLimit && !totalRateLimit) return undefined;
    let shared = this.#shared.get(zone);
    if (shared === undefined) {
      shared = { messages: limitsOf(totalPublishLimit), bytes: limitsOf(totalRateLimit) };
      this.#shared.set(zone, shared);
    }
    return new RateLimits([...limitsOf(publishLimit), ...shared.messages], [...limitsOf(rateLimit), ...shared.bytes]);
  }
}

function limitsOf(rate: Rate | undefined): RateLimit[] {
  return rate === undefined ? [] : [new RateLimit(rate)];
}
