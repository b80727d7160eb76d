/**
 * Control packets as plain objects, close to the shapes of the `mqtt-packet` package. One difference: user properties are a list of
 * pairs, which preserves their order and duplicates [MQTT-3.3.2-18].
 */

/** 0: at most once. 1: at least once. 2: exactly once. */
export type QoS = 0 | 1 | 2;

/** 3: MQTT 3.1 (MQIsdp). 4: MQTT 3.1.1. 5: MQTT 5.0. */
export type ProtocolVersion = 3 | 4 | 5;

/** Name and value. A name may occur more than once. */
export type UserProperty = readonly [name: string, value: string];

/**
 * Every property of MQTT 5.0 (section 2.2.2.2). Intervals are in seconds, sizes in bytes. A property that is absent here is absent from
 * the packet.
 */
export interface Properties {
  payloadFormatIndicator?: 0 | 1;
  messageExpiryInterval?: number;
  contentType?: string;
  responseTopic?: string;
  correlationData?: Buffer;
  /** A client sends at most one. The broker sends the identifier of each matching subscription that has one. */
  subscriptionIdentifier?: readonly number[];
  sessionExpiryInterval?: number;
  assignedClientIdentifier?: string;
  serverKeepAlive?: number;
  authenticationMethod?: string;
  authenticationData?: Buffer;
  requestProblemInformation?: 0 | 1;
  willDelayInterval?: number;
  requestResponseInformation?: 0 | 1;
  responseInformation?: string;
  serverReference?: string;
  reasonString?: string;
  receiveMaximum?: number;
  topicAliasMaximum?: number;
  topicAlias?: number;
  maximumQoS?: 0 | 1;
  retainAvailable?: 0 | 1;
  userProperties?: readonly UserProperty[];
  maximumPacketSize?: number;
  wildcardSubscriptionAvailable?: 0 | 1;
  subscriptionIdentifiersAvailable?: 0 | 1;
  sharedSubscriptionAvailable?: 0 | 1;
}

/** The will of a CONNECT. */
export interface Will {
  topic: string;
  payload: Buffer;
  qos: QoS;
  retain: boolean;
  properties?: Properties;
}

/** CONNECT. */
export interface ConnectPacket {
  cmd: 'connect';
  protocolVersion: ProtocolVersion;
  /** The bridge bit of the protocol level byte (0x80), a convention of mosquitto. */
  bridge: boolean;
  clientId: string;
  clean: boolean;
  /** Seconds; 0 disables keep alive. */
  keepalive: number;
  username?: string;
  password?: Buffer;
  will?: Will;
  properties?: Properties;
}

/**
 * CONNACK. `reasonCode` is an MQTT 5.0 code in every version: the return codes 1 to 5 of 3.x become 0x84 (protocol version),
 * 0x85 (client id), 0x88 (server unavailable), 0x86 (user name or password) and 0x87 (not authorized).
 */
export interface ConnackPacket {
  cmd: 'connack';
  sessionPresent: boolean;
  reasonCode: number;
  properties?: Properties;
}

/** PUBLISH. `messageId` is the packet id of QoS 1 and 2. */
export interface PublishPacket {
  cmd: 'publish';
  topic: string;
  payload: Buffer;
  qos: QoS;
  dup: boolean;
  retain: boolean;
  messageId?: number;
  properties?: Properties;
}

/** PUBACK, PUBREC, PUBREL or PUBCOMP. Before MQTT 5.0, `reasonCode` is 0. */
export interface AckPacket {
  cmd: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp';
  messageId: number;
  reasonCode: number;
  properties?: Properties;
}

/** One entry of a SUBSCRIBE. For 3.x clients `noLocal` and `retainAsPublished` are false and `retainHandling` is 0. */
export interface SubscriptionRequest {
  topic: string;
  qos: QoS;
  /** No Local */
  noLocal: boolean;
  /** Retain As Published */
  retainAsPublished: boolean;
  /** Retain Handling: 0 sends retained messages, 1 only if the subscription is new, 2 never */
  retainHandling: 0 | 1 | 2;
}

/** SUBSCRIBE. */
export interface SubscribePacket {
  cmd: 'subscribe';
  messageId: number;
  subscriptions: SubscriptionRequest[];
  properties?: Properties;
}

/** SUBACK. `granted` has one code per topic filter: the granted QoS, or a failure from 0x80. */
export interface SubackPacket {
  cmd: 'suback';
  messageId: number;
  granted: number[];
  properties?: Properties;
}

/** UNSUBSCRIBE. */
export interface UnsubscribePacket {
  cmd: 'unsubscribe';
  messageId: number;
  unsubscriptions: string[];
  properties?: Properties;
}

/** UNSUBACK. */
export interface UnsubackPacket {
  cmd: 'unsuback';
  messageId: number;
  /** One code per topic filter; not sent to 3.x clients. */
  granted: number[];
  properties?: Properties;
}

/** PINGREQ or PINGRESP. */
export interface PingPacket {
  cmd: 'pingreq' | 'pingresp';
}

/** DISCONNECT. Before MQTT 5.0, `reasonCode` is 0. */
export interface DisconnectPacket {
  cmd: 'disconnect';
  reasonCode: number;
  properties?: Properties;
}

/** AUTH of MQTT 5.0. */
export interface AuthPacket {
  cmd: 'auth';
  reasonCode: number;
  properties?: Properties;
}

/** Any control packet; `cmd` is its type. */
export type Packet =
  | ConnectPacket
  | ConnackPacket
  | PublishPacket
  | AckPacket
  | SubscribePacket
  | SubackPacket
  | UnsubscribePacket
  | UnsubackPacket
  | PingPacket
  | DisconnectPacket
  | AuthPacket;

/** The packet types, as in the high four bits of the first byte. */
export const PacketType = {
  connect: 1,
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
  auth: 15
} as const;
