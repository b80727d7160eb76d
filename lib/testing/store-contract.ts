// Everything that a broker relies on in a store is a case here; a new use of a store by the ledger needs one. The
// name of a case is a sentence about the store and is public. Cases use keys and values of any bytes and sizes, and
// only the public verbs, so any store can run them; optional abilities are skipped if the store does not have them.
// Failing commits are tested only if `failNextCommit` is given.

import assert from 'node:assert/strict';
import { StateError } from '../base/errors.ts';
import { Batch, type Entry, type Store } from '../store/store.ts';

/** The functions with which the contract creates the stores that it tests. */
export interface StoreContractOptions {
  /** Create an empty store that is not open. */
  create(): Store | Promise<Store>;
  /** Create a store with the persisted contents of `store`, as after a restart. `store` is closed. Default: `store` itself. */
  reopen?(store: Store): Store | Promise<Store>;
  /** Make the next commit of an open store fail, midway if possible. Without this, the cases that need it are left out. */
  failNextCommit?(store: Store): void | Promise<void>;
  /** Remove the contents of a store after a case. The store is closed. It is the last one that `reopen` created, if any. */
  dispose?(store: Store): void | Promise<void>;
}

/** One test case of the contract. */
export interface StoreCase {
  /** A sentence about the store, without its subject: `keeps all entries when it is closed and opened again`. */
  readonly name: string;
  /** Run the case. Rejects with an `AssertionError`, or with the error that the store threw. */
  run(): Promise<void>;
}

type StoreTest = (testStore: TestStore) => Promise<void>;

/**
 * Create the test cases that a store must pass to be used by a broker. They work with any test runner.
 *
 * ```ts
 * for (const { name, run } of storeContract({ create: () => new MyStore() })) it(name, run);
 * ```
 * Each case creates its own store and closes it.
 */
export function storeContract(options: StoreContractOptions): StoreCase[] {
  const checks = options.failNextCommit === undefined ? CHECKS : { ...CHECKS, ...FAILING };
  return Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      const testStore = new TestStore(options, await options.create());
      try {
        await check(testStore);
      } finally {
        await testStore.end();
      }
    }
  }));
}

/** The store of a case, with the operations that the cases use. */
class TestStore {
  store: Store;
  readonly #options: StoreContractOptions;

  constructor(options: StoreContractOptions, store: Store) {
    this.#options = options;
    this.store = store;
  }

