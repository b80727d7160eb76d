import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Subscriber, Subscription } from '../../lib/routing/subscription.ts';
import { Subscriptions } from '../../lib/routing/subscriptions.ts';

const to = (filter: string) => new Subscription({} as Subscriber, filter, 1, false, false, 0, undefined);
const filters = (subscriptions: Subscriptions) => Array.from(subscriptions.values(), ({ filter }) => filter);

describe('Subscriptions', () => {
  for (const count of [1, 10, 16, 17, 100])
    it(`finds and removes each of ${count}, in the order in which they were made`, () => {
      const subscriptions = new Subscriptions();
      const all = Array.from({ length: count }, (_, i) => to(`filter/${i}`));
      for (const [i, one] of all.entries()) {
        assert.equal(subscriptions.get(one.filter), undefined);
        subscriptions.add(one);
        assert.equal(subscriptions.size, i + 1);
      }
      for (const one of all) assert.equal(subscriptions.get(one.filter), one);
      const kept = all.filter((_, i) => i % 3 !== 1);
      for (const one of all) if (!kept.includes(one)) subscriptions.delete(one.filter);
      subscriptions.delete('another');
      assert.deepEqual(
        filters(subscriptions),
        kept.map(({ filter }) => filter)
      );
      for (const one of all) assert.equal(subscriptions.get(one.filter), kept.includes(one) ? one : undefined);
      for (const { filter } of kept) subscriptions.delete(filter);
      assert.equal(subscriptions.size, 0);
      subscriptions.add(all[0]);
      assert.deepEqual(filters(subscriptions), ['filter/0']);
    });

  for (const count of [10, 100])
    it(`iterates over all of ${count} even if they are deleted in the meantime`, () => {
      const subscriptions = new Subscriptions();
      for (let i = 0; i < count; i++) subscriptions.add(to(`filter/${i}`));
      let seen = 0;
      for (const { filter } of subscriptions.values()) {
        subscriptions.delete(filter);
        seen++;
      }
      assert.equal(seen, count);
      assert.equal(subscriptions.size, 0);
    });
});
