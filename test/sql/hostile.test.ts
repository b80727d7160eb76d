import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileStatement } from '../../lib/sql/compile-statement.ts';
import { decodeJson, encodeJson, stringOf } from '../../lib/sql/json.ts';
import { parseStatement } from '../../lib/sql/statement.ts';
import { Float, type Value } from '../../lib/sql/values.ts';
import { PlainRow } from './plain-row.ts';
import { DIALECT, evaluate, FUNCTIONS, tools } from './support.ts';

const DEEP = '['.repeat(100_000) + ']'.repeat(100_000);

/** The value of an expression. */
function resultOf(expression: string, event: Readonly<Record<string, unknown>>): Value {
  const [output] = evaluate(`SELECT ${expression} AS v FROM "t"`, event) as readonly { readonly v: Value }[];
  return output.v;
}

describe('A statement with hostile values', () => {
  for (const operator of ['=', '<'])
    it(`fails if ${operator} compares values with more than 1000 levels`, () => {
      const event = { a: JSON.parse(DEEP), b: JSON.parse(DEEP) };
      assert.throws(() => resultOf(`a ${operator} b`, event), {
        message: /^SELECT: the value has more than 1000 levels$/
      });
    });

  it('fails if IN compares values with more than 1000 levels', () => {
    const event = { a: JSON.parse(DEEP), b: JSON.parse(DEEP) };
    assert.throws(() => resultOf('a IN (b)', event), { message: /more than 1000 levels/ });
  });

  it('decodes a text once instead of once for each element of FOREACH', () => {
    const payload = JSON.stringify({ list: [1, 2], text: '{"inner":{"a":1}}' });
    const sql = 'FOREACH payload AS p, p.list AS e DO p.list AS list, p.text.inner AS inner FROM "t"';
    const [first, second] = evaluate(sql, { payload }) as readonly { list: object; inner: object }[];
    assert.deepEqual(first, { list: [1, 2], inner: { a: 1 } });
    assert.equal(first.list, second.list);
    assert.equal(first.inner, second.inner);
  });

  for (const field of ['pad(item, 1000000)', 'md5(payload.text)', 'payload.text + item', 'json_encode(payload)'])
    it(`fails if ${field} exceeds the limit for all elements of a list together`, () => {
      const payload = JSON.stringify({ list: Array(9000).fill('x'), text: 'x'.repeat(100_000) });
      assert.throws(() => evaluate(`FOREACH payload.list DO ${field} AS v FROM "t"`, { payload }), {
        message: 'DO: the statement reads and makes more than 67108864 characters for one event'
      });
      assert.equal(evaluate(`FOREACH payload.list DO item INCASE item = 'x' FROM "t"`, { payload })?.length, 9000);
      const few = JSON.stringify({ list: Array(20).fill('x'), text: 'x'.repeat(1_000_000) });
      assert.equal(evaluate(`FOREACH payload.list DO ${field} AS v FROM "t"`, { payload: few })?.length, 20);
    });

  for (const call of ['strlen(a)', 'reverse(a)', 'substr(a, 1)', 'pad(a, 1)'])
    it(`counts characters of ${call} that are found as grapheme clusters 100 times, for they take microseconds each`, () => {
      const most = 671_000; // 2 s
      assert.throws(() => resultOf(call, { a: '\u00e9'.repeat(most + 100) }), {
        message: 'SELECT: the statement reads and makes more than 67108864 characters for one event'
      });
      assert.notEqual(resultOf(call, { a: '\u00e9'.repeat(1_000) }), undefined);
      assert.notEqual(resultOf(call, { a: 'x'.repeat(most + 100) }), undefined);
    });

  // each output contains a large object of the payload: walking it for each of them would take minutes
  for (const field of ['payload.large', 'coalesce(payload.large, 1)'])
    it(`fails if ${field} makes the outputs of FOREACH together too large`, () => {
      const large = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`key ${n}`, { n }]));
      const list = (length: number) => JSON.stringify({ list: Array(length).fill('x'), large });
      const outputs = (payload: string) => evaluate(`FOREACH payload.list DO ${field} AS v FROM "t"`, { payload });
      assert.throws(() => outputs(list(9000)), {
        message: 'DO: the outputs of the event together have more than 67108864 bytes as JSON'
      });
      assert.equal(outputs(list(20))?.length, 20);
    });

  it('weighs an object again for each of its occurrences in an output', () => {
    const payload = JSON.stringify({ large: { text: 'x'.repeat(1_000_000) } });
    const columns = (count: number) => Array.from({ length: count }, (_, n) => `payload.large AS v${n}`).join();
    assert.equal(evaluate(`SELECT ${columns(4)} FROM "t"`, { payload })?.length, 1);
    assert.throws(() => evaluate(`SELECT ${columns(5)} FROM "t"`, { payload }), {
      message: 'SELECT: an output is larger than 4194304 bytes as JSON'
    });
  });

  it('accepts infinite numbers, which functions of the app may return', () => {
    for (const name of ['floor', 'ceil', 'round', 'int'])
      assert.equal(resultOf(`${name}(a)`, { a: Infinity }), Infinity);
    assert.equal(stringOf(-Infinity), '-Infinity');
    assert.equal(encodeJson([new Float(Number.NaN), Infinity]), '[null,null]');
  });

  it('decodes the JSON text of an argument once instead of once for each element of FOREACH', () => {
    const payload = JSON.stringify({ list: [1, 2], 'a-b': { c: 1 } });
    for (const call of ["map_get('a-b', payload)", "mget('a-b', payload)"]) {
      const outputs = evaluate(`FOREACH payload.list DO ${call} AS v FROM "t"`, { payload });
      const [first, second] = outputs as readonly { v: object }[];
      assert.deepEqual(first.v, { c: 1 });
      assert.equal(first.v, second.v);
    }
  });

  it('fails if contains() could read too many elements for all elements of a list together', () => {
    const payload = JSON.stringify({ list: Array(9000).fill(1) });
    assert.throws(
      () => evaluate('FOREACH payload.list DO item INCASE contains(item, payload.list) FROM "t"', { payload }),
      {
        message: 'INCASE: the statement reads and makes more than 67108864 characters for one event'
      }
    );
  });

  it('creates a new range for each event, because actions of the app may change their output', () => {
    const statement = parseStatement('SELECT [1..3] AS v FROM "t"', DIALECT);
    const { run } = compileStatement(statement, { text: '', dialect: DIALECT, functions: FUNCTIONS, tools: tools() });
    const [first] = run(new PlainRow({}, decodeJson)) as [{ v: number[] }];
    first.v.reverse();
    assert.deepEqual(run(new PlainRow({}, decodeJson)), [{ v: [1, 2, 3] }]);
  });

  it('splits long texts into the same characters as short ones', () => {
    const parts = ['é', 'e\u0301', '👍🏽', '👨‍👩‍👧', '🇩🇪', '\r\n', 'क्षि', 'a\u{e0100}', 'z'];
    for (let shift = 0; shift < 20; shift++) {
      const text = 'ж'.repeat(240 + shift) + parts.join('').repeat(40);
      assert.equal(resultOf('strlen(a)', { a: text }), 240 + shift + parts.length * 40);
      assert.equal(resultOf('reverse(reverse(a))', { a: text }), text);
    }
    const long = `e${'\u0301'.repeat(5000)}`;
    assert.equal(resultOf('strlen(a)', { a: `ж${long}ж${long}` }), 4);
  });

  it('processes a text in time proportional to its length', () => {
    assert.equal(resultOf('strlen(a)', { a: 'é'.repeat(300_000) }), 300_000);
    assert.equal(resultOf('strlen(base64_decode(a))', { a: 'YWJj'.repeat(4_000_000) }), 12_000_000);
  });

  it('leaves a string unchanged when it is padded with an empty text', () => {
    assert.equal(resultOf(`pad('a', 10, 'both', '')`, {}), 'a');
    assert.equal(resultOf(`pad('a', ${'9'.repeat(400)}, 'both', '')`, {}), 'a');
  });
});
