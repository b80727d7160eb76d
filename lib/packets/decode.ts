// Only what follows from the bytes alone is checked here: limits of the zone, the state of the session and the
// content of topic filters are checked by callers. Bytes that cannot be parsed are malformed (0x81); what can be
// parsed and is not allowed is a protocol error (0x82). MQTT 3.1 leaves several bits undefined that devices do send,
// so they are ignored for that version only. The package mqtt-packet does not decode for the broker: it accepts
// ill-formed UTF-8, U+0000, repeated properties, packet id 0 and wildcards in topic names, and loses the order of
// user properties.

import { ProtocolError, truncated } from '../base/errors.ts';
import { isAllowedCode } from './allowed-codes.ts';
import { BodyReader } from './body-reader.ts';
import { readProperties } from './properties.ts';
import type { PropertySet } from './property-table.ts';
import { ReasonCode } from './reason-codes.ts';
import {
  type AckPacket,
  type AuthPacket,
  type ConnectPacket,
  type DisconnectPacket,
  type Packet,
  PacketType,
  type Properties,
  type ProtocolVersion,
  type PublishPacket,
  type QoS,
  type SubscribePacket,
  type SubscriptionRequest,
  type UnsubscribePacket,
  type Will
} from './types.ts';

/**
 * Thrown for a CONNECT with a protocol name or level other than those of MQTT 3.1, 3.1.1 and 5.0 [MQTT-3.1.2-1], [MQTT-3.1.2-2].
 * The reason code is 0x84.
 */
export class UnsupportedVersion extends ProtocolError {
  /** The protocol level byte as sent, including the bridge bit. */
  readonly level: number;
  /** The format of the CONNACK to send: 5 means reason code 0x84 of MQTT 5.0, 4 means return code 0x01 of 3.x. */
  readonly answerAs: 4 | 5;

  constructor(level: number, message: string) {
    super(ReasonCode.unsupportedProtocolVersion, message);
    this.level = level;
    this.answerAs = (level & ~BRIDGE) >= 5 ? 5 : 4;
  }
}

const BRIDGE = 0x80;

/** The fixed header flags required of each packet type other than PUBLISH [MQTT-2.1.3-1]. */
const HEADER_FLAGS: readonly number[] = [0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0];

const ANY_FLAGS = 0xffff;
/**
 * The flags allowed for each packet type: bit n is set if the flags may have the value n. Those of CONNECT depend on the version that it
 * declares; `checkConnectHeader` checks them.
 */
const ALLOWED_FLAGS: readonly number[] = HEADER_FLAGS.map((flags, type) => {
  if (type === 0) return 0;
  if (type === PacketType.connect) return ANY_FLAGS;
  return type === PacketType.publish ? 0b0011_1100_0011_1111 : 1 << flags;
});

/** PUBREL, SUBSCRIBE and UNSUBSCRIBE in MQTT 3.1: the QoS bits are 01, DUP is set when they are resent, and RETAIN is not used (V3.1 sections 2.1, 3). */
const RESENT_FLAGS = 0b1100_0000_1100;
/** The same for MQTT 3.1, where packets other than PUBLISH do not use their flags (V3.1 section 3). */
const ALLOWED_FLAGS_31: readonly number[] = ALLOWED_FLAGS.map((allowed, type) => {
  if (type === 0 || type === PacketType.publish) return allowed;
  return HEADER_FLAGS[type] === 2 ? RESENT_FLAGS : ANY_FLAGS;
});

/**
 * Check the low four bits of a packet's first byte. This does not check whether the peer may send that packet type.
 *
 * @param type the high four bits, 0..15
 * @param version version of the connection; MQTT 3.1 (3) has flags that it does not use, and DUP in PUBREL, SUBSCRIBE and UNSUBSCRIBE. The
 *   flags of CONNECT are checked by `checkConnectHeader`
 * @throws ProtocolError 0x81 for type 0, reserved bits [MQTT-2.1.3-1] and QoS 3 [MQTT-3.3.1-4]; 0x82 for DUP with QoS 0 [MQTT-3.3.1-2]
 */
