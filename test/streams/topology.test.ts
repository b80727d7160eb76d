import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';

const STREAMS = [
  'CREATE STREAM demo (color STRING, size BIGINT, ts BIGINT) WITH (DATASOURCE="demo", FORMAT="JSON", TIMESTAMP="ts")',
  'CREATE STREAM demo1 (temp FLOAT, hum BIGINT, ts BIGINT) WITH (DATASOURCE="demo1", FORMAT="JSON", TIMESTAMP="ts")',
  'CREATE TABLE table1 (id BIGINT, name STRING) WITH (DATASOURCE="table1", TYPE="mqtt", FORMAT="JSON")'
];

async function kitWithStreams(): Promise<TestBroker> {
  const kit = await createTestBroker();
  for (const sql of STREAMS) await kit.broker.streams.create(sql);
  return kit;
}

async function topologyOf(kit: TestBroker, sql: string, options: object = {}) {
  const { rules } = kit.broker.streams;
  await rules.create({ id: 'r', sql, actions: [{ mqtt: { topic: 'out' } }], options });
  return rules.topology('r');
}

/** A chain of nodes as edges. */
function chain(...names: readonly string[]): Record<string, string[]> {
  return Object.fromEntries(names.slice(1).map((name, index) => [names[index], [name]]));
}

describe('The topology of a stream rule', () => {
  it('matches that of the original for a simple statement', async () => {
    await using kit = await kitWithStreams();
    assert.deepEqual(await topologyOf(kit, 'SELECT * FROM demo'), {
      sources: ['source_demo'],
      edges: chain('source_demo', 'op_1_preprocessor_demo', 'op_2_project', 'sink_mqtt_0')
    });
  });

  it('matches that of the original for a window with WHERE, an aggregate and HAVING', async () => {
    await using kit = await kitWithStreams();
    const sql = 'SELECT color, count(*) AS c FROM demo WHERE size > 2 GROUP BY tumblingwindow(ss, 1) HAVING c > 1';
    assert.deepEqual(
      (await topologyOf(kit, sql)).edges,
      chain(
        ...['source_demo', 'op_1_preprocessor_demo', 'op_2_filter', 'op_3_window', 'op_4_aggregate', 'op_5_having'],
        ...['op_6_project', 'sink_mqtt_0']
      )
    );
  });

  it('places the filter after the window in event time', async () => {
    await using kit = await kitWithStreams();
    const sql = 'SELECT * FROM demo WHERE size > 2 GROUP BY tumblingwindow(ss, 1)';
    assert.deepEqual(
      (await topologyOf(kit, sql, { isEventTime: true })).edges,
      chain(
        ...['source_demo', 'op_1_preprocessor_demo', 'op_2_watermark', 'op_3_window', 'op_4_filter', 'op_5_project'],
        'sink_mqtt_0'
      )
    );
  });

  it('matches that of the original for two joined streams', async () => {
    await using kit = await kitWithStreams();
    const sql = 'SELECT * FROM demo INNER JOIN demo1 ON demo.ts = demo1.ts GROUP BY SlidingWindow(ss, 1)';
    assert.deepEqual(await topologyOf(kit, sql), {
      sources: ['source_demo', 'source_demo1'],
      edges: {
        source_demo: ['op_1_preprocessor_demo'],
        source_demo1: ['op_2_preprocessor_demo1'],
        op_1_preprocessor_demo: ['op_3_window'],
        op_2_preprocessor_demo1: ['op_3_window'],
        op_3_window: ['op_4_join'],
        op_4_join: ['op_5_project'],
        op_5_project: ['sink_mqtt_0']
      }
    });
  });

  it('matches that of the original for a stream and a table', async () => {
    await using kit = await kitWithStreams();
    const sql = 'SELECT * FROM demo INNER JOIN table1 ON demo.size = table1.id';
    assert.deepEqual((await topologyOf(kit, sql)).edges, {
      source_demo: ['op_1_preprocessor_demo'],
      source_table1: ['op_2_tableprocessor_table1'],
      op_1_preprocessor_demo: ['op_3_join_aligner'],
      op_2_tableprocessor_table1: ['op_3_join_aligner'],
      op_3_join_aligner: ['op_4_join'],
      op_4_join: ['op_5_project'],
      op_5_project: ['sink_mqtt_0']
    });
  });

  it('numbers nodes as the original does if a table, a window and parts of WHERE are combined', async () => {
    await using kit = await kitWithStreams();
    const sql =
      'SELECT * FROM demo INNER JOIN table1 ON demo.size = table1.id WHERE demo.size > 2 AND table1.name = "x" GROUP BY TumblingWindow(ss, 1)';
    assert.deepEqual(Object.keys((await topologyOf(kit, sql)).edges).sort(), [
      ...['op_1_preprocessor_demo', 'op_2_filter', 'op_3_window', 'op_4_tableprocessor_table1', 'op_5_filter'],
      ...['op_6_join_aligner', 'op_7_join', 'op_8_project', 'source_demo', 'source_table1']
    ]);
  });

  it('gives the filter of a window the number of the window', async () => {
    await using kit = await kitWithStreams();
    const sql = 'SELECT * FROM demo GROUP BY tumblingwindow(ss, 1) FILTER (WHERE size > 2)';
    assert.deepEqual(
      (await topologyOf(kit, sql)).edges,
      chain(
        ...['source_demo', 'op_1_preprocessor_demo', 'op_2_windowFilter', 'op_2_window', 'op_3_project'],
        'sink_mqtt_0'
      )
    );
  });

  it('gives the window filters of several streams separate names', async () => {
    await using kit = await kitWithStreams();
    const sql =
      'SELECT * FROM demo INNER JOIN demo1 ON demo.ts = demo1.ts GROUP BY tumblingwindow(ss, 1) FILTER (WHERE demo.ts > 2)';
    const { edges } = await topologyOf(kit, sql);
    assert.deepEqual(edges.op_3_windowFilter_demo, ['op_3_window']);
    assert.deepEqual(edges.op_3_windowFilter_demo1, ['op_3_window']);
  });
});

