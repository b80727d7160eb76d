import assert from 'node:assert/strict';
import { StateError } from '../errors.ts';
import { Batch, type Entry, type Store } from '../store/store.ts';

/** How the contract gets at the stores it tries. */
export interface StoreContractOptions {
  /** A store with nothing in it, not open. */
  create(): Store | Promise<Store>;
  /** What finds again what `store` has kept, as after a restart; `store` is closed. By default `store` itself. */
  reopen?(store: Store): Store | Promise<Store>;
  /** Make the next commit of an open store fail, somewhere half-way if that can be. The cases that ask for it are left out without it. */
  failNextCommit?(store: Store): void | Promise<void>;
  /** A case is over: take away what its store has kept. It is closed; of stores that `reopen` made, the last. */
  dispose?(store: Store): void | Promise<void>;
}

/** One thing that a store promises. */
export interface StoreCase {
  /** A full sentence about the store. */
  readonly name: string;
  /** Rejects with an `AssertionError`, or with what the store threw. */
  run(): Promise<void>;
}

type Check = (stage: Stage) => Promise<void>;

/**
 * What a broker relies on in a store, as cases for any test runner:
 *
 * ```ts
 * for (const { name, run } of storeContract({ create: () => new MyStore() })) it(name, run);
 * ```
 * Each case has a store of its own, which it closes.
 */
export function storeContract(options: StoreContractOptions): StoreCase[] {
  const checks = options.failNextCommit === undefined ? CHECKS : { ...CHECKS, ...FAILING };
  return Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      const stage = new Stage(options, await options.create());
      try {
        await check(stage);
      } finally {
        await stage.end();
      }
    }
  }));
}

/** A store in a case, and what the cases do with it. */
class Stage {
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

  /** Keys and values as one-byte texts, with `key=value`. */
  async all(): Promise<string[]> {
    return (await this.store.read(FIRST, END, 1_000_000)).map(shown);
  }

  async keys(from: string, to: string, limit = 1000): Promise<string[]> {
    return (await this.store.read(bytes(from), bytes(to), limit)).map(({ key }) => key.toString('latin1'));
  }
}

const FIRST = Buffer.of(0);
const END = Buffer.alloc(9, 0xff);

