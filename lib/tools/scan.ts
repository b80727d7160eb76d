import { keyAfter, kindKey } from '../store/keys.ts';
import { claim, release } from '../store/owners.ts';
import type { Entry, Store } from '../store/store.ts';

/** The progress of reading or writing a store. */
export interface StoreProgress {
  /** Number of records so far. */
  readonly records: number;
  /** Size of all keys and values so far, in bytes. */
  readonly bytes: number;
}

/** A key that is greater than every other key. */
export const END: Buffer = Buffer.alloc(8, 0xff);
/** Number of records per read. Memory suffices even if each of them is as large as a segment. */
const READ_AT_ONCE = 256;

/** Read all entries of an open store in slices, in the order of their keys. */
export async function* slicesOf(
  store: Pick<Store, 'read'>,
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

/** Run a function while a store is open. */
export async function withOpen<T>(store: Store, run: () => Promise<T>): Promise<T> {
  await store.open();
  try {
    return await run();
  } finally {
    await store.close();
  }
}

/**
 * Run a function while no other part of this process may use a store.
 * @param operation completes the error message for others that want the store: "it is being ..."
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

/** Reserve a store in this process until `release`. @throws StateError STORE_IN_USE */
export function claimFor(store: Store, operation: string): void {
  claim(store, {}, `it is being ${operation} in this process. Wait until that is done.`);
}
