/** Decodes packets for people, with the `mqtt-packet` package. The broker itself does not use it: it is loaded with this entry point only. */
import mqttPacket from 'mqtt-packet';
import { asError, InvalidInput } from './base/errors.ts';
import { packetFields } from './monitor/traces/trace-fields.ts';
import { decodeClientPacket, peekConnectVersion } from './packets/decode.ts';
import { decodeServerPacket, RETURN_CODES } from './packets/decode-server.ts';
import { type Packet, PacketType, type Properties, type ProtocolVersion, type UserProperty } from './packets/types.ts';
import { readVarint, varintEnd } from './packets/varint.ts';

type Fields = Record<string, unknown>;

/**
 * Decode the bytes of one packet, sent by a client or by a server.
 *
 * Intended for logs, traces and the diagnostics channels `embermq:packet:received` and `embermq:packet:sent`. The bytes are copied.
 * The `mqtt-packet` package decodes them, which is less strict than the broker: it also reads many packets that the broker refuses.
 * Properties with the same name in `userProperties` are next to each other, whatever their order in the packet.
 *
 * ```ts
 * subscribe('embermq:packet:received', (tap) => {
 *   const { client, bytes } = tap as PacketTap;
 *   console.log(client.clientId, decodePacket(bytes, client.protocolVersion));
 * });
 * ```
 *
 * @param bytes one whole packet
 * @param protocolVersion version of the connection, `client.protocolVersion`; a CONNECT states its own
 * @throws InvalidInput PACKET_INVALID if the bytes are not exactly one packet; the message says why
 */
export function decodePacket(bytes: Uint8Array, protocolVersion: ProtocolVersion): Packet {
  const refuse = (why: string) => new InvalidInput('PACKET_INVALID', 'bytes', 'one whole MQTT packet', bytes, why);
  checkBytes(bytes, 'one whole MQTT packet');
  const packets: Fields[] = [];
  let fault: unknown;
  const parser = mqttPacket.parser({ protocolVersion });
  parser.on('packet', (packet) => packets.push({ ...packet }));
  parser.on('error', (error) => {
    fault ??= error;
  });
  let rest = 0;
  try {
    rest = parser.parse(Buffer.from(bytes));
  } catch (error) {
    fault ??= error; // it reads beyond the end of some packets that are cut off
  }
  if (fault !== undefined) throw refuse(`bytes: not a valid MQTT packet: ${(fault as Error).message}`);
  if (packets.length !== 1 || rest > 0)
    throw refuse(
      `bytes: expected one whole MQTT packet, got ${packets.length} complete packets and ${rest} more bytes`
    );
  const [packet] = packets;
  const decoded = FORMS[packet.cmd as Packet['cmd']](packet);
  if (isCutOff(decoded)) throw refuse('bytes: not a valid MQTT packet: a field ends behind the end of the packet');
  return decoded;
}

function checkBytes(bytes: unknown, content: string): void {
  if (bytes instanceof Uint8Array) return;
  const message = `bytes: expected a Buffer or Uint8Array with ${content}`;
  throw new InvalidInput('PACKET_INVALID', 'bytes', content, bytes, message);
}

/** A packet among the bytes of one direction of a connection, or bytes that are not a packet. */
export interface Frame {
  /** Offset of the first byte. */
  readonly offset: number;
  /** The bytes. */
  readonly bytes: Buffer;
  /** The version in which the bytes were read. */
  readonly protocolVersion: ProtocolVersion;
  /** undefined: the bytes cannot be read as a packet. */
  readonly packet: Packet | undefined;
  /** The reason for which embermq refuses the bytes; undefined: it accepts them. */
  readonly fault: string | undefined;
}

/**
 * Decode the bytes of one direction of a connection, packet by packet.
 *
 * A packet that is not valid is read as far as `mqtt-packet` can read it; the reason for which the broker refuses it is its `fault`. Bytes
 * whose length is not known, or which are cut off, are the last frame.
 * @param protocolVersion version of the connection. Default: that of the first CONNECT, or of the first CONNACK; each CONNECT states that of
 *   the packets that follow. The version is 5 if a CONNECT has an unknown one.
 * @throws InvalidInput PACKET_INVALID if `bytes` is not a Buffer or Uint8Array; OPTION_MISSING if there is neither a CONNECT nor a CONNACK
 */
