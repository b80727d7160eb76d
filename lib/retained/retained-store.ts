// A map finds a topic, a tree by levels finds what a filter matches. Results are snapshots that are read in later
// turns: an entry that was replaced meanwhile is recognized by `isLive`, and a search that could take long is given a
// limit and answers `undefined` (`matchWithin`); `walkRetained` then compares topics in slices. The order of results
// is that of `seq`, on which pending feeds in the store rely.

import { TextMap } from '../base/collections/text-map.ts';
import { Branch } from '../topics/branch.ts';
import { type LevelNames, namesOf } from '../topics/level-names.ts';
import { isWildcard, matches } from '../topics/topic.ts';

/**
 * Maximum depth of the tree of levels. Topics with more levels are listed at this depth and compared one by one, so that a topic of 65,535
 * levels takes no more memory than one of 32.
 */
const MAX_DEPTH = 32;
const DOLLAR = 0x24;
const HASH = 0x23;

/** A retained message. The result of `match` may contain entries that are no longer in the store; see `isLive`. */
export class RetainedEntry<M> {
  readonly topic: string;
  readonly message: M;
  /** Sequence number, which increases with each stored message. */
  readonly seq: number;
  /** The number of bytes that the entry counts towards `maxBytes`. */
  readonly bytes: number;
  /** False after the message was replaced or deleted; readers of an older result skip it. */
  isLive = true;
  /** The level that contains the entry. Only for the store. */
  at: Level<M> | undefined = undefined;
  /** The index of the entry in `at.ending`; -1 if it is a child of `at`. Only for the store. */
  index = -1;

  constructor(topic: string, message: M, seq: number, bytes: number) {
    this.topic = topic;
    this.message = message;
    this.seq = seq;
    this.bytes = bytes;
  }
}

/** A level of the tree. If only one topic continues below a label, the child is the entry itself. */
class Level<M> extends Branch<Level<M> | RetainedEntry<M>> {
  readonly parent: Level<M> | undefined;
  /** Length of the common prefix of all topics in the level, including its last slash. */
  readonly offset: number;
  /** Entries whose topics end in this level; at the maximum depth also those that continue. */
  ending: RetainedEntry<M>[] | undefined = undefined;
  /** Number of entries in the level and below it. */
  count = 0;

  constructor(parent: Level<M> | undefined, offset: number) {
    super();
    this.parent = parent;
    this.offset = offset;
  }
}

/** Limits of a `RetainedStore`. */
interface RetainedQuotas {
  /** Maximum number of messages; 0: unlimited. */
  readonly maxMessages?: number;
  /** Maximum number of bytes, as passed to `put`; 0: unlimited. */
  readonly maxBytes?: number;
}

/**
 * The retained messages of a broker, at most one for each topic name [MQTT-3.3.1-5], which can be found by topic filter.
 *
 * The caller is responsible for expiry, and for deleting a message when the payload is empty [MQTT-3.3.1-6].
 */
export class RetainedStore<M> {
  #maxMessages = 0;
  #maxBytes = 0;
  /** Sum of the bytes of all entries. */
  bytes = 0;
  #seq = 0;
  /** Number of entries that do not count towards the limits. */
  #exempt = 0;
  /** Incremented by each change of the tree. */
  #version = 0;
  readonly #byTopic = new TextMap<RetainedEntry<M>>();
  readonly #root = new Level<M>(undefined, 0);

  constructor(quotas: RetainedQuotas = {}) {
    this.limit(quotas);
  }

  /** Change the limits. This removes no messages. */
  limit({ maxMessages = 0, maxBytes = 0 }: RetainedQuotas): void {
    this.#maxMessages = maxMessages;
    this.#maxBytes = maxBytes;
  }

  /** `seq` of the next entry. It can be increased, but not decreased. */
  get next(): number {
    return this.#seq;
  }

  set next(seq: number) {
    this.#seq = Math.max(seq, this.#seq);
  }

  /** Number of retained messages. */
  get count(): number {
    return this.#byTopic.size;
  }

