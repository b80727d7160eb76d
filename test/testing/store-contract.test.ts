import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Batch, type Entry, type Store } from '../../lib/adapter.ts';
import { memoryStore } from '../../lib/index.ts';
import { storeContract } from '../../lib/testing/index.ts';

/** The methods in which a faulty store differs from the correct store `sound`. */
type Fault = (sound: Store) => Partial<Store>;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function batchOf({ keys, values }: Batch, take: (i: number) => boolean = () => true): Batch {
  const batch = new Batch();
  for (const [i, key] of keys.entries()) {
    const value = values[i];
    if (!take(i)) continue;
    if (value === undefined) batch.delete(key);
    else batch.put(key, value);
  }
  return batch;
}

/** For each case of the contract, a store that must fail it. */
const FAULTS: readonly (readonly [name: string, fault: Fault])[] = [
  ['has a name', () => ({ name: '' })],
  ['is empty at first', () => ({ read: async () => [{ key: Buffer.of(1), value: Buffer.of(1) }] })],
  [
    'returns committed entries as soon as the commit resolves',
    (sound) => ({
      commit: async (batch) => {
        const copy = batchOf(batch);
        setImmediate(() => sound.commit(copy).catch(() => {})); // the store may already be closed
      }
    })
  ],
  [
    'sorts keys by unsigned bytes, shorter keys first',
    (sound) => ({
      read: async (from, to, limit) => {
        const entries = await sound.read(from, to, limit);
        return entries.sort((a, b) => (a.key.toString() < b.key.toString() ? -1 : 1));
      }
    })
  ],
  [
    'reads from the first key (inclusive) to the last key (exclusive)',
    (sound) => ({ read: (from, to, limit) => sound.read(from, Buffer.concat([to, Buffer.of(0)]), limit) })
  ],
  [
    'reads at most the limit, and can continue after the last key',
    (sound) => ({ read: (from, to) => sound.read(from, to, 1000) })
  ],
  [
    'reads up to the limit even if values are large',
    (sound) => ({
      read: async (from, to, limit) => {
        let bytes = 0;
        return (await sound.read(from, to, limit)).filter(({ value }) => (bytes += value.length) < 1_000_000);
      }
    })
  ],
  [
    'applies the later of two changes to a key',
    (sound) => ({
      commit: (batch) => {
        const firsts = new Map(batch.keys.map((key, i) => [key.toString(), i] as const).reverse());
        return sound.commit(batchOf(batch, (i) => firsts.get(batch.keys[i].toString()) === i));
      }
    })
  ],
  [
    'accepts a deletion of a missing key, and an empty batch',
    (sound) => ({
      commit: async (batch) => {
        if (batch.length === 0) throw new RangeError('nothing to keep');
        return sound.commit(batch);
      }
    })
  ],
  [
    'never returns a part of a batch to a concurrent read',
    (sound) => ({
      commit: async (batch) => {
        await sound.commit(batchOf(batch, (i) => i % 2 === 0));
        await turn();
        await sound.commit(batchOf(batch, (i) => i % 2 === 1));
      },
      read: async (from, to, limit) => {
        await Promise.resolve();
        return sound.read(from, to, limit);
      }
    })
  ],
  [
    'keeps what a snapshot contains readable, whatever is committed since',
    (sound) => ({
      snapshot: async () => ({ read: (from, to, limit) => sound.read(from, to, limit), close: async () => {} })
    })
  ],
  [
    'ends its snapshots when it is closed',
    (sound) => ({
      snapshot: async () => {
        const entries = await sound.read(Buffer.of(0), Buffer.of(0xff), 1_000);
        return { read: async () => entries, close: async () => {} };
      }
    })
  ],
  [
    'persists empty values',
    (sound) => ({ commit: (batch) => sound.commit(batchOf(batch, (i) => !!batch.values[i]?.length)) })
  ],
  [
    'persists every byte of keys and values',
    (sound) => ({
      commit: (batch) => {
        const copy = new Batch();
        for (const [i, key] of batch.keys.entries()) copy.put(Buffer.from(key.toString()), batch.values[i] as Buffer);
        return sound.commit(copy);
      }
    })
  ],
  [
    'persists values of 1 MB and keys of 64 KB',
    (sound) => ({ commit: (batch) => sound.commit(batchOf(batch, (i) => batch.keys[i].length < 65_536)) })
  ],
  [
    'persists 100,000 keys and reads them in slices',
    (sound) => {
      let commits = 0;
      return { commit: (batch) => (commits++ === 10 ? Promise.resolve() : sound.commit(batch)) };
    }
  ],
  [
    'keeps all entries when it is closed and opened again',
    (sound) => ({
      close: async () => {
        await sound.open();
        const batch = new Batch();
        for (const { key } of await sound.read(Buffer.of(0), Buffer.of(0xff), 1000)) batch.delete(key);
        await sound.commit(batch);
        await sound.close();
      }
    })
  ],
  [
    'waits for a commit in progress before it closes',
    (sound) => ({
      commit: async (batch) => {
        await sound.commit(batch);
        await turn();
      }
    })
  ],
  [
    'waits for a read in progress before it closes',
    (sound) => ({
      read: async (...range) => {
        const entries = await sound.read(...range);
        await turn();
        return entries;
      }
    })
  ],
  ['refuses to commit and to read while it is closed', () => ({ commit: async () => {} })],
  [
    'accepts to be opened or closed twice',
    (sound) => {
      let isOpen = false;
      return {
        open: async () => {
          if (isOpen) throw new Error('open already');
          isOpen = true;
          await sound.open();
        },
        close: () => {
          isOpen = false;
          return sound.close();
        }
      };
    }
  ],
  [
    'has copied keys and values when a commit settles',
    (sound) => {
      const values: (Buffer | undefined)[] = [];
      return {
        commit: (batch) => {
          values.push(...batch.values);
          return sound.commit(batch);
        },
        read: async (...range) =>
          (await sound.read(...range)).map(({ key }, i) => ({ key, value: values[i] as Buffer }))
      };
    }
  ],
  [
    'does not change the batch',
    (sound) => ({
      commit: async (batch) => {
        await sound.commit(batch);
        batch.keys.length = 0;
      }
    })
  ],
  [
    'returns buffers that the caller may change',
    (sound) => {
      let kept: Entry[] | undefined;
      return { read: async (...range) => (kept ??= await sound.read(...range)) };
    }
  ],
  ['reports the free bytes while it is open, if it implements freeBytes', () => ({ freeBytes: async () => 1 })],
  [
    'persists a failed commit completely or not at all, and keeps earlier entries',
    (sound) => ({
      commit: async (batch) => {
        if (batch.length < 10) return sound.commit(batch);
        await sound.commit(batchOf(batch, (i) => i < batch.length / 2));
        throw new Error('half-way');
      }
    })
  ],
  [
    'works again after a failed commit when it is closed and opened again',
    () => ({
      commit: async ({ keys }) => {
        if (keys[0].toString() !== 'before') throw new Error('for good');
      }
    })
  ]
];

