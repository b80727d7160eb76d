import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { covers, matches } from '../../lib/index.ts';
import { checkTopicFilter } from '../../lib/topics/topic.ts';
import { samples } from '../support/samples.ts';
import { randomFilter, randomName, randomSource, slowMatches } from './slow-matcher.ts';

/** All topics or filters of one to `depth` levels. */
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
  it('returns true if the allowed filter matches every topic of the requested filter, for all short filters', () => {
    const filters = all(['a', '', '$s', '+', '#'], 3).filter((filter) => checkTopicFilter(filter) === undefined);
    // "b" and "$t" represent all levels that no filter names; one more level represents all greater depths.
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

  it('returns false if the requested filter matches more topics, for random filters and names', () => {
    const source = randomSource('covers');
    for (let round = 0; round < samples(20_000); round++) {
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

  it('returns false for filters that matches() would accept as topic names', () => {
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

  it('[MQTT-4.8.2-1] returns false if the allowed filter is shared, for example by a user name "$share/x" or "$queue"', () => {
    for (const username of ['$share/x', '$queue', '$share/$queue']) {
      for (const requested of ['#', 'bob/#', 'ann/x', `${username}/ann`])
        assert.equal(covers(`${username}/#`, requested), false, `covers(${username}/#, ${requested})`);
    }
  });

  it('returns false for invalid filters', () => {
    for (const wrong of ['', 'a/#/b', 'a+', '$share/g', '$share//a', 'a\0', undefined as never]) {
      assert.equal(covers('#', wrong), false, wrong);
      assert.equal(covers(wrong, 'a'), false, wrong);
    }
  });
});
