import { useRef, useState } from 'preact/hooks';
import { getPage } from '../../app/requests.ts';
import { inOrder, type Level } from '../../model/tree.ts';

const ROWS = 100;

/** Loads levels of the topic tree, one page at a time. */
export function useLevels() {
  const [levels, setLevels] = useState<ReadonlyMap<string, Level>>(new Map());
  const asked = useRef(new Set<string>());
  const load = async (prefix: string, cursor?: string) => {
    const key = `${prefix} ${cursor}`;
    if (asked.current.has(key)) return;
    asked.current.add(key);
    const set = (change: Partial<Level>) =>
      setLevels((before) => {
        const level = before.get(prefix) ?? { rows: [], cursor: undefined, isLoading: true, error: undefined };
        return new Map(before).set(prefix, { ...level, ...change });
      });
    set({ isLoading: true, error: undefined });
    try {
      const { data, meta } = await getPage('/x/topics', {
        query: { prefix: prefix === '' ? undefined : prefix, _limit: ROWS, cursor }
      });
      setLevels((before) => {
        const isWhole = cursor === undefined && meta?.cursor === undefined;
        const rows = [...(cursor === undefined ? [] : (before.get(prefix)?.rows ?? [])), ...inOrder(data, isWhole)];
        return new Map(before).set(prefix, { rows, cursor: meta?.cursor, isLoading: false, error: undefined });
      });
    } catch (error) {
      asked.current.delete(key);
      set({ isLoading: false, error });
    }
  };
  return { levels, load };
}
