import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Batch, Entry, Store } from '../../lib/store/store.ts';

/**
 * The effect of a failing commit: `throws` and `rejects` store nothing; `applies` rejects although all of it is stored; `hangs` never
 * completes and stores nothing; `refuses` stores nothing, reports this (`isUntouched`), and the store remains usable.
 */
export type Fault = 'throws' | 'rejects' | 'applies' | 'hangs' | 'refuses';

/** An in-memory store that fails on request. After a fault nothing is written until it is opened again, as with LevelDB. */
export class FaultyStore implements Store {
  readonly name = 'the disk';
  inner: Store = memoryStore();
  /** The effect of every commit from now on. */
  fault: Fault | undefined;
  /** The effects of single commits, by their number, counted from 1. */
  faultAt = new Map<number, Fault>();
  /**
   * Maximum size of a commit: larger ones are refused, as by a store that is almost full: nothing is stored, and the store reports this.
   */
  mostBytes = Infinity;
  /** True if opening fails. */
  isShut = false;
  commits = 0;
  opens = 0;
  #isBroken = false;
  #failure: Promise<void> | undefined;

  async open(): Promise<void> {
    this.opens++;
    if (this.isShut) throw new Error('no disk there');
    this.#isBroken = false;
    await this.inner.open();
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    return this.inner.read(from, to, limit);
  }

  /** Defers the next commit until the returned function is called, and then rejects it. */
  failLater(): () => void {
    let fail = () => {};
    this.#failure = new Promise((_, reject) => {
      fail = () => reject(new Error('no space left'));
    });
    return () => fail();
  }

  commit(batch: Batch): Promise<void> {
    if (this.#failure !== undefined) {
      const failure = this.#failure;
      this.#failure = undefined;
      this.#isBroken = true;
      return failure;
    }
    const fault = this.faultAt.get(++this.commits) ?? this.fault ?? (this.#isBroken ? 'rejects' : undefined);
    const isRefused = fault === 'refuses' || batch.bytes > this.mostBytes;
    if (fault === undefined && !isRefused) return this.inner.commit(batch);
    const error = new Error('no space left');
    if (isRefused) return Promise.reject(Object.assign(error, { isUntouched: true }));
    this.#isBroken = true;
    if (fault === 'throws') throw error;
    if (fault === 'hangs') return new Promise(() => {});
    if (fault === 'rejects') return Promise.reject(error);
    return this.inner.commit(batch).then(() => Promise.reject(error));
  }
}
