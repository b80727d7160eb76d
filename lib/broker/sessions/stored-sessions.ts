import type { WillState } from '../../session/life/will.ts';
import { SessionLog } from '../../session/messages/session-log.ts';
import type { Session } from '../../session/session.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Services } from '../services.ts';
import { Sweeper } from './sweeper.ts';
import { WillRecord } from './will-record.ts';

/**
 * The sessions in the store: their logs, the records of wills, and the deletion of leftovers. Logs and wills are numbered, in one sequence.
 */
export class StoredSessions {
  /** Deletes the segments of sessions that have ended. */
  readonly sweeper: Sweeper;
  readonly #ledger: Ledger;
  #lastNumber = 0;

  constructor(services: Services, ledger: Ledger) {
    this.#ledger = ledger;
    this.sweeper = new Sweeper(services, ledger);
  }

  /** Note that a number is in use in the store. */
  used(number: number): void {
    this.#lastNumber = Math.max(this.#lastNumber, number);
  }

  /** Persist a session that has started, or only its will. */
  begun(session: Session): void {
    const { client, lifecycle } = session;
    if (client.isPersistent) {
      const log = new SessionLog(session, ++this.#lastNumber, this.#ledger);
      session.outlet.persistIn(log);
      log.changed();
    } else lifecycle.will?.persistIn(this.recordOf(session));
  }

  /** Create the record of a will. @param will default: the current will of the session */
  recordOf(session: Session, will?: WillState): WillRecord {
    return new WillRecord(session, ++this.#lastNumber, this.#ledger, will);
  }
}
