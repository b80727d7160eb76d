import type { NoticeName } from '../events/catalogue.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { ClientInfo } from '../records/client.ts';
import { plainAddress } from '../records/transport-info.ts';

/** The session expiry interval that means "never" [MQTT-3.1.2.11.2]. */
const NEVER_SEC = 0xffff_ffff;

/** Creates the payload of a `$SYS` notice. @param nowMs milliseconds since 1970 */
export type NoticeOf<E extends NoticeName> = (event: BrokerEvents[E], nowMs: number) => object;

/**
 * The payload of the `$SYS` notice of each event that has one, with the documented field names. Absent strings are given as `"undefined"`;
 * times are milliseconds since 1970.
 */
export const NOTICES: { readonly [E in NoticeName]: NoticeOf<E> } = {
  'client.connected': ({ client }, nowMs) => connected(client, nowMs),
  'client.disconnected': ({ client, reason }, nowMs) => ({
    clientid: client.clientId,
    username: orUndefined(client.username),
    reason,
    disconnected_at: client.disconnectedAt ?? nowMs,
    ts: nowMs
  })
};

function connected(client: ClientInfo, nowMs: number): object {
  const { transportInfo, protocolVersion, sessionExpiry } = client;
  return {
    clientid: client.clientId,
    username: orUndefined(client.username),
    ipaddress: orUndefined(plainAddress(transportInfo.remoteAddress)),
    sockport: transportInfo.localPort ?? 0,
    proto_name: protocolVersion === 3 ? 'MQIsdp' : 'MQTT',
    proto_ver: protocolVersion,
    keepalive: client.keepalive,
    connack: 0,
    clean_start: client.cleanStart,
    expiry_interval: Math.min(sessionExpiry, NEVER_SEC),
    connected_at: client.connectedAt ?? nowMs,
    ts: nowMs
  };
}

function orUndefined(text: string | undefined): string {
  return text ?? 'undefined';
}
