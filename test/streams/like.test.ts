import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { likePattern } from '../../lib/streams/expressions/like.ts';
import { StreamFailure } from '../../lib/streams/values/values.ts';
import { Random } from '../fuzz/random.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';

const ROUNDS = samples(3_000);
/** So long that a search in time proportional to the product of the lengths would not end. */
const LONG = 1_000_000;

/** Match a text with a pattern in the obvious, slow way. */
function obviously(text: string, pattern: string): boolean {
  if (pattern === '') return text === '';
  const [first, rest] = [pattern[0], pattern.slice(1)];
  if (first === '%') return obviously(text, rest) || (text !== '' && obviously(text.slice(1), pattern));
  return text !== '' && (first === '_' || first === text[0]) && obviously(text.slice(1), rest);
}

describe('LIKE', () => {
  it('matches the same random texts and patterns as a reference implementation', () => {
    const seed = readSeed();
    const random = new Random(seed);
    const some = (characters: string, most: number) =>
      Array.from({ length: random.below(most) }, () => random.pick([...characters])).join('');
    for (let round = 0; round < ROUNDS; round++) {
      const [text, pattern] = [some('ab', 10), some(random.once(2) ? 'ab%' : 'ab%_', 7)];
      const about = `${shownSeed(seed)}: '${text}' LIKE '${pattern}'`;
      assert.equal(likePattern(pattern)(text), obviously(text, pattern), about);
    }
  });

  it('takes time proportional to the lengths of text and pattern, not to their product', () => {
    const [text, half] = ['a'.repeat(LONG), 'a'.repeat(LONG / 2)];
    assert.equal(likePattern(`%${half}b%`)(text), false);
    assert.equal(likePattern(`%${half}b%c`)(text), false);
    assert.equal(likePattern(`a%${half}%a`)(text), true);
    assert.equal(likePattern('%a'.repeat(LONG / 4))(text), true);
  });

  it('fails with an error if a pattern with _ needs too many comparisons', () => {
    const text = 'a'.repeat(LONG);
    assert.equal(likePattern('%_a%')(text), true);
    assert.throws(() => likePattern(`%_${'a'.repeat(LONG / 2)}b%`)(text), StreamFailure);
  });
});
