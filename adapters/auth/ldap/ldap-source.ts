// Values of clients are escaped in filters and names. An empty password, or one with NUL, never reaches the server,
// which would take it for a login without authentication. For an unknown or ambiguous client there is a bind, or a
// comparison, as well, so that neither the answer nor the time shows which names exist; errors about an entry are
// reported only after the password was right. Result codes that say something about the server are failures, not
// refusals.

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Entry } from 'ldapts';
import type { AuthSource, PasswordCheck, SourceContext } from '../../../lib/adapter.ts';
import {
  type Approval,
  type AuthenticateRequest,
  type AuthorizeRequest,
  BrokerError,
  ReasonCode,
  type Refusal
} from '../../../lib/index.ts';
import { AnswerCache } from '../outgoing/answer-cache.ts';
import { Guard } from '../outgoing/guard.ts';
import { Slots } from '../outgoing/slots.ts';
import { credentialsOf } from '../outgoing/template.ts';
import { undecided } from '../outgoing/undecided.ts';
import { isUserName } from '../outgoing/user-name.ts';
import { type LdapConnection, type Ldapts, Refused } from './connection.ts';
import { ambiguity, isValue, shownName, textsOf, valuesOf } from './entries.ts';
import { attributesOf, EntryRights } from './entry-rights.ts';
import { filledDn, filledFilter, isSendable, type Values } from './names.ts';
import { type LdapOptions, type LdapSettings, readLdapOptions } from './options.ts';
import { ConnectionPool } from './pool.ts';
import { checkOfUserPassword } from './user-password.ts';

type Login = Approval<never> | Refusal | undefined;

const UNAVAILABLE: Refusal = {
  allow: false,
  reasonCode: ReasonCode.serverUnavailable,
  why: 'the directory has not answered'
};
const WRONG: Refusal = {
  allow: false,
  reasonCode: ReasonCode.badUserNameOrPassword,
  why: 'the password is wrong'
};
const REFUSED: Refusal = { allow: false, reasonCode: ReasonCode.notAuthorized };
const DISABLED: Refusal = { ...REFUSED, why: 'the entry is disabled (option enabledAttribute)' };

/** Result codes [RFC 4511 appendix A.1]. */
const NO_SUCH_OBJECT = 32;
const INVALID_DN_SYNTAX = 34;
const UNKNOWN_NAME = [NO_SUCH_OBJECT, INVALID_DN_SYNTAX];
/**
 * Result codes of a bind that concern the server and not the client: operationsError, protocolError,
 * authMethodNotSupported, strongerAuthRequired, adminLimitExceeded, confidentialityRequired, busy, unavailable, other.
 */
const NOT_ABOUT_CLIENT = [1, 2, 7, 8, 11, 13, 51, 52, 80];
/** Errors about a client whose password may be wrong: the answer must not reveal that an entry exists. */
const BEFORE_PASSWORD = ['LDAP_AMBIGUOUS', 'PASSWORD_HASH_INVALID'];
/** Requests entries without attributes [RFC 4511 section 4.5.1.8]. */
const NO_ATTRIBUTES = '1.1';
/** Maximum number of values of `userPassword` that are compared. */
const MAX_PASSWORDS = 8;

/**
 * A source that authenticates clients with an LDAP directory: it searches for the entry of a client and binds with its
 * password. With the option `acl` it also authorizes them.
 *
 * ```ts
 * createBroker({ auth: [ldap({ url: 'ldaps://ldap.example', baseDn: 'ou=people,dc=example,dc=com' })] });
 * ```
 *
 * Values of clients are always escaped. An empty password is never sent, because the server would treat it as a login
 * without authentication. Referrals to other servers are not followed.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function ldap(options: LdapOptions): AuthSource<never> {
  return new LdapSource(readLdapOptions(options));
}

class LdapSource implements AuthSource<never> {
  readonly name: string;
  /** The source limits its requests itself. */
  readonly timeoutMs = 0;
  readonly authorize: AuthSource<never>['authorize'];
  readonly #settings: LdapSettings;
  #directory: Directory | undefined = undefined;

  constructor(settings: LdapSettings) {
    this.name = settings.name;
    this.#settings = settings;
    this.authorize = settings.acl && ((request) => this.#authorize(request));
  }

  /**
   * Open the source. The broker starts even if the server does not answer.
   * @throws BrokerError PACKAGE_MISSING, LDAP_FILTER_INVALID
   */
  async open(context: SourceContext): Promise<void> {
    const ldapts = await loadLdapts();
    checkFilters(ldapts, this.#settings);
    this.#directory = new Directory(ldapts, this.#settings, context);
  }

  close(): void {
    this.#directory?.close();
    this.#directory = undefined;
  }

  /** Discard the cached answers. */
  reload(): void {
    this.#directory?.forget();
  }

  authenticate(request: AuthenticateRequest): Promise<Login> | Login {
    if (request.method !== undefined) return undefined; // enhanced authentication is left to other sources
    return this.#directory === undefined ? UNAVAILABLE : this.#directory.login(request);
  }

  #authorize(request: AuthorizeRequest): ReturnType<EntryRights['authorize']> {
    const rights = this.#directory?.rights;
    return rights === undefined ? undecided(request, 'deny') : rights.authorize(request);
  }
}

