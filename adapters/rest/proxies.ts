import { isIP } from 'node:net';
import { contains, type Network } from '../../lib/adapter.ts';
import type { Call } from './call.ts';

/** Proxies whose header `X-Forwarded-For` counts. */
export interface TrustedProxies {
  readonly networks: readonly Network[];
  /** Connections without an IP address count as such proxies: those over a Unix socket. */
  readonly isUnixTrusted: boolean;
}

/** The address of the client of a call: that of the connection, or the last one in front of the trusted proxies. */
export function clientAddress(call: Call, proxies: TrustedProxies): string | undefined {
  let address = call.remoteAddress === undefined ? undefined : plainAddress(call.remoteAddress);
  if (address === undefined ? !proxies.isUnixTrusted : !isTrusted(proxies, address)) return address;
  const forwarded = call.header('x-forwarded-for')?.split(',') ?? [];
  for (const entry of forwarded.reverse()) {
    const before = plainAddress(entry.trim());
    if (before === undefined) break;
    address = before;
    if (!isTrusted(proxies, address)) break;
  }
  return address;
}

function isTrusted({ networks }: TrustedProxies, address: string): boolean {
  return networks.some((network) => contains(network, address));
}

/** An IP address without brackets, port, zone, and the form of IPv6 for addresses of IPv4. @returns undefined if it is none */
function plainAddress(text: string): string | undefined {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? [];
  const [, withPort] = /^(\d+(?:\.\d+){3}):\d+$/.exec(text) ?? [];
  const address = (bracketed ?? withPort ?? text).replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(address) === 0 ? undefined : address;
}
