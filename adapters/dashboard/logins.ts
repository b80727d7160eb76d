// The sender of a request is the person of the session that its cookie names, or the person that the host app returns. A
// request of the page without a person, such as a poll, says so and does not keep a session open. The page marks all of
// its requests, because a browser opens its own dialog for an answer 401 with the scheme Basic.

import type { IncomingMessage } from 'node:http';
import type { Broker } from '../../lib/index.ts';
import { type Call, type Caller, Fault, type Scope } from '../rest/index.ts';
import { cookieName, cookieText, cookieValues } from './cookies.ts';
import type { DashboardLoginFunction, DashboardSettings } from './options.ts';
import { type Session, Sessions } from './sessions.ts';

/** The header of requests of the page: `person`, or `background` for those that no person has caused. */
const PAGE_HEADER = 'embermq-console';
/** The scheme that the page gets instead of Basic. */
const CHALLENGE = { 'www-authenticate': 'Session realm="embermq"' };
const MAX_ID_LENGTH = 256;
/** Maximum number of mounts that are known: a path of the host app may have parameters. */
const MAX_MOUNTS = 100;

/** The sender of a request, and a new cookie for it. */
interface Known {
  readonly caller: Caller;
  readonly session?: Session | undefined;
  /** The header `Set-Cookie`, if the session is new. */
  readonly cookie?: string;
}

/** The people who have logged in to a console. */
export class Logins {
  readonly #broker: Broker;
  readonly #login: DashboardLoginFunction | undefined;
  readonly #sessions: Sessions;
  /** The paths at which people have logged in, the last one at the end. */
  readonly #mounts = new Set<string>();

  constructor(broker: Broker, { login }: DashboardSettings) {
    this.#broker = broker;
    this.#login = login === 'users' ? undefined : login;
    this.#sessions = new Sessions(broker.clock);
    broker.users.onChange(({ name }) => this.#sessions.endIf(({ kind, id }) => kind === 'user' && id === name));
    broker.on('broker.stopped', () => this.#sessions.endIf(() => true));
  }

  /** True if the host app logs people in. */
  get isOfHost(): boolean {
    return this.#login !== undefined;
  }

  /**
   * The sender of a request; undefined: it may have credentials.
   * @throws Fault unauthorized: there is no login, and the page has sent it, or the host app alone logs people in
   */
  async identify(call: Call, mount: string): Promise<Caller | undefined> {
    const { caller } = await this.#find(call, mount);
    if (caller !== undefined) return caller;
    if (call.header('authorization') !== undefined) return undefined;
    const hasOnlyHost = this.isOfHost && this.#broker.users.size === 0;
    if (isOfPage(call) || hasOnlyHost) throw notLoggedIn();
    return undefined;
  }

  /** The session of a request of the page. @throws Fault unauthorized */
  async sessionFor(call: Call, mount: string): Promise<Known> {
    const { caller, session } = await this.#find(call, mount);
    if (caller === undefined) throw notLoggedIn();
    return session === undefined ? this.open(caller, call, mount) : { caller, session };
  }

  /**
   * The session of a header `Cookie`.
   * @param isOverTls the request came over TLS
   * @param isByPerson the session is not idle
   */
  ofCookies(header: string | undefined, mount: string, isOverTls: boolean, isByPerson = false): Session | undefined {
    for (const token of cookieValues(header, this.#nameAt(mount), isOverTls)) {
      const session = this.#sessions.find(token, isByPerson);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  /** True if the host app, if it logs people in, still names the person of a session; otherwise the session ends. */
  async isConfirmed(session: Session, request: IncomingMessage): Promise<boolean> {
    if (!this.isOfHost || isSame(session.caller, await this.#callerOfHost(request))) return true;
    this.#sessions.end(session);
    return false;
  }

  /** True if people have logged in at a path. */
  isKnown(mount: string): boolean {
    return this.#mounts.has(mount);
  }

  /** Open a session after a login. A session of the same browser ends. */
  open(caller: Caller, call: Call, mount: string): Known {
    const former = this.ofCookies(call.header('cookie'), mount, call.isSecure);
    if (former !== undefined) this.#sessions.end(former);
    const { session, token } = this.#sessions.open(caller);
    this.#mounts.delete(mount);
    this.#mounts.add(mount);
    for (const first of this.#mounts) if (this.#mounts.size > MAX_MOUNTS) this.#mounts.delete(first);
    return { caller, session, cookie: cookieText(this.#nameAt(mount), token, { mount, isSecure: isSecure(call) }) };
  }

  /** End the session of a request. @returns its person, if there was a session, and the header `Set-Cookie` */
  close(call: Call, mount: string): { readonly caller: Caller | undefined; readonly cookie: string } {
    const session = this.ofCookies(call.header('cookie'), mount, call.isSecure);
    if (session !== undefined) this.#sessions.end(session);
    const cookie = cookieText(this.#nameAt(mount), undefined, { mount, isSecure: isSecure(call) });
    return { caller: session?.caller, cookie };
  }

  #nameAt(mount: string): string {
    return cookieName(mount, this.#broker.settings.node);
  }

  /** The sender of a request. A session of another person than the host app names is over. */
  async #find(call: Call, mount: string): Promise<Partial<Known>> {
    const session = this.ofCookies(call.header('cookie'), mount, call.isSecure, isByPerson(call));
    if (!this.isOfHost) return session === undefined ? {} : { caller: session.caller, session };
    const caller = await this.#callerOfHost(call.original as IncomingMessage | Request);
    if (session === undefined || isSame(session.caller, caller)) return { caller, session };
    this.#sessions.end(session);
    return { caller };
  }

  async #callerOfHost(request: IncomingMessage | Request): Promise<Caller | undefined> {
    try {
      const found: unknown = await this.#login?.(request);
      return found === undefined || found === null ? undefined : callerOf(found);
    } catch (error) {
      this.#broker.failed(error, 'the function "login" of the dashboard');
      return undefined;
    }
  }
}

/** @throws TypeError */
function callerOf(found: unknown): Caller {
  const { id, scope } = found as { readonly id?: unknown; readonly scope?: unknown };
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID_LENGTH || !isScope(scope))
    throw new TypeError('it must return { id, scope }: a name, and "viewer" or "administrator"');
  return { id, scope, kind: 'function', mayLoadCode: scope === 'administrator' };
}

function isScope(value: unknown): value is Scope {
  return value === 'viewer' || value === 'administrator';
}

/** True if two requests are of the same person with the same rights. */
export function isSame(a: Caller, b: Caller | undefined): boolean {
  return a.kind === b?.kind && a.id === b.id && a.scope === b.scope;
}

/** The challenge for a request that must log in; none for a program, which gets that of Basic. */
export function challengeFor(call: Call): Readonly<Record<string, string>> {
  return isOfPage(call) ? CHALLENGE : {};
}

function isOfPage(call: Call): boolean {
  return call.header(PAGE_HEADER) !== undefined;
}

/** Requests without the header are of a person: a link, or a program that has the cookie. */
function isByPerson(call: Call): boolean {
  return call.header(PAGE_HEADER) !== 'background';
}

/** The scheme of the page as the browser sees it: a proxy in front of the server may have removed TLS. */
function isSecure(call: Call): boolean {
  return call.isSecure || call.header('origin')?.startsWith('https:') === true;
}

function notLoggedIn(): Fault {
  return new Fault('unauthorized', 'there is no login, or its session has ended: log in', undefined, {
    headers: CHALLENGE
  });
}
