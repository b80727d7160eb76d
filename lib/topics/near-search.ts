// Filters without wildcards are in a map and cannot be found by a spelling that is nearly theirs, so the likely
// spellings are looked up and a bounded number of the others is compared. In the trie the levels that are also levels
// of the topic are followed first. Both are bounded by a count of comparisons, not by time, so that the answer to one
// question is the same each time.

import type { TextMap } from '../base/collections/text-map.ts';
import type { Branch } from './branch.ts';
import type { ComparedTopic, FilterDifference } from './near-filter.ts';

/** A filter that nearly matches a topic. */
export interface NearFilter<T> {
  readonly filter: string;
  readonly differences: readonly FilterDifference[];
  /** One of its values. */
  readonly value: T;
  /** Number of its values. */
  readonly count: number;
}

/** The filters that nearly match a topic. */
export interface NearFilters<T> {
  /** The nearest first: those that are spelled differently, then those with another number of levels. */
  readonly found: readonly NearFilter<T>[];
  /** False: there were too many filters, or too many near ones, and not all were compared. */
  readonly isComplete: boolean;
}

/** A filter and its values, before it is known whether it is near. */
type Candidate<Slot> = readonly [filter: string, slot: Slot];

/** A level of a trie of filters. */
interface SearchedLevel<Slot> extends Branch<SearchedLevel<Slot>> {
  readonly plusChild: SearchedLevel<Slot> | undefined;
  readonly endValues: Slot | undefined;
  readonly hashValues: Slot | undefined;
}

/** Maximum number of filters without wildcards that are compared (10 to 20 ms). */
export const MAX_COMPARED = 100_000;
/** Maximum number of levels of the trie that are visited (10 to 40 ms). */
export const MAX_VISITED = 10_000;
/** Maximum number of near filters. */
export const MAX_NEAR = 100;
/** Topics with more levels are only compared as a whole. */
const MAX_LEVELS = 128;
const SLASH = 0x2f;
const SPACE = 0x20;
const BLANK = /\s/;

/** Counts down comparisons. */
class Budget {
  isExhausted = false;
  #left: number;

  constructor(most: number) {
    this.#left = most;
  }

