import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ComparedTopic, slashesOf } from '../../lib/topics/near-filter.ts';
import { FilterIndex } from '../../lib/topics/trie.ts';

const differencesOf = (filter: string, topic: string) => new ComparedTopic(topic).differencesTo(filter);

describe('The differences between a filter and a topic', () => {
  const cases: [filter: string, topic: string, differences: string][] = [
    // A filter that matches is not near.
    ['a/b', 'a/b', ''],
    ['a/+', 'a/b', ''],
    ['a/#', 'a', ''],
    ['#', 'a/b', ''],
    // The case.
    ['Home/Temp', 'home/temp', 'case'],
    ['home/+/TEMP', 'home/kitchen/temp', 'case'],
    ['HOME/#', 'home', 'case'],
    ['Größe/x', 'grÖsse/x', ''],
    ['ÉTAGE/x', 'étage/x', 'case'],
    // Slashes.
    ['/a/b', 'a/b', 'slash'],
    ['a/b', '/a/b', 'slash'],
    ['a/b/', 'a/b', 'slash'],
    ['a/b', 'a/b/', 'slash'],
    ['a//b', 'a/b', 'slash'],
    ['a/b', 'a//b', 'slash'],
    ['/#', 'a/b', 'slash'],
    ['a/+', 'a/b/', 'slash'],
    ['A/b', '/a/b', 'case,slash'],
    // The number of levels.
    ['a', 'a/b/c', 'levels'],
    ['a/+', 'a/b/c', 'levels'],
    ['a/b/c', 'a/b', 'levels'],
    ['b/c', 'a/b/c', 'levels'],
    ['+', 'a/b', 'levels'],
    ['+/status', 'site/7/status', 'levels'],
    ['site/+/temp', 'site/a/b/temp', 'levels'],
    ['a/b/#', 'a', 'levels'],
    ['b/#', 'a/b/c', 'levels'],
    ['x/a/#', 'a/b', 'levels'],
    // Topics that begin with `$`.
    ['#', '$SYS/x', 'system'],
    ['+/x', '$SYS/x', 'system'],
    ['+/X', '$SYS/x', 'system,case'],
    ['$sys/#', '$SYS/x', 'case'],
    // Shared subscriptions.
    ['$shared/g/a/b', 'a/b', 'share'],
    ['$Share/g/#', 'a/b', 'share'],
    ['share/g/a/+', 'a/b', 'share'],
    ['shared/room1/#', 'alarms/1', ''],
    ['share/room1/+/+', 'alarms/1', ''],
    // Blanks.
    ['a/b ', 'a/b', 'space'],
    ['a/ b\u00a0', 'a/b', 'space'],
    // Nothing in common.
    ['a/b', 'a/c', ''],
    ['a/+', 'b', ''],
    ['a/b/c', 'x/y', ''],
    ['+/+/x', 'a/b', ''],
    ['a/#', 'b/c', '']
  ];
  for (const [filter, topic, expected] of cases) {
    it(`finds ${expected === '' ? 'nothing' : expected} between ${filter} and ${topic}`, () => {
      assert.equal(differencesOf(filter, topic).join(), expected);
    });
  }

  it('names the slash that is different', () => {
    assert.equal(slashesOf('/a', 'a'), 'leading');
    assert.equal(slashesOf('a', 'a/'), 'trailing');
    assert.equal(slashesOf('a//b', 'a/b'), 'doubled');
    assert.equal(slashesOf('/a/b', 'a/b/'), 'leading, trailing');
  });

  it('compares hostile filters and topics in a bounded time', () => {
    const topic = new ComparedTopic('a/'.repeat(2_047));
    const filters = [`${'+/'.repeat(30_000)}#`, `${'+/'.repeat(2_000)}#`, 'A/'.repeat(2_047), `${'a/'.repeat(31)}#`];
    for (let round = 0; round < 100; round++) for (const filter of filters) topic.differencesTo(filter);
    assert.deepEqual(topic.differencesTo(filters[2]), ['case']);
    assert.deepEqual(topic.differencesTo(filters[0]), [], 'it is longer than 4,096 characters');
  });
});

describe('The near filters of an index', () => {
  function indexOf(...filters: string[]): FilterIndex<object> {
    const index = new FilterIndex<object>();
    for (const filter of filters) index.add(filter, { filter });
    return index;
  }
  const nearTo = (index: FilterIndex<object>, topic: string) =>
    index.near(topic).found.map(({ filter, differences }) => `${filter} ${differences.join()}`);

  it('finds filters with and without wildcards, the nearest first', () => {
    const index = indexOf('a/b', 'A/b', '/a/b', 'a/b/c', 'a/+/+', 'A/+', 'a/#', 'x/y', 'x/+');
    assert.deepEqual(nearTo(index, 'a/b').slice(0, 3).sort(), ['/a/b slash', 'A/+ case', 'A/b case']);
    assert.deepEqual(nearTo(index, 'a/b').slice(3).sort(), ['a/+/+ levels', 'a/b/c levels']);
    assert.equal(index.near('a/b').isComplete, true);
  });

  it('finds filters with a blank at the beginning or end of a level', () => {
    for (const filter of ['a/b ', ' a/b', 'a/ b', 'a /b', 'a/b\t', 'a/b\u00a0', 'a/\u2003b', 'a/b\ufeff', '+/b '])
      assert.deepEqual(nearTo(indexOf(filter), 'a/b'), [`${filter} space`]);
    assert.deepEqual(nearTo(indexOf('a/ü\u3000', '温度/\u00a0x'), 'a/ü'), ['a/ü\u3000 space']);
  });

  it('finds filters below a mount point, which have more levels at their beginning', () => {
    assert.deepEqual(nearTo(indexOf('tenant/a/b', 'tenant/a/+', 'tenant/c'), 'a/b'), [
      'tenant/a/b levels',
      'tenant/a/+ levels'
    ]);
  });

  it('tells how many subscriptions a filter has', () => {
    const index = indexOf('A');
    for (let at = 0; at < 40; at++) index.add('A', {});
    assert.deepEqual(
      index.near('a').found.map(({ count }) => count),
      [41]
    );
  });

  it('compares a bounded number of filters, and tells that there are more', () => {
    const index = new FilterIndex<object>();
    const value = {};
    for (let at = 0; at < 1_000; at++) {
      index.add(`dev/${at}/state`, value);
      index.add(`dev/${at}/+`, value);
    }
    index.add('DEV/7/temp', value);
    assert.equal(index.near('dev/7/temp').isComplete, true);
    assert.equal(index.near('dev/7/temp', 10).isComplete, false);
    assert.equal(index.near('dev/7/temp', undefined, 10).isComplete, false);
    assert.deepEqual(index.near('/'.repeat(65_535)), { found: [], isComplete: false });
    assert.deepEqual(
      index.near('x/y/z', 10, 10).found.map(({ filter }) => filter),
      []
    );
  });

  it('finds at most 100 filters, and tells that there are more', () => {
    const index = new FilterIndex<object>();
    for (let at = 0; at < 300; at++) index.add(`a/b/${at}`, {});
    const { found, isComplete } = index.near('a/b');
    assert.equal(found.length, 100);
    assert.equal(isComplete, false);
  });
});
