import { BlockList, isIP } from 'node:net';
import type { Broker } from '../../lib/index.ts';
import {
  BrowserChecks,
  type Call,
  type Caller,
  CredentialCheck,
  clientAddress,
  Fault,
  hostName
} from '../rest/index.ts';
import type { Operation } from './operation.ts';
import type { StreamsSettings } from './options.ts';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Headers with which proxies say that a request is not their own. */
const FORWARDED = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'];

/** A request of this machine, which needs no credentials. */
const OF_MACHINE: Caller = { scope: 'administrator', kind: 'none' };

/** Decides which requests are answered. */
export class Access {
  readonly #settings: StreamsSettings;
  readonly #browsers: BrowserChecks;
  readonly #credentials: CredentialCheck;

  constructor(broker: Broker, settings: StreamsSettings) {
    const { credentials, trustedProxies, hosts, origins } = settings;
    this.#settings = settings;
    this.#browsers = new BrowserChecks({ origins, hosts: credentials === 'remote' ? undefined : hosts });
    const asked = credentials === 'remote' ? 'applications' : credentials;
    this.#credentials = new CredentialCheck(broker, asked, trustedProxies, { acceptsBearer: true, what: 'streams' });
  }

  /** Who has sent a request. @throws Fault unauthorized, tooManyLogins, notPermitted: the page that has sent it is of another origin */
  async callerOf(call: Call, row: Operation | undefined): Promise<Caller> {
    this.#browsers.check(call, isChange(call));
    const isOpen = this.#isOwn(call) || row?.isInstallation !== true;
    if (this.#settings.credentials === 'remote' && this.#isLocal(call) && isOpen) return OF_MACHINE;
    return this.#checked(call);
  }

  /** Let a caller do an operation. @throws Fault notPermitted */
  permit(caller: Caller, call: Call, row: Operation | undefined): void {
    if (caller.scope === 'viewer' && isChange(call) && row?.isReading !== true)
      throw new Fault('notPermitted', 'these credentials may only read');
    if (row?.isInstallation === true && caller.kind === 'none' && !this.#isOwn(call))
      throw new Fault(
        'notPermitted',
        'plugins and functions are code: installing them needs credentials (option credentials), or a request of this machine to a loopback address without an Origin header'
      );
  }

  /** Whether a page of another origin may read the answer. */
  isShared(origin: string): boolean {
    const { origins } = this.#settings;
    return origins === 'any' || origins.has(origin);
  }

  async #checked(call: Call): Promise<Caller> {
    try {
      return await this.#credentials.check(call);
    } catch (error) {
      if (!(error instanceof Fault) || error.kind !== 'unauthorized' || this.#settings.credentials !== 'remote')
        throw error;
      const why = 'requests that are not from this machine to a loopback address need them (option credentials)';
      throw new Fault('unauthorized', `${error.message}: ${why}`, undefined, error.headers);
    }
  }

  /** A request of this machine that no web page has sent. */
  #isOwn(call: Call): boolean {
    return this.#isLocal(call) && call.header('origin') === undefined;
  }

  #isLocal(call: Call): boolean {
    const address = clientAddress(call, this.#settings.trustedProxies);
    if (address === undefined || !isLoopback(address)) return false;
    if (FORWARDED.some((name) => call.header(name) !== undefined)) return false;
    const name = hostName(call.header('host') ?? '');
    return name !== undefined && (name === 'localhost' || isLoopback(name.replace(/^\[(.*)\]$/, '$1')));
  }
}

function isChange({ method }: Call): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

function isLoopback(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && LOOPBACK.check(address, version === 4 ? 'ipv4' : 'ipv6');
}
