import { TextMap } from '../base/text-map.ts';
import type { Subscription } from './subscription.ts';

/** Above this many an array gives way to a Map, so that finding one stays cheap. */
const FEW = 16;
const NONE: readonly Subscription[] = [];

/** The subscriptions of one session. Most have a few: ten take 130 bytes in an array, 560 in a Map. */
export class Subscriptions {
  /** Shared ones among them. */
  shared = 0;
  /** The array is replaced, never changed: who goes through it is not disturbed, and it has no spare room. */
  #all: readonly Subscription[] | TextMap<Subscription> = NONE;

  get size(): number {
    return this.#all instanceof TextMap ? this.#all.size : this.#all.length;
  }

  get(filter: string): Subscription | undefined {
    return this.#all instanceof TextMap ? this.#all.get(filter) : this.#all.find((one) => one.filter === filter);
  }

  /** @param subscription to a filter that is not among them */
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
    if (this.#all instanceof TextMap) this.#all.delete(filter);
    else this.#all = this.#all.filter((one) => one.filter !== filter);
  }

  /** In the order in which they were made. There may be changes meanwhile. */
  values(): IterableIterator<Subscription> {
    return this.#all.values();
  }
}

/** Whether a filter is that of a shared subscription. */
export function isShared(filter: string): boolean {
  return filter.startsWith('$share/') || filter.startsWith('$queue/');
}
