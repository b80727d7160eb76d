// Credentials that were right are remembered for a few seconds, by a digest with a secret of this process, and not
// after any change of identities (`changes`). Equal checks that are running are one. Wrong ones count against the
// limit of failed logins of the address, which all interfaces of a broker share, or each would allow as many guesses.
// An unknown name is checked as a known one is, since the time must not tell which names exist. Operations that load
// code need more than right credentials (`mayLoadCode`).

import { LRUCache } from 'lru-cache';
import { type LoginAttempt, LoginLimit, loginSourceOf } from '../../lib/adapter.ts';
import { type Awaitable, type Broker, BrokerError, StateError } from '../../lib/index.ts';
import type { TrustedProxies } from '../upgrades/index.ts';
import { crypto, once } from './builtins.ts';
import type { Call, Scope } from './call.ts';
import { Fault } from './fault.ts';
import { clientAddress } from './proxies.ts';

/** Identities of the broker: its applications, which may do everything, and its management users, each with a scope. */
export type Identities = 'applications' | 'users';

/** The sender of a request. */
export interface Caller {
  readonly scope: Scope;
  /** The kind of the accepted identity, or the option `credentials` (a function, `host`, `none`). */
  readonly kind: 'application' | 'user' | 'function' | 'host' | 'none';
  /** The id in the credentials. */
  readonly id?: string;
  /**
   * True for an application or an administrator of the broker, or if the answer of the host app has the scope
   * `administrator`.
   */
  readonly mayLoadCode: boolean;
}

/**
 * Checks the id and the secret of HTTP Basic credentials, and returns true, a scope, or false. `true` permits
 * everything except loading code, such as plugins; `administrator` includes this.
 */
export type CredentialFunction = (
  id: string,
  secret: string,
  facts: {
    /** The IP address of the caller; undefined: it is not known. */
    readonly remoteAddress: string | undefined;
  }
) => Awaitable<boolean | Scope>;

/**
 * The accepted credentials:
 * - `applications`, `users`, or a list of both: the applications and the management users of the broker
 * - `remote`: requests from this machine need no credentials, others need those of an application or a management user.
 *   A request is from this machine if its address and its `Host` header are those of the loopback interface, and no
 *   proxy has forwarded it
 * - a function that checks the credentials
 * - `host`: the host app decides and must check credentials itself. It may set `embermqScope` of the request of
 *   node:http, or `scope` in the facts of the Fetch API, to `viewer`, or to `administrator`
 * - `none`: everyone who can reach the server; the `Host` header must name this machine, see the option `hosts`
 *
 * With each of them, operations that load code or start a process (plugins, functions in JavaScript), and those that
 * make applications or users or change what they may do, need an application, an administrator, or a host app whose
 * answer names the scope `administrator`.
 */
export type Credentials = Identities | readonly Identities[] | CredentialFunction | 'remote' | 'host' | 'none';

/** Time for which valid credentials are not checked again. */
const REMEMBERED_MS = 5_000;
const MAX_REMEMBERED = 1_000;

/** The result for valid credentials. */
interface Login {
  readonly caller: Caller;
  /** Wall-clock time at which the credentials expire; undefined: never. */
  readonly expiresAt?: number | undefined;
}

interface Remembered {
  readonly caller: Caller;
  readonly untilMs: number;
  /** See `#changes`. */
  readonly changes: number;
}

/** The id and the secret of a caller. */
export interface Basic {
  readonly id: string;
  readonly secret: string;
}

/** Checks the credentials of requests. */
export class CredentialCheck {
  readonly #broker: Broker;
  readonly #credentials: readonly Identities[] | CredentialFunction;
  readonly #proxies: TrustedProxies;
  /** The key of the digests of headers. */
  readonly #secret = once(() => crypto().randomBytes(32));
  /** Keyed by the digest of the address and the header, so that neither secrets nor comparison times leak. */
  readonly #right = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED });
  /** The last header with valid credentials, because one client often sends many requests. */
  #last: { readonly header: string; readonly source: string; readonly login: Remembered } | undefined = undefined;
  /** Running checks, by the same digest. */
  readonly #running = new Map<string, Promise<Caller>>();
  readonly #limit: LoginLimit;
  readonly #acceptsBearer: boolean;
  readonly #what: string;
  #hasWarned = false;

