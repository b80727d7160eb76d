import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecordOrder } from '../../lib/access/record-order.ts';
import { createBroker } from '../../lib/index.ts';
import { mapTable } from '../support/map-table.ts';

/** A table with many records. It records how many of them are read in each turn, and how often it is sorted. */
function watchedTable(count: number) {
  const inner = mapTable<{ readonly number: number }>();
  const reads = [0];
  const sorts = { count: 0 };
  for (let number = 1; number <= count; number++)
    void inner.set(`${number % 2 === 0 ? 'even' : 'odd'}:${number}`, { number });
  const table = {
    get size() {
      return inner.size;
    },
    get undone() {
      return inner.undone;
    },
    get: inner.get,
    reorder(compare: Parameters<typeof inner.reorder>[0]) {
      sorts.count++;
      inner.reorder(compare);
    },
    *[Symbol.iterator]() {
      for (const entry of inner) {
        reads[reads.length - 1]++;
        yield entry;
      }
    }
  };
  let meanwhile: (() => void) | undefined;
  const pause = async () => {
    reads.push(0);
    meanwhile?.();
    meanwhile = undefined;
  };
  return {
    inner,
    order: new RecordOrder(table),
    reads,
    sorts,
    pause,
    inNextTurn: (run: () => void) => (meanwhile = run)
  };
}

const number = (_key: string, record: { readonly number: number }) => record.number;

describe('A part of many records', () => {
  it('finds a part in slices, at any position', async () => {
    const { order, reads, sorts, pause } = watchedTable(100_000);
    assert.deepEqual(await order.part({ skip: 99_998, limit: 10 }, pause, number), [99_999, 100_000]);
    assert.ok(Math.max(...reads) <= 2_001, `${Math.max(...reads)} in one turn`);
    assert.equal(sorts.count, 0);
    const isEven = (key: string) => key.startsWith('even');
    reads.push(0);
    assert.deepEqual(await order.part({ skip: 49_999, limit: 10 }, pause, number, isEven), [100_000]);
    assert.ok(Math.max(...reads) <= 2_001, `${Math.max(...reads)} in one turn`);
  });

  it('finds a part at the beginning without a walk over all records', async () => {
    const { order, reads, pause } = watchedTable(100_000);
    assert.deepEqual(await order.part({ skip: 1, limit: 3 }, pause, number), [2, 3, 4]);
    assert.ok(reads[0] <= 6 && reads.length === 1, `${reads}`);
  });

  it('returns the right part if records come and go, and if the table has to be sorted in the meantime', async () => {
    const { inner, order, sorts, pause, inNextTurn } = watchedTable(10_000);
    inNextTurn(() => {
      void inner.delete('odd:9999');
      void inner.append('even:4', { number: 4 });
    });
    const both = [
      order.part({ skip: 9_997, limit: 10 }, pause, number),
      order.part({ skip: 5_000, limit: 5_000 }, pause, number)
    ];
    assert.deepEqual((await Promise.all(both))[0], [9_998, 10_000]);
    assert.equal((await both[1]).length, 4_999);
    assert.equal(sorts.count, 1, 'one list sorts the table, and the other one begins again');
    assert.deepEqual(await order.part({ skip: 2, limit: 2 }, pause, number), [3, 4]);
  });

  it('sorts the table once after a commit has failed, and returns the right part', async () => {
    const { inner, order, sorts, pause } = watchedTable(10_000);
    void inner.append('odd:1', { number: 1 });
    inner.undone++;
    const parts = await Promise.all([0, 5_000, 9_999].map((skip) => order.part({ skip, limit: 1 }, pause, number)));
    assert.deepEqual(parts, [[1], [5_001], [10_000]]);
    assert.equal(sorts.count, 1);
  });

  it('returns each row once if records without a number are sorted or restored during the read', async () => {
    for (const isSorted of [true, false]) {
      const { inner, order, pause, inNextTurn } = watchedTable(0);
      const names = Array.from({ length: 5_000 }, (_, at) => `old:${at}`);
      for (const name of names) void inner.set(name, { number: 0 });
      if (isSorted) void inner.set('new', { number: 1 });
      inNextTurn(() => {
        // the effect of a failed commit on a deleted record
        void inner.append(names[0], { number: 0 });
        inner.undone++;
        order.oldestFirst();
      });
      const found = await order.part({ skip: 0, limit: 10_000 }, pause, (key) => key);
      assert.deepEqual(found, [...names.slice(1), names[0], ...(isSorted ? ['new'] : [])]);
    }
  });
});

