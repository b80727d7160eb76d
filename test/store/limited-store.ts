import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Batch, Entry, Store } from '../../lib/store/store.ts';

/** A store in memory on a disk of a certain size: what is deleted or replaced takes its space until it is compacted. */
export class LimitedStore implements Store {
  readonly name = 'the small disk';
  /** Bytes before the reserve is touched. */
  capacity: number;
  readonly reserve: number;
  /** Taken by others. */
  others = 0;
  compactions = 0;
  /** Bytes of a value that it can not compress. */
  incompressible: (value: Buffer) => number = (value) => value.length;
  readonly #inner = memoryStore();
  readonly #sizes = new Map<string, number>();
  #live = 0;
  #garbage = 0;

  constructor(capacity: number, reserve: number) {
    this.capacity = capacity;
    this.reserve = reserve;
  }

  get used(): number {
    return this.#live + this.#garbage;
  }

  open(): Promise<void> {
    return this.#inner.open();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    return this.#inner.read(from, to, limit);
  }

  async commit(batch: Batch): Promise<void> {
    // what is committed is in a log first, as it came
    if (this.used + batch.bytes + this.others > this.capacity + this.reserve) throw new Error('no space left');
    await this.#inner.commit(batch);
    for (const [at, key] of batch.keys.entries()) {
      const name = key.toString('latin1');
      const before = this.#sizes.get(name) ?? 0;
      const value = batch.values[at];
      const bytes = value === undefined ? 0 : key.length + this.incompressible(value);
      this.#live += bytes - before;
      this.#garbage += before;
      if (value === undefined) this.#sizes.delete(name);
      else this.#sizes.set(name, bytes);
    }
  }

  async size(): Promise<number> {
    return this.used;
  }

  async compact(): Promise<void> {
    this.compactions++;
    this.#garbage = 0;
  }

  async freeBytes(): Promise<number> {
    return this.capacity - this.used - this.others;
  }
}
