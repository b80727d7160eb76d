import { BlockList, isIP } from 'node:net';
import { type BrokerOptions, InvalidInput, optionName, readOptions, ZONE_OPTIONS } from '../../lib/index.ts';
import type { Transport } from '../net/index.ts';

/** The settings of a zone that say whether anybody may connect. No default: what counts is what was written. */
const ADMISSION = {
  allowAnonymous: { ...ZONE_OPTIONS.allowAnonymous, default: undefined },
  bypassAuthPlugins: ZONE_OPTIONS.bypassAuthPlugins
};

/**
 * Refuse a listener that other machines can reach and that lets anybody in, unless somebody has written that this is wanted. Decided
 * on options as they were read, so that no spelling passes by it.
 * @param place how messages name where the listener was written
 * @throws InvalidInput ANONYMOUS_EXPOSED
 */
export function checkExposure(place: string, { place: bound, common, tls }: Transport, broker: BrokerOptions): void {
  if ('path' in bound || isLoopback(bound.host) || (tls !== undefined && asksForIdentity(tls))) return;
  const zone = common.zone ?? 'external';
  const { allowAnonymous, bypassAuthPlugins } = admissionOf(broker, zone);
  if (allowAnonymous === true || (allowAnonymous === false && !bypassAuthPlugins)) return;
  const why = bypassAuthPlugins ? `its zone "${zone}" has bypassAuthPlugins, so` : 'and';
  throw new InvalidInput(
    'ANONYMOUS_EXPOSED',
    'host',
    'loopback, or allowAnonymous written out',
    bound.host,
    `${place}: ${bound.host} can be reached from other machines, ${why} anybody could connect: bind a loopback address, ask for client ` +
      'certificates (--ca), or write allowAnonymous: true (--allow-anonymous) if that is wanted'
  );
}

function admissionOf(broker: BrokerOptions, zone: string): { allowAnonymous?: boolean; bypassAuthPlugins?: boolean } {
  const zones = broker.zones ?? {};
  let read: Record<string, unknown> | undefined;
  for (const given of [broker, Object.hasOwn(zones, zone) ? zones[zone] : {}]) {
    const entries = Object.entries(given).filter(([key]) => optionName(ADMISSION, key) !== undefined);
    read = readOptions(ADMISSION, Object.fromEntries(entries), '', read);
  }
  return read as ReturnType<typeof admissionOf>;
}

/** Client certificates that must verify against authorities of our own, or nothing but pre-shared keys. */
function asksForIdentity(tls: NonNullable<Transport['tls']>): boolean {
  const { ca, caFile, requestCert, rejectUnauthorized, psk, pskFile, cert, certFile, ciphers } = tls;
  // Without authorities those that Node knows are believed, which give anybody a certificate.
  const hasAuthorities = caFile.length > 0 || (ca !== undefined && ca.length > 0);
  if (requestCert && rejectUnauthorized && hasAuthorities) return true;
  const hasOnlyKeys = (psk ?? pskFile) !== undefined && (cert ?? certFile) === undefined;
  return hasOnlyKeys && (ciphers === undefined || ciphers.split(/[:, ]/).every((part) => KEY_CIPHER.test(part)));
}

/** A part of a list of ciphers that needs a pre-shared key where there is no certificate, or takes ciphers away. */
const KEY_CIPHER = /^([!-].*|@.*|TLS_\w+|([A-Z]+-)?PSK(-[A-Z0-9-]+)?)$/;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Of an IPv4 address also where it is mapped into IPv6. Of all names only `localhost`: where another leads may change. */
function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host.toLowerCase() === 'localhost';
  return LOOPBACK.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
