import type { TimeReading } from '../base/time-reading.ts';
import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { Message } from '../packets/message.ts';
import { isWildcard } from '../topics/topic.ts';
import { type RetainedEntry, RetainedStore } from './retained-store.ts';

/** Bounds of what is retained, from the options. */
export interface RetainedSettings {
  readonly maxRetainedMessages: number;
  readonly maxRetainedBytes: number;
  readonly maxRetainedPayloadSize: number;
  /** Seconds; 0: for ever. */
  readonly retainedExpiryInterval: number;
}

/** What expiry needs of the broker. */
export interface RetainedHost {
  readonly wheel: TimingWheel;
  readonly time: TimeReading;
  /** A message is retained no longer, its time being over. */
  retainedExpired(topic: string): void;
}

/** The retained messages of the broker, each until it is replaced, deleted or expired. */
export class RetainedMessages {
  readonly #host: RetainedHost;
  readonly #settings: RetainedSettings;
  readonly #store: RetainedStore<Message>;
  readonly #expiries = new Map<RetainedEntry<Message>, Expiry>();

  constructor(host: RetainedHost, settings: RetainedSettings) {
    this.#host = host;
    this.#settings = settings;
    this.#store = new RetainedStore({ maxMessages: settings.maxRetainedMessages, maxBytes: settings.maxRetainedBytes });
  }

  get count(): number {
    return this.#store.count;
  }

  /** Of the messages that count against the bounds. */
  get bytes(): number {
    return this.#store.bytes;
  }

  /**
   * Keep a message, or delete what is kept where it has no payload [MQTT-3.3.1-5, -6, -7]. What the broker says of itself counts against no
   * bound.
   * @param seq of one that was kept
   * @returns false if a bound refused it
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
    message.detachFromPublisher();
    if (this.#store.put(topic, message, isSystem ? 0 : message.bytes, seq) === 'refused') return false;
    if (this.#expiresAtMs(message) !== Infinity) this.#arm(this.#store.get(topic) as RetainedEntry<Message>);
    return true;
  }

  /** Put back what was replaced or deleted: nobody has missed it who was still to get it. */
  putBack(entry: RetainedEntry<Message>): void {
    this.#forget(entry.topic);
    this.#store.putBack(entry);
    if (this.#expiresAtMs(entry.message) !== Infinity) this.#arm(entry);
  }

  #arm(entry: RetainedEntry<Message>): void {
    const expiry = new Expiry(this, entry);
    this.#expiries.set(entry, expiry);
    this.#host.wheel.armAt(expiry, this.#expiresAtMs(entry.message));
  }

  /** Keep nothing under a topic. */
  delete(topic: string): void {
    this.#forget(topic);
    this.#store.delete(topic);
  }

  /** The broker has started again: the wheel knows nothing of what is to expire. */
  rearm(): void {
    for (const [entry, expiry] of this.#expiries) this.#host.wheel.armAt(expiry, this.#expiresAtMs(entry.message));
  }

  /** What lies under a topic, though its time be over. */
  stored(topic: string): RetainedEntry<Message> | undefined {
    return this.#store.get(topic);
  }

  get(topic: string): RetainedEntry<Message> | undefined {
    const entry = this.#store.get(topic);
    return entry !== undefined && this.#isAlive(entry) ? entry : undefined;
  }

  /** `seq` of the next message to be retained. */
  get next(): number {
    return this.#store.next;
  }

  set next(seq: number) {
    this.#store.next = seq;
  }

  /** Whether a filter can match anything: exactly known only of one without wildcards. */
  mayMatch(filter: string): boolean {
    return isWildcard(filter) ? this.#store.count > 0 : this.get(filter) !== undefined;
  }

  /** What a filter matches, oldest first. */
  match(filter: string): RetainedEntry<Message>[] {
    const found = this.#store.match(filter);
    if (this.#expiries.size === 0) return found;
    this.#host.time.read();
    return found.filter((entry) => this.#isAlive(entry));
  }

  expire(entry: RetainedEntry<Message>): void {
    this.#expiries.delete(entry);
    if (!entry.live) return;
    this.#store.delete(entry.topic);
    this.#host.retainedExpired(entry.topic);
  }

  #isAlive(entry: RetainedEntry<Message>): boolean {
    return this.#host.time.nowMs < this.#expiresAtMs(entry.message);
  }

  #expiresAtMs(message: Message): number {
    const { retainedExpiryInterval } = this.#settings;
    if (message.expiryInterval >= 0) return message.expiresAtMs;
    return retainedExpiryInterval > 0 ? message.takenAtMs + retainedExpiryInterval * 1000 : Infinity;
  }

  #forget(topic: string): void {
    if (this.#expiries.size === 0) return;
    const entry = this.#store.get(topic);
    const expiry = entry === undefined ? undefined : this.#expiries.get(entry);
    if (entry === undefined || expiry === undefined) return;
    this.#host.wheel.disarm(expiry);
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

  ring(): void {
    this.#owner.expire(this.#entry);
  }
}
