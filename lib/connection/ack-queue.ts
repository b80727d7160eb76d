import { PUBACK, PUBREC } from '../packets/acks.ts';
import type { Waiter } from '../store/durable.ts';
import type { Ledger } from '../store/ledger.ts';
import { Pause, type PausedConnection } from './pause.ts';

/** Sends the acknowledgements of a queue, or refuses the messages if the commit fails. */
export interface AckSender<C> {
  send(connection: C, first: number, id: number, code: number): void;
  /** Refuse a message because the store failed. The client may send it again. */
  refuse(connection: C, first: number, id: number): void;
  /**
   * Discard the packet id of an incoming QoS 2 message that was not persisted.
   * @param isRepeated the acknowledgement answers a repeated PUBLISH
   * @returns false if the packet id had been persisted before
   */
  withdraw(connection: C, id: number, isRepeated: boolean): boolean;
}

/** Number of waiting acknowledgements above which reading from the client is paused, until half of them have been sent. */
const MAX_WAITING = 5_000;

/**
 * Acknowledgements of one connection that wait for the commit of the state that they promise.
 *
 * They are sent in the order in which they were added. An acknowledgement that need not wait for a commit does not overtake one of its kind
 * that must [MQTT-4.6.0-2, -3, -4]. After the connection has closed, nothing is sent, but state that was not persisted is still undone.
 */
export class AckQueue<C extends PausedConnection> implements Waiter {
  readonly #connection: C;
  readonly #sender: AckSender<C>;
  readonly #ledger: Ledger;
  #tickets: number[] = [];
  // Three numbers for each acknowledgement instead of an object: ticket; first byte; `REPEATED`, packet id and reason code.
  #firstBytes: number[] = [];
  #answers: number[] = [];
  #head = 0;
  /** Number of PUBACKs in the queue: QoS 1 messages of the client that are not acknowledged. */
  pubacks = 0;
  #pubrecs = 0;

  constructor(connection: C, ledger: Ledger, sender: AckSender<C>) {
    this.#connection = connection;
    this.#sender = sender;
    this.#ledger = ledger;
  }

  /** Number of waiting acknowledgements. */
  get length(): number {
    return this.#tickets.length - this.#head;
  }

  get isEmpty(): boolean {
    return this.#head === this.#tickets.length;
  }

  /**
   * True if an acknowledgement that waits for no commit must be queued to keep the order. A PUBACK or PUBREC need not wait for PUBREL and
   * PUBCOMP: those wait as long as the store fails, while published messages are accepted or refused at once.
   * @param first its first byte
   */
  mustQueue(first: number): boolean {
    return first > PUBREC ? !this.isEmpty : this.pubacks + this.#pubrecs > 0;
  }

  /**
   * Add an acknowledgement.
   * @param ticket the commit to wait for; 0: wait only for the acknowledgements before it
   * @param first its first byte
   * @param isRepeated it answers a repeated packet
   */
  add(ticket: number, first: number, id: number, code: number, isRepeated: boolean): void {
    if (this.isEmpty) {
      this.#tickets = [];
      this.#firstBytes = [];
      this.#answers = [];
      this.#head = 0;
      this.#ledger.wait(this);
    }
    if (first === PUBACK) this.pubacks++;
    else if (first === PUBREC) this.#pubrecs++;
    this.#tickets.push(ticket);
    this.#firstBytes.push(first);
    this.#answers.push((isRepeated ? REPEATED : 0) | (id << 8) | code);
    if (this.#tickets.length - this.#head > MAX_WAITING && (this.#connection.reader.pauses & Pause.commit) === 0)
      this.#connection.reader.pause(Pause.commit);
  }

  commitSucceeded(settled: number): boolean {
    const connection = this.#connection;
    // a subscriber of a diagnostics channel can cause an `add` within `send`, which replaces the lists if they are empty
    while (!this.isEmpty && this.#tickets[this.#head] <= settled) {
      const at = this.#head++;
      const first = this.#firstBytes[at];
      if (first === PUBACK) this.pubacks--;
      else if (first === PUBREC) this.#pubrecs--;
      if (!connection.isClosed) this.#sender.send(connection, first, idOf(this.#answers[at]), this.#answers[at] & 255);
    }
    return this.#resumeReading();
  }

  /** Accept or refuse the messages of the client now. PUBREL and PUBCOMP wait until the store works again. */
  commitFailed(): boolean {
    const connection = this.#connection;
    const { settled, ticket: next } = this.#ledger;
    const [tickets, firsts, answers] = [this.#tickets, this.#firstBytes, this.#answers];
    const from = this.#head;
    this.#tickets = [];
    this.#firstBytes = [];
    this.#answers = [];
    this.#head = this.pubacks = this.#pubrecs = 0;
    for (let at = from; at < tickets.length; at++) {
      const [first, id] = [firsts[at], idOf(answers[at])];
      const isLost = tickets[at] > settled;
      if (first > PUBREC) {
        this.#tickets.push(isLost ? next : 0);
        this.#firstBytes.push(first);
        this.#answers.push(answers[at]);
      } else {
        const isRefused =
          isLost && (first === PUBACK || this.#sender.withdraw(connection, id, (answers[at] & REPEATED) !== 0));
        if (connection.isClosed) continue;
        if (isRefused) this.#sender.refuse(connection, first, id);
        else this.#sender.send(connection, first, id, answers[at] & 255);
      }
    }
    return this.#resumeReading();
  }

  #resumeReading(): boolean {
    if (this.#tickets.length - this.#head <= MAX_WAITING / 2) this.#connection.reader.resume(Pause.commit);
    return !this.isEmpty;
  }
}

const REPEATED = 1 << 24;

function idOf(answer: number): number {
  return (answer >>> 8) & 0xffff;
}
