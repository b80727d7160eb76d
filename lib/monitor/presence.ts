import type { DisconnectReason } from '../events/events.ts';
import type { ClientInfo } from '../records/client.ts';

/** Session expiry on the wire that stands for "never" [MQTT-3.1.2.11.2]. */
const NEVER_SEC = 0xffff_ffff;

/**
 * What is told of a client that has connected, under the documented names.
 *
 * Absent texts are the text `undefined`; times are milliseconds since 1970.
 * @param connack the reason code of its CONNACK
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

/** What is told of a client that has disconnected; as `connectedNotice`. */
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

/** An IPv4 address that came over an IPv6 socket, as IPv4. */
function plainAddress(address: string | undefined): string | undefined {
  return address?.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

function orUndefined(text: string | undefined): string {
  return text ?? 'undefined';
}
