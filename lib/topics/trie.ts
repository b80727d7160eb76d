// Filters without wildcards are in a map, the others in a trie by level: half the time and a tenth of the memory of a
// trie for all filters. The search does not recurse, so that a topic of 65,535 levels is not a special case, and
// allocates nothing; its two arrays are reused by the next search. Lists of values are replaced, never changed, so
// that a caller may iterate over one while subscriptions change.

import { TextMap } from '../base/collections/text-map.ts';
import { Branch } from './branch.ts';
import { ComparedTopic, MAX_CHARACTERS } from './near-filter.ts';
import {
  byNearness,
  MAX_COMPARED,
  MAX_NEAR,
  MAX_VISITED,
  type NearFilter,
  type NearFilters,
  nearExact,
  nearWildcards
} from './near-search.ts';
import { isWildcard } from './topic.ts';

/** The values of one filter are an array up to this length and a Set above it, so that removing a value stays cheap. */
const MAX_ARRAY_LENGTH = 16;

/** Two or more values of one filter. Arrays are replaced and never changed: iterating one is safe, and none has spare capacity. */
class ManyValues<T> {
  values: readonly T[] | Set<T>;

  constructor(values: readonly T[]) {
    this.values = values;
  }
}

/** The values of one filter: none, one, or several. */
type Slot<T> = T | ManyValues<T> | undefined;

class Level<T> extends Branch<Level<T>> {
  /** The child for the wildcard `+`. */
  plusChild: Level<T> | undefined = undefined;
  /** The values of the filter that ends at this level. */
  endValues: Slot<T> = undefined;
  /** The values of the filter that ends with a `#` below this level. */
  hashValues: Slot<T> = undefined;
}

/**
 * An index of topic filters and their values (subscribers), which finds the values of all filters that match a topic name.
 *
 * Filters must be valid and without the prefix of a shared subscription. Values are compared by identity.
 */
export class FilterIndex<T extends NonNullable<unknown>> {
  /** The number of values. A value of two filters counts twice. */
  size = 0;
  /** The number of filters that have a value. */
  filterCount = 0;
  readonly #exact = new TextMap<Slot<T>>();
  readonly #root = new Level<T>();
  #wildcards = 0;
  // The trie levels that match the topic so far, and those of the next step. The arrays are reused by later calls, their contents are not.
  #here: Level<T>[] = [];
  #next: Level<T>[] = [];

  /**
   * Add a value to a filter, unless the filter has it already.
   *
   * @returns true if the filter had no values before
   */
  add(filter: string, value: T): boolean {
    const before = this.filterCount;
    if (!isWildcard(filter)) {
      const old = this.#exact.get(filter);
      const slot = this.#addTo(old, value);
      if (slot !== old) this.#exact.set(filter, slot);
    } else {
      this.#addWildcard(filter, value);
    }
    return this.filterCount > before;
  }

  /**
   * Remove a value from a filter, if the filter has it. The time does not grow with the number of values of the filter.
   *
   * @returns true if this was the filter's last value
   */
  delete(filter: string, value: T): boolean {
    const before = this.filterCount;
    if (!isWildcard(filter)) {
      const old = this.#exact.get(filter);
      const slot = this.#removeFrom(old, value);
      if (slot === undefined) this.#exact.delete(filter);
      else if (slot !== old) this.#exact.set(filter, slot);
    } else {
      this.#deleteWildcard(filter, value);
    }
    return this.filterCount < before;
  }