export function* decodeFrames(bytes: Uint8Array, protocolVersion?: ProtocolVersion): Generator<Frame, void> {
  checkBytes(bytes, 'MQTT packets');
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let version = protocolVersion ?? versionIn(buffer);
  for (const { offset, bytes: frame, fault } of split(buffer)) {
    version ??= 5; // only bytes that are not a packet have no version
    if (fault !== undefined) {
      yield { offset, bytes: frame, protocolVersion: version, packet: undefined, fault };
      continue;
    }
    if (protocolVersion === undefined) version = versionOf(frame) ?? version;
    yield { offset, bytes: frame, protocolVersion: version, ...read(frame, version) };
  }
}

/** Options of `describePacket`. */
export interface DescribePacketOptions {
  /** The form in which payloads are written. Default `text`: a payload that is not UTF-8 is written in hexadecimal. */
  readonly payload?: 'text' | 'hex' | 'base64' | 'none';
  /** Only this many bytes at the beginning of a payload are written. Default: all. */
  readonly maxPayloadBytes?: number;
}

/** The fields of a packet as lines of traces have them: without passwords and authentication data. */
export function describePacket(packet: Packet, options: DescribePacketOptions = {}): Readonly<Record<string, unknown>> {
  const { payload = 'text', maxPayloadBytes = Infinity } = options;
  return present({ ...packetFields(packet, { payload, maxPayloadBytes }) });
}

/** Bytes that may be a packet. */
interface Part {
  readonly offset: number;
  readonly bytes: Buffer;
  /** The reason for which they are not a packet, and nothing after them is. */
  readonly fault?: string;
}

/** Split bytes by the lengths of the packets. */
function* split(bytes: Buffer): Generator<Part, void> {
  let offset = 0;
  while (offset < bytes.length) {
    let end: number;
    try {
      if (bytes[offset] >>> 4 === 0) throw new Error('packet type 0 is reserved');
      const remaining = readVarint(bytes, offset + 1, bytes.length);
      end = varintEnd() + remaining;
      if (end > bytes.length)
        throw new Error(`the packet is cut off: ${bytes.length - offset} of its ${end - offset} bytes`);
    } catch (error) {
      yield { offset, bytes: bytes.subarray(offset), fault: asError(error).message };
      return;
    }
    yield { offset, bytes: bytes.subarray(offset, end) };
    offset = end;
  }
}

/**
 * The version of the first CONNECT or CONNACK that states one; undefined if there are no packets.
 *
 * It is 5 if only CONNECTs of unknown versions are there: the decoder then reports why it refuses them.
 * @throws InvalidInput OPTION_MISSING
 */
function versionIn(bytes: Buffer): ProtocolVersion | undefined {
  let isPacket = false;
  let isConnect = false;
  for (const { bytes: frame, fault } of split(bytes)) {
    if (fault !== undefined) break;
    isPacket = true;
    isConnect ||= frame[0] >>> 4 === PacketType.connect;
    const found = versionOf(frame);
    if (found !== undefined) return found;
  }
  if (isConnect) return 5;
  if (!isPacket) return undefined;
  const message = 'neither a CONNECT nor a CONNACK states the protocol version; pass protocolVersion';
  throw new InvalidInput('OPTION_MISSING', 'protocolVersion', '3, 4 or 5', undefined, message);
}

/** The version that a packet states; undefined if it states none. A CONNACK of 3.1 is the same as one of 3.1.1. */
function versionOf(frame: Buffer): ProtocolVersion | undefined {
  const type = frame[0] >>> 4;
  if (type !== PacketType.connect && type !== PacketType.connack) return undefined;
  readVarint(frame, 1, frame.length);
  const start = varintEnd();
  if (type === PacketType.connect) return peekConnectVersion(frame, start, frame.length);
  return frame.length - start === 2 ? 4 : 5;
}

function read(frame: Buffer, version: ProtocolVersion): Pick<Frame, 'packet' | 'fault'> {
  const strict = readStrictly(frame, version);
  const fault = strict instanceof Error ? strict.message : undefined;
  try {
    return { packet: decodePacket(frame, version), fault };
  } catch {
    // it refuses a few packets that are valid
    return { packet: strict instanceof Error ? undefined : strict, fault };
  }
}

/** Decode a packet as the broker does, or as a client does if only a server may send it. */
function readStrictly(frame: Buffer, version: ProtocolVersion): Packet | Error {
  const type = frame[0] >>> 4;
  readVarint(frame, 1, frame.length);
  const start = varintEnd();
  const decodeAs = (decode: typeof decodeClientPacket): Packet | Error => {
    try {
      return decode(type, frame[0] & 15, frame, start, frame.length, version);
    } catch (error) {
      return asError(error);
    }
  };
  if (OF_SERVERS.has(type)) return decodeAs(decodeServerPacket);
  const sent = decodeAs(decodeClientPacket);
  if (!(sent instanceof Error) || OF_CLIENTS.has(type)) return sent;
  const received = decodeAs(decodeServerPacket);
  return received instanceof Error ? sent : received;
}

