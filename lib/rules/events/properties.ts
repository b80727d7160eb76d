import type { MessageInput } from '../../packets/message.ts';
import type { Properties, UserProperty } from '../../packets/types.ts';
import { isList, isObject, setKey, type Value, type ValueObject } from '../../sql/values.ts';
import { bytesValue } from './column.ts';

/** The names of properties in columns. */
const NAMES: Readonly<Record<Exclude<keyof Properties, 'userProperties'>, string>> = {
  payloadFormatIndicator: 'Payload-Format-Indicator',
  messageExpiryInterval: 'Message-Expiry-Interval',
  contentType: 'Content-Type',
  responseTopic: 'Response-Topic',
  correlationData: 'Correlation-Data',
  subscriptionIdentifier: 'Subscription-Identifier',
  sessionExpiryInterval: 'Session-Expiry-Interval',
  assignedClientIdentifier: 'Assigned-Client-Identifier',
  serverKeepAlive: 'Server-Keep-Alive',
  authenticationMethod: 'Authentication-Method',
  authenticationData: 'Authentication-Data',
  requestProblemInformation: 'Request-Problem-Information',
  willDelayInterval: 'Will-Delay-Interval',
  requestResponseInformation: 'Request-Response-Information',
  responseInformation: 'Response-Information',
  serverReference: 'Server-Reference',
  reasonString: 'Reason-String',
  receiveMaximum: 'Receive-Maximum',
  topicAliasMaximum: 'Topic-Alias-Maximum',
  topicAlias: 'Topic-Alias',
  maximumQoS: 'Maximum-QoS',
  retainAvailable: 'Retain-Available',
  maximumPacketSize: 'Maximum-Packet-Size',
  wildcardSubscriptionAvailable: 'Wildcard-Subscription-Available',
  subscriptionIdentifiersAvailable: 'Subscription-Identifier-Available',
  sharedSubscriptionAvailable: 'Shared-Subscription-Available'
};

/**
 * Convert properties to the value of a column, with their documented names. User properties appear twice: as an object,
 * in which the last one of a name is used, and as a list of pairs.
 */
export function propertiesColumn({ userProperties = [], ...others }: Properties): ValueObject {
  const column: Record<string, Value> = {};
  for (const [name, value] of Object.entries(others))
    if (value !== undefined) column[NAMES[name as keyof typeof NAMES]] = columnValue(value);
  addUserProperties(column, userProperties);
  return column;
}

function addUserProperties(column: Record<string, Value>, pairs: readonly UserProperty[]): void {
  if (pairs.length === 0) return;
  const object: Record<string, Value> = {};
  for (const [key, value] of pairs) setKey(object, key, value);
  column['User-Property'] = object;
  column['User-Property-Pairs'] = pairs.map(([key, value]) => ({ key, value }));
}

/** A single subscription identifier is a number instead of a list, as in SUBSCRIBE. */
function columnValue(value: string | number | Buffer | readonly number[]): Value {
  if (typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return bytesValue(value);
  return value.length === 1 ? value[0] : value;
}

/** The properties that are forwarded with a message, from their column: the inverse of `propertiesColumn`. */
export function messageProperties(column: Value): NonNullable<MessageInput['properties']> {
  if (!isObject(column)) return {};
  const text = (name: string) => ofType(column[name], 'string') as string | undefined;
  const number = (name: string) => ofType(column[name], 'number') as number | undefined;
  const correlation = column['Correlation-Data'];
  const pairs = column['User-Property-Pairs'];
  const properties: NonNullable<MessageInput['properties']> = {
    payloadFormatIndicator: number('Payload-Format-Indicator') as 0 | 1 | undefined,
    messageExpiryInterval: number('Message-Expiry-Interval'),
    contentType: text('Content-Type'),
    responseTopic: text('Response-Topic'),
    correlationData:
      typeof correlation === 'string' || correlation instanceof Uint8Array ? Buffer.from(correlation) : undefined,
    userProperties: isList(pairs) ? pairs.map(pairOf) : undefined
  };
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined));
}

function ofType(value: Value, type: 'string' | 'number'): Value {
  return typeof value === type ? value : undefined;
}

function pairOf(pair: Value): UserProperty {
  const { key, value } = pair as { readonly key: string; readonly value: string };
  return [key, value];
}