  /**
   * Append to `into` every value of every filter that matches a topic name. A value of several matching filters is appended several times.
   *
   * Filters that begin with a wildcard do not match names that begin with `$` [MQTT-4.7.2-1].
   * In the worst case each node of the trie is visited once, at depth d at most 2^d nodes. The search does not recurse, and it splits the
   * topic only as deep as filters match.
   * @returns the number of values appended
   */
  match(topic: string, into: T[]): number {
    const before = into.length;
    const exact = this.#exact.get(topic);
    if (exact !== undefined) appendValues(exact, into);
    if (this.#wildcards !== 0) this.#matchWildcards(topic, into);
    return into.length - before;
  }

  /**
   * Iterate over all filters that have values, in no particular order.
   *
   * The index may be changed during the iteration; it is undefined whether filters that are added or removed in the meantime are included.
   */
  *filters(): Generator<string, void, undefined> {
    for (const list of this.filterLists()) yield* list;
  }

  /** The filters without wildcards, and those with wildcards: as `filters`, in half the time. */
  *filterLists(): Generator<Iterable<string>, void, undefined> {
    yield this.#exact.keys();
    yield this.#wildcardFilters();
  }

  *#wildcardFilters(): Generator<string, void, undefined> {
    if (this.#root.hashValues !== undefined) yield '#';
    const path = [childrenOf(this.#root, '')];
    while (path.length > 0) {
      const { value } = path[path.length - 1].next();
      if (value === undefined) {
        path.pop();
        continue;
      }
      const [level, filter] = value;
      if (level.endValues !== undefined) yield filter;
      if (level.hashValues !== undefined) yield `${filter}/#`;
      if (countBelow(level) > 0) path.push(childrenOf(level, `${filter}/`));
    }
  }

  /**
   * Find the filters that nearly match a topic name, with one of their values. Bounded: of a very large index only a part is compared.
   *
   * @param mostCompared maximum number of filters without wildcards that are compared
   * @param mostVisited maximum number of levels of the trie that are visited
   */
  near(topic: string, mostCompared = MAX_COMPARED, mostVisited = MAX_VISITED): NearFilters<T> {
    if (topic.length > MAX_CHARACTERS) return { found: [], isComplete: false };
    const compared = new ComparedTopic(topic);
    const exact = nearExact(this.#exact, topic, mostCompared);
    const wildcards = nearWildcards(this.#root, compared, mostVisited);
    const found = [...exact.candidates, ...wildcards.candidates].flatMap<NearFilter<T>>(([filter, slot]) => {
      const differences = compared.differencesTo(filter);
      return differences.length === 0 || slot === undefined ? [] : [{ filter, differences, ...sampleOf<T>(slot) }];
    });
    const isComplete = exact.isComplete && wildcards.isComplete && found.length <= MAX_NEAR;
    return { found: found.sort(byNearness).slice(0, MAX_NEAR), isComplete };
  }

  /** Tell whether a filter has values. */
  has(filter: string): boolean {
    if (!isWildcard(filter)) return this.#exact.has(filter);
    let level: Level<T> | undefined = this.#root;
    for (const label of filter.split('/')) {
      if (label === '#') return level.hashValues !== undefined;
      level = label === '+' ? level.plusChild : level.child(label);
      if (level === undefined) return false;
    }
    return level.endValues !== undefined;
  }

  #matchWildcards(topic: string, into: T[]): void {
    let here = this.#here;
    let next = this.#next;
    here[0] = this.#root;
    let count = 1;
    let start = 0;
    // [MQTT-4.7.2-1]
    let isHidden = topic.charCodeAt(0) === 0x24;
    while (true) {
      const end = topic.indexOf('/', start);
      const label = end === -1 ? topic.slice(start) : topic.slice(start, end);
      let found = 0;
      for (let i = 0; i < count; i++) {
        const level = here[i]!;
        if (!isHidden) {
          if (level.hashValues !== undefined) appendValues(level.hashValues, into);
          if (level.plusChild !== undefined) next[found++] = level.plusChild;
        }
        const child =
          level.firstLabel === label ? level.first : level.others === undefined ? undefined : level.others.get(label);
        if (child !== undefined) next[found++] = child;
      }
      const reached = next;
      next = here;
      here = reached;
      count = found;
      if (end === -1 || count === 0) break;
      start = end + 1;
      isHidden = false;
    }
    for (let i = 0; i < count; i++) {
      const level = here[i]!;
      if (level.endValues !== undefined) appendValues(level.endValues, into);
      // "a/#" also matches "a".
      if (level.hashValues !== undefined) appendValues(level.hashValues, into);
    }
    // The arrays may still reference levels that are no longer in the trie, but those have no values. Only very long arrays are released.
    if (here.length + next.length > 8192) {
      this.#here = [];
      this.#next = [];
    }
  }

  #addWildcard(filter: string, value: T): void {
    let level = this.#root;
    for (let start = 0; ; ) {
      const end = filter.indexOf('/', start);
      const label = end === -1 ? filter.slice(start) : filter.slice(start, end);
      const before = this.filterCount;
      if (label === '#') {
        level.hashValues = this.#addTo(level.hashValues, value);
        this.#wildcards += this.filterCount - before;
        return;
      }
      let child = label === '+' ? level.plusChild : level.child(label);
      if (child === undefined) {
        child = new Level<T>();
        if (label === '+') level.plusChild = child;
        else level.setChild(label, child, filter);
      }
      level = child;
      if (end === -1) {
        level.endValues = this.#addTo(level.endValues, value);
        this.#wildcards += this.filterCount - before;
        return;
      }
      start = end + 1;
    }
  }

  #deleteWildcard(filter: string, value: T): void {
    const before = this.filterCount;
    let level = this.#root;
    // The deepest level on the path that is needed by other filters, and the label of its child that can be removed.
    let keeper = level;
    let cut = '';
    for (let start = 0; start !== -1; ) {
      const end = filter.indexOf('/', start);
      const label = end === -1 ? filter.slice(start) : filter.slice(start, end);
      if (label === '#') {
        level.hashValues = this.#removeFrom(level.hashValues, value);
        break;
      }
      const child = label === '+' ? level.plusChild : level.child(label);
      if (child === undefined) return;
      if (start === 0 || level.endValues !== undefined || level.hashValues !== undefined || countBelow(level) > 1) {
        keeper = level;
        cut = label;
      }
      level = child;
      if (end === -1) level.endValues = this.#removeFrom(level.endValues, value);
      start = end === -1 ? -1 : end + 1;
    }
    this.#wildcards += this.filterCount - before;
    if (
      level === this.#root ||
      level.endValues !== undefined ||
      level.hashValues !== undefined ||
      countBelow(level) > 0
    )
      return;
    if (cut === '+') keeper.plusChild = undefined;
    else keeper.removeChild(cut);
  }

  #addTo(slot: Slot<T>, value: T): Slot<T> {
    if (slot === undefined) {
      this.size++;
      this.filterCount++;
      return value;
    }
    if (!(slot instanceof ManyValues)) {
      if (slot === value) return slot;
      this.size++;
      return new ManyValues([slot, value]);
    }
    const values = slot.values;
    if (values instanceof Set) {
      const before = values.size;
      values.add(value);
      this.size += values.size - before;
    } else if (!values.includes(value)) {
      this.size++;
      slot.values = values.length < MAX_ARRAY_LENGTH ? values.concat([value]) : new Set(values).add(value);
    }
    return slot;
  }

  #removeFrom(slot: Slot<T>, value: T): Slot<T> {
    if (slot === undefined) return undefined;
    if (!(slot instanceof ManyValues)) {
      if (slot !== value) return slot;
      this.size--;
      this.filterCount--;
      return undefined;
    }
    const values = slot.values;
    if (values instanceof Set) {
      if (!values.delete(value)) return slot;
      this.size--;
      // Half of MAX_ARRAY_LENGTH, so that one subscriber that is added and removed in turn does not cause a copy each time.
      if (values.size <= MAX_ARRAY_LENGTH / 2) slot.values = [...values];
      return slot;
    }
    const at = values.indexOf(value);
    if (at === -1) return slot;
    this.size--;
    if (values.length === 2) return values[1 - at];
    slot.values = values.toSpliced(at, 1);
    return slot;
  }
}

