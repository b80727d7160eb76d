import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRule } from '../../lib/rules/index.ts';
import { isHeavier } from '../../lib/sql/weight.ts';
import { compileStreamRule } from '../../lib/streams/index.ts';

/** Each value contains the previous one twice: the last one would have 2^40 elements. */
const names = Array.from({ length: 40 }, (_, index) => `v${index}`);

describe('the weight of rows', () => {
  it('approximates the bytes of the JSON, and stops at the limit even for values that share parts', () => {
    let value: unknown = 'x';
    for (let i = 0; i < 60; i++) value = [value, value];
    assert.equal(isHeavier(value, 4_194_304), true);
    for (const one of ['x'.repeat(100), { a: 'x'.repeat(90) }, new Uint8Array(90)]) {
      assert.equal(isHeavier(one, 200), false);
      assert.equal(isHeavier(one, 50), true);
    }
  });

  for (const call of ['array_create(V, V)', 'object_construct("a", V, "b", V)'])
    it(`limits the result of ${call} in stream rules with an error that names the function`, async () => {
      const fields = names.slice(1).map((name, index) => `${call.replaceAll('V', names[index])} AS ${name}`);
      const rule = await compileStreamRule(`SELECT x AS v0, ${fields.join(', ')} FROM d`);
      const { errors, emissions } = rule.run([{ stream: 'd', values: { x: 'text' }, at: 1 }]);
      assert.deepEqual(emissions, []);
      assert.equal(errors.length, 1);
      assert.match(errors[0], /the result of (array_create|object_construct)\(\) is larger than 4194304 bytes as JSON/);
    });

  it('applies the limit rowWeight to functions and rows', async () => {
    const rule = await compileStreamRule('SELECT concat(x, x) AS y, z FROM d', { bounds: { rowWeight: 1000 } });
    const run = (values: Record<string, unknown>) => rule.run([{ stream: 'd', values, at: 1 }]);
    assert.equal(run({ x: 'x'.repeat(400), z: [1] }).errors.length, 0);
    assert.match(run({ x: 'x'.repeat(600) }).errors[0], /the result of concat\(\) is larger than 1000 bytes/);
    assert.match(
      run({ x: 'x'.repeat(450), z: ['x'.repeat(450)] }).errors[0],
      /a row of the result is larger than 1000 bytes/
    );
  });

  it('limits all rows that unnest() creates from one row, including its other columns', async () => {
    // walking the object again for each of these rows would take minutes
    const large = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`key ${n}`, { n }]));
    const rule = await compileStreamRule('SELECT unnest(list) AS x, large FROM d');
    const run = (length: number) => rule.run([{ stream: 'd', values: { list: Array(length).fill(1), large }, at: 1 }]);
    assert.equal(run(20).emissions[0].length, 20);
    const { errors, emissions } = run(9000);
    assert.deepEqual(emissions, []);
    assert.match(errors[0], /the result of unnest\(\) for a row is larger than 67108864 bytes as JSON/);
  });

  it('limits all results of functions for one row together, separately for each row', async () => {
    const calls = (count: number) =>
      Array.from({ length: count }, (_, at) => `length(rpad(x, 900)) AS v${at}, cardinality(array_create(x, ${at}))`);
    const run = async (count: number) => {
      const sql = `SELECT ${calls(count).join(', ')} FROM d`;
      const rule = await compileStreamRule(sql, { bounds: { rowWeight: 2_000 } });
      const row = { stream: 'd', values: { x: 'x'.repeat(1_000) } };
      return rule.run([row, row, row]);
    };
    const few = await run(10);
    assert.deepEqual([few.errors, few.emissions.length], [[], 3]);
    const { errors, emissions } = await run(12);
    assert.deepEqual(emissions, []);
    assert.equal(errors.length, 3);
    assert.match(errors[0], /the result of all functions for the row is larger than 32000 bytes as JSON/);
  });

  it('counts lists and structs that functions print, even if the results are short', async () => {
    const rule = await compileStreamRule(
      `SELECT ${Array.from({ length: 30 }, (_, at) => `numbytes(o) AS v${at}`).join(', ')} FROM d`,
      { bounds: { rowWeight: 10_000 } }
    );
    const run = (keys: number) => {
      const o = Object.fromEntries(Array.from({ length: keys }, (_, n) => [`key${n}`, 1]));
      return rule.run([1, 2, 3].map((at) => ({ stream: 'd', values: { o }, at })));
    };
    assert.deepEqual([run(10).errors, run(10).emissions.length], [[], 3]);
    const { errors, emissions } = run(100);
    assert.deepEqual([errors.length, emissions], [3, []]);
    assert.match(errors[0], /the result of all functions for the row is larger than 160000 bytes/);
  });

  it('limits results of functions and nested aliases in rules over events', async () => {
    const event = { topic: 'a', payload: '{"x":"text"}' };
    const doubled = names
      .slice(1)
      .map((name, index) => `map_put('b', ${names[index]}, map_put('a', ${names[index]}, map_new())) as ${name}`);
    const called = await compileRule(`SELECT payload.x as v0, ${doubled.join(', ')} FROM "a"`);
    assert.throws(() => called.run(event), /the result of map_put\(\) is larger than 4194304 bytes as JSON/);
    const placed = names
      .slice(1)
      .flatMap((name, index) => [`${names[index]} as ${name}.a`, `${names[index]} as ${name}.b`]);
    const aliased = await compileRule(`SELECT payload.x as v0, ${placed.join(', ')} FROM "a"`);
    assert.throws(() => aliased.run(event), /an output is larger than 4194304 bytes as JSON/);
  });
});
