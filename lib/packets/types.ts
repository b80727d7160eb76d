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
  /** 1: the payload is UTF-8; 0: unspecified bytes. In PUBLISH and wills. */
  payloadFormatIndicator?: 0 | 1;
  /** Seconds after which the message is no longer delivered. Absent: it does not expire. */
  messageExpiryInterval?: number;
  /** Description of the payload, such as a MIME type. */
  contentType?: string;
  /** The topic name for a response to the message. */
  responseTopic?: string;
  /** Bytes by which the requester recognizes the response. */
  correlationData?: Buffer;
  /** A client sends at most one. The broker sends the identifier of each matching subscription that has one. */
  subscriptionIdentifier?: readonly number[];
  /** Seconds for which the session outlives its connection; 4,294,967,295: it does not expire. Absent: 0. */
  sessionExpiryInterval?: number;
  /** The client id that the server has assigned to a client that sent none. In CONNACK. */
  assignedClientIdentifier?: string;
  /** Keep alive in seconds, which replaces that of the client. In CONNACK. */
  serverKeepAlive?: number;
  /** Name of the method of enhanced authentication, such as `SCRAM-SHA-256`. */
  authenticationMethod?: string;
  /** Data of the authentication; its content depends on the method. */
  authenticationData?: Buffer;
  /** 0: the server sends a reason string or user properties only in PUBLISH, CONNACK and DISCONNECT. Absent: 1. In CONNECT. */
  requestProblemInformation?: 0 | 1;
  /** Seconds between the end of the connection and the publication of the will, unless the session ends before. Absent: 0. */
  willDelayInterval?: number;
  /** 1: the client requests `responseInformation` in CONNACK. Absent: 0. In CONNECT. */
  requestResponseInformation?: 0 | 1;
  /** The basis of topic names for responses to the client. In CONNACK. */
  responseInformation?: string;
  /** Other servers that the client can use. In CONNACK and DISCONNECT. */
  serverReference?: string;
  /** The reason for the reason code, for people. */
  reasonString?: string;
  /** Number of unacknowledged QoS 1 and 2 messages that the sender of the packet accepts at a time. Absent: 65,535. */
  receiveMaximum?: number;
  /** The greatest topic alias that the sender of the packet accepts. Absent: 0, none. */
  topicAliasMaximum?: number;
  /** Number that stands for the topic name on this connection. In PUBLISH. */
  topicAlias?: number;
  /** The maximum QoS that the server supports. Absent: 2. In CONNACK. */
  maximumQoS?: 0 | 1;
  /** 0: the server does not support retained messages. Absent: 1. In CONNACK. */
  retainAvailable?: 0 | 1;
  /** Pairs of name and value, in order; a name may occur several times. */
  userProperties?: readonly UserProperty[];
  /** The maximum size of a packet that the sender of the packet accepts, in bytes. Absent: no limit beyond that of MQTT. */
  maximumPacketSize?: number;
  /** 0: the server does not support wildcards in topic filters. Absent: 1. In CONNACK. */
  wildcardSubscriptionAvailable?: 0 | 1;
  /** 0: the server does not support subscription identifiers. Absent: 1. In CONNACK. */
  subscriptionIdentifiersAvailable?: 0 | 1;
  /** 0: the server does not support shared subscriptions. Absent: 1. In CONNACK. */
  sharedSubscriptionAvailable?: 0 | 1;
}

/** The will of a CONNECT. */
export interface Will {
  /** The topic name to which the will is published. */
  topic: string;
  /** The payload; empty if there is none. */
  payload: Buffer;
  /** The QoS at which it is published. */
  qos: QoS;
  /** True if it is published as a retained message. */
  retain: boolean;
  /** Properties of the will (MQTT 5.0), with `willDelayInterval`. */
  properties?: Properties;
}