  /**
   * Store a message as the retained message of its topic.
   *
   * If the maximum number of messages is reached, existing ones can still be replaced. If the message is refused, the previous message of
   * the topic is deleted, because an outdated message must not be sent [MQTT-3.3.1-5].
   * @param bytes the number of bytes that count towards `maxBytes`; 0: the message counts towards no limit, and is never refused
   * @param seq the sequence number of a message that is read from the store, in ascending order
   */
  put(topic: string, message: M, bytes: number, seq = this.#seq): 'stored' | 'replaced' | 'refused' {
    const old = this.#byTopic.get(topic);
    const oldBytes = old === undefined ? 0 : old.bytes;
    const total = this.bytes + bytes - oldBytes;
    const isOneMore = oldBytes === 0 && this.#maxMessages > 0 && this.#byTopic.size - this.#exempt >= this.#maxMessages;
    if (bytes > 0 && (isOneMore || (this.#maxBytes > 0 && total > this.#maxBytes))) {
      if (old !== undefined) this.#remove(old);
      return 'refused';
    }
    this.bytes = total;
    if (bytes === 0) this.#exempt++;
    if (old?.bytes === 0) this.#exempt--;
    // the Map keeps its existing key: with the same string in the entry, only one of two equal strings stays in memory
    const entry = new RetainedEntry(old === undefined ? topic : old.topic, message, seq, bytes);
    this.#seq = seq + 1;
    this.#byTopic.set(entry.topic, entry);
    if (old === undefined) {
      this.#insert(entry);
      return 'stored';
    }
    replaceInTree(old, entry);
    return 'replaced';
  }

  /** Restore an entry that was replaced or deleted, with its sequence number. The limits do not apply. */
  putBack(entry: RetainedEntry<M>): void {
    const now = this.#byTopic.get(entry.topic);
    if (now !== undefined) this.#remove(now);
    this.bytes += entry.bytes;
    if (entry.bytes === 0) this.#exempt++;
    this.#byTopic.set(entry.topic, entry);
    entry.isLive = true;
    entry.index = -1;
    this.#insert(entry);
  }

  /** Delete the retained message of a topic. @returns the deleted entry, or undefined if there was none */
  delete(topic: string): RetainedEntry<M> | undefined {
    const entry = this.#byTopic.get(topic);
    if (entry !== undefined) this.#remove(entry);
    return entry;
  }

  get(topic: string): RetainedEntry<M> | undefined {
    return this.#byTopic.get(topic);
  }

  /** All entries, in no particular order. The store may be changed during iteration. */
  [Symbol.iterator](): IterableIterator<RetainedEntry<M>> {
    return this.#byTopic.values();
  }

  /**
   * Find the retained messages whose topics match a valid topic filter, in the order in which they were stored.
   *
   * A filter that begins with a wildcard does not match topics that begin with `$` [MQTT-4.7.2-1].
   * @returns a snapshot; in entries that are replaced or deleted later, `isLive` becomes false
   */
  match(filter: string): RetainedEntry<M>[] {
    if (!isWildcard(filter)) {
      const entry = this.#byTopic.get(filter);
      return entry === undefined ? [] : [entry];
    }
    const found: RetainedEntry<M>[] = [];
    this.#collect(filter, found, Infinity);
    return sortBySeq(found);
  }

  /**
   * As `match`, if that takes little time.
   * @param most maximum number of entries and levels of the tree that are examined
   * @returns undefined: there are more
   */
  matchWithin(filter: string, most: number): RetainedEntry<M>[] | undefined {
    if (!isWildcard(filter)) return this.match(filter);
    const found: RetainedEntry<M>[] = [];
    return this.#collect(filter, found, most) ? sortBySeq(found) : undefined;
  }

  /**
   * Read the names of a level of the topics. The time to find the level depends on its depth alone.
   * @param prefix the topic of the level above and a slash, or an empty string
   */
  level(prefix: string): LevelNames {
    let level = this.#root;
    for (let depth = 0; ; depth++) {
      if (depth === MAX_DEPTH) return namesOf(topicsIn(level.ending, prefix), prefix.length);
      if (level.offset === prefix.length) return this.#namesIn(level, prefix);
      const child = level.child(prefix.slice(level.offset, prefix.indexOf('/', level.offset)));
      if (!(child instanceof Level)) return namesOf(topicsIn(child && [child], prefix), prefix.length);
      level = child;
    }
  }

  #namesIn(level: Level<M>, prefix: string): LevelNames {
    const isEnd = (name: string) => this.#byTopic.has(prefix + name);
    const version = () => this.#version;
    return {
      *names() {
        const before = version();
        if (level.firstLabel !== undefined) yield level.firstLabel;
        yield* level.others?.keys() ?? [];
        // a copy, because a removal moves the last entry of the list; a child may be there since the others were read
        for (const { topic } of level.ending?.slice() ?? []) {
          const name = topic.slice(prefix.length);
          if (version() !== before || level.child(name) === undefined) yield name;
        }
      },
      at(name) {
        const child = level.child(name);
        const below = child instanceof Level ? child.count : child === undefined ? 0 : 1;
        return below > 0 || isEnd(name) ? { isEnd: isEnd(name), below } : undefined;
      }
    };
  }

  #remove(entry: RetainedEntry<M>): void {
    this.#byTopic.delete(entry.topic);
    this.bytes -= entry.bytes;
    if (entry.bytes === 0) this.#exempt--;
    this.#version++;
    removeFromTree(entry);
  }

