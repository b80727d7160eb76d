import { ruleBehind } from '../../../../lib/adapter.ts';
import type { Message } from '../../../../lib/index.ts';
import { isUtf8 } from '../../../rest/index.ts';
import { flag, integer, listOf, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { shownRule } from '../../streams/shown-rule.ts';

/** The encoding of a payload. */
export const ENCODING = optional(
  oneOf(['plain', 'base64'], 'plain or base64. Default: plain if the payload is UTF-8, otherwise base64')
);

/** The fields of a message with its payload. */
export const MESSAGE_FIELDS = {
  topic: text('The topic'),
  qos: integer('The QoS'),
  retain: flag('True if it was published with the RETAIN flag'),
  at: integer('When the broker accepted it, in milliseconds since 1970'),
  from_clientid: optional(text('Client id of the publisher; absent: the app or the broker published it')),
  from_username: optional(text('User name of the publisher')),
  from_rule: optional(
    objectOf(
      {
        kind: oneOf(['rule', 'stream_rule'], 'rule: over events of the broker'),
        id: text('The id of the rule')
      },
      { description: 'The rule that published it; absent: none, or the broker has been started since' }
    )
  ),
  payload_size: integer('Size of the payload in bytes'),
  payload: text('The payload'),
  encoding: oneOf(['plain', 'base64'], 'The encoding of the payload'),
  properties: objectOf(
    {
      payload_format_indicator: optional(integer('1: the payload is UTF-8')),
      message_expiry_interval: optional(integer('In seconds, as published')),
      content_type: optional(text('The kind of payload')),
      response_topic: optional(text('The topic for a response')),
      correlation_data: optional(text('The identification of the request, as Base64')),
      user_properties: optional(
        listOf(
          objectOf({
            name: text('The name'),
            value: text('The value')
          }),
          'The user properties, in their order'
        )
      )
    },
    { description: 'The properties of MQTT 5.0' }
  )
};

/** Write a message. @param encoding default: `plain` if the payload is UTF-8, otherwise `base64` */
export function shownMessage(message: Message, encoding?: 'plain' | 'base64') {
  const { topic, qos, retain, timestamp, clientId, username, payload } = message;
  const rule = ruleBehind(message);
  const written = encoding ?? (isUtf8(payload) ? 'plain' : 'base64');
  return {
    topic,
    qos,
    retain,
    at: timestamp,
    ...(clientId === '' ? {} : { from_clientid: clientId }),
    ...(username === undefined ? {} : { from_username: username }),
    ...shownRule(rule),
    payload_size: payload.length,
    payload: payload.toString(written === 'plain' ? 'utf8' : 'base64'),
    encoding: written,
    properties: shownProperties(message)
  };
}

function shownProperties({ properties }: Message) {
  // undefined fields are not written
  return {
    payload_format_indicator: properties.payloadFormatIndicator,
    message_expiry_interval: properties.messageExpiryInterval,
    content_type: properties.contentType,
    response_topic: properties.responseTopic,
    correlation_data: properties.correlationData?.toString('base64'),
    user_properties: properties.userProperties?.map(([name, value]) => ({ name, value }))
  };
}