const CHECKS: Readonly<Record<string, Check>> = {
  'has a name': async ({ store }) => {
    assert.match(store.name, /./);
  },

  'has nothing in it at first': async (stage) => {
    await stage.store.open();
    assert.deepEqual(await stage.all(), []);
  },

  'shows what a commit has kept as soon as it resolves': async (stage) => {
    await stage.store.open();
    for (let i = 0; i < 100; i++) {
      await stage.put([`key${i}`, `${i}`]);
      assert.deepEqual((await stage.store.read(bytes(`key${i}`), bytes(`key${i}\0`), 1)).map(shown), [`key${i}=${i}`]);
    }
  },

  'orders keys by their bytes, unsigned, shorter first': async (stage) => {
    await stage.store.open();
    const inOrder = ['\0', '\0\0', '\0\x01', '\x01', 'a', 'a\0', 'a\0\xff', 'aa', 'a\x7f', 'a\x80', 'a\xff', 'b'];
    inOrder.push('\x7f', '\x7f\xff', '\x80', '\x80\0', '\xc3\x28', '\xfe', '\xff', '\xff\0', '\xff\xff');
    await stage.put(...shuffled(inOrder).map((key) => [key, 'x'] as const));
    assert.deepEqual(await stage.keys('\0', '\xff\xff\xff'), inOrder);
  },

  'reads from the first key, included, to the last, excluded': async (stage) => {
    await stage.store.open();
    await stage.put(['a', ''], ['b', ''], ['b\0', ''], ['c', ''], ['d', '']);
    assert.deepEqual(await stage.keys('b', 'd'), ['b', 'b\0', 'c']);
    assert.deepEqual(await stage.keys('aa', 'cc'), ['b', 'b\0', 'c']);
    assert.deepEqual(await stage.keys('b', 'b\0'), ['b']);
    assert.deepEqual(await stage.keys('', 'b'), ['a']);
    assert.deepEqual(await stage.keys('e', 'f'), []);
    assert.deepEqual(await stage.keys('b', 'b'), []);
    assert.deepEqual(await stage.keys('d', 'a'), []);
  },

  'reads no more than the limit, and goes on behind the last key': async (stage) => {
    await stage.store.open();
    await stage.put(...numbered(10));
    assert.deepEqual(await stage.keys('k', 'l', 1), ['k00000']);
    assert.deepEqual(await stage.keys('k', 'l', 3), ['k00000', 'k00001', 'k00002']);
    assert.deepEqual(await stage.keys('k00002\0', 'l', 3), ['k00003', 'k00004', 'k00005']);
    assert.equal((await stage.keys('k', 'l', 10)).length, 10);
    assert.equal((await stage.keys('k', 'l', 11)).length, 10);
  },

  'reads up to the limit also where values are large': async (stage) => {
    await stage.store.open();
    const value = Buffer.alloc(65_536, 1);
    await stage.put(...numbered(100).map(([key]) => [key, value] as const));
    assert.equal((await stage.keys('k', 'l', 99)).length, 99);
    assert.equal((await stage.keys('k', 'l', 200)).length, 100);
  },

  'keeps the later of two changes to a key': async (stage) => {
    await stage.store.open();
    await stage.put(['there', '1'], ['gone', '1']);
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
    await stage.store.commit(batch);
    assert.deepEqual(await stage.all(), ['a=2', 'c=1', 'there=2']);
  },

  'deletes what is not there without a word, and takes an empty batch': async (stage) => {
    await stage.store.open();
    const batch = new Batch();
    batch.delete(bytes('nothing'));
    await stage.store.commit(batch);
    await stage.store.commit(new Batch());
    assert.deepEqual(await stage.all(), []);
  },

  'shows a batch as a whole to whoever reads meanwhile': async (stage) => {
    await stage.store.open();
    const write = (round: number) => stage.put(...numbered(500).map(([key]) => [key, `${round}`] as const));
    await write(0);
    for (let round = 1; round <= 20; round++) {
      const commit = write(round);
      const values = (await stage.store.read(bytes('k'), bytes('l'), 1000)).map(({ value }) => value.toString());
      await commit;
      assert.equal(values.length, 500);
      assert.equal(new Set(values).size, 1, 'a part of a batch was to be seen');
    }
  },

  'keeps empty values': async (stage) => {
    await stage.store.open();
    await stage.put(['empty', ''], ['full', 'x']);
    await stage.restart();
    assert.deepEqual(await stage.all(), ['empty=', 'full=x']);
  },

  'keeps every byte of keys and values': async (stage) => {
    await stage.store.open();
    const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    await stage.put([every, every], [Buffer.concat([every, every]), every]);
    await stage.restart();
    const entries = await stage.store.read(FIRST, END, 10);
    assert.deepEqual(
      entries.map(({ key, value }) => [key.equals(every), value.equals(every)]),
      [
        [true, true],
        [false, true]
      ]
    );
  },

  'keeps values of 1 MB and keys of 64 KB': async (stage) => {
    await stage.store.open();
    const value = Buffer.alloc(1_048_576, 'large ');
    const key = Buffer.alloc(65_536, 'k');
    await stage.put(['a', value], [key, 'x'], [Buffer.concat([key, FIRST]), 'y'], ['l', value]);
    await stage.restart();
    const entries = await stage.store.read(FIRST, END, 10);
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

  'keeps 100,000 keys and reads them in slices': async (stage) => {
    await stage.store.open();
    const entries = shuffled(numbered(100_000));
    for (let i = 0; i < entries.length; i += 5000) await stage.put(...entries.slice(i, i + 5000));
    await stage.restart();
    let from = bytes('k');
    let count = 0;
    for (let slice: Entry[] | undefined; slice === undefined || slice.length === 1000; ) {
      slice = await stage.store.read(from, bytes('l'), 1000);
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

  'keeps everything when it is closed and opened again': async (stage) => {
    await stage.store.open();
    await stage.put(['a', '1'], ['b', '1'], ['c', '1']);
    await stage.restart();
    assert.deepEqual(await stage.all(), ['a=1', 'b=1', 'c=1']);
    const batch = new Batch();
    batch.delete(bytes('b'));
    batch.put(bytes('c'), bytes('2'));
    await stage.store.commit(batch);
    await stage.restart();
    assert.deepEqual(await stage.all(), ['a=1', 'c=2']);
    await stage.restart();
    assert.deepEqual(await stage.all(), ['a=1', 'c=2']);
  },

  'closes when a commit that is under way has settled': async (stage) => {
    await stage.store.open();
    const settled: string[] = [];
    const commit = stage.put(...numbered(2000)).then(
      () => settled.push('kept'),
      () => settled.push('not kept')
    );
    await stage.store.close();
    assert.equal(settled.length, 1, 'the commit had settled');
    await commit;
    await stage.restart();
    assert.equal((await stage.all()).length, settled[0] === 'kept' ? 2000 : 0);
  },

  'closes when a read that is under way has settled': async (stage) => {
    await stage.store.open();
    await stage.put(...numbered(5000));
    let hasSettled = false;
    const read = stage.store.read(bytes('k'), bytes('l'), 5000).finally(() => {
      hasSettled = true;
    });
    await stage.store.close();
    assert.ok(hasSettled, 'the read had settled');
    assert.equal((await read).length, 5000);
  },

  'refuses to commit and to read while it is not open': async (stage) => {
    const refused = (error: unknown) => error instanceof StateError && error.code === 'STORE_CLOSED';
    const refuses = async () => {
      await assert.rejects(stage.put(['a', '1']), refused);
      await assert.rejects(stage.store.read(FIRST, END, 1), refused);
    };
    await refuses();
    await stage.store.open();
    await stage.store.close();
    await refuses();
    await stage.restart();
    assert.deepEqual(await stage.all(), []);
  },

  'takes it calmly to be opened or closed twice': async (stage) => {
    await stage.store.close();
    await stage.store.open();
    await stage.put(['a', '1']);
    await stage.store.open();
    assert.deepEqual(await stage.all(), ['a=1']);
    await stage.store.close();
    await stage.store.close();
    await Promise.all([stage.store.open(), stage.store.open()]);
    assert.deepEqual(await stage.all(), ['a=1']);
    await Promise.all([stage.store.close(), stage.store.close()]);
  },

  'has copied what it keeps when a commit settles': async (stage) => {
    await stage.store.open();
    const [key, value] = [bytes('key'), bytes('value')];
    await stage.put([key, value]);
    key.fill('x');
    value.fill('x');
    assert.deepEqual(await stage.all(), ['key=value']);
    await stage.restart();
    assert.deepEqual(await stage.all(), ['key=value']);
  },

  'leaves the batch as it is': async (stage) => {
    await stage.store.open();
    const batch = batchOf([['a', '1']]);
    batch.delete(bytes('b'));
    const before = structuredClone({ ...batch });
    await stage.store.commit(batch);
    assert.deepEqual(structuredClone({ ...batch }), before);
  },

  'hands out buffers that are the reader’s own': async (stage) => {
    await stage.store.open();
    await stage.put(['a', '1'], ['b', '2']);
    const entries = await stage.store.read(FIRST, END, 2);
    assert.ok(
      entries.every(({ key, value }) => Buffer.isBuffer(key) && Buffer.isBuffer(value)),
      'keys and values are buffers'
    );
    for (const { key, value } of entries) {
      key.fill('x');
      value.fill('x');
    }
    assert.deepEqual(await stage.all(), ['a=1', 'b=2']);
    assert.deepEqual(entries.map(shown), ['x=x', 'x=x']);
  },

  'says how many bytes are free while it is open, if it says so at all': async (stage) => {
    const { store } = stage;
    if (store.freeBytes === undefined) return;
    const refused = (error: unknown) => error instanceof StateError && error.code === 'STORE_CLOSED';
    const asked = async () => (await store.freeBytes?.()) as number;
    await assert.rejects(asked(), refused);
    await store.open();
    assert.ok(Number.isFinite(await asked()), 'a number of bytes');
    const [free] = await Promise.all([asked(), stage.put(...numbered(2000)), stage.all()]);
    assert.ok(Number.isFinite(free), 'a number of bytes, also while it commits and reads');
    await stage.store.close();
    await assert.rejects(asked(), refused);
  }
};

/** For stores whose commits can be made to fail. */
const FAILING: Readonly<Record<string, Check>> = {
  'keeps all of a commit that failed or nothing, and what was there before': async (stage) => {
    await stage.store.open();
    await stage.put(['before', '1'], ['k00001', 'old']);
    await stage.failNextCommit();
    await assert.rejects(stage.put(...numbered(1000)), 'the commit that is to fail rejects');
    const nothing = ['before=1', 'k00001=old'];
    const isWhole = (kept: readonly string[]) => kept.length === 1001 && kept.includes('k00001=1');
    await stage.restart();
    const kept = await stage.all();
    if (!isWhole(kept)) assert.deepEqual(kept, nothing);
  },

  'works again when it was closed and opened after a commit that failed': async (stage) => {
    await stage.store.open();
    await stage.put(['before', '1']);
    const batch = batchOf([
      ['a', '1'],
      ['b', '2']
    ]);
    await stage.failNextCommit();
    await assert.rejects(stage.store.commit(batch), 'the commit that is to fail rejects');
    // the same object, as the broker does
    await stage.store.close();
    await stage.store.open();
    await stage.store.commit(batch);
    await stage.restart();
    assert.deepEqual(await stage.all(), ['a=1', 'b=2', 'before=1']);
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

/** In another order, the same each time. */
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
