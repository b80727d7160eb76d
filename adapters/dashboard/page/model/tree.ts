// The topic tree as rows: a level is loaded when its row is opened, a page at a time, so its cost is that of the rows shown.

/** A row of a level, as `/x/topics` has it. */
export interface TopicRow {
  readonly level: string;
  readonly topic: string;
  readonly prefix: string;
  readonly retained: boolean;
  readonly subscribed: boolean;
  readonly retained_below: number;
  readonly subscribed_below: number;
  /** The topic was published to recently. */
  readonly published?: boolean;
  readonly published_below?: number;
}

/** A level that is loaded, or being loaded. */
export interface Level {
  readonly rows: readonly TopicRow[];
  /** The cursor of the next page; undefined: there is none. */
  readonly cursor: string | undefined;
  readonly isLoading: boolean;
  readonly error: unknown;
}

const NATURAL = new Intl.Collator('en', { numeric: true });

/** Number of rows of a page of a level. A level with more has the order of the broker. */
export const PAGE_ROWS = 100;

/**
 * The rows of a page of a level, those of a whole level in natural order: `2` before `10`. The pages of a longer level keep the order in which the
 * broker lists them, because the rows of a later page would move those of an earlier one.
 */
export function inOrder(rows: readonly TopicRow[], isWhole: boolean): readonly TopicRow[] {
  if (!isWhole) return rows;
  return rows.toSorted((a, b) => NATURAL.compare(a.level, b.level) || (a.level < b.level ? -1 : 1));
}

/**
 * A level with a page of its rows that has come.
 * @param asked the cursor of the page; undefined: the first one, which replaces all rows
 * @param next the cursor of the page after it; undefined: there is none
 * @returns the same level if the page does not follow its rows: its first page has come again since the page was asked for
 */
export function withPage(
  level: Level | undefined,
  asked: string | undefined,
  page: readonly TopicRow[],
  next: string | undefined
): Level {
  if (asked !== undefined && level !== undefined && level.cursor !== asked) return level;
  const isWhole = asked === undefined && next === undefined && page.length <= PAGE_ROWS;
  const rows = [...(asked === undefined ? [] : (level?.rows ?? [])), ...inOrder(page, isWhole)];
  return { rows, cursor: next, isLoading: false, error: undefined };
}

/** The identity of a row among those that are shown. */
export function rowKey(one: ShownRow): string {
  return one.kind === 'topic' ? one.row.prefix : `${one.kind} ${one.prefix}`;
}

/** True if a list begins with another one: nothing moves if it is shown instead. */
export function isExtended(shown: readonly string[], latest: readonly string[]): boolean {
  return shown.every((key, index) => key === latest[index]);
}

/** A row that is shown. */
export type ShownRow =
  | {
      readonly kind: 'topic';
      readonly row: TopicRow;
      readonly depth: number;
      readonly isOpen: boolean;
      readonly isLeaf: boolean;
    }
  | {
      readonly kind: 'more' | 'loading' | 'error';
      readonly prefix: string;
      readonly depth: number;
      readonly error?: unknown;
    };

/** The number below a row, at least: a topic that is retained and was published counts once; subscribed filters are counted apart. */
export function countBelow({ retained_below, subscribed_below, published_below = 0 }: TopicRow): number {
  return Math.max(retained_below, published_below) + subscribed_below;
}

/** The rows of the opened levels, from the top. @param levels by their prefix; the prefix of the top level is `''` */
export function shownRows(levels: ReadonlyMap<string, Level>, opened: ReadonlySet<string>): readonly ShownRow[] {
  const found: ShownRow[] = [];
  const add = (prefix: string, depth: number): void => {
    const level = levels.get(prefix);
    if (level === undefined) return;
    for (const row of level.rows) {
      const isLeaf = countBelow(row) === 0;
      const isOpen = !isLeaf && opened.has(row.prefix);
      found.push({ kind: 'topic', row, depth, isOpen, isLeaf });
      if (isOpen) add(row.prefix, depth + 1);
    }
    if (level.error !== undefined) found.push({ kind: 'error', prefix, depth, error: level.error });
    else if (level.isLoading) found.push({ kind: 'loading', prefix, depth });
    else if (level.cursor !== undefined) found.push({ kind: 'more', prefix, depth });
  };
  add('', 0);
  return found;
}

/** The prefixes of the levels above a topic: `a/`, `a/b/` for `a/b/c`. */
export function prefixesAbove(topic: string): readonly string[] {
  const names = topic.split('/');
  return names.slice(1).map((_, index) => `${names.slice(0, index + 1).join('/')}/`);
}

