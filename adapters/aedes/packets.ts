// Packets as Aedes shows them, made when a handler or listener gets one: the broker never uses them. They are the
// public types of this adapter. A handler may change a packet, and only what differs from before is taken over
// (`changesOf`), so that a message that was not changed keeps its bytes.

import { CONNECT_REFUSALS, type ConnectRefusalEntry } from '../../lib/adapter.ts';
import type {
  ConnectPacket as ConnectOfBroker,
  Message,
  MessageInput,
  Properties,
  QoS,
  SubscriptionOptions
} from '../../lib/index.ts';

/** User properties in the form of Aedes: a name that occurs more than once has a list of values. */
export type UserProperties = Record<string, string | string[]>;

/** The MQTT 5.0 properties of a PUBLISH. */
export interface PublishProperties {
  /** True: the payload is UTF-8. */
  payloadFormatIndicator?: boolean;
  /** Seconds after which the message expires. Default: never. */
  messageExpiryInterval?: number;
  /** Description of the payload, such as a MIME type. */
  contentType?: string;
  /** The topic for a response. */
  responseTopic?: string;
  /** Bytes by which the requester recognizes the response. */
  correlationData?: Buffer;
  /** Pairs of name and value. */
  userProperties?: UserProperties;
}

/** PUBLISH. */
export interface PublishPacket {
  /** The type of the packet. */
  cmd: 'publish';
  /** The topic name. */
  topic: string;
  /** The payload; a string stands for its UTF-8. */
  payload: string | Buffer;
  /** The quality of service: 0, 1 or 2. */
  qos: QoS;
  /** True if the packet may have been sent before. */
  dup: boolean;
  /** True: retain the message. */
  retain: boolean;
  /** The packet id; undefined for QoS 0. */
  messageId?: number | undefined;
  /** Properties of MQTT 5.0. */
  properties?: PublishProperties;
}

/** A PUBLISH of the app. Missing fields have the defaults of MQTT. */
export type PublishInput = Partial<Omit<PublishPacket, 'topic'>> & {
  /** The topic name. */
  topic: string;
};

/** A PUBLISH in the broker. */
export interface AedesPublishPacket extends PublishPacket {
  /** The `id` of the broker. */
  brokerId: string;
  /** Number of the packet in this broker. */
  brokerCounter: number;
  /** Client id of the publisher, if a client has published the packet. */
  clientId?: string;
}

