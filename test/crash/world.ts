import type { QoS } from '../../lib/packets/types.ts';
import { matches } from '../../lib/topics/topic.ts';

/** A message that a client or the app has sent, and its known properties. Times are ticks of the world. */
export interface Sent {
  readonly topic: string;
  /** Position among the messages of its topic. */
  readonly seq: number;
  readonly qos: QoS;
  readonly sentAt: number;
  /** Time by which the broker's clock was ahead when the message was last sent. */
  aheadMs: number;
  readonly expiryMs: number;
  /** True if this is a retained message without payload. */
  readonly isClear: boolean;
  /** Infinity if it is not acknowledged. */
  ackedAt: number;
  /** True if it was sent on more than one connection. */
  isRepeated: boolean;
  /** True if it must not arrive now: a will whose client reconnected in time, a delayed message before its time. */
  isForbidden: boolean;
  /** True if this is a delayed message that no client may receive yet. */
  isWaiting: boolean;
}

/** A receiver is notified of acknowledged messages. */
export interface Receiver {
  /** Called when a message has been acknowledged: a receiver that was subscribed all the time must get it. */
  accepted(sent: Sent): void;
  /** Describes the messages that it has yet to receive. */
  missing(): string[];
}

/** The events so far, in order, and the messages that must arrive because of them. */
export class World {
  readonly topics = new Map<string, Sent[]>();
  readonly receivers: Receiver[] = [];
  readonly faults: string[] = [];
  /** All events, a line each; written to a file if there was a fault. */
  readonly journal: string[] = [];
  /** The port of the broker; undefined while it is down. */
  port: number | undefined;
  aheadMs = 0;
  /** True if messages are published and clients connect and disconnect. */
  isLoading = false;
  /** The number of messages that may still be published in this round. */
  budget = 0;
  acks = 0;
  #tick = 0;
  readonly #onAcks: [count: number, run: () => void][] = [];

  tick(): number {
    return ++this.#tick;
  }

  note(who: string, what: string): void {
    this.journal.push(`${this.#tick} ${who} ${what}`);
  }

  fault(text: string): void {
    this.note('FAULT', text);
    if (this.faults.length < 20) this.faults.push(text);
  }

  /** Records a message that is about to be sent for the first time. */
  send(topic: string, qos: QoS, more: { expiryMs?: number; isClear?: boolean } = {}): Sent {
    let log = this.topics.get(topic);
    if (log === undefined) this.topics.set(topic, (log = []));
    const { expiryMs = Infinity, isClear = false } = more;
    const sent: Sent = {
      topic,
      seq: log.length,
      qos,
      sentAt: this.tick(),
      aheadMs: this.aheadMs,
      expiryMs,
      isClear,
      ackedAt: Infinity,
      isRepeated: false,
      isForbidden: false,
      isWaiting: false
    };
    log.push(sent);
    return sent;
  }

  /** Records that the broker has acknowledged a message. */
  acknowledged(sent: Sent): void {
    if (sent.ackedAt !== Infinity) return;
    sent.ackedAt = this.tick();
    this.acks++;
    if (!sent.isWaiting) this.#due(sent);
    while (this.#onAcks.length > 0 && this.#onAcks[0][0] <= this.acks) this.#onAcks.shift()?.[1]();
  }

  /**
   * Advances the broker's clock while there is no broker, so that delayed messages become due.
   * @param delayMs the delay of delayed messages
   */
  moveClock(byMs: number, delayMs: number): void {
    this.aheadMs += byMs;
    for (const sent of [...this.topics.values()].flat()) {
      if (!sent.isWaiting || this.aheadMs - sent.aheadMs < delayMs) continue;
      sent.isForbidden = false;
      if (sent.ackedAt === Infinity) continue; // when it is sent again, the broker may treat it as new and delay it again
      sent.isWaiting = false;
      this.#due(sent);
    }
  }

  /** Require from now on that every subscribed receiver gets the message. */
  #due(sent: Sent): void {
    for (const receiver of this.receivers) receiver.accepted(sent);
  }

  isExpired({ aheadMs, expiryMs }: Sent): boolean {
    return this.aheadMs - aheadMs >= expiryMs;
  }

  /** Resolves when this many more messages are acknowledged. */
  moreAcks(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#onAcks.push([this.acks + count, resolve]);
      this.#onAcks.sort(([one], [other]) => one - other);
    });
  }

  missing(): string[] {
    return this.receivers.flatMap((receiver) => receiver.missing());
  }
}

/** Tell whether a topic filter, shared or not, matches a topic name. */
export function reaches(filter: string, topic: string): boolean {
  return matches(filter.startsWith('$share/') ? filter.split('/').slice(2).join('/') : filter, topic);
}
