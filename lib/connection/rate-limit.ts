import type { Rate } from '../base/fields.ts';

/** Not specified: a client that is paused for longer closes the connection, and starts with a new limit on the next one. */
const MAX_PAUSE_MS = 60_000;

/** A rate option, in the form that the token buckets use. All buckets of an option share it. */
class Refill {
  /** The capacity of a bucket. */
  readonly capacity: number;
  readonly #perMs: number;
  readonly #lowest: number;

  constructor(rate: Rate) {
    this.capacity = rate.amount;
    this.#perMs = rate.amount / rate.perMs;
    this.#lowest = -this.#perMs * Math.max(rate.perMs, MAX_PAUSE_MS);
  }

  /** The content of a bucket after it was refilled for a time and an amount was taken. */
  take(left: number, elapsedMs: number, amount: number): number {
    return Math.max(Math.min(this.capacity, left + elapsedMs * this.#perMs) - amount, this.#lowest);
  }

  /** Whole milliseconds until a bucket has no debt. */
  pauseMs(left: number): number {
    return left >= 0 ? 0 : Math.ceil(-left / this.#perMs);
  }
}

/**
 * A token bucket that holds `rate.amount` and is refilled evenly over `rate.perMs`.
 *
 * Nothing is refused. A client that takes more than the bucket holds goes into debt and is paused until the debt is paid. The debt is
 * limited to what is refilled in a minute, or in `rate.perMs` if that is longer: a single chunk may exceed the amount many times.
 */
export class RateLimit {
  readonly #refill: Refill;
  #left: number;
  #atMs = -Infinity;

  constructor(rate: Rate) {
    this.#refill = new Refill(rate);
    this.#left = this.#refill.capacity;
  }

  /**
   * Take messages or bytes that have just been read.
   * @param amount messages or bytes
   * @param nowMs monotonic milliseconds
   * @returns whole milliseconds to pause reading for; 0 for no pause
   */
  take(amount: number, nowMs: number): number {
    this.#left = this.#refill.take(this.#left, nowMs - this.#atMs, amount);
    this.#atMs = nowMs;
    return this.#refill.pauseMs(this.#left);
  }
}

/** The part of a connection's reader that its rate limits use. */
interface RateLimitedReader {
  readonly receivedBytes: number;
  readonly receivedMessages: number;
  /** Stop reading for this many milliseconds. */
  pauseFor(delayMs: number): void;
}

/** The rate limits of a zone. */
interface ZoneLimits {
  /** For each connection. */
  readonly messages: Refill | undefined;
  readonly bytes: Refill | undefined;
  /** For all connections together. */
  readonly totalMessages: RateLimit | undefined;
  readonly totalBytes: RateLimit | undefined;
}

/**
 * All rate limits of one connection: its own limits, and those of its zone. Its two token buckets are fields, so that it is a single
 * object.
 */
export class RateLimits {
  readonly #limits: ZoneLimits;
  #messagesLeft: number;
  #bytesLeft: number;
  #atMs = -Infinity;
  #lastMessages = 0;
  #lastBytes = 0;

  constructor(limits: ZoneLimits) {
    this.#limits = limits;
    this.#messagesLeft = limits.messages?.capacity ?? 0;
    this.#bytesLeft = limits.bytes?.capacity ?? 0;
  }

  /** Charge the connection for what it has received since the last call, and pause reading if that is too much. */
  charge(reader: RateLimitedReader, nowMs: number): void {
    const { messages, bytes, totalMessages, totalBytes } = this.#limits;
    const newMessages = reader.receivedMessages - this.#lastMessages;
    const newBytes = reader.receivedBytes - this.#lastBytes;
    const elapsedMs = nowMs - this.#atMs;
    this.#lastMessages = reader.receivedMessages;
    this.#lastBytes = reader.receivedBytes;
    this.#atMs = nowMs;
    let pauseMs = 0;
    if (messages !== undefined) {
      this.#messagesLeft = messages.take(this.#messagesLeft, elapsedMs, newMessages);
      pauseMs = messages.pauseMs(this.#messagesLeft);
    }
    if (bytes !== undefined) {
      this.#bytesLeft = bytes.take(this.#bytesLeft, elapsedMs, newBytes);
      pauseMs = Math.max(pauseMs, bytes.pauseMs(this.#bytesLeft));
    }
    if (totalMessages !== undefined) pauseMs = Math.max(pauseMs, totalMessages.take(newMessages, nowMs));
    if (totalBytes !== undefined) pauseMs = Math.max(pauseMs, totalBytes.take(newBytes, nowMs));
    if (pauseMs > 0) reader.pauseFor(pauseMs);
  }
}

/** The rate options of a zone. */
interface RateSettings {
  readonly name: string;
  readonly publishLimit: Rate | undefined;
  readonly rateLimit: Rate | undefined;
  readonly totalPublishLimit: Rate | undefined;
  readonly totalRateLimit: Rate | undefined;
}

/** Creates the rate limits of each connection. Connections of a zone share the limits `totalPublishLimit` and `totalRateLimit`. */
export class ZoneRates {
  /** Options and limits by the name of the zone. */
  readonly #zones = new Map<string, { readonly zone: RateSettings; readonly limits: ZoneLimits }>();

  /** The limits of a new connection in a zone. @returns undefined if the zone has no rate limits */
  of(zone: RateSettings): RateLimits | undefined {
    const { publishLimit, rateLimit, totalPublishLimit, totalRateLimit } = zone;
    if (!publishLimit && !rateLimit && !totalPublishLimit && !totalRateLimit) return undefined;
    const known = this.#zones.get(zone.name);
    if (known?.zone === zone) return new RateLimits(known.limits);
    // After a change of other options of the zone, its connections still share one total limit.
    const { zone: before, limits: present } = known ?? {};
    const limits = {
      messages: publishLimit && new Refill(publishLimit),
      bytes: rateLimit && new Refill(rateLimit),
      totalMessages: isSame(totalPublishLimit, before?.totalPublishLimit)
        ? present?.totalMessages
        : totalPublishLimit && new RateLimit(totalPublishLimit),
      totalBytes: isSame(totalRateLimit, before?.totalRateLimit)
        ? present?.totalBytes
        : totalRateLimit && new RateLimit(totalRateLimit)
    };
    this.#zones.set(zone.name, { zone, limits });
    return new RateLimits(limits);
  }
}

function isSame(one: Rate | undefined, other: Rate | undefined): boolean {
  return one?.amount === other?.amount && one?.perMs === other?.perMs;
}
