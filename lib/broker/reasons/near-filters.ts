// The causes that are in a topic filter: it nearly matches the topic, or matches it only without a mount point. Filters
// are compared as the client sees them, without its mount point, because that is where `$` and slashes count.

import { cut } from '../../monitor/cut-text.ts';
import { type DerivedCause, type DerivedCauses, type DerivedCode, derived } from '../../monitor/reasons/derived.ts';
import type { Routing } from '../../routing/routing.ts';
import { mayReach, type Subscription } from '../../routing/subscription.ts';
import { ComparedTopic, type FilterDifference, MAX_CHARACTERS, slashesOf } from '../../topics/near-filter.ts';
import { levelCount, matches, parseSharedFilter } from '../../topics/topic.ts';

/** Maximum number of causes of one question. */
const MAX_CAUSES = 20;
/** Maximum number of subscriptions of one client that are compared (about 20 ms). */
const MAX_SUBSCRIPTIONS = 20_000;

/** The question to which filters are compared. */
interface NearQuestion {
  /** The topic name, with the mount point of the publisher. */
  readonly topic: string;
  /** The mount point of the publisher; '' if it has none, or is not known. */
  readonly publisherMount: string;
  /** Time of the question, in milliseconds since 1970. */
  readonly now: number;
}

/** A subscription, or one that has ended. */
export type Filtered = Pick<Subscription, 'filter'> & {
  readonly subscriber: { readonly mountpoint: string; readonly receiver: { readonly clientId: string } | undefined };
};

const CODES = {
  case: 'filter_case',
  slash: 'filter_slash',
  levels: 'filter_levels',
  system: 'filter_system',
  space: 'filter_space',
  share: 'filter_share'
} as const satisfies Record<FilterDifference, DerivedCode>;

/** Find the filters of one client that nearly match a topic. None are near if one of them matches it. */
export function nearFiltersOf(question: NearQuestion, subscriptions: Iterable<Filtered>): DerivedCauses {
  const comparison = new Comparison(question);
  const causes: DerivedCause[] = [];
  let left = MAX_SUBSCRIPTIONS;
  for (const subscription of subscriptions) {
    if (reaches(subscription, question.topic)) return { causes: [], isComplete: true };
    if (left-- > 0) causes.push(...comparison.causesOf(subscription, 1));
  }
  const isComplete = left >= 0 && question.topic.length <= MAX_CHARACTERS && causes.length <= MAX_CAUSES;
  return { causes: nearest(causes), isComplete };
}

/** Find the filters of all clients that nearly match a topic. Of a very large number of filters, only a part is compared. */
export function nearFilters(question: NearQuestion, routing: Routing): DerivedCauses {
  const comparison = new Comparison(question);
  const { found, isComplete } = routing.near(question.topic);
  const causes = found.flatMap(({ value, count }) => comparison.causesOf(value, count));
  return { causes: nearest(causes), isComplete: isComplete && causes.length <= MAX_CAUSES };
}

/** Tell whether a subscription matches a topic, for its client. */
export function reaches({ filter, subscriber: { mountpoint } }: Filtered, topic: string): boolean {
  const plain = plainFilter(filter);
  return matches(plain, topic) && mayReach(mountpoint, plain, topic);
}

/** The filter of a subscription without its share prefix. */
function plainFilter(filter: string): string {
  const shared = parseSharedFilter(filter);
  return typeof shared === 'object' ? shared.filter : filter;
}

function nearest(causes: readonly DerivedCause[]): DerivedCause[] {
  const isFar = ({ code }: DerivedCause) => Number(code === 'filter_levels');
  return causes.toSorted((one, other) => isFar(one) - isFar(other)).slice(0, MAX_CAUSES);
}

/** Compares filters with the topic of a question, as clients with a mount point see both. */
class Comparison {
  readonly #question: NearQuestion;
  /** The topic by mount point. */
  readonly #compared = new Map<string, ComparedTopic>();

  constructor(question: NearQuestion) {
    this.#question = question;
  }

  /** The causes in one filter. @param count number of subscriptions that have it */
  causesOf(subscription: Filtered, count: number): readonly DerivedCause[] {
    const { topic, publisherMount, now } = this.#question;
    if (reaches(subscription, topic)) return [];
    const { mountpoint, receiver } = subscription.subscriber;
    const stored = plainFilter(subscription.filter);
    const seen = mountpoint !== '' && stored.startsWith(mountpoint) ? stored.slice(mountpoint.length) : stored;
    const known = { topic: cut(topic), filter: cut(seen), clientId: receiver && cut(receiver.clientId) };
    const separate = (side: 'receiver' | 'publisher', prefix: string) => {
      const shown = cut(prefix);
      const detail = `the topics of the ${side} begin with ${JSON.stringify(shown)}`;
      return [derived('mount_point', now, { ...known, side, mountpoint: shown, detail }, count)];
    };
    const published = topic.startsWith(publisherMount) ? topic.slice(publisherMount.length) : topic;
    if (mountpoint !== '' && matches(seen, topic)) return separate('receiver', mountpoint);
    if (mountpoint !== publisherMount && matches(seen, published))
      return publisherMount === '' ? separate('receiver', mountpoint) : separate('publisher', publisherMount);
    if (!topic.startsWith(mountpoint) || topic.length > MAX_CHARACTERS) return [];
    const compared = this.#within(mountpoint);
    return compared
      .differencesTo(seen)
      .map((difference) =>
        derived(CODES[difference], now, { ...known, ...detailOf(difference, seen, compared.topic) }, count)
      );
  }

  #within(mountpoint: string): ComparedTopic {
    let compared = this.#compared.get(mountpoint);
    if (compared === undefined) {
      compared = new ComparedTopic(this.#question.topic.slice(mountpoint.length));
      this.#compared.set(mountpoint, compared);
    }
    return compared;
  }
}

function detailOf(difference: FilterDifference, filter: string, topic: string) {
  if (difference === 'slash') return { detail: `one of them has a ${slashesOf(filter, topic)} slash` };
  if (difference !== 'levels') return {};
  const [filterLevels, topicLevels] = [levelCount(filter), levelCount(topic)];
  return {
    filterLevels,
    topicLevels,
    detail: `the filter has ${filterLevels}, the topic has ${topicLevels}`
  };
}
