import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SourceType } from '../../lib/streams/types.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="sensors/#", FORMAT="JSON")';

describe('The stream service', () => {
  it('lets a rule select from the messages of the broker and publish the results', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await streams.create(DEMO);
    const rows: unknown[] = [];
    await streams.rules.create({
      id: 'hot',
      sql: 'SELECT temperature, meta(topic) AS topic FROM demo WHERE temperature > 30',
      actions: [{ mqtt: { topic: 'alerts', sendSingle: true } }, (emission) => void rows.push(...emission)]
    });
    const client = await kit.broker.connect({ clientId: 'c1' });
    await client.subscribe('alerts');
    const messages = client.messages();
    await kit.broker.publish({ topic: 'sensors/1', payload: '{"temperature": 20}' });
    await kit.broker.publish({ topic: 'sensors/2', payload: '{"temperature": 35.5}' });
    const message = (await messages.next()).value;
    assert.equal(String(message.payload), '{"temperature":35.5,"topic":"sensors/2"}');
    assert.deepEqual(rows, [{ temperature: 35.5, topic: 'sensors/2' }]);
    const { metrics } = await streams.rules.status('hot');
    assert.equal(metrics.source_demo_0_records_in_total, 2);
    assert.equal(metrics.op_2_filter_0_records_out_total, 1);
    assert.equal(metrics.sink_mqtt_0_0_records_out_total, 1);
    await client.disconnect();
  });

  it('opens the source of a stream once for several rules, whatever its type makes of the properties', async () => {
    let opened = 0;
    const source: SourceType = {
      name: 'filtered',
      about: 'A source of a test.',
      properties: {
        filter: { type: 'any', about: 'A value that passes.', check: (value) => (row: unknown) => row === value }
      },
      open() {
        assert.ok(++opened < 10, 'it is opened again and again');
        return { close: () => undefined };
      }
    };
    const sourceConfig = { filtered: { default: { filter: 1 } } };
    await using kit = await createTestBroker({ streams: { sources: [source], sourceConfig } });
    const { streams } = kit.broker;
    await streams.create('CREATE STREAM demo () WITH (TYPE="filtered", DATASOURCE="d", FORMAT="json")');
    for (const id of ['a', 'b']) await streams.rules.create({ id, sql: 'SELECT * FROM demo', actions: [{ nop: {} }] });
    assert.equal(opened, 1);
    assert.deepEqual(
      (await streams.rules.list()).map(({ status }) => status),
      ['Running', 'Running']
    );
  });

  it('publishes only to topic names, and never to reserved ones that rows determine', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await streams.create(DEMO);
    const sql = 'SELECT * FROM demo';
    for (const topic of ['a/#', 'a/+/b', '', 'a\0b']) {
      await assert.rejects(streams.rules.create({ sql, actions: [{ mqtt: { topic } }] }), { code: 'PROPERTY_INVALID' });
    }
    const topics: string[] = [];
    const stops = ['#', '$x/#'].map((filter) => kit.broker.subscribe(filter, ({ topic }) => void topics.push(topic)));
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error.message));
    for (const qos of [0, 1, 2] as const) {
      await streams.rules.create({
        id: 'r',
        sql,
        actions: [{ mqtt: { topic: '{{.t}}', sendSingle: true } }],
        options: { qos }
      });
      for (const t of ['ok', 'a/#', '$x/a', '']) await streams.push('demo', { t });
      await kit.clock.advance('2s');
      await streams.rules.delete('r');
      assert.deepEqual(topics.splice(0), ['ok'], `qos ${qos}`);
    }
    for (const stop of stops) stop();
    assert.match(errors[0], /mqtt sink: topic name "a\/#": /);
  });

  it('counts each row of a filter exactly', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await streams.create(DEMO);
    await streams.rules.create({ id: 'hot', sql: 'SELECT t FROM demo WHERE t > 30', actions: [() => undefined] });
    const counts = async () => {
      const { metrics } = await streams.rules.status('hot');
      const names = ['source_demo_0_records_in', 'op_2_filter_0_records_in', 'op_2_filter_0_records_out'];
      return [...names, 'op_2_filter_0_exceptions', 'op_3_project_0_records_out'].map(
        (name) => metrics[`${name}_total`]
      );
    };
    for (let i = 0; i < 200; i++) await streams.push('demo', { t: i % 4 === 0 ? 31 : i % 100 === 99 ? 'x' : null });
    assert.deepEqual(await counts(), [200, 200, 50, 2, 50]);
    for (let i = 0; i < 100; i++) await streams.push('demo', { t: i });
    assert.deepEqual(await counts(), [300, 300, 119, 2, 119]);
  });

  it('emits the groups of a window when it ends', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await streams.create(DEMO);
    const rule = await streams.rule(
      'SELECT name, count(*) AS n, avg(t) AS mean FROM demo GROUP BY name, TUMBLINGWINDOW(ss, 10)'
    );
    const next = rule[Symbol.asyncIterator]().next();
    for (const [name, t] of [
      ['a', 1.5],
      ['b', 2],
      ['a', 2.5]
    ] as const)
      await streams.push('demo', { name, t });
    await kit.clock.advance('10s');
    assert.deepEqual((await next).value, [
      { name: 'a', n: 2, mean: 2 },
      { name: 'b', n: 1, mean: 2 }
    ]);
    await rule.drop();
    assert.deepEqual(await streams.rules.list(), []);
  });

  it('rejects calls with arguments of another type by a code', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    const { config, rules } = streams;
    await streams.create(DEMO);
    await rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: [{ nop: {} }] });
    const odd: readonly never[] = [null, 5, 'confKey', [], {}, () => 1] as never[];
    const entry = { kind: 'confKey', type: 'mqtt', name: 'a', properties: {} } as const;
    const CONFIG = 'STREAM_CONFIG_INVALID';
    const calls: readonly [call: (given: never) => Promise<unknown>, code: string, given?: readonly never[]][] = [
      [(given) => config.list(given), CONFIG, odd.filter((one) => one !== 'confKey')],
      [(given) => config.get(given), CONFIG],
      [(given) => config.get({ kind: given, type: 'mqtt', name: 'a' }), CONFIG, [null, 'toString'] as never[]],
      [(given) => config.get({ kind: 'schema', type: given, name: 'a' }), CONFIG, [undefined, null, 5] as never[]],
      [(given) => config.delete(given), CONFIG],
      [(given) => config.delete({ kind: 'connection', name: given }), CONFIG, [null, 5] as never[]],
      [(given) => config.set(given), CONFIG],
      [(given) => config.set(entry, given), CONFIG, [null, 5, []] as never[]],
      [(given) => streams.deleteType(given, 'nop'), 'STREAM_INVALID', [...odd, 'nokind', 'toString'] as never[]],
      [(given) => streams.deleteType('sink', given), 'STREAM_INVALID', [null, 5] as never[]],
      [(given) => streams.delete('stream', 'demo', given), 'OPTION_INVALID', [null, 5] as never[]],
      [(given) => streams.rule('SELECT * FROM demo', given), 'OPTION_INVALID', [null, 5] as never[]],
      [(given) => rules.tag('r', given), 'STREAM_RULE_INVALID', [null, 5] as never[]]
    ];
    for (const [call, code, given = odd] of calls)
      for (const one of given) await assert.rejects(call(one), { code }, `${call} ${String(one)}`);
    assert.deepEqual(await config.list('confKey'), []);
  });
});