export function checkFlags(type: number, flags: number, version: ProtocolVersion): void {
  const allowed = version === 3 ? ALLOWED_FLAGS_31 : ALLOWED_FLAGS;
  if ((allowed[type] & (1 << flags)) === 0) throw badFlags(type, flags);
}

/**
 * Check the low four bits of the first byte of a CONNECT. MQTT 3.1 does not use them (V3.1 section 3.1).
 * @param version the version that the CONNECT declares; undefined: an unknown one
 * @throws ProtocolError 0x81 if they are not 0 [MQTT-2.1.3-1]
 */
export function checkConnectHeader(flags: number, version: ProtocolVersion | undefined): void {
  if (flags !== 0 && version !== 3) throw badFlags(PacketType.connect, flags);
}

function badFlags(type: number, flags: number): ProtocolError {
  if (type === 0) return malformed('packet type 0 is reserved');
  if (type !== PacketType.publish)
    return malformed(`fixed header of packet type ${type}: flags must be ${HEADER_FLAGS[type]}, got ${flags}`);
  if ((flags & 0x06) === 0x06) return malformed('PUBLISH: QoS 3 does not exist; use 0, 1 or 2');
  return refused('PUBLISH: DUP must be 0 at QoS 0; set it only when resending QoS 1 or 2');
}

/**
 * Read the protocol version of a CONNECT that may be invalid otherwise, so that it can be refused in its own format.
 * @returns undefined if the protocol name and level do not belong to a known version; never throws
 */
export function peekConnectVersion(buf: Buffer, start: number, end: number): ProtocolVersion | undefined {
  if (end - start < 7 || buf[start] !== 0) return undefined;
  const length = buf[start + 1];
  if (end - start < length + 3) return undefined;
  return versionOf(buf.toString('latin1', start + 2, start + 2 + length), buf[start + 2 + length]);
}

/** The version for a protocol name and level. Each level is valid under only one of the names. */
function versionOf(name: string, level: number): ProtocolVersion | undefined {
  if (name === 'MQTT') {
    if (level === 5) return 5; // the bridge bit exists in 3.x only
    if ((level & ~BRIDGE) === 4) return 4;
  }
  if (name === 'MQIsdp' && (level & ~BRIDGE) === 3) return 3;
  return undefined;
}

/**
 * Decode the body of a CONNECT, `buf[start, end)`.
 *
 * Every rule that depends on the bytes alone is checked [MQTT-3.1.4-1]. The caller decides whether an empty client id is acceptable.
 * In MQTT 3.1 the reserved connect flag and, without a will, Will QoS and Will Retain are disregarded (V3.1 section 3.1).
 * @throws UnsupportedVersion for an unknown protocol name or level
 * @throws ProtocolError 0x81 if the bytes cannot be parsed; 0x82 for flags or properties that are not allowed, and for a will topic that
 *   is empty or contains a wildcard
 */
export function decodeConnect(buf: Buffer, start: number, end: number): ConnectPacket {
  const reader = new BodyReader(buf, start, end);
  const name = reader.string('protocol name');
  const level = reader.u8('protocol level');
  const version = versionOf(name, level);
  if (version === undefined) throw unsupported(name, level);

  const flags = reader.u8('connect flags');
  checkConnectFlags(flags, version);
  const packet: ConnectPacket = {
    cmd: 'connect',
    protocolVersion: version,
    bridge: (level & BRIDGE) !== 0,
    clientId: '',
    clean: (flags & 0x02) !== 0,
    keepalive: reader.u16('keep alive')
  };
  if (version === 5) setProperties(packet, takeProperties(reader, 'connect'));
  packet.clientId = reader.string('client id'); // the first field of the payload [MQTT-3.1.3-3]
  if ((flags & 0x04) !== 0) packet.will = takeWill(reader, flags, version);
  // In MQTT 3.1 the remaining length takes precedence over the flags: user name and password may be missing although their flags are set.
  const mayBeMissing = version === 3;
  if ((flags & 0x80) !== 0 && !(mayBeMissing && reader.isDone)) packet.username = reader.string('user name');
  if ((flags & 0x40) !== 0 && !(mayBeMissing && reader.isDone)) packet.password = reader.binary('password');
  reader.finish('CONNECT');
  return packet;
}

