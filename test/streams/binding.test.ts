import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SqlError } from '../../lib/sql/sql-error.ts';
import type { Join, JoinKind, StreamSelect, Window } from '../../lib/sql/tree.ts';
import type { BoundExpression, BoundSelect } from '../../lib/streams/expressions/bound.ts';
import { makeProject } from '../../lib/streams/operators/project.ts';
import { emissionSlots, freshSlots } from '../../lib/streams/plan/slots.ts';
import type { StreamDefinition } from '../../lib/streams/types.ts';
import { type Frame, GroupRow, JoinedRow, StreamRow, type Tuple } from '../../lib/streams/values/tuple.ts';
import type { StreamValue, StreamValueObject } from '../../lib/streams/values/values.ts';
import { bound, definition, expression, select, toolsOf } from './expression-support.ts';

const PLACE = { start: 0, end: 0 };
const WINDOW: Window = { kind: 'tumbling', unit: 'ss', lengths: [10], conditions: [], partitionBy: [], ...PLACE };
const OPTIONS = { sendNilField: false, sendMetaToSink: false };

function join(kind: JoinKind, name: string, on?: string, alias?: string): Join {
  const source = { name, ...(alias === undefined ? {} : { alias }), ...PLACE };
  return { kind, source, ...(on === undefined ? {} : { on: expression(on) }), ...PLACE };
}

function where(text: string): Partial<StreamSelect> {
  return { where: expression(text) };
}

/** The error of a statement that cannot be bound. */
function faultOf(statement: StreamSelect, streams?: readonly StreamDefinition[]): string {
  try {
    bound(statement, streams);
  } catch (error) {
    if (error instanceof SqlError) return error.fault;
    return (error as Error).message;
  }
  return 'none';
}

function rowOf(statement: BoundSelect, values: StreamValueObject, metadata?: StreamValueObject): StreamRow {
  return new StreamRow(values, 0, metadata, freshSlots(statement.slots.count));
}

function resultOf(made: BoundExpression | undefined, tuple: Tuple, tools = toolsOf()): StreamValue {
  return made?.make(tools)(tuple);
}

/** The output of a statement for a row. */
function project(
  fields: readonly string[],
  values: StreamValueObject,
  options: Partial<typeof OPTIONS> = {}
): StreamValueObject[] {
  const statement = bound(select(fields));
  const outputs: StreamValueObject[] = [];
  makeProject(statement, toolsOf(), { ...OPTIONS, ...options })(rowOf(statement, values, { topic: 't' }), outputs);
  return outputs;
}

const LEFT = definition('demo', ['id bigint', 'Size float', 'both string']);
const RIGHT = definition('other', ['key bigint', 'both string']);

describe('names of columns', () => {
  it('spells columns as in the schema, and collects them for each source', () => {
    const { sources } = bound(
      select(['ID', 'other.KEY'], { joins: [join('inner', 'other', 'size > 1')], window: WINDOW }),
      [LEFT, RIGHT]
    );
    assert.deepEqual(
      sources.map(({ needed }) => needed),
      [new Set(['id', 'Size']), new Set(['key'])]
    );
  });

  it('refuses columns that no schema has, and suggests the nearest one', () => {
    assert.equal(faultOf(select(['idd']), [LEFT]), 'unknown field .idd');
    assert.equal(faultOf(select(['demo.nope']), [LEFT]), 'unknown field demo.nope');
    assert.throws(() => bound(select(['idd']), [LEFT]), /did you mean id\?/);
  });

  it('requires the source of a column that two schemas have', () => {
    const joins = [join('inner', 'other')];
    assert.equal(faultOf(select(['both'], { joins, window: WINDOW }), [LEFT, RIGHT]), 'ambiguous field both');
    assert.equal(faultOf(select(['other.both'], { joins, window: WINDOW }), [LEFT, RIGHT]), 'none');
  });

  it('reads columns of streams without a schema from the first source that has them', () => {
    const statement = bound(select(['a', 'other.b'], { joins: [join('inner', 'other')], window: WINDOW }), [
      definition('demo'),
      definition('other')
    ]);
    const row = new JoinedRow([new StreamRow({ b: 1 }, 0), new StreamRow({ a: 2, b: 3 }, 0)], [0, 1]);
    const outputs: StreamValueObject[] = [];
    makeProject(statement, toolsOf(), OPTIONS)(row, outputs);
    assert.deepEqual(outputs, [{ a: 2, b: 3 }]);
    assert.deepEqual(statement.sources[0].needed, new Set(['a']));
    assert.deepEqual(statement.sources[1].needed, new Set(['a', 'b']));
  });

  it('needs all columns for a star and for collect(*), but not for count(*)', () => {
    assert.equal(bound(select(['*'])).sources[0].needed, 'all');
    assert.equal(bound(select(['collect(*)'])).sources[0].needed, 'all');
    assert.deepEqual(bound(select(['count(*)'])).sources[0].needed, new Set());
  });

  it('reads names with a dot as columns of a source, or keys of a struct', () => {
    assert.deepEqual(project(['demo.a', 'demo.a.b AS x', 'c.d AS y'], { a: { b: 1 }, c: { d: 2 } }), [
      { a: { b: 1 }, x: 1, y: 2 }
    ]);
  });

  it('collects the metadata that is read', () => {
    const { sources } = bound(select(['meta(topic)', 'mqtt(demo.qos)']));
    assert.deepEqual(sources[0].neededMeta, new Set(['topic', 'qos']));
    assert.equal(bound(select(['meta(*)'])).sources[0].neededMeta, 'all');
  });
});

