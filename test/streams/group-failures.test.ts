import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileStreamRule } from '../../lib/streams/index.ts';

/** Run a statement over rows that arrive one second after the other. */
async function run(sql: string, rows: readonly Record<string, unknown>[], until = 20_000) {
  const rule = await compileStreamRule(sql);
  const steps = rows.map((values, index) => ({ stream: 'd', values, at: 1000 + index }));
  const { emissions, errors, metrics } = rule.run([...steps, { at: until }], { until });
  const exceptions = Object.entries(metrics).filter(
    ([name, value]) => /^op_.*exceptions_total$/.test(name) && value !== 0
  );
  // of the operator that failed; the operators after it count the error as one
  return { rows: emissions.flat(), errors, exceptions: exceptions.slice(0, 1).map(([, value]) => value) };
}

const ROWS = [
  { k: 'a', x: 1 },
  { k: 'b', x: 'wrong' },
  { k: 'b', x: 2 },
  { k: 'a', x: 3 }
];

describe('a value that cannot be aggregated', () => {
  it('makes only the group of an invalid value fail in a window that is aggregated as rows arrive', async () => {
    const { rows, errors, exceptions } = await run(
      'SELECT k, sum(x) AS s FROM d GROUP BY k, TUMBLINGWINDOW(ss, 10)',
      ROWS
    );
    assert.deepEqual(rows, [{ k: 'a', s: 4 }]);
    assert.equal(errors.length, 1);
    assert.match(errors[0], /string\(wrong\)/);
    assert.deepEqual(exceptions, [1]);
  });

  it('makes only the group of an invalid value fail in a window whose rows are stored, and without a window', async () => {
    const kept = await run('SELECT k, percentile_cont(x, 0.5) AS s FROM d GROUP BY k, TUMBLINGWINDOW(ss, 10)', ROWS);
    assert.deepEqual(kept.rows, [{ k: 'a', s: 2 }]);
    assert.equal(kept.errors.length, 1);
    const single = await run('SELECT k, sum(x) AS s FROM d GROUP BY k, COUNTWINDOW(1)', ROWS);
    assert.deepEqual(single.rows, [
      { k: 'a', s: 1 },
      { k: 'b', s: 2 },
      { k: 'a', s: 3 }
    ]);
  });

  it('makes the group of an invalid value fail in sliding windows while the value is in them', async () => {
    const { rows, errors } = await run('SELECT k, sum(x) AS s FROM d GROUP BY k, HOPPINGWINDOW(ss, 10, 5)', ROWS);
    assert.deepEqual(rows, [
      { k: 'a', s: 4 },
      { k: 'a', s: 4 }
    ]);
    assert.equal(errors.length, 2);
  });

  it('counts all failed groups, and sends one error for an emission', async () => {
    const bad = ['b', 'c', 'd'].map((k) => ({ k, x: 'wrong' }));
    const { rows, errors, exceptions } = await run('SELECT k, sum(x) AS s FROM d GROUP BY k, TUMBLINGWINDOW(ss, 10)', [
      ...bad,
      ...ROWS
    ]);
    assert.deepEqual(rows, [{ k: 'a', s: 4 }]);
    assert.equal(errors.length, 1);
    assert.match(errors[0], / \(2 more groups failed\)$/);
    assert.deepEqual(exceptions, [3]);
  });

  it('fails only for the affected group in SELECT and HAVING', async () => {
    const select = 'SELECT k, upper(k) AS u, 10 / (count(*) - 1) AS n FROM d GROUP BY k, TUMBLINGWINDOW(ss, 10)';
    const rows = [{ k: 'a' }, { k: 'b' }, { k: 'b' }];
    const selected = await run(select, rows);
    assert.deepEqual(selected.rows, [{ k: 'b', u: 'B', n: 10 }]);
    assert.deepEqual(selected.errors.length, 1);
    const having = await run('SELECT k FROM d GROUP BY k, TUMBLINGWINDOW(ss, 10) HAVING 10 / (count(*) - 1) > 1', rows);
    assert.deepEqual(having.rows, [{ k: 'b' }]);
    assert.deepEqual(having.errors.length, 1);
  });

  it('skips a row whose key cannot be evaluated, with an error', async () => {
    const sql = 'SELECT count(*) AS n FROM d GROUP BY x % 2, TUMBLINGWINDOW(ss, 10)';
    const { rows, errors } = await run(sql, ROWS);
    assert.deepEqual(rows, [{ n: 2 }, { n: 1 }]);
    assert.equal(errors.length, 1);
  });
});
