import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecentMap } from '../../lib/base/recent-map.ts';
import { randomSource } from '../topics/slow-matcher.ts';

describe('A RecentMap', () => {
  it('removes the entry whose last use is the longest ago', () => {
    const map = new RecentMap<number>(2);
    map.set('a', 1);
    map.set('b', 2);
    assert.equal(map.get('a'), 1);
    map.set('c', 3);
    assert.deepEqual([map.get('a'), map.get('b'), map.get('c'), map.size], [1, undefined, 3, 2]);
    map.set('a', 4);
    map.set('d', 5);
    assert.deepEqual([map.get('a'), map.get('c'), map.get('d')], [4, undefined, 5]);
  });

  it('reports values that are removed or replaced, but not one that is set again', () => {
    const removed: string[] = [];
    const map = new RecentMap<string>(2, { onRemove: (value) => removed.push(value) });
    for (const [key, value] of ['a1', 'a1', 'a2', 'b3', 'c4']) map.set(key, value);
    assert.deepEqual(removed, ['1', '2']);
    map.delete('b');
    map.delete('unknown');
    map.clear();
    assert.deepEqual([removed, map.size, map.weight], [['1', '2', '3', '4'], 0, 0]);
  });

  it('contains the same entries as a slow list of them, whatever their weights', () => {
    const { below } = randomSource('RecentMap');
    const weigh = (value: number) => (value % 5) + 1;
    const map = new RecentMap<number>(20, { weigh });
    let list: [key: string, value: number][] = [];
    for (let step = 0; step < 20_000; step++) {
      const key = `${below(15)}`;
      const found = list.find(([name]) => name === key);
      const others = list.filter(([name]) => name !== key);
      const dice = below(10);
      if (dice === 0) {
        map.delete(key);
        list = others;
      } else if (dice < 5) {
        assert.equal(map.get(key), found?.[1]);
        if (found !== undefined) list = [...others, found];
      } else {
        map.set(key, step);
        list = [...others, [key, step]];
        while (list.reduce((sum, [, value]) => sum + weigh(value), 0) > 20) list.shift();
      }
      assert.equal(map.size, list.length);
      assert.equal(
        map.weight,
        list.reduce((sum, [, value]) => sum + weigh(value), 0)
      );
    }
  });

  it('does not keep an entry that is heavier than the map', () => {
    const removed: number[] = [];
    const map = new RecentMap<number>(3, { weigh: (value) => value, onRemove: (value) => removed.push(value) });
    map.set('a', 4);
    assert.deepEqual([map.size, map.weight, removed], [0, 0, [4]]);
  });
});
