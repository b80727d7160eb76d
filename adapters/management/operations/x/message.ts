import * as Type from 'typebox';
import type { Message } from '../../../../lib/index.ts';
import { isUtf8 } from '../../../rest/index.ts';

/** The encoding of a payload. */
export const ENCODING = Type.Optional(
  Type.Enum(['plain', 'base64'], {
    description: 'plain or base64. Default: plain if the payload is UTF-8, otherwise base64'
  })
);

/** The fields of a message with its payload. */
export const MESSAGE_FIELDS = {
  topic: Type.String({ description: 'The topic' }),
  qos: Type.Integer({ description: 'The QoS' }),
  retain: Type.Boolean({ description: 'True if it was published with the RETAIN flag' }),
  at: Type.Integer({ description: 'When the broker accepted it, in milliseconds since 1970' }),
  from_clientid: Type.Optional(
    Type.String({ description: 'Client id of the publisher; absent: the app or the broker published it' })
  ),
  from_username: Type.Optional(Type.String({ description: 'User name of the publisher' })),
  payload_size: Type.Integer({ description: 'Size of the payload in bytes' }),
  payload: Type.String({ description: 'The payload' }),
  encoding: Type.Enum(['plain', 'base64'], { description: 'The encoding of the payload' }),
  properties: Type.Object(
    {
      payload_format_indicator: Type.Optional(Type.Integer({ description: '1: the payload is UTF-8' })),
      message_expiry_interval: Type.Optional(Type.Integer({ description: 'In seconds, as published' })),
      content_type: Type.Optional(Type.String({ description: 'The kind of payload' })),
      response_topic: Type.Optional(Type.String({ description: 'The topic for a response' })),
      correlation_data: Type.Optional(Type.String({ description: 'The identification of the request, as Base64' })),
      user_properties: Type.Optional(
        Type.Array(
          Type.Object({
            name: Type.String({ description: 'The name' }),
            value: Type.String({ description: 'The value' })
          })
        )
      )
    },
    { description: 'The properties of MQTT 5.0' }
  )
};

/** Write a message. @param encoding default: `plain` if the payload is UTF-8, otherwise `base64` */
export function shownMessage(message: Message, encoding?: 'plain' | 'base64') {
  const { topic, qos, retain, timestamp, clientId, username, payload } = message;
  const written = encoding ?? (isUtf8(payload) ? 'plain' : 'base64');
  return {
    topic,
    qos,
    retain,
    at: timestamp,
    ...(clientId === '' ? {} : { from_clientid: clientId }),
    ...(username === undefined ? {} : { from_username: username }),
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
