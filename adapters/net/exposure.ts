import { BlockList, isIP } from 'node:net';
import type { Place } from './bind.ts';
import type { TlsRead } from './tls-options.ts';

/**
 * The address at which other machines can reach a listener without client authentication in TLS; undefined: there is
 * none.
 */
export function exposedHostOf(place: Place, tls: TlsRead | undefined): string | undefined {
  if ('path' in place || isLoopback(place.host) || (tls !== undefined && asksForIdentity(tls))) return undefined;
  return place.host;
}

/**
 * Check whether clients must authenticate in TLS: with a certificate of the configured authorities, or only with a
 * pre-shared key.
 */
function asksForIdentity(tls: TlsRead): boolean {
  const { ca, caFile, requestCert, rejectUnauthorized, psk, pskFile, cert, certFile, ciphers } = tls;
  // Without configured authorities, Node trusts the public ones, which issue certificates to anyone.
  const hasAuthorities = caFile.length > 0 || (ca !== undefined && ca.length > 0);
  if (requestCert && rejectUnauthorized && hasAuthorities) return true;
  const hasOnlyKeys = (psk ?? pskFile) !== undefined && (cert ?? certFile) === undefined;
  return hasOnlyKeys && (ciphers === undefined || ciphers.split(/[:, ]/).every((part) => KEY_CIPHER.test(part)));
}

/** An entry of a cipher list that requires a pre-shared key if there is no certificate, or that removes ciphers. */
const KEY_CIPHER = /^([!-].*|@.*|TLS_\w+|([A-Z]+-)?PSK(-[A-Z0-9-]+)?)$/;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * Check whether only this machine can reach an address. Includes IPv4-mapped IPv6 addresses. The only accepted name is
 * `localhost`, because other names may later resolve to other addresses.
 */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host.toLowerCase() === 'localhost';
  return LOOPBACK.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
