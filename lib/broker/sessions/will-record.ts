import type { WillState } from '../../session/life/will.ts';
import { writeSession } from '../../session/messages/session-writer.ts';
import type { Session } from '../../session/session.ts';
import type { Durable } from '../../store/durable.ts';
import { Kind } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Draft } from '../../store/record.ts';

/** The persisted will of a session that ends with its connection. If the process ends first, the next start publishes the will. */
export class WillRecord implements Durable {
  isDirty = false;
  readonly #session: Session;
  readonly #number: number;
  readonly #ledger: Ledger;
  readonly #will: WillState | undefined;
  #isOver = false;

  /** @param will default: the current will of the session */
  constructor(session: Session, number: number, ledger: Ledger, will?: WillState) {
    this.#session = session;
    this.#number = number;
    this.#ledger = ledger;
    this.#will = will;
  }

  changed(): void {
    this.#ledger.promise(this, 64);
  }

  /** Delete the record, because the will has been published or dropped. */
  end(): void {
    this.#isOver = true;
    this.changed();
  }

  write(draft: Draft): void {
    const will = this.#isOver ? undefined : (this.#will ?? this.#session.lifecycle.will);
    if (will !== undefined) writeSession(draft, Kind.will, this.#number, this.#session, will);
    else draft.key(Kind.will).u48(this.#number).delete();
  }

  committed(): void {}
  commitFailed(): void {}
}
