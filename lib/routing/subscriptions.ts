import { TextMap } from '../base/collections/text-map.ts';
import { RequestedFilters } from './requested-filters.ts';
import type { Subscription } from './subscription.ts';

/** Maximum number of subscriptions in an array. More are stored in a Map, so that a lookup stays fast. */
const FEW = 16;
const NONE: readonly Subscription[] = [];

/** The subscriptions of one session. Most sessions have few: ten subscriptions take 130 bytes in an array, and 560 in a Map. */
export class Subscriptions {
  /** Number of shared subscriptions. */
  shared = 0;
  /** The array is replaced and never changed, so that iterations are not affected and no spare capacity is allocated. */
  #all: readonly Subscription[] | TextMap<Subscription> = NONE;

  get size(): number {
    return this.#all instanceof TextMap ? this.#all.size : this.#all.length;
  }

  get(filter: string): Subscription | undefined {
    return this.#all instanceof TextMap ? this.#all.get(filter) : this.#all.find((one) => one.filter === filter);
  }

  /** Add a subscription. @param subscription its filter must not be in the collection yet */
  add(subscription: Subscription): void {
    if (isShared(subscription.filter)) this.shared++;
    if (this.#all instanceof TextMap) this.#all.set(subscription.filter, subscription);
    else if (this.#all.length < FEW) this.#all = this.#all.concat(subscription);
    else {
      const all = new TextMap<Subscription>();
      for (const one of this.#all) all.set(one.filter, one);
      all.set(subscription.filter, subscription);
      this.#all = all;
    }
  }

  delete(filter: string): void {
    if (isShared(filter) && this.get(filter) !== undefined) this.shared--;
    RequestedFilters.of(this)?.removed(filter);
    if (this.#all instanceof TextMap) this.#all.delete(filter);
    else this.#all = this.#all.filter((one) => one.filter !== filter);
  }

  /** Get the subscriptions in the order in which they were made. They may be changed during the iteration. */
  values(): IterableIterator<Subscription> {
    return this.#all.values();
  }
}

/** Tell whether a topic filter is that of a shared subscription. */
export function isShared(filter: string): boolean {
  return filter.startsWith('$share/') || filter.startsWith('$queue/');
}
