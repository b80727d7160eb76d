import { NotFound } from '../../base/errors.ts';
import type { SessionRecord } from '../../records/session-records.ts';
import type { Page } from '../../routing/directory.ts';
import type { ClientQuery } from '../../routing/directory-queries.ts';
import { commitChange } from '../../store/after-commit.ts';
import type { Engine } from '../engine.ts';
import { type KickOptions, SessionHandle } from './session-handle.ts';

/** Number of sessions that are ended in one turn. */
const KICKS_AT_ONCE = 100;

/** The sessions of the broker by client id, connected or not: `broker.sessions`. */
export class Sessions<Data = unknown> implements Iterable<SessionHandle<Data>> {
  readonly #engine: Engine;

  /** @internal */
  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Number of sessions, connected or not. */
  get count(): number {
    return this.#engine.sessions.count;
  }

  /** Tell whether a client id has a session, connected or not. */
  has(clientId: string): boolean {
    return typeof clientId === 'string' && this.#engine.sessions.has(clientId);
  }

  /** The session of a client id, connected or not. @throws NotFound SESSION_NOT_FOUND */
  get(clientId: string): SessionHandle<Data> {
    const { sessions, subscribing } = this.#engine;
    const session = this.has(clientId) ? sessions.get(clientId) : undefined;
    if (session === undefined)
      throw new NotFound('SESSION_NOT_FOUND', `there is no session for client id "${String(clientId)}"`);
    return new SessionHandle(session, subscribing);
  }

  /** A page of the list of sessions: `broker.directory.sessions`. */
  list(query?: ClientQuery): Promise<Page<SessionRecord>> {
    return this.#engine.directory.sessions(query);
  }

  /** All sessions, connected or not, in order of creation. To list many, use `list`. */
  *[Symbol.iterator](): IterableIterator<SessionHandle<Data>> {
    const { sessions, subscribing } = this.#engine;
    for (const session of sessions.values()) yield new SessionHandle(session, subscribing);
  }

  /**
   * Disconnect a client and end its session, as `kick` of the session does.
   * @returns a promise that resolves when the change is persisted, if it has to be
   * @throws NotFound SESSION_NOT_FOUND; the errors of `SessionHandle.kick`; BrokerError STORE_FAILED if the commit fails
   */
  kick(clientId: string, options: KickOptions = {}): Promise<void> {
    return commitChange(this.#engine.ledger, () => this.get(clientId).kick(options));
  }

  /**
   * Disconnect the clients that satisfy conditions and end their sessions, a few in each turn. Sessions that are created in the meantime
   * stay.
   * @param query as for `list`, without `cursor`, `limit` and `skip`
   * @returns the number of sessions that were ended; the promise resolves when that is persisted, if it has to be
   * @throws as `list` and `kick`; some sessions may have been ended before
   */
  async kickMatching(query: ClientQuery, options: KickOptions = {}): Promise<number> {
    const { directory, services, ledger } = this.#engine;
    const createdTo = Math.min(query.createdTo ?? Infinity, services.clock.now());
    let count = 0;
    for (let cursor: string | undefined; ; ) {
      const page = await directory.sessions({ ...query, createdTo, limit: KICKS_AT_ONCE, cursor, skip: 0 });
      await commitChange(ledger, () => {
        for (const { clientId } of page.entries) {
          this.get(clientId).kick(options);
          count++;
        }
      });
      cursor = page.cursor;
      if (cursor === undefined) return count;
    }
  }

  /**
   * End the session of a client that is not connected, as `discard` of the session does.
   * @returns a promise that resolves when the change is persisted, if it has to be
   * @throws NotFound SESSION_NOT_FOUND; BrokerError SESSION_RUNNING if the client is connected; BrokerError STORE_FAILED
   */
  discard(clientId: string): Promise<void> {
    return commitChange(this.#engine.ledger, () => this.get(clientId).discard());
  }
}
