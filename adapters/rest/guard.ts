// Browser checks come before credentials, since a page of another origin must not learn whether they were right. A caller
// that the mount identifies, such as a person with a session, needs no other credentials; the rest is the same for all:
// operations that load code need a caller that may do so.

import type { AuditEntry, Awaitable, Broker } from '../../lib/index.ts';
import type { TrustedProxies } from '../upgrades/index.ts';
import { BrowserChecks, type BrowserSettings, hostName } from './browser-checks.ts';
import { net, once } from './builtins.ts';
import type { Call } from './call.ts';
import { type Basic, type Caller, CredentialCheck, type Credentials } from './credentials.ts';
import { Fault } from './fault.ts';
import { clientAddress } from './proxies.ts';

/** The part of the row of an operation that the guard reads. */
export interface Guarded {
  /**
   * Set if the operation loads code into the process or starts a process: it requires an application or an
   * administrator with every value of `credentials`.
   */
  readonly loadsCode?: true;
  /**
   * Set if the operation creates applications or users, or changes their rights. These could load code, so it has the
   * same requirement.
   */
  readonly grantsAccess?: true;
}

/**
 * Identifies callers by other means than HTTP Basic, such as the cookie of a session. Returns undefined if the caller
 * needs credentials. @throws Fault unauthorized
 */
export type Identify = (call: Call) => Awaitable<Caller | undefined>;

/** Settings of a mount with logins. */
export interface LoginSettings {
  readonly identify: Identify;
  /** False: viewers see no payloads of messages. */
  readonly viewerPayloads: boolean;
  /** Called with each entry of the audit log. */
  readonly audit: ((entry: AuditEntry) => void) | undefined;
}

/** Settings of a guard. */
interface GuardSettings extends BrowserSettings {
  readonly credentials: Credentials;
  readonly trustedProxies: TrustedProxies;
  /** Asked before credentials are. Default: none. */
  readonly identify?: Identify | undefined;
}

/** The interface that a guard protects. */
interface GuardedInterface {
  /** The name of the interface, for messages. */
  readonly name: string;
  /** A function of the app also gets bearer tokens, with the id ''. */
  readonly acceptsBearer?: boolean;
  /** The remedy for a caller without credentials, appended to the message. */
  readonly hint?: string;
}

/** A request that needs no credentials. */
const WITHOUT: Caller = { scope: 'administrator', kind: 'none', mayLoadCode: false };

const loopback = once(() => {
  const addresses = new (net().BlockList)();
  addresses.addSubnet('127.0.0.0', 8, 'ipv4');
  addresses.addAddress('::1', 'ipv6');
  return addresses;
});

