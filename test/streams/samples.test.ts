import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker } from '../../lib/testing/index.ts';

const STREAM =
  'CREATE STREAM demo (t BIGINT, name STRING, at BIGINT) WITH (DATASOURCE="s/#", FORMAT="json", TIMESTAMP="at")';

async function streamKit() {
  const kit = await createTestBroker({ leaks: 'ignore' });
  await kit.broker.streams.create(STREAM);
  return kit;
}

describe('Samples of stream rules', () => {
  it('keeps the last inputs, outputs and errors, and rows that WHERE has excluded with the values that it reads', async () => {
    await using kit = await streamKit();
    const { streams } = kit.broker;
    const sql = `SELECT t + 1 AS u, name FROM demo WHERE u > 20 AND (lower(name) = 'x' OR meta(topic) = 'no' OR lag(t) > 5)`;
    await streams.rules.create({ id: 'r', sql, actions: [() => undefined] });
    const empty = { inputs: [], outputs: [], errors: [], rejected: [] };
    assert.deepEqual(await streams.rules.samples('r'), empty);
    const start = kit.clock.now();
    for (const payload of ['{"t": 25, "name": "A"}', '{"t": 30, "name": "X"}', '{"t": "text"}', 'no JSON']) {
      await kit.broker.publish('s/1', payload);
      await kit.clock.advance('1s');
    }
    const { inputs, outputs, errors, rejected } = await streams.rules.samples('r');
    assert.deepEqual(
      inputs.map(({ at, node, values, isCut }) => [at - start, node, values, isCut]),
      [
        [0, 'source_demo', { t: 25, name: 'A' }, false],
        [1000, 'source_demo', { t: 30, name: 'X' }, false],
        [2000, 'source_demo', { t: null, name: null }, false]
      ]
    );
    assert.deepEqual(outputs, [{ at: start + 1000, rows: [{ u: 31, name: 'X' }], isCut: false }]);
    assert.deepEqual(rejected, [
      {
        ...{ at: start, node: 'op_3_filter', reason: 'WHERE', topic: 's/1', isCut: false },
        values: { u: 26, name: 'A', 'meta(topic)': 's/1' }
      },
      {
        ...{ at: start + 2000, node: 'op_3_filter', reason: 'WHERE', topic: 's/1', isCut: false },
        values: { 'meta(topic)': 's/1', 'lag(t)': 30 }
      }
    ]);
    assert.deepEqual(
      errors.map(({ at, node, topic }) => [at - start, node, topic]),
      [[3000, 'source_demo', 's/1']]
    );
    assert.match(errors[0].message, /JSON/);
    await assert.rejects(streams.rules.samples('none'), { code: 'STREAM_RULE_NOT_FOUND' });
  });

  it('keeps rows that came too late, windows without a row for WHERE, and groups that HAVING has excluded', async () => {
    await using kit = await streamKit();
    const { streams } = kit.broker;
    await streams.rules.create({
      id: 'late',
      sql: 'SELECT count(*) AS n FROM demo WHERE t > 1 GROUP BY TUMBLINGWINDOW(ss, 10) HAVING n > 5',
      options: { isEventTime: true },
      actions: [() => undefined]
    });
    for (const at of [1_000, 30_000, 2_000])
      await kit.broker.publish('s/1', JSON.stringify({ t: at === 1_000 ? 0 : 7, at }));
    const first = (await streams.rules.samples('late')).rejected[0];
    assert.deepEqual([first.reason, first.values], ['WHERE', { t: 0 }]);
    await kit.clock.advance('1s');
    await kit.broker.publish('s/1', '{"t": 7, "at": 3000}');
    await kit.clock.advance('1s');
    await kit.broker.publish('s/1', '{"t": 7, "at": 60000}');
    const { rejected } = await streams.rules.samples('late');
    assert.deepEqual(
      rejected.map(({ reason, values }) => [reason, values]),
      [
        ['WHERE', { t: 0 }],
        ['late', { t: 7, at: 3000 }],
        ['HAVING', { n: 1 }]
      ]
    );
  });

  it('keeps the samples over a restart of a rule, and discards them with a change', async () => {
    await using kit = await streamKit();
    const { streams } = kit.broker;
    const rule = { id: 'r', sql: 'SELECT t FROM demo', actions: [() => undefined] };
    await streams.rules.create(rule);
    await kit.broker.publish('s/1', '{"t": 1}');
    const sampledAt = kit.clock.now();
    await kit.clock.advance('1s');
    await streams.rules.restart('r');
    assert.equal((await streams.rules.samples('r')).outputs.length, 1);
    assert.equal((await streams.rules.status('r')).sampledAt, sampledAt);
    await streams.rules.update('r', { ...rule, sql: 'SELECT t, name FROM demo' });
    assert.equal((await streams.rules.samples('r')).outputs.length, 0);
    assert.equal((await streams.rules.status('r')).sampledAt, 0);
  });

  it('cuts samples to 4,096 characters, shows no secrets in errors, and keeps what sinks refuse', async () => {
    await using kit = await streamKit();
    const { streams } = kit.broker;
    const failing = () => {
      throw new Error('refused by http://me:hunter2@host/');
    };
    await streams.rules.create({ id: 'r', sql: 'SELECT name, t FROM demo', actions: [failing] });
    await kit.broker.publish('s/1', JSON.stringify({ t: 1, name: 'x'.repeat(100_000) }));
    const { inputs, outputs, errors } = await streams.rules.samples('r');
    for (const sample of [inputs[0].values, outputs[0].rows]) assert.ok(JSON.stringify(sample).length <= 4096);
    assert.deepEqual([inputs[0].isCut, inputs[0].values.t], [true, 1]);
    assert.doesNotMatch(JSON.stringify(errors), /hunter2/);
    assert.match(errors[0].message, /^refused by/);
  });
});