const OF_SERVERS: ReadonlySet<number> = new Set([
  PacketType.connack,
  PacketType.suback,
  PacketType.unsuback,
  PacketType.pingresp
]);
const OF_CLIENTS: ReadonlySet<number> = new Set([
  PacketType.connect,
  PacketType.subscribe,
  PacketType.unsubscribe,
  PacketType.pingreq
]);

/** The packets in the shapes of `Packet`, from those of `mqtt-packet`. */
const FORMS: Readonly<Record<Packet['cmd'], (packet: Fields) => Packet>> = {
  connect: ({ cmd, protocolVersion, bridgeMode, clientId, clean, keepalive, username, password, will, properties }) =>
    form({
      cmd,
      protocolVersion,
      bridge: bridgeMode === true,
      clientId,
      clean,
      keepalive,
      username,
      password,
      will: will && form({ ...(will as Fields), properties: propertiesOf((will as Fields).properties) }),
      properties: propertiesOf(properties)
    }),
  connack: ({ cmd, sessionPresent, reasonCode, returnCode, properties }) =>
    form({
      cmd,
      sessionPresent: sessionPresent ?? null,
      reasonCode: reasonCode ?? RETURN_CODES[returnCode as number] ?? returnCode ?? null,
      properties: propertiesOf(properties)
    }),
  publish: ({ cmd, topic, payload, qos, dup, retain, messageId, properties }) =>
    form({
      cmd,
      topic,
      payload,
      qos,
      dup,
      retain,
      messageId: messageId ?? undefined,
      properties: propertiesOf(properties)
    }),
  puback: answer,
  pubrec: answer,
  pubrel: answer,
  pubcomp: answer,
  subscribe: ({ cmd, messageId, subscriptions, properties }) =>
    form({
      cmd,
      messageId,
      subscriptions: (subscriptions as Fields[]).map(({ topic, qos, nl, rap, rh }) => ({
        topic,
        qos,
        noLocal: nl ?? false,
        retainAsPublished: rap ?? false,
        retainHandling: rh ?? 0
      })),
      properties: propertiesOf(properties)
    }),
  suback: ({ cmd, messageId, granted, properties }) =>
    form({ cmd, messageId, granted, properties: propertiesOf(properties) }),
  unsubscribe: ({ cmd, messageId, unsubscriptions, properties }) =>
    form({ cmd, messageId, unsubscriptions, properties: propertiesOf(properties) }),
  unsuback: ({ cmd, messageId, granted, properties }) =>
    form({ cmd, messageId, granted: granted ?? [], properties: propertiesOf(properties) }),
  pingreq: ({ cmd }) => form({ cmd }),
  pingresp: ({ cmd }) => form({ cmd }),
  disconnect: ({ cmd, reasonCode, properties }) =>
    form({ cmd, reasonCode: reasonCode ?? 0, properties: propertiesOf(properties) }),
  auth: ({ cmd, reasonCode, properties }) =>
    form({ cmd, reasonCode: reasonCode ?? 0, properties: propertiesOf(properties) })
};

function answer({ cmd, messageId, reasonCode, properties }: Fields): Packet {
  return form({ cmd, messageId, reasonCode: reasonCode ?? 0, properties: propertiesOf(properties) });
}

function form(fields: Fields): Packet {
  return present(fields) as unknown as Packet;
}

/** Omit undefined fields. */
function present(fields: Fields): Fields {
  const result: Fields = {};
  for (const name of Object.keys(fields)) if (fields[name] !== undefined) result[name] = fields[name];
  return result;
}

/** Flags become 0 or 1, user properties a list of pairs, and one subscription identifier a list of one. */
function propertiesOf(foreign: unknown): Properties | undefined {
  if (foreign === undefined) return undefined;
  const entries = Object.entries(foreign as Fields).map(([name, value]) => {
    if (typeof value === 'boolean') return [name, value ? 1 : 0];
    if (name === 'subscriptionIdentifier') return [name, [value].flat()];
    if (name !== 'userProperties') return [name, value];
    const pairs = Object.entries(value as Record<string, string | string[]>);
    return [name, pairs.flatMap(([key, values]) => [values].flat().map((each): UserProperty => [key, each]))];
  });
  return Object.fromEntries(entries) as Properties;
}

/** `mqtt-packet` reads a number that is cut off as -1, a string as null, and a byte as undefined. */
function isCutOff(value: unknown): boolean {
  if (value === -1 || value === null || value === undefined) return true;
  return typeof value === 'object' && !Buffer.isBuffer(value) && Object.values(value).some(isCutOff);
}
