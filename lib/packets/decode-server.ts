import { isAllowedCode } from './allowed-codes.ts';
import { BodyReader } from './body-reader.ts';
import {
  ACKS,
  badReasonCode,
  checkFlags,
  decodeAck,
  decodePublish,
  malformed,
  refused,
  setProperties,
  takeAuth,
  takeDisconnect,
  takePacketId,
  takeProperties
} from './decode.ts';
import { ReasonCode } from './reason-codes.ts';
import {
  type ConnackPacket,
  type Packet,
  PacketType,
  type ProtocolVersion,
  type SubackPacket,
  type UnsubackPacket
} from './types.ts';

/**
 * Decode a packet that a server sent, as strictly as the broker decodes those of its clients.
 *
 * Used by the in-process client and by tests.
 * @param type high four bits of the first byte
 * @param flags low four bits of the first byte
 * @param version version of the connection
 * @throws ProtocolError 0x81 if `buf[start, end)` cannot be parsed as such a packet; 0x82 for contents that are not allowed in it, and for
 *   a packet type that only a client sends; 0x94 for topic alias 0
 */
export function decodeServerPacket(
  type: number,
  flags: number,
  buf: Buffer,
  start: number,
  end: number,
  version: ProtocolVersion
): Packet {
  checkFlags(type, flags, version);
  switch (type) {
    case PacketType.connack:
      return decodeConnack(buf, start, end, version);
    case PacketType.publish:
      return decodePublish(flags, buf, start, end, version, 'server');
    case PacketType.puback:
    case PacketType.pubrec:
    case PacketType.pubrel:
    case PacketType.pubcomp:
      return decodeAck(ACKS[type - PacketType.puback], buf, start, end, version);
    case PacketType.suback:
      return decodeSuback(buf, start, end, version);
    case PacketType.unsuback:
      return decodeUnsuback(buf, start, end, version);
    case PacketType.pingresp:
      if (start !== end) throw malformed('PINGRESP: must not have a body; send a remaining length of 0');
      return { cmd: 'pingresp' };
    case PacketType.disconnect:
      if (version !== 5) throw refused('DISCONNECT: only a client may send it before MQTT 5.0');
      // An absent code means 0x00, which only a client may send [MQTT-3.14.2-1].
      if (start === end) throw badReasonCode('DISCONNECT', ReasonCode.success);
      return takeDisconnect(new BodyReader(buf, start, end), 'disconnectFromServer');
    case PacketType.auth:
      if (version !== 5) throw malformed('packet type 15 is reserved before MQTT 5.0');
      if (start === end) return { cmd: 'auth', reasonCode: ReasonCode.success };
      return takeAuth(new BodyReader(buf, start, end), 'authFromServer');
    default:
      throw refused(`packet type ${type}: only a client may send it`);
  }
}

/** The MQTT 5.0 reason codes that correspond to the return codes 0 to 5 of 3.x. */
export const RETURN_CODES: readonly number[] = [
  ReasonCode.success,
  ReasonCode.unsupportedProtocolVersion,
  ReasonCode.clientIdentifierNotValid,
  ReasonCode.serverUnavailable,
  ReasonCode.badUserNameOrPassword,
  ReasonCode.notAuthorized
];

/**
 * Decode the body of a CONNACK.
 * @returns `reasonCode` is an MQTT 5.0 code in every version: return code 5 of 3.x becomes 0x87
 * @throws ProtocolError like `decodeServerPacket`
 */
function decodeConnack(buf: Buffer, start: number, end: number, version: ProtocolVersion): ConnackPacket {
  const reader = new BodyReader(buf, start, end);
  const flags = reader.u8('connect acknowledge flags');
  if (flags > 1) throw malformed('CONNACK: flag bits 1 to 7 are reserved; send 0'); // [MQTT-3.2.2-1]
  const code = reader.u8('reason code');
  const isKnown = version === 5 ? isAllowedCode('connack', code) : code < RETURN_CODES.length;
  if (!isKnown) throw badReasonCode('CONNACK', code);
  if (flags === 1 && code !== 0) throw refused('CONNACK: Session Present must be 0 when the reason code is a failure'); // [MQTT-3.2.2-6]
  const packet: ConnackPacket = {
    cmd: 'connack',
    // MQTT 3.1 reserves this byte.
    sessionPresent: flags === 1 && version !== 3,
    reasonCode: version === 5 ? code : RETURN_CODES[code]
  };
  if (version === 5) setProperties(packet, takeProperties(reader, 'connack'));
  reader.finish('CONNACK');
  return packet;
}

/**
 * Decode the body of a SUBACK.
 * @throws ProtocolError like `decodeServerPacket`
 */
function decodeSuback(buf: Buffer, start: number, end: number, version: ProtocolVersion): SubackPacket {
  const reader = new BodyReader(buf, start, end);
  const packet: SubackPacket = { cmd: 'suback', messageId: takePacketId(reader), granted: [] };
  if (version === 5) setProperties(packet, takeProperties(reader, 'suback'));
  if (reader.isDone) throw refused('SUBACK: no reason code; send one for each topic filter');
  while (!reader.isDone) {
    const code = reader.u8('reason code');
    // MQTT 3.1 has no failure code.
    const isKnown = version === 5 ? isAllowedCode('suback', code) : code <= 2 || (code === 0x80 && version === 4);
    if (!isKnown) throw badReasonCode('SUBACK', code);
    packet.granted.push(code);
  }
  return packet;
}

/**
 * Decode the body of an UNSUBACK. Before MQTT 5.0, `granted` is empty.
 * @throws ProtocolError like `decodeServerPacket`
 */
function decodeUnsuback(buf: Buffer, start: number, end: number, version: ProtocolVersion): UnsubackPacket {
  const reader = new BodyReader(buf, start, end);
  const packet: UnsubackPacket = { cmd: 'unsuback', messageId: takePacketId(reader), granted: [] };
  if (version !== 5) {
    reader.finish('UNSUBACK');
    return packet;
  }
  setProperties(packet, takeProperties(reader, 'unsuback'));
  if (reader.isDone) throw refused('UNSUBACK: no reason code; send one for each topic filter');
  while (!reader.isDone) {
    const code = reader.u8('reason code');
    if (!isAllowedCode('unsuback', code)) throw badReasonCode('UNSUBACK', code);
    packet.granted.push(code);
  }
  return packet;
}