/** The result of a search for a client. */
type Found =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'ambiguous' }
  | {
      readonly kind: 'client';
      readonly dn: string;
      /** Undefined: not read. */
      readonly entry: Entry | undefined;
      /** True if the bind was successful; undefined: the password is to be compared. */
      readonly isRight: boolean | undefined;
    };

/** The source while it is open. */
class Directory {
  readonly #ldapts: Ldapts;
  readonly #settings: LdapSettings;
  readonly #context: SourceContext;
  readonly #guard: Guard;
  readonly #pool: ConnectionPool;
  readonly #answers: AnswerCache<{ readonly login: Login }> | undefined;
  /** The placeholders that occur: the answer about a login depends only on them and the password. */
  readonly #letters: readonly string[];
  /** The attributes to read for a login; empty: the entry is not read. */
  readonly #attributes: readonly string[];
  readonly #closing = new AbortController();
  /** Undefined: the source does not authorize. */
  readonly rights: EntryRights | undefined;

  constructor(ldapts: Ldapts, settings: LdapSettings, context: SourceContext) {
    const { url, maxConcurrent, maxQueued, cacheMs, cacheSize, userDn, filter, superuserFilter, acl } = settings;
    this.#ldapts = ldapts;
    this.#settings = settings;
    this.#context = context;
    this.#guard = new Guard(url.host, settings, context, new Slots(maxConcurrent, maxQueued, 'requests'));
    this.#pool = new ConnectionPool(ldapts, settings, context.clock);
    this.#answers = cacheMs === 0 ? undefined : new AnswerCache(context.clock, cacheSize);
    const templates = [userDn ?? filter, superuserFilter].filter((template) => template !== undefined);
    this.#letters = [...new Set(templates.flatMap(({ letters }) => letters))].filter((letter) => letter !== 'd');
    const { method, passwordAttribute, enabledAttribute, usernameAttribute, superuserAttribute } = settings;
    this.#attributes = [
      ...(method === 'compare' ? [passwordAttribute] : []),
      ...[enabledAttribute, usernameAttribute, superuserAttribute].filter((name) => name !== undefined)
    ];
    setMaxListeners(0, this.#closing.signal); // each search in progress has a listener
    this.rights =
      acl &&
      new EntryRights(acl, settings, context.clock, this.#guard, async (values) => {
        if (!this.#isSendable(values)) return [];
        return this.#ask(this.#closing.signal, (ending) => this.#read(values, attributesOf(acl, settings), ending));
      });
  }

  close(): void {
    this.#guard.close();
    this.#closing.abort(new BrokerError('SOURCE_CLOSED', `the source ${this.#settings.name} has been closed`));
    this.#pool.close();
  }

  forget(): void {
    this.#answers?.clear();
    this.rights?.forget();
  }

