import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IdSet } from '../../lib/base/collections/id-set.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

function idsIn(set: IdSet): number[] {
  return Array.from({ length: 65_535 }, (_, at) => at + 1).filter((id) => set.has(id));
}

describe('IdSet', () => {
  it('reports whether a packet id was new and whether it was present', () => {
    const ids = new IdSet();
    assert.equal(ids.has(7), false);
    assert.equal(ids.add(7), true);
    assert.equal(ids.add(7), false);
    assert.equal(ids.has(7), true);
    assert.equal(ids.size, 1);
    assert.equal(ids.delete(8), false);
    assert.equal(ids.delete(7), true);
    assert.equal(ids.delete(7), false);
    assert.equal(ids.size, 0);
  });

  it('distinguishes packet ids that share a byte', () => {
    const ids = new IdSet();
    for (let id = 8; id < 16; id++) assert.equal(ids.add(id), true);
    ids.delete(11);
    assert.deepEqual(idsIn(ids), [8, 9, 10, 12, 13, 14, 15]);
  });

  it('stores all packet ids, and removes all of them', () => {
    const ids = new IdSet();
    for (let id = 65_535; id > 0; id--) assert.equal(ids.add(id), true);
    assert.equal(ids.size, 65_535);
    assert.equal(idsIn(ids).length, 65_535);
    for (let id = 1; id <= 65_535; id++) assert.equal(ids.delete(id), true);
    assert.equal(ids.size, 0);
    assert.deepEqual(idsIn(ids), []);
  });

  it('creates an independent copy', () => {
    const ids = new IdSet();
    ids.add(3);
    ids.add(60_000);
    const copy = new IdSet(ids);
    copy.delete(3);
    copy.add(4);
    assert.deepEqual(idsIn(ids), [3, 60_000]);
    assert.deepEqual(idsIn(copy), [4, 60_000]);
    assert.deepEqual([ids.size, copy.size], [2, 2]);
  });

  it('behaves like a Set', () => {
    const { below } = randomSource('IdSet');
    const ids = new IdSet();
    const slow = new Set<number>();
    for (let step = 0; step < samples(20_000); step++) {
      const id = 1 + (below(2) === 0 ? below(40) : below(65_535));
      if (below(2) === 0) assert.equal(ids.add(id), !slow.has(id) && slow.add(id) !== undefined);
      else assert.equal(ids.delete(id), slow.delete(id));
      assert.equal(ids.has(id), slow.has(id));
      assert.equal(ids.size, slow.size);
    }
    assert.deepEqual(
      idsIn(ids),
      [...slow].sort((a, b) => a - b)
    );
  });
});
