// A search looks at names in no order and stops when it has enough, so it does not sort as lists do. What has exactly the
// name is looked up and comes first, because the walk may end before it. Each kind gets an equal part of what is left of
// the bound, so that very many clients do not hide the topics; a part that a kind does not need goes to the next ones.

import { InvalidInput, truncated } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { Pace } from '../base/pace.ts';
import { NamePattern } from './name-pattern.ts';

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;
const MAX_TEXT = 256;
const MAX_DETAIL = 256;
/** Maximum number of names that a search reads: several times 1,000,000 topics, at 0.2 to 0.4 us each. */
const MAX_EXAMINED = 10_000_000;
/** Number of characters of a name whose comparison is a unit of `Pace`. */
const CHARACTERS_PER_UNIT = 256;

/** The kinds of things that a search finds, in the order of the results. */
export const FOUND_KINDS = ['client', 'topic', 'subscription', 'rule', 'streamRule'] as const;

/** Kind of something that was found: `topic` has a retained message, `subscription` is a topic filter that has subscriptions. */
export type FoundKind = (typeof FOUND_KINDS)[number];

/** A search. */
export interface SearchQuery {
  /**
   * The beginning of a name, or a pattern for whole names in which `*` stands for any characters: `*pump*`. From 1 to 256 characters. The
   * letters A to Z match in either case; `+`, `#` and `?` have no special meaning.
   */
  readonly text: string;
  /** Maximum number of entries of each kind, from 1 to 100. Default 10. */
  readonly limit?: number | undefined;
}

/** Something that was found. */
export interface FoundEntry {
  /** The kind of thing that was found. */
  readonly kind: FoundKind;
  /** The client id, the topic, the topic filter without a share prefix, or the id of the rule. */
  readonly name: string;
  /** Words for people: the state of a client or a stream rule, the size of a message, the description of a rule; 256 characters. May be empty. */
  readonly detail: string;
}

/** The result of a search. */
export interface SearchResult {
  /** Name of the node that has answered. */
  readonly node: string;
  /** The entries of each kind, one kind after the other; an entry whose name is exactly the text is the first of its kind. */
  readonly entries: readonly FoundEntry[];
  /** False if there are more entries of a kind than `limit`, or if there are names beyond the 10,000,000 that a search reads. */
  readonly isComplete: boolean;
}

/** Items of a kind. `all` is only called when its walk begins, and may be changed during the walk. */
interface Searched<T> {
  get(name: string): T | undefined;
  all(): Iterable<T>;
  nameOf(item: T): string;
  detailOf(item: T): string;
}

/** The items of each kind. */
export type SearchedKinds = { readonly [K in FoundKind]: Searched<never> };

/** Make items of a kind; the type of the items is only known here. */
export function searched<T>(items: Searched<T>): Searched<never> {
  return items as Searched<never>;
}

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
export function readSearch(query: SearchQuery): { readonly text: string; readonly limit: number } {
  checkObject(query, 'query');
  checkNames(query, ['text', 'limit'], 'search');
  const { text, limit = DEFAULT_LIMIT } = query;
  if (typeof text !== 'string' || text.length < 1 || text.length > MAX_TEXT)
    throw new InvalidInput('OPTION_INVALID', 'text', `a string of 1 to ${MAX_TEXT} characters`, text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new InvalidInput('OPTION_INVALID', 'limit', `an integer from 1 to ${MAX_LIMIT}`, limit);
  return { text, limit };
}

/** Search all kinds, one after the other. */
export async function search(
  kinds: SearchedKinds,
  { text, limit }: ReturnType<typeof readSearch>,
  pace: Pace,
  maxExamined = MAX_EXAMINED
): Promise<Omit<SearchResult, 'node'>> {
  const pattern = new NamePattern(text);
  const entries: FoundEntry[] = [];
  let left = maxExamined;
  let isComplete = true;
  for (const [at, kind] of FOUND_KINDS.entries()) {
    const most = Math.floor(left / (FOUND_KINDS.length - at));
    const walk = await walkKind(kinds[kind] as Searched<unknown>, { kind, text, pattern, limit, most }, pace);
    entries.push(...walk.entries);
    left -= walk.examined;
    isComplete &&= walk.isComplete;
  }
  return { entries, isComplete };
}

interface Walk {
  readonly kind: FoundKind;
  readonly text: string;
  readonly pattern: NamePattern;
  readonly limit: number;
  /** Maximum number of names that are looked at. */
  readonly most: number;
}

async function walkKind<T>(
  { get, all, nameOf, detailOf }: Searched<T>,
  { kind, text, pattern, limit, most }: Walk,
  pace: Pace
): Promise<{ readonly entries: readonly FoundEntry[]; readonly examined: number; readonly isComplete: boolean }> {
  const entries: FoundEntry[] = [];
  const exact = get(text);
  if (exact !== undefined) entries.push({ kind, name: text, detail: truncated(detailOf(exact), MAX_DETAIL) });
  let examined = 0;
  for (const item of all()) {
    if (examined === most) return { entries, examined, isComplete: false };
    examined++;
    const name = nameOf(item);
    if (name !== text && pattern.matches(name)) {
      if (entries.length === limit) return { entries, examined, isComplete: false };
      entries.push({ kind, name, detail: truncated(detailOf(item), MAX_DETAIL) });
    }
    if (pace.spend(1 + pattern.reach(name) / CHARACTERS_PER_UNIT)) await pace.next();
  }
  return { entries, examined, isComplete: true };
}
