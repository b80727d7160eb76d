import { InvalidInput } from '../base/errors.ts';
import { checkTopicFilter, checkTopicName, parseSharedFilter } from '../topics/topic.ts';
import { FilterIndex } from '../topics/trie.ts';
import type { Cause } from './values/cause.ts';
import type { Metadata } from './values/tuple.ts';
import { StreamFailure, type StreamValueObject } from './values/values.ts';

/** A message on a topic of the type `memory`. */
export interface MemoryMessage {
  readonly topic: string;
  /** The rows of an output. They are shared and must not be changed. */
  readonly rows: readonly StreamValueObject[];
  readonly meta: Metadata;
  /** The column whose value identifies the rows of a lookup table; undefined: the first column of its key. */
  readonly keyField: string | undefined;
  /**
   * The column with the operation for a row: `insert`, `update`, `upsert` or `delete`; undefined: each row is inserted.
   */
  readonly rowkindField: string | undefined;
  /** The rules that caused it. */
  readonly cause: Cause | undefined;
}

/** Receives published messages. */
type MemoryListener = (message: MemoryMessage) => void;

/** Maximum depth of publishes that trigger each other. */
const MAX_DEPTH = 100;

/** Topics that connect sinks and sources of the type `memory`: rows are not encoded and do not leave the process. */
export class MemoryTopics {
  readonly #listeners = new FilterIndex<MemoryListener>();
  /** Depth of publishes in progress: rules publish the results of a row immediately. */
  #depth = 0;

  /**
   * Pass rows to all listeners of a topic, synchronously and in the order of calls.
   * @throws InvalidInput TOPIC_NAME_INVALID; StreamFailure for rules that form a cycle
   */
  publish(
    topic: string,
    rows: readonly StreamValueObject[],
    meta: Metadata,
    more: Partial<Pick<MemoryMessage, 'keyField' | 'rowkindField' | 'cause'>> = {}
  ): void {
    const fault = checkTopicName(topic);
    if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
    const { keyField, rowkindField, cause } = more;
    const message = { topic, rows, meta, keyField, rowkindField, cause };
    const found: MemoryListener[] = [];
    this.#listeners.match(topic, found);
    if (this.#depth >= MAX_DEPTH) {
      const text = `topic ${topic}: more than ${MAX_DEPTH} memory publishes trigger each other; the rules form a cycle`;
      throw new StreamFailure(text);
    }
    this.#depth++;
    try {
      for (const listener of found) listener(message);
    } finally {
      this.#depth--;
    }
  }

  /**
   * Subscribe a listener to the topics that match a filter, with the wildcards of MQTT.
   * @returns a function that ends the subscription
   * @throws InvalidInput TOPIC_FILTER_INVALID
   */
  subscribe(filter: string, listener: MemoryListener): () => void {
    const isShared = parseSharedFilter(filter) !== undefined;
    const fault = isShared
      ? `topic filter "${filter}": memory topics do not support share groups`
      : checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    const own: MemoryListener = (message) => listener(message); // one listener may subscribe to several filters
    this.#listeners.add(filter, own);
    return () => {
      this.#listeners.delete(filter, own);
    };
  }
}
