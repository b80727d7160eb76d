import type { Ledger, Waiter } from '../store/ledger.ts';
import { Pause } from './pause.ts';

export const PUBACK = 0x40;
export const PUBREC = 0x50;

/** What a queue of acknowledgements asks of its connection. */
export interface AckConnection {
  readonly isClosed: boolean;
  /** Bits of `Pause`. */
  readonly pauses: number;
  pause(why: number): void;
  resume(why: number): void;
}

/** Sends the acknowledgements of a queue, or takes back what they were to promise. */
export interface AckSender<C> {
  send(connection: C, first: number, id: number, code: number): void;
  /** The store failed: the client may send the message again. */
  refuse(connection: C, first: number, id: number): void;
  /** An incoming QoS 2 message was not persisted. @param isRepeated this acknowledges a repetition @returns false if the id was persisted before */
  withdraw(connection: C, id: number, isRepeated: boolean): boolean;
}

/** Acknowledgements that may wait before the client is not read any more, until half of them have gone out. */
const MAX_WAITING = 5_000;

/**
 * Acknowledgements of one connection that wait for the commit of what they promise. They leave in the order in which they came in, and
 * one that has nothing to wait for does not overtake one of its kind that has [MQTT-4.6.0-2, -3, -4]. When the connection has gone they
 * are not sent, but what is not kept is still taken back.
 */
export class AckQueue<C extends AckConnection> implements Waiter {
  readonly #connection: C;
  readonly #sender: AckSender<C>;
  readonly #ledger: Ledger;
  #tickets: number[] = [];
  /** First byte, and `AGAIN`, packet id and reason code: three numbers an acknowledgement, and no object. */
  #firstBytes: number[] = [];
  #answers: number[] = [];
  #head = 0;
  /** PUBACKs among them: what the client has unacknowledged. */
  pubacks = 0;
  #pubrecs = 0;

  constructor(connection: C, ledger: Ledger, sender: AckSender<C>) {
    this.#connection = connection;
    this.#sender = sender;
    this.#ledger = ledger;
  }

  get isEmpty(): boolean {
    return this.#head === this.#tickets.length;
  }

  /**
   * Has one to wait that promises nothing? A PUBACK or PUBREC does not for PUBREL and PUBCOMP: those wait as long as the store fails,
   * while what a client publishes is accepted or refused at once.
   */
  mustQueue(first: number): boolean {
    return first > PUBREC ? !this.isEmpty : this.pubacks + this.#pubrecs > 0;
  }

  /**
   * @param ticket 0: it only waits for those before it
   * @param isRepeated it answers what came before, and was answered or is to be
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
    if (this.#tickets.length - this.#head > MAX_WAITING && (this.#connection.pauses & Pause.commit) === 0)
      this.#connection.pause(Pause.commit);
  }

  commitSucceeded(settled: number): boolean {
    const connection = this.#connection;
    const tickets = this.#tickets;
    while (this.#head < tickets.length && tickets[this.#head] <= settled) {
      const at = this.#head++;
      const first = this.#firstBytes[at];
      if (first === PUBACK) this.pubacks--;
      else if (first === PUBREC) this.#pubrecs--;
      if (!connection.isClosed) this.#sender.send(connection, first, idOf(this.#answers[at]), this.#answers[at] & 255);
    }
    return this.#resumeReading();
  }

  /** What a client sent is accepted or refused now; what answers our own messages, or ends a flow, waits for the store to come back. */
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
    if (this.#tickets.length - this.#head <= MAX_WAITING / 2) this.#connection.resume(Pause.commit);
    return !this.isEmpty;
  }
}

const REPEATED = 1 << 24;

function idOf(answer: number): number {
  return (answer >>> 8) & 0xffff;
}
