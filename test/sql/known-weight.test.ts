import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRule, ruleFunctions } from '../../lib/rules/index.ts';
import { compileStatement } from '../../lib/sql/compile-statement.ts';
import { decodeJson } from '../../lib/sql/json.ts';
import { TEXT_WEIGHT } from '../../lib/sql/row.ts';
import { parseStatement } from '../../lib/sql/statement.ts';
import type { Value } from '../../lib/sql/values.ts';
import { isHeavier, MAX_WEIGHT, weightOf } from '../../lib/sql/weight.ts';
import { plain, plainRow } from '../../lib/streams/values/values.ts';
import { Random } from '../fuzz/random.ts';
import { PlainRow } from './plain-row.ts';
import { DIALECT, FUNCTIONS, tools } from './support.ts';

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
console.log(`# what is known to be light: SEED=${SEED}`);

/** A row whose weight is known. */
class KnownRow extends PlainRow {
  readonly mostWeight: number = 100;
}

function compiled(sql: string) {
  const context = { text: sql, dialect: DIALECT, functions: FUNCTIONS, tools: tools() };
  return compileStatement(parseStatement(sql, DIALECT), context);
}

/** An object that counts how often it is walked. */
function counting(): { readonly object: Record<string, Value>; walks: number } {
  const counter = { walks: 0, object: {} };
  Object.defineProperty(counter.object, 'x', { enumerable: true, get: () => ++counter.walks });
  return counter;
}

describe('Weights that are known to be light', () => {
  for (const sql of [
    'SELECT o AS a FROM "t"',
    'SELECT * FROM "t"',
    'SELECT o AS a.b FROM "t"',
    `SELECT map_get('o', p) AS a FROM "t"`,
    'SELECT [o, o] AS a FROM "t"',
    `SELECT nth(1, l) AS a, sublist(1, l) AS b, mput('k', o, p) AS c FROM "t"`,
    'FOREACH l AS e DO e FROM "t"'
  ])
    it(`leaves a light output unwalked: ${sql}`, () => {
      const counter = counting();
      const { object: o } = counter;
      const outputs = compiled(sql).run(new KnownRow({ o, l: [o], p: { o } }, decodeJson));
      assert.equal(outputs?.length, 1);
      assert.equal(counter.walks, 0);
    });

  it('walks an output whose weight is unknown or could be too large', () => {
    const of = (mostWeight: number | undefined) => {
      const counter = counting();
      const row = Object.assign(new KnownRow({ o: counter.object }, decodeJson), { mostWeight });
      compiled('SELECT o AS a FROM "t"').run(row);
      return counter.walks > 0;
    };
    assert.deepEqual([of(undefined), of(MAX_WEIGHT), of(1000)], [true, true, false]);
  });

  it('bounds the weight of decoded values by their text, and walks several of them if they could be too heavy', async () => {
    const payload = JSON.stringify({ list: Array(100_000).fill(1) });
    const of = (count: number) =>
      compileRule(`SELECT ${Array.from({ length: count }, (_, at) => `payload.list AS a${at}`).join(', ')} FROM "t"`);
    assert.equal((await of(4)).run({ topic: 't', payload }).outputs.length, 1);
    const many = await of(5);
    assert.throws(() => many.run({ topic: 't', payload }), /an output is larger than/);
  });

  it('derives the weight of results from the arguments for the functions that declare it', () => {
    const random = new Random(SEED);
    let lists = 0;
    for (const { name, params, weighs } of FUNCTIONS.values()) {
      if (weighs === undefined) continue;
      const row = FUNCTIONS.get(name);
      for (let round = 0; round < 200; round++) {
        const args = params.map((param) => anyArgument(random, param.replace(/\W+$/, '')));
        if (row?.column !== undefined) args.unshift(anyArgument(random, 'json'));
        let result: Value;
        try {
          result = (row?.make?.(tools()) ?? row?.run)?.(...args);
        } catch {
          continue; // these arguments are refused
        }
        if (typeof result !== 'object' || result === null) continue;
        lists++;
        const weights = args.map(fullWeight);
        const most = weighs === 'part' ? Math.max(...weights) : weights.reduce((sum, weight) => sum + weight, 0);
        assert.ok(fullWeight(result) <= most + 64, `${name}(${JSON.stringify(args)}); SEED=${SEED}`);
      }
    }
    assert.ok(lists > 200, `${lists}`);
    assert.ok(ruleFunctions().some(({ name }) => FUNCTIONS.get(name)?.weighs === 'sum'));
  });

  it('applies the same limit to rows of streams, which are weighed while they are copied', () => {
    const random = new Random(SEED);
    for (let round = 0; round < 300; round++) {
      const value = anyArgument(random, 'json') as never;
      const weight = weightOf(value, 1e9);
      assert.deepEqual(plainRow(value, weight), plain(value), `SEED=${SEED}`);
      assert.throws(() => plainRow(value, weight - 1), /a row of the result is larger than/, `SEED=${SEED}`);
      assert.equal(isHeavier(value, weight - 1), true);
    }
  });
});

/** The weight of a value whose strings count more, because JSON may be decoded from them. */
function fullWeight(value: Value): number {
  if (typeof value === 'string') return TEXT_WEIGHT * value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  if (Array.isArray(value)) return value.reduce((sum: number, each: Value) => sum + 1 + fullWeight(each), 2);
  return Object.entries(value).reduce((sum, [key, each]) => sum + key.length + 4 + fullWeight(each as Value), 2);
}

function anyArgument(random: Random, type: string): Value {
  const text = random.pick(['', 'a', 'a.b', '.'.repeat(random.below(300)), 'k', ', ', 'a,b,,c', 'x,'.repeat(100)]);
  const list = Array.from({ length: random.below(40) }, () => random.pick<Value>([1, 'a', null, true, [], {}, [[]]]));
  const object = { a: { b: list, k: text }, k: random.pick<Value>([1, list, text]) };
  const json = JSON.stringify(random.pick<Value>([list, object, [[[]]], Array(50).fill(1), text]));
  if (type === 'string') return random.pick([text, text, json]);
  if (type === 'integer') return random.below(5);
  if (type === 'list') return list;
  if (type === 'object') return object;
  const decoded = decodeJson(random.pick(['[1.0,1e1,1e0]', json, `[${'1e1,'.repeat(50)}1.0]`]));
  return random.pick<Value>([list, object, decoded, ...(type === 'json' ? [] : [json, text, 1])]);
}
