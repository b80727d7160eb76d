// One message in 64 is measured. The fast path does not look at messages, so it is sampled where it looks at the time
// anyway: at the end of a chunk, by comparing the counter of sent messages with the count at which the next one is due.
// The output of a turn is written when the turn ends, which ends the measurements of QoS 0. With QoS 1 and 2, the
// session keeps the time with the packet id until the acknowledgement.

import type { Clock } from '../base/clock.ts';
import type { QoS } from '../packets/types.ts';

/** One message in this number is measured. */
const EVERY = 64;

/** Upper bounds of the buckets, in milliseconds. */
const BOUNDS_MS: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000
];

/** The distribution of the times of one QoS, of one message in 64. */
export interface DeliveryTimeHistogram {
  /** Upper bounds of the buckets in seconds, in ascending order. */
  readonly bounds: readonly number[];
  /** Number of messages of each bucket, and of those above the highest bound. */
  readonly counts: readonly number[];
  /** Sum of the times, in seconds. */
  readonly sum: number;
  /** Number of messages that were measured. */
  readonly count: number;
}

/** The buckets of one QoS. */
class Buckets {
  readonly counts = new Float64Array(BOUNDS_MS.length + 1);
  sumMs = 0;
  count = 0;

  add(ms: number, count: number): void {
    let at = 0;
    while (at < BOUNDS_MS.length && ms > BOUNDS_MS[at]) at++;
    this.counts[at] += count;
    this.sumMs += ms * count;
    this.count += count;
  }
}

/**
 * The times from the receipt of a message to its end at a receiver: the write with QoS 0, the acknowledgement with QoS 1 (PUBACK) and 2
 * (PUBREC). One message in 64 is measured, by the monotonic clock of the broker. Retained messages for new subscriptions, and messages that
 * waited for a client that was away, are not among them.
 */
export class DeliveryTimes {
  /** By QoS: the number of sent messages from which the next one is measured. @internal */
  readonly due: Float64Array = new Float64Array(3).fill(1);
  readonly #buckets = [new Buckets(), new Buckets(), new Buckets()] as const;
  /** Times of receipt of QoS 0 messages that are written at the end of this turn, and how many messages each stands for. */
  readonly #unwritten: (readonly [sinceMs: number, count: number])[] = [];

  /** The times of the messages that were sent with a QoS. */
  histogram(qos: QoS): DeliveryTimeHistogram {
    const { counts, sumMs, count } = this.#buckets[qos];
    return { bounds: BOUNDS_MS.map((ms) => ms / 1000), counts: [...counts], sum: sumMs / 1000, count };
  }

  /**
   * Measure messages of QoS 0 that are written when the turn ends.
   * @param sinceMs monotonic time of their receipt
   * @param sent number of messages that were sent with QoS 0
   * @internal
   */
  sent(sinceMs: number, sent: number): void {
    const count = 1 + Math.floor((sent - this.due[0]) / EVERY);
    this.due[0] += count * EVERY;
    this.#unwritten.push([sinceMs, count]);
  }

  /** Measure the next message instead of this one. @internal */
  postpone(qos: QoS, sent: number): void {
    this.due[qos] = sent + 1;
  }

  /** Note that a message of QoS 1 or 2 is measured. @internal */
  chosen(qos: QoS, sent: number): void {
    this.due[qos] = sent + EVERY;
  }

  /** Note that the output of a turn is written. @internal */
  written(clock: Pick<Clock, 'monotonic'>): void {
    if (this.#unwritten.length === 0) return;
    const nowMs = clock.monotonic();
    for (const [sinceMs, count] of this.#unwritten) this.#buckets[0].add(Math.max(0, nowMs - sinceMs), count);
    this.#unwritten.length = 0;
  }

  /** Note that a message is acknowledged. @param ms time since its receipt @internal */
  acknowledged(qos: QoS, ms: number): void {
    this.#buckets[qos].add(Math.max(0, ms), 1);
  }
}
