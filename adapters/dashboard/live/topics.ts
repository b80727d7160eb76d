// Rates and last values of the rows in view. Each message of a watched topic is counted; the beginning of its payload is
// copied into a buffer of the row, because a read chunk must not be kept, and nothing is allocated for a message.

import { type Broker, type BrokerEvents, checkTopicFilter } from '../../../lib/index.ts';
import type { WatchContext } from './live-kind.ts';
import { type LiveRow, liveRows } from './live-rows.ts';
import { textsIn, wrong } from './params.ts';
import { Rate } from './rate.ts';

/** Maximum number of topics and topic filters of a watch. */
const MAX_TOPICS = 200;
/** Maximum number of topics and topic filters of all watches of the console: each can be a listener for the same message. */
const MAX_ROWS = 1_000;
/** Bytes of a payload that are shown. */
const SHOWN_BYTES = 1_024;
/** Characters of a topic that are shown for a filter. */
const SHOWN_CHARACTERS = 1_024;
/** Maximum number of topics that are named while the same rows are in view, and of their characters. */
const MAX_NEW = 1_000;
const MAX_NEW_CHARACTERS = 100_000;

/** The part of a valid shared filter before its topic filter. */
const SHARED = /^\$(?:share\/[^/]+|queue)\//;

type Published = BrokerEvents['message.publish'];

/**
 * The topics of messages that the rows in view have received, each named once, so that the page can mark them. If there are more than fit, the others
 * are named when other rows come into view. A topic that is known costs one look-up for a message.
 */
class NewTopics {
  readonly #known = new Set<string>();
  #left = MAX_NEW_CHARACTERS;
  #topics: string[] = [];

  add(topic: string): void {
    if (this.#left < topic.length || this.#known.size >= MAX_NEW || this.#known.has(topic)) return;
    this.#left -= topic.length;
    this.#known.add(topic);
    if (topic.length < SHOWN_CHARACTERS) this.#topics.push(topic);
  }

  /** The topics since the last call. */
  take(): readonly string[] {
    const taken = this.#topics;
    this.#topics = [];
    return taken;
  }

  /** Name all topics again. */
  clear(): void {
    this.#known.clear();
    this.#left = MAX_NEW_CHARACTERS;
    this.#topics = [];
  }
}

/** A topic, or a topic filter, that is in view. */
class Row implements LiveRow {
  readonly filter: string;
  readonly #broker: Broker;
  readonly #payload: Buffer | undefined;
  readonly #newTopics: NewTopics;
  #count = 0;
  /** Number of messages with retain. */
  #retained = 0;
  readonly #rate: Rate;
  /** A new row is shown once, because the page may still have the rate of an earlier one: -1. */
  #shown = -1;
  #shownRate = 0;
  #last: { readonly topic: string; readonly qos: number; readonly retain: boolean; readonly at: number } | undefined;
  #payloadBytes = 0;

  constructor({ broker, hidesPayloads }: WatchContext, filter: string, newTopics: NewTopics) {
    this.#broker = broker;
    this.filter = filter;
    this.#newTopics = newTopics;
    this.#rate = new Rate(broker.clock.monotonic(), 0);
    this.#payload = hidesPayloads ? undefined : Buffer.allocUnsafeSlow(SHOWN_BYTES);
    broker.on('message.publish', this.#see, { filter });
  }

  close(): void {
    this.#broker.off('message.publish', this.#see);
  }

  readonly #see = ({ message }: Published): void => {
    this.#count++;
    const { topic, qos, retain, bytes, payloadAt } = message;
    if (retain) this.#retained++;
    this.#newTopics.add(topic);
    this.#last = { topic, qos, retain, at: this.#broker.clock.now() };
    this.#payloadBytes = bytes - payloadAt;
    if (this.#payload !== undefined) message.payload.copy(this.#payload, 0, 0, SHOWN_BYTES);
  };

  /** The current row; undefined if it has not changed in the last second. */
  change(nowMs: number): object | undefined {
    const rate = this.#rate.next(nowMs, this.#count);
    if (this.#count === this.#shown && rate === this.#shownRate) return undefined;
    this.#shown = this.#count;
    this.#shownRate = rate;
    if (this.#last === undefined) return { filter: this.filter, count: 0, rate: 0 };
    const { topic, ...last } = this.#last;
    const payload = this.#payload?.subarray(0, Math.min(this.#payloadBytes, SHOWN_BYTES)).toString('base64');
    return {
      filter: this.filter,
      topic: topic.slice(0, SHOWN_CHARACTERS),
      count: this.#count,
      retained: this.#retained,
      rate,
      ...last,
      payload,
      payloadBytes: this.#payloadBytes
    };
  }
}

/** Rates and last values of topics and topic filters: those that have changed, once a second. */
export const TOPICS = liveRows({
  of: 'topics',
  maxRows: MAX_ROWS,
  read(params) {
    const topics = textsIn(params, 'topics', MAX_TOPICS);
    for (const topic of topics) {
      const fault = checkTopicFilter(topic);
      if (fault !== undefined) throw wrong('topics', `a list of topics and topic filters: ${fault}`);
      const [group] = SHARED.exec(topic) ?? [];
      if (group === undefined) continue;
      const unshared = JSON.stringify(topic.slice(group.length));
      throw wrong(
        'topics',
        `a list of topics and topic filters without a share group: ${unshared}, not ${JSON.stringify(topic)}`
      );
    }
    return topics;
  },
  open(context) {
    const newTopics = new NewTopics();
    return {
      row: (filter) => new Row(context, filter, newTopics),
      changed: () => newTopics.clear(),
      fields: () => ({ topics: newTopics.take() })
    };
  }
});
