import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Batch, type Entry } from '../../lib/adapter.ts';
import { memoryStore } from '../../lib/index.ts';
import { storeContract } from '../../lib/testing/index.ts';

describe('The in-memory store', () => {
  for (const { name, run } of storeContract({ create: () => memoryStore() })) it(name, run);

  it('uses the given name', () => {
    assert.equal(memoryStore().name, 'memory');
    assert.equal(memoryStore({ name: 'of the test' }).name, 'of the test');
  });

  it('agrees with a plain list after many changes in any order', async () => {
    const store = memoryStore();
    await store.open();
    const model = new Map<string, string>();
    let state = 7;
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const textOf = ({ key, value }: Entry) => [key.toString('latin1'), value.toString('latin1')];
    for (let round = 0; round < 120; round++) {
      const batch = new Batch();
      // Grow, then shrink until blocks are empty, then grow again.
      const deletesOf8 = round % 60 < 30 ? 2 : 7;
      for (let i = 0; i < 200; i++) {
        const key = Buffer.of(random(6), random(256), random(4));
        if (random(8) < deletesOf8) {
          batch.delete(key);
          model.delete(key.toString('latin1'));
        } else {
          batch.put(key, Buffer.from(`${round} ${i}`));
          model.set(key.toString('latin1'), `${round} ${i}`);
        }
      }
      await store.commit(batch);
      const from = Buffer.of(random(6), random(256));
      const to = Buffer.of(random(7));
      const limit = 1 + random(2000);
      const wanted = [...model]
        .filter(([key]) => key >= from.toString('latin1') && key < to.toString('latin1'))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .slice(0, limit);
      assert.deepEqual((await store.read(from, to, limit)).map(textOf), wanted);
    }
  });
});
