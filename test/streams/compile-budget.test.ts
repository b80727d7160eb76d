import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from '../../lib/index.ts';
import { compileRule } from '../../lib/rules/index.ts';
import { checkedSize } from '../../lib/sql/patterns.ts';
import type { Expression, Path } from '../../lib/sql/tree.ts';
import type { ScalarFunction } from '../../lib/streams/function.ts';
import { streamFunctions } from '../../lib/streams/functions/all.ts';
import { compileStreamRule } from '../../lib/streams/index.ts';
import { bind } from '../../lib/streams/plan/bind.ts';
import { parseStreamStatement } from '../../lib/streams/statement.ts';

/** A pure function that creates a long array, and the number of its calls. */
function counted(): { readonly function: ScalarFunction; calls: number } {
  const counter = {
    calls: 0,
    function: {
      ...{ name: 'many', family: 'own', kind: 'scalar', params: ['bigint'], about: 'Many elements.', isPure: true },
      run: (first: bigint) => {
        counter.calls++;
        return Array.from({ length: 10_000 }, (_, at) => Number(first) + at);
      }
    } as ScalarFunction
  };
  return counter;
}

function columns(count: number, text: (at: number) => string): string {
  return Array.from({ length: count }, (_, at) => text(at)).join(', ');
}

/** Count the visits of the innermost column while nested calls are bound. */
function visits(call: string, levels: number): number {
  const select = parseStreamStatement(`SELECT ${call.repeat(levels)}x${')'.repeat(levels)} AS y FROM d`);
  const [field] = select.fields;
  let node = (field as { readonly expression: Expression }).expression;
  while (node.type === 'call') [node] = node.args;
  let count = 0;
  const { type } = node as Path;
  Object.defineProperty(node, 'type', {
    enumerable: true,
    get: () => {
      count++;
      return type;
    }
  });
  const catalogue = {
    get: (name: string) => ({ ...{ kind: 'stream' as const, name, options: {}, sql: '' }, columns: undefined })
  };
  const functions = new Map(streamFunctions().map((row) => [row.name, row]));
  bind(select, { text: '', catalogue, functions });
  return count;
}

describe('The compilation of a statement', () => {
  it('evaluates constant calls up to a budget, each of them once', async () => {
    const many = counted();
    const few = await compileStreamRule('SELECT array_max(many(1)) AS m FROM d', { functions: [many.function] });
    assert.equal(many.calls, 1);
    for (let run = 0; run < 3; run++)
      assert.deepEqual(few.run([{ stream: 'd', values: {} }]).emissions, [[{ m: 10_000 }]]);
    assert.equal(many.calls, 1);
  });

  it('leaves constant calls beyond the budget to the rows, with the same results', async () => {
    const many = counted();
    const sql = `SELECT ${columns(500, (at) => `array_max(many(${at})) AS m${at}`)} FROM d`;
    const rule = await compileStreamRule(sql, { functions: [many.function] });
    assert.ok(many.calls > 1 && many.calls < 50, `${many.calls} calls`);
    const before = many.calls;
    const { emissions, errors } = rule.run([{ stream: 'd', values: {} }]);
    assert.deepEqual(errors, []);
    assert.equal(emissions[0][0].m499, 499 + 9_999);
    assert.ok(many.calls - before > 450, `${many.calls - before} calls`);
  });

  it('takes operators with constant operands from the same budget', async () => {
    const many = counted();
    const sql = `SELECT ${columns(500, (at) => `1 IN many(${at}) AS m${at}`)} FROM d`;
    await compileStreamRule(sql, { functions: [many.function] });
    assert.ok(many.calls < 50, `${many.calls} calls`);
  });

  it('applies the same limit when a rule is validated, created and explained', async () => {
    await using broker = createBroker();
    await broker.start();
    const many = counted();
    await broker.streams.createFunction(many.function);
    await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="demo")');
    const sql = `SELECT ${columns(500, (at) => `array_max(many(${at})) AS m${at}`)} FROM demo`;
    await broker.streams.rules.validate({ sql, actions: [{ nop: {} }] });
    const once = many.calls;
    assert.ok(once < 50, `${once} calls`);
    await broker.streams.rules.create({ id: 'r', sql, actions: [{ nop: {} }] });
    await broker.streams.rules.explain('r');
    assert.ok(many.calls <= 4 * once, `${many.calls} calls`);
  });

  for (const call of ['lag(', 'latest('])
    it(`visits the arguments of many nested ${call}...) as often as those of few`, () => {
      assert.equal(visits(call, 300), visits(call, 3));
    });

  it('checks regular expressions up to a budget, and lets those beyond it fail in the rows', async () => {
    const large = (at: number) => `regexp_matches(x, "(a{30}){20}${at}")`;
    const sql = (others: string) => `SELECT ${others} FROM d`;
    await assert.rejects(compileStreamRule(sql('regexp_matches(x, "(")')), /the regular expression is invalid/);
    const rule = await compileStreamRule(sql(`${columns(100, large)}, regexp_matches(x, "(")`));
    assert.match(rule.run([{ stream: 'd', values: { x: 'a' } }]).errors[0], /the regular expression is invalid/);

    const event = (others: string) => `SELECT ${others} FROM "a"`;
    await assert.rejects(compileRule(event("regex_match(topic, '(') as x")), /the regular expression is invalid/);
    const of = (at: number) => `regex_match(topic, '(a{30}){20}${at}') as x${at}`;
    const other = await compileRule(event(`${columns(100, of)}, regex_match(topic, '(') as x`));
    assert.throws(() => other.run({ topic: 'a' }), /the regular expression is invalid/);
  });
});

describe('The size of a regular expression', () => {
  for (const [text, size] of [
    ['', 1],
    ['abc', 3],
    ['a{3}', 3],
    ['a{3,5}b', 6],
    ['(ab?){20}', 60],
    ['((a{10}){10}){10}', 1000],
    ['[a-z(){}]{4}', 4],
    ['[]a]{2}[^]b]{2}', 4],
    ['[[:alpha:]]{3}', 3],
    ['\\({3}\\[', 4],
    ['a{b}', 4],
    ['(a{2}', 2]
  ] as const)
    it(`counts the parts of ${text || 'an empty one'} as ${size}, with repetitions written out`, () => {
      assert.equal(checkedSize(text), size);
    });

  it('limits regular expressions, because a short one can have millions of parts', async () => {
    const text = '(a{500})'.repeat(1000);
    await assert.rejects(
      compileRule(`SELECT regex_match(topic, '${text}') as x FROM "a"`),
      /the regular expression has more than 50000 parts, its repetitions included/
    );
  });
});
