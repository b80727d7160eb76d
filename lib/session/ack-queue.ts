import type { Ledger, Waiter } from '../store/ledger.ts';
import type { Connection } from './connection.ts';
import { answerNow, PUBACK, PUBREC, refuseForStore } from './handlers/acknowledgements.ts';

/**
 * Acknowledgements of one connection that wait for the commit of what they promise. They leave in the order in which they came in, so
 * one that has nothing to wait for does not overtake one that has [MQTT-4.6.0-2, -3].
 */
export class AckQueue implements Waiter {
  readonly #link: Connection;
  readonly #ledger: Ledger;
  #tickets: number[] = [];
  /** First byte, and packet id with the reason code: three numbers an acknowledgement, and no object. */
  #firsts: number[] = [];
  #answers: number[] = [];
  #head = 0;
  /** PUBACKs among them: what the client has unacknowledged. */
  pubacks = 0;

  constructor(link: Connection, ledger: Ledger) {
    this.#link = link;
    this.#ledger = ledger;
  }

  get isEmpty(): boolean {
    return this.#head === this.#tickets.length;
  }

  /** @param ticket 0: it only waits for those before it */
  add(ticket: number, first: number, id: number, code: number): void {
    if (this.isEmpty) {
      this.#tickets = [];
      this.#firsts = [];
      this.#answers = [];
      this.#head = 0;
      this.#ledger.wait(this);
    }
    if (first === PUBACK) this.pubacks++;
    this.#tickets.push(ticket);
    this.#firsts.push(first);
    this.#answers.push((id << 8) | code);
  }

  commitKept(settled: number): boolean {
    const link = this.#link;
    const tickets = this.#tickets;
    while (this.#head < tickets.length && tickets[this.#head] <= settled && !link.isClosed) {
      const at = this.#head++;
      if (this.#firsts[at] === PUBACK) this.pubacks--;
      answerNow(link.session, link, this.#firsts[at], this.#answers[at] >>> 8, this.#answers[at] & 255);
    }
    return !this.isEmpty && !link.isClosed;
  }

  /** What a client sent is refused; what answers our own messages, or ends a flow, waits for the store to come back. */
  commitFailed(ticket: number): boolean {
    const link = this.#link;
    const { ticket: next } = this.#ledger;
    const [tickets, firsts, answers] = [this.#tickets, this.#firsts, this.#answers];
    const from = this.#head;
    this.#tickets = [];
    this.#firsts = [];
    this.#answers = [];
    this.#head = 0;
    for (let at = from; at < tickets.length && !link.isClosed; at++) {
      const id = answers[at] >>> 8;
      const isLost = tickets[at] > 0 && tickets[at] <= ticket;
      if (isLost && (firsts[at] === PUBACK || firsts[at] === PUBREC)) {
        if (firsts[at] === PUBACK) this.pubacks--;
        else link.session.forgetIncoming(id);
        refuseForStore(link.session, link, firsts[at], id);
        continue;
      }
      this.#tickets.push(isLost ? next : tickets[at]);
      this.#firsts.push(firsts[at]);
      this.#answers.push(answers[at]);
    }
    return !this.isEmpty && !link.isClosed;
  }
}
