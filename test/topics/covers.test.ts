import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { covers, matches } from '../../lib/index.ts';
import { checkTopicFilter } from '../../lib/topics/topic.ts';
import { randomFilter, randomName, randomSource, slowMatches } from './slow-matcher.ts';

/** All texts of one to so many levels. */
function all(levels: readonly string[], depth: number): string[] {
  let longest = [...levels];
  const texts = [...longest];
  for (let at = 1; at < depth; at++) {
    longest = longest.flatMap((head) => levels.map((level) => `${head}/${level}`));
    texts.push(...longest);
  }
  return texts;
}

describe('covers', () => {
  it('is true where every topic of the requested filter matches the allowed one, for all short filters', () => {
    const filters = all(['a', '', '$s', '+', '#'], 3).filter((filter) => checkTopicFilter(filter) === undefined);
    // "b" and "$t" stand for all levels that no filter names, one level more for all depths
    const names = all(['a', 'b', '', '$s', '$t'], 4).filter((name) => name !== '');
    const reached = filters.map((filter) => names.map((name) => slowMatches(filter, name)));
    let count = 0;
    for (const [at, allowed] of filters.entries()) {
      for (const [from, requested] of filters.entries()) {
        const expected = reached[from].every((isReached, name) => !isReached || reached[at][name]);
        assert.equal(covers(allowed, requested), expected, `covers(${allowed}, ${requested})`);
        if (expected) count++;
      }
    }
    assert.ok(filters.length > 90 && count > filters.length * 2, `${filters.length} filters, ${count} pairs`);
  });

  it('never lets a requested filter reach more, for random filters and names', () => {
    const source = randomSource('covers');
    for (let round = 0; round < 20_000; round++) {
      const allowed = randomFilter(source);
      const requested = randomFilter(source);
      if (!covers(allowed, requested)) continue;
      for (let n = 0; n < 20; n++) {
        const name = randomName(source);
        if (slowMatches(requested, name))
          assert.ok(slowMatches(allowed, name), `covers(${allowed}, ${requested}) and ${name}`);
      }
    }
  });

  it('tells apart what matches takes for the same', () => {
    assert.equal(matches('ann/+', 'ann/#'), true, 'the trap');
    assert.equal(covers('ann/+', 'ann/#'), false);
    assert.equal(covers('ann/#', 'ann/+'), true);
    assert.equal(covers('ann/#', 'ann'), true, 'the level above');
    assert.equal(covers('+', '#'), false);
    assert.equal(covers('+/#', '#'), true);
  });

  it('[MQTT-4.7.2-1] does not let wildcards at the first level cover topics that begin with "$"', () => {
    for (const allowed of ['#', '+', '+/#']) assert.equal(covers(allowed, '$SYS/#'), false, allowed);
    assert.equal(covers('$SYS/#', '$SYS/brokers/+'), true);
    assert.equal(covers('$SYS/#', '#'), false);
  });

  it('[MQTT-4.8.2-1] compares the filter inside a requested shared filter', () => {
    for (const prefix of ['$share/g/', '$queue/', '$share/$queue/']) {
      assert.equal(covers('ann/#', `${prefix}ann/+`), true, prefix);
      assert.equal(covers('ann/#', `${prefix}bob/+`), false, prefix);
      assert.equal(covers('ann/+', `${prefix}ann/#`), false, prefix);
      assert.equal(covers('#', `${prefix}$SYS/x`), false, prefix);
    }
  });

  it('[MQTT-4.8.2-1] covers nothing with an allowed filter that is shared, such as one made of a user name "$share/x" or "$queue"', () => {
    for (const username of ['$share/x', '$queue', '$share/$queue']) {
      for (const requested of ['#', 'bob/#', 'ann/x', `${username}/ann`])
        assert.equal(covers(`${username}/#`, requested), false, `covers(${username}/#, ${requested})`);
    }
  });

  it('is false for filters that are not valid', () => {
    for (const wrong of ['', 'a/#/b', 'a+', '$share/g', '$share//a', 'a\0', undefined as never]) {
      assert.equal(covers('#', wrong), false, wrong);
      assert.equal(covers(wrong, 'a'), false, wrong);
    }
  });
});
