import { isUtf8 } from '../../base/builtins.ts';
import type { Message } from '../../packets/message.ts';
import type { Packet, Properties, ProtocolVersion, PublishPacket, Will } from '../../packets/types.ts';
import type { ClientInfo, TransportInfo } from '../../records/client.ts';

/** The form in which a trace writes payloads. */
export interface PayloadForm {
  readonly payload: 'text' | 'hex' | 'base64' | 'none';
  /** Maximum number of bytes at the beginning of a payload that are written. */
  readonly maxPayloadBytes: number;
}

/** Replaces a user name that is a token. */
const TOKEN = '(token)';

/** A user name for people. A JSON Web Token, which the source `jwt` may receive as the user name, is secret and not shown. */
export function shownUsername(username: string | undefined): string | undefined {
  return username !== undefined && /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/.test(username) ? TOKEN : username;
}

/** IP address and port of a connection; undefined if it has none. */
function shownAddress({ remoteAddress, remotePort }: TransportInfo): string | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return remoteAddress;
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

/** The fields that identify a client. */
export function clientFields({ clientId, username, transportInfo }: ClientInfo): object {
  return { clientId, username: shownUsername(username), address: shownAddress(transportInfo) };
}

/** The content of a message. Its topic is the one by which it is routed. */
export function messageFields(message: Message, form: PayloadForm): object {
  const { topic, qos, retain, clientId } = message;
  return {
    topic,
    qos,
    retain,
    publisher: clientId === '' ? undefined : clientId,
    ...payloadFields(message.payload, form)
  };
}

/** The content of a packet, without passwords and authentication data. */
export function packetFields(packet: Packet, form: PayloadForm): object {
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
      return publishFields(packet, form);
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

/** Names of packets whose bytes may have passwords or authentication data; `reserved` may be anything. */
const SECRET: ReadonlySet<string> = new Set(['reserved', 'connect', 'auth']);

/**
 * The content of a packet that the broker refuses. Its bytes are written as they are, and decoded by who reads the trace, with a decoder that is
 * less strict.
 */
export function refusedFields(
  name: string,
  bytes: Buffer,
  protocolVersion: ProtocolVersion,
  { message: error }: Error,
  { payload, maxPayloadBytes }: PayloadForm
): object {
  const isShown = payload !== 'none' && !SECRET.has(name);
  const frame = isShown ? { protocolVersion, hex: bytes.toString('hex', 0, maxPayloadBytes) } : {};
  return { packet: name, bytes: bytes.length, ...frame, error };
}

function publishFields(
  { cmd, topic, qos, retain, dup, messageId, properties, payload }: PublishPacket,
  form: PayloadForm
) {
  return {
    packet: cmd,
    topic,
    qos,
    retain,
    dup,
    packetId: messageId,
    properties: propertyFields(properties),
    ...payloadFields(payload, form)
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
 */
export function payloadFields(
  bytes: Buffer,
  { payload: form, maxPayloadBytes }: PayloadForm
): { readonly payloadBytes: number; readonly [form: string]: string | number } {
  const payloadBytes = bytes.length;
  if (form === 'none') return { payloadBytes };
  const kept = bytes.length <= maxPayloadBytes ? bytes : bytes.subarray(0, maxPayloadBytes);
  if (form === 'base64') return { payloadBase64: kept.toString('base64'), payloadBytes };
  const text = form === 'text' ? textOf(kept, kept.length < bytes.length) : undefined;
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