function contractOf(create: () => Store) {
  return storeContract({ create, failNextCommit: () => {} });
}

describe('the contract of stores', () => {
  it('contains a faulty store for each of its cases', () => {
    assert.deepEqual(
      contractOf(() => memoryStore()).map(({ name }) => name),
      FAULTS.map(([name]) => name)
    );
  });

  for (const [name, fault] of FAULTS) {
    it(`refuses a store unless it ${name}`, async () => {
      const create = (): Store => {
        const sound = memoryStore();
        const plain: Store = {
          name: sound.name,
          open: () => sound.open(),
          commit: (batch) => sound.commit(batch),
          read: (from, to, limit) => sound.read(from, to, limit),
          close: () => sound.close()
        };
        return { ...plain, ...fault(sound) };
      };
      const contract = contractOf(create).find((one) => one.name === name);
      await assert.rejects(async () => contract?.run());
    });
  }

  it('names the error with which a closed store must reject', async () => {
    const create = (): Store => {
      const commit = async () => {
        throw new Error('closed');
      };
      return Object.assign(memoryStore(), { commit });
    };
    const contract = contractOf(create).find(({ name }) => name === 'refuses to commit and to read while it is closed');
    await assert.rejects(async () => contract?.run(), /StateError of the code STORE_CLOSED/);
  });

  it('leaves out the cases with failing commits if a store cannot be made to fail', () => {
    const names = storeContract({ create: () => memoryStore() }).map(({ name }) => name);
    assert.deepEqual(
      names,
      FAULTS.slice(0, -2).map(([name]) => name)
    );
  });

  it('closes and disposes the store after each case, even if the case failed', async () => {
    const events: string[] = [];
    const create = (): Store => {
      const sound = memoryStore();
      const close = () => {
        events.push('close');
        return sound.close();
      };
      return { name: '', open: () => sound.open(), commit: sound.commit, read: sound.read, close };
    };
    const [named] = storeContract({ create, dispose: ({ name }) => void events.push(`dispose ${name}`) });
    await assert.rejects(named.run());
    assert.deepEqual(events, ['close', 'dispose ']);
  });
});
