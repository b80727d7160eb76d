import { contains, type Network } from '../../lib/adapter.ts';
import { net } from './builtins.ts';
import type { Call } from './call.ts';

/** Proxies whose `X-Forwarded-For` header is trusted. */
export interface TrustedProxies {
  readonly networks: readonly Network[];
  /** True if connections without an IP address, over a Unix socket, count as trusted proxies. */
  readonly isUnixTrusted: boolean;
}

/** The address of the client of a call: that of the connection, or the last address in front of the trusted proxies. */
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

/**
 * An IP address without brackets, port and zone; IPv4-mapped addresses become IPv4.
 * @returns undefined if the text is not an IP address
 */
function plainAddress(text: string): string | undefined {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? [];
  const [, withPort] = /^(\d+(?:\.\d+){3}):\d+$/.exec(text) ?? [];
  const address = (bracketed ?? withPort ?? text).replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
  return net().isIP(address) === 0 ? undefined : address;
}
