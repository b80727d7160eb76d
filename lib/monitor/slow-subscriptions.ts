import type { Clock } from '../base/clock.ts';
import { type Duration, field, readOptions } from '../base/fields.ts';
import type { TimeReading } from '../base/time-reading.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { Events } from '../events/events.ts';
import type { Message } from '../packets/message.ts';
import type { ClientInfo } from '../records/client.ts';
import { cut } from './cut-text.ts';

const OPTIONS = {
  thresholdMs: field('duration', 500, 'Shorter latencies are not considered.', { unit: 'ms', min: 1 }),
  limit: field('integer', 10, 'Number of places of the ranking.', { min: 1, max: 1_000 }),
  expiryMs: field('duration', 300_000, 'An entry is removed if it was not slow for this time.', {
    unit: 'ms',
    min: 1_000
  })
} as const;

/** Options of the ranking of slow subscriptions. */
export interface SlowSubscriptionOptions {
  /** Shorter latencies are not considered. Default 500 ms. */
  readonly thresholdMs?: Duration | undefined;
  /** Number of places, from 1 to 1,000. Default 10. */
  readonly limit?: number | undefined;
  /** Time without a slow message after which an entry is removed. Default 5 minutes. */
  readonly expiryMs?: Duration | undefined;
}

/** The options after they have been read. */
export interface SlowSubscriptionSettings {
  /** Latency in milliseconds from which a message is slow. */
  readonly thresholdMs: number;
  /** Maximum number of rows. */
  readonly limit: number;
  /** Time in milliseconds after which a row without a slow message is removed. */
  readonly expiryMs: number;
}

/** A client to which messages of a topic are delivered late. */
export interface SlowSubscription {
  /** Client id and topic; if they are longer than 256 characters, their beginnings. */
  readonly clientId: string;
  /** The topic of the messages. */
  readonly topic: string;
  /** The maximum latency, in milliseconds. */
  readonly latencyMs: number;
  /** Number of slow messages. */
  readonly count: number;
  /** Time of the last one, in milliseconds since 1970. */
  readonly at: number;
}

type Place = { -readonly [N in keyof SlowSubscription]: SlowSubscription[N] };

/**
 * A ranking of the clients and topics whose messages take longest, on request: `broker.monitor.slowSubscriptions`.
 *
 * The latency of a message is the time from its publication to the acknowledgement of the receiver (PUBACK, or PUBREC for QoS 2), with QoS
 * 0 until it is passed to the connection. Messages that were published before the receiver connected, and those with the retain flag, are
 * left out, because they wait for other reasons. Messages on the fast path are passed on at once, so they are never slow and stay on it.
 */
export class SlowSubscriptions {
  readonly #clock: Clock;
  readonly #time: TimeReading;
  readonly #events: Events;
  #settings: SlowSubscriptionSettings | undefined = undefined;
  /** By client id and topic. */
  readonly #places = new Map<string, Place>();
  readonly #delivered = ({ message, client, qos }: BrokerEvents['message.delivered']) => {
    if (qos === 0) this.#measure(message, client);
  };
  readonly #acked = ({ message, client }: BrokerEvents['message.acked']) => this.#measure(message, client);

  /** @internal */
  constructor(clock: Clock, time: TimeReading, events: Events) {
    this.#clock = clock;
    this.#time = time;
    this.#events = events;
  }

  /** The current options; undefined: nothing is measured. */
  get settings(): SlowSubscriptionSettings | undefined {
    return this.#settings;
  }

  /** Start measuring, or continue with other options. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
  start(options: SlowSubscriptionOptions = {}): void {
    const settings = readOptions(OPTIONS, options, 'slowSubscriptions');
    const events = this.#events;
    if (this.#settings === undefined) {
      events.onObserved('message.delivered', this.#delivered);
      events.onObserved('message.acked', this.#acked);
    }
    this.#settings = settings;
    for (const [key, { latencyMs }] of this.#places) if (latencyMs < settings.thresholdMs) this.#places.delete(key);
    for (const place of this.list().slice(settings.limit)) this.#places.delete(keyOf(place.clientId, place.topic));
  }

  /** Stop measuring, and discard the ranking. */
  stop(): void {
    const events = this.#events;
    events.off('message.delivered', this.#delivered);
    events.off('message.acked', this.#acked);
    this.#settings = undefined;
    this.#places.clear();
  }

  /** The ranking, the slowest first. */
  list(): SlowSubscription[] {
    this.#expire();
    return [...this.#places.values()].map((place) => ({ ...place })).sort((a, b) => b.latencyMs - a.latencyMs);
  }

  #measure(message: Message, client: ClientInfo): void {
    const latencyMs = Math.round(this.#time.nowMs - message.takenAtMs);
    const settings = this.#settings;
    if (settings === undefined || latencyMs < settings.thresholdMs || message.retain) return;
    if (client.connectedAt !== undefined && message.timestamp < client.connectedAt) return;
    const [clientId, topic] = [cut(client.clientId), cut(message.topic)];
    const key = keyOf(clientId, topic);
    const at = this.#clock.now();
    const place = this.#places.get(key);
    if (place !== undefined) {
      place.latencyMs = Math.max(place.latencyMs, latencyMs);
      place.count++;
      place.at = at;
      return;
    }
    if (this.#places.size >= settings.limit && !this.#makeRoom(latencyMs)) return;
    this.#places.set(key, { clientId, topic, latencyMs, count: 1, at });
  }

  /** Remove an entry that has expired, or the last one if its latency is less. @returns whether there is room */
  #makeRoom(latencyMs: number): boolean {
    this.#expire();
    if (this.#places.size < (this.#settings as SlowSubscriptionSettings).limit) return true;
    let last: [key: string, place: Place] | undefined;
    for (const entry of this.#places) if (last === undefined || entry[1].latencyMs < last[1].latencyMs) last = entry;
    if (last === undefined || last[1].latencyMs >= latencyMs) return false;
    return this.#places.delete(last[0]);
  }

  #expire(): void {
    const oldest = this.#clock.now() - (this.#settings?.expiryMs ?? 0);
    for (const [key, { at }] of this.#places) if (at < oldest) this.#places.delete(key);
  }
}

function keyOf(clientId: string, topic: string): string {
  return `${clientId}\0${topic}`;
}
