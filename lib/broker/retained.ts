import { InvalidInput } from '../base/errors.ts';
import type { Message } from '../packets/message.ts';
import type { RetainedMessages } from '../retained/retained-messages.ts';
import { checkTopicName } from '../topics/topic.ts';
import { checkFilter } from './app-subscriptions.ts';

/** The retained messages of the broker: `broker.retained`. To retain or delete one, publish with `retain` (with an empty payload: delete). */
export class Retained {
  readonly #messages: RetainedMessages;

  /** @internal */
  constructor(messages: RetainedMessages) {
    this.#messages = messages;
  }

  /** Number of retained messages, including those of `$SYS`. */
  get count(): number {
    return this.#messages.count;
  }

  /** The retained message of a topic name; undefined if there is none. @throws InvalidInput TOPIC_NAME_INVALID */
  get(topic: string): Message | undefined {
    const fault = typeof topic === 'string' ? checkTopicName(topic) : 'the topic name must be a string';
    if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
    return this.#messages.match(topic)[0]?.message;
  }

  /** The retained messages that match a topic filter or topic name, oldest first. @throws InvalidInput TOPIC_FILTER_INVALID */
  match(filter: string): AsyncIterableIterator<Message> {
    checkFilter(filter);
    return this.#iterate(filter);
  }

  async *#iterate(filter: string): AsyncIterableIterator<Message> {
    for (const entry of this.#messages.match(filter)) if (entry.isLive) yield entry.message;
  }
}
