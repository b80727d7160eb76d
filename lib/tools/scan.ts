import { keyAfter, kindKey } from '../store/keys.ts';
import { claim, release } from '../store/owners.ts';
import type { Entry, Store } from '../store/store.ts';

/** How far the reading or writing of a store is. */
export interface StoreProgress {
  readonly records: number;
  /** Of all keys and values so far. */
  readonly bytes: number;
}

/** Behind every key. */
export const END: Buffer = Buffer.alloc(8, 0xff);
/** Few enough that they are held when each is as large as a segment. */
const READ_AT_ONCE = 256;

/** Every entry of a store that is open, in the order of keys and in slices. */
export async function* slicesOf(
  store: Store,
  onProgress: ((progress: StoreProgress) => void) | undefined
): AsyncGenerator<Entry[], void> {
  let [records, bytes] = [0, 0];
  for (let from = kindKey(0); ; ) {
    const entries = await store.read(from, END, READ_AT_ONCE);
    yield entries;
    for (const { key, value } of entries) bytes += key.length + value.length;
    records += entries.length;
    onProgress?.({ records, bytes });
    const last = entries.at(-1);
    if (last === undefined || entries.length < READ_AT_ONCE) return;
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

/**
 * Have a store alone in this process until all is done.
 * @param operation what is being done to it, for whoever wants it meanwhile
 * @throws StateError STORE_IN_USE
 */
export async function withClaim<T>(store: Store, operation: string, run: () => Promise<T>): Promise<T> {
  claimFor(store, operation);
  try {
    return await run();
  } finally {
    release(store);
  }
}

/** Until `release`. @throws StateError STORE_IN_USE */
export function claimFor(store: Store, operation: string): void {
  claim(store, {}, `it is being ${operation} in this process. Wait until that has ended.`);
}