/** The children of a level, one by one, with their filters. @param prefix filter of the level and a slash */
function* childrenOf<T>(level: Level<T>, prefix: string): Generator<[Level<T>, string], undefined, undefined> {
  if (level.plusChild !== undefined) yield [level.plusChild, `${prefix}+`];
  if (level.first !== undefined) yield [level.first, `${prefix}${level.firstLabel}`];
  for (const label of level.others?.keys() ?? []) yield [level.others?.get(label) as Level<T>, `${prefix}${label}`];
  return undefined;
}

/** One of the values of a filter, and their number. */
function sampleOf<T>(slot: T | ManyValues<T>): { readonly value: T; readonly count: number } {
  if (!(slot instanceof ManyValues)) return { value: slot, count: 1 };
  const { values } = slot;
  const [value] = values;
  return { value, count: values instanceof Set ? values.size : values.length };
}

function countBelow<T>(level: Level<T>): number {
  return level.childCount + (level.plusChild === undefined ? 0 : 1);
}

function appendValues<T>(slot: T | ManyValues<T>, into: T[]): void {
  if (!(slot instanceof ManyValues)) {
    into.push(slot);
    return;
  }
  const values = slot.values;
  if (values instanceof Set) {
    for (const value of values) into.push(value);
    return;
  }
  for (let i = 0; i < values.length; i++) into.push(values[i]!);
}
