// Memory only: `Retainer` (`lib/broker/features`) decides what is retained, persists it, and restores a message with
// `putBack` if its commit fails. Only messages that expire have a timer, so a broker without them does not look at
// the time here. A stop clears the timing wheel, so `rearm` is called at the next start. A message is detached from
// the read chunk before it is stored.

import type { TimeReading } from '../base/time-reading.ts';
import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';
import { detachFromPublisher, type Message } from '../packets/message.ts';
import { expiresAtMs } from '../packets/message-expiry.ts';
import type { LevelNames } from '../topics/level-names.ts';
import { isWildcard } from '../topics/topic.ts';
import { type RetainedEntry, RetainedStore } from './retained-store.ts';
import { walkRetained } from './retained-walk.ts';

/** Number of messages whose timers are set in one turn after a change of options. */
const TIMERS_AT_ONCE = 1_000;

/** Options that limit retained messages. */
interface RetainedSettings {
  readonly maxRetainedMessages: number;
  readonly maxRetainedBytes: number;
  readonly maxRetainedPayloadSize: number;
  /** In seconds; 0: messages do not expire. */
  readonly retainedExpiryInterval: number;
}

/** The retained messages of a broker. A message is retained until it is replaced or deleted, or expires. */
export class RetainedMessages {
  readonly #wheel: TimingWheel;
  readonly #time: TimeReading;
  readonly #onExpired: (topic: string) => void;
  readonly #settings: RetainedSettings;
  readonly #store = new RetainedStore<Message>();
  readonly #expiries = new Map<RetainedEntry<Message>, Expiry>();

  /** @param onExpired called after the retained message of a topic has expired and was removed */
  constructor(wheel: TimingWheel, time: TimeReading, settings: RetainedSettings, onExpired: (topic: string) => void) {
    this.#wheel = wheel;
    this.#time = time;
    this.#onExpired = onExpired;
    this.#settings = settings;
    this.limited();
  }

  /** Apply changed limits. This removes no messages. */
  limited(): void {
    const { maxRetainedMessages, maxRetainedBytes } = this.#settings;
    this.#store.limit({ maxMessages: maxRetainedMessages, maxBytes: maxRetainedBytes });
  }

