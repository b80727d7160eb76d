// The source asks queries that the app or `serve` provides, and cannot end one: a query counts as in progress until
// it settles, also if the client has left, so that a database that hangs is not asked without limit. A failure is
// refused, or left to the next source with `onError: 'ignore'`. Answers are kept by everything that they depend on,
// the password included, and not at all if the rank could not be found out.

import { setMaxListeners } from 'node:events';
import { type AuthSource, decideByRules, type SourceContext } from '../../../lib/adapter.ts';
import {
  type AccessRule,
  type Approval,
  type AuthenticateRequest,
  type AuthorizeRequest,
  BrokerError,
  type ClientInfo,
  ReasonCode,
  type Refusal
} from '../../../lib/index.ts';
import { withDeadline } from '../../outgoing/index.ts';
import { AnswerCache } from '../outgoing/answer-cache.ts';
import { Guard } from '../outgoing/guard.ts';
import { Slots } from '../outgoing/slots.ts';
import { sourceTimeout } from '../outgoing/source-timeout.ts';
import { undecided } from '../outgoing/undecided.ts';
import { DatabaseFailure } from './database-failure.ts';
import { type DatabaseRow, type Facts, type Letter, type Lookup, MAX_RULES } from './lookup.ts';
import type { DatabaseSettings } from './options.ts';
import { PasswordVerifier } from './password-verifier.ts';
import { isTrue } from './values.ts';

type Login = true | Approval<never> | Refusal | undefined;

const UNAVAILABLE: Refusal = {
  allow: false,
  reasonCode: ReasonCode.serverUnavailable,
  why: 'the database has not answered'
};
const WRONG: Refusal = {
  allow: false,
  reasonCode: ReasonCode.badUserNameOrPassword,
  why: 'the password is wrong'
};

/** The queries of a kind of database. */
interface Queries {
  readonly authenticate: Lookup | undefined;
  readonly superuser: Lookup | undefined;
  readonly acl: Lookup | undefined;
  /** Check whether a row of `authenticate` belongs to a client, and not to one with a similar name. */
  readonly isRowOf: (row: DatabaseRow, facts: Facts) => boolean;
  /** The access rules in the rows of `acl`. Iterating throws an error for an invalid row. */
  readonly rulesOf: (rows: readonly DatabaseRow[]) => Iterable<AccessRule>;
}

/** A source that queries a database. */
export class DatabaseSource implements AuthSource<never> {
  readonly name: string;
  /** The source limits its queries itself, and a password check may be queued for longer than `hookTimeout`. */
  readonly timeoutMs = 0;
  readonly authenticate: AuthSource<never>['authenticate'];
  readonly authorize: AuthSource<never>['authorize'];
  readonly #settings: DatabaseSettings;
  readonly #queries: Queries;
  #opened: Opened | undefined = undefined;