describe('sources', () => {
  const table = definition('tab', undefined, { kind: 'table' });
  const lookup = definition('look', undefined, { kind: 'table', options: { KIND: 'LOOKUP' } });
  const streams = [definition('demo'), definition('other'), table, lookup];

  it('requires sources to exist and to have different names', () => {
    assert.equal(
      faultOf(select(['a'], { from: { name: 'nope', ...PLACE } })),
      'fail to get stream nope, please check if stream is created'
    );
    assert.equal(faultOf(select(['a'], { joins: [join('inner', 'demo')], window: WINDOW })), 'duplicate source demo');
    assert.equal(
      faultOf(select(['x.a'], { joins: [join('inner', 'demo', 'demo.a = x.a', 'x')], window: WINDOW })),
      'none'
    );
  });

  it('requires windows for joins of streams', () => {
    const joins = [join('inner', 'other', 'demo.a = other.a')];
    assert.equal(faultOf(select(['*'], { joins }), streams), 'need to run stream join in windows');
    assert.equal(faultOf(select(['*'], { joins, window: WINDOW }), streams), 'none');
  });

  it('accepts tables without a window, and refuses a window for a table alone', () => {
    assert.equal(faultOf(select(['*'], { joins: [join('inner', 'tab', 'demo.a = tab.a')] }), streams), 'none');
    const from = { name: 'tab', ...PLACE };
    assert.equal(faultOf(select(['*'], { from, window: WINDOW }), streams), 'cannot run window for TABLE sources');
  });

  it('joins lookup tables by an equality of a column', () => {
    const on = (text: string, kind: JoinKind = 'inner') =>
      faultOf(select(['*'], { joins: [join(kind, 'look', text)] }), streams);
    assert.equal(on('demo.a = look.id'), 'none');
    assert.equal(on('look.id = 5', 'left'), 'none');
    assert.equal(on('demo.a > look.id'), 'ON has no equality for a column of the lookup table look');
    assert.equal(on('demo.a = look.id', 'full'), 'the lookup table look can only have an INNER or a LEFT JOIN');
    assert.equal(
      faultOf(select(['*'], { from: { name: 'look', ...PLACE } }), streams),
      'the lookup table look can only be joined'
    );
  });

  it('joins lookup tables last, so other joins cannot depend on them', () => {
    const behind = (kind: JoinKind, text: string, lookupKind: JoinKind = 'inner', fields = ['*']) =>
      faultOf(
        select(fields, {
          joins: [join(lookupKind, 'look', 'demo.a = look.id'), join(kind, 'other', text)],
          window: WINDOW
        }),
        streams
      );
    const fault = 'ON of other reads the lookup table look, which is joined after all streams and scanned tables';
    assert.equal(behind('inner', 'look.b = other.b'), fault);
    assert.equal(behind('left', 'demo.b = other.b AND other.c + look.c > 1', 'left'), fault);
    assert.equal(behind('inner', 'x = other.b', 'inner', ['look.b + demo.b AS x']), fault);
    assert.equal(behind('inner', 'demo.b = other.b'), 'none');
    assert.equal(behind('inner', 'b = other.c AND meta(demo.topic) = "t"'), 'none');
    assert.equal(behind('left', 'demo.b = other.b', 'left'), 'none');
    assert.equal(behind('full', 'demo.b = other.b', 'left'), 'none');
    for (const kind of ['right', 'full'] as const)
      assert.equal(
        behind(kind, 'demo.b = other.b'),
        `the INNER JOIN of the lookup table look cannot precede a ${kind.toUpperCase()} JOIN`
      );
  });
});

