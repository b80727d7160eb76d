import type { WillState } from '../../session/life/will.ts';
import type { Session } from '../../session/session.ts';
import type { Services } from '../services.ts';
import type { StoredSessions } from './stored-sessions.ts';

/** The parts of the broker that `Wills` uses. */
interface WillsHost {
  readonly publishing: { readonly own: { will(session: Session, will: WillState): undefined | Promise<boolean> } };
  /** undefined: there is no store. */
  readonly storedSessions: StoredSessions | undefined;
}

/** Publishes wills. With a store, those that a stop or the end of the process prevents are published after the next start. */
export class Wills {
  readonly #services: Services;
  readonly #host: WillsHost;
  /** Functions that publish the wills which wait for the start of the broker. */
  #pending: (() => void)[] = [];

  constructor(services: Services, host: WillsHost) {
    this.#services = services;
    this.#host = host;
  }

  /** Publish a will. */
  publish(session: Session, will: WillState): void {
    const done = this.#host.publishing.own.will(session, will);
    if (done !== undefined) this.#keepUntilDone(session, will, done);
  }

  /** Persist a will on which hooks decide. If the process ends or the broker stops first, the next start publishes the will. */
  #keepUntilDone(session: Session, will: WillState, done: Promise<boolean>): void {
    const { life, announcer } = this.#services;
    const { storedSessions } = this.#host;
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
    const { storedSessions } = this.#host;
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
