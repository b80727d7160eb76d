import { randomBytes } from 'node:crypto';
import {
  type ClientOptions,
  InvalidInput,
  type Properties,
  type ProtocolVersion,
  type QoS,
  type UserProperty,
  type WillInput
} from '../../lib/index.ts';
import type { Endpoint } from './endpoint.ts';
import { type FlagValues, flag, listFlag, timeFlag } from './flags.ts';

const QOS = ['0', '1', '2'];

/** The flags that describe the session and the will of a client. The letters are those of mosquitto_pub. */
export const SESSION_FLAGS = {
  id: flag('string', undefined as string | undefined, 'client id; by default the broker assigns one', {
    short: 'i',
    value: 'ID'
  }),
  mqttVersion: flag('object', 5 as ProtocolVersion, 'MQTT version: 3.1, 3.1.1 or 5', {
    short: 'V',
    value: 'VERSION',
    check: checkVersion,
    suggested: ['3.1', '3.1.1', '5'],
    aliases: ['protocolVersion']
  }),
  keepalive: flag('duration', 60, 'time without a packet after which a PINGREQ is sent; 0: never', {
    short: 'k',
    value: 'SECONDS',
    unit: 's',
    max: 65_535
  }),
  willTopic: flag('string', undefined as string | undefined, 'topic of the will', { value: 'TOPIC' }),
  willPayload: flag('string', undefined as string | undefined, 'payload of the will', { value: 'TEXT' }),
  willQos: flag('integer', 0, 'QoS of the will', { value: 'QOS', max: 2, suggested: QOS }),
  willRetain: flag('boolean', false, 'publish the will as a retained message'),
  connectTimeout: timeFlag(30_000, 'maximum time for connecting')
};

/** Create a flag for a QoS. */
export function qosFlag(about: string) {
  return flag('integer', 0, about, { short: 'q', value: 'QOS', max: 2, suggested: QOS });
}

/** The flags for the MQTT 5.0 properties of a message. */
export const MESSAGE_PROPERTY_FLAGS = {
  contentType: flag('string', undefined as string | undefined, 'Content Type', { value: 'TEXT' }),
  responseTopic: flag('string', undefined as string | undefined, 'Response Topic', { value: 'TOPIC' }),
  correlationData: flag('string', undefined as string | undefined, 'Correlation Data', { value: 'TEXT' }),
  messageExpiry: flag('duration', undefined as number | undefined, 'Message Expiry Interval', {
    value: 'SECONDS',
    unit: 's',
    max: 0xffff_ffff
  }),
  userProperty: listFlag('User Property; may be given several times', { value: 'NAME=VALUE' })
};

/** The client options that the flags describe. */
export function clientOptions(flags: FlagValues<typeof SESSION_FLAGS>, endpoint: Endpoint): ClientOptions {
  return {
    clientId: flags.id ?? (flags.mqttVersion === 3 ? ownId() : undefined),
    protocolVersion: flags.mqttVersion,
    keepalive: flags.keepalive,
    username: endpoint.username,
    password: endpoint.password,
    will: will(flags)
  };
}

/** Generate a client id: in MQTT 3.1 the broker does not assign client ids, and they have at most 23 characters. */
function ownId(): string {
  return `embermq-${randomBytes(7).toString('hex')}`;
}

function will({
  willTopic,
  willPayload,
  willQos,
  willRetain
}: FlagValues<typeof SESSION_FLAGS>): WillInput | undefined {
  if (willTopic !== undefined)
    return { topic: willTopic, payload: willPayload ?? '', qos: willQos as QoS, retain: willRetain };
  if (willPayload === undefined && willQos === 0 && !willRetain) return undefined;
  throw new InvalidInput('OPTION_MISSING', 'willTopic', 'a topic', undefined, 'a will needs --will-topic');
}

/**
 * The properties of a message that the flags describe; undefined if there are none.
 * @throws InvalidInput OPTION_INVALID for MQTT versions without properties
 */
export function messageProperties(
  flags: FlagValues<typeof MESSAGE_PROPERTY_FLAGS>,
  version: ProtocolVersion
): Properties | undefined {
  const properties: Properties = {};
  if (flags.contentType !== undefined) properties.contentType = flags.contentType;
  if (flags.responseTopic !== undefined) properties.responseTopic = flags.responseTopic;
  if (flags.correlationData !== undefined) properties.correlationData = Buffer.from(flags.correlationData);
  if (flags.messageExpiry !== undefined) properties.messageExpiryInterval = flags.messageExpiry;
  if (flags.userProperty.length > 0) properties.userProperties = flags.userProperty.map(userProperty);
  if (Object.keys(properties).length === 0) return undefined;
  if (version !== 5) {
    throw new InvalidInput('OPTION_INVALID', 'mqttVersion', '5', version, 'message properties need MQTT 5.0 (-V 5)');
  }
  return properties;
}

function userProperty(text: string): UserProperty {
  const at = text.indexOf('=');
  if (at < 0) throw new InvalidInput('OPTION_INVALID', '--user-property', 'NAME=VALUE', text);
  return [text.slice(0, at), text.slice(at + 1)];
}

const VERSIONS: Readonly<Record<string, ProtocolVersion>> = {
  '3': 3,
  '31': 3,
  '3.1': 3,
  mqttv31: 3,
  '4': 4,
  '311': 4,
  '3.1.1': 4,
  mqttv311: 4,
  '5': 5,
  '5.0': 5,
  mqttv5: 5
};

function checkVersion(value: unknown, field: string): ProtocolVersion {
  if (Object.hasOwn(VERSIONS, String(value))) return VERSIONS[String(value)];
  throw new InvalidInput('OPTION_INVALID', field, '3.1, 3.1.1 or 5', value);
}
