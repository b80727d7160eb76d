import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type RetainedEntry, RetainedStore } from '../../lib/retained/retained-store.ts';
import { walkRetained } from '../../lib/retained/retained-walk.ts';
import { sized } from '../support/samples.ts';
import { randomFilter, randomName, randomSource, slowMatches } from '../topics/slow-matcher.ts';

/** A store with topics that are not in the order of their keys. */
function filled(count: number): RetainedStore<number> {
  const store = new RetainedStore<number>();
  for (let n = 0; n < count; n++) store.put(`${n % 7}/dev/${n}`, n, 1);
  for (let n = 0; n < count; n += 3) store.put(`${n % 7}/dev/${n}`, n + count, 1);
  return store;
}

/** Walk to the end. @param afterStep called after each step, with its number */
function walked(store: RetainedStore<number>, filters: string[], afterStep: (step: number) => void = () => undefined) {
  const given: RetainedEntry<number>[] = [];
  let step = 0;
  for (const entry of walkRetained(store, filters)) {
    if (entry?.isLive) given.push(entry);
    afterStep(step++);
  }
  return { given, empty: step - given.length };
}

describe('walkRetained', () => {
  it('returns the messages that match finds, in the same order', () => {
    const store = filled(20_000);
    for (const filter of ['#', '3/#', '+/dev/5', '+/+/+/+', '3/dev/3', 'none/#'])
      assert.deepEqual(walked(store, [filter]).given, store.match(filter), filter);
  });

  it('compares at most 250 topics in a step that returns nothing', () => {
    const store = filled(20_000);
    assert.equal(walked(store, ['+/+/+/+']).empty, 80, 'it compares all');
    const { given, empty } = walked(store, ['#']);
    assert.equal(given.length, 20_000);
    assert.ok(empty >= 80, String(empty));
    assert.equal(walked(store, ['1/dev/1', '2/dev/x/#']).empty, 0, 'the tree finds few of them at once');
  });

  it('compares fewer topics in a step if there are several filters', () => {
    const filters = Array.from({ length: 100 }, (_, n) => `+/+/+/${n}`);
    assert.equal(walked(filled(20_000), filters).empty, 6_666);
  });

  it('returns each topic once if several filters match it', () => {
    for (const count of [50, 20_000]) {
      const store = filled(count);
      assert.deepEqual(walked(store, ['3/#', '#', '3/dev/3']).given, store.match('#'));
    }
  });

  it('leaves out messages that are replaced, deleted or stored after it was created', () => {
    const store = filled(20_000);
    const steps = walkRetained(store, ['#']);
    store.put('0/dev/0', 1, 1);
    store.put('later', 1, 1);
    store.delete('1/dev/1');
    const expected = store.match('#').filter(({ topic }) => topic !== '0/dev/0' && topic !== 'later');
    assert.deepEqual(
      [...steps].filter((entry) => entry?.isLive),
      expected
    );
  });

  it('returns the same as an obvious version while the store changes', () => {
    const source = randomSource('walkRetained');
    const random = source.below;
    for (let round = 0; round < sized(9, 30); round++) {
      const store = new RetainedStore<number>();
      const count = round % 3 === 0 ? 200 : 6_000;
      for (let n = 0; n < count; n++) store.put(`${randomName(source)}/${random(count)}`, n, 1);
      const filters = Array.from({ length: 1 + random(2) }, () => (random(3) === 0 ? '#' : randomFilter(source)));
      const before = store.next;
      const unchanged = new Set(store);
      const undone: RetainedEntry<number>[] = [];
      const { given } = walked(store, filters, (step) => {
        if (step % 3 !== 0) return;
        const entries = [...unchanged];
        const entry = entries[random(entries.length)];
        if (entry === undefined || !entry.isLive) return;
        unchanged.delete(entry);
        if (random(2) === 0) store.delete(entry.topic);
        else store.put(entry.topic, -1, 1);
        if (random(3) === 0) store.putBack(entry);
        undone.push(entry);
      });
      const about = `round ${round}, filters ${filters}`;
      const isWanted = ({ topic }: RetainedEntry<number>) => filters.some((filter) => slowMatches(filter, topic));
      const touched = new Set(undone);
      const expected = [...unchanged].filter(isWanted).sort((a, b) => a.seq - b.seq);
      assert.deepEqual(
        given.filter((entry) => !touched.has(entry)),
        expected,
        about
      );
      assert.equal(new Set(given.map(({ topic }) => topic)).size, given.length, `each topic once: ${about}`);
      assert.ok(
        given.every((entry, n) => isWanted(entry) && entry.seq < before && (n === 0 || given[n - 1].seq < entry.seq)),
        about
      );
    }
  });
});