describe('aliases', () => {
  it('lets an alias shadow a column in later clauses, but not in its own definition', () => {
    const statement = bound(select(['a + 1 AS a'], where('a > 5')));
    const [part] = statement.where;
    assert.equal(resultOf(part, rowOf(statement, { a: 4.5 })), true);
    assert.equal(resultOf(part, rowOf(statement, { a: 4 })), false);
    const qualified = bound(select(['a + 1 AS a'], where('demo.a > 5')));
    assert.equal(resultOf(qualified.where[0], rowOf(qualified, { a: 4.5 })), false);
  });

  it('lets all columns use an alias, regardless of their order', () => {
    assert.deepEqual(project(['a + 1 AS b', 'b + 1 AS c', 'c * c AS d'], { a: 1 }), [{ b: 2, c: 3, d: 9 }]);
    assert.deepEqual(project(['b + 1 AS c', 'a AS b'], { a: 1, b: 10 }), [{ c: 2, b: 1 }]);
    assert.deepEqual(project(['c + 1 AS d', 'b + 1 AS c', 'a + 1 AS b'], { a: 1 }), [{ d: 4, c: 3, b: 2 }]);
    assert.deepEqual(project(['a + 1 AS a', 'a + 1 AS b'], { a: 3 }), [{ a: 4, b: 5 }]);
  });

  it('resolves aliases that use each other to columns, so that columns can be exchanged', () => {
    assert.deepEqual(project(['a AS b', 'b AS a'], { a: 1, b: 2 }), [{ b: 1, a: 2 }]);
    assert.deepEqual(project(['a AS b', 'b AS c', 'c AS a'], { a: 1, b: 2, c: 3 }), [{ b: 1, c: 2, a: 3 }]);
    assert.deepEqual(project(['a AS b', 'b AS a', 'a + 1 AS c'], { a: 1, b: 2 }), [{ b: 1, a: 2, c: 3 }]);
  });

  it('resolves the alias of an aggregate to the column in clauses that do not allow aggregates', () => {
    const options = { where: expression('a > 1'), groupBy: [expression('a')] };
    const statement = bound(select(['sum(a) AS a', 'count(a) AS c', 'a + 1 AS d'], options));
    const row = rowOf(statement, { a: 5 });
    assert.deepEqual(
      statement.aggregates.map(({ args }) => resultOf(args[0], row)),
      [5, 5]
    );
    assert.equal(resultOf(statement.where[0], row), true);
    assert.equal(resultOf(statement.groupBy[0], row), 5);
    assert.equal(
      faultOf(select(['sum(a) AS s', 'count(s) AS c'])),
      'Not allowed to call aggregate functions in an aggregate function.'
    );
    assert.equal(
      faultOf(select(['sum(a) AS s'], where('s > 1'))),
      'Not allowed to call aggregate functions in WHERE clause.'
    );
  });

  it('computes an alias once if others use it', () => {
    const statement = bound(select(['chance() AS r', 'a + 1 AS b', 'a AS c'], where('r > 0.1 AND c = 1')));
    assert.deepEqual(statement.slots, { count: 1, ofEmission: [] });
    const tools = toolsOf();
    let calls = 0;
    const counting = { ...tools, random: () => 1 / ++calls };
    const row = rowOf(statement, { a: 1 });
    for (const part of statement.where) assert.equal(resultOf(part, row, counting), true);
    const outputs: StreamValueObject[] = [];
    makeProject(statement, counting, OPTIONS)(row, outputs);
    assert.deepEqual(outputs, [{ r: 1, b: 2, c: 1 }]);
    assert.equal(calls, 1);
  });

  it('computes aliases that depend on the emission again for each emission', () => {
    const statement = bound(
      select(['window_start() + 1 AS s', 'count(*) + 1 AS c'], {
        window: WINDOW,
        having: expression('c > 1 AND s > 0')
      })
    );
    assert.deepEqual(statement.slots.ofEmission, [0, 1]);
    const frame: Frame = { range: { start: 10, end: 20, trigger: 20 }, rowNumber: 1 };
    const tools = toolsOf(frame);
    const having = statement.having?.make(tools);
    const first = rowOf(statement, {});
    const group = new GroupRow(first, [5n], emissionSlots(statement.slots, first.slots));
    assert.equal(having?.(group), true);
    assert.deepEqual(group.slots, [11n, 6n]);
    assert.deepEqual(emissionSlots(statement.slots, group.slots), first.slots);
  });

  it('refuses a duplicate alias', () => {
    assert.equal(faultOf(select(['a AS x', 'b AS x'])), 'duplicate alias x');
    assert.equal(faultOf(select(['x + 1 AS y', 'a AS x', 'b AS x'])), 'duplicate alias x');
  });

  it('refuses aliases with too many levels', () => {
    const sum = Array.from({ length: 400 }, () => 'a').join(' + ');
    const fields = [`${sum} AS b0`, ...Array.from({ length: 5 }, (_, n) => `b${n} + ${sum} AS b${n + 1}`)];
    assert.equal(faultOf(select(fields)), 'the expression has more than 1000 levels, with its aliases');
    const chain = Array.from({ length: 5000 }, (_, n) => `b${n + 1} AS b${n}`);
    assert.equal(faultOf(select(chain)), 'the expression has more than 1000 levels, with its aliases');
  });

  it('binds aliases with many uses of each other without delay', () => {
    const fields = ['a + 1 AS b0', ...Array.from({ length: 40 }, (_, n) => `b${n} + b${n} AS b${n + 1}`)];
    assert.equal(project(fields, { a: 0 })[0].b40, 2 ** 40);
  });
});