  /**
   * @param options `acceptsBearer`: a function of the app also gets bearer tokens, with the id ''; `what` names the
   * protected interface, for messages
   */
  constructor(
    broker: Broker,
    credentials: Identities | readonly Identities[] | CredentialFunction,
    proxies: TrustedProxies,
    { acceptsBearer = false, what }: { readonly acceptsBearer?: boolean; readonly what: string }
  ) {
    this.#broker = broker;
    this.#what = what;
    this.#acceptsBearer = acceptsBearer && typeof credentials === 'function';
    const isOne = credentials === 'applications' || credentials === 'users';
    this.#credentials = isOne ? [credentials] : credentials;
    this.#proxies = proxies;
    // the ids of an app are independent of those of the broker
    this.#limit = typeof credentials === 'function' ? new LoginLimit(broker.clock) : limitOf(broker);
  }

  /**
   * Check the credentials of a call. Synchronous for recently validated credentials.
   * @throws Fault unauthorized, tooManyLogins
   */
  check(call: Call): Caller | Promise<Caller> {
    const header = call.header('authorization');
    // a request without credentials is not a guess
    if (header === undefined) throw this.#unauthorized();
    const address = clientAddress(call, this.#proxies);
    const source = loginSourceOf(address);
    const last = this.#last;
    if (last?.source === source && isSame(last.header, header) && this.#counts(last.login)) return last.login.caller;
    const pair = basicCredentials(header) ?? (this.#acceptsBearer ? bearerToken(header) : undefined);
    if (pair === undefined) throw this.#unauthorized();
    const key = this.#keyOf(source, header);
    const known = this.#right.get(key);
    if (known !== undefined && this.#counts(known)) {
      this.#last = { header, source, login: known };
      return known.caller;
    }
    return this.#checkOnce(key, pair, address);
  }

  /**
   * Check credentials that are in the body of a call. Failures count as those of a header.
   * @throws Fault unauthorized, tooManyLogins
   */
  login(call: Call, pair: Basic): Promise<Caller> {
    const address = clientAddress(call, this.#proxies);
    return this.#checkOnce(this.#keyOf(loginSourceOf(address), JSON.stringify([pair.id, pair.secret])), pair, address);
  }

  /** Without the address, guesses from other addresses would not be limited while the credentials are in use. */
  #keyOf(source: string, text: string): string {
    return crypto().createHmac('sha256', this.#secret()).update(`${source} ${text}`).digest('base64');
  }

  #checkOnce(key: string, pair: Basic, address: string | undefined): Promise<Caller> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const checked = this.#checkPair(key, pair, address).finally(() => this.#running.delete(key));
    this.#running.set(key, checked);
    return checked;
  }

  /**
   * Run a call that checks another password. A wrong password counts as a failed login of the address.
   * @param run throws if the password is wrong
   * @param isWrong tells whether an error of `run` means this
   * @throws Fault tooManyLogins; errors of `run`
   */
  async limited<T extends object>(
    call: Call,
    { kind, id = '' }: Caller,
    { run, isWrong }: { readonly run: () => Promise<T>; readonly isWrong: (error: unknown) => boolean }
  ): Promise<T> {
    const attempt = { source: loginSourceOf(clientAddress(call, this.#proxies)), ids: [`${kind}:${id}`] };
    let wrong: unknown;
    const answer = await this.#limited(attempt, async () => {
      try {
        return await run();
      } catch (error) {
        if (!isWrong(error)) throw error;
        wrong = error;
        return undefined;
      }
    });
    if (answer === undefined) throw wrong;
    return answer;
  }

  /** Check whether cached credentials are still valid. */
  #counts({ changes, untilMs }: Remembered): boolean {
    return changes === this.#changes && untilMs > this.#broker.clock.monotonic();
  }

  /** A counter of the changes of the identities of the broker. Every change invalidates all cached credentials. */
  get #changes(): number {
    return this.#broker.applications.changes + this.#broker.users.changes;
  }

  async #checkPair(key: string, pair: Basic, address: string | undefined): Promise<Caller> {
    const { clock } = this.#broker;
    const changes = this.#changes;
    const attempt = { source: loginSourceOf(address), ids: [pair.id], secret: pair.secret };
    const login = await this.#limited(attempt, () => this.#login(pair, address));
    if (login === undefined) {
      this.#right.delete(key);
      throw this.#hasIdentities ? wrongCredentials(pair) : this.#unauthorized();
    }
    const { caller, expiresAt = Infinity } = login;
    const leftMs = Math.min(REMEMBERED_MS, expiresAt - clock.now());
    this.#right.set(key, { caller, untilMs: clock.monotonic() + leftMs, changes });
    return caller;
  }

  /**
   * @param run resolves to undefined if the login has failed
   * @throws Fault tooManyLogins; errors of `run`
   */
  async #limited<T>(attempt: LoginAttempt, run: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      return await this.#limit.check(attempt, run, (login) => login !== undefined);
    } catch (error) {
      if (error instanceof BrokerError && error.code === 'LOGINS_LIMITED')
        throw new Fault('tooManyLogins', error.message);
      throw error;
    }
  }

  async #login({ id, secret }: Basic, remoteAddress: string | undefined): Promise<Login | undefined> {
    const { applications, users } = this.#broker;
    const asked = this.#credentials;
    if (typeof asked === 'function') {
      const answer = await asked(id, secret, { remoteAddress });
      const scope = answer === true ? 'administrator' : answer;
      const isScope = scope === 'administrator' || scope === 'viewer';
      const mayLoadCode = answer === 'administrator';
      return isScope ? { caller: { scope, kind: 'function', id, mayLoadCode } } : undefined;
    }
    // an unknown name is checked once, like a known one: the time must not reveal which names exist
    const isBoth = asked.length > 1;
    if (asked.includes('applications') && !(isBoth && applications.get(id) === undefined)) {
      const application = await applications.verify(id, secret, remoteAddress);
      if (application !== undefined) {
        const caller: Caller = { scope: 'administrator', kind: 'application', id, mayLoadCode: true };
        return { caller, expiresAt: application.expiresAt };
      }
      if (users.get(id) === undefined) return undefined;
    }
    if (!asked.includes('users')) return undefined;
    const user = await users.verify(id, secret, remoteAddress);
    return user && { caller: { scope: user.role, kind: 'user', id, mayLoadCode: user.role === 'administrator' } };
  }

  /** True if the broker has identities that can log in. */
  get #hasIdentities(): boolean {
    const { applications, users } = this.#broker;
    const asked = this.#credentials;
    if (typeof asked === 'function') return true;
    return (asked.includes('applications') && applications.size > 0) || (asked.includes('users') && users.size > 0);
  }

  /** The credentials are missing or malformed. */
  #unauthorized(): Fault {
    const asked = this.#credentials;
    if (this.#acceptsBearer) return new Fault('unauthorized', 'credentials are needed: HTTP Basic, or a bearer token');
    if (typeof asked === 'function') return unauthorized('are needed');
    const names = asked.includes('users')
      ? asked.includes('applications')
        ? 'application or user'
        : 'user'
      : 'application';
    if (this.#hasIdentities) return unauthorized(`of an ${names} are needed`.replace('an user', 'a user'));
    const [remedy, add] = asked.includes('applications')
      ? ['embermq serve --app ID:SECRET, or broker.applications.create() in an app', 'embermq serve --app ID:SECRET']
      : ['broker.users.create() in an app', 'POST /users of an interface that accepts applications'];
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      const message = `the ${this.#what} interface cannot be used: the broker has no ${names}. Add one: ${remedy}`;
      this.#broker.failed(new StateError('NO_CREDENTIALS', message), `answering a ${this.#what} request`);
    }
    const none = `but the broker has none: add one with ${add}, or in the app that runs the broker`;
    return unauthorized(`of an ${names} are needed, ${none}`.replace('an user', 'a user'));
  }
}

