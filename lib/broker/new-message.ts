import { InvalidInput, show } from '../base/errors.ts';
import type { TimeReading } from '../base/time-reading.ts';
import { changedMessage, Message, type MessageInput, type Publisher } from '../packets/message.ts';
import { NamedPublisher } from '../packets/named-publisher.ts';
import type { ClientInfo } from '../records/client.ts';
import { checkTopicName } from '../topics/topic.ts';

/**
 * Create a message that is accepted now.
 * @param isSystem it is a message of the broker
 * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID
 */
export function newMessage(
  input: MessageInput,
  origin: Publisher | undefined,
  time: TimeReading,
  isSystem = false
): Message {
  checkTopic(input.topic);
  time.read();
  return Message.from(input, origin, time.nowMs, time.wallMs, isSystem);
}

/**
 * The client that published a message, as hooks and events receive it; undefined if the app did. If its session has ended, only its names
 * are known.
 */
export function publisherOf({ origin }: Message): ClientInfo | undefined {
  return origin instanceof NamedPublisher ? undefined : (origin as ClientInfo | undefined);
}

/** @throws InvalidInput TOPIC_NAME_INVALID */
function checkTopic(topic: unknown): void {
  const fault = typeof topic === 'string' ? checkTopicName(topic) : 'the topic must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
}

/**
 * The message that a deliver hook has changed.
 * @param given fields that it does not contain are unchanged
 * @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID
 */
export function changedForReceiver(message: Message, given: Partial<MessageInput>, mountpoint: string): Message {
  const { topic = message.topic, payload = message.payload, qos = message.qos, retain = message.retain } = given;
  checkTopic(topic);
  if (!topic.startsWith(mountpoint) || topic === mountpoint) {
    const expected = `a topic that begins with the mount point ${show(mountpoint)} of the client`;
    throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', expected, topic);
  }
  if (qos > message.qos)
    throw new InvalidInput('MESSAGE_INVALID', 'qos', `at most ${message.qos}, the QoS of the message`, qos);
  const properties = given.properties ?? boundProperties(message);
  return changedMessage(message, { topic, payload, qos, retain, properties });
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
