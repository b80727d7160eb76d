import type { DisconnectReason } from '../events/events.ts';
import type { ClientInfo } from '../records/client.ts';

/** The session expiry interval that means "never" [MQTT-3.1.2.11.2]. */
const NEVER_SEC = 0xffff_ffff;

/**
 * The presence message of a client that has connected, with the documented field names.
 *
 * Absent strings are given as `"undefined"`; times are milliseconds since 1970.
 * @param connack the reason code of the CONNACK
 */
export function connectedNotice(client: ClientInfo, connack: number, nowMs: number): Readonly<Record<string, unknown>> {
  const { transportInfo, protocolVersion, sessionExpiry } = client;
  return {
    clientid: client.clientId,
    username: orUndefined(client.username),
    ipaddress: orUndefined(plainAddress(transportInfo.remoteAddress)),
    sockport: transportInfo.localPort ?? 0,
    proto_name: protocolVersion === 3 ? 'MQIsdp' : 'MQTT',
    proto_ver: protocolVersion,
    keepalive: client.keepalive,
    connack,
    clean_start: client.cleanStart,
    expiry_interval: Math.min(sessionExpiry, NEVER_SEC),
    connected_at: client.connectedAt ?? nowMs,
    ts: nowMs
  };
}

/** The presence message of a client that has disconnected; see `connectedNotice`. */
export function disconnectedNotice(
  client: ClientInfo,
  reason: DisconnectReason,
  nowMs: number
): Readonly<Record<string, unknown>> {
  return {
    clientid: client.clientId,
    username: orUndefined(client.username),
    reason,
    disconnected_at: client.disconnectedAt ?? nowMs,
    ts: nowMs
  };
}

/** The plain form of an IPv4 address that an IPv6 socket has reported. */
function plainAddress(address: string | undefined): string | undefined {
  return address?.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

function orUndefined(text: string | undefined): string {
  return text ?? 'undefined';
}
