import type { Rate } from '../base/options-table.ts';

/** Not specified: a client that is paused for longer gives up the connection, and starts with a new limit on the next one. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * A token bucket that holds `rate.amount` and is refilled evenly over `rate.perMs`.
 *
 * Nothing is refused. A client that takes more than the bucket holds goes into debt and is paused until the debt is paid. The debt is
 * limited to what a minute pays off, or `rate.perMs` if that is longer: a single chunk may exceed the amount many times.
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
   * Take messages or bytes that have just been read.
   * @param amount messages or bytes
   * @param nowMs monotonic milliseconds
   * @returns whole milliseconds to pause reading for; 0 for no pause
   */
  take(amount: number, nowMs: number): number {
    const left = Math.min(this.#capacity, this.#left + (nowMs - this.#atMs) * this.#perMs) - amount;
    this.#left = Math.max(left, this.#lowest);
    this.#atMs = nowMs;
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left / this.#perMs);
  }
}

/** The part of a connection's reader that its rate limits use. */
interface RateLimitedReader {
  readonly receivedBytes: number;
  readonly receivedMessages: number;
  /** Stop reading for this many milliseconds. */
  pauseFor(delayMs: number): void;
}

/** All rate limits of one connection: its own, and those of its zone. */
export class RateLimits {
  readonly #messages: readonly RateLimit[];
  readonly #bytes: readonly RateLimit[];
  #lastMessages = 0;
  #lastBytes = 0;

  constructor(messages: readonly RateLimit[], bytes: readonly RateLimit[]) {
    this.#messages = messages;
    this.#bytes = bytes;
  }

  /** Take what the connection has received since the last call, and pause reading if it was too much. */
  charge(reader: RateLimitedReader, nowMs: number): void {
    const messages = reader.receivedMessages - this.#lastMessages;
    const bytes = reader.receivedBytes - this.#lastBytes;
    this.#lastMessages = reader.receivedMessages;
    this.#lastBytes = reader.receivedBytes;
    let pauseMs = 0;
    for (const limit of this.#messages) pauseMs = Math.max(pauseMs, limit.take(messages, nowMs));
    for (const limit of this.#bytes) pauseMs = Math.max(pauseMs, limit.take(bytes, nowMs));
    if (pauseMs > 0) reader.pauseFor(pauseMs);
  }
}

/** The rate options of a zone. */
interface RateSettings {
  readonly publishLimit: Rate | undefined;
  readonly rateLimit: Rate | undefined;
  readonly totalPublishLimit: Rate | undefined;
  readonly totalRateLimit: Rate | undefined;
}

/** Creates the rate limits of each connection. Connections of a zone share the limits `totalPublishLimit` and `totalRateLimit`. */
export class ZoneRates {
  readonly #shared = new Map<RateSettings, { messages: RateLimit[]; bytes: RateLimit[] }>();

  /** The limits of a new connection in a zone. @returns undefined if the zone has no rate limits */
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
