import { InvalidInput } from '../../base/errors.ts';
import type { Message } from '../../packets/message.ts';
import type { Page, RetainedRecord } from '../../routing/directory.ts';
import type { RetainedQuery } from '../../routing/directory-queries.ts';
import { commitChange } from '../../store/after-commit.ts';
import { checkTopicName, matches } from '../../topics/topic.ts';
import type { Engine } from '../engine.ts';
import { checkFilter } from './app-subscriptions.ts';

/** Number of topics that are compared with a filter in one turn. */
const TOPICS_AT_ONCE = 2_000;
/** Number of steps of a search in one turn; see `walkRetained`. */
const STEPS_AT_ONCE = 8;
/** Number of messages that are deleted in one turn. */
const DELETIONS_AT_ONCE = 500;

/** The retained messages of the broker: `broker.retained`. To retain one, publish with `retain`. */
export class Retained {
  readonly #engine: Engine;

  /** @internal */
  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Number of retained messages, including those of `$SYS`. */
  get count(): number {
    return this.#engine.retainer.messages.count;
  }

  /** The retained message of a topic name; undefined if there is none. @throws InvalidInput TOPIC_NAME_INVALID */
  get(topic: string): Message | undefined {
    checkName(topic);
    return this.#engine.retainer.messages.lookUp(topic)?.message;
  }

  /**
   * Delete the retained message of a topic name. Unlike a retained message with an empty payload, this is not a PUBLISH: no hook runs, and
   * subscribers do not receive anything.
   * @returns whether there was one; the promise resolves when the deletion is persisted, if it has to be
   * @throws InvalidInput TOPIC_NAME_INVALID; BrokerError STORE_FAILED, and the message is retained again
   */
  async delete(topic: string): Promise<boolean> {
    checkName(topic);
    return (await this.#delete([topic])) === 1;
  }

  /**
   * Delete the retained messages that match a topic filter, as `delete` does, a few in each turn. Messages that are retained in the
   * meantime stay.
   * @returns the number of deleted messages; the promise resolves when the deletions are persisted, if they have to be
   * @throws InvalidInput TOPIC_FILTER_INVALID; BrokerError STORE_FAILED, and the last few messages are retained again
   */
  async deleteMatching(filter: string): Promise<number> {
    checkFilter(filter);
    const { retainer, services } = this.#engine;
    const { next } = retainer.messages;
    let count = 0;
    let seen = 0;
    let found: string[] = [];
    const remove = async () => {
      const topics = found;
      found = [];
      count += await this.#delete(topics);
    };
    for (const { topic, seq } of retainer.messages.entries()) {
      if (seq < next && matches(filter, topic)) found.push(topic);
      if (found.length === DELETIONS_AT_ONCE) await remove();
      if (++seen % TOPICS_AT_ONCE === 0) await services.pause();
    }
    await remove();
    return count;
  }

  /** @returns the number of topics that had a retained message */
  #delete(topics: readonly string[]): Promise<number> {
    const { ledger, retainer } = this.#engine;
    return commitChange(ledger, () => {
      if (ledger?.isFailed) throw ledger.refusal();
      return topics.filter((topic) => retainer.delete(topic)).length;
    });
  }

  /** A page of the list of retained messages, without their payloads: `broker.directory.retained`. */
  list(query?: RetainedQuery): Promise<Page<RetainedRecord>> {
    return this.#engine.directory.retained(query);
  }

  /**
   * The retained messages that match a topic filter or topic name, oldest first, each topic once. They are searched in several turns. A
   * message that is replaced or deleted in the meantime is left out.
   * @throws InvalidInput TOPIC_FILTER_INVALID
   */
  match(filter: string): AsyncIterableIterator<Message> {
    checkFilter(filter);
    return this.#iterate(filter);
  }

  async *#iterate(filter: string): AsyncIterableIterator<Message> {
    let steps = 0;
    for (const entry of this.#engine.retainer.messages.walk([filter])) {
      if (entry?.isLive) yield entry.message;
      else if (++steps % STEPS_AT_ONCE === 0) await this.#engine.services.pause();
    }
  }
}

/** @throws InvalidInput TOPIC_NAME_INVALID */
function checkName(topic: unknown): void {
  const fault = typeof topic === 'string' ? checkTopicName(topic) : 'the topic name must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
}
