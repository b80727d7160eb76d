import { StateError } from '../base/errors.ts';
import type { Batch, Entry, Store } from './store.ts';

/** A block that grows past this many keys is cut in two: large enough for few blocks, small enough for cheap inserts. */
const BLOCK_KEYS = 512;

/**
 * A store in memory: what it keeps is gone with the object, and survives `close` and `open` on the same one. For tests that stop a
 * broker and start another on what the first one left, and for trying things out.
 * @param options.name how the store is named in errors and events; `memory` by default
 */
export function memoryStore(options: { readonly name?: string } = {}): Store {
  return new MemoryStore(options.name ?? 'memory');
}

/** Some neighbouring records. */
interface Block {
  readonly keys: string[];
  readonly values: string[];
}

/** Keys and values are kept as one-byte texts: these are copies, compare as their bytes do, and need no backing store of their own. */
class MemoryStore implements Store {
  readonly name: string;
  /** In order, and in each its keys; at least one. */
  readonly #blocks: Block[] = [{ keys: [], values: [] }];
  #isOpen = false;

  constructor(name: string) {
    this.name = name;
  }

  async open(): Promise<void> {
    this.#isOpen = true;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
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
    const first = from.toString('latin1');
    const end = to.toString('latin1');
    const entries: Entry[] = [];
    for (let at = this.#blockAt(first); at < this.#blocks.length; at++) {
      const { keys, values } = this.#blocks[at];
      for (let i = lowerBound(keys, first); i < keys.length; i++) {
        if (keys[i] >= end || entries.length === limit) return entries;
        entries.push({ key: Buffer.from(keys[i], 'latin1'), value: Buffer.from(values[i], 'latin1') });
      }
    }
    return entries;
  }

  #checkOpen(): void {
    if (!this.#isOpen) throw new StateError('STORE_CLOSED', `${this.name}: the store is not open`);
  }

  #put(key: string, value: string): void {
    const at = this.#blockAt(key);
    const { keys, values } = this.#blocks[at];
    const i = lowerBound(keys, key);
    if (keys[i] === key) {
      values[i] = value;
      return;
    }
    keys.splice(i, 0, key);
    values.splice(i, 0, value);
    if (keys.length <= BLOCK_KEYS) return;
    // What is appended in order leaves full blocks behind.
    const kept = i === keys.length - 1 ? i : BLOCK_KEYS / 2;
    this.#blocks.splice(at + 1, 0, { keys: keys.splice(kept), values: values.splice(kept) });
  }

  #delete(key: string): void {
    const at = this.#blockAt(key);
    const { keys, values } = this.#blocks[at];
    const i = lowerBound(keys, key);
    if (keys[i] !== key) return;
    keys.splice(i, 1);
    values.splice(i, 1);
    if (keys.length === 0 && this.#blocks.length > 1) this.#blocks.splice(at, 1);
  }

  /** Where the block is that has the key, or would. */
  #blockAt(key: string): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#blocks[middle].keys[0] <= key) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** How many of some keys in order come before one. */
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
