import { useRef, useState } from 'preact/hooks';
import { getPage } from '../../app/requests.ts';
import { type Level, PAGE_ROWS, withPage } from '../../model/tree.ts';

/** Maximum number of rows of a level that are loaded again. */
const MAX_AGAIN = 1_000;

/** Loads levels of the topic tree, one page at a time. */
export function useLevels() {
  const [levels, setLevels] = useState<ReadonlyMap<string, Level>>(new Map());
  /** The cursors that were asked for, by the prefix of the level; undefined: the first page. */
  const asked = useRef(new Map<string, Set<string | undefined>>());
  const load = async (prefix: string, cursor?: string, limit = PAGE_ROWS) => {
    const round = asked.current;
    const cursors = round.get(prefix) ?? new Set();
    if (cursors.has(cursor)) return;
    round.set(prefix, cursors.add(cursor));
    const set = (change: Partial<Level>) =>
      setLevels((before) => {
        const level = before.get(prefix) ?? { rows: [], cursor: undefined, isLoading: true, error: undefined };
        return new Map(before).set(prefix, { ...level, ...change });
      });
    set({ isLoading: true, error: undefined });
    try {
      const { data, meta } = await getPage('/x/topics', {
        query: { prefix: prefix === '' ? undefined : prefix, _limit: limit, cursor }
      });
      if (round !== asked.current) return; // the level is being loaded again
      if (cursor === undefined) round.set(prefix, new Set([undefined])); // the pages after it can be asked for again
      setLevels((before) => new Map(before).set(prefix, withPage(before.get(prefix), cursor, data, meta?.cursor)));
    } catch (error) {
      round.get(prefix)?.delete(cursor);
      if (round === asked.current) set({ isLoading: false, error });
    }
  };
  /** Load all levels again, with as many rows as they have. Their rows stay until the new ones have come. */
  const reload = () => {
    if (levels.size === 0) return;
    asked.current = new Map();
    for (const [prefix, { rows }] of levels)
      void load(prefix, undefined, Math.max(PAGE_ROWS, Math.min(MAX_AGAIN, rows.length)));
  };
  return { levels, load, reload };
}