  /** @returns false if no comparison is left */
  take(): boolean {
    if (this.#left-- > 0) return true;
    this.isExhausted = true;
    return false;
  }
}

/** Find the filters without wildcards that nearly match a topic. */
export function nearExact<Slot>(
  exact: TextMap<Slot>,
  topic: string,
  mostCompared: number
): { readonly candidates: Candidate<Slot>[]; readonly isComplete: boolean } {
  const candidates: Candidate<Slot>[] = [];
  const looked = new Set<string>([topic]);
  for (const spelling of spellingsOf(topic)) {
    if (looked.has(spelling)) continue;
    looked.add(spelling);
    const slot = exact.get(spelling);
    if (slot !== undefined) candidates.push([spelling, slot]);
  }
  const budget = new Budget(mostCompared);
  const [longer, mounted] = [`${topic}/`, `/${topic}`];
  for (const filter of exact.keys()) {
    if (candidates.length >= MAX_NEAR || !budget.take()) return { candidates, isComplete: false };
    const isNear = hasSameLetters(filter, topic) || filter.startsWith(longer) || filter.endsWith(mounted);
    if (isNear && !looked.has(filter)) candidates.push([filter, exact.get(filter) as Slot]);
  }
  return { candidates, isComplete: true };
}

/** Find the filters with wildcards that may nearly match a topic. */
export function nearWildcards<Slot>(
  root: SearchedLevel<Slot>,
  compared: ComparedTopic,
  mostVisited: number
): { readonly candidates: Candidate<Slot>[]; readonly isComplete: boolean } {
  const candidates: Candidate<Slot>[] = [];
  const add = (filter: string, slot: Slot | undefined) => {
    if (slot !== undefined && compared.differencesTo(filter).length > 0) candidates.push([filter, slot]);
  };
  const levels = compared.topic.split('/', MAX_LEVELS + 1);
  const known = new Set(levels.map((level) => level.toLowerCase())).add('');
  add('#', root.hashValues);
  const budget = new Budget(mostVisited);
  // Levels whose path has only levels of the topic and wildcards, and the others, which are visited last.
  const likely: Visit<Slot>[] = [childrenOf(root, '', false)];
  const others: Visit<Slot>[] = [];
  for (let visit = likely.at(-1); visit !== undefined; visit = likely.at(-1) ?? others.at(-1)) {
    const { value } = visit.children.next();
    if (value === undefined) {
      (visit.isForeign ? others : likely).pop();
      continue;
    }
    if (candidates.length >= MAX_NEAR || !budget.take()) return { candidates, isComplete: false };
    const [level, label, filter] = value;
    const isForeign = visit.isForeign || !(label === '+' || known.has(label.toLowerCase()));
    add(filter, level.endValues);
    add(`${filter}/#`, level.hashValues);
    const below = childrenOf(level, `${filter}/`, isForeign);
    if (isForeign) others.push(below);
    else likely.push(below);
  }
  return { candidates, isComplete: true };
}

interface Visit<Slot> {
  readonly children: Iterator<readonly [level: SearchedLevel<Slot>, label: string, filter: string], undefined>;
  /** True if a level of the path is not in the topic. */
  readonly isForeign: boolean;
}

function childrenOf<Slot>(level: SearchedLevel<Slot>, prefix: string, isForeign: boolean): Visit<Slot> {
  return { children: walk(level, prefix), isForeign };
}

function* walk<Slot>(
  level: SearchedLevel<Slot>,
  prefix: string
): Generator<readonly [SearchedLevel<Slot>, string, string], undefined, undefined> {
  const { plusChild, first, firstLabel, others } = level;
  if (plusChild !== undefined) yield [plusChild, '+', `${prefix}+`];
  if (first !== undefined) yield [first, firstLabel as string, `${prefix}${firstLabel}`];
  for (const label of others?.keys() ?? []) {
    const child = others?.get(label);
    if (child !== undefined) yield [child, label, `${prefix}${label}`];
  }
  return undefined;
}

/** The nearest first. */
export function byNearness<T>(one: NearFilter<T>, other: NearFilter<T>): number {
  return weightOf(one) - weightOf(other);
}

function weightOf({ differences }: NearFilter<unknown>): number {
  return differences.includes('levels') ? 10 : differences.length;
}

/** Filters that are likely if a topic is misspelled: another case, more or fewer slashes, and the levels at its beginning and end. */
function* spellingsOf(topic: string): Generator<string, void, undefined> {
  yield topic.toLowerCase();
  yield topic.toUpperCase();
  const levels = topic.split('/').filter((level) => level !== '');
  const plain = levels.join('/');
  for (const one of [topic, plain]) yield* [one, `/${one}`, `${one}/`, `/${one}/`];
  if (levels.length > MAX_LEVELS) return;
  for (let at = 1; at < levels.length; at++) {
    yield levels.slice(0, at).join('/');
    yield levels.slice(at).join('/');
  }
}

/** Tell whether two texts are equal but for case, slashes and blanks. Characters above ASCII are taken for equal: `ComparedTopic` decides. */
function hasSameLetters(one: string, other: string): boolean {
  let at = one.length - 1;
  let against = other.length - 1;
  for (;;) {
    while (at >= 0 && isSlashOrBlank(one.charCodeAt(at))) at--;
    while (against >= 0 && isSlashOrBlank(other.charCodeAt(against))) against--;
    if (at < 0 || against < 0) return at === against;
    const [a, b] = [one.charCodeAt(at--), other.charCodeAt(against--)];
    if (a !== b && (a | 0x20) !== (b | 0x20) && a < 0x80 && b < 0x80) return false;
  }
}

/** Tell whether a character is a slash or one that `String.trim` removes. */
function isSlashOrBlank(code: number): boolean {
  if (code < 0x80) return code === SLASH || code === SPACE || (code >= 0x09 && code <= 0x0d);
  return (
    code === 0xa0 || code === 0xfeff || (code >= 0x1680 && code <= 0x3000 && BLANK.test(String.fromCharCode(code)))
  );
}
