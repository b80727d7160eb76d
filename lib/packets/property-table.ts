import { ProtocolError } from '../base/errors.ts';
import { ReasonCode } from './reason-codes.ts';
import type { Properties } from './types.ts';

/**
 * The packets that carry properties.
 *
 * `publish` and `disconnect` are packets that a client sends; those that a server sends allow other properties. `ack` is PUBACK, PUBREC,
 * PUBREL and PUBCOMP.
 */
export type PropertySet =
  | 'connect'
  | 'will'
  | 'connack'
  | 'publish'
  | 'publishFromServer'
  | 'ack'
  | 'subscribe'
  | 'suback'
  | 'unsubscribe'
  | 'unsuback'
  | 'disconnect'
  | 'disconnectFromServer'
  | 'auth';

/** The encoding of a value. `flag` is a byte that is 0 or 1. */
type PropertyType = 'flag' | 'u16' | 'u32' | 'varint' | 'string' | 'binary' | 'pair';

/** One property of MQTT 5.0. */
export interface PacketProperty {
  readonly id: number;
  readonly name: keyof Properties;
  readonly type: PropertyType;
  /** The packets that may contain it. */
  readonly sets: readonly PropertySet[];
  /** The packets that may contain it more than once. */
  readonly repeatable: readonly PropertySet[];
  /** The reason code for the value 0; absent if 0 is allowed. */
  readonly zeroReasonCode?: number;
}

const PUBLISH = ['publish', 'publishFromServer'] as const;
const MESSAGE = [...PUBLISH, 'will'] as const;
const ANSWERS = ['connack', 'ack', 'suback', 'unsuback', 'disconnect', 'disconnectFromServer', 'auth'] as const;
const EVERY = ['connect', ...MESSAGE, ...ANSWERS, 'subscribe', 'unsubscribe'] as const;

function row(
  id: number,
  name: keyof Properties,
  type: PropertyType,
  sets: readonly PropertySet[],
  zeroReasonCode?: number
) {
  return { id, name, type, sets, repeatable: [], zeroReasonCode } satisfies PacketProperty;
}

/** Every property of MQTT 5.0 (section 2.2.2.2 and chapter 3), sorted by id. Properties are encoded in this order. */
export const PROPERTIES: readonly PacketProperty[] = [
  row(0x01, 'payloadFormatIndicator', 'flag', MESSAGE),
  row(0x02, 'messageExpiryInterval', 'u32', MESSAGE),
  row(0x03, 'contentType', 'string', MESSAGE),
  row(0x08, 'responseTopic', 'string', MESSAGE),
  row(0x09, 'correlationData', 'binary', MESSAGE),
  {
    // A client sends one in SUBSCRIBE; the server sends one for each matching subscription [MQTT-3.3.4-4], [MQTT-3.3.4-6].
    ...row(0x0b, 'subscriptionIdentifier', 'varint', ['subscribe', 'publishFromServer'], ReasonCode.protocolError),
    repeatable: ['publishFromServer']
  },
  // A server must not send it in DISCONNECT [MQTT-3.14.2-2].
  row(0x11, 'sessionExpiryInterval', 'u32', ['connect', 'connack', 'disconnect']),
  row(0x12, 'assignedClientIdentifier', 'string', ['connack']),
  row(0x13, 'serverKeepAlive', 'u16', ['connack']),
  row(0x15, 'authenticationMethod', 'string', ['connect', 'connack', 'auth']),
  row(0x16, 'authenticationData', 'binary', ['connect', 'connack', 'auth']),
  row(0x17, 'requestProblemInformation', 'flag', ['connect']),
  row(0x18, 'willDelayInterval', 'u32', ['will']),
  row(0x19, 'requestResponseInformation', 'flag', ['connect']),
  row(0x1a, 'responseInformation', 'string', ['connack']),
  row(0x1c, 'serverReference', 'string', ['connack', 'disconnectFromServer']),
  row(0x1f, 'reasonString', 'string', ANSWERS),
  row(0x21, 'receiveMaximum', 'u16', ['connect', 'connack'], ReasonCode.protocolError),
  row(0x22, 'topicAliasMaximum', 'u16', ['connect', 'connack']),
  row(0x23, 'topicAlias', 'u16', PUBLISH, ReasonCode.topicAliasInvalid), // [MQTT-3.3.2-8]
  row(0x24, 'maximumQoS', 'flag', ['connack']),
  row(0x25, 'retainAvailable', 'flag', ['connack']),
  { ...row(0x26, 'userProperties', 'pair', EVERY), repeatable: EVERY },
  row(0x27, 'maximumPacketSize', 'u32', ['connect', 'connack'], ReasonCode.protocolError),
  row(0x28, 'wildcardSubscriptionAvailable', 'flag', ['connack']),
  row(0x29, 'subscriptionIdentifiersAvailable', 'flag', ['connack']),
  row(0x2a, 'sharedSubscriptionAvailable', 'flag', ['connack'])
];