/** The will of a CONNECT. */
export interface WillPacket {
  /** The topic name. */
  topic: string;
  /** The payload; a string stands for its UTF-8. */
  payload: string | Buffer;
  /** The quality of service. Default: 0. */
  qos?: QoS;
  /** True: retain the message. Default: false. */
  retain?: boolean;
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** CONNECT. `preConnect` may change `username`, `password`, `keepalive` and `will`. */
export interface ConnectPacket {
  /** The type of the packet. */
  cmd: 'connect';
  /** The name of the protocol: `MQIsdp` for MQTT 3.1. */
  protocolId?: 'MQTT' | 'MQIsdp';
  /** 3: MQTT 3.1, 4: MQTT 3.1.1, 5: MQTT 5.0. */
  protocolVersion?: 3 | 4 | 5;
  /** The client id. */
  clientId: string;
  /** Clean Session, or Clean Start of MQTT 5.0. */
  clean?: boolean;
  /** Keep alive in seconds; 0: off. */
  keepalive?: number;
  /** The user name; absent if there is none. */
  username?: string;
  /** The password; absent if there is none. */
  password?: Buffer;
  /** The will; absent if there is none. */
  will?: WillPacket;
  /** Properties of MQTT 5.0. */
  properties?: Properties;
}

/** CONNACK. */
export interface ConnackPacket {
  /** The type of the packet. */
  cmd: 'connack';
  /** Return code of MQTT 3.x; 0: the client is accepted. */
  returnCode?: number;
  /** Reason code of MQTT 5.0. */
  reasonCode?: number;
  /** True if an existing session was resumed. */
  sessionPresent: boolean;
}

/** PUBREL. */
export interface PubrelPacket {
  /** The type of the packet. */
  cmd: 'pubrel';
  /** The packet id. */
  messageId?: number;
}

/** PINGREQ. */
export interface PingreqPacket {
  /** The type of the packet. */
  cmd: 'pingreq';
}

/** A topic filter with the options of its subscription. */
export interface Subscription {
  /** The topic filter. */
  topic: string;
  /** The maximum QoS; from 0x80: the subscription was refused. */
  qos: QoS;
  /** No Local. */
  nl?: boolean;
  /** Retain As Published. */
  rap?: boolean;
  /** Retain Handling. */
  rh?: number;
  /** The client id. */
  clientId?: string;
}

/** Several subscriptions. */
export interface Subscriptions {
  /** The topic filters with their options. */
  subscriptions: Subscription[];
}

/** SUBSCRIBE. */
export interface SubscribePacket extends Subscriptions {
  /** The type of the packet. */
  cmd: 'subscribe';
  /** The packet id. */
  messageId?: number;
}

/** UNSUBSCRIBE. */
export interface UnsubscribePacket {
  /** The type of the packet. */
  cmd: 'unsubscribe';
  /** The packet id. */
  messageId?: number;
  /** The topic filters. */
  unsubscriptions: string[];
}

/** The source of packet numbers of a broker. */
export interface PacketNumbers {
  readonly id: string;
  /** Returns the number of the next packet. */
  nextCount(): number;
}

/** A message as a packet of Aedes. */
export function packetOf(message: Message, source: PacketNumbers): AedesPublishPacket {
  const packet: AedesPublishPacket = {
    cmd: 'publish',
    brokerId: source.id,
    brokerCounter: source.nextCount(),
    topic: message.topic,
    payload: message.payload,
    qos: message.qos,
    retain: message.retain,
    dup: false
  };
  if (message.qos > 0) packet.messageId = undefined;
  if (message.clientId !== '') packet.clientId = message.clientId;
  const properties = propertiesOf(message.properties);
  if (properties !== undefined) packet.properties = properties;
  return packet;
}

function propertiesOf(given: Properties): PublishProperties | undefined {
  const { payloadFormatIndicator, userProperties, ...rest } = given;
  const properties: PublishProperties = rest;
  if (payloadFormatIndicator !== undefined) properties.payloadFormatIndicator = payloadFormatIndicator === 1;
  if (userProperties !== undefined) properties.userProperties = namedValues(userProperties);
  return Object.keys(properties).length === 0 ? undefined : properties;
}

function namedValues(pairs: NonNullable<Properties['userProperties']>): UserProperties {
  const named: UserProperties = Object.create(null);
  for (const [name, value] of pairs) {
    const known = named[name];
    named[name] = known === undefined ? value : [known, value].flat();
  }
  return named;
}

/** A packet of Aedes as the input of a message. */
export function inputOf(packet: PublishInput): MessageInput {
  const { topic, payload = '', qos = 0, retain = false, properties } = packet;
  return properties === undefined
    ? { topic, payload, qos, retain }
    : { topic, payload, qos, retain, properties: givenProperties(properties) };
}

function givenProperties(given: PublishProperties): NonNullable<MessageInput['properties']> {
  const { payloadFormatIndicator, userProperties, messageExpiryInterval, contentType, responseTopic, correlationData } =
    given;
  return {
    messageExpiryInterval,
    contentType,
    responseTopic,
    correlationData,
    payloadFormatIndicator: payloadFormatIndicator === undefined ? undefined : payloadFormatIndicator ? 1 : 0,
    userProperties:
      userProperties === undefined
        ? undefined
        : Object.entries(userProperties).flatMap(([name, values]) =>
            [values].flat().map((value) => [name, value] as const)
          )
  };
}

/** The fields of a packet that a handler has changed; undefined if it has changed none. */
export function changesOf(packet: PublishInput, before: PublishInput): Partial<MessageInput> | undefined {
  const isSame =
    packet.topic === before.topic &&
    packet.payload === before.payload &&
    packet.qos === before.qos &&
    packet.retain === before.retain &&
    packet.properties === before.properties;
  return isSame ? undefined : inputOf(packet);
}

/** The CONNECT that `preConnect` receives. */
export function connectPacketOf(packet: ConnectOfBroker): ConnectPacket {
  return { ...packet, protocolId: packet.protocolVersion === 3 ? 'MQIsdp' : 'MQTT' };
}

/**
 * Apply the changes of `preConnect`.
 * @throws Error if it has changed fields that the broker has already used
 */
export function applyChanges(given: ConnectPacket, packet: ConnectOfBroker): void {
  for (const name of ['clientId', 'clean', 'protocolVersion'] as const)
    if (given[name] !== packet[name])
      throw new Error(`preConnect cannot change "${name}" of the CONNECT, only username, password, keepalive and will`);
  const { username, password, keepalive = 0, will } = given;
  Object.assign(packet, { username, password, keepalive });
  if (will === undefined) delete packet.will;
  else {
    const { payload, qos = 0, retain = false } = will;
    packet.will = { ...will, qos, retain, payload: typeof payload === 'string' ? Buffer.from(payload) : payload };
  }
}

/**
 * A subscription in the form for `authorizeSubscribe`.
 * @param isV5 true: with the options of MQTT 5.0
 */
export function subscriptionOf(topic: string, options: Omit<SubscriptionOptions, 'id'>, isV5: boolean): Subscription {
  const { qos, noLocal, retainAsPublished, retainHandling } = options;
  return isV5 ? { topic, qos, nl: noLocal, rap: retainAsPublished, rh: retainHandling } : { topic, qos };
}

/** The CONNACK that was sent. @param reasonCode of MQTT 5.0 */
export function connackOf(reasonCode: number, sessionPresent: boolean, version: number): ConnackPacket {
  const row = refusalOf(reasonCode);
  const returnCode = reasonCode === 0 ? 0 : (row?.returnCode ?? 5);
  const connack: ConnackPacket = { cmd: 'connack', returnCode, sessionPresent };
  return version === 5 ? { ...connack, reasonCode } : connack;
}

/** The reason for refusing a client, by the reason code of MQTT 5.0. */
export function refusalOf(reasonCode: number): ConnectRefusalEntry | undefined {
  return Object.values<ConnectRefusalEntry>(CONNECT_REFUSALS).find((row) => row.reasonCode === reasonCode);
}
