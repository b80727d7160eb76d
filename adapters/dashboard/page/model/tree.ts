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

/** The rows of the opened levels, from the top. @param levels by their prefix; the prefix of the top level is `''` */
export function shownRows(levels: ReadonlyMap<string, Level>, opened: ReadonlySet<string>): readonly ShownRow[] {
  const found: ShownRow[] = [];
  const add = (prefix: string, depth: number): void => {
    const level = levels.get(prefix);
    if (level === undefined) return;
    for (const row of level.rows) {
      const isLeaf = row.retained_below + row.subscribed_below + (row.published_below ?? 0) === 0;
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
  if (/(^|\/)[+#](\/|$)/.test(topic) || topic.startsWith('$share/')) return undefined;
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