describe('aggregate calls', () => {
  it('merges equal aggregate calls', () => {
    const { aggregates, isGrouped } = bound(select(['count(*)', 'SUM(a) AS s', 'sum(a) / count(*) AS m']));
    assert.deepEqual(
      aggregates.map(({ text }) => text),
      ['count(*)', 'SUM(a)']
    );
    assert.equal(isGrouped, true);
  });

  it('separates aggregate calls if a name means a column in one and an alias in the other', () => {
    const statement = bound(select(['sum(demo.a) AS x', 'a + 1 AS a', 'sum(a) AS y']));
    const row = rowOf(statement, { a: 1 });
    assert.deepEqual(
      statement.aggregates.map(({ args }) => resultOf(args[0], row)),
      [1, 2]
    );
  });

  it('passes 1 or all columns for a star to aggregate calls', () => {
    const { aggregates } = bound(select(['count(*)', 'collect(*)']));
    const row = new StreamRow({ a: 1 }, 0);
    assert.deepEqual(
      aggregates.map(({ args }) => resultOf(args[0], row)),
      [1n, { a: 1 }]
    );
  });

  it('refuses aggregate calls in clauses that filter or group rows', () => {
    const sentence = (clause: string) => `Not allowed to call aggregate functions in ${clause} clause.`;
    assert.equal(faultOf(select(['a'], where('count(*) > 1'))), sentence('WHERE'));
    assert.equal(faultOf(select(['count(*) AS c'], where('c > 1'))), sentence('WHERE'));
    assert.equal(faultOf(select(['a'], { groupBy: [expression('count(*)')] })), sentence('GROUP BY'));
  });

  it('requires an aggregate call among the arguments of functions in HAVING', () => {
    const having = (text: string) => faultOf(select(['count(*) AS c', 'a'], { having: expression(text) }));
    assert.equal(having('abs(a) > 1'), 'Not allowed to call none-aggregate functions in HAVING clause.');
    assert.equal(having('abs(count(*)) > 1'), 'none');
    assert.equal(having('abs(c) > 1 AND a = 1'), 'none');
    assert.equal(having('rule_id() = "r1"'), 'none');
  });

  it('reads the results of aggregate calls from groups', () => {
    const statement = bound(select(['a', 'sum(b) + 1 AS s']));
    const outputs: StreamValueObject[] = [];
    const first = new StreamRow({ a: 'x', b: 1 }, 0);
    makeProject(statement, toolsOf(), OPTIONS)(new GroupRow(first, [41]), outputs);
    assert.deepEqual(outputs, [{ a: 'x', s: 42 }]);
  });
});