function unsupported(name: string, level: number): UnsupportedVersion {
  const asked = `protocol name ${JSON.stringify(name.slice(0, 20))} with level ${level}`;
  return new UnsupportedVersion(
    level,
    `${asked}: not supported; use "MQTT" with level 4 or 5, or "MQIsdp" with level 3`
  );
}

function checkConnectFlags(flags: number, version: ProtocolVersion): void {
  const hasWill = (flags & 0x04) !== 0;
  if ((flags & 0x01) !== 0 && version !== 3) throw malformed('connect flags: bit 0 is reserved; send 0'); // [MQTT-3.1.2-3]
  const willQos = (flags >> 3) & 0x03;
  if (willQos === 3 && (hasWill || version !== 3)) throw malformed('will: QoS 3 does not exist; use 0, 1 or 2'); // [MQTT-3.1.2-12]
  if (!hasWill && version !== 3 && (flags & 0x38) !== 0) {
    // [MQTT-3.1.2-11], [MQTT-3.1.2-13]
    throw refused('connect flags: will QoS and will retain must be 0 without a will; clear them or set the will flag');
  }
  if (version !== 5 && (flags & 0xc0) === 0x40) {
    // [MQTT-3.1.2-22] of 3.1.1
    throw refused('password: not allowed without a user name before MQTT 5.0; send a user name or use MQTT 5.0');
  }
}

function takeWill(reader: BodyReader, flags: number, version: ProtocolVersion): Will {
  const properties = version === 5 ? takeProperties(reader, 'will') : undefined;
  const topic = reader.string('will topic');
  if (topic === '' || topic.includes('#') || topic.includes('+')) {
    throw badTopic('will topic'); // [MQTT-3.1.3-11]
  }
  const will: Will = {
    topic,
    payload: reader.binary('will payload'),
    qos: ((flags >> 3) & 0x03) as QoS,
    retain: (flags & 0x20) !== 0
  };
  setProperties(will, properties);
  return will;
}

/**
 * Decode the body of a SUBSCRIBE.
 *
 * Topic filters are checked to be UTF-8 and not empty; the caller checks their wildcards.
 * @throws ProtocolError 0x81 if the bytes cannot be parsed or reserved option bits are set (for 3.x also QoS 3); 0x82 for packet id 0, no
 *   filter, an empty filter, QoS 3, Retain Handling 3, No Local on a shared subscription, or an invalid property
 */
export function decodeSubscribe(buf: Buffer, start: number, end: number, version: ProtocolVersion): SubscribePacket {
  const reader = new BodyReader(buf, start, end);
  const packet: SubscribePacket = { cmd: 'subscribe', messageId: takePacketId(reader), subscriptions: [] };
  if (version === 5) setProperties(packet, takeProperties(reader, 'subscribe'));
  if (reader.isDone) throw refused('SUBSCRIBE: no topic filter; send at least one'); // [MQTT-3.8.3-2]
  while (!reader.isDone) {
    const topic = takeFilter(reader);
    packet.subscriptions.push(subscription(topic, reader.u8('subscription options'), version));
  }
  return packet;
}

