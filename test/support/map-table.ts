/** A table in memory, which replaces `Broker.table`. */
export function mapTable<V>() {
  const rows = new Map<string, V>();
  return {
    undone: 0,
    get size(): number {
      return rows.size;
    },
    get: (key: string): V | undefined => rows.get(key),
    set: async (key: string, value: V): Promise<void> => {
      rows.set(key, value);
    },
    append: async (key: string, value: V): Promise<void> => {
      rows.delete(key);
      rows.set(key, value);
    },
    delete: async (key: string): Promise<boolean> => rows.delete(key),
    reorder(compare: (a: V, b: V) => number): void {
      const entries = [...rows].sort(([, a], [, b]) => compare(a, b));
      rows.clear();
      for (const [key, value] of entries) rows.set(key, value);
    },
    [Symbol.iterator]: (): Iterator<[string, V]> => rows[Symbol.iterator]()
  };
}
