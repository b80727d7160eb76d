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

  /** Let a request through. @throws Fault unauthorized, notPermitted, tooManyLogins */
  async check(call: Call, row: Operation | undefined): Promise<void> {
    const isChange = call.method !== 'GET' && call.method !== 'HEAD';
    this.#browsers.check(call, isChange);
    const isOwn = this.#isLocal(call) && call.header('origin') === undefined;
    const isInstallation = row?.isInstallation === true;
    if (this.#settings.credentials === 'remote' && this.#isLocal(call) && (isOwn || !isInstallation)) return;
    const caller = await this.#checked(call);
    if (caller.scope === 'viewer' && isChange && row?.isReading !== true)
      throw new Fault('notPermitted', 'these credentials may only read');
    if (isInstallation && caller.kind === 'none' && !isOwn)
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

  #isLocal(call: Call): boolean {
    const address = clientAddress(call, this.#settings.trustedProxies);
    if (address === undefined || !isLoopback(address)) return false;
    if (FORWARDED.some((name) => call.header(name) !== undefined)) return false;
    const name = hostName(call.header('host') ?? '');
    return name !== undefined && (name === 'localhost' || isLoopback(name.replace(/^\[(.*)\]$/, '$1')));
  }
}

function isLoopback(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && LOOPBACK.check(address, version === 4 ? 'ipv4' : 'ipv6');
}
