import { StateError } from '../base/errors.ts';
import type { Batch, Entry, Store, StoreSnapshot } from './store.ts';

/** A block with more keys than this is split: large enough for few blocks, and small enough for fast inserts. */
const BLOCK_KEYS = 512;

/**
 * Create a store in memory.
 *
 * Its content survives `close` and `open`, but not the object. It is meant for experiments, and for tests that stop a broker and start
 * another one with the same store.
 */
export function memoryStore(
  options: {
    /** The name of the store in errors and events. Default: `memory`. */
    readonly name?: string;
  } = {}
): Store {
  return new MemoryStore(options.name ?? 'memory');
}

/** A sequence of records with ascending keys. */
interface Block {
  readonly keys: string[];
  readonly values: string[];
}

/** Stores keys and values as latin1 strings: these are copies, compare like their bytes, and need no array buffers. */
class MemoryStore implements Store {
  readonly name: string;
  /** At least one block. The keys ascend within each block, and from block to block. */
  readonly #blocks: Block[] = [{ keys: [], values: [] }];
  #isOpen = false;
  /** Number of times that the store was closed. */
  #closings = 0;

  constructor(name: string) {
    this.name = name;
  }

  async open(): Promise<void> {
    this.#isOpen = true;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.#closings++;
  }

  async commit({ keys, values }: Batch): Promise<void> {
    this.#checkOpen();
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i].toString('latin1');
      const value = values[i];
      if (value === undefined) this.#delete(key);
      else this.#put(key, value.toString('latin1'));
    }
  }

  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    this.#checkOpen();
    return entriesIn(this.#blocks, from, to, limit);
  }

  async snapshot(): Promise<StoreSnapshot> {
    this.#checkOpen();
    const closings = this.#closings;
    let blocks: readonly Block[] | undefined = this.#blocks.map(({ keys, values }) => ({
      keys: [...keys],
      values: [...values]
    }));
    return {
      read: async (from, to, limit) => {
        if (blocks === undefined || this.#closings !== closings)
          throw new StateError('STORE_CLOSED', `${this.name}: the snapshot is closed`);
        return entriesIn(blocks, from, to, limit);
      },
      close: async () => {
        blocks = undefined;
      }
    };
  }

  #checkOpen(): void {
    if (!this.#isOpen) throw new StateError('STORE_CLOSED', `${this.name}: the store is not open`);
  }

  #put(key: string, value: string): void {
    const at = blockAt(this.#blocks, key);
    const { keys, values } = this.#blocks[at];
    const i = lowerBound(keys, key);
    if (keys[i] === key) {
      values[i] = value;
      return;
    }
    keys.splice(i, 0, key);
    values.splice(i, 0, value);
    if (keys.length <= BLOCK_KEYS) return;
    // keys that arrive in ascending order leave full blocks
    const splitAt = i === keys.length - 1 ? i : BLOCK_KEYS / 2;
    this.#blocks.splice(at + 1, 0, { keys: keys.splice(splitAt), values: values.splice(splitAt) });
  }

  #delete(key: string): void {
    const at = blockAt(this.#blocks, key);
    const { keys, values } = this.#blocks[at];
    const i = lowerBound(keys, key);
    if (keys[i] !== key) return;
    keys.splice(i, 1);
    values.splice(i, 1);
    if (keys.length === 0 && this.#blocks.length > 1) this.#blocks.splice(at, 1);
  }
}

/** See `Store.read`. */
function entriesIn(blocks: readonly Block[], from: Buffer, to: Buffer, limit: number): Entry[] {
  const first = from.toString('latin1');
  const end = to.toString('latin1');
  const entries: Entry[] = [];
  for (let at = blockAt(blocks, first); at < blocks.length; at++) {
    const { keys, values } = blocks[at];
    for (let i = lowerBound(keys, first); i < keys.length; i++) {
      if (keys[i] >= end || entries.length === limit) return entries;
      entries.push({ key: Buffer.from(keys[i], 'latin1'), value: Buffer.from(values[i], 'latin1') });
    }
  }
  return entries;
}

/** Find the block that contains a key, or to which it would be added. @returns its index */
function blockAt(blocks: readonly Block[], key: string): number {
  let low = 0;
  let high = blocks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (blocks[middle].keys[0] <= key) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Count the keys that are less than a key. The keys must be sorted. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
