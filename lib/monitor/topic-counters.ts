import type { BaseServices } from '../base/base-services.ts';
import { InvalidInput, StateError } from '../base/errors.ts';
import { FunctionTimer } from '../base/timing-wheel.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { Events } from '../events/events.ts';
import { checkTopicFilter, parseSharedFilter } from '../topics/topic.ts';
import { FilterIndex } from '../topics/trie.ts';

/** Maximum number of topic filters. */
const MAX_FILTERS = 512;
/** Length of the interval of rates: they are those of the last complete one. */
const INTERVAL_MS = 10_000;

/** The counters of a topic filter. `in`: published; `out`: passed to connections of receivers; `dropped`: for one receiver, or for all. */
export const TOPIC_COUNTERS = [
  'in',
  'out',
  'dropped',
  'qos0.in',
  'qos0.out',
  'qos1.in',
  'qos1.out',
  'qos2.in',
  'qos2.out'
] as const;

/** Name of a counter of a topic filter. */
export type TopicCounterName = (typeof TOPIC_COUNTERS)[number];

/** The counters and rates of the messages that a topic filter matches. */
export interface TopicCountersRecord {
  /** The topic filter. */
  readonly filter: string;
  /** Time at which counting has started, in milliseconds since 1970. */
  readonly since: number;
  /** The counters, by name. */
  readonly counts: Readonly<Record<TopicCounterName, number>>;
  /** Messages per second in the last complete interval of ten seconds. */
  readonly rates: Readonly<Record<TopicCounterName, number>>;
}

/** Index of the first of the counters of a QoS. */
const BY_QOS = TOPIC_COUNTERS.indexOf('qos0.in');
const [IN, OUT, DROPPED] = [0, 1, 2];

class Counted {
  readonly filter: string;
  readonly since: number;
  readonly counts = new Float64Array(TOPIC_COUNTERS.length);
  readonly before = new Float64Array(TOPIC_COUNTERS.length);
  readonly rates = new Float64Array(TOPIC_COUNTERS.length);
  readonly endObservation: () => void;

  constructor(filter: string, since: number, endObservation: () => void) {
    this.filter = filter;
    this.since = since;
    this.endObservation = endObservation;
  }

  /** @param direction 0: in, 1: out */
  count(direction: number, qos: number): void {
    this.counts[direction]++;
    this.counts[BY_QOS + 2 * qos + direction]++;
  }

  measure(seconds: number): void {
    for (let at = 0; at < this.counts.length; at++) this.rates[at] = (this.counts[at] - this.before[at]) / seconds;
    this.before.set(this.counts);
  }

  get record(): TopicCountersRecord {
    const { filter, since, counts, rates } = this;
    return { filter, since, counts: named(counts), rates: named(rates) };
  }
}

/**
 * Counters of the messages of single topics, on request: `broker.monitor.topicCounters`.
 *
 * While a topic filter is registered, its QoS 0 messages leave the fast path, and each message of any topic that is not on it is looked up
 * once among the registered filters.
 */
export class TopicCounters {
  readonly #timer = new FunctionTimer((nowMs) => this.#measure(nowMs));
  readonly #services: BaseServices;
  readonly #events: Events;
  readonly #observe: (filter: string) => () => void;
  readonly #counted = new Map<string, Counted>();
  readonly #index = new FilterIndex<Counted>();
  readonly #found: Counted[] = [];
  #measuredMs = 0;
  readonly #published = ({ message }: BrokerEvents['message.publish']) => this.#count(message.topic, IN, message.qos);
  readonly #delivered = ({ message, qos }: BrokerEvents['message.delivered']) => this.#count(message.topic, OUT, qos);
  readonly #dropped = ({ message }: BrokerEvents['message.dropped']) => {
    for (const one of this.#matching(message.topic)) one.counts[DROPPED]++;
  };

  /**
   * @internal
   * @param observe reports each message of the topics that match a filter to listeners; returns a function that stops this
   */
  constructor(services: BaseServices, events: Events, observe: (filter: string) => () => void) {
    this.#services = services;
    this.#events = events;
    this.#observe = observe;
  }

  /** The counters of all topic filters, in the order in which they were added. */
  list(): TopicCountersRecord[] {
    return [...this.#counted.values()].map(({ record }) => record);
  }

  /** The counters of a topic filter; undefined: its messages are not counted. */
  get(filter: string): TopicCountersRecord | undefined {
    return this.#counted.get(filter)?.record;
  }

  /**
   * Count the messages whose topic matches a topic filter.
   * @throws InvalidInput TOPIC_FILTER_INVALID; StateError RECORD_EXISTS, TOO_MANY_TOPICS (512)
   */
  create(filter: string): void {
    const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'the topic filter must be a string';
    if (fault !== undefined || parseSharedFilter(filter) !== undefined)
      throw new InvalidInput('TOPIC_FILTER_INVALID', 'topic', 'a topic filter that is not shared', filter, fault);
    if (this.#counted.has(filter))
      throw new StateError('RECORD_EXISTS', `the messages of the topic filter "${filter}" are counted already`);
    if (this.#counted.size >= MAX_FILTERS)
      throw new StateError(
        'TOO_MANY_TOPICS',
        `the messages of ${MAX_FILTERS} topic filters are counted; delete one of them first`
      );
    const counted = new Counted(filter, this.#services.clock.now(), this.#observe(filter));
    if (this.#counted.size === 0) this.#begin();
    this.#counted.set(filter, counted);
    this.#index.add(filter, counted);
  }

  /** @deprecated Use `create`. */
  add(filter: string): void {
    this.create(filter);
  }

  /** Stop counting for a topic filter. @returns whether it was registered */
  delete(filter: string): boolean {
    const counted = this.#counted.get(filter);
    if (counted === undefined) return false;
    counted.endObservation();
    this.#counted.delete(filter);
    this.#index.delete(filter, counted);
    if (this.#counted.size === 0) this.#end();
    return true;
  }

  /** Stop counting for all topic filters. */
  clear(): void {
    for (const filter of [...this.#counted.keys()]) this.delete(filter);
  }

  #measure(nowMs: number): void {
    this.#services.wheel.arm(this.#timer, INTERVAL_MS);
    const seconds = (nowMs - this.#measuredMs) / 1_000;
    if (seconds <= 0) return;
    this.#measuredMs = nowMs;
    for (const one of this.#counted.values()) one.measure(seconds);
  }

  #begin(): void {
    const { clock, wheel } = this.#services;
    const events = this.#events;
    events.onObserved('message.publish', this.#published);
    events.onObserved('message.delivered', this.#delivered);
    events.onObserved('message.dropped', this.#dropped);
    this.#measuredMs = clock.monotonic();
    wheel.arm(this.#timer, INTERVAL_MS);
  }

  #end(): void {
    const events = this.#events;
    events.off('message.publish', this.#published);
    events.off('message.delivered', this.#delivered);
    events.off('message.dropped', this.#dropped);
    this.#services.wheel.disarm(this.#timer);
  }

  #count(topic: string, direction: number, qos: number): void {
    for (const one of this.#matching(topic)) one.count(direction, qos);
  }

  #matching(topic: string): readonly Counted[] {
    this.#found.length = 0;
    this.#index.match(topic, this.#found);
    return this.#found;
  }
}

function named(values: Float64Array): Record<TopicCounterName, number> {
  return Object.fromEntries(TOPIC_COUNTERS.map((name, at) => [name, values[at]])) as Record<TopicCounterName, number>;
}
