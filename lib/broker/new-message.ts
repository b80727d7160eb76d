import { InvalidInput } from '../base/errors.ts';
import type { TimeReading } from '../base/time-reading.ts';
import { Message, type MessageInput } from '../packets/message.ts';
import type { SessionClient } from '../session/session-client.ts';
import { checkTopicName } from '../topics/topic.ts';

/**
 * Create a message that is accepted now.
 * @param isSystem it is a message of the broker itself
 * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID
 */
export function newMessage(
  input: MessageInput,
  origin: SessionClient | undefined,
  time: TimeReading,
  isSystem = false
): Message {
  const fault = typeof input.topic === 'string' ? checkTopicName(input.topic) : 'the topic must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', input.topic, fault);
  time.read();
  return Message.from(input, origin, time.nowMs, time.wallMs, isSystem);
}

/** A copy of a message with another topic and the current time. */
export function retopic(message: Message, topic: string, time: TimeReading): Message {
  const { payload, qos, retain, origin } = message;
  const properties = boundProperties(message);
  return Message.from({ topic, payload, qos, retain, properties }, origin, time.nowMs, time.wallMs);
}

/** The properties of a message, with the expiry interval that the broker has set. Packets of MQTT 3.x do not contain it. */
export function boundProperties({ properties, expiryInterval }: Message): MessageInput['properties'] {
  return expiryInterval < 0 ? properties : { ...properties, messageExpiryInterval: expiryInterval };
}
