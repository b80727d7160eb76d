// The command decides on options as read, not as written. Whether a listener admits strangers is decided on the
// transport that `embermq/net` made from its options; aliases, strings for booleans and defaults are settled there.
// Everything that does not follow for certain counts as open: host names other than `localhost`, cipher lists with anything that
// needs no pre-shared key, client certificates without a private CA.

import { optionName, readOptions, ZONE_OPTIONS } from '../../../lib/adapter.ts';
import { type BrokerOptions, InvalidInput } from '../../../lib/index.ts';
import type { Transport } from '../../net/index.ts';

/** The zone settings that let anyone connect. `allowAnonymous` has no default here, because only an explicit value counts. */
const ADMISSION = {
  allowAnonymous: { ...ZONE_OPTIONS.allowAnonymous, default: undefined },
  bypassAuthPlugins: ZONE_OPTIONS.bypassAuthPlugins
};

/**
 * Refuse a listener that other machines can reach and that lets anyone connect, unless the configuration allows this
 * explicitly.
 *
 * The check uses the options after reading, so it applies to every spelling.
 * @param place the place where the listener is configured, for messages
 * @param hasSource true if a source of authentication is configured, which by default refuses unknown clients
 * @throws InvalidInput ANONYMOUS_EXPOSED
 */
export function checkExposure(place: string, transport: Transport, broker: BrokerOptions, hasSource: boolean): void {
  const bound = transport.exposedHost;
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