function subscription(topic: string, options: number, version: ProtocolVersion): SubscriptionRequest {
  const qos = options & 0x03;
  if (version !== 5) {
    // [MQTT-3.8.3-4] of 3.1.1
    if (options > 2)
      throw malformed(`subscription to "${truncated(topic)}": requested QoS must be 0, 1 or 2, got ${options}`);
    return { topic, qos: qos as QoS, noLocal: false, retainAsPublished: false, retainHandling: 0 };
  }
  // [MQTT-3.8.3-5]
  if (options > 0x3f)
    throw malformed(`subscription to "${truncated(topic)}": option bits 6 and 7 are reserved; send 0`);
  if (qos === 3) throw refused(`subscription to "${truncated(topic)}": QoS 3 does not exist; use 0, 1 or 2`);
  const retainHandling = (options >> 4) & 0x03;
  if (retainHandling === 3)
    throw refused(`subscription to "${truncated(topic)}": Retain Handling 3 does not exist; use 0, 1 or 2`);
  const noLocal = (options & 0x04) !== 0;
  if (noLocal && (topic.startsWith('$share/') || topic.startsWith('$queue/'))) {
    // [MQTT-3.8.3-4]
    throw refused(`subscription to "${truncated(topic)}": No Local is not allowed on a shared subscription; send 0`);
  }
  return {
    topic,
    qos: qos as QoS,
    noLocal,
    retainAsPublished: (options & 0x08) !== 0,
    retainHandling: retainHandling as 0 | 1 | 2
  };
}

/**
 * Decode the body of an UNSUBSCRIBE. Topic filters are checked as in `decodeSubscribe`.
 * @throws ProtocolError 0x81 if the bytes cannot be parsed; 0x82 for packet id 0, no filter, an empty filter, or an invalid property
 */
export function decodeUnsubscribe(
  buf: Buffer,
  start: number,
  end: number,
  version: ProtocolVersion
): UnsubscribePacket {
  const reader = new BodyReader(buf, start, end);
  const packet: UnsubscribePacket = { cmd: 'unsubscribe', messageId: takePacketId(reader), unsubscriptions: [] };
  if (version === 5) setProperties(packet, takeProperties(reader, 'unsubscribe'));
  if (reader.isDone) throw refused('UNSUBSCRIBE: no topic filter; send at least one'); // [MQTT-3.10.3-2]
  while (!reader.isDone) packet.unsubscriptions.push(takeFilter(reader));
  return packet;
}

/**
 * Decode the body of a DISCONNECT that a client sent. An absent reason code means 0x00.
 * @throws ProtocolError 0x81 if the bytes cannot be parsed; 0x82 for a code that a client may not send [MQTT-3.14.2-1], or an invalid
 *   property
 */
export function decodeDisconnect(buf: Buffer, start: number, end: number, version: ProtocolVersion): DisconnectPacket {
  if (start === end) return { cmd: 'disconnect', reasonCode: ReasonCode.success };
  if (version !== 5) throw malformed('DISCONNECT: must not have a body before MQTT 5.0; send a remaining length of 0');
  return takeDisconnect(new BodyReader(buf, start, end), 'disconnect');
}

/** Decode a DISCONNECT with a body; `set` depends on its sender. @internal */
export function takeDisconnect(reader: BodyReader, set: 'disconnect' | 'disconnectFromServer'): DisconnectPacket {
  const packet: DisconnectPacket = { cmd: 'disconnect', reasonCode: reader.u8('reason code') };
  if (!isAllowedCode(set, packet.reasonCode)) throw badReasonCode('DISCONNECT', packet.reasonCode);
  if (!reader.isDone) setProperties(packet, takeProperties(reader, set));
  reader.finish('DISCONNECT');
  return packet;
}

/**
 * Decode the body of an AUTH that a client sent. Callers refuse packet type 15 before MQTT 5.0.
 * @throws ProtocolError 0x81 if the bytes cannot be parsed; 0x82 for a code other than 0x18 and 0x19 (an absent code means 0x00)
 *   [MQTT-3.15.2-1], a missing Authentication Method, or an invalid property
 */
export function decodeAuth(buf: Buffer, start: number, end: number): AuthPacket {
  if (start === end) throw badReasonCode('AUTH', ReasonCode.success);
  return takeAuth(new BodyReader(buf, start, end), 'auth');
}