  #insert(entry: RetainedEntry<M>): void {
    this.#version++;
    const topic = entry.topic;
    let level = this.#root;
    for (let depth = 0; ; depth++) {
      level.count++;
      const label = labelAt(level, topic, depth);
      if (label === undefined) {
        addEnding(level, entry);
        return;
      }
      let child = level.child(label);
      if (child === undefined) {
        addPassing(level, label, entry);
        return;
      }
      if (child instanceof RetainedEntry) {
        const resident: RetainedEntry<M> = child;
        child = new Level<M>(level, level.offset + label.length + 1);
        child.count = 1;
        level.setChild(label, child, topic);
        const residentLabel = labelAt(child, resident.topic, depth + 1);
        if (residentLabel === undefined) addEnding(child, resident);
        else addPassing(child, residentLabel, resident);
      }
      level = child;
    }
  }

  /** @param left maximum number of entries and levels that are examined @returns false: there are more, and some of them are missing */
  #collect(filter: string, into: RetainedEntry<M>[], left: number): boolean {
    let levels = [this.#root];
    let start = 0;
    for (let depth = 0; levels.length > 0; depth++) {
      if (depth === MAX_DEPTH) {
        for (const level of levels) {
          left -= sizeOf(level);
          if (left < 0) return false;
          for (const entry of level.ending ?? []) if (matches(filter, entry.topic)) into.push(entry);
        }
        return true;
      }
      const stop = filter.indexOf('/', start);
      const label = stop === -1 ? filter.slice(start) : filter.slice(start, stop);
      if (label === '#') return collectBelow(levels, filter, into, left);
      // "a/#" also matches "a"
      const isLast = stop === -1 || (stop + 2 === filter.length && filter.charCodeAt(stop + 1) === HASH);
      const next: Level<M>[] = [];
      for (const level of levels) {
        left -= label === '+' ? sizeOf(level) : 1;
        if (left < 0) return false;
        if (label === '+') {
          if (isLast) collectEnding(level, into);
          if (stop !== -1) followAll(level, filter, next, into);
        } else {
          if (isLast) this.#collectNamed(level, label, into);
          if (stop !== -1) follow(level.child(label), filter, next, into);
        }
      }
      levels = next;
      start = stop + 1;
    }
    return true;
  }

  /** Collect the entry whose topic ends in a level with a given label. Prefix and label are its topic, which the Map finds. */
  #collectNamed(level: Level<M>, label: string, into: RetainedEntry<M>[]): void {
    if (level.ending === undefined) return;
    const entry = this.#byTopic.get(level.ending[0]!.topic.slice(0, level.offset) + label);
    if (entry !== undefined) into.push(entry);
  }
}

/** Get the label of a topic in a level if the topic continues below it; undefined if it ends in the level. */
function labelAt<M>(level: Level<M>, topic: string, depth: number): string | undefined {
  if (depth === MAX_DEPTH) return undefined;
  const stop = topic.indexOf('/', level.offset);
  return stop === -1 ? undefined : topic.slice(level.offset, stop);
}

/** The topics of entries that begin with a prefix. */
function* topicsIn<M>(entries: Iterable<RetainedEntry<M>> | undefined, prefix: string): Generator<string, void> {
  for (const { topic } of entries ?? []) if (topic.startsWith(prefix)) yield topic;
}

function addEnding<M>(level: Level<M>, entry: RetainedEntry<M>): void {
  entry.at = level;
  if (level.ending === undefined) {
    entry.index = 0;
    level.ending = [entry];
    return;
  }
  entry.index = level.ending.length;
  // `push` would allocate room for 17 entries in each of very many small lists
  if (entry.index < 16) level.ending = level.ending.concat([entry]);
  else level.ending.push(entry);
}

