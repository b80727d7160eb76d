import { lookup as lookupName } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { BrokerError } from '../../lib/index.ts';

/**
 * The networks outside the public Internet, including those of this machine (IANA special-purpose address registries).
 */
const PRIVATE_NETWORKS: readonly (readonly [address: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
  ['::', 127],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8]
];

const blocked = new BlockList();
for (const [address, prefix] of PRIVATE_NETWORKS)
  blocked.addSubnet(address, prefix, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** The IPv4 address inside an IPv6 address: mapped, or translated by NAT64 or 6to4. */
function embeddedIpv4(address: string): string | undefined {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped !== null) return mapped[1];
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const hex =
    /^(?:::ffff:|64:ff9b::)([\da-f]{1,4}):([\da-f]{1,4})$/.exec(groups) ??
    /^2002:([\da-f]{1,4}):([\da-f]{1,4}):/.exec(groups);
  if (hex === null) return undefined;
  const [high, low] = [Number.parseInt(hex[1], 16), Number.parseInt(hex[2], 16)];
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

/** Check whether an IP address belongs to this machine or to a private network. */
function isPrivateAddress(address: string): boolean {
  const [plain] = address.split('%'); // without the zone of a link-local address
  const isV6 = isIP(plain) === 6;
  const inner = isV6 ? embeddedIpv4(plain) : undefined;
  return blocked.check(plain, isV6 ? 'ipv6' : 'ipv4') || (inner !== undefined && blocked.check(inner, 'ipv4'));
}

/** The error of a host that is itself a private address, which is not looked up; undefined for other hosts. */
export function privateHostError(host: string): BrokerError | undefined {
  return isIP(host) !== 0 && isPrivateAddress(host) ? privateAddressError(host, host) : undefined;
}

function privateAddressError(host: string, address: string): BrokerError {
  return new BrokerError(
    'ADDRESS_PRIVATE',
    `"${host}" has the address ${address}, which is private; the option "publicOnly" allows only public addresses`
  );
}

/** Look up a name for a connection, and fail if one of its addresses is private. */
export const publicLookup: LookupFunction = (host, options, done) => {
  lookupName(host, { ...options, all: true }, (error, addresses) => {
    if (error !== null) {
      done(error, '');
      return;
    }
    const bad = addresses.find(({ address }) => isPrivateAddress(address));
    if (bad !== undefined) done(privateAddressError(host, bad.address), '');
    else if (options.all) done(null, addresses);
    else done(null, addresses[0].address, addresses[0].family);
  });
};