  /**
   * Set the timers of all messages again, some in each step, because the option `retainedExpiryInterval` has changed. Messages that are
   * retained in the meantime have their timers already.
   */
  *expiryChanged(): Generator<void, void, undefined> {
    let left = TIMERS_AT_ONCE;
    for (const entry of this.#store) {
      this.#forget(entry.topic);
      if (this.#expiresAtMs(entry.message) !== Infinity) this.#arm(entry);
      if (--left > 0) continue;
      left = TIMERS_AT_ONCE;
      yield;
    }
  }

  /** Number of retained messages. */
  get count(): number {
    return this.#store.count;
  }

  /** Size of the messages that count towards the limits, in bytes. */
  get bytes(): number {
    return this.#store.bytes;
  }

  /**
   * Retain a message, or delete the retained message of its topic if the payload is empty [MQTT-3.3.1-5, -6, -7]. Messages of the broker do
   * not count towards the limits.
   * @param seq the sequence number of a message that is read from the store
   * @returns false if a limit refuses the message
   */
  put(message: Message, seq?: number): boolean {
    const { topic, isSystem } = message;
    const payloadBytes = message.bytes - message.payloadAt;
    const { maxRetainedPayloadSize } = this.#settings;
    this.#forget(topic);
    const isTooLarge = !isSystem && maxRetainedPayloadSize > 0 && payloadBytes > maxRetainedPayloadSize;
    if (payloadBytes === 0 || isTooLarge) {
      this.#store.delete(topic);
      return payloadBytes === 0;
    }
    detachFromPublisher(message);
    if (this.#store.put(topic, message, isSystem ? 0 : message.bytes, seq) === 'refused') return false;
    if (this.#expiresAtMs(message) !== Infinity) this.#arm(this.#store.get(topic) as RetainedEntry<Message>);
    return true;
  }

  /** Retain a message again that was replaced or deleted. It becomes live again, so feeds that contain it send it. */
  putBack(entry: RetainedEntry<Message>): void {
    this.#forget(entry.topic);
    this.#store.putBack(entry);
    if (this.#expiresAtMs(entry.message) !== Infinity) this.#arm(entry);
  }

  #arm(entry: RetainedEntry<Message>): void {
    const expiry = new Expiry(this, entry);
    this.#expiries.set(entry, expiry);
    this.#wheel.armAt(expiry, this.#expiresAtMs(entry.message));
  }

  /** Delete the retained message of a topic. */
  delete(topic: string): void {
    this.#forget(topic);
    this.#store.delete(topic);
  }

  /** Arm the expiry timers again after the broker has restarted, because a stop clears the timing wheel. */
  rearm(): void {
    for (const [entry, expiry] of this.#expiries) this.#wheel.armAt(expiry, this.#expiresAtMs(entry.message));
  }

  /** Get the retained message of a topic, even if it has expired. */
  stored(topic: string): RetainedEntry<Message> | undefined {
    return this.#store.get(topic);
  }

  /** Get the retained message of a topic, unless it has expired. */
  get(topic: string): RetainedEntry<Message> | undefined {
    const entry = this.#store.get(topic);
    return entry !== undefined && this.#isAlive(entry) ? entry : undefined;
  }

  /** As `get`, for callers that are not in the path of a packet: the time is read first. */
  lookUp(topic: string): RetainedEntry<Message> | undefined {
    this.#time.read();
    return this.get(topic);
  }

  /** All retained messages, in no particular order. They may change during the iteration. */
  *entries(): Generator<RetainedEntry<Message>, void, undefined> {
    this.#time.read();
    for (const entry of this.#store) if (this.#isAlive(entry)) yield entry;
  }

  /** The names of a level of the topics. @param prefix the topic of the level above and a slash, or an empty string */
  level(prefix: string): LevelNames {
    return this.#store.level(prefix);
  }

  /** `seq` of the next message to be retained. */
  get next(): number {
    return this.#store.next;
  }

  set next(seq: number) {
    this.#store.next = seq;
  }

  /** Tell whether a topic filter can match a retained message. Exact only for filters without wildcards. */
  mayMatch(filter: string): boolean {
    return isWildcard(filter) ? this.#store.count > 0 : this.get(filter) !== undefined;
  }

  /** Find the retained messages that a topic filter matches, oldest first. */
  match(filter: string): RetainedEntry<Message>[] {
    const found = this.#store.match(filter);
    if (this.#expiries.size === 0) return found;
    this.#time.read();
    return found.filter((entry) => this.#isAlive(entry));
  }

  /** Find the retained messages that any of some topic filters match, oldest first, in steps; see `walkRetained`. */
  walk(filters: readonly string[]): Iterable<RetainedEntry<Message> | undefined> {
    const entries = walkRetained(this.#store, filters);
    return this.#expiries.size === 0 ? entries : this.#unexpired(entries);
  }

  *#unexpired(
    entries: Iterable<RetainedEntry<Message> | undefined>
  ): Generator<RetainedEntry<Message> | undefined, void, undefined> {
    for (const entry of entries) {
      this.#time.read();
      yield entry === undefined || this.#isAlive(entry) ? entry : undefined;
    }
  }

  /** Wall-clock time in milliseconds at which a retained message expires; undefined: never. */
  expiryOf(message: Message): number | undefined {
    const atMs = this.#expiresAtMs(message);
    return atMs === Infinity ? undefined : message.timestamp + atMs - message.takenAtMs;
  }

  /** Remove an expired message. @internal */
  expire(entry: RetainedEntry<Message>, nowMs: number): void {
    this.#expiries.delete(entry);
    if (!entry.isLive) return;
    this.#time.rang(nowMs);
    this.#store.delete(entry.topic);
    this.#onExpired(entry.topic);
  }

  #isAlive(entry: RetainedEntry<Message>): boolean {
    return this.#time.nowMs < this.#expiresAtMs(entry.message);
  }

  #expiresAtMs(message: Message): number {
    const { retainedExpiryInterval } = this.#settings;
    if (message.expiryInterval >= 0) return expiresAtMs(message);
    return retainedExpiryInterval > 0 ? message.takenAtMs + retainedExpiryInterval * 1000 : Infinity;
  }

  #forget(topic: string): void {
    if (this.#expiries.size === 0) return;
    const entry = this.#store.get(topic);
    const expiry = entry === undefined ? undefined : this.#expiries.get(entry);
    if (entry === undefined || expiry === undefined) return;
    this.#wheel.disarm(expiry);
    this.#expiries.delete(entry);
  }
}

class Expiry extends BaseTimer {
  readonly #owner: RetainedMessages;
  readonly #entry: RetainedEntry<Message>;

  constructor(owner: RetainedMessages, entry: RetainedEntry<Message>) {
    super();
    this.#owner = owner;
    this.#entry = entry;
  }

  ring(nowMs: number): void {
    this.#owner.expire(this.#entry, nowMs);
  }
}