  /** Decide about a CONNECT. Synchronous if the answer is cached. */
  login(request: AuthenticateRequest): Promise<Login> | Login {
    const { client, username, password } = request;
    const values: Record<string, string> = { c: client.clientId, u: username ?? '' };
    // a server could take the part before the NUL for the whole name
    if (this.#letters.some((letter) => values[letter] === '' || values[letter].includes('\0'))) return undefined;
    const credentials = credentialsOf({ ...values, P: password }, [...this.#letters, 'u', 'P']);
    const key = this.#answers?.keyOf(credentials) ?? '';
    const known = this.#answers?.get(key);
    return known === undefined ? this.#decide(values, request, key) : known.login;
  }

  async #decide(values: Values, request: AuthenticateRequest, key: string): Promise<Login> {
    try {
      if (!this.#isSendable(values)) return undefined;
      const found = await this.#ask(request.signal, (ending) => this.#find(values, request.password, ending));
      const login = found === undefined ? 'failed' : await this.#loginOf(found, values, request);
      if (login === 'failed') return this.#settings.onError === 'ignore' ? undefined : UNAVAILABLE;
      this.#answers?.set(key, { login }, this.#settings.cacheMs);
      return login;
    } catch (error) {
      if (request.signal.aborted) return REFUSED; // the connection has ended
      if ((error as BrokerError).code === 'PASSWORD_QUEUE_FULL')
        return { allow: false, reasonCode: ReasonCode.serverBusy, reasonString: (error as BrokerError).message };
      this.#guard.report(error);
      const { code, message: why } = error as BrokerError;
      return { ...(BEFORE_PASSWORD.includes(code) ? WRONG : REFUSED), why };
    }
  }

  /** Check whether a request about a client is short enough. If not, the directory does not know the client. */
  #isSendable(values: Values): boolean {
    const { userDn, filter } = this.#settings;
    const isName = userDn !== undefined;
    return isSendable(isName ? filledDn(this.#ldapts, userDn, values) : filledFilter(this.#ldapts, filter, values));
  }

  /**
   * Send a request to the server. Failures are reported.
   * @returns undefined if it has failed
   */
  #ask<T extends object>(signal: AbortSignal, task: (ending: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const isCausedByClient = (error: unknown) => error instanceof Refused && !NOT_ABOUT_CLIENT.includes(error.result);
    return this.#guard.run(signal, task, isCausedByClient);
  }

  async #loginOf(found: Found, values: Values, request: AuthenticateRequest): Promise<Login | 'failed'> {
    if (found.kind !== 'client') {
      if (this.#settings.method === 'compare')
        await this.#context.verifyPassword('unknown', request, async () => false);
      if (found.kind === 'ambiguous') throw ambiguity(values.u);
      return undefined;
    }
    const isRight = found.isRight ?? (await this.#compare(found.entry, request));
    return isRight ? this.#admit(found.dn, found.entry, values, request.signal) : WRONG;
  }

  /** Find the entry of a client, and bind with its password. */
  async #find(values: Values, password: Buffer | undefined, signal: AbortSignal): Promise<Found> {
    const { userDn, method, baseDn } = this.#settings;
    const name = userDn && filledDn(this.#ldapts, userDn, values);
    const isRead = name === undefined || this.#attributes.length > 0;
    const entries = isRead ? await this.#read(values, this.#attributes, signal) : [];
    const isAmbiguous = entries.length > 1;
    const entry = isAmbiguous ? undefined : entries.at(0);
    const dn = isRead ? entry?.dn : name;
    const nobody = { kind: isAmbiguous ? 'ambiguous' : 'nobody' } as const;
    if (method === 'compare') return dn === undefined ? nobody : { kind: 'client', dn, entry, isRight: undefined };
    const text = passwordText(password);
    // for an unknown or ambiguous client there is a bind as well, so that the time does not reveal it
    const isRight = text !== undefined && (await this.#bind(dn ?? name ?? `cn=unknown,${baseDn}`, text, signal));
    return dn === undefined ? nobody : { kind: 'client', dn, entry, isRight };
  }

  /** Read the entries of a client: at most two. */
  async #read(values: Values, attributes: readonly string[], signal: AbortSignal): Promise<Entry[]> {
    const { userDn, filter, scope, baseDn = '', passwordAttribute } = this.#settings;
    const name = userDn && filledDn(this.#ldapts, userDn, values);
    const search = {
      filter: name === undefined ? filledFilter(this.#ldapts, filter, values) : '(objectClass=*)',
      scope: name === undefined ? scope : ('base' as const),
      sizeLimit: 2,
      attributes: attributes.length === 0 ? [NO_ATTRIBUTES] : [...attributes],
      explicitBufferAttributes: [passwordAttribute]
    };
    const find = (connection: LdapConnection) => connection.search(name ?? baseDn, search, signal);
    try {
      return await this.#pool.use('search', signal, find);
    } catch (error) {
      const isUnknown = name !== undefined && error instanceof Refused && UNKNOWN_NAME.includes(error.result);
      if (isUnknown) return [];
      throw error;
    }
  }

  /** Check whether a bind is successful. */
  async #bind(dn: string, password: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#pool.use('bind', signal, (connection) => connection.bind(dn, password, signal));
      return true;
    } catch (error) {
      if (error instanceof Refused && !NOT_ABOUT_CLIENT.includes(error.result)) return false;
      throw error;
    }
  }

  /** Compare the password with those of the entry. @throws BrokerError PASSWORD_HASH_INVALID */
  async #compare(entry: Entry | undefined, request: AuthenticateRequest): Promise<boolean> {
    const stored = valuesOf(entry, this.#settings.passwordAttribute).slice(0, MAX_PASSWORDS);
    if (passwordText(request.password) === undefined) return false;
    let fault: unknown;
    for (const value of stored) {
      let check: PasswordCheck;
      try {
        check = checkOfUserPassword(Buffer.from(value as string));
      } catch (error) {
        fault ??= error;
        continue;
      }
      const key = createHash('sha256').update(value).digest('base64');
      if (await this.#context.verifyPassword(key, request, check)) return true;
    }
    if (fault !== undefined) throw fault;
    return false;
  }

  /** Decide about a client with the right password. */
  async #admit(dn: string, entry: Entry | undefined, values: Values, signal: AbortSignal): Promise<Login | 'failed'> {
    const { enabledAttribute, usernameAttribute, superuserAttribute } = this.#settings;
    if (isValue(entry, enabledAttribute, 'FALSE')) return DISABLED;
    const isRanked = isValue(entry, superuserAttribute, 'TRUE');
    const isSuperuser = isRanked || (await this.#isSuperuser(dn, values, signal));
    if (isSuperuser === undefined) return 'failed';
    const named = usernameAttribute === undefined ? {} : { username: nameIn(entry, usernameAttribute, values.u) };
    const approval: Approval<never> = { allow: true, isSuperuser, ...named };
    const hasRights = isSuperuser || (await this.#findsRights(entry, values, named.username));
    return hasRights === undefined ? 'failed' : approval;
  }

  /**
   * Check that the entry of a client will be found and can be read when the broker asks for its rights.
   * @param username the name that replaces that of the client
   * @returns undefined if the server has failed
   * @throws BrokerError LDAP_RIGHTS_UNREADABLE
   */
  async #findsRights(entry: Entry | undefined, values: Values, username = values.u): Promise<true | undefined> {
    if (this.rights === undefined || (entry !== undefined && username === values.u)) return true;
    const entries = await this.rights.entriesOf({ ...values, u: username });
    if (entries === undefined) return undefined;
    if (entries.length === 1 && (entry === undefined || entries[0].dn === entry.dn)) return true;
    const text =
      `the option acl needs to find the entry of the user name ${shownName(username)} by ` +
      `${this.#settings.userDn === undefined ? 'filter' : 'userDn'}, and the right to read it; the client is refused`;
    throw new BrokerError('LDAP_RIGHTS_UNREADABLE', text);
  }

  /**
   * Check whether the filter for superusers finds a client.
   * @returns undefined if the server has failed
   */
  async #isSuperuser(dn: string, values: Values, outer: AbortSignal): Promise<boolean | undefined> {
    const { superuserFilter, superuserBaseDn, baseDn } = this.#settings;
    if (superuserFilter === undefined) return false;
    const filter = filledFilter(this.#ldapts, superuserFilter, { ...values, d: dn });
    if (!isSendable(filter)) return false;
    const found = await this.#ask(outer, (signal) =>
      this.#pool.use('search', signal, (connection) =>
        connection.search(
          superuserBaseDn ?? (baseDn as string),
          { filter, scope: 'sub', sizeLimit: 1, attributes: [NO_ATTRIBUTES] },
          signal
        )
      )
    );
    return found && found.length > 0;
  }
}

/**
 * A password that can be sent. An empty one would be a login without authentication, even if a server truncates it at a
 * NUL.
 */
function passwordText(password: Buffer | undefined): string | undefined {
  const isGood = password !== undefined && password.length > 0 && !password.includes(0) && isUtf8(password);
  return isGood ? password.toString() : undefined;
}

/**
 * The user name in an entry: the one given by the client, in the spelling of the directory, or the first one.
 * @throws BrokerError LDAP_NAME_INVALID
 */
function nameIn(entry: Entry | undefined, attribute: string, given: string): string {
  const names = textsOf(entry, attribute);
  const name = names.find((one) => one.toLowerCase() === given.toLowerCase()) ?? names[0];
  if (isUserName(name)) return name;
  throw new BrokerError('LDAP_NAME_INVALID', `the entry has no attribute ${attribute} with a user name`);
}

/** Check the filters with a value in place of each placeholder. @throws BrokerError LDAP_FILTER_INVALID */
function checkFilters(ldapts: Ldapts, { name, userDn, filter, superuserFilter }: LdapSettings): void {
  const filters = { filter: userDn === undefined ? filter : undefined, superuserFilter };
  for (const [option, template] of Object.entries(filters)) {
    if (template === undefined) continue;
    try {
      ldapts.FilterParser.parseString(filledFilter(ldapts, template, { u: 'u', c: 'c', d: 'd' }));
    } catch (cause) {
      const text = `the option ${option} of the source ${name} is not a valid filter: ${(cause as Error).message}`;
      throw new BrokerError('LDAP_FILTER_INVALID', text, { cause });
    }
  }
}

async function loadLdapts(): Promise<Ldapts> {
  try {
    return await import('ldapts');
  } catch (cause) {
    const text = 'authentication against a directory needs the package ldapts: npm install ldapts@8';
    throw new BrokerError('PACKAGE_MISSING', text, { cause });
  }
}