describe('The status of a stream rule', () => {
  it('contains the counters of each node in the order of the data flow, with both names of the latency', async () => {
    await using kit = await kitWithStreams();
    const { streams } = kit.broker;
    await topologyOf(kit, 'SELECT color FROM demo WHERE size > 2');
    await streams.push('demo', { color: 'red', size: 3n, ts: 1n });
    await streams.push('demo', { color: 'blue', size: 1n, ts: 2n });
    const { metrics, text } = await streams.rules.status('r');
    assert.equal(text, 'Running');
    const nodes = [...new Set(Object.keys(metrics).map((key) => key.replace(/_0_[a-z_]+$/, '')))];
    assert.deepEqual(nodes, ['source_demo', 'op_1_preprocessor_demo', 'op_2_filter', 'op_3_project', 'sink_mqtt_0']);
    const suffixes = Object.keys(metrics).filter((key) => key.startsWith('op_2_filter_0_'));
    assert.deepEqual(
      suffixes.map((key) => key.slice('op_2_filter_0_'.length)),
      [
        ...['records_in_total', 'records_out_total', 'exceptions_total', 'process_latency_ms', 'process_latency_us'],
        ...['buffer_length', 'last_invocation', 'last_exception', 'last_exception_time']
      ]
    );
    assert.deepEqual([metrics.op_2_filter_0_records_in_total, metrics.op_2_filter_0_records_out_total], [2, 1]);
    assert.match(String(metrics.op_2_filter_0_last_invocation), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?$/);
  });

  it('shows a last invocation that is at most a second before the last item', async () => {
    await using kit = await kitWithStreams();
    const { streams } = kit.broker;
    await topologyOf(kit, 'SELECT color FROM demo WHERE size > 2');
    const shown = async () => {
      const { metrics } = await streams.rules.status('r');
      const names = Object.keys(metrics).filter((name) => name.endsWith('_last_invocation'));
      return names.map((name) => Date.parse(String(metrics[name])));
    };
    for (let item = 1; item <= 10; item++) {
      await streams.push('demo', { color: 'red', size: 3n, ts: 1n });
      for (const at of await shown())
        assert.ok(kit.clock.now() - at < 1000, `item ${item}: ${kit.clock.now() - at} ms`);
      await kit.clock.advance(400);
    }
    assert.equal((await shown()).length, 5);
  });

  it('shows the last error of a node, which goes to the sinks', async () => {
    await using kit = await kitWithStreams();
    kit.broker.on('error', () => undefined);
    const { streams } = kit.broker;
    const seen: unknown[] = [];
    await streams.rules.create({
      id: 'r',
      sql: 'SELECT size / 0 AS x FROM demo',
      actions: [(rows) => void seen.push(...rows)]
    });
    await streams.push('demo', { size: 3n, ts: 1n });
    const { metrics } = await streams.rules.status('r');
    assert.deepEqual(seen, [{ error: 'run Select error: divided by zero' }]);
    assert.equal(metrics.op_2_project_0_last_exception, 'run Select error: divided by zero');
    assert.equal(metrics.op_2_project_0_exceptions_total, 1);
  });
});
