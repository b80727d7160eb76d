import type { QoS } from '../../lib/packets/types.ts';
import { matches } from '../../lib/topics/topic.ts';

/** A message that somebody sent, and what is known of it. Times are ticks of the world. */
export interface Sent {
  readonly topic: string;
  /** Its place among the messages of its topic. */
  readonly seq: number;
  readonly qos: QoS;
  readonly sentAt: number;
  /** How far the broker's clock was ahead when it was sent last. */
  aheadMs: number;
  readonly expiryMs: number;
  /** A retained message without payload. */
  readonly isClear: boolean;
  /** Infinity: not acknowledged. */
  ackedAt: number;
  /** It went out on more than one connection. */
  isRepeated: boolean;
  /** It may not come now: a will whose client came back in time, a delayed message before its time. */
  isForbidden: boolean;
  /** A delayed message: nobody is to get it yet. */
  isWaiting: boolean;
}

/** Who is told what was acknowledged. */
export interface Receiver {
  /** The message has been acknowledged: if this one was subscribed all the while, it is to get it. */
  accepted(sent: Sent): void;
  /** What it is still to get, in words. */
  missing(): string[];
}

/** What has happened so far, in the order in which it did, and what it promises. */
export class World {
  readonly topics = new Map<string, Sent[]>();
  readonly receivers: Receiver[] = [];
  readonly faults: string[] = [];
  /** All that happened, a line each; written down when something was wrong. */
  readonly journal: string[] = [];
  /** Where the broker is; undefined: down. */
  port: number | undefined;
  aheadMs = 0;
  /** New messages are published, clients come and go. */
  isLoading = false;
  /** Messages that may still be published in this round. */
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

  /** A message is about to be sent for the first time. */
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

  /** The broker has answered for it. */
  acknowledged(sent: Sent): void {
    if (sent.ackedAt !== Infinity) return;
    sent.ackedAt = this.tick();
    this.acks++;
    if (!sent.isWaiting) this.#due(sent);
    while (this.#onAcks.length > 0 && this.#onAcks[0][0] <= this.acks) this.#onAcks.shift()?.[1]();
  }

  /** The broker's clock goes ahead while there is no broker: what waited so long for its time is due. @param delayMs of delayed messages */
  moveClock(byMs: number, delayMs: number): void {
    this.aheadMs += byMs;
    for (const sent of [...this.topics.values()].flat()) {
      if (!sent.isWaiting || this.aheadMs - sent.aheadMs < delayMs) continue;
      sent.isForbidden = false;
      if (sent.ackedAt === Infinity) continue; // when it is sent again it may be taken as new, and wait again
      sent.isWaiting = false;
      this.#due(sent);
    }
  }

  /** Whoever was subscribed is to get it. */
  #due(sent: Sent): void {
    for (const receiver of this.receivers) receiver.accepted(sent);
  }

  isExpired({ aheadMs, expiryMs }: Sent): boolean {
    return this.aheadMs - aheadMs >= expiryMs;
  }

  /** Resolves when so many more messages are acknowledged. */
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

/** Does a topic filter, shared or not, reach a topic? */
export function reaches(filter: string, topic: string): boolean {
  return matches(filter.startsWith('$share/') ? filter.split('/').slice(2).join('/') : filter, topic);
}
