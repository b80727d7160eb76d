import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstIn, lastIn, splitBy } from '../../lib/base/text-search.ts';
import { Random } from '../fuzz/random.ts';

/** A length for which a search whose time grows with the product of the lengths does not end. */
const LONG = 1_000_000;
const AS = 'a'.repeat(LONG);

describe('The search for a string in another one', () => {
  it('finds what the functions of JavaScript find, in long random strings of few characters', () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    const random = new Random(seed);
    const between = (least: number, most: number) => least + random.below(most - least);
    const texts = (length: number) => Array.from({ length }, () => (random.once(20) ? 'b' : 'a')).join('');
    for (let round = 0; round < 20; round++) {
      const text = texts(between(10_000, 12_000));
      const at = between(0, 4_000);
      const [found, missing] = [text.slice(at, at + between(1_000, 6_000)), texts(2_000)];
      const period = 'ab'.repeat(between(500, 900));
      for (const what of [found, missing, `${found}c`, period, `${period}a`, 'a'.repeat(between(900, 1_200))])
        for (const whole of [text, 'ab'.repeat(6_000), 'a'.repeat(between(9_000, 12_000)), text + what]) {
          const from = between(0, 500);
          assert.equal(firstIn(whole, what), whole.indexOf(what), `SEED=${seed}`);
          assert.equal(firstIn(whole, what, from), whole.indexOf(what, from), `SEED=${seed}`);
          assert.equal(lastIn(whole, what), whole.lastIndexOf(what), `SEED=${seed}`);
          assert.deepEqual(splitBy(whole, what), whole.split(what), `SEED=${seed}`);
        }
    }
  });

  it('takes time that grows with the lengths of the strings, not with their product', () => {
    const half = 'a'.repeat(LONG / 2);
    for (const what of [`${half}b`, `b${half}`, `${half}b${half.slice(1)}`]) {
      assert.equal(firstIn(AS, what), -1);
      assert.equal(lastIn(AS, what), -1);
      assert.deepEqual(splitBy(AS, what), [AS]);
    }
    assert.deepEqual(splitBy(AS, half), ['', '', '']);
    assert.equal(lastIn(AS, half), LONG / 2);
  });
});