/** The share group of a subscription and its topic filter: `g` and `a/#` of `$share/g/a/#`. @returns an undefined group for one that is not shared */
export function sharedParts(filter: string): readonly [group: string | undefined, filter: string] {
  const [, group, shared] = /^\$share\/([^/]+)\/(.+)$/s.exec(filter) ?? [];
  return group === undefined ? [undefined, filter] : [group, shared];
}

/** Maximum number of rows of a level that are loaded to find a topic. */
const MAX_SEARCHED = 2_000;

/** The next page of a level that is needed to show a topic. @returns undefined: none, or one is being loaded, or too many have been */
export function nextPageTo(
  levels: ReadonlyMap<string, Level>,
  topic: string
): { readonly prefix: string; readonly cursor: string } | undefined {
  const names = topic.split('/');
  for (const [depth, prefix] of ['', ...prefixesAbove(topic)].entries()) {
    const level = levels.get(prefix);
    if (level === undefined || level.isLoading || level.error !== undefined) return undefined;
    if (level.rows.some((row) => row.level === names[depth])) continue;
    const { cursor, rows } = level;
    return cursor === undefined || rows.length >= MAX_SEARCHED ? undefined : { prefix, cursor };
  }
  return undefined;
}

/** The topic filter whose messages a row counts: its own, and those below it. @returns undefined for a filter with wildcards */
export function watchedFilter({ topic, prefix }: TopicRow, isLeaf: boolean): string | undefined {
  if (/(^|\/)[+#](\/|$)/.test(topic) || /^\$(share|queue)\//.test(topic)) return undefined;
  return isLeaf ? topic : `${prefix}#`;
}

/** Maximum number of watched topics, and of their characters: the server has a limit for both. */
const MAX_WATCHED = 200;
const MAX_WATCHED_CHARACTERS = 100_000;

/** The first topic filters of a list that can be watched. Those that are very long are left out. */
export function watchable(filters: readonly string[]): readonly string[] {
  let left = MAX_WATCHED_CHARACTERS;
  const fitting = filters.filter(({ length }) => {
    if (length <= left) left -= length;
    else return false;
    return true;
  });
  return fitting.slice(0, MAX_WATCHED);
}

/** Maximum number of topics that are remembered as published. */
const MAX_PUBLISHED = 2_000;
/** The live stream cuts topics at this length, so longer ones are not known. */
const MAX_KNOWN_CHARACTERS = 1_024;

/** The topics that were published to lately, the latest last. @returns the same list if there are no new ones */
export function latelyPublished(before: readonly string[], topics: readonly string[]): readonly string[] {
  const known = new Set(before);
  const added = topics.filter((topic) => topic !== '' && topic.length < MAX_KNOWN_CHARACTERS && !known.has(topic));
  return added.length === 0 ? before : [...before, ...new Set(added)].slice(-MAX_PUBLISHED);
}

/**
 * The loaded levels with topics that were published to. Rows that only they have stand in natural order among the others where a level has that order,
 * and otherwise at its end.
 */
export function withPublished(
  levels: ReadonlyMap<string, Level>,
  topics: readonly string[]
): ReadonlyMap<string, Level> {
  const changed = new Map<string, Map<string, TopicRow>>();
  for (const topic of topics) {
    const names = topic.split('/');
    for (const [depth, level] of names.entries()) {
      const above = names
        .slice(0, depth)
        .map((name) => `${name}/`)
        .join('');
      const loaded = levels.get(above);
      if (loaded === undefined) break;
      const rows = changed.get(above) ?? new Map(loaded.rows.map((row) => [row.level, row]));
      changed.set(above, rows);
      const row = rows.get(level) ?? { ...NEW_ROW, level, topic: above + level, prefix: `${above + level}/` };
      const isTopic = depth === names.length - 1;
      rows.set(
        level,
        isTopic ? { ...row, published: true } : { ...row, published_below: (row.published_below ?? 0) + 1 }
      );
    }
  }
  if (changed.size === 0) return levels;
  const merged = [...changed].map(([prefix, rows]) => {
    const level = levels.get(prefix) as Level;
    const isInOrder = level.cursor === undefined && level.rows.length <= PAGE_ROWS;
    return [prefix, { ...level, rows: inOrder([...rows.values()], isInOrder) }] as const;
  });
  return new Map([...levels, ...merged]);
}

const NEW_ROW = { retained: false, subscribed: false, retained_below: 0, subscribed_below: 0 };
