import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRule, ruleFunctions } from '../../lib/rules/index.ts';
import { MAX_STRING } from '../../lib/sql/arithmetic.ts';
import { isHeavier, MAX_WEIGHT } from '../../lib/sql/weight.ts';
import { compileStreamRule, streamFunctions } from '../../lib/streams/index.ts';
import { Random } from '../fuzz/random.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';

const SEED = readSeed();
console.log(`# weight of the results of functions: ${shownSeed(SEED)}`);

/** Overhead of a result above the limit: the name of its column, and brackets. */
const SLACK = 100;
const NAMES = ['a', 'b', 'c', 'd'];
/** Calls of a function with other arguments. */
const TRIES = samples(4);

/** A JSON value of approximately a given weight. */
function anyValue(random: Random, weight: number): unknown {
  const text = 'x'.repeat(random.below(weight));
  const list = Array.from({ length: random.below(Math.ceil(weight / 200)) }, (_, at) => at);
  const all = [null, true, random.below(weight), -1, 1.5, text, 'a', '', ',', list, [list], [text, text], { a: text }];
  return random.pick([...all, { a: list, b: text }, JSON.stringify(list), [{ key: 'k', value: text }], [[text, list]]]);
}

/** The numbers of arguments that a function accepts, up to 4. */
function countOf(random: Random, params: readonly string[]): number {
  const least = params.filter((param) => !/[?.]$/.test(param)).length;
  const most = params.some((param) => param.endsWith('...')) ? NAMES.length : Math.min(NAMES.length, params.length);
  return Math.max(least, least + random.below(most - least + 1));
}

/** Compile a call with these arguments; some functions need literals. */
async function compiled<T>(
  random: Random,
  count: number,
  compile: (args: string) => Promise<T>
): Promise<T | undefined> {
  for (let attempt = 0; attempt < 6; attempt++) {
    const literals = ["'a'", '2', '100000', "'$.a'", "'base64'", "'gzip'", 'true'];
    const args = NAMES.slice(0, count).map((name) => (attempt > 0 && random.once(2) ? random.pick(literals) : name));
    const rule = await compile(args.join(', ')).catch(() => undefined);
    if (rule !== undefined) return rule;
  }
  return undefined;
}

function rowOf(random: Random, weight: number): Record<string, unknown> {
  return Object.fromEntries(NAMES.map((name) => [name, anyValue(random, weight)]));
}

describe('The result of a function', () => {
  it('keeps results of stream rules within the limit rowWeight for any arguments, or fails', async () => {
    const random = new Random(SEED);
    const rowWeight = 10_000;
    let called = 0;
    for (const { name, params, kind } of streamFunctions()) {
      const group = kind === 'aggregate' ? ' GROUP BY COUNTWINDOW(2)' : '';
      const compile = (args: string) =>
        compileStreamRule(`SELECT ${name}(${args.replaceAll("'", '"')}) AS r FROM demo${group}`, {
          bounds: { rowWeight }
        });
      const rule = await compiled(random, countOf(random, params), compile);
      if (rule === undefined) continue;
      const rows = Array.from({ length: 12 }, () => ({ stream: 'demo', values: rowOf(random, 9_000) }));
      const { emissions } = rule.run(rows, { until: 0 });
      called += emissions.length === 0 ? 0 : 1;
      for (const row of emissions.flat())
        assert.ok(!isHeavier(row, rowWeight + SLACK), `${name}: ${JSON.stringify(row).length}; ${shownSeed(SEED)}`);
    }
    assert.ok(called > streamFunctions().length / 2, `${called}`);
  });

  it('keeps results of rules over events within 4 MiB as JSON, or 16 MiB for strings, for any arguments, or fails', async () => {
    const random = new Random(SEED);
    let called = 0;
    for (const { name, params } of ruleFunctions()) {
      const compile = (args: string) =>
        compileRule(`SELECT ${name}(${args.replaceAll(/\b([abcd])\b(?!')/g, 'payload.$1')}) as r FROM "t"`);
      const rule = await compiled(random, countOf(random, params), compile);
      if (rule === undefined) continue;
      for (let at = 0; at < TRIES; at++) {
        const event = { topic: 't', payload: rowOf(random, random.once(2) ? 2_500_000 : 100) };
        try {
          const { outputs } = rule.run(event);
          called += at === TRIES - 1 ? 1 : 0;
          const { r } = outputs[0] as { readonly r: unknown };
          const most = typeof r === 'string' ? MAX_STRING : MAX_WEIGHT;
          assert.ok(!isHeavier(outputs[0], most + SLACK), `${name} is heavier; ${shownSeed(SEED)}`);
        } catch (error) {
          if ((error as { code?: string }).code !== 'SQL_FAILED') throw error;
        }
      }
    }
    assert.ok(called > ruleFunctions().length / 4, `${called}`);
  });
});
