import { net } from './builtins.ts';
import type { Call } from './call.ts';
import { Fault } from './fault.ts';

/** The origins and hosts from which browsers may send requests. */
export interface BrowserSettings {
  /** Origins, in addition to the same origin, whose pages may change something; `any`: all. */
  readonly origins: ReadonlySet<string> | 'any';
  /** Names that the `Host` header may have in addition to IP addresses and `localhost`; undefined: not checked. */
  readonly hosts: ReadonlySet<string> | undefined;
}

/** Refuses cross-origin browser requests (CSRF, DNS rebinding). */
export class BrowserChecks {
  readonly #settings: BrowserSettings;
  /** The last `Host` header that was accepted. */
  #acceptedHost: string | undefined = undefined;

  constructor(settings: BrowserSettings) {
    this.#settings = settings;
  }

  /**
   * @param isChange the request may change something
   * @throws Fault notPermitted
   */
  check(call: Call, isChange: boolean): void {
    if (this.#settings.hosts !== undefined) this.#checkHost(call.header('host'), this.#settings.hosts);
    if (isChange) this.#checkOrigin(call);
  }

  /**
   * Refuse unknown hosts: with DNS rebinding, a page of an attacker reaches this machine under a name of the attacker.
   */
  #checkHost(host: string | undefined, hosts: ReadonlySet<string>): void {
    if (host !== undefined && host === this.#acceptedHost) return;
    const name = host === undefined ? undefined : hostName(host);
    const isGood =
      name !== undefined &&
      (name === 'localhost' || hosts.has(name) || net().isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0);
    if (!isGood)
      throw new Fault(
        'notPermitted',
        `the Host header must be an IP address, "localhost" or a name in the option hosts, not "${host ?? ''}"`
      );
    this.#acceptedHost = host;
  }

  #checkOrigin(call: Call): void {
    const origin = call.header('origin');
    const { origins } = this.#settings;
    if (origin === undefined && call.header('sec-fetch-site') === 'cross-site')
      throw new Fault(
        'notPermitted',
        'a page of another site has sent this request without the header Origin, so it may not change anything'
      );
    if (origin === undefined || origins === 'any' || origins.has(origin)) return;
    if (isSameOrigin(origin, call.header('host'))) return;
    throw new Fault(
      'notPermitted',
      `pages of the origin "${origin}" may not change anything: it is not that of the server, nor in the option origins`
    );
  }
}

/**
 * The name or address in a `Host` header, in lower case.
 * @returns undefined if the header is not valid
 */
export function hostName(host: string): string | undefined {
  const url = urlOf('http', host);
  return url?.hostname.replace(/\.$/, '');
}

/** True if a page of an origin is from the server that a `Host` header names. */
export function isSameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: expected } = new URL(origin);
  return /^https?:$/.test(protocol) && urlOf(protocol.slice(0, -1), host)?.host === expected;
}

function urlOf(scheme: string, host: string): URL | undefined {
  const text = `${scheme}://${host}`;
  return /^[^\s/?#@\\]+$/.test(host) && URL.canParse(text) ? new URL(text) : undefined;
}
