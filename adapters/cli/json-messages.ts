// Messages as lines of JSON: `sub --json` prints them, and `pub --json` reads them, so that one can be piped into the
// other. Fields that belong to a delivery (`dup`, the subscription identifiers, the topic alias) are read and not sent.

import { isPlainObject, readOptions } from '../../lib/adapter.ts';
import {
  checkTopicName,
  InvalidInput,
  type MessageInput,
  type Properties,
  type QoS,
  type ReceivedMessage
} from '../../lib/index.ts';
import { flag } from './flags.ts';

/** Values for the fields that a line leaves out. */
export interface MessageDefaults {
  readonly topic: string | undefined;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly properties: Properties | undefined;
}

/** A message to publish, and the line that it was read from. */
export interface PlacedMessage extends MessageInput {
  /** `line 3`; undefined if the message was not read from a line. */
  readonly place?: string;
}

const ANY_LENGTH = { max: Number.MAX_SAFE_INTEGER };

/** The fields of a line. */
export const MESSAGE_FIELDS = {
  topic: flag('string', undefined as string | undefined, 'the topic name; default: `-t`', { check: checkTopic }),
  payload: flag('any', undefined as unknown, 'a string, or any other JSON value except null, whose text is sent'),
  payloadBase64: flag('string', undefined as string | undefined, 'a payload that is not text', ANY_LENGTH),
  qos: flag('integer', undefined as number | undefined, '0, 1 or 2; default: `-q`', { max: 2 }),
  retain: flag('boolean', undefined as boolean | undefined, 'default: `-r`'),
  dup: flag('any', undefined as unknown, 'is ignored'),
  properties: flag('object', {} as object, 'an object with the properties of MQTT 5.0')
};

/** The properties of a line. */
export const MESSAGE_PROPERTIES = {
  payloadFormatIndicator: flag('integer', undefined as number | undefined, '0 or 1', { max: 1 }),
  messageExpiryInterval: flag('integer', undefined as number | undefined, 'seconds', { max: 0xffff_ffff }),
  contentType: flag('string', undefined as string | undefined, 'a string'),
  responseTopic: flag('string', undefined as string | undefined, 'a topic name', { check: checkTopic }),
  correlationData: flag('string', undefined as string | undefined, 'bytes in Base64'),
  userProperties: flag('array', undefined as unknown, 'a list of `[NAME, VALUE]`', { check: checkPairs }),
  subscriptionIdentifier: flag('any', undefined as unknown, 'is ignored'),
  topicAlias: flag('any', undefined as unknown, 'is ignored')
};

/** A received message as a JSON object. The payload is a string if it is valid UTF-8, otherwise Base64. */
export function messageObject({ topic, payload, qos, retain, dup, properties }: ReceivedMessage): object {
  const text = payload.toString('utf8');
  const body = Buffer.from(text).equals(payload) ? { payload: text } : { payloadBase64: payload.toString('base64') };
  const { correlationData, ...rest } = properties;
  const correlation = correlationData === undefined ? {} : { correlationData: correlationData.toString('base64') };
  return { topic, ...body, qos, retain, dup, properties: { ...rest, ...correlation } };
}

/**
 * Read a message from a JSON object.
 * @param place its place, such as `line 3`, which begins the messages of errors
 * @throws InvalidInput MESSAGE_INVALID, OPTION_UNKNOWN with a suggestion, OPTION_INVALID
 */
export function messageFrom(text: string, place: string, defaults: MessageDefaults): PlacedMessage {
  const given = readOptions(MESSAGE_FIELDS, objectFrom(text, place), place);
  const topic = given.topic ?? defaults.topic;
  if (topic === undefined) throw refusal(place, 'the field "topic" is missing, and there is no -t TOPIC');
  const properties = { ...defaults.properties, ...propertiesFrom(given.properties, `${place}.properties`) };
  return {
    place,
    topic,
    payload: payloadFrom(given, place),
    qos: (given.qos as QoS | undefined) ?? defaults.qos,
    retain: given.retain ?? defaults.retain,
    ...(Object.keys(properties).length === 0 ? {} : { properties })
  };
}

/** The object of a JSON text. @throws InvalidInput MESSAGE_INVALID */
function objectFrom(text: string, place: string): object {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw refusal(place, `not valid JSON: ${(error as Error).message}`);
  }
  if (!isPlainObject(given)) throw refusal(place, 'expected an object such as {"topic":"a","payload":"b"}');
  return given;
}

function payloadFrom(
  { payload, payloadBase64 }: { readonly payload: unknown; readonly payloadBase64: string | undefined },
  place: string
): Buffer | string {
  if (payload !== undefined && payloadBase64 !== undefined)
    throw refusal(place, 'it has both "payload" and "payloadBase64"; remove one of them');
  if (payloadBase64 !== undefined) return bytesFrom(payloadBase64, `${place}.payloadBase64`);
  if (payload === undefined || payload === null)
    throw refusal(place, 'the field "payload" is missing; "" is an empty payload');
  return typeof payload === 'string' ? payload : JSON.stringify(payload);
}

function propertiesFrom(given: object, place: string): Properties {
  const { subscriptionIdentifier: _, topicAlias: __, ...sent } = readOptions(MESSAGE_PROPERTIES, given, place);
  const { correlationData } = sent;
  const bytes =
    correlationData === undefined ? {} : { correlationData: bytesFrom(correlationData, `${place}.correlationData`) };
  const found = Object.entries({ ...sent, ...bytes }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(found) as Properties;
}

function bytesFrom(text: string, field: string): Buffer {
  if (text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return Buffer.from(text, 'base64');
  throw new InvalidInput('MESSAGE_INVALID', field, 'Base64', text);
}

function checkTopic(value: unknown, field: string): unknown {
  const fault = checkTopicName(value as string);
  if (fault !== undefined)
    throw new InvalidInput('TOPIC_NAME_INVALID', field, 'a topic name', value, `${field}: ${fault}`);
  return value;
}

function checkPairs(value: unknown, field: string): unknown {
  const isPair = (one: unknown) => Array.isArray(one) && one.length === 2 && one.every((it) => typeof it === 'string');
  if (!Array.isArray(value) || !value.every(isPair))
    throw new InvalidInput('MESSAGE_INVALID', field, 'a list of [NAME, VALUE]', value);
  return value;
}

function refusal(place: string, why: string): InvalidInput {
  return new InvalidInput('MESSAGE_INVALID', place, 'a message', undefined, `${place}: ${why}`);
}
