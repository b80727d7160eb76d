// Sessions are in memory: a restart asks for the login again. They are found by a digest of their token, so that the time
// of a search tells nothing about tokens. A request touches the session and sets no timer: one timer rings when the first
// session may be over, and is then set for what is left.

import type { Clock } from '../../lib/index.ts';
import { type Caller, crypto } from '../rest/index.ts';

/** Maximum number of sessions. Beyond it, the one that has been idle for the longest time ends. */
const MAX_SESSIONS = 1_000;
/** Maximum number of sessions of a person: programs without cookies that the host app logs in open one with each request. */
const MAX_OF_PERSON = 20;
const HOUR_MS = 3_600_000;
/** A session ends after this time without a request of a person. */
const IDLE_MS = 8 * HOUR_MS;
/** A session ends this time after its login. */
const LIFETIME_MS = 7 * 24 * HOUR_MS;
const TOKEN_BYTES = 32;

/** The login of a person. */
export interface Session {
  readonly caller: Caller;
  /** False after the session has ended. */
  readonly isOpen: boolean;
  /**
   * Call a function when the session ends: what was opened with it ends with it.
   * @returns a function that removes it
   */
  onEnd(run: () => void): () => void;
}

class OpenSession implements Session {
  readonly caller: Caller;
  readonly key: string;
  readonly #startedMs: number;
  readonly #opened = new Set<() => void>();
  #touchedMs: number;
  #isOpen = true;

  constructor(caller: Caller, key: string, nowMs: number) {
    this.caller = caller;
    this.key = key;
    this.#startedMs = nowMs;
    this.#touchedMs = nowMs;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The time at which it ends without further requests. */
  get endMs(): number {
    return Math.min(this.#touchedMs + IDLE_MS, this.#startedMs + LIFETIME_MS);
  }

  onEnd(run: () => void): () => void {
    if (!this.#isOpen) {
      run();
      return () => {};
    }
    const one = () => run();
    this.#opened.add(one);
    return () => void this.#opened.delete(one);
  }

  touch(nowMs: number): void {
    this.#touchedMs = nowMs;
  }

  end(): void {
    this.#isOpen = false;
    for (const run of this.#opened) run();
    this.#opened.clear();
  }
}

/** The sessions of a console. */
export class Sessions {
  readonly #clock: Clock;
  /** By the digest of the token; the one that has been idle for the longest time first. */
  readonly #sessions = new Map<string, OpenSession>();
  #timer: unknown;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Open a session. Returns its token. */
  open(caller: Caller): { readonly session: Session; readonly token: string } {
    const token = crypto().randomBytes(TOKEN_BYTES).toString('base64url');
    const session = new OpenSession(caller, keyOf(token), this.#clock.monotonic());
    const own = [...this.#sessions.values()].filter(
      ({ caller: { kind, id } }) => kind === caller.kind && id === caller.id
    );
    for (const oldest of own.slice(0, -(MAX_OF_PERSON - 1))) this.end(oldest);
    for (const oldest of this.#sessions.values()) {
      if (this.#sessions.size < MAX_SESSIONS) break;
      this.end(oldest);
    }
    this.#sessions.set(session.key, session);
    this.#arm();
    return { session, token };
  }

  /**
   * Find the session of a token.
   * @param isByPerson a person has sent the request, and the session is not idle
   */
  find(token: string, isByPerson: boolean): Session | undefined {
    const session = this.#sessions.get(keyOf(token));
    if (session === undefined) return undefined;
    const nowMs = this.#clock.monotonic();
    if (session.endMs <= nowMs) {
      this.end(session);
      return undefined;
    }
    if (!isByPerson) return session;
    session.touch(nowMs);
    this.#sessions.delete(session.key);
    this.#sessions.set(session.key, session);
    return session;
  }

  /** End a session, and all that was opened with it. */
  end(session: Session): void {
    const one = session as OpenSession;
    if (!this.#sessions.delete(one.key)) return;
    one.end();
    if (this.#sessions.size > 0) return;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** End the sessions that a function selects. */
  endIf(isOver: (caller: Caller) => boolean): void {
    for (const session of [...this.#sessions.values()]) if (isOver(session.caller)) this.end(session);
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#sessions.size === 0) return;
    const first = Math.min(...[...this.#sessions.values()].map(({ endMs }) => endMs));
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#timer = undefined;
        const nowMs = this.#clock.monotonic();
        for (const session of [...this.#sessions.values()]) if (session.endMs <= nowMs) this.end(session);
        this.#arm();
      },
      Math.max(0, first - this.#clock.monotonic())
    );
  }
}

function keyOf(token: string): string {
  return crypto().createHash('sha256').update(token).digest('base64');
}
