// A page of a level looks at the names of this level alone, however many retained topics are below them; topic filters have a
// tree only while many levels are read (filter-tree.ts). Names are not sorted in their trees, so each is compared with the
// greatest one selected so far, which takes some 30 ns; only what is selected is sorted and counted. 1,000,000 names in one
// level take 60 to 100 ms, in slices; with 1,000 names a page takes less than one.

import type { Pace } from '../base/pace.ts';
import type { LevelNames } from '../topics/level-names.ts';
import { isUpTo, MAX_COUNTED, type WantedNames } from './level-walk.ts';

/** A name in the topic tree: of topics with retained messages, and of topic filters with subscriptions. */
export interface TopicLevel {
  /** Name of the node that has answered. */
  readonly node: string;
  /** The name of the level, which may be empty; `+` and `#` are wildcards of topic filters. */
  readonly level: string;
  /** The topic or topic filter that ends here. */
  readonly topic: string;
  /** True if the topic has a retained message. */
  readonly isRetained: boolean;
  /** True if the topic filter has subscriptions. */
  readonly isSubscribed: boolean;
  /** Number of topics below this one that have a retained message. */
  readonly retainedBelow: number;
  /** Number of topic filters below this one that have subscriptions. */
  readonly subscribedBelow: number;
}

/** Work of looking at a name, in units of `Pace`. */
const NAME_UNITS = 1 / 8;
/** Maximum number of names that are selected at a time. */
const SELECTED_AT_ONCE = 20_000;

/** The names of a level: of topics with retained messages, and of topic filters. */
type LevelTrees = readonly [LevelNames, LevelNames];

/** The part of a level that is requested. */
interface LevelPart {
  /** The key of the last name before the part: the name and a slash. Undefined: the part is at the beginning. */
  readonly after: string | undefined;
  readonly skip: number;
  /** Number of names. */
  readonly limit: number;
}

/** The selected names of a level. */
interface SelectedNames {
  /** The names, and one more if there are more. */
  readonly found: readonly string[];
  /** The names of the level, at least those in `found`. */
  readonly trees: LevelTrees;
  /** Number of all names of the level; -1: there are more than 100,000, which are not counted. */
  readonly count: number;
}

/**
 * Select names of a level in the order of their keys: the names with a slash.
 * @param read reads the level, or at least the given part of its names
 */
export async function selectNames(
  read: (part: WantedNames) => Promise<LevelTrees>,
  { after = '', skip, limit }: LevelPart,
  pace: Pace
): Promise<SelectedNames> {
  let from = after;
  for (let left = skip; ; ) {
    const isLast = left + limit < SELECTED_AT_ONCE;
    const wanted = isLast ? left + limit + 1 : Math.min(left, SELECTED_AT_ONCE);
    const trees = await read({ after: from, wanted });
    const { found, count } = await smallest(trees, from, wanted, pace);
    if (isLast) return { found: found.slice(left), trees, count };
    if (found.length < wanted) return { found: [], trees, count };
    from = `${found[wanted - 1]}/`;
    left -= wanted;
  }
}

/** The names with the smallest keys after one, in order. */
async function smallest(
  [first, second]: LevelTrees,
  after: string,
  wanted: number,
  pace: Pace
): Promise<Pick<SelectedNames, 'found' | 'count'>> {
  let found: string[] = [];
  let count = first.isPart === true || second.isPart === true ? MAX_COUNTED + 1 : 0;
  /** The key of the greatest name that is selected, once there are enough. */
  let most: string | undefined;
  for (const [at, tree] of [first, second].entries())
    for (const name of tree.names()) {
      if (pace.spend(NAME_UNITS)) await pace.next();
      if (count <= MAX_COUNTED && (at === 0 || first.at(name) === undefined)) count++;
      if (after !== '' && isUpTo(name, after)) continue;
      if (most !== undefined && name > most) continue; // then its key is greater as well
      found.push(name);
      if (found.length < 2 * wanted) continue;
      found = sorted(found).slice(0, wanted);
      if (found.length === wanted) most = `${found[wanted - 1]}/`;
    }
  return { found: sorted(found).slice(0, wanted), count: count > MAX_COUNTED ? -1 : count };
}

/** The names in the order of their keys, each once. */
function sorted(names: string[]): string[] {
  return names.sort(byKey).filter((name, at) => at === 0 || name !== names[at - 1]);
}

function byKey(one: string, other: string): number {
  const [first, second] = [`${one}/`, `${other}/`];
  return first < second ? -1 : first > second ? 1 : 0;
}

/** The record of a name. @param prefix the topic of the level above and a slash, or an empty string */
export function levelRecord([retained, filters]: LevelTrees, prefix: string, name: string, node: string): TopicLevel {
  const [ofRetained, ofFilters] = [retained.at(name), filters.at(name)];
  return {
    ...{ node, level: name, topic: prefix + name },
    isRetained: ofRetained?.isEnd ?? false,
    isSubscribed: ofFilters?.isEnd ?? false,
    retainedBelow: ofRetained?.below ?? 0,
    subscribedBelow: ofFilters?.below ?? 0
  };
}
