import { InvalidInput } from '../base/errors.ts';
import { checkTopicFilter, checkTopicName, parseSharedFilter } from '../topics/topic.ts';
import { FilterIndex } from '../topics/trie.ts';
import type { Cause } from './values/cause.ts';
import type { Metadata } from './values/tuple.ts';
import { StreamFailure, type ValueObject } from './values/values.ts';

/** What is published to a topic of the memory. */
export interface MemoryMessage {
  readonly topic: string;
  /** The rows of an output, as they are: nobody changes them. */
  readonly rows: readonly ValueObject[];
  readonly meta: Metadata;
  /** The column by whose value a lookup table keeps its rows; undefined: the first column of its key. */
  readonly keyField: string | undefined;
  /** The column that says what happens to a row: `insert`, `update`, `upsert` or `delete`; undefined: each row is inserted. */
  readonly rowkindField: string | undefined;
  /** What has led to it. */
  readonly cause: Cause | undefined;
}

/** Takes what is published. */
type MemoryListener = (message: MemoryMessage) => void;

/** Most publishes that follow from each other. */
const MOST_DEPTH = 100;

/** The topics that connect sinks and sources of the type `memory`: nothing is encoded, and nothing leaves the process. */
export class MemoryTopics {
  readonly #listeners = new FilterIndex<MemoryListener>();
  /** Publishes that are in progress: rules send at once what they make of a row. */
  #depth = 0;

  /**
   * Let all listeners of a topic have rows, at once and in the order of calls.
   * @throws InvalidInput TOPIC_NAME_INVALID; StreamFailure for rules that form a ring
   */
  publish(
    topic: string,
    rows: readonly ValueObject[],
    meta: Metadata,
    more: Partial<Pick<MemoryMessage, 'keyField' | 'rowkindField' | 'cause'>> = {}
  ): void {
    const fault = checkTopicName(topic);
    if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
    const { keyField, rowkindField, cause } = more;
    const message = { topic, rows, meta, keyField, rowkindField, cause };
    const found: MemoryListener[] = [];
    this.#listeners.match(topic, found);
    if (this.#depth >= MOST_DEPTH) {
      const text = `topic ${topic}: more than ${MOST_DEPTH} publishes of the memory follow from each other; rules form a ring`;
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
   * Let a listener have what is published to topics that match a filter, with the wildcards of MQTT.
   * @returns a function that ends it
   * @throws InvalidInput TOPIC_FILTER_INVALID
   */
  subscribe(filter: string, listener: MemoryListener): () => void {
    const isShared = parseSharedFilter(filter) !== undefined;
    const fault = isShared
      ? `topic filter "${filter}": topics of the memory have no share groups`
      : checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    const own: MemoryListener = (message) => listener(message); // the same listener may have several filters
    this.#listeners.add(filter, own);
    return () => {
      this.#listeners.delete(filter, own);
    };
  }
}
