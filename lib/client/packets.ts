import { InvalidInput } from '../base/errors.ts';
import { checkProperties, type MessageInput } from '../packets/message.ts';
import type { ConnectPacket, ProtocolVersion, PublishPacket } from '../packets/types.ts';
import { checkTopicName } from '../topics/topic.ts';
import { sessionExpirySec } from './option-check.ts';
import type { ClientOptions, PublishOptions } from './options.ts';

/** Create the CONNECT of a client. @throws InvalidInput MESSAGE_INVALID for a password or will payload that is neither bytes nor a string */
export function connectPacket(options: ClientOptions, version: ProtocolVersion): ConnectPacket {
  const { clientId = '', clean = true, keepalive = 0, username, password, will } = options;
  const packet: ConnectPacket = { cmd: 'connect', protocolVersion: version, bridge: false, clientId, clean, keepalive };
  if (username !== undefined) packet.username = username;
  if (password !== undefined) packet.password = bytesOf(password);
  if (will !== undefined) {
    const { topic, payload, qos = 0, retain = false, properties } = will;
    packet.will = { topic, payload: bytesOf(payload), qos, retain, properties };
  }
  const { sessionExpiry, receiveMaximum, maximumPacketSize, topicAliasMaximum } = options;
  packet.properties = {
    receiveMaximum,
    maximumPacketSize,
    topicAliasMaximum,
    requestResponseInformation: version === 5 ? 1 : undefined, // for `Client.request`
    sessionExpiryInterval: sessionExpirySec(sessionExpiry),
    ...options.properties
  };
  return packet;
}

/** Create the PUBLISH of a message, without a packet id. @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID */
export function publishPacket({
  topic,
  payload,
  qos = 0,
  retain = false,
  properties
}: MessageInput & PublishOptions): PublishPacket {
  const hasAlias = topic === '' && properties?.topicAlias !== undefined;
  const fault =
    typeof topic !== 'string' ? 'the topic name must be a string' : hasAlias ? undefined : checkTopicName(topic);
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
  if (qos !== 0 && qos !== 1 && qos !== 2) throw new InvalidInput('MESSAGE_INVALID', 'qos', '0, 1 or 2', qos);
  const packet: PublishPacket = { cmd: 'publish', topic, payload: bytesOf(payload), qos, dup: false, retain };
  if (properties !== undefined) {
    checkProperties(properties);
    packet.properties = properties;
  }
  return packet;
}

function bytesOf(payload: Buffer | Uint8Array | string = ''): Buffer {
  if (Buffer.isBuffer(payload)) return payload;
  if (typeof payload === 'string') return Buffer.from(payload);
  if (payload instanceof Uint8Array) return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  throw new InvalidInput('MESSAGE_INVALID', 'payload', 'a Buffer, Uint8Array or string', payload);
}