/**
 * The limits of failed logins with identities of brokers. All interfaces of a broker share one, because separate limits
 * would allow more guesses.
 */
const LIMITS = new WeakMap<Broker, LoginLimit>();

function limitOf(broker: Broker): LoginLimit {
  const limit = LIMITS.get(broker) ?? new LoginLimit(broker.clock);
  LIMITS.set(broker, limit);
  return limit;
}

function wrongCredentials({ id }: Basic): Fault {
  return new Fault('unauthorized', id === '' ? 'the credentials are wrong' : 'the id or the secret is wrong');
}

function unauthorized(what: string): Fault {
  return new Fault('unauthorized', `HTTP Basic credentials ${what}`);
}

/** Compare in a time that depends only on the lengths. */
function isSame(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
}

/** Read HTTP Basic credentials (RFC 7617). @returns undefined if the header has another form */
export function basicCredentials(header: string): Basic | undefined {
  const [, encoded] = /^basic +([a-z0-9+/=_-]+) *$/i.exec(header) ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : { id: text.slice(0, colon), secret: text.slice(colon + 1) };
}

/** Read a bearer token (RFC 6750). @returns undefined if the header has another form */
function bearerToken(header: string): Basic | undefined {
  const [, secret] = /^bearer +(\S+) *$/i.exec(header) ?? [];
  return secret === undefined ? undefined : { id: '', secret };
}
