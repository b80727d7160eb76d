import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileStreamRule, formatStreamRule, parseStream, streamFunctions } from '../../lib/streams/index.ts';
import { caseFiles, readStatementCases, type StatementCase } from './statement-cases.ts';

const TUMBLING = 'SELECT count(*) AS c FROM demo GROUP BY TUMBLINGWINDOW(ss, 10)';

/** The statements that define the streams and tables of a case. */
function definitionsOf({ sql, tables }: StatementCase): string[] {
  const names = [...sql.matchAll(/(?:FROM|JOIN) (\w+)/g)].map(([, name]) => name);
  const streams = [...new Set(names)].filter((name) => !tables.some((table) => table.name === name));
  const options = 'DATASOURCE="x", FORMAT="json"';
  return [
    ...streams.map((name) => `CREATE STREAM ${name} () WITH (${options}, TIMESTAMP="ts")`),
    ...tables.map(
      ({ name, options: { RETAIN_SIZE } }) =>
        `CREATE TABLE ${name} () WITH (${options}, TYPE="memory", RETAIN_SIZE="${RETAIN_SIZE}")`
    )
  ];
}

describe('Stream statements without a broker', () => {
  it('runs statements over rows, with emissions at the time of the clock', async () => {
    const rule = await compileStreamRule(TUMBLING);
    assert.deepEqual(rule.sources, ['demo']);
    const steps = [
      { stream: 'demo', values: { a: 1 }, at: 500 },
      { stream: 'demo', values: { a: 2 } }
    ];
    const { outputs, emissions, errors, metrics } = rule.run(steps);
    assert.deepEqual(outputs, [{ at: 10_000, rows: [{ c: 2 }] }]);
    assert.deepEqual([emissions, errors], [[[{ c: 2 }]], []]);
    assert.equal(metrics.op_2_window_0_records_in_total, 2);
    assert.deepEqual(rule.run(steps).outputs, outputs, 'each run starts again');
  });

  it('counts the groups that pass HAVING', async () => {
    const window = 'FROM demo GROUP BY k, TUMBLINGWINDOW(ss, 10) HAVING count(*) > 1';
    const rule = await compileStreamRule(`SELECT k, last_agg_hit_count() AS n, last_agg_hit_time() AS t ${window}`);
    const rows = ['a', 'a', 'b'].map((k) => ({ stream: 'demo', values: { k }, at: 1_000 }));
    const later = ['a', 'a', 'b', 'b'].map((k) => ({ stream: 'demo', values: { k }, at: 11_000 }));
    assert.deepEqual(rule.run([...rows, ...later]).emissions, [
      [{ k: 'a', n: 1, t: 10_000 }],
      [
        { k: 'a', n: 3, t: 20_000 },
        { k: 'b', n: 3, t: 20_000 }
      ]
    ]);
  });

  it('ends runs at a given time, and lets time pass without rows', async () => {
    const rule = await compileStreamRule(TUMBLING, { options: { emitEmptyWindows: true } });
    assert.deepEqual(
      rule.run([{ at: 3_000 }, { at: 20_000 }], { until: 29_999 }).outputs.map(({ at }) => at),
      [10_000, 20_000]
    );
    assert.deepEqual(rule.run([], { startsAt: 5_000, until: 9_999 }).outputs, []);
  });

  it('reports the error of a row with its time', async () => {
    const rule = await compileStreamRule('SELECT a / b AS c FROM demo');
    const { outputs } = rule.run([{ stream: 'demo', values: { a: 1, b: 'x' }, at: 7 }]);
    assert.deepEqual(outputs, [{ at: 7, error: 'run Select error: invalid operation float64(1) / string(x)' }]);
  });

  it('uses definitions, functions, limits, the zone and the rule id of the caller', async () => {
    const twice = {
      name: 'twice',
      kind: 'scalar',
      family: 'app',
      params: ['number'],
      about: 'Twice the number.',
      run: (value: number | bigint) => Number(value) * 2
    } as const;
    const { explain, topology, run } = await compileStreamRule(
      'SELECT twice(a) AS a, rule_id() AS id, format_time(t, "YYYY-MM-dd HH") AS t FROM demo WHERE regexp_matches(s, "^x")',
      {
        definitions: ['CREATE STREAM demo (a BIGINT, s STRING, t DATETIME) WITH (DATASOURCE="d", FORMAT="json")'],
        functions: [twice],
        timezone: 'Asia/Shanghai',
        ruleId: 'mine'
      }
    );
    assert.deepEqual([explain.name, topology.sources], ['op_3_project', ['source_demo']]);
    const { outputs } = run([{ stream: 'demo', values: { a: 4, s: 'xyz', t: 0 } }]);
    assert.deepEqual(outputs, [{ at: 0, rows: [{ a: 8, id: 'mine', t: '1970-01-01 08' }] }]);
    const tight = await compileStreamRule('SELECT a FROM demo GROUP BY TUMBLINGWINDOW(ss, 1)', {
      bounds: { windowRows: 1 }
    });
    const rows = [1, 2].map((a) => ({ stream: 'demo', values: { a } }));
    assert.match(tight.run(rows).errors[0], /at most 1 rows/);
  });

  const REFUSED: readonly [what: string, run: () => unknown, code: string][] = [
    ['a statement that is not a string', () => compileStreamRule(5 as never), 'STREAM_RULE_INVALID'],
    ['a statement that cannot be parsed', () => compileStreamRule('SELECT'), 'SQL_INVALID'],
    ['a function that does not exist', () => compileStreamRule('SELECT f(a) FROM demo'), 'SQL_INVALID'],
    [
      'a definition that is none',
      () => compileStreamRule(TUMBLING, { definitions: ['SHOW STREAMS'] }),
      'STREAM_INVALID'
    ],
    [
      'a definition that is not a string',
      () => compileStreamRule(TUMBLING, { definitions: [5 as never] }),
      'STREAM_INVALID'
    ],
    [
      'two definitions of one name',
      () =>
        compileStreamRule(TUMBLING, {
          definitions: ['demo', 'demo'].map((name) => `CREATE STREAM ${name} () WITH (DATASOURCE="d")`)
        }),
      'STREAM_EXISTS'
    ],
    ['a function that is none', () => compileStreamRule(TUMBLING, { functions: [{} as never] }), 'FUNCTION_INVALID'],
    ['an unknown option', () => compileStreamRule(TUMBLING, { options: { qoz: 1 } as never }), 'OPTION_UNKNOWN'],
    ['an unknown zone', () => compileStreamRule(TUMBLING, { timezone: 'Nowhere' }), 'OPTION_INVALID'],
    [
      'a row of another stream',
      async () => (await compileStreamRule(TUMBLING)).run([{ stream: 'x', values: {} }]),
      'ROW_INVALID'
    ],
    [
      'a row without values',
      async () => (await compileStreamRule(TUMBLING)).run([{ stream: 'demo' } as never]),
      'ROW_INVALID'
    ],
    ['a time that is none', async () => (await compileStreamRule(TUMBLING)).run([{ at: Number.NaN }]), 'ROW_INVALID'],
    ['rows that are not a list', async () => (await compileStreamRule(TUMBLING)).run({} as never), 'ROW_INVALID']
  ];
  for (const [what, run, code] of REFUSED)
    it(`refuses ${what} with ${code}`, async () => {
      await assert.rejects(async () => run(), { code });
    });

  it('refuses unknown options', async () => {
    const given = { definition: [] } as never;
    await assert.rejects(compileStreamRule(TUMBLING, given), {
      code: 'OPTION_UNKNOWN',
      message: /did you mean "definitions"/
    });
  });

  it('formats statements', () => {
    assert.equal(
      formatStreamRule('select  a.b as c from demo where c>1 group by tumblingwindow(ss,1)'),
      'SELECT a.b AS c FROM demo WHERE c > 1 GROUP BY TUMBLINGWINDOW(ss, 1)'
    );
    assert.throws(() => formatStreamRule(undefined as never), { code: 'STREAM_RULE_INVALID', field: 'sql' });
  });

  it('parses streams, and lists functions', () => {
    const { kind, name, columns } = parseStream('CREATE TABLE t (a BIGINT) WITH (DATASOURCE="d", TYPE="file")');
    assert.deepEqual([kind, name, columns], ['table', 't', [{ name: 'a', type: { type: 'bigint' } }]]);
    assert.equal(streamFunctions().find(({ name }) => name === 'sum')?.kind, 'aggregate');
    assert.ok(streamFunctions().every(({ about }) => /\.$/.test(about)));
  });

  for (const file of caseFiles('windows'))
    it(`gives the expected results for the cases of ${file}`, async () => {
      for (const each of readStatementCases(file)) {
        if (each.tables.some(({ options }) => options.TYPE === 'file')) continue; // its rows are available immediately here
        const { options, bounds, sql } = each;
        const rule = await compileStreamRule(sql, { definitions: definitionsOf(each), options, bounds });
        const { outputs, metrics } = rule.run(each.rows as never, { until: each.rows.at(-1)?.at });
        const texts = outputs.map((output) =>
          'rows' in output ? `${output.at} ${JSON.stringify(output.rows)}` : `${output.at} error ${output.error}`
        );
        assert.deepEqual(texts, each.expected, each.title);
        for (const count of each.counts) {
          const [name, value] = count.split(' ');
          assert.equal(String(metrics[name]), value, each.title);
        }
      }
    });
});