  constructor(settings: DatabaseSettings, queries: Queries) {
    this.name = settings.name;
    this.#settings = settings;
    this.#queries = queries;
    this.authenticate = queries.authenticate && ((request) => this.#login(request));
    this.authorize = queries.acl && ((request) => this.#opened?.authorize(request) ?? undecided(request, 'deny'));
  }

  async open(context: SourceContext): Promise<void> {
    const opened = new Opened(this.#settings, this.#queries, context);
    await opened.open();
    this.#opened = opened;
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.close();
  }

  /** Discard the cached answers. */
  reload(): void {
    this.#opened?.forget();
  }

  #login(request: AuthenticateRequest): Promise<Login> | Login {
    if (request.method !== undefined) return undefined; // enhanced authentication is left to other sources
    return this.#opened === undefined ? UNAVAILABLE : this.#opened.login(request);
  }
}

/** The source while it is open. */
class Opened {
  readonly #settings: DatabaseSettings;
  readonly #queries: Queries;
  readonly #context: SourceContext;
  /** The name of the database in errors. */
  readonly #what: string;
  readonly #server: Guard;
  readonly #passwords: PasswordVerifier;
  readonly #answers: AnswerCache<{ readonly login: Login }> | undefined;
  /** The facts on which the answer about a login depends. */
  readonly #letters: readonly Letter[];
  readonly #closing = new AbortController();
  /** Queries in progress. */
  readonly #asked = new Set<Promise<unknown>>();

  constructor(settings: DatabaseSettings, queries: Queries, context: SourceContext) {
    const { name, maxConcurrent, maxQueued, cacheMs, cacheSize, passwordHash, bcrypt } = settings;
    this.#settings = settings;
    this.#queries = queries;
    this.#context = context;
    this.#what = `the database of the source ${name}`;
    this.#server = new Guard(this.#what, settings, context, new Slots(maxConcurrent, maxQueued, 'queries'));
    this.#passwords = new PasswordVerifier(passwordHash, bcrypt, context, (error) => this.#server.report(error));
    this.#answers = cacheMs === 0 ? undefined : new AnswerCache(context.clock, cacheSize);
    const { authenticate, superuser } = queries;
    this.#letters = [...new Set<Letter>(['u', 'c', ...(authenticate?.letters ?? []), ...(superuser?.letters ?? [])])];
    setMaxListeners(0, this.#closing.signal); // each query in progress has a listener
  }

  open(): Promise<void> {
    return this.#passwords.open();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#closing.abort(new BrokerError('SOURCE_CLOSED', `the source ${this.#settings.name} has been closed`));
    await Promise.all(this.#asked);
    await this.#passwords.close();
  }

  forget(): void {
    this.#answers?.clear();
  }

  /** Decide about a CONNECT. Synchronous if the answer is cached. */
  login(request: AuthenticateRequest): Promise<Login> | Login {
    const facts = { ...factsOf(request.client), u: request.username };
    if (facts.u === undefined && this.#queries.authenticate?.letters.includes('u')) return undefined;
    const key = this.#answers?.keyOf(this.#credentialsOf(facts, request.password)) ?? '';
    const known = this.#answers?.get(key);
    return known === undefined ? this.#askLogin(facts, request, key) : known.login;
  }

  async authorize(request: AuthorizeRequest): Promise<boolean | undefined> {
    const { client, action, topic, signal } = request;
    const { onError } = this.#settings;
    const rows = await this.#find(this.#queries.acl as Lookup, factsOf(client), signal);
    if (rows === undefined) return undecided(request, onError);
    try {
      return decideByRules(limited(this.#queries.rulesOf(rows)), client, action, topic, 'rows');
    } catch (error) {
      this.#server.report(error);
      return undecided(request, onError);
    }
  }

  async #askLogin(facts: Facts, request: AuthenticateRequest, key: string): Promise<Login> {
    const { authenticate, isRowOf } = this.#queries;
    const rows = await this.#find(authenticate as Lookup, facts, request.signal);
    if (rows === undefined) return this.#unavailable;
    const row = rows.find((one) => isRowOf(one, facts));
    let isRight: boolean | Refusal;
    try {
      isRight = await this.#passwords.verify(row, request);
    } catch (error) {
      if (request.signal.aborted) return WRONG; // the connection has ended
      this.#server.report(error);
      return this.#unavailable;
    }
    if (this.#closing.signal.aborted) return this.#unavailable;
    if (typeof isRight === 'object') return isRight;
    if (row === undefined || !isRight) return this.#keep(key, row === undefined ? undefined : WRONG);
    const isSuperuser = await this.#isSuperuser(row, facts, request.signal);
    if (this.#closing.signal.aborted) return this.#unavailable;
    // without an answer about the superuser rank, the client is not cached
    if (isSuperuser === undefined) return true;
    return this.#keep(key, isSuperuser ? { allow: true, isSuperuser } : true);
  }

  async #isSuperuser(row: DatabaseRow, facts: Facts, signal: AbortSignal): Promise<boolean | undefined> {
    const { superuser } = this.#queries;
    const rows = superuser === undefined ? [row] : await this.#find(superuser, facts, signal);
    try {
      return rows === undefined ? undefined : isTrue(rows[0]?.is_superuser, 'is_superuser');
    } catch (error) {
      this.#server.report(error);
      return undefined;
    }
  }

  /** @returns undefined if the database has failed */
  async #find(lookup: Lookup, facts: Facts, signal: AbortSignal): Promise<readonly DatabaseRow[] | undefined> {
    const query = async (): Promise<readonly DatabaseRow[]> => {
      try {
        return await lookup.find(facts);
      } catch (error) {
        throw new DatabaseFailure(error);
      }
    };
    // a query cannot be cancelled, so it counts as in progress until it settles, even if the client has disconnected
    const { timeoutMs: ms } = this.#settings;
    const late = () => sourceTimeout(this.#what, ms);
    const outlast = () => withDeadline({ clock: this.#context.clock, ms, late, outers: [this.#closing.signal] }, query);
    const isCausedByClient = (error: unknown) => error instanceof DatabaseFailure && error.isCausedByClient;
    const asked = this.#server.run(signal, outlast, isCausedByClient);
    this.#asked.add(asked);
    try {
      return await asked;
    } finally {
      this.#asked.delete(asked);
    }
  }

  #keep(key: string, login: Login): Login {
    this.#answers?.set(key, { login }, this.#settings.cacheMs);
    return login;
  }

  get #unavailable(): Login {
    return this.#settings.onError === 'ignore' ? undefined : UNAVAILABLE;
  }

  /** The values on which the answer depends, as an unambiguous string. */
  #credentialsOf(facts: Facts, password: Buffer | undefined): string {
    return JSON.stringify([password?.toString('latin1'), ...this.#letters.map((letter) => facts[letter])]);
  }
}

/**
 * Pass on access rules.
 * @throws Error if there are too many
 */
function* limited(rules: Iterable<AccessRule>): Iterable<AccessRule> {
  let number = 0;
  for (const rule of rules) {
    if (++number > MAX_RULES) throw new Error(`the answer has more than ${MAX_RULES} access rules`);
    yield rule;
  }
}

function factsOf({ clientId, username, transportInfo }: ClientInfo): Facts {
  const { remoteAddress, certificate } = transportInfo;
  return { c: clientId, u: username, a: remoteAddress, C: certificate?.commonName, d: certificate?.subject };
}
