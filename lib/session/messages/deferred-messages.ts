import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { Waiter } from '../../store/durable.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import type { OutboundFlows } from './outbound-flows.ts';

/** A message that is sent after a commit. */
interface DeferredMessage {
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

/** The part of the delivery that `DeferredMessages` uses. */
export interface DeferralOwner {
  /** Called when no message waits. */
  deferralEnded(): void;
  /** Send queued messages, as far as possible. */
  pump(): void;
}

/**
 * Maximum number of deferred QoS 0 messages; more wait in the backlog. QoS 1 and 2 messages are limited by the number that may be in
 * flight.
 */
const MAX_QOS0 = 2_000;

/** The messages of one connection that wait for a commit, in the order in which they are sent. */
export class DeferredMessages implements Waiter {
  /** Number of QoS 0 messages among them. */
  qos0Count = 0;
  #waiting: DeferredMessage[] = [];
  #isClosed = false;
  readonly #owner: DeferralOwner;
  readonly #flows: OutboundFlows;
  readonly #ledger: Ledger;

  constructor(owner: DeferralOwner, flows: OutboundFlows, ledger: Ledger) {
    this.#owner = owner;
    this.#flows = flows;
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

  /** Send a message after its commit. */
  add(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): void {
    const flows = this.#flows;
    const { log } = flows;
    const id = qos > 0 ? flows.takeId(message, qos, retain, ids, persisted) : 0;
    if (id > 0) flows.inflight?.markUnsent(id);
    const waitsForFlow = log !== undefined && (qos === 2 || (qos === 0 && persisted?.isWritten === true));
    if (qos === 0 && persisted !== undefined) log?.finish(persisted);
    if (waitsForFlow) log.flowChanged();
    const ticket = waitsForFlow ? this.#ledger.ticket : message.isDeferred ? message.ticket : this.lastTicket;
    this.#waiting.push({ ticket, message, qos, retain, ids, persisted, id });
    if (qos === 0) this.qos0Count++;
  }

  /** Discard the messages, because the connection has closed. */
  close(): void {
    this.#isClosed = true;
  }

  commitSucceeded(settled: number): boolean {
    let count = 0;
    for (const deferred of this.#waiting) {
      if (this.#isClosed || deferred.ticket > settled) break;
      count++;
      this.#send(deferred);
    }
    return this.#setWaiting(this.#waiting.slice(count));
  }

  commitFailed(ticket: number): boolean {
    if (this.#isClosed) return false;
    const waiting = this.#waiting;
    const { length } = waiting;
    const left = waiting.filter((deferred) => {
      if (deferred.ticket > ticket) return true;
      if (this.#drop(deferred)) return false;
      if (deferred.qos !== 1) return true;
      this.#send(deferred); // it waited only for the messages before it
      return false;
    });
    left.push(...waiting.slice(length)); // a listener has caused them in the meantime
    for (const deferred of left) deferred.ticket = this.#ledger.ticket;
    return this.#setWaiting(left);
  }

  #send({ message, qos, retain, ids, persisted, id }: DeferredMessage): void {
    const { connection } = this.#flows;
    if (connection !== undefined) this.#flows.send(connection, message, qos, retain, ids, persisted, id);
  }

  /** Drop a message whose commit failed. @returns false if the message waits for the next commit instead */
  #drop({ message, persisted, id }: DeferredMessage): boolean {
    if (message.ticket <= this.#ledger.settled) return false;
    if (id > 0) this.#flows.inflight?.free(id);
    if (persisted !== undefined) this.#flows.log?.finish(persisted);
    return true;
  }

  #setWaiting(left: DeferredMessage[]): boolean {
    if (this.#isClosed) return false;
    const wasFull = this.isFull;
    this.#waiting = left;
    this.qos0Count = left.reduce((count, { qos }) => (qos === 0 ? count + 1 : count), 0);
    if (left.length > 0) {
      if (wasFull && !this.isFull) this.#owner.pump();
      return true;
    }
    this.#owner.deferralEnded();
    return false;
  }
}

/**
 * Tell whether a message must wait for a commit: a QoS 2 message until its packet id is persisted, and any message that its publisher would
 * send again if the commit failed.
 * @param waiting the messages that wait already
 */
export function mustDefer(
  flows: OutboundFlows,
  waiting: { readonly deferred: DeferredMessages | undefined } | undefined,
  message: Message,
  qos: QoS,
  persisted: PersistedMessage | undefined
): boolean {
  const { ledger } = flows.ports;
  if (ledger === undefined) return false;
  if (qos === 2 && flows.log !== undefined) return true;
  if (message.isDeferred && message.ticket > ledger.settled) return true;
  if (qos === 0 && persisted?.isWritten === true) return true; // otherwise a crash could deliver it twice
  const deferred = waiting?.deferred;
  if (deferred === undefined) return false;
  return qos === 0 ? deferred.qos0Count > 0 : !ledger.isFailed; // keep the order of the messages
}

/** Tell whether the publisher of a message was refused, and may send it again. Persisted sessions drop such messages in their log. */
export function isRefused(message: Message, ledger: Ledger | undefined): boolean {
  return message.isDeferred && ledger?.hasRefused(message.ticket) === true;
}
