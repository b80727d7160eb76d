// One encoder. The first plan left rare packets to `mqtt-packet`, which loses the order of user properties. These
// need a table-driven property writer anyway, and then one encoder is less code than two (CONNACK with three
// properties: 0.27 us). `mqtt-packet` is the oracle of the tests for inputs that both accept, and decodes packets for
// people (`lib/decoder.ts`, a separate entry point, so that the broker does not load it): it also reads packets that
// the broker refuses. It installs `@types/readable-stream`, which TypeScript before 5.6 includes in every project and
// compiles only with `skipLibCheck`, or with `"types": ["node"]`.

import { InvalidInput } from '../base/errors.ts';
import { REFUSALS_BY_CODE } from './connect-refusals.ts';
import { propertiesLength, writeProperties } from './properties.ts';
import {
  type AckPacket,
  type AuthPacket,
  type ConnackPacket,
  type ConnectPacket,
  type DisconnectPacket,
  type Packet,
  PacketType,
  type Properties,
  type ProtocolVersion,
  type PublishPacket,
  type SubackPacket,
  type SubscribePacket,
  type UnsubackPacket,
  type UnsubscribePacket
} from './types.ts';
import { VARINT_MAX, varintLength, writeVarint } from './varint.ts';
import { byteLength, writeBinary, writeString } from './write.ts';

/** A complete PINGREQ. The buffer is shared; do not write to it. */
const PINGREQ: Buffer = Buffer.from([PacketType.pingreq << 4, 0]);

/** The CONNACKs of 3.x that accept a client, without and with Session Present. The buffers are shared; do not write to them. */
const ACCEPTED: Buffer = Buffer.from([PacketType.connack << 4, 2, 0, 0]);
const ACCEPTED_PRESENT: Buffer = Buffer.from([PacketType.connack << 4, 2, 1, 0]);

/** A complete PINGRESP. The buffer is shared; do not write to it. */
export const PINGRESP: Buffer = Buffer.from([PacketType.pingresp << 4, 0]);

/**
 * Encode any packet, including its fixed header, as one buffer of exact size.
 *
 * Fields that `version` does not have (properties, reason codes, subscription options) are left out.
 * @returns an empty buffer if the version has no such packet: an AUTH before MQTT 5.0, or a CONNACK whose code has no return code in 3.x
 * @throws InvalidInput `VALUE_TOO_LONG` if a string or binary field exceeds 65,535 bytes or the packet exceeds 268,435,455 bytes
 */
export function encode(packet: Packet, version: ProtocolVersion): Buffer {
  switch (packet.cmd) {
    case 'connect':
      return encodeConnect(packet);
    case 'connack':
      return encodeConnack(packet, version);
    case 'publish':
      return encodePublish(packet, version);
    case 'puback':
    case 'pubrec':
    case 'pubrel':
    case 'pubcomp':
      return encodeAck(packet, version);
    case 'subscribe':
      return encodeSubscribe(packet, version);
    case 'suback':
      return encodeSuback(packet, version);
    case 'unsubscribe':
      return encodeUnsubscribe(packet, version);
    case 'unsuback':
      return encodeUnsuback(packet, version);
    case 'pingreq':
      return PINGREQ;
    case 'pingresp':
      return PINGRESP;
    case 'disconnect':
      return version === 5 ? encodeDisconnect(packet) : Buffer.from([PacketType.disconnect << 4, 0]);
    case 'auth':
      return version === 5 ? encodeAuth(packet) : NOTHING;
  }
}

const NOTHING = Buffer.alloc(0);

/**
 * Encode a CONNACK. For 3.x the reason code is translated to a return code; 1 to 5 are considered return codes already.
 * @returns an empty buffer if 3.x has no return code for the reason code; the connection is then closed without a CONNACK
 */
export function encodeConnack(packet: ConnackPacket, version: ProtocolVersion): Buffer {
  const sessionPresent = packet.sessionPresent && packet.reasonCode === 0 ? 1 : 0; // [MQTT-3.2.2-6]
  if (version !== 5) {
    const code = packet.reasonCode <= 5 ? packet.reasonCode : REFUSALS_BY_CODE.get(packet.reasonCode)?.returnCode;
    if (code === undefined) return NOTHING;
    if (code !== 0) return Buffer.from([PacketType.connack << 4, 2, 0, code]);
    return version === 3 || sessionPresent === 0 ? ACCEPTED : ACCEPTED_PRESENT; // MQTT 3.1 reserves this byte
  }
  const block = propertiesLength(packet.properties);
  const remaining = 2 + varintLength(block) + block;
  const buf = frame(PacketType.connack << 4, remaining);
  let at = buf.length - remaining;
  buf[at++] = sessionPresent;
  buf[at++] = packet.reasonCode;
  putProperties(buf, at, packet.properties, block);
  return buf;
}

/**
 * Encode a complete PUBLISH in a separate buffer. `Message` encodes the packets that the broker routes.
 * `messageId` is written for QoS 1 and 2 only.
 */
