import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { Ledger, Waiter } from '../store/ledger.ts';
import type { KeptMessage } from './segment.ts';
import type { Session } from './session.ts';

/** A message that goes out when a commit is kept. */
export interface Held {
  ticket: number;
  readonly message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly ids: readonly number[] | undefined;
  readonly kept: KeptMessage | undefined;
  /** Packet id; 0: QoS 0. */
  readonly id: number;
}

/** Messages of QoS 0 that are held; more wait in the queue, which is bounded. Those of QoS 1 and 2 are as many as may be in flight. */
const MAX_ZEROES = 2_000;

/** What one connection is to get when its commit is kept, in order. */
export class HeldMessages implements Waiter {
  /** Those of QoS 0 among them. */
  zeroes = 0;
  #waiting: Held[] = [];
  readonly #session: Session;
  readonly #ledger: Ledger;

  constructor(session: Session, ledger: Ledger) {
    this.#session = session;
    this.#ledger = ledger;
    ledger.wait(this);
  }

  get isFull(): boolean {
    return this.zeroes >= MAX_ZEROES;
  }

  /** The commit that the last of them waits for. */
  get last(): number {
    return this.#waiting.at(-1)?.ticket ?? 0;
  }

  add(held: Held): void {
    this.#waiting.push(held);
    if (held.qos === 0) this.zeroes++;
  }

  commitKept(settled: number): boolean {
    const session = this.#session;
    let count = 0;
    for (const held of this.#waiting) {
      if (session.held !== this || held.ticket > settled) break; // its connection has gone
      count++;
      session.sendHeld(held);
    }
    return this.#leave(this.#waiting.slice(count));
  }

  commitFailed(ticket: number): boolean {
    const session = this.#session;
    if (session.held !== this) return false;
    const left = this.#waiting.filter((held) => {
      if (held.ticket > ticket) return true;
      if (session.dropHeld(held)) return false;
      if (held.qos !== 1) return true;
      session.sendHeld(held); // it waited for those before it alone
      return false;
    });
    for (const held of left) held.ticket = this.#ledger.ticket;
    return this.#leave(left);
  }

  #leave(left: Held[]): boolean {
    const session = this.#session;
    if (session.held !== this) return false;
    const wasFull = this.isFull;
    this.#waiting = left;
    this.zeroes = left.reduce((count, { qos }) => (qos === 0 ? count + 1 : count), 0);
    if (left.length > 0) {
      if (wasFull && !this.isFull) session.pump();
      return true;
    }
    session.held = undefined;
    session.updateLane();
    session.pump();
    return false;
  }
}
