import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodeJson, stringOf } from '../../lib/sql/json.ts';
import { Float, type Value } from '../../lib/sql/values.ts';
import { evaluate } from './support.ts';

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

  it('decodes a text once, and not for each element of FOREACH', () => {
    const payload = JSON.stringify({ list: [1, 2], text: '{"inner":{"a":1}}' });
    const sql = 'FOREACH payload AS p, p.list AS e DO p.list AS list, p.text.inner AS inner FROM "t"';
    const [first, second] = evaluate(sql, { payload }) as readonly { list: object; inner: object }[];
    assert.deepEqual(first, { list: [1, 2], inner: { a: 1 } });
    assert.equal(first.list, second.list);
    assert.equal(first.inner, second.inner);
  });

  for (const field of ['pad(item, 1000000)', 'md5(payload.text)', 'payload.text + item', 'json_encode(payload)'])
    it(`fails if ${field} takes too much for all elements of a list together`, () => {
      const payload = JSON.stringify({ list: Array(9000).fill('x'), text: 'x'.repeat(100_000) });
      assert.throws(() => evaluate(`FOREACH payload.list DO ${field} AS v FROM "t"`, { payload }), {
        message: 'DO: the functions read and make more than 67108864 characters for one event'
      });
      assert.equal(evaluate(`FOREACH payload.list DO item INCASE item = 'x' FROM "t"`, { payload })?.length, 9000);
      const few = JSON.stringify({ list: Array(20).fill('x'), text: 'x'.repeat(1_000_000) });
      assert.equal(evaluate(`FOREACH payload.list DO ${field} AS v FROM "t"`, { payload: few })?.length, 20);
    });

  it('accepts infinite numbers, as functions of the app may give', () => {
    for (const name of ['floor', 'ceil', 'round', 'int'])
      assert.equal(resultOf(`${name}(a)`, { a: Infinity }), Infinity);
    assert.equal(stringOf(-Infinity), '-Infinity');
    assert.equal(encodeJson([new Float(Number.NaN), Infinity]), '[null,null]');
  });

  it('pads with an empty text to any length without a change', () => {
    assert.equal(resultOf(`pad('a', 10, 'both', '')`, {}), 'a');
    assert.equal(resultOf(`pad('a', ${'9'.repeat(400)}, 'both', '')`, {}), 'a');
  });
});