describe('The number of a new record', () => {
  it('follows the greatest number of the records in the store, and those that were given out before', () => {
    const { order } = watchedTable(3);
    assert.deepEqual([order.next(), order.next()], [4, 5]);
  });

  it('follows the records of a store that is opened later', () => {
    const { inner, order } = watchedTable(0);
    assert.equal(order.next(), 1);
    for (const number of [7, 5]) void inner.set(`old:${number}`, { number });
    assert.deepEqual([order.next(), order.next()], [8, 9]);
  });
});

describe('Records for a reader that takes several turns', () => {
  /** Reads the records, 100 in each turn. `meanwhile` is called between the turns, with the number of records so far. */
  function keysOf({ order, reads }: ReturnType<typeof watchedTable>, meanwhile: (count: number) => void = () => {}) {
    const keys: string[] = [];
    for (const [key] of order.lasting()) {
      keys.push(key);
      if (keys.length % 100 !== 0) continue;
      reads.push(0);
      meanwhile(keys.length);
    }
    return keys;
  }

  it('examines a few records in each turn', () => {
    const watched = watchedTable(50_000);
    assert.equal(keysOf(watched).length, 50_000);
    assert.ok(Math.max(...watched.reads) <= 101, `${Math.max(...watched.reads)} in one turn`);
    assert.equal(watched.sorts.count, 0);
  });

  it('returns each record once, including those that move to the end, without those that are deleted before they are read', () => {
    const watched = watchedTable(1_000);
    const { inner } = watched;
    const keys = keysOf(watched, (count) => {
      if (count !== 500) return;
      void inner.append('odd:1', { number: 1_001 });
      void inner.append('odd:999', { number: 1_002 });
      void inner.delete('odd:997');
    });
    assert.deepEqual([keys.length, new Set(keys).size], [999, 999]);
    assert.deepEqual([keys.at(-1), keys.includes('odd:997')], ['odd:999', false]);
  });

  it('returns records in order after a commit has failed, and each once if the table is sorted during the read', () => {
    const watched = watchedTable(1_000);
    const { inner, sorts, order } = watched;
    void inner.append('odd:1', { number: 1 });
    inner.undone++;
    const keys = keysOf(watched, (count) => {
      if (count !== 500) return;
      for (const number of [3, 801]) void inner.append(`odd:${number}`, { number });
      inner.undone++;
      order.oldestFirst();
    });
    assert.deepEqual(
      keys.map((key) => Number(key.split(':')[1])),
      Array.from({ length: 1_000 }, (_, at) => at + 1)
    );
    assert.equal(sorts.count, 2);
  });

  it('returns each record once if the table turns out to be unsorted', () => {
    const watched = watchedTable(1_000);
    void watched.inner.append('odd:501', { number: 501 });
    const keys = keysOf(watched);
    assert.deepEqual([keys.length, new Set(keys).size, watched.sorts.count], [1_000, 1_000, 1]);
  });
});

describe('The access rules that are set at run time', () => {
  it('counts and finds access rules by their client without a walk over all rules', async () => {
    await using broker = await createBroker({ sysInterval: 0, sysHeartbeat: 0 }).start();
    const { acl } = broker.access;
    const rule = (topic: string) => ({ access: 'deny', action: 'publish', topic }) as const;
    for (const topic of ['a', 'b', 'c']) await acl.set({ ...rule(topic), clientId: 'c' });
    await acl.set({ ...rule('a'), username: 'c' });
    await acl.set(rule('x/%c/#'));
    await acl.set({ ...rule('a'), access: 'allow', clientId: 'c' });
    await acl.delete({ clientId: 'c' }, 'b');
    assert.deepEqual(
      acl.of({ clientId: 'c' }).map(({ topic, access }) => [topic, access]),
      [
        ['a', 'allow'],
        ['c', 'deny']
      ]
    );
    assert.deepEqual(acl.of({ username: 'c' }), [{ ...rule('a'), username: 'c' }]);
    assert.deepEqual(acl.of('all'), [rule('x/%c/#')]);
    assert.deepEqual(acl.of({ clientId: 'd' }), []);
    assert.deepEqual([acl.count('clientId'), acl.count('username'), acl.count('all')], [2, 1, 1]);
    const listed = await acl.part('clientId', { skip: 0, limit: 10 });
    assert.deepEqual(
      listed.map(({ topic }) => topic),
      ['c', 'a'],
      'a rule that is set again becomes the newest'
    );
    assert.deepEqual(await acl.part('all', { skip: 1, limit: 10 }), []);
  });
});
