import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { overlaps } from '../../lib/topics/topic.ts';
import { samples } from '../support/samples.ts';
import { randomFilter, randomName, randomSource, slowMatches } from './slow-matcher.ts';

describe('overlaps', () => {
  it('tells whether some topic name matches both filters', () => {
    const cases: [string, string, boolean][] = [
      ['a/#', 'a', true],
      ['a/#', 'a/secret', true],
      ['a/#', 'b', false],
      ['a/+', '+/b', true],
      ['a/+', '+/b/c', false],
      ['a/b', 'a/b/#', true],
      ['a/b', 'a/b/+', false],
      ['a/b', 'a/b/+/#', false],
      ['+', '#', true],
      ['#', '$SYS/#', false],
      ['+/x', '$SYS/x', false],
      ['$SYS/+', '$SYS/#', true],
      ['/', '+/+', true],
      ['/#', '#', true]
    ];
    for (const [a, b, expected] of cases) {
      assert.equal(overlaps(a, b), expected, `${a}, ${b}`);
      assert.equal(overlaps(b, a), expected, `${b}, ${a}`);
    }
  });

  it('returns true for random filters that match the same name', () => {
    const source = randomSource('overlaps');
    let found = 0;
    for (let i = 0; found < samples(150); i++) {
      assert.ok(i < 1_000_000, `only ${found} pairs match the same name`);
      const [a, b, name] = [randomFilter(source), randomFilter(source), randomName(source)];
      if (!slowMatches(a, name) || !slowMatches(b, name)) continue;
      found++;
      assert.ok(overlaps(a, b), `${a}, ${b}: ${name}`);
    }
  });
});