describe('analytic calls', () => {
  it('assigns a slot to each analytic call, before the calls that use it', () => {
    const { analytics, slots } = bound(select(['lag(lag(a)) AS x', 'lag(a)', 'lag(a, 2)']));
    assert.deepEqual(
      analytics.map(({ text, slot }) => [text, slot]),
      [
        ['lag(a)', 0],
        ['lag(lag(a))', 1],
        ['lag(a, 2)', 2]
      ]
    );
    assert.deepEqual(slots, { count: 3, ofEmission: [] });
  });

  it('separates analytic calls with different OVER clauses', () => {
    const { analytics } = bound(select(['lag(a)', 'lag(a) OVER (PARTITION BY b WHEN c > 1) AS p']));
    assert.equal(analytics.length, 2);
    const [, partitioned] = analytics;
    assert.equal(partitioned.partitionBy[0].text, 'b');
    assert.equal(resultOf(partitioned.when, new StreamRow({ c: 2 }, 0)), true);
  });

  it('computes analytic calls of aggregates for groups', () => {
    const { analytics, slots } = bound(select(['lag(count(*)) AS p']));
    assert.equal(analytics[0].phase, 'groups');
    assert.deepEqual(slots.ofEmission, [0]);
  });

  it('allows analytic calls in WHERE, but not in ON', () => {
    assert.equal(bound(select(['a'], where('lag(a) > 1'))).where[0].movesTo, undefined);
    const joins = [join('inner', 'other', 'lag(demo.a) = other.a')];
    assert.equal(
      faultOf(select(['a'], { joins, window: WINDOW }), [definition('demo'), definition('other')]),
      'Not allowed to call analytic functions in ON clause.'
    );
  });

  it('computes analytic calls with several columns in the phase of results', () => {
    const statement = bound(select(['changed_cols("p_", true, a)']));
    assert.equal(statement.analytics[0].slot, 0);
    assert.deepEqual(statement.analytics[0].names, ['', '', 'a']);
    const row = new StreamRow({ a: 1 }, 0, {}, [{ p_a: 1 }]);
    const outputs: StreamValueObject[] = [];
    makeProject(statement, toolsOf(), OPTIONS)(row, outputs);
    assert.deepEqual(outputs, [{ p_a: 1 }]);
  });
});

describe('parts of conditions', () => {
  const streams = [definition('demo'), definition('b'), definition('c')];
  const text = 'demo.x = 1 AND b.x = 1 AND c.x = 1 AND demo.x = b.x';

  function places(kinds: readonly [JoinKind, JoinKind], condition = text): (number | undefined)[] {
    const joins = [join(kinds[0], 'b'), join(kinds[1], 'c')];
    return bound(select(['*'], { joins, window: WINDOW, ...where(condition) }), streams).where.map(
      (part) => part.movesTo
    );
  }

  it('moves parts of WHERE before joins that keep the rows of their source', () => {
    assert.deepEqual(places(['inner', 'inner']), [0, 1, 2, undefined]);
    assert.deepEqual(places(['left', 'inner']), [0, undefined, 2, undefined]);
    assert.deepEqual(places(['inner', 'right']), [undefined, undefined, 2, undefined]);
    assert.deepEqual(places(['full', 'cross']), [undefined, undefined, undefined, undefined]);
    assert.deepEqual(places(['cross', 'left']), [0, undefined, undefined, undefined]);
  });

  it('keeps parts of WHERE in place that depend on chance, the window, or a name of any source', () => {
    const condition = 'demo.x > chance() AND demo.x > window_start() AND x = 1 AND 1 = 1';
    assert.deepEqual(places(['inner', 'inner'], condition), [undefined, undefined, undefined, undefined]);
  });

  it('finds equalities of ON that compare the joined source with the earlier ones', () => {
    const joins = [join('left', 'b', 'demo.x > 1 AND b.x = b.y AND demo.x + 1 = b.y')];
    const { on } = bound(select(['*'], { joins, window: WINDOW }), streams).joins[0];
    const [other, own, { equality }] = on;
    assert.deepEqual([other.equality, own.equality], [undefined, undefined]);
    assert.equal(equality?.column, 'y');
    assert.equal(resultOf(equality?.left, new StreamRow({ x: 2 }, 0)), 3);
    assert.equal(resultOf(equality?.right, new StreamRow({ y: 4 }, 0)), 4);
  });

  it('moves all parts of WHERE to the only source of a statement', () => {
    const { where: parts } = bound(select(['*'], where('a = 1 AND b = 2 OR c = 3')));
    assert.deepEqual(
      parts.map(({ text: shown, movesTo }) => [shown, movesTo]),
      [['a = 1 AND b = 2 OR c = 3', 0]]
    );
  });
});

