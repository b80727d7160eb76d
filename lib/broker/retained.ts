import { InvalidInput } from '../base/errors.ts';
import type { Message } from '../packets/message.ts';
import type { RetainedMessages } from '../retained/retained-messages.ts';
import type { Directory, Page, RetainedRecord } from '../routing/directory.ts';
import type { RetainedQuery } from '../routing/directory-queries.ts';
import { checkTopicName } from '../topics/topic.ts';
import { checkFilter } from './app-subscriptions.ts';

/** The parts of the broker that `Retained` uses. */
interface RetainedFacetHost {
  readonly retainer: { readonly messages: RetainedMessages };
  readonly directory: Directory;
}

/** The retained messages of the broker: `broker.retained`. To retain or delete one, publish with `retain` (with an empty payload: delete). */
export class Retained {
  readonly #host: RetainedFacetHost;

  /** @internal */
  constructor(host: RetainedFacetHost) {
    this.#host = host;
  }

  /** Number of retained messages, including those of `$SYS`. */
  get count(): number {
    return this.#host.retainer.messages.count;
  }

  /** The retained message of a topic name; undefined if there is none. @throws InvalidInput TOPIC_NAME_INVALID */
  get(topic: string): Message | undefined {
    const fault = typeof topic === 'string' ? checkTopicName(topic) : 'the topic name must be a string';
    if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
    return this.#host.retainer.messages.lookUp(topic)?.message;
  }

  /** A page of the list of retained messages, without their payloads: `broker.directory.retained`. */
  list(query?: RetainedQuery): Promise<Page<RetainedRecord>> {
    return this.#host.directory.retained(query);
  }

  /** The retained messages that match a topic filter or topic name, oldest first. @throws InvalidInput TOPIC_FILTER_INVALID */
  match(filter: string): AsyncIterableIterator<Message> {
    checkFilter(filter);
    return this.#iterate(filter);
  }

  async *#iterate(filter: string): AsyncIterableIterator<Message> {
    for (const entry of this.#host.retainer.messages.match(filter)) if (entry.isLive) yield entry.message;
  }
}