  async restart(): Promise<void> {
    await this.store.close();
    this.store = (await this.#options.reopen?.(this.store)) ?? this.store;
    await this.store.open();
  }

  async failNextCommit(): Promise<void> {
    await this.#options.failNextCommit?.(this.store);
  }

  async end(): Promise<void> {
    await this.store.close();
    await this.#options.dispose?.(this.store);
  }

  put(...entries: readonly (readonly [key: string | Buffer, value: string | Buffer])[]): Promise<void> {
    return this.store.commit(batchOf(entries));
  }

  /** All entries as `key=value`, with one character per byte. */
  async all(): Promise<string[]> {
    return (await this.store.read(FIRST, END, 1_000_000)).map(shown);
  }

  async keys(from: string, to: string, limit = 1000): Promise<string[]> {
    return (await this.store.read(bytes(from), bytes(to), limit)).map(({ key }) => key.toString('latin1'));
  }
}

/** The error of a store that is not open. */
const CLOSED = 'a store that is not open rejects with a StateError of the code STORE_CLOSED';
const isClosed = (error: unknown) => error instanceof StateError && error.code === 'STORE_CLOSED';

const FIRST = Buffer.of(0);
const END = Buffer.alloc(9, 0xff);

/** The case that takes longest. */
export const MANY_KEYS = 'persists 100,000 keys and reads them in slices';

const CHECKS: Readonly<Record<string, StoreTest>> = {
  'has a name': async ({ store }) => {
    assert.match(store.name, /./);
  },

  'is empty at first': async (testStore) => {
    await testStore.store.open();
    assert.deepEqual(await testStore.all(), []);
  },

  'returns committed entries as soon as the commit resolves': async (testStore) => {
    await testStore.store.open();
    for (let i = 0; i < 100; i++) {
      await testStore.put([`key${i}`, `${i}`]);
      assert.deepEqual((await testStore.store.read(bytes(`key${i}`), bytes(`key${i}\0`), 1)).map(shown), [
        `key${i}=${i}`
      ]);
    }
  },

  'sorts keys by unsigned bytes, shorter keys first': async (testStore) => {
    await testStore.store.open();
    const inOrder = ['\0', '\0\0', '\0\x01', '\x01', 'a', 'a\0', 'a\0\xff', 'aa', 'a\x7f', 'a\x80', 'a\xff', 'b'];
    inOrder.push('\x7f', '\x7f\xff', '\x80', '\x80\0', '\xc3\x28', '\xfe', '\xff', '\xff\0', '\xff\xff');
    await testStore.put(...shuffled(inOrder).map((key) => [key, 'x'] as const));
    assert.deepEqual(await testStore.keys('\0', '\xff\xff\xff'), inOrder);
  },

  'reads from the first key (inclusive) to the last key (exclusive)': async (testStore) => {
    await testStore.store.open();
    await testStore.put(['a', ''], ['b', ''], ['b\0', ''], ['c', ''], ['d', '']);
    assert.deepEqual(await testStore.keys('b', 'd'), ['b', 'b\0', 'c']);
    assert.deepEqual(await testStore.keys('aa', 'cc'), ['b', 'b\0', 'c']);
    assert.deepEqual(await testStore.keys('b', 'b\0'), ['b']);
    assert.deepEqual(await testStore.keys('', 'b'), ['a']);
    assert.deepEqual(await testStore.keys('e', 'f'), []);
    assert.deepEqual(await testStore.keys('b', 'b'), []);
    assert.deepEqual(await testStore.keys('d', 'a'), []);
  },

  'reads at most the limit, and can continue after the last key': async (testStore) => {
    await testStore.store.open();
    await testStore.put(...numbered(10));
    assert.deepEqual(await testStore.keys('k', 'l', 1), ['k00000']);
    assert.deepEqual(await testStore.keys('k', 'l', 3), ['k00000', 'k00001', 'k00002']);
    assert.deepEqual(await testStore.keys('k00002\0', 'l', 3), ['k00003', 'k00004', 'k00005']);
    assert.equal((await testStore.keys('k', 'l', 10)).length, 10);
    assert.equal((await testStore.keys('k', 'l', 11)).length, 10);
  },

  'reads up to the limit even if values are large': async (testStore) => {
    await testStore.store.open();
    const value = Buffer.alloc(65_536, 1);
    await testStore.put(...numbered(100).map(([key]) => [key, value] as const));
    assert.equal((await testStore.keys('k', 'l', 99)).length, 99);
    assert.equal((await testStore.keys('k', 'l', 200)).length, 100);
  },

  'applies the later of two changes to a key': async (testStore) => {
    await testStore.store.open();
    await testStore.put(['there', '1'], ['gone', '1']);
    const batch = new Batch();
    batch.put(bytes('a'), bytes('1'));
    batch.put(bytes('a'), bytes('2'));
    batch.put(bytes('b'), bytes('1'));
    batch.delete(bytes('b'));
    batch.delete(bytes('c'));
    batch.put(bytes('c'), bytes('1'));
    batch.delete(bytes('there'));
    batch.put(bytes('there'), bytes('2'));
    batch.put(bytes('gone'), bytes('2'));
    batch.delete(bytes('gone'));
    await testStore.store.commit(batch);
    assert.deepEqual(await testStore.all(), ['a=2', 'c=1', 'there=2']);
  },

  'accepts a deletion of a missing key, and an empty batch': async (testStore) => {
    await testStore.store.open();
    const batch = new Batch();
    batch.delete(bytes('nothing'));
    await testStore.store.commit(batch);
    await testStore.store.commit(new Batch());
    assert.deepEqual(await testStore.all(), []);
  },

  'never returns a part of a batch to a concurrent read': async (testStore) => {
    await testStore.store.open();
    const write = (round: number) => testStore.put(...numbered(500).map(([key]) => [key, `${round}`] as const));
    await write(0);
    for (let round = 1; round <= 20; round++) {
      const commit = write(round);
      const values = (await testStore.store.read(bytes('k'), bytes('l'), 1000)).map(({ value }) => value.toString());
      await commit;
      assert.equal(values.length, 500);
      assert.equal(new Set(values).size, 1, 'a read returned a part of a batch');
    }
  },

  'keeps what a snapshot contains readable, whatever is committed since': async (testStore) => {
    const { store } = testStore;
    if (store.snapshot === undefined) return;
    await store.open();
    await testStore.put(...numbered(1_000), ['replaced', 'before'], ['deleted', 'before']);
    const snapshot = await store.snapshot();
    const later = new Batch();
    later.put(bytes('replaced'), bytes('after'));
    later.put(bytes('k00500x'), bytes('after'));
    later.delete(bytes('deleted'));
    for (const [key] of numbered(100)) later.delete(bytes(key));
    await store.commit(later);
    const read = await snapshot.read(FIRST, END, 10_000);
    assert.equal(read.length, 1_002);
    assert.deepEqual(read.slice(0, 1).map(shown), ['deleted=before']);
    assert.deepEqual(read.slice(-1).map(shown), ['replaced=before']);
    assert.equal((await snapshot.read(bytes('k'), bytes('l'), 7)).length, 7);
    assert.equal((await testStore.all()).length, 902);
    await snapshot.close();
    await snapshot.close();
    await assert.rejects(snapshot.read(FIRST, END, 1), 'a closed snapshot was read');
  },

  'ends its snapshots when it is closed': async (testStore) => {
    const { store } = testStore;
    if (store.snapshot === undefined) return;
    await store.open();
    await testStore.put(['a', '1']);
    const snapshot = await store.snapshot();
    await store.close();
    await assert.rejects(snapshot.read(FIRST, END, 1), 'a snapshot of a closed store was read');
    await store.open();
    await assert.rejects(snapshot.read(FIRST, END, 1), 'a snapshot was read after its store was closed and opened');
    assert.deepEqual(await testStore.all(), ['a=1']);
    await snapshot.close();
  },

  'persists empty values': async (testStore) => {
    await testStore.store.open();
    await testStore.put(['empty', ''], ['full', 'x']);
    await testStore.restart();
    assert.deepEqual(await testStore.all(), ['empty=', 'full=x']);
  },

  'persists every byte of keys and values': async (testStore) => {
    await testStore.store.open();
    const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    await testStore.put([every, every], [Buffer.concat([every, every]), every]);
    await testStore.restart();
    const entries = await testStore.store.read(FIRST, END, 10);
    assert.deepEqual(
      entries.map(({ key, value }) => [key.equals(every), value.equals(every)]),
      [
        [true, true],
        [false, true]
      ]
    );
  },

  'persists values of 1 MB and keys of 64 KB': async (testStore) => {
    await testStore.store.open();
    const value = Buffer.alloc(1_048_576, 'large ');
    const key = Buffer.alloc(65_536, 'k');
    await testStore.put(['a', value], [key, 'x'], [Buffer.concat([key, FIRST]), 'y'], ['l', value]);
    await testStore.restart();
    const entries = await testStore.store.read(FIRST, END, 10);
    assert.deepEqual(
      entries.map((entry) => [entry.key.length, entry.value.length]),
      [
        [1, 1_048_576],
        [65_536, 1],
        [65_537, 1],
        [1, 1_048_576]
      ]
    );
    assert.ok(entries[0].value.equals(value) && entries[1].key.equals(key), 'every byte is as it was');
  },

  [MANY_KEYS]: async (testStore) => {
    await testStore.store.open();
    const entries = shuffled(numbered(100_000));
    for (let i = 0; i < entries.length; i += 5000) await testStore.put(...entries.slice(i, i + 5000));
    await testStore.restart();
    let from = bytes('k');
    let count = 0;
    for (let slice: Entry[] | undefined; slice === undefined || slice.length === 1000; ) {
      slice = await testStore.store.read(from, bytes('l'), 1000);
      for (const { key, value } of slice) {
        const wanted = `k${String(count).padStart(5, '0')}`;
        if (key.toString('latin1') !== wanted || value.toString('latin1') !== `${count}`)
          assert.equal(shown({ key, value }), `${wanted}=${count}`);
        count++;
      }
      if (slice.length > 0) from = Buffer.concat([slice[slice.length - 1].key, FIRST]);
    }
    assert.equal(count, 100_000);
  },

  'keeps all entries when it is closed and opened again': async (testStore) => {
    await testStore.store.open();
    await testStore.put(['a', '1'], ['b', '1'], ['c', '1']);
    await testStore.restart();
    assert.deepEqual(await testStore.all(), ['a=1', 'b=1', 'c=1']);
    const batch = new Batch();
    batch.delete(bytes('b'));
    batch.put(bytes('c'), bytes('2'));
    await testStore.store.commit(batch);
    await testStore.restart();
    assert.deepEqual(await testStore.all(), ['a=1', 'c=2']);
    await testStore.restart();
    assert.deepEqual(await testStore.all(), ['a=1', 'c=2']);
  },

  'waits for a commit in progress before it closes': async (testStore) => {
    await testStore.store.open();
    const settled: string[] = [];
    const commit = testStore.put(...numbered(2000)).then(
      () => settled.push('kept'),
      () => settled.push('not kept')
    );
    await testStore.store.close();
    assert.equal(settled.length, 1, 'the commit had settled');
    await commit;
    await testStore.restart();
    assert.equal((await testStore.all()).length, settled[0] === 'kept' ? 2000 : 0);
  },

  'waits for a read in progress before it closes': async (testStore) => {
    await testStore.store.open();
    await testStore.put(...numbered(5000));
    let hasSettled = false;
    const read = testStore.store.read(bytes('k'), bytes('l'), 5000).finally(() => {
      hasSettled = true;
    });
    await testStore.store.close();
    assert.ok(hasSettled, 'the read had settled');
    assert.equal((await read).length, 5000);
  },

  'refuses to commit and to read while it is closed': async (testStore) => {
    const refuses = async () => {
      await assert.rejects(testStore.put(['a', '1']), isClosed, CLOSED);
      await assert.rejects(testStore.store.read(FIRST, END, 1), isClosed, CLOSED);
    };
    await refuses();
    await testStore.store.open();
    await testStore.store.close();
    await refuses();
    await testStore.restart();
    assert.deepEqual(await testStore.all(), []);
  },

  'accepts to be opened or closed twice': async (testStore) => {
    await testStore.store.close();
    await testStore.store.open();
    await testStore.put(['a', '1']);
    await testStore.store.open();
    assert.deepEqual(await testStore.all(), ['a=1']);
    await testStore.store.close();
    await testStore.store.close();
    await Promise.all([testStore.store.open(), testStore.store.open()]);
    assert.deepEqual(await testStore.all(), ['a=1']);
    await Promise.all([testStore.store.close(), testStore.store.close()]);
  },

  'has copied keys and values when a commit settles': async (testStore) => {
    await testStore.store.open();
    const [key, value] = [bytes('key'), bytes('value')];
    await testStore.put([key, value]);
    key.fill('x');
    value.fill('x');
    assert.deepEqual(await testStore.all(), ['key=value']);
    await testStore.restart();
    assert.deepEqual(await testStore.all(), ['key=value']);
  },

  'does not change the batch': async (testStore) => {
    await testStore.store.open();
    const batch = batchOf([['a', '1']]);
    batch.delete(bytes('b'));
    const before = structuredClone({ ...batch });
    await testStore.store.commit(batch);
    assert.deepEqual(structuredClone({ ...batch }), before);
  },

  'returns buffers that the caller may change': async (testStore) => {
    await testStore.store.open();
    await testStore.put(['a', '1'], ['b', '2']);
    const entries = await testStore.store.read(FIRST, END, 2);
    assert.ok(
      entries.every(({ key, value }) => Buffer.isBuffer(key) && Buffer.isBuffer(value)),
      'keys and values are buffers'
    );
    for (const { key, value } of entries) {
      key.fill('x');
      value.fill('x');
    }
    assert.deepEqual(await testStore.all(), ['a=1', 'b=2']);
    assert.deepEqual(entries.map(shown), ['x=x', 'x=x']);
  },

  'reports the free bytes while it is open, if it implements freeBytes': async (testStore) => {
    const { store } = testStore;
    if (store.freeBytes === undefined) return;
    const asked = async () => (await store.freeBytes?.()) as number;
    await assert.rejects(asked(), isClosed, CLOSED);
    await store.open();
    assert.ok(Number.isFinite(await asked()), 'a number of bytes');
    const [free] = await Promise.all([asked(), testStore.put(...numbered(2000)), testStore.all()]);
    assert.ok(Number.isFinite(free), 'a number of bytes, also while it commits and reads');
    await testStore.store.close();
    await assert.rejects(asked(), isClosed, CLOSED);
  }
};

/** The cases for stores whose commits can be made to fail. */
const FAILING: Readonly<Record<string, StoreTest>> = {
  'persists a failed commit completely or not at all, and keeps earlier entries': async (testStore) => {
    await testStore.store.open();
    await testStore.put(['before', '1'], ['k00001', 'old']);
    await testStore.failNextCommit();
    await assert.rejects(testStore.put(...numbered(1000)), 'the commit that is to fail rejects');
    const nothing = ['before=1', 'k00001=old'];
    const isWhole = (kept: readonly string[]) => kept.length === 1001 && kept.includes('k00001=1');
    await testStore.restart();
    const kept = await testStore.all();
    if (!isWhole(kept)) assert.deepEqual(kept, nothing);
  },

  'works again after a failed commit when it is closed and opened again': async (testStore) => {
    await testStore.store.open();
    await testStore.put(['before', '1']);
    const batch = batchOf([
      ['a', '1'],
      ['b', '2']
    ]);
    await testStore.failNextCommit();
    await assert.rejects(testStore.store.commit(batch), 'the commit that is to fail rejects');
    // The broker also commits the same batch again.
    await testStore.store.close();
    await testStore.store.open();
    await testStore.store.commit(batch);
    await testStore.restart();
    assert.deepEqual(await testStore.all(), ['a=1', 'b=2', 'before=1']);
  }
};

function batchOf(entries: readonly (readonly [key: string | Buffer, value: string | Buffer])[]): Batch {
  const batch = new Batch();
  for (const [key, value] of entries) batch.put(bytes(key), bytes(value));
  return batch;
}

function bytes(value: string | Buffer): Buffer {
  return typeof value === 'string' ? Buffer.from(value, 'latin1') : value;
}

function shown({ key, value }: Entry): string {
  return `${key.toString('latin1')}=${value.toString('latin1')}`;
}

function numbered(count: number): [key: string, value: string][] {
  return Array.from({ length: count }, (_, i) => [`k${String(i).padStart(5, '0')}`, `${i}`]);
}

/** A copy of a list in a different order, which is the same in each run. */
function shuffled<T>(list: readonly T[]): T[] {
  const mixed = [...list];
  let state = 1;
  for (let i = mixed.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  return mixed;
}
