import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { Ledger, Waiter } from '../store/ledger.ts';
import type { PersistedMessage } from './segment.ts';
import type { Session } from './session.ts';

/** A message that is sent after a commit. */
export interface DeferredMessage {
  /** The commit to wait for. */
  ticket: number;
  readonly message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly ids: readonly number[] | undefined;
  readonly persisted: PersistedMessage | undefined;
  /** Packet id; 0 for QoS 0. */
  readonly id: number;
}

/** Most deferred QoS 0 messages; more wait in the backlog. QoS 1 and 2 messages are bounded by the number that may be in flight. */
const MAX_QOS0 = 2_000;

/** The messages of one connection that wait for a commit, in the order in which they are sent. */
export class DeferredMessages implements Waiter {
  /** Number of QoS 0 messages among them. */
  qos0Count = 0;
  #waiting: DeferredMessage[] = [];
  readonly #session: Session;
  readonly #ledger: Ledger;

  constructor(session: Session, ledger: Ledger) {
    this.#session = session;
    this.#ledger = ledger;
    ledger.wait(this);
  }

  get isFull(): boolean {
    return this.qos0Count >= MAX_QOS0;
  }

  /** The commit that the last message waits for; 0 if there is none. */
  get lastTicket(): number {
    return this.#waiting.at(-1)?.ticket ?? 0;
  }

  add(deferred: DeferredMessage): void {
    this.#waiting.push(deferred);
    if (deferred.qos === 0) this.qos0Count++;
  }

  commitSucceeded(settled: number): boolean {
    const session = this.#session;
    let count = 0;
    for (const deferred of this.#waiting) {
      if (session.deferred !== this || deferred.ticket > settled) break; // the connection has closed
      count++;
      session.sendDeferred(deferred);
    }
    return this.#setWaiting(this.#waiting.slice(count));
  }

  commitFailed(ticket: number): boolean {
    const session = this.#session;
    if (session.deferred !== this) return false;
    const waiting = this.#waiting;
    const { length } = waiting;
    const left = waiting.filter((deferred) => {
      if (deferred.ticket > ticket) return true;
      if (session.dropDeferred(deferred)) return false;
      if (deferred.qos !== 1) return true;
      session.sendDeferred(deferred); // it waited only for the messages before it
      return false;
    });
    left.push(...waiting.slice(length)); // a listener has caused them meanwhile
    for (const deferred of left) deferred.ticket = this.#ledger.ticket;
    return this.#setWaiting(left);
  }

  #setWaiting(left: DeferredMessage[]): boolean {
    const session = this.#session;
    if (session.deferred !== this) return false;
    const wasFull = this.isFull;
    this.#waiting = left;
    this.qos0Count = left.reduce((count, { qos }) => (qos === 0 ? count + 1 : count), 0);
    if (left.length > 0) {
      if (wasFull && !this.isFull) session.pump();
      return true;
    }
    session.deferred = undefined;
    session.updateFastPath();
    session.pump();
    return false;
  }
}
