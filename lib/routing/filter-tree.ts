import type { Pace } from '../base/pace.ts';
import { FunctionTimer, type TimingWheel } from '../base/timing-wheel.ts';
import { RetainedStore } from '../retained/retained-store.ts';
import type { LevelNames } from '../topics/level-names.ts';
import { type WantedNames, walkLevel } from './level-walk.ts';

/** Number of levels that are read by walks before a tree is made, which takes about as much time as these walks together. */
const WALKS = 20;
/** After this number of changes since a level was read last, the tree is discarded, so that a broker does not keep one that is no longer used. */
const MAX_UNREAD_CHANGES = 100_000;
/** So does the time since then, in milliseconds. */
const MAX_UNREAD_MS = 600_000;

/**
 * The topic filters that have subscriptions, by level. Routing needs no tree of them, and a page of a level takes one walk over all filters.
 * Whoever reads many levels gets a tree: it is made in slices, while walks go on, and then follows the changes. Measured with 1,000,000
 * filters: 1.9 s of CPU time to make it; 170 bytes for each filter.
 */
export class FilterTree {
  /** Undefined: few levels were read, or none for long. */
  #tree: RetainedStore<true> | undefined = undefined;
  #isMade = false;
  /** Number of walks since the tree was discarded. */
  #walks = 0;
  #changes = 0;
  readonly #wheel: Pick<TimingWheel, 'armLater'> | undefined;
  readonly #unread = new FunctionTimer(() => this.#discard());

  constructor(wheel?: Pick<TimingWheel, 'armLater'>) {
    this.#wheel = wheel;
  }

  /** Note that a filter has its first subscription. */
  add(filter: string): void {
    this.#tree?.put(filter, true, 0);
    this.#changed();
  }

  /** Note that a filter has no more subscriptions. */
  delete(filter: string): void {
    this.#tree?.delete(filter);
    this.#changed();
  }

  /**
   * Read a level.
   * @param prefix the filter of the level above and a slash, or an empty string
   * @param part the part that the names must have
   * @param lists all filters. They may change during the iteration
   */
  async level(
    prefix: string,
    part: WantedNames,
    lists: () => Iterable<Iterable<string>>,
    pace: Pace
  ): Promise<LevelNames> {
    this.#changes = 0;
    this.#wheel?.armLater(this.#unread, MAX_UNREAD_MS);
    if (this.#tree !== undefined && this.#isMade) return this.#tree.level(prefix);
    if (++this.#walks > WALKS && this.#tree === undefined) {
      this.#tree = new RetainedStore();
      void this.#make(this.#tree, lists(), pace.another());
    }
    return walkLevel(lists(), prefix, part, pace);
  }

  async #make(tree: RetainedStore<true>, lists: Iterable<Iterable<string>>, pace: Pace): Promise<void> {
    await pace.next();
    for (const list of lists)
      for (const filter of list) {
        tree.put(filter, true, 0); // a filter that was deleted meanwhile is not in the iteration
        if (pace.spend(2)) await pace.next();
      }
    if (tree === this.#tree) this.#isMade = true;
  }

  #changed(): void {
    if (++this.#changes >= MAX_UNREAD_CHANGES && (this.#tree === undefined || this.#isMade)) this.#discard();
  }

  #discard(): void {
    this.#changes = 0;
    this.#walks = 0;
    this.#tree = undefined;
    this.#isMade = false;
  }
}