/** Decode an AUTH with a body; `set` depends on its sender. @internal */
export function takeAuth(reader: BodyReader, set: 'auth' | 'authFromServer'): AuthPacket {
  const packet: AuthPacket = { cmd: 'auth', reasonCode: reader.u8('reason code') };
  if (!isAllowedCode(set, packet.reasonCode)) throw badReasonCode('AUTH', packet.reasonCode);
  setProperties(packet, takeProperties(reader, 'auth'));
  reader.finish('AUTH');
  if (packet.properties?.authenticationMethod === undefined) {
    throw refused('AUTH: no authenticationMethod; send the method of the CONNECT'); // 3.15.2.2.2
  }
  return packet;
}

/**
 * Decode the body of a PUBACK, PUBREC, PUBREL or PUBCOMP.
 *
 * A body of two bytes means reason code 0x00; three bytes are a packet id and a code without properties. Before MQTT 5.0 the body always
 * has two bytes.
 * @throws ProtocolError 0x81 if the bytes cannot be parsed; 0x82 for packet id 0, a code not listed for that packet, or an invalid property
 */
export function decodeAck(
  cmd: AckPacket['cmd'],
  buf: Buffer,
  start: number,
  end: number,
  version: ProtocolVersion
): AckPacket {
  const length = end - start;
  if (length < 2) throw malformed(`${cmd}: the packet id is incomplete; send two bytes`);
  const messageId = (buf[start] << 8) | buf[start + 1];
  if (messageId === 0) throw packetIdZero();
  if (length === 2) return { cmd, messageId, reasonCode: ReasonCode.success };
  if (version !== 5)
    throw malformed(`${cmd}: only a packet id is allowed before MQTT 5.0; send a remaining length of 2`);
  const reasonCode = buf[start + 2];
  if (!isAllowedCode(cmd, reasonCode)) throw badReasonCode(cmd.toUpperCase(), reasonCode);
  const packet: AckPacket = { cmd, messageId, reasonCode };
  // An empty property block is common; it needs no BodyReader.
  if (length > 3 && !(length === 4 && buf[start + 3] === 0)) {
    const reader = new BodyReader(buf, start + 3, end);
    setProperties(packet, takeProperties(reader, 'ack'));
    reader.finish(cmd);
  }
  return packet;
}

/**
 * Decode the body of a PUBLISH into an object that owns its bytes.
 *
 * Not used for routing messages; it serves the in-process client, tests and the diagnostics channels.
 * @param flags low four bits of the first byte, already checked by `checkFlags`
 * @param from the sender; only a server may include subscription identifiers
 * @throws ProtocolError 0x81 if the bytes cannot be parsed; 0x82 for packet id 0, neither topic nor alias, a topic name with a wildcard, or
 *   an invalid property; 0x94 for topic alias 0
 */
export function decodePublish(
  flags: number,
  buf: Buffer,
  start: number,
  end: number,
  version: ProtocolVersion,
  from: 'client' | 'server'
): PublishPacket {
  const reader = new BodyReader(buf, start, end);
  const topic = reader.string('topic name');
  if (topic.includes('#') || topic.includes('+')) throw badTopic('topic name'); // [MQTT-3.3.2-2]
  const qos = ((flags >> 1) & 0x03) as QoS;
  const packet: PublishPacket = {
    cmd: 'publish',
    topic,
    payload: NO_BYTES,
    qos,
    dup: (flags & 0x08) !== 0,
    retain: (flags & 0x01) !== 0
  };
  if (qos > 0) packet.messageId = takePacketId(reader);
  if (version === 5) setProperties(packet, takeProperties(reader, from === 'client' ? 'publish' : 'publishFromServer'));
  if (topic === '' && packet.properties?.topicAlias === undefined) {
    throw refused('PUBLISH: neither topic name nor topic alias; send one of them'); // [MQTT-4.7.3-1]
  }
  packet.payload = reader.rest();
  return packet;
}