/** Headers with which proxies mark forwarded requests. Some send only one of the last ones. */
const FORWARDED = [
  ...['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port'],
  ...['x-forwarded-server', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip', 'x-envoy-external-address']
];

/** Decides which requests of a REST interface are answered. */
export class Guard {
  readonly #settings: GuardSettings;
  readonly #browsers: BrowserChecks;
  readonly #hint: string | undefined;
  /** Undefined: credentials are not required, or the host app checks them. */
  readonly #credentials: CredentialCheck | undefined;
  /** The identities of the broker, for operations that load code. */
  readonly #identities: CredentialCheck;

  constructor(broker: Broker, settings: GuardSettings, { name, acceptsBearer = false, hint }: GuardedInterface) {
    const { credentials, trustedProxies } = settings;
    this.#settings = settings;
    if (!trustedProxies.isEmpty) trustedProxies.reportTo(broker);
    this.#hint = hint;
    this.#browsers = new BrowserChecks(settings);
    const made = (asked: ConstructorParameters<typeof CredentialCheck>[1]) =>
      new CredentialCheck(broker, asked, trustedProxies, { acceptsBearer, what: name });
    this.#identities = made(['applications', 'users']);
    if (credentials === 'remote') this.#credentials = this.#identities;
    else if (credentials !== 'none' && credentials !== 'host') this.#credentials = made(credentials);
  }

  /**
   * Check that a request is permitted.
   * @param isChange the request may change something
   * @returns the sender
   * @throws Fault unauthorized, tooManyLogins; notPermitted: a page of another origin has sent it
   */
  async admit(call: Call, isChange: boolean, row?: Guarded): Promise<Caller> {
    this.#browsers.check(call, isChange);
    const what = row?.loadsCode ? 'loads code' : row?.grantsAccess ? 'gives access to the broker' : undefined;
    const identified = await this.#settings.identify?.(call);
    if (identified !== undefined) return identified.mayLoadCode || what === undefined ? identified : refuseCode(what);
    const caller = await this.#callerOf(call, what);
    return what === undefined ? caller : this.#checkCode(call, caller, what);
  }

  /**
   * Run a call that checks another password. A wrong password counts as a failed login of the caller.
   * @param run throws if the password is wrong
   * @param isWrong tells whether an error of `run` means this
   * @throws Fault tooManyLogins; errors of `run`
   */
  limited<T extends object>(
    call: Call,
    caller: Caller,
    { run, isWrong }: { readonly run: () => Promise<T>; readonly isWrong: (error: unknown) => boolean }
  ): Promise<T> {
    return this.#identities.limited(call, caller, { run, isWrong });
  }

  /** Check a request that needs no credentials. @throws Fault notPermitted: a page of another origin has sent it */
  checkBrowser(call: Call, isChange: boolean): void {
    this.#browsers.check(call, isChange);
  }

  /**
   * Check a change that comes with credentials in its body instead of a header: a login.
   * @returns the sender
   * @throws Fault unauthorized, tooManyLogins, notPermitted
   */
  async login(call: Call, credentials: Basic): Promise<Caller> {
    this.#browsers.check(call, true);
    return (this.#credentials ?? this.#identities).login(call, credentials);
  }

  /** @param what the effect of the operation, if it requires an application or an administrator */
  async #callerOf(call: Call, what: string | undefined): Promise<Caller> {
    const { credentials } = this.#settings;
    if (credentials === 'host') {
      const { scope = 'administrator' } = call;
      if (scope !== 'administrator' && scope !== 'viewer')
        throw new Fault(
          'notPermitted',
          'the host app has given this request an unknown scope; use "administrator" or "viewer"'
        );
      return { scope, kind: 'host', mayLoadCode: call.scope === 'administrator' };
    }
    if (this.#credentials === undefined || (credentials === 'remote' && this.#isLocal(call))) return WITHOUT;
    try {
      return await this.#credentials.check(call);
    } catch (error) {
      throw this.#explained(call, error, what);
    }
  }

  /** The error, with a hint for callers without credentials. */
  #explained(call: Call, error: unknown, what: string | undefined): unknown {
    if (!(error instanceof Fault) || error.kind !== 'unauthorized') return error;
    if (call.header('authorization') !== undefined) return error;
    if (what !== undefined) return this.#needsIdentity(what);
    if (this.#settings.credentials === 'remote')
      return withHint(error, 'requests that are not from this machine to a loopback address need them');
    return this.#hint === undefined || typeof this.#settings.credentials === 'function'
      ? error
      : withHint(error, this.#hint);
  }

  /** @throws Fault unauthorized, tooManyLogins, notPermitted */
  async #checkCode(call: Call, caller: Caller, what: string): Promise<Caller> {
    if (caller.mayLoadCode) return caller;
    if (caller.kind === 'user') return refuseCode(what);
    try {
      const found = await this.#identities.check(call);
      if (found.mayLoadCode) return found;
    } catch (error) {
      if (!(error instanceof Fault) || error.kind !== 'unauthorized') throw error;
    }
    throw this.#needsIdentity(what);
  }

  /** The answer to a caller without the required identity; the hints of other operations would not help. */
  #needsIdentity(what: string): Fault {
    const { credentials } = this.#settings;
    const ofHost =
      typeof credentials === 'function'
        ? '; or the function of the option credentials answers "administrator"'
        : credentials === 'host'
          ? '; or the host app sets "embermqScope" of the request to "administrator"'
          : '';
    const only = [credentials].flat().length === 1 ? [credentials].flat()[0] : undefined;
    const who =
      only === 'users' ? 'administrator' : only === 'applications' ? 'application' : 'application or an administrator';
    const remedy =
      only === 'users'
        ? 'add a user with this role with embermq ctl users add'
        : 'add an application with --app ID:SECRET';
    return new Fault(
      'unauthorized',
      `this operation ${what}, so it needs HTTP Basic credentials of an ${who}: ` +
        `${remedy}, or in the app that runs the broker${ofHost}`
    );
  }

  #isLocal(call: Call): boolean {
    const address = clientAddress(call, this.#settings.trustedProxies);
    if (address === undefined || !isLoopback(address)) return false;
    if (FORWARDED.some((name) => call.header(name) !== undefined)) return false;
    const name = hostName(call.header('host') ?? '');
    return name !== undefined && (name === 'localhost' || isLoopback(name.replace(/^\[(.*)\]$/, '$1')));
  }
}

/** @throws Fault notPermitted */
function refuseCode(what: string): never {
  throw new Fault('notPermitted', `this operation ${what}: only an application or an administrator may use it`);
}

function withHint({ message, headers }: Fault, hint: string): Fault {
  return new Fault('unauthorized', `${message}: ${hint}`, undefined, headers);
}

function isLoopback(address: string): boolean {
  const version = net().isIP(address);
  return version !== 0 && loopback().check(address, version === 4 ? 'ipv4' : 'ipv6');
}
