import type { ClientInfo } from '../../records/client.ts';
import { plainAddress } from '../../records/transport-info.ts';
import type { Value } from '../../sql/values.ts';
import type { Column } from './column.ts';
import { propertiesColumn } from './properties.ts';

/** The value of an event about a client. */
export interface OfClient {
  readonly client: ClientInfo;
}

/** Additional facts of a session's client, known from its CONNECT. */
interface Agreement {
  /** Authentication Method; undefined if there is none. */
  readonly authMethod: string | undefined;
  /** Maximum packet size that the client accepts, in bytes. */
  readonly maxFrame: number;
  /** Maximum number of packet ids in flight to the client; 0 if unknown. */
  readonly window: number;
}

/** Maximum size of an MQTT packet in bytes, which a client without Maximum Packet Size accepts. */
const LARGEST_PACKET = 268_435_460;
/** Seconds of a session that does not expire [MQTT-3.1.2.11.2]. */
const NEVER = 0xffff_ffff;

/** Columns of the client of an event. */
export const CLIENT = {
  clientid: ({ client }) => orAbsent(client.clientId),
  username: ({ client }) => client.username,
  peerhost: ({ client }) => hostOf(client),
  mountpoint: ({ client }) => orAbsent(client.mountpoint),
  peername: ({ client: { transportInfo } }) => place(transportInfo.remoteAddress, transportInfo.remotePort),
  sockname: ({ client: { transportInfo } }) => place(transportInfo.localAddress, transportInfo.localPort),
  proto_name: ({ client }) => (client.protocolVersion === 3 ? 'MQIsdp' : 'MQTT'),
  proto_ver: ({ client }) => client.protocolVersion,
  keepalive: ({ client }) => client.keepalive,
  clean_start: ({ client }) => client.cleanStart,
  expiry_interval: ({ client }) => expiryOf(client),
  is_bridge: ({ client }) => client.isBridge,
  receive_maximum: ({ client }) => agreementOf(client)?.window,
  conn_props: ({ client }) => connectProperties(client),
  connected_at: ({ client }) => client.connectedAt,
  disconnected_at: ({ client }) => client.disconnectedAt
} as const satisfies Readonly<Record<string, Column<OfClient>>>;

/** The IP address of a client. */
export function hostOf(client: Partial<Pick<ClientInfo, 'transportInfo'>> | undefined): string | undefined {
  return plainAddress(client?.transportInfo?.remoteAddress);
}

/** The string, or undefined if it is empty. */
export function orAbsent(text: string): string | undefined {
  return text === '' ? undefined : text;
}

function place(address: string | undefined, port: number | undefined): Value {
  const plain = plainAddress(address);
  return plain === undefined || port === undefined ? plain : `${plain}:${port}`;
}

function expiryOf({ sessionExpiry }: ClientInfo): number {
  return sessionExpiry === Infinity ? NEVER : sessionExpiry;
}

/** The values negotiated by CONNECT; undefined if they are not known. */
function agreementOf(client: ClientInfo): Agreement | undefined {
  const { agreement } = client as { readonly agreement?: Agreement };
  return agreement === undefined || agreement.window === 0 ? undefined : agreement;
}

/** The properties of CONNECT that the broker keeps. */
function connectProperties(client: ClientInfo): Value {
  if (client.protocolVersion !== 5) return {};
  const { authMethod, maxFrame = LARGEST_PACKET } = agreementOf(client) ?? {};
  return propertiesColumn({
    ...(client.sessionExpiry > 0 ? { sessionExpiryInterval: expiryOf(client) } : {}),
    ...(authMethod === undefined ? {} : { authenticationMethod: authMethod }),
    ...(maxFrame === LARGEST_PACKET ? {} : { maximumPacketSize: maxFrame }),
    userProperties: client.userProperties
  });
}
