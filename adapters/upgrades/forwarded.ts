// Each proxy appends to the header the address from which it got the request, so only its end can be trusted: the list is
// read from the right, past trusted proxies, to the first address that is not one of them. What a client has written
// itself is further left, and never decides. One header is read, because proxies pass on those that they do not know, as
// the client sent them. `Forwarded` [RFC 7239] has quoted strings, and a client can leave a quote open in its part: it is
// split from the right too.

import { contains, isNetwork, type Network, networkOf, plainAddress } from '../../lib/adapter.ts';
import { BrokerError, type Clock, InvalidInput } from '../../lib/index.ts';

/** The headers in which proxies report the address of a client. */
export const PROXY_HEADERS = ['x-forwarded-for', 'forwarded'] as const;
/** A header in which proxies report the address of a client. */
export type ProxyHeaderName = (typeof PROXY_HEADERS)[number];

/** Entries with which a proxy hides an address, or does not know it [RFC 7239, section 6]. */
const HIDDEN = /^(unknown|_[\w.-]+)(:[\w.-]+)?$/i;
/** Milliseconds between two reports of entries that are not valid. */
const REPORT_INTERVAL_MS = 60_000;
/** Maximum number of characters of an entry in a report. */
const MAX_SHOWN = 100;

/** The part of a broker that a report of invalid entries needs. */
interface Reporter {
  readonly clock: Clock;
  failed(error: unknown, during: string, client?: undefined): void;
}

/** The proxies in front of a server, and the header in which they report the address of the client. */
export class TrustedProxies {
  readonly #networks: readonly Network[];
  readonly #isUnixTrusted: boolean;
  /** The only header that is read. */
  readonly header: ProxyHeaderName;
  #reporter: Reporter | undefined;
  #reportedAtMs = -Infinity;

  /** @param isUnixTrusted true if connections without an IP address, over a Unix socket, count as trusted proxies */
  constructor(networks: readonly Network[], isUnixTrusted: boolean, header: ProxyHeaderName = 'x-forwarded-for') {
    this.#networks = networks;
    this.#isUnixTrusted = isUnixTrusted;
    this.header = header;
  }

  /** True if there are no proxies. */
  get isEmpty(): boolean {
    return this.#networks.length === 0 && !this.#isUnixTrusted;
  }

