import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SeqSet } from '../../lib/base/collections/seq-set.ts';
import { runs } from '../packets/arbitraries.ts';

describe('SeqSet', () => {
  it('contains the numbers that were added, in any order', () => {
    const range = fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 12 }));
    fc.assert(
      fc.property(fc.array(range, { maxLength: 40 }), (ranges) => {
        const set = new SeqSet();
        const plain = new Set<number>();
        for (const [from, length] of ranges) {
          if (length === 0) set.add(from);
          else set.addRange(from, from + length);
          for (let seq = from; seq < from + Math.max(1, length); seq++) plain.add(seq);
        }
        for (let seq = 1; seq < 80; seq++) assert.equal(set.has(seq), plain.has(seq), `${seq}`);
        let last = set.low;
        assert.equal(plain.has(set.low), false, 'low is the first missing number');
        set.forEach((from, to) => {
          assert.ok(from > last && to > from, 'ranges are disjoint and in order');
          for (let seq = from; seq < to; seq++) assert.ok(plain.has(seq));
          last = to;
        });
      }),
      runs('SeqSet', 500)
    );
  });
});
