import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Pace } from '../../lib/base/pace.ts';
import type { Timer } from '../../lib/base/timing-wheel.ts';
import { createBroker } from '../../lib/index.ts';
import { RetainedStore } from '../../lib/retained/retained-store.ts';
import { FilterTree } from '../../lib/routing/filter-tree.ts';
import { type WantedNames, walkLevel } from '../../lib/routing/level-walk.ts';
import { levelRecord, selectNames } from '../../lib/routing/topic-level.ts';
import { type LevelNames, namesOf } from '../../lib/topics/level-names.ts';
import { randomSource } from '../topics/slow-matcher.ts';

const NONE = namesOf([], 0);
const WHOLE = { after: '', wanted: 101 };
const unhurried = () => new Pace(() => Promise.resolve());

/** Names that are counted as they are looked at. */
function counted(names: LevelNames) {
  const seen = { names: 0, looked: 0 };
  const view: LevelNames = {
    *names() {
      for (const name of names.names()) {
        seen.names++;
        yield name;
      }
    },
    at(name) {
      seen.looked++;
      return names.at(name);
    }
  };
  return { view, seen };
}

describe('Levels of the topic tree', () => {
  it('finds the names, ends and numbers that a search through all topics finds, after random changes', async () => {
    const source = randomSource('levels of topics');
    const random = () => source.below(10_000) / 10_000;
    const labels = ['a', 'b', 'a-b', 'ab', '', '$x', 'a long label of a topic'];
    const store = new RetainedStore<number>();
    const topics = new Set<string>();
    for (let step = 0; step < 3_000; step++) {
      const deep = random() < 0.02 ? 40 : 4;
      const topic = Array.from(
        { length: 1 + Math.floor(random() * deep) },
        () => labels[Math.floor(random() * labels.length)]
      ).join('/');
      if (topic === '') continue;
      if (random() < 0.4) {
        store.delete(topic);
        topics.delete(topic);
      } else {
        store.put(topic, step, 1);
        topics.add(topic);
      }
      if (step % 10 > 0) continue;
      const parts = topic.split('/');
      const above = parts.slice(0, Math.floor(random() * parts.length)).join('/');
      const prefix = parts.length === 1 || random() < 0.1 ? '' : `${above}/`;
      const expected = namesOf(
        [...topics].filter((one) => one.startsWith(prefix)),
        prefix.length
      );
      const level = store.level(prefix);
      const sorted = (names: Iterable<string>) => [...names].sort();
      assert.deepEqual(sorted(level.names()), sorted(expected.names()), prefix);
      for (const name of [...expected.names(), 'none'])
        assert.deepEqual(level.at(name), expected.at(name), prefix + name);
      const limit = 1 + Math.floor(random() * 3);
      const keys: string[] = [];
      for (let after: string | undefined; ; after = keys.at(-1)) {
        const { found, count } = await selectNames(async () => [level, NONE], { after, skip: 0, limit }, unhurried());
        assert.equal(count, [...expected.names()].length);
        keys.push(...found.slice(0, limit).map((name) => `${name}/`));
        if (found.length <= limit) break;
      }
      assert.deepEqual(keys, [...expected.names()].map((name) => `${name}/`).sort());
    }
  });

  it('looks at the names of one level, not at the topics that exist, with 200,000 of them', async () => {
    const store = new RetainedStore<true>();
    for (let at = 0; at < 200_000; at++) store.put(`site/${at % 1_000}/device/${at}`, true, 1);
    for (const [prefix, names] of [
      ['', 1],
      ['site/', 1_000],
      ['site/7/', 1],
      ['site/7/device/', 200]
    ] as const) {
      const { view, seen } = counted(store.level(prefix));
      const part = { after: undefined, skip: 0, limit: 100 };
      const { found, count } = await selectNames(async () => [view, NONE], part, unhurried());
      for (const name of found) levelRecord([view, NONE], prefix, name, 'n');
      assert.equal(count, names);
      assert.deepEqual(seen, { names, looked: Math.min(names, 101) }, prefix);
    }
    const { below } = store.level('').at('site') ?? assert.fail();
    assert.equal(below, 200_000);
  });

  it('follows changes of the subscribed filters once it was read', async () => {
    await using broker = await createBroker({ sysInterval: 0 }).start();
    const client = await broker.connect({ clientId: 'c' });
    const names = async () =>
      (await broker.directory.levels({ prefix: 'a/' })).entries.map(
        ({ level, isSubscribed, subscribedBelow }) => `${level} ${isSubscribed} ${subscribedBelow}`
      );
    await client.subscribe('a/b');
    assert.deepEqual(await names(), ['b true 0']);
    for (const filter of ['a/b/c', 'a/+', '$share/g/a/d', 'a/b']) await client.subscribe(filter);
    assert.deepEqual(await names(), ['+ true 0', 'b true 1', 'd true 0']);
    for (const filter of ['a/b', 'a/+', '$share/g/a/d']) await client.unsubscribe(filter);
    assert.deepEqual(await names(), ['b false 1']);
    await client.disconnect();
    assert.deepEqual(await names(), []);
  });

  it('reads levels of topic filters by walks that find what a search through all of them finds', async () => {
    const source = randomSource('walks over filters');
    const labels = ['a', 'b', 'a-b', 'ab', '', '$x', '+', 'a long label of a filter'];
    const topics = [
      ...new Set(
        Array.from({ length: 2_000 }, () =>
          Array.from({ length: 1 + source.below(5) }, () => source.pick(labels)).join('/')
        )
      )
    ].filter((topic) => topic !== '');
    for (let round = 0; round < 100; round++) {
      const parts = source.pick(topics).split('/');
      const above = parts.slice(0, source.below(parts.length));
      const prefix = above.length === 0 ? '' : `${above.join('/')}/`;
      const names = await walkLevel([topics.slice(0, 900), topics.slice(900)], prefix, WHOLE, unhurried());
      const expected = namesOf(
        topics.filter((one) => one.startsWith(prefix)),
        prefix.length
      );
      assert.deepEqual([...names.names()].sort(), [...expected.names()].sort(), prefix);
      for (const name of [...expected.names(), 'none'])
        assert.deepEqual(names.at(name), expected.at(name), prefix + name);
    }
  });

  for (const order of ['ascending', 'descending', 'random'] as const)
    it(`reads pages of a level with more names than are counted, if the filters come in ${order} order`, async () => {
      const count = 120_000;
      const numbers = Array.from({ length: count }, (_, at) => (order === 'random' ? (at * 7_919) % count : at));
      if (order === 'descending') numbers.reverse();
      // a name may have filters at it and below it, and one name may be the beginning of another
      const filters = numbers.flatMap((at) => [
        `x/${at}`,
        ...(at % 3 === 0 ? [`x/${at}-`, `x/${at}/y`, `x/${at}/z/${at}`] : [])
      ]);
      const keys = [...new Set(filters.map((filter) => `${filter.split('/')[1]}/`))].sort();
      const expected = namesOf(filters, 2);
      for (const from of [0, 70_000, keys.length - 5])
        for (const limit of [3, 1_000]) {
          const after = from === 0 ? undefined : keys[from - 1];
          const read = async (part: WantedNames) =>
            [NONE, await walkLevel([['other', 'y/1', ...filters]], 'x/', part, unhurried())] as const;
          const page = await selectNames(read, { after, skip: 1, limit }, unhurried());
          assert.equal(page.count, -1);
          assert.deepEqual(
            page.found.map((name) => `${name}/`),
            keys.slice(from + 1, from + 2 + limit)
          );
          for (const name of page.found) assert.deepEqual(page.trees[1].at(name), expected.at(name), name);
        }
      const skipped = await selectNames(
        async (part) => [NONE, await walkLevel([filters], 'x/', part, unhurried())],
        { after: undefined, skip: 50_000, limit: 2 },
        unhurried()
      );
      assert.deepEqual(
        skipped.found.map((name) => `${name}/`),
        keys.slice(50_000, 50_003)
      );
    });

  it('makes a tree for whoever reads many levels, with the filters that change meanwhile, and discards one that is not read', async () => {
    const filters = new Set(Array.from({ length: 5_000 }, (_, at) => `a/${at}`));
    const tree = new FilterTree();
    let walks = 0;
    const all = () => {
      walks++;
      return [filters.values()];
    };
    const pace = new Pace(async () => {
      if (filters.delete('a/4999')) tree.delete('a/4999');
      if (filters.delete('a/0')) tree.delete('a/0');
      filters.add('b');
      tree.add('b');
    });
    const read = async () => {
      const level = await tree.level('', WHOLE, all, pace);
      assert.deepEqual([level.at('a')?.below, level.at('b')?.isEnd], [filters.size - 1, true]);
    };
    await tree.level('', WHOLE, all, pace);
    for (let level = 2; level <= 20; level++) await read();
    assert.equal(walks, 20, 'a walk for each level');
    let before: number;
    do {
      before = walks;
      await read();
    } while (walks > before);
    for (const _ of [1, 2, 3]) await read();
    assert.equal(walks, before, 'the tree needs no walk');
    filters.add('a/new');
    tree.add('a/new');
    await read();
    for (let at = 0; at < 100_000; at++) tree.add('b');
    await read();
    assert.equal(walks, before + 1, 'the tree was discarded');
  });

  it('discards a tree, and the count of walks, when no level has been read for ten minutes', async () => {
    let walks = 0;
    const all = () => {
      walks++;
      return [['a/1', 'a/2']];
    };
    let unread: Timer | undefined;
    const tree = new FilterTree({
      armLater(timer, delayMs) {
        assert.equal(delayMs, 600_000);
        unread = timer;
      }
    });
    const read = async (count: number) => {
      walks = 0;
      for (let level = 0; level < count; level++) await tree.level('', WHOLE, all, unhurried());
      return walks;
    };
    assert.equal(await read(19), 19);
    unread?.ring(0);
    assert.equal(await read(20), 20, 'walks of another time do not count');
    assert.ok((await read(10)) < 10, 'a tree was made');
    assert.equal(await read(10), 0);
    unread?.ring(0);
    assert.equal(await read(10), 10, 'the tree was discarded');
  });
});
