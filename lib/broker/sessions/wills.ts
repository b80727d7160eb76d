import type { WillState } from '../../session/life/will.ts';
import type { Session } from '../../session/session.ts';
import type { Services } from '../services.ts';
import type { StoredSessions } from './stored-sessions.ts';

/** Publishes a will. @returns undefined: it is published; or a promise of whether it was, once hooks have decided */
type PublishWill = (session: Session, will: WillState) => undefined | Promise<boolean>;

/** Publishes wills. With a store, those that a stop or the end of the process prevents are published after the next start. */
export class Wills {
  readonly #services: Services;
  readonly #publishWill: PublishWill;
  /** undefined: there is no store. */
  readonly #storedSessions: StoredSessions | undefined;
  /** Functions that publish the wills which wait for the start of the broker. */
  #pending: (() => void)[] = [];

  constructor(services: Services, publishWill: PublishWill, storedSessions: StoredSessions | undefined) {
    this.#services = services;
    this.#publishWill = publishWill;
    this.#storedSessions = storedSessions;
  }

  /** Publish a will. */
  publish(session: Session, will: WillState): void {
    const done = this.#publishWill(session, will);
    if (done !== undefined) this.#keepUntilDone(session, will, done);
  }

  /** Persist a will on which hooks decide. If the process ends or the broker stops first, the next start publishes the will. */
  #keepUntilDone(session: Session, will: WillState, done: Promise<boolean>): void {
    const { life, announcer } = this.#services;
    const storedSessions = this.#storedSessions;
    if (storedSessions === undefined) return;
    const record = storedSessions.recordOf(session, will);
    record.changed();
    const decided = done.then((isDone) => {
      const publishAgain = () => {
        this.publish(session, will);
        record.end();
      };
      if (isDone) record.end();
      else if (life.isRunning) publishAgain();
      else this.#pending.push(publishAgain);
    });
    decided.catch((error: unknown) => announcer.failed(error, 'publishing a will', session.client));
  }

  /** Persist the will of a session that has ended, for the next start of the broker. */
  keep(session: Session): void {
    const storedSessions = this.#storedSessions;
    const { will } = session.lifecycle;
    if (storedSessions === undefined || will === undefined) return;
    if (!will.isPersisted) will.persistIn(storedSessions.recordOf(session));
    this.publishAtStart(session);
  }

  /** Publish the will of a session that has ended when the broker starts. */
  publishAtStart(session: Session): void {
    this.#pending.push(() => session.lifecycle.publishWill());
  }

  /** Publish the wills that have waited for the start of the broker. */
  brokerStarted(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const publish of pending) publish();
  }
}