export function encodePublish(packet: PublishPacket, version: ProtocolVersion): Buffer {
  const { topic, payload, qos } = packet;
  const block = blockBytes(packet.properties, version);
  const flags = (packet.dup ? 0x08 : 0) | (qos << 1) | (packet.retain ? 1 : 0);
  const remaining =
    2 + byteLength(topic, 'topic') + (qos > 0 ? 2 : 0) + lengthAndBlockBytes(block, version) + payload.length;
  const buf = frame((PacketType.publish << 4) | flags, remaining);
  let at = writeString(buf, buf.length - remaining, topic);
  if (qos > 0) at = writeU16(buf, at, packet.messageId ?? 0);
  if (version === 5) at = putProperties(buf, at, packet.properties, block);
  buf.set(payload, at);
  return buf;
}

const ACK_HEADERS = {
  puback: PacketType.puback << 4,
  pubrec: PacketType.pubrec << 4,
  pubrel: (PacketType.pubrel << 4) | 2, // [MQTT-3.6.1-1]
  pubcomp: PacketType.pubcomp << 4
} as const;

/**
 * Encode a PUBACK, PUBREC, PUBREL or PUBCOMP in its shortest form: 4 bytes in 3.x and for 0x00 without properties, 5 bytes for another
 * code without properties.
 */
export function encodeAck(packet: AckPacket, version: ProtocolVersion): Buffer {
  const block = blockBytes(packet.properties, version);
  const reasonCode = version === 5 ? packet.reasonCode : 0;
  const remaining = 2 + codeAndBlockBytes(reasonCode, block);
  const buf = frame(ACK_HEADERS[packet.cmd], remaining);
  const at = writeU16(buf, buf.length - remaining, packet.messageId);
  putCodeAndBlock(buf, at, reasonCode, packet.properties, block);
  return buf;
}

/** Encode a SUBACK. In 3.1.1 every failure is 0x80. MQTT 3.1 has no failure code: a refused filter is encoded as granted at QoS 0. */
export function encodeSuback(packet: SubackPacket, version: ProtocolVersion): Buffer {
  const { granted } = packet;
  const block = blockBytes(packet.properties, version);
  const remaining = 2 + lengthAndBlockBytes(block, version) + granted.length;
  const buf = frame(PacketType.suback << 4, remaining);
  let at = writeU16(buf, buf.length - remaining, packet.messageId);
  if (version === 5) at = putProperties(buf, at, packet.properties, block);
  for (const code of granted) {
    buf[at++] = code < 0x80 || version === 5 ? code : version === 4 ? 0x80 : 0;
  }
  return buf;
}

/** Encode an UNSUBACK. In 3.x it has no reason codes. */
export function encodeUnsuback(packet: UnsubackPacket, version: ProtocolVersion): Buffer {
  if (version !== 5) return packetIdOnly(PacketType.unsuback << 4, packet.messageId);
  const block = propertiesLength(packet.properties);
  const remaining = 2 + varintLength(block) + block + packet.granted.length;
  const buf = frame(PacketType.unsuback << 4, remaining);
  let at = writeU16(buf, buf.length - remaining, packet.messageId);
  at = putProperties(buf, at, packet.properties, block);
  for (const code of packet.granted) buf[at++] = code;
  return buf;
}

/** Encode an MQTT 5.0 DISCONNECT in its shortest form: 2 bytes for 0x00 without properties, 3 for another code without properties. */
export function encodeDisconnect(packet: DisconnectPacket): Buffer {
  const block = propertiesLength(packet.properties);
  const remaining = codeAndBlockBytes(packet.reasonCode, block);
  const buf = frame(PacketType.disconnect << 4, remaining);
  putCodeAndBlock(buf, buf.length - remaining, packet.reasonCode, packet.properties, block);
  return buf;
}

/** Encode an AUTH: 2 bytes for 0x00 without properties, otherwise a code and a property block, even if the block is empty. */
export function encodeAuth(packet: AuthPacket): Buffer {
  const block = propertiesLength(packet.properties);
  if (packet.reasonCode === 0 && block === 0) return frame(PacketType.auth << 4, 0);
  const remaining = 1 + varintLength(block) + block;
  const buf = frame(PacketType.auth << 4, remaining);
  const at = buf.length - remaining;
  buf[at] = packet.reasonCode;
  putProperties(buf, at + 1, packet.properties, block);
  return buf;
}

