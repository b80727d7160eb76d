import { isUtf8 } from '../../base/builtins.ts';
import type { Message } from '../../packets/message.ts';
import {
  type Packet,
  PacketType,
  type Properties,
  type ProtocolVersion,
  type PublishPacket,
  type Will
} from '../../packets/types.ts';
import type { ClientInfo, TransportInfo } from '../../records/client.ts';
import { shownUsername } from '../../records/shown-username.ts';

/** The form in which a trace writes payloads. */
export interface PayloadForm {
  /** The form of payloads; `none`: they are left out. */
  readonly payload: 'text' | 'hex' | 'base64' | 'none';
  /** Maximum number of bytes at the beginning of a payload that are written. */
  readonly maxPayloadBytes: number;
}

/** IP address and port of a connection; undefined if it has none. */
function shownAddress({ remoteAddress, remotePort }: TransportInfo): string | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return remoteAddress;
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

/** The fields that identify a client. */
export function clientFields({
  clientId,
  username,
  transportInfo
}: Pick<ClientInfo, 'clientId' | 'username' | 'transportInfo'>): object {
  return { clientId, username: shownUsername(username), address: shownAddress(transportInfo) };
}

/**
 * The content of a message. Its topic is the one by which it is routed.
 * @param payload its payload, or the beginning of it
 * @param payloadBytes the size of the whole payload
 */
export function messageFields(
  { topic, qos, retain, clientId }: Pick<Message, 'topic' | 'qos' | 'retain' | 'clientId'>,
  payload: Buffer,
  form: PayloadForm,
  payloadBytes = payload.length
): object {
  return {
    topic,
    qos,
    retain,
    publisher: clientId === '' ? undefined : clientId,
    ...payloadFields(payload, form, payloadBytes)
  };
}

/**
 * The content of a packet, without passwords and authentication data.
 * @param missingBytes number of bytes at the end of the payload of a PUBLISH that the packet does not have
 */
export function packetFields(packet: Packet, form: PayloadForm, missingBytes = 0): object {
  switch (packet.cmd) {
    case 'connect': {
      const { cmd, clientId, username, password, will, properties, ...rest } = packet;
      const hasPassword = password !== undefined;
      return {
        clientId,
        username: shownUsername(username),
        packet: cmd,
        ...rest,
        hasPassword,
        will: will && willFields(will, form),
        properties: propertyFields(properties)
      };
    }
    case 'publish':
      return publishFields(packet, form, missingBytes);
    case 'suback':
    case 'unsuback': {
      const { messageId, granted, properties } = packet;
      return { packet: packet.cmd, packetId: messageId, reasonCodes: granted, properties: propertyFields(properties) };
    }
    default: {
      const { cmd, messageId, properties, ...rest } = packet as typeof packet & {
        messageId?: number;
        properties?: Properties;
      };
      return { packet: cmd, packetId: messageId, ...rest, properties: propertyFields(properties) };
    }
  }
}

/** The names of the packet types, by their number. */
const PACKET_NAMES: readonly string[] = ['reserved', ...Object.keys(PacketType)];

/** Tell whether the bytes of a packet type may have passwords or authentication data. The reserved type may have anything. */
export function hasSecrets(type: number): boolean {
  return type === 0 || type === PacketType.connect || type === PacketType.auth;
}

/**
 * The content of a packet that the broker refuses. Its bytes are written as they are, and decoded by who reads the trace, with a decoder that is
 * less strict.
 * @param bytes the packet, without the end of its payload
 * @param packetBytes the size of the whole packet
 */
export function refusedFields(
  bytes: Buffer,
  packetBytes: number,
  protocolVersion: ProtocolVersion,
  { message: error }: Error,
  { payload, maxPayloadBytes }: PayloadForm
): object {
  const type = bytes[0] >>> 4;
  const isShown = payload !== 'none' && !hasSecrets(type);
  const frame = isShown ? { protocolVersion, hex: bytes.toString('hex', 0, maxPayloadBytes) } : {};
  return { packet: PACKET_NAMES[type], bytes: packetBytes, ...frame, error };
}

function publishFields(
  { cmd, topic, qos, retain, dup, messageId, properties, payload }: PublishPacket,
  form: PayloadForm,
  missingBytes: number
) {
  return {
    packet: cmd,
    topic,
    qos,
    retain,
    dup,
    packetId: messageId,
    properties: propertyFields(properties),
    ...payloadFields(payload, form, payload.length + missingBytes)
  };
}

function willFields({ topic, qos, retain, properties, payload }: Will, form: PayloadForm): object {
  return { topic, qos, retain, properties: propertyFields(properties), ...payloadFields(payload, form) };
}

function propertyFields(properties: Properties | undefined): object | undefined {
  if (properties === undefined) return undefined;
  const { authenticationData, correlationData, ...rest } = properties;
  return { ...rest, correlationData: correlationData?.toString('hex') };
}

/**
 * The beginning of a payload, under a name that indicates its form, and its size. Text that is not valid UTF-8 is written in hexadecimal.
 * @param bytes the payload, or at least the first `maxPayloadBytes` of it
 * @param payloadBytes the size of the whole payload
 */
export function payloadFields(
  bytes: Buffer,
  { payload: form, maxPayloadBytes }: PayloadForm,
  payloadBytes = bytes.length
): {
  /** The size of the whole payload, in bytes. */
  readonly payloadBytes: number;
  readonly [form: string]: string | number;
} {
  if (form === 'none') return { payloadBytes };
  const kept = bytes.length <= maxPayloadBytes ? bytes : bytes.subarray(0, maxPayloadBytes);
  if (form === 'base64') return { payloadBase64: kept.toString('base64'), payloadBytes };
  const text = form === 'text' ? textOf(kept, kept.length < payloadBytes) : undefined;
  return text === undefined ? { payloadHex: kept.toString('hex'), payloadBytes } : { payload: text, payloadBytes };
}

/** @param isCut the last character may be incomplete; it is omitted */
function textOf(bytes: Buffer, isCut: boolean): string | undefined {
  for (let end = bytes.length; end >= 0 && end >= bytes.length - (isCut ? 3 : 0); end--) {
    const part = bytes.subarray(0, end);
    if (isUtf8(part)) return part.toString();
  }
  return undefined;
}
