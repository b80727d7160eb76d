import type { BlockList } from 'node:net';
import { net } from '../base/builtins.ts';

/** A set of IP addresses. */
export type Network = BlockList;

/** Tell whether a string is an IP address. */
export function isAddress(text: string): boolean {
  return net().isIP(text) !== 0;
}

/** Tell whether a string is an IP address, or a network as an address and the length of its prefix. */
export function isNetwork(text: unknown): text is string {
  if (typeof text !== 'string') return false;
  const [address, prefix, ...rest] = text.split('/');
  const version = net().isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}

/** The addresses of an IP address or network, which must be valid. */
export function networkOf(text: string): Network {
  const [address, prefix] = text.split('/');
  const family = net().isIP(address) === 4 ? 'ipv4' : 'ipv6';
  const network = new (net().BlockList)();
  if (prefix === undefined) network.addAddress(address, family);
  else network.addSubnet(address, Number(prefix), family);
  return network;
}

/** Tell whether a network contains the address of a client; false if the client has none. */
export function contains(network: Network, address: string | undefined): boolean {
  const version = address === undefined ? 0 : net().isIP(address);
  return version !== 0 && network.check(address as string, version === 4 ? 'ipv4' : 'ipv6');
}

/** The key by which failed logins are counted: the address, or for IPv6 the network of 64 bits, all of which one client may have. */
export function loginSourceOf(address: string | undefined): string {
  const plain = address?.replace(/^::ffff:(?=\d+\.)/i, '');
  if (plain === undefined || net().isIP(plain) !== 6) return plain ?? '';
  const [left, right] = plain.toLowerCase().split('::');
  const groups = left === '' ? [] : left.split(':');
  if (right !== undefined) {
    const after = right === '' ? 0 : right.split(':').length + (right.includes('.') ? 1 : 0);
    while (groups.length + after < 8) groups.push('0');
    if (right !== '') groups.push(...right.split(':'));
  }
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}
