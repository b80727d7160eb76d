import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BySize, Sized } from '../../lib/base/collections/by-size.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

class Item extends Sized {}

describe('BySize', () => {
  it('returns one of the largest, to a factor of two, after any change of sizes', () => {
    const { below, pick } = randomSource('sizes');
    const list = new BySize<Item>();
    const items = Array.from({ length: 50 }, () => new Item());
    for (let step = 0; step < samples(20_000); step++) {
      list.resize(pick(items), below(10) < 3 ? 0 : Math.floor(2 ** (below(4_000) / 100)));
      const sizes = items.map(({ listedBytes }) => listedBytes);
      const most = Math.max(...sizes);
      const largest = list.largest();
      const hint = `step ${step}`;
      assert.equal(
        list.bytes,
        sizes.reduce((sum, size) => sum + size, 0),
        hint
      );
      if (most === 0) assert.equal(largest, undefined, hint);
      else assert.ok((largest as Item).listedBytes * 2 > Math.min(most, 2 ** 31 - 1), hint);
    }
  });

  it('returns entries of about the same size in turn', () => {
    const list = new BySize<Item>();
    const items = [new Item(), new Item(), new Item(), new Item()];
    for (const [at, item] of items.entries()) list.resize(item, at === 3 ? 100 : 1000 + at);
    const given = Array.from({ length: 6 }, () => items.indexOf(list.largest() as Item));
    assert.deepEqual(new Set(given.slice(0, 3)), new Set([0, 1, 2]));
    assert.deepEqual(given.slice(3), given.slice(0, 3));
  });
});
