import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRewrite } from '../../lib/broker/features/rewrite.ts';
import { compileRule } from '../../lib/rules/index.ts';
import { loadPatterns } from '../../lib/sql/patterns.ts';
import { compileStreamRule, streamFunctions } from '../../lib/streams/index.ts';
import { FUNCTIONS } from './support.ts';

/** 10,000 parts. */
const LARGE = 'a{500}'.repeat(20);
const LITTLE = 'x'.repeat(1000);
const MUCH = 'x'.repeat(2000);
const RULES = [...FUNCTIONS.values()].filter(({ patternAt }) => patternAt !== undefined).map(({ name }) => name);
const STREAMS = streamFunctions().flatMap(({ name }) => (name.startsWith('regexp') ? [name] : []));

describe('The work of a regular expression', () => {
  it('counts the work of all functions that have a regular expression', () => {
    assert.deepEqual(RULES.sort(), ['regex_extract', 'regex_match', 'regex_replace']);
    assert.deepEqual(STREAMS.sort(), ['regexp_matches', 'regexp_replace', 'regexp_substr', 'regexp_substring']);
  });

  for (const name of RULES)
    it(`limits the work for an event with an error that names ${name}()`, async () => {
      const by = name.endsWith('replace') ? `, ''` : '';
      for (const pattern of [`'${LARGE}'`, 'topic']) {
        const call = (text: string) => `${name}(payload.${text}, ${pattern}${by})`;
        const one = await compileRule(`SELECT ${call('x')} AS a FROM "#"`);
        const run = (rule: typeof one, x: string) => rule.run({ topic: LARGE, payload: JSON.stringify({ x, y: x }) });
        assert.equal(run(one, LITTLE).outputs.length, 1);
        const expected = new RegExp(`${name}\\(\\): the parts of regular expressions .* use a shorter expression`);
        assert.throws(() => run(one, MUCH), expected);
        const both = await compileRule(`SELECT ${call('x')} AS a, ${call('y')} AS b FROM "#"`);
        assert.throws(() => run(both, LITTLE), expected);
      }
    });

  it('limits the work for all elements of FOREACH together', async () => {
    const rule = await compileRule(`FOREACH payload.l AS e DO regex_match(e, '${LARGE}') AS m FROM "#"`);
    const run = (length: number) =>
      rule.run({ topic: 't', payload: JSON.stringify({ l: Array(length).fill('x'.repeat(10)) }) });
    assert.equal(run(100).outputs.length, 100);
    assert.throws(() => run(200), /regex_match\(\): the parts/);
  });

  for (const name of STREAMS)
    it(`limits the work for each row of a stream separately, with an error that names ${name}()`, async () => {
      const by = name.endsWith('replace') ? ', ""' : '';
      for (const pattern of [`"${LARGE}"`, 'p']) {
        const rule = await compileStreamRule(`SELECT ${name}(x, ${pattern}${by}) AS a FROM d`);
        const run = (...texts: unknown[]) =>
          rule.run(texts.map((x, at) => ({ stream: 'd', values: { x, p: LARGE }, at })));
        const few = run(LITTLE, LITTLE, null, 1);
        assert.deepEqual([few.errors, few.emissions.length], [[], 4]);
        for (const much of [MUCH, [MUCH]]) {
          const { errors } = run(much);
          assert.match(errors[0], new RegExp(`${name}\\(\\): the parts of regular expressions`));
        }
      }
    });

  it('limits the work for rewritten topics, with one report that names the option and the remedy', async () => {
    const reported: string[] = [];
    const rule = { filter: '#', pattern: `^(x+)$|${LARGE}`, target: 'y' };
    const { rewrite } = compileRewrite([rule], await loadPatterns(), ({ message }) => reported.push(message));
    assert.equal(rewrite(LITTLE, 'publish'), 'y');
    assert.deepEqual(reported, []);
    for (let time = 0; time < 2; time++) assert.equal(rewrite(MUCH, 'publish'), MUCH);
    assert.equal(reported.length, 1);
    assert.match(reported[0], /^option rewrite\.0: a topic of 2000 bytes is not rewritten, .* use a shorter pattern$/);
  });
});