const NO_BYTES = Buffer.alloc(0);

/**
 * Decode a packet that a client sent. Used by tests and tools; the broker calls the functions for the single packet types.
 *
 * @param type high four bits of the first byte
 * @param flags low four bits of the first byte
 * @param version version of the connection; a CONNECT states its own
 * @throws ProtocolError like the functions for the single packet types; 0x82 also for a type that only a server sends
 */
export function decodeClientPacket(
  type: number,
  flags: number,
  buf: Buffer,
  start: number,
  end: number,
  version: ProtocolVersion
): Packet {
  checkFlags(type, flags, version);
  switch (type) {
    case PacketType.connect:
      checkConnectHeader(flags, peekConnectVersion(buf, start, end));
      return decodeConnect(buf, start, end);
    case PacketType.publish:
      return decodePublish(flags, buf, start, end, version, 'client');
    case PacketType.puback:
    case PacketType.pubrec:
    case PacketType.pubrel:
    case PacketType.pubcomp:
      return decodeAck(ACKS[type - PacketType.puback], buf, start, end, version);
    case PacketType.subscribe:
      return decodeSubscribe(buf, start, end, version);
    case PacketType.unsubscribe:
      return decodeUnsubscribe(buf, start, end, version);
    case PacketType.pingreq:
      if (start !== end) throw malformed('PINGREQ: must not have a body; send a remaining length of 0');
      return { cmd: 'pingreq' };
    case PacketType.disconnect:
      return decodeDisconnect(buf, start, end, version);
    case PacketType.auth:
      if (version !== 5) throw malformed('packet type 15 is reserved before MQTT 5.0');
      return decodeAuth(buf, start, end);
    default:
      throw refused(`packet type ${type}: only a server may send it`);
  }
}

/** The four acknowledgements in the order of their packet types. */
export const ACKS = ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const;

/** Read a packet id, which must not be 0 [MQTT-2.2.1-3]. @internal */
export function takePacketId(reader: BodyReader): number {
  const id = reader.u16('packet id');
  if (id === 0) throw packetIdZero();
  return id;
}

/** Read a property block that follows its length. @returns undefined if the block is empty @internal */
export function takeProperties(reader: BodyReader, set: PropertySet): Properties | undefined {
  const length = reader.varint();
  const start = reader.at;
  if (reader.end - start < length) {
    throw malformed(`properties: the packet ends inside the property block; correct the property length ${length}`);
  }
  reader.skip(length);
  return length === 0 ? undefined : readProperties(reader.buf, start, start + length, set);
}

/** Set `properties` only if there are any, so that a decoded packet is equal to the encoded packet. @internal */
export function setProperties(packet: { properties?: Properties }, properties: Properties | undefined): void {
  if (properties !== undefined) packet.properties = properties;
}

function takeFilter(reader: BodyReader): string {
  const filter = reader.string('topic filter');
  if (filter === '') throw refused('topic filter: empty; send at least one character'); // [MQTT-4.7.3-1]
  return filter;
}

/** The error for bytes that cannot be parsed: 0x81. @internal */
export function malformed(message: string): ProtocolError {
  return new ProtocolError(ReasonCode.malformedPacket, message);
}

/** The error for contents that can be parsed but are not allowed: 0x82. @internal */
export function refused(message: string): ProtocolError {
  return new ProtocolError(ReasonCode.protocolError, message);
}

/** The error for a reason code that the specification does not list for the packet: 0x82. @internal */
export function badReasonCode(packet: string, code: number): ProtocolError {
  return refused(
    `${packet}: reason code 0x${code.toString(16).padStart(2, '0')} is not allowed in this packet; use one that MQTT lists for it`
  );
}

function badTopic(what: string): ProtocolError {
  return refused(`${what}: must not be empty or contain "#" or "+"; send a topic name`);
}

function packetIdZero(): ProtocolError {
  return refused('packet id: 0 is not allowed; use 1 to 65535'); // [MQTT-2.2.1-3]
}
