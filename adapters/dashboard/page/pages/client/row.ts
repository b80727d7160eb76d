import type { DataOf } from '../../../../management/client/index.ts';

/** A client as the interface lists it. */
export type ClientRow = DataOf<'hosted', 'GET', '/clients'>[number];

/** A session as the interface describes it. */
export type SessionRow = DataOf<'hosted', 'GET', '/x/sessions/{clientid}'>;

const VERSIONS: Readonly<Record<number, string>> = { 3: 'MQTT 3.1', 4: 'MQTT 3.1.1', 5: 'MQTT 5.0' };

/** The version of the protocol that a client speaks. */
export function protocolText({ proto_ver, proto_name }: ClientRow): string {
  return VERSIONS[proto_ver] ?? `${proto_name} ${proto_ver}`;
}

/** The address of a client. @returns undefined for a client in the process of the broker */
export function addressOf({ ip_address, port }: ClientRow): string | undefined {
  if (ip_address === 'undefined') return undefined;
  return ip_address.includes(':') ? `[${ip_address}]:${port}` : `${ip_address}:${port}`;
}