describe('outputs', () => {
  it('names output columns by alias, column, function or number', () => {
    const { fields } = bound(select(['a AS x', 'demo.b', 'COUNT(*)', 'a + 1', 'a->b', 'kuiper_field_1']));
    assert.deepEqual(
      fields.map((field) => field.type !== 'star' && field.name),
      ['x', 'b', 'count', 'kuiper_field_0', 'kuiper_field_2', 'kuiper_field_1']
    );
  });

  it('omits null from the output, unless requested', () => {
    assert.deepEqual(project(['a', 'b', 'c'], { a: 1, b: null }), [{ a: 1 }]);
    assert.deepEqual(project(['a', 'b', 'c'], { a: 1, b: null }, { sendNilField: true }), [{ a: 1, b: null, c: null }]);
    assert.deepEqual(project(['*'], { a: 1, b: null }), [{ a: 1 }]);
    assert.deepEqual(project(['*'], { a: 1, b: null }, { sendNilField: true }), [{ a: 1, b: null }]);
  });

  it('returns the row itself for SELECT *', () => {
    const row = { a: 1 };
    assert.equal(project(['*'], row)[0], row);
  });

  it('keeps the order of SELECT for a star with other columns', () => {
    assert.equal(JSON.stringify(project(['c + 1 AS d', '*', 'a + 1 AS a'], { a: 1, c: 2 })), '[{"d":3,"a":2,"c":2}]');
  });

  it('omits the columns of EXCEPT from a star, and replaces columns in their positions', () => {
    const statement = bound({
      ...select([]),
      fields: [
        {
          type: 'star',
          except: ['B'],
          replace: [
            {
              type: 'selected',
              expression: expression('a + 1'),
              alias: { type: 'path', name: 'a', steps: [], ...PLACE },
              ...PLACE
            }
          ],
          ...PLACE
        }
      ]
    });
    const outputs: StreamValueObject[] = [];
    makeProject(statement, toolsOf(), OPTIONS)(new StreamRow({ a: 1, b: 2, c: 3 }, 0), outputs);
    assert.equal(JSON.stringify(outputs), '[{"a":2,"c":3}]');
  });

  it('returns only the columns of one stream of a join for its star', () => {
    const joins = [join('inner', 'other')];
    const statement = bound(
      { ...select([]), joins, window: WINDOW, fields: [{ type: 'star', stream: 'other', ...PLACE }] },
      [definition('demo'), definition('other')]
    );
    const outputs: StreamValueObject[] = [];
    const row = new JoinedRow([new StreamRow({ a: 1 }, 0), new StreamRow({ b: 2 }, 0)], [0, 1]);
    makeProject(statement, toolsOf(), OPTIONS)(row, outputs);
    assert.deepEqual(outputs, [{ b: 2 }]);
    assert.deepEqual(
      [...statement.sources].map(({ needed }) => needed),
      [new Set(), 'all']
    );
  });

  it('omits invisible columns', () => {
    assert.deepEqual(project(['a + 1 AS b INVISIBLE', 'b * 2 AS c'], { a: 1 }), [{ c: 4 }]);
  });

  it('returns a row for each element of unnest', () => {
    assert.deepEqual(project(['a', 'unnest(l)', 'b'], { a: 1, b: 2, l: [{ x: 1 }, 5, null] }), [
      { a: 1, x: 1, b: 2 },
      { a: 1, unnest: 5, b: 2 },
      { a: 1, b: 2 }
    ]);
    assert.deepEqual(project(['a', 'unnest(l)'], { a: 1 }), []);
    assert.throws(() => project(['unnest(l)'], { l: 1 }), { message: 'unnest() returned float64 instead of rows' });
    assert.equal(faultOf(select(['unnest(a)', 'unnest(b)'])), 'only one function of SELECT can return several rows');
  });

  it('returns a column for each key of extract', () => {
    assert.deepEqual(project(['extract(o)', 'a'], { a: 1, o: { x: 1, y: null } }), [{ x: 1, a: 1 }]);
  });

  it('returns the metadata of the row on request', () => {
    assert.deepEqual(project(['a'], { a: 1 }, { sendMetaToSink: true }), [{ a: 1, __meta: { topic: 't' } }]);
  });

  it('supports columns of any name', () => {
    const [output] = project(['extract(o)'], { o: JSON.parse('{"__proto__":{"x":1}}') });
    assert.deepEqual(Object.keys(output), ['__proto__']);
    assert.equal(Object.getPrototypeOf(output), Object.prototype);
  });
});
