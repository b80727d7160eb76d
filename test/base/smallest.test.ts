import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Smallest } from '../../lib/base/collections/smallest.ts';
import { randomSource } from '../topics/slow-matcher.ts';

describe('Smallest', () => {
  it('selects the same items as sorting all of them', () => {
    const source = randomSource('Smallest');
    for (let round = 0; round < 200; round++) {
      const items = Array.from({ length: source.below(200) }, () => ({ key: source.below(1_000).toString(36) }));
      const count = 1 + source.below(50);
      const smallest = new Smallest<{ key: string }>(count, ({ key }) => key);
      for (const item of items) smallest.offer(item);
      const keys = items.map(({ key }) => key).sort();
      assert.deepEqual(
        [...smallest.taken()].map(({ key }) => key),
        keys.slice(0, count).reverse()
      );
    }
  });
});
