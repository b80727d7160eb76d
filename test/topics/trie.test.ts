import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FilterIndex } from '../../lib/topics/trie.ts';
import { cpuMs } from '../support/cpu.ts';
import { samples } from '../support/samples.ts';
import { randomFilter, randomName, randomSource, slowMatches } from './slow-matcher.ts';

function found<T extends NonNullable<unknown>>(index: FilterIndex<T>, topic: string): T[] {
  const into: T[] = [];
  assert.equal(index.match(topic, into), into.length);
  return into;
}

describe('FilterIndex', () => {
  it('returns whether a filter was added or removed', () => {
    for (const filter of ['a/b', 'a/+', 'a/#', '#', '+']) {
      const index = new FilterIndex<string>();
      assert.equal(index.add(filter, 'x'), true);
      assert.equal(index.add(filter, 'y'), false);
      assert.equal(index.add(filter, 'y'), false);
      assert.equal(index.size, 2);
      assert.equal(index.filterCount, 1);
      const topic = filter.replace(/[+#]/, 'b');
      assert.deepEqual([...index.filters()], [filter]);
      assert.deepEqual(found(index, topic), ['x', 'y']);
      assert.equal(index.delete(filter, 'z'), false);
      assert.equal(index.delete('other', 'x'), false);
      assert.equal(index.delete('other/+/#', 'x'), false);
      assert.equal(index.delete(filter, 'x'), false);
      assert.equal(index.delete(filter, 'y'), true);
      assert.equal(index.delete(filter, 'y'), false);
      assert.equal(index.size, 0);
      assert.equal(index.filterCount, 0);
      assert.deepEqual(found(index, topic), []);
      assert.deepEqual([...index.filters()], []);
    }
  });

  it('appends to the array of the caller and accepts arrays and sets as values', () => {
    const index = new FilterIndex<object>();
    const values = [['a', 'b'], new Set(['c']), []];
    for (const value of values) index.add('t/#', value);
    index.add('t', values[0]!);
    const into: object[] = [index];
    assert.equal(index.match('t', into), 4);
    assert.deepEqual(into, [index, values[0], ...values]);
  });

  it('keeps the order of up to a thousand values of one filter', () => {
    const index = new FilterIndex<number>();
    const values = Array.from({ length: 1000 }, (_, i) => i);
    for (const value of values) index.add('a/+', value);
    assert.deepEqual(found(index, 'a/b'), values);
    for (const value of values) if (value % 100 !== 99) index.delete('a/+', value);
    assert.deepEqual(
      found(index, 'a/b'),
      values.filter((value) => value % 100 === 99)
    );
  });

  it('agrees with matching each filter in turn while filters are added and removed', () => {
    const source = randomSource('FilterIndex');
    const index = new FilterIndex<number>();
    const slow = new Map<string, Set<number>>();
    let hits = 0;
    for (let step = 0; step < samples(30_000); step++) {
      // The index grows, shrinks to nothing, and starts again.
      const isGrowing = Math.floor(step / samples(5000)) % 2 === 0;
      const filter = randomFilter(source);
      const value = source.below(source.below(10) === 0 ? 40 : 4);
      const values = slow.get(filter);
      if (source.below(10) < (isGrowing ? 8 : 2)) {
        assert.equal(index.add(filter, value), values === undefined, filter);
        if (values === undefined) slow.set(filter, new Set([value]));
        else values.add(value);
      } else {
        const isLast = values?.size === 1 && values.has(value);
        assert.equal(index.delete(filter, value), isLast, filter);
        values?.delete(value);
        if (isLast) slow.delete(filter);
      }
      assert.equal(index.has(filter), slow.has(filter), filter);
      if (step % 50 !== 0) continue;
      const topic = randomName(source);
      const expected = [...slow].flatMap(([filter, values]) => (slowMatches(filter, topic) ? [...values] : []));
      hits += expected.length;
      assert.deepEqual(found(index, topic).sort(), expected.sort(), topic);
      if (step % samples(1000) !== 0) continue;
      assert.equal(index.filterCount, slow.size);
      assert.deepEqual([...index.filters()].sort(), [...slow.keys()].sort());
      assert.equal(
        index.size,
        [...slow.values()].reduce((sum, values) => sum + values.size, 0)
      );
    }
    assert.ok(hits > samples(500), `only ${hits} hits`);
    for (const [filter, values] of slow) for (const value of values) index.delete(filter, value);
    assert.equal(index.size, 0);
    assert.deepEqual([...index.filters()], []);
  });

  it('allows filters and values to be deleted during iteration', () => {
    const index = new FilterIndex<number>();
    const all: string[] = [];
    for (let i = 0; i < 100; i++) {
      for (const filter of [`a/${i}`, `a/${i}/#`, `a/+/${i}`, `${i}/+/b/c/d`]) {
        all.push(filter);
        for (let value = 0; value <= i; value++) index.add(filter, value);
      }
    }
    const seen: string[] = [];
    for (const filter of index.filters()) {
      seen.push(filter);
      for (let value = 0; value < 100; value++) index.delete(filter, value);
    }
    assert.deepEqual(seen.sort(), all.sort());
    assert.equal(index.size, 0);
    for (const filter of all) index.add(filter, 0);
    const left = new Set<string>();
    for (const filter of index.filters()) {
      left.add(filter);
      for (const other of all) index.delete(other, 0);
      index.add('x/+', 0);
    }
    assert.equal(index.filterCount, 1);
  });

  it('lists a filter exactly once if it exists throughout the iteration, regardless of others that are added and removed', () => {
    const source = randomSource('FilterIndex filters');
    for (let round = 0; round < 50; round++) {
      const index = new FilterIndex<number>();
      const stay = new Set<string>();
      for (let count = 0; count < 40; count++) stay.add(randomFilter(source));
      for (const filter of stay) index.add(filter, 0);
      const listed = new Map<string, number>();
      for (const filter of index.filters()) {
        listed.set(filter, (listed.get(filter) ?? 0) + 1);
        const other = randomFilter(source);
        if (stay.has(other)) continue;
        if (source.below(2) === 0) index.add(other, 0);
        else index.delete(other, 0);
        if (listed.size > 1_000) break; // filters are added faster than they are listed
      }
      for (const filter of stay) assert.equal(listed.get(filter), 1, filter);
    }
  });

  it('adds and deletes 100,000 values of one filter in bounded time', () => {
    const index = new FilterIndex<number>();
    const before = cpuMs();
    for (const filter of ['alarm', 'alarm/#']) {
      for (let value = 0; value < 100_000; value++) index.add(filter, value);
      for (let value = 0; value < 100_000; value++) index.delete(filter, value);
    }
    // This takes about 100 ms; searching an array for each value would take minutes.
    assert.ok(cpuMs() - before < 5000);
    assert.equal(index.size, 0);
  });

  it('accepts topics and filters of 65,535 slashes without recursion', () => {
    const slashes = '/'.repeat(65_535);
    const index = new FilterIndex<string>();
    const filters = [slashes, `${'+/'.repeat(32_767)}#`, `${slashes.slice(1)}+`, `${slashes.slice(2)}/#`, '#', '+/#'];
    for (const filter of filters) index.add(filter, filter);
    const before = cpuMs();
    assert.deepEqual(new Set(found(index, slashes)), new Set(filters.filter((filter) => slowMatches(filter, slashes))));
    assert.ok(cpuMs() - before < 1000);
    assert.deepEqual([...index.filters()].sort(), filters.sort());
    for (const filter of filters) assert.equal(index.delete(filter, filter), true);
    assert.deepEqual([...index.filters()], []);
  });

  it('takes the same time for long filters of equal length', () => {
    const index = new FilterIndex<number>();
    const label = 'x'.repeat(30_000);
    const before = cpuMs();
    for (let i = 10_000; i < 11_000; i++) {
      index.add(`${label}${i}`, i);
      index.add(`${label}/${label}${i}/+`, i);
    }
    for (let i = 10_000; i < 11_000; i++) {
      assert.deepEqual(found(index, `${label}${i}`), [i]);
      assert.deepEqual(found(index, `${label}/${label}${i}/a`), [i]);
    }
    for (let i = 10_000; i < 11_000; i++) {
      assert.ok(index.delete(`${label}${i}`, i));
      assert.ok(index.delete(`${label}/${label}${i}/+`, i));
    }
    assert.equal(index.size, 0);
    assert.ok(cpuMs() - before < 5000);
  });

  it('visits each node of the trie at most once if "+" matches at every level', () => {
    const index = new FilterIndex<string>();
    const filters: string[] = [];
    // All filters of 12 levels of "a" and "+". A topic of "a" levels matches both children at each level.
    for (let i = 0; i < 4096; i++) {
      filters.push(Array.from({ length: 12 }, (_, level) => ((i >> level) & 1 ? '+' : 'a')).join('/'));
    }
    for (const filter of filters) index.add(filter, filter);
    assert.equal(found(index, 'a/a/a/a/a/a/a/a/a/a/a/a').length, 4096);
    const deep = `a/a/a/a/a/a/a/a/a/a/a/a/${'a/'.repeat(30_000)}`;
    const before = cpuMs();
    for (let i = 0; i < 100; i++) assert.equal(found(index, deep).length, 0);
    assert.ok(cpuMs() - before < 5000);
  });

  it('matches 10,000 filters such as "+/+/#" in bounded time', () => {
    const index = new FilterIndex<string>();
    for (let i = 0; i < 10_000; i++) index.add(`+/${i % 100}/+/${i}/#`, String(i));
    assert.deepEqual(found(index, 'x/42/y/4242/z'), ['4242']);
    assert.deepEqual(found(index, 'x/41/y/4242/z'), []);
    for (let i = 0; i < 10_000; i++) index.add('+/+/#', String(i));
    assert.equal(found(index, 'x/42/y/4242/z').length, 10_001);
  });

  it('removes the levels of deleted filters', () => {
    const index = new FilterIndex<number>();
    index.add('a/+/c', 1);
    index.add('a/+/d/e/f/#', 1);
    index.add('a/b/c/#', 1);
    index.delete('a/+/d/e/f/#', 1);
    index.delete('a/b/c/#', 1);
    assert.deepEqual([...index.filters()], ['a/+/c']);
    assert.deepEqual(found(index, 'a/b/c'), [1]);
    index.delete('a/+/c', 1);
    assert.deepEqual(found(index, 'a/b/c'), []);
  });
});
