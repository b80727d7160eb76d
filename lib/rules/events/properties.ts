import type { Properties, UserProperty } from '../../packets/types.ts';
import { setKey, type Value, type ValueObject } from '../../sql/values.ts';
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
 * Properties as the value of a column, by their documented names. User properties are there twice: as an object, in which the last one of a
 * name wins, and as a list of pairs.
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

/** A list of subscription identifiers is a number if it has one, as in SUBSCRIBE. */
function columnValue(value: string | number | Buffer | readonly number[]): Value {
  if (typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return bytesValue(value);
  return value.length === 1 ? value[0] : value;
}
