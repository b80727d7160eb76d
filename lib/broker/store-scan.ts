import { keyAfter, kindKey } from '../store/keys.ts';
import type { Entry, Store } from '../store/store.ts';

/** How far the reading or writing of a store is. */
export interface StoreProgress {
  readonly records: number;
  /** Of all keys and values so far. */
  readonly bytes: number;
}

/** Few enough that they are held when each is as large as a segment. */
const READ_AT_ONCE = 256;

/** Every entry of a store that is open, in the order of keys. */
export async function scan(
  store: Store,
  each: (entry: Entry) => void | Promise<void>,
  onProgress?: (progress: StoreProgress) => void
): Promise<StoreProgress> {
  const end = Buffer.alloc(8, 0xff);
  let records = 0;
  let bytes = 0;
  for (let from = kindKey(0); ; ) {
    const entries = await store.read(from, end, READ_AT_ONCE);
    for (const entry of entries) {
      records++;
      bytes += entry.key.length + entry.value.length;
      const turn = each(entry);
      if (turn !== undefined) await turn;
    }
    onProgress?.({ records, bytes });
    const last = entries.at(-1);
    if (last === undefined || entries.length < READ_AT_ONCE) return { records, bytes };
    from = keyAfter(last.key);
  }
}

/** Open a store, and close it when all is done. */
export async function withOpen<T>(store: Store, run: () => Promise<T>): Promise<T> {
  await store.open();
  try {
    return await run();
  } finally {
    await store.close();
  }
}
