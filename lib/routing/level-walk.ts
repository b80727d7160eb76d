// A walk over all topic filters that reads one level of them without a tree. With 1,000,000 filters it takes, in slices, 20 ms
// for a small level, 40 to 190 ms for one with 1,000 or 1,000,000 names, and 330 ms if these come in descending order (Node 20,
// no other program at work; 20 to 450 ms of CPU time with the collector and the compiler). The names of a level are counted up to `MAX_COUNTED`. Beyond that,
// only those that can be in the requested part are kept, so most filters are compared with one string and left out. A name that
// is still kept at the end was never left out before, so the numbers below it are exact.

import { Smallest } from '../base/collections/smallest.ts';
import type { Pace } from '../base/pace.ts';
import type { LevelNames } from '../topics/level-names.ts';

/** Maximum number of names of a level that are counted. */
export const MAX_COUNTED = 100_000;
/** Number of names beyond those that are requested, at which the others are discarded. */
const SPARE_NAMES = 10_000;
const SLASH = 0x2f;
/** Work of looking at a filter or a name, in units of `Pace`. */
const LOOK_UNITS = 1 / 8;

/** The part of a level that is requested. */
export interface WantedNames {
  /** The key of the last name before the part: the name and a slash. Empty: the part is at the beginning. */
  readonly after: string;
  /** Number of names. */
  readonly wanted: number;
}

/** Check whether the key of a name is not greater than another key; compares keys only if the names alone do not tell. */
export function isUpTo(name: string, key: string): boolean {
  return name <= key && !(key.startsWith(name) && `${name}/` > key);
}

/**
 * Read a level of topic filters.
 * @param lists the filters. They may change during the walk; whether it finds changed ones is not defined
 * @param prefix the filter of the level above and a slash, or an empty string
 * @returns the names of the level; only the requested part of them, if there are more than 100,000 (`isPart`)
 */
export async function walkLevel(
  lists: Iterable<Iterable<string>>,
  prefix: string,
  part: WantedNames,
  pace: Pace
): Promise<LevelNames> {
  const walk = new LevelWalk(prefix, part);
  for (const list of lists)
    for (const filter of list) {
      if (pace.spend(LOOK_UNITS)) await pace.next();
      walk.take(filter);
      if (walk.isFull) await walk.discard(pace);
    }
  return walk;
}

/** The filters at a name. */
interface Found {
  isEnd: boolean;
  below: number;
}

class LevelWalk implements LevelNames {
  isPart = false;
  readonly #prefix: string;
  readonly #offset: number;
  readonly #after: string;
  readonly #wanted: number;
  #found = new Map<string, Found>();
  #room = MAX_COUNTED;
  /** Filters from this string on are not in the requested part, once there are enough smaller names. */
  #end: string | undefined = undefined;
  /** The last name with filters below it, which the next filter often has as well. */
  #last: Found | undefined = undefined;
  #lastName = '';

  constructor(prefix: string, { after, wanted }: WantedNames) {
    this.#prefix = prefix;
    this.#offset = prefix.length;
    this.#after = after;
    this.#wanted = wanted;
  }

  get isFull(): boolean {
    return this.#found.size > this.#room;
  }

  take(filter: string): void {
    if (!filter.startsWith(this.#prefix) || (this.#end !== undefined && filter >= this.#end)) return;
    const last = this.#lastName;
    if (
      this.#last !== undefined &&
      filter.charCodeAt(this.#offset + last.length) === SLASH &&
      filter.startsWith(last, this.#offset)
    ) {
      this.#last.below++;
      return;
    }
    const stop = filter.indexOf('/', this.#offset);
    const name = stop === -1 ? filter.slice(this.#offset) : filter.slice(this.#offset, stop);
    let found = this.#found.get(name);
    if (found === undefined) {
      if (this.isPart && isUpTo(name, this.#after)) return;
      found = { isEnd: false, below: 0 };
      this.#found.set(name, found);
    }
    if (stop === -1) {
      found.isEnd = true;
      return;
    }
    found.below++;
    this.#last = found;
    this.#lastName = name;
  }

  /** Discard the names that are not in the requested part. */
  async discard(pace: Pace): Promise<void> {
    const selected = new Smallest<string>(this.#wanted, (key) => key);
    // the latest first: if filters come in descending order, most of the others are then compared only once
    for (const name of [...this.#found.keys()].reverse()) {
      if (pace.spend(LOOK_UNITS)) await pace.next();
      if (!isUpTo(name, this.#after)) selected.offer(`${name}/`);
    }
    const kept = new Map<string, Found>();
    let greatest: string | undefined;
    for (const key of selected.taken()) {
      greatest ??= key;
      const name = key.slice(0, -1);
      kept.set(name, this.#found.get(name) as Found);
    }
    this.isPart = true;
    this.#found = kept;
    this.#room = this.#wanted + SPARE_NAMES;
    this.#last = undefined;
    // "0" follows "/"
    if (kept.size === this.#wanted) this.#end = `${this.#prefix}${greatest?.slice(0, -1)}0`;
  }

  names(): Iterable<string> {
    return this.#found.keys();
  }

  at(name: string): Found | undefined {
    return this.#found.get(name);
  }
}
