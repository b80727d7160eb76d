import { BlockList, isIP } from 'node:net';
import { type BrokerOptions, InvalidInput, optionName, readOptions, ZONE_OPTIONS } from '../../lib/index.ts';
import type { Transport } from '../net/index.ts';

/** The zone settings that let anyone connect. `allowAnonymous` has no default here, because only an explicit value counts. */
const ADMISSION = {
  allowAnonymous: { ...ZONE_OPTIONS.allowAnonymous, default: undefined },
  bypassAuthPlugins: ZONE_OPTIONS.bypassAuthPlugins
};

/**
 * Refuse a listener that other machines can reach and that lets anyone connect, unless the configuration allows this explicitly.
 *
 * The check uses the options after reading, so it applies to every spelling.
 * @param place the place where the listener is configured, for messages
 * @param hasSource whether a source of authentication is configured, which by default refuses clients that it does not know
 * @throws InvalidInput ANONYMOUS_EXPOSED
 */
export function checkExposure(place: string, transport: Transport, broker: BrokerOptions, hasSource: boolean): void {
  const bound = exposedAddress(transport);
  if (bound === undefined) return;
  const zone = zoneOf(transport);
  const { allowAnonymous = hasSource ? false : undefined, bypassAuthPlugins } = admissionOf(broker, zone);
  if (allowAnonymous === true || (allowAnonymous === false && !bypassAuthPlugins)) return;
  const why = bypassAuthPlugins ? `and its zone "${zone}" has bypassAuthPlugins, so` : 'and';
  throw new InvalidInput(
    'ANONYMOUS_EXPOSED',
    'host',
    'a loopback address, a source of authentication, or an explicit allowAnonymous',
    bound,
    `${place}: ${bound} can be reached from other machines, ${why} anyone could connect: bind a loopback address, ` +
      'require passwords (--password-file, or "auth" in the config file) or client certificates (--ca), or set allowAnonymous: ' +
      'true (--allow-anonymous) to allow this, false if the users are added at run time'
  );
}

/** The address at which other machines can reach a listener that does not ask for an identity in TLS; undefined: there is none. */
export function exposedAddress({ place, tls }: Transport): string | undefined {
  if ('path' in place || isLoopback(place.host) || (tls !== undefined && asksForIdentity(tls))) return undefined;
  return place.host;
}

/** The zone of the clients of a listener. */
export function zoneOf({ common }: Transport): string {
  return common.zone ?? 'external';
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

/** Whether clients must authenticate in TLS: with a certificate of the configured authorities, or with a pre-shared key only. */
function asksForIdentity(tls: NonNullable<Transport['tls']>): boolean {
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

/** Whether only this machine can reach an address. Includes IPv4-mapped IPv6 addresses. The only accepted name is `localhost`, because other names may later resolve to other addresses. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host.toLowerCase() === 'localhost';
  return LOOPBACK.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
