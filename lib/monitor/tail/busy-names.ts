// A client that floods in bursts has most of its messages left out of the rows, so names are counted before rows are limited. Names are kept by
// the second, and both their number and their characters are bounded: clients choose them. An event whose name is not kept still counts
// in the total.

import type { TimeReading } from '../../base/time-reading.ts';
import type { RuleReference } from '../../packets/named-publisher.ts';

/** The counts are those of this number of seconds, of which the last is the current one. */
const SECONDS = 10;
const SECOND_MS = 1_000;
/** Maximum number of publishers and of topics in a second, and of the characters of either. */
const MAX_NAMES = 1_000;
const MAX_CHARACTERS = 65_536;
/** Number of publishers and of topics that are listed. */
const LISTED = 10;

/** A publisher or a topic with its number of events. */
export interface BusyName {
  /** The client id, or the topic. */
  readonly name: string;
  /** The rule that has published under this client id; undefined: a client, the app or the broker has, or it is a topic. */
  readonly rule: RuleReference | undefined;
  /** Number of events. */
  readonly count: number;
}

/** The publishers and topics of most events of a tail. */
export interface TailBusiest {
  /** Number of events in the last 10 seconds that the tail has selected. */
  readonly events: number;
  /**
   * The client ids of at most 10 publishers with the most events, the busiest first; for events that are not about a message, of their
   * clients. Of each second, the first 1,000 names with 65,536 characters together are counted.
   */
  readonly publishers: readonly BusyName[];
  /** The same for topics. */
  readonly topics: readonly BusyName[];
}

/** The counts of names, by a key. */
class NameCounts {
  readonly byKey = new Map<
    string,
    { readonly name: string; readonly rule: RuleReference | undefined; count: number }
  >();
  #characters = 0;

  add(name: string, rule: RuleReference | undefined): void {
    const key = rule === undefined ? name : `\0${rule.kind}/${rule.id}`; // no client id contains the character U+0000
    const known = this.byKey.get(key);
    if (known !== undefined) {
      known.count++;
      return;
    }
    if (this.byKey.size >= MAX_NAMES || this.#characters + name.length > MAX_CHARACTERS) return;
    this.#characters += name.length;
    this.byKey.set(key, { name, rule, count: 1 });
  }
}

/** The events of a second. */
interface Second {
  readonly number: number;
  events: number;
  readonly publishers: NameCounts;
  readonly topics: NameCounts;
}

/** Counts the publishers and topics of the events of the last 10 seconds. */
export class BusyNames {
  readonly #time: TimeReading;
  /** The oldest first. */
  readonly #seconds: Second[] = [];

  constructor(time: TimeReading) {
    this.#time = time;
  }

  /** Count an event. */
  add(publisher: unknown, topic: unknown, rule: RuleReference | undefined): void {
    const second = this.#current();
    second.events++;
    if (typeof publisher === 'string' && publisher !== '') second.publishers.add(publisher, rule);
    if (typeof topic === 'string' && topic !== '') second.topics.add(topic, undefined);
  }

  /** List the names of the most events. @param nowMs the monotonic time, which is not read otherwise while no events come */
  busiest(nowMs: number): TailBusiest {
    this.#discardBefore(secondOf(nowMs) - SECONDS + 1);
    const seconds = this.#seconds;
    return {
      events: seconds.reduce((sum, { events }) => sum + events, 0),
      publishers: listed(seconds.map(({ publishers }) => publishers)),
      topics: listed(seconds.map(({ topics }) => topics))
    };
  }

  #current(): Second {
    const number = secondOf(this.#time.nowMs);
    const last = this.#seconds[this.#seconds.length - 1];
    if (last?.number === number) return last;
    this.#discardBefore(number - SECONDS + 1);
    const second = { number, events: 0, publishers: new NameCounts(), topics: new NameCounts() };
    this.#seconds.push(second);
    return second;
  }

  #discardBefore(number: number): void {
    while (this.#seconds.length > 0 && this.#seconds[0].number < number) this.#seconds.shift();
  }
}

function secondOf(ms: number): number {
  return Math.floor(ms / SECOND_MS);
}

function listed(counts: readonly NameCounts[]): readonly BusyName[] {
  const sums = new Map<string, BusyName>();
  for (const { byKey } of counts)
    for (const [key, { name, rule, count }] of byKey)
      sums.set(key, { name, rule, count: count + (sums.get(key)?.count ?? 0) });
  return [...sums.values()].sort((a, b) => b.count - a.count).slice(0, LISTED);
}