  /** The same proxies with another header. */
  with(header: ProxyHeaderName): TrustedProxies {
    return new TrustedProxies(this.#networks, this.#isUnixTrusted, header);
  }

  /** Report invalid entries of trusted proxies as an `error` event of the broker, at most one a minute. */
  reportTo(reporter: Reporter): void {
    this.#reporter = reporter;
  }

  /** True if the peer is a proxy. @param address without a mapping of IPv4; undefined: it has none */
  trusts(address: string | undefined): boolean {
    return address === undefined ? this.#isUnixTrusted : this.#networks.some((network) => contains(network, address));
  }

  /**
   * The address of the client: that of the connection, or the last address in front of the trusted proxies. An entry that is not an address
   * ends the search at the proxy that has sent it. Never throws.
   * @param peer the address of the connection
   * @param header returns the value of a header
   */
  clientAddress(
    peer: string | undefined,
    header: (name: ProxyHeaderName) => string | readonly string[] | undefined
  ): string | undefined {
    let address = peer === undefined ? undefined : addressIn(peer);
    if (this.isEmpty || !this.trusts(address)) return address;
    const given = header(this.header);
    const value = typeof given === 'string' ? given : (given?.join(',') ?? '');
    for (const { text, node } of this.header === 'forwarded' ? elementsOf(value) : entriesOf(value)) {
      const before = node === undefined ? undefined : addressIn(node);
      if (before === undefined) {
        if (node === undefined || !HIDDEN.test(node)) this.#invalid(text, address);
        break;
      }
      address = before;
      if (!this.trusts(address)) break;
    }
    return address;
  }

  #invalid(entry: string, proxy: string | undefined): void {
    const nowMs = this.#reporter?.clock.monotonic();
    if (nowMs === undefined || nowMs - this.#reportedAtMs < REPORT_INTERVAL_MS) return;
    this.#reportedAtMs = nowMs;
    const shown = JSON.stringify(entry.slice(0, MAX_SHOWN));
    const from = proxy === undefined ? 'a proxy' : `the proxy ${proxy}`;
    const text = `${from} sent ${shown} in the header ${this.header}, which is not an IP address; its own address counts (reported once a minute)`;
    this.#reporter?.failed(new BrokerError('PROXY_HEADER_INVALID', text), 'reading the address of a client', undefined);
  }
}

/** Check the option `trustedProxies`. @throws InvalidInput OPTION_INVALID */
export function readProxies(value: unknown, field: string): TrustedProxies {
  if (value instanceof TrustedProxies) return value;
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  for (const one of list)
    if (one !== 'unix' && !isNetwork(one)) {
      const expected = 'IP addresses, networks such as "10.0.0.0/8", or "unix"';
      throw new InvalidInput('OPTION_INVALID', field, expected, one);
    }
  const networks = (list as readonly string[]).filter((one) => one !== 'unix');
  return new TrustedProxies(networks.map(networkOf), list.includes('unix'));
}

/**
 * An IP address without brackets, port and zone; IPv4-mapped addresses become IPv4.
 * @returns undefined if the text is not an IP address
 */
function addressIn(text: string): string | undefined {
  const [, bracketed] = /^\[([^\]]+)\](?::\w+)?$/.exec(text) ?? [];
  const [, withPort] = /^(\d+(?:\.\d+){3}):\w+$/.exec(text) ?? [];
  const address = plainAddress((bracketed ?? withPort ?? text).replace(/%.*$/, ''));
  return isNetwork(address) && !address.includes('/') ? address : undefined;
}

/** The part that one proxy has added. */
interface Entry {
  readonly text: string;
  /** The address in it, or an identifier instead; undefined: the entry is not valid. */
  readonly node: string | undefined;
}

/** The entries of `X-Forwarded-For` from the right, without empty ones. */
function entriesOf(value: string): Entry[] {
  const entries = value.split(',').map((entry) => entry.trim());
  return entries
    .filter((entry) => entry !== '')
    .reverse()
    .map((text) => ({ text, node: text }));
}

/** The elements of `Forwarded` from the right. */
function* elementsOf(value: string): Generator<Entry, void> {
  for (let end = value.length; end > 0; ) {
    const start = elementStart(value, end);
    const text = value.slice(start, end).trim();
    if (text !== '') yield { text, node: forIn(text) };
    end = start - 1;
  }
}

/** The start of the element of a list that ends at `end`. Commas in quoted strings do not separate. */
function elementStart(value: string, end: number): number {
  let isQuoted = false;
  for (let at = end - 1; at >= 0; at--) {
    if (value[at] === '"' && !isEscaped(value, at)) isQuoted = !isQuoted;
    else if (value[at] === ',' && !isQuoted) return at + 1;
  }
  return 0;
}

function isEscaped(value: string, at: number): boolean {
  let slashes = 0;
  while (value[at - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 1;
}

/** The value of the only parameter `for` of an element, `unknown` if it has none; undefined if it is not valid. */
function forIn(element: string): string | undefined {
  const pair = /\s*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))\s*(?:;|$)/y;
  let found: string | undefined;
  while (pair.lastIndex < element.length) {
    const match = pair.exec(element);
    if (match === null) return undefined;
    const [, name, quoted, token] = match;
    if (name.toLowerCase() !== 'for') continue;
    if (found !== undefined) return undefined; // not permitted twice
    found = quoted?.replace(/\\(.)/g, '$1') ?? token;
  }
  return found ?? 'unknown';
}
