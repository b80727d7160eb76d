import { SessionLog } from '../session/log.ts';
import type { Session } from '../session/session.ts';
import type { WillState } from '../session/will.ts';
import type { Ledger } from '../store/ledger.ts';
import { WillRecord } from './will-record.ts';

/** Creates the logs of sessions and the records of wills in the store. Both are numbered, in one sequence. */
export class StoredSessions {
  readonly #ledger: Ledger;
  #lastNumber = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** A number is in use in the store. */
  used(number: number): void {
    this.#lastNumber = Math.max(this.#lastNumber, number);
  }

  /** A session has begun: persist it, or only its will. */
  begun(session: Session): void {
    const { client, lifecycle } = session;
    if (client.isPersistent) {
      const log = new SessionLog(session, ++this.#lastNumber, this.#ledger);
      session.delivery.flows.persistIn(log);
      log.changed();
    } else lifecycle.will?.persistIn(this.recordOf(session));
  }

  /** Create the record of a will. @param will default: the current will of the session */
  recordOf(session: Session, will?: WillState): WillRecord {
    return new WillRecord(session, ++this.#lastNumber, this.#ledger, will);
  }
}