function addPassing<M>(level: Level<M>, label: string, entry: RetainedEntry<M>): void {
  entry.at = level;
  entry.index = -1;
  level.setChild(label, entry, entry.topic);
}

function replaceInTree<M>(old: RetainedEntry<M>, entry: RetainedEntry<M>): void {
  const level = old.at!;
  entry.at = level;
  entry.index = old.index;
  if (old.index === -1) level.setChild(childLabel(level, entry.topic), entry, entry.topic);
  else level.ending![old.index] = entry;
  old.at = undefined;
  old.isLive = false;
}

function removeFromTree<M>(entry: RetainedEntry<M>): void {
  let level = entry.at!;
  for (let above: Level<M> | undefined = level; above !== undefined; above = above.parent) above.count--;
  entry.at = undefined;
  entry.isLive = false;
  if (entry.index === -1) {
    level.removeChild(childLabel(level, entry.topic));
  } else {
    const last = level.ending!.pop()!;
    if (last !== entry) {
      level.ending![entry.index] = last;
      last.index = entry.index;
    }
    if (level.ending!.length === 0) level.ending = undefined;
  }
  while (level.parent !== undefined && level.ending === undefined && level.childCount === 0) {
    level = level.parent;
    level.removeChild(childLabel(level, entry.topic));
  }
}

/** Get the label under which a topic, or the level that it continues in, is a child of a level. */
function childLabel<M>(level: Level<M>, topic: string): string {
  return topic.slice(level.offset, topic.indexOf('/', level.offset));
}

function follow<M>(
  child: Level<M> | RetainedEntry<M> | undefined,
  filter: string,
  next: Level<M>[],
  into: RetainedEntry<M>[]
): void {
  if (child instanceof Level) next.push(child);
  else if (child !== undefined && matches(filter, child.topic)) into.push(child);
}

function followAll<M>(level: Level<M>, filter: string, next: Level<M>[], into: RetainedEntry<M>[]): void {
  // [MQTT-4.7.2-1]
  const isHiding = level.parent === undefined;
  if (level.firstLabel !== undefined && !(isHiding && isHidden(level.firstLabel)))
    follow(level.first, filter, next, into);
  level.others?.forEach((child, label) => {
    if (!(isHiding && isHidden(label))) follow(child, filter, next, into);
  });
}

function collectEnding<M>(level: Level<M>, into: RetainedEntry<M>[]): void {
  const ending = level.ending;
  if (ending === undefined) return;
  const isHiding = level.parent === undefined;
  for (const entry of ending) if (!isHiding || !isHidden(entry.topic)) into.push(entry);
}

/** Collect all entries in the levels and below them, after `filter` has reached its "#". @returns false: there are more than `left` */
function collectBelow<M>(levels: Level<M>[], filter: string, into: RetainedEntry<M>[], left: number): boolean {
  for (const level of levels) {
    left -= sizeOf(level);
    if (left < 0) return false;
    collectEnding(level, into);
    followAll(level, filter, levels, into); // the loop continues with the levels that this adds
  }
  return true;
}

/** Number of items that are examined in a level, including the level. */
function sizeOf<M>(level: Level<M>): number {
  return 1 + level.childCount + (level.ending?.length ?? 0);
}

function isHidden(topic: string): boolean {
  return topic.charCodeAt(0) === DOLLAR;
}

/** Sort entries by their sequence number. */
export function sortBySeq<M>(entries: RetainedEntry<M>[]): RetainedEntry<M>[] {
  const count = entries.length;
  if (count < 2) return entries;
  const keys = new Float64Array(count);
  let low = Infinity;
  let high = -1;
  let isSorted = true;
  for (let i = 0; i < count; i++) {
    const seq = entries[i]!.seq;
    keys[i] = seq;
    if (seq > high) high = seq;
    else isSorted = false;
    if (seq < low) low = seq;
  }
  if (isSorted) return entries;
  if ((high - low + 1) * count > Number.MAX_SAFE_INTEGER) return entries.sort((a, b) => a.seq - b.seq);
  // typed arrays are sorted natively: each number combines `seq` and index; 25 ms for 200,000 entries
  for (let i = 0; i < count; i++) keys[i] = (keys[i]! - low) * count + i;
  keys.sort();
  const sorted = new Array<RetainedEntry<M>>(count);
  for (let i = 0; i < count; i++) sorted[i] = entries[keys[i]! % count]!;
  return sorted;
}
