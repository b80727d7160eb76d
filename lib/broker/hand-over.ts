import type { Message } from '../packets/message.ts';
import { type Group, mayReach, type Subscription } from '../session/subscription.ts';
import { parseSharedFilter } from '../topics/topic.ts';
import { FilterIndex } from '../topics/trie.ts';

/**
 * What waits in a session that is over, and came by one of its shared subscriptions, is given to another member of that group (MQTT 5.0
 * section 4.8.2). A queued message does not say which subscription it came by: the one whose filter matches its topic. Where several of
 * the session match, it is not known which it was, and the message ends with the session, as what only this session was to get does.
 */
export class HandOver {
  readonly #index = new FilterIndex<Subscription>();
  readonly #groupOf: (subscription: Subscription) => Group | undefined;
  readonly #mountpoint: string;

  /** @param groupOf the group of a shared subscription, as far as it has members still */
  constructor(
    subscriptions: Iterable<Subscription>,
    mountpoint: string,
    groupOf: (subscription: Subscription) => Group | undefined
  ) {
    this.#groupOf = groupOf;
    this.#mountpoint = mountpoint;
    for (const subscription of subscriptions) this.#index.add(plainFilter(subscription), subscription);
  }

  /** Deliver a message to another member. @returns false if there is none, or it is not known to be the group's */
  give(message: Message): boolean {
    const { topic } = message;
    const matching: Subscription[] = [];
    this.#index.match(topic, matching);
    const [one, another] = matching.filter((each) => mayReach(this.#mountpoint, plainFilter(each), topic));
    if (one === undefined || another !== undefined) return false;
    const member = this.#groupOf(one)?.choose(message);
    return member?.subscriber.deliver(message, member) ?? false;
  }
}

function plainFilter({ filter }: Subscription): string {
  const shared = parseSharedFilter(filter);
  return typeof shared === 'object' ? shared.filter : filter;
}