/** CONNECT. */
export interface ConnectPacket {
  /** The type of the packet. */
  cmd: 'connect';
  /** 3: MQTT 3.1, 4: MQTT 3.1.1, 5: MQTT 5.0. */
  protocolVersion: ProtocolVersion;
  /** The bridge bit of the protocol level byte (0x80), a convention of mosquitto. */
  bridge: boolean;
  /** The client id; empty: the server assigns one. */
  clientId: string;
  /** Clean Start; Clean Session before MQTT 5.0. */
  clean: boolean;
  /** Seconds; 0 disables keep alive. */
  keepalive: number;
  /** The user name; absent if there is none. */
  username?: string;
  /** The password; absent if there is none. */
  password?: Buffer;
  /** The will; absent if there is none. */
  will?: Will;
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/**
 * CONNACK. `reasonCode` is an MQTT 5.0 code in every version: the return codes 1 to 5 of 3.x become 0x84 (protocol version),
 * 0x85 (client id), 0x88 (server unavailable), 0x86 (user name or password) and 0x87 (not authorized).
 */
export interface ConnackPacket {
  /** The type of the packet. */
  cmd: 'connack';
  /** True if the server has resumed a session. Always false in MQTT 3.1. */
  sessionPresent: boolean;
  /** 0: accepted; from 0x80: refused. */
  reasonCode: number;
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** PUBLISH. `messageId` is the packet id of QoS 1 and 2. */
export interface PublishPacket {
  /** The type of the packet. */
  cmd: 'publish';
  /** The topic name; may be empty if the packet has a topic alias. */
  topic: string;
  /** The payload; empty if there is none. */
  payload: Buffer;
  /** The quality of service: 0 at most once, 1 at least once, 2 exactly once. */
  qos: QoS;
  /** True if the packet may have been sent before. */
  dup: boolean;
  /** From a client: retain the message. From a server: it is a retained message, or was published as one. */
  retain: boolean;
  /** The packet id; absent for QoS 0. */
  messageId?: number;
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** PUBACK, PUBREC, PUBREL or PUBCOMP. Before MQTT 5.0, `reasonCode` is 0. */
export interface AckPacket {
  /** The type of the packet. */
  cmd: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp';
  /** The packet id of the PUBLISH. */
  messageId: number;
  /** 0: success; from 0x80: refused. */
  reasonCode: number;
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** One entry of a SUBSCRIBE. For 3.x clients `noLocal` and `retainAsPublished` are false and `retainHandling` is 0. */
export interface SubscriptionRequest {
  /** The topic filter, with the share prefix for a shared subscription. */
  topic: string;
  /** The requested maximum QoS. */
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
  /** The type of the packet. */
  cmd: 'subscribe';
  /** The packet id, which the SUBACK repeats. */
  messageId: number;
  /** The topic filters with their options, at least one. */
  subscriptions: SubscriptionRequest[];
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** SUBACK. `granted` has one code per topic filter: the granted QoS, or a failure from 0x80. */
export interface SubackPacket {
  /** The type of the packet. */
  cmd: 'suback';
  /** The packet id of the SUBSCRIBE. */
  messageId: number;
  /** The codes, in the order of the topic filters. */
  granted: number[];
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** UNSUBSCRIBE. */
export interface UnsubscribePacket {
  /** The type of the packet. */
  cmd: 'unsubscribe';
  /** The packet id, which the UNSUBACK repeats. */
  messageId: number;
  /** The topic filters, at least one. */
  unsubscriptions: string[];
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** UNSUBACK. */
export interface UnsubackPacket {
  /** The type of the packet. */
  cmd: 'unsuback';
  /** The packet id of the UNSUBSCRIBE. */
  messageId: number;
  /** One code per topic filter; not sent to 3.x clients. */
  granted: number[];
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** PINGREQ or PINGRESP. */
export interface PingPacket {
  /** The type of the packet. */
  cmd: 'pingreq' | 'pingresp';
}

/** DISCONNECT. Before MQTT 5.0, `reasonCode` is 0. */
export interface DisconnectPacket {
  /** The type of the packet. */
  cmd: 'disconnect';
  /** 0: normal disconnection. */
  reasonCode: number;
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** AUTH of MQTT 5.0. */
export interface AuthPacket {
  /** The type of the packet. */
  cmd: 'auth';
  /** 0x00: success; 0x18: continue; 0x19: re-authenticate. */
  reasonCode: number;
  /** The method, the data and others. */
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