/** Encode a CONNECT for its own `protocolVersion`. The bridge bit exists in 3.x only. */
function encodeConnect(packet: ConnectPacket): Buffer {
  const { protocolVersion: version, will, username, password } = packet;
  const name = version === 3 ? 'MQIsdp' : 'MQTT';
  const block = blockBytes(packet.properties, version);
  const willBlock = will === undefined ? 0 : blockBytes(will.properties, version);
  let remaining =
    2 + name.length + 4 + lengthAndBlockBytes(block, version) + 2 + byteLength(packet.clientId, 'clientId');
  if (will !== undefined) {
    remaining +=
      lengthAndBlockBytes(willBlock, version) + 2 + byteLength(will.topic, 'will.topic') + 2 + will.payload.length;
  }
  if (username !== undefined) remaining += 2 + byteLength(username, 'username');
  if (password !== undefined) remaining += 2 + password.length;

  const buf = frame(PacketType.connect << 4, remaining);
  let at = writeString(buf, buf.length - remaining, name);
  buf[at++] = packet.bridge && version !== 5 ? version | 0x80 : version;
  buf[at++] = connectFlags(packet);
  at = writeU16(buf, at, packet.keepalive);
  if (version === 5) at = putProperties(buf, at, packet.properties, block);
  at = writeString(buf, at, packet.clientId);
  if (will !== undefined) {
    if (version === 5) at = putProperties(buf, at, will.properties, willBlock);
    at = writeString(buf, at, will.topic);
    at = writeBinary(buf, at, will.payload, 'will.payload');
  }
  if (username !== undefined) at = writeString(buf, at, username);
  if (password !== undefined) writeBinary(buf, at, password, 'password');
  return buf;
}

function connectFlags({ clean, will, username, password }: ConnectPacket): number {
  let flags = clean ? 0x02 : 0;
  if (will !== undefined) flags |= 0x04 | (will.qos << 3) | (will.retain ? 0x20 : 0);
  if (password !== undefined) flags |= 0x40;
  if (username !== undefined) flags |= 0x80;
  return flags;
}

/** Encode a SUBSCRIBE. In 3.x the QoS is the only subscription option. */
function encodeSubscribe(packet: SubscribePacket, version: ProtocolVersion): Buffer {
  const block = blockBytes(packet.properties, version);
  let remaining = 2 + lengthAndBlockBytes(block, version);
  for (const { topic } of packet.subscriptions) remaining += 3 + byteLength(topic, 'topic');
  const buf = frame((PacketType.subscribe << 4) | 2, remaining); // [MQTT-3.8.1-1]
  let at = writeU16(buf, buf.length - remaining, packet.messageId);
  if (version === 5) at = putProperties(buf, at, packet.properties, block);
  for (const { topic, qos, noLocal, retainAsPublished, retainHandling } of packet.subscriptions) {
    at = writeString(buf, at, topic);
    buf[at++] =
      version === 5 ? qos | (noLocal ? 0x04 : 0) | (retainAsPublished ? 0x08 : 0) | (retainHandling << 4) : qos;
  }
  return buf;
}

/** Encode an UNSUBSCRIBE. */
function encodeUnsubscribe(packet: UnsubscribePacket, version: ProtocolVersion): Buffer {
  const block = blockBytes(packet.properties, version);
  let remaining = 2 + lengthAndBlockBytes(block, version);
  for (const filter of packet.unsubscriptions) remaining += 2 + byteLength(filter, 'topic');
  const buf = frame((PacketType.unsubscribe << 4) | 2, remaining); // [MQTT-3.10.1-1]
  let at = writeU16(buf, buf.length - remaining, packet.messageId);
  if (version === 5) at = putProperties(buf, at, packet.properties, block);
  for (const filter of packet.unsubscriptions) at = writeString(buf, at, filter);
  return buf;
}

/** Allocate a packet and write its fixed header. The body begins at `buf.length - remaining`. */
function frame(header: number, remaining: number): Buffer {
  if (remaining > VARINT_MAX) {
    throw new InvalidInput('VALUE_TOO_LONG', 'packet', `at most ${VARINT_MAX} bytes`, `${remaining} bytes`);
  }
  const buf = Buffer.allocUnsafe(1 + varintLength(remaining) + remaining);
  buf[0] = header;
  writeVarint(buf, 1, remaining);
  return buf;
}

function packetIdOnly(header: number, messageId: number): Buffer {
  const buf = frame(header, 2);
  writeU16(buf, 2, messageId);
  return buf;
}

function writeU16(buf: Buffer, at: number, value: number): number {
  buf[at] = value >>> 8;
  buf[at + 1] = value;
  return at + 2;
}

function blockBytes(properties: Properties | undefined, version: ProtocolVersion): number {
  return version === 5 ? propertiesLength(properties) : 0;
}

/** The size of a property block and its length. Before MQTT 5.0 there is no length either [MQTT-2.2.2-1]. */
function lengthAndBlockBytes(block: number, version: ProtocolVersion): number {
  return version === 5 ? varintLength(block) + block : 0;
}

function putProperties(buf: Buffer, at: number, properties: Properties | undefined, block: number): number {
  at = writeVarint(buf, at, block);
  return block === 0 ? at : writeProperties(buf, at, properties);
}

/** The size of a reason code and a property block. The block may be left out if it is empty, then the code if it is 0. */
function codeAndBlockBytes(reasonCode: number, block: number): number {
  if (block > 0) return 1 + varintLength(block) + block;
  return reasonCode === 0 ? 0 : 1;
}

function putCodeAndBlock(
  buf: Buffer,
  at: number,
  reasonCode: number,
  properties: Properties | undefined,
  block: number
) {
  if (block === 0 && reasonCode === 0) return;
  buf[at] = reasonCode;
  if (block > 0) putProperties(buf, at + 1, properties, block);
}
