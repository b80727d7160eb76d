import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Batch, Entry, Store } from '../../lib/store/store.ts';
import { turns } from './support.ts';

/** An in-memory store on a disk of limited size: deleted and replaced data takes up space until compaction. */
export class LimitedStore implements Store {
  readonly name = 'the small disk';
  /** Bytes available before the reserve is used. */
  capacity: number;
  readonly reserve: number;
  /** Bytes used by other programs. */
  others = 0;
  compactions = 0;
  /** Turns of the event loop before a commit is written, and before the free space is known. */
  turnsToCommit = 0;
  turnsToLook = 0;
  /** Bytes of a value that cannot be compressed. */
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
    await turns(this.turnsToCommit);
    // Committed data is first in a log, uncompressed.
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
    await turns(this.turnsToLook);
    return this.capacity - this.used - this.others;
  }
}