/** One bit for each kind of packet. */
export const SET_BITS = Object.fromEntries(EVERY.map((set, index) => [set, 1 << index])) as Record<PropertySet, number>;

/** A row with bit masks instead of lists. `seen` is its bit in the mask of the properties found in a block. */
export interface IndexedProperty extends PacketProperty {
  readonly allowedIn: number;
  readonly repeatableIn: number;
  readonly seen: number;
}

const BIT_BY_NAME: ReadonlyMap<string, number> = new Map(PROPERTIES.map(({ name }, position) => [name, 1 << position]));

/**
 * A bit mask of the properties that an object has; bit n stands for row n of the table.
 *
 * Names that are not in the table are ignored. Iterating over the object is cheaper than over the 27 rows, as it has few properties.
 */
export function presentRows(properties: Properties): number {
  let mask = 0;
  for (const name in properties) {
    if (properties[name as keyof Properties] !== undefined) mask |= BIT_BY_NAME.get(name) ?? 0;
  }
  return mask;
}

/** The rows by property id. */
export const BY_ID: readonly (IndexedProperty | undefined)[] = indexById();

function indexById(): (IndexedProperty | undefined)[] {
  const index = new Array<IndexedProperty | undefined>(0x80).fill(undefined);
  PROPERTIES.forEach((it, position) => {
    index[it.id] = { ...it, allowedIn: bits(it.sets), repeatableIn: bits(it.repeatable), seen: 1 << position };
  });
  return index;
}

function bits(sets: readonly PropertySet[]): number {
  return sets.reduce((mask, set) => mask | SET_BITS[set], 0);
}

export function unknownProperty(id: number): ProtocolError {
  return new ProtocolError(
    ReasonCode.malformedPacket,
    `property 0x${id.toString(16).padStart(2, '0')}: unknown; omit it or correct the property length`
  );
}

const SET_NAMES: Record<PropertySet, string> = {
  connect: 'CONNECT',
  will: 'will properties',
  connack: 'CONNACK',
  publish: 'a PUBLISH from a client',
  publishFromServer: 'a PUBLISH from a server',
  ack: 'an acknowledgement',
  subscribe: 'SUBSCRIBE',
  suback: 'SUBACK',
  unsubscribe: 'UNSUBSCRIBE',
  unsuback: 'UNSUBACK',
  disconnect: 'a DISCONNECT from a client',
  disconnectFromServer: 'a DISCONNECT from a server',
  auth: 'AUTH'
};

export function misplacedProperty(name: string, set: PropertySet): ProtocolError {
  return new ProtocolError(ReasonCode.protocolError, `${name}: not allowed in ${SET_NAMES[set]}; omit it`);
}

export function duplicateProperty(name: string): ProtocolError {
  return new ProtocolError(ReasonCode.protocolError, `${name}: may occur only once; send it once`);
}

export function badFlag(name: string, value: number): ProtocolError {
  return new ProtocolError(ReasonCode.protocolError, `${name}: ${value} is not allowed; send 0 or 1`);
}

export function badResponseTopic(): ProtocolError {
  // [MQTT-3.3.2-14], [MQTT-4.7.3-1]
  return new ProtocolError(
    ReasonCode.protocolError,
    'responseTopic: must not be empty or contain "#" or "+"; send a topic name'
  );
}
