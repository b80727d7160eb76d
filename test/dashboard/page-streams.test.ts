// The parts of the pages of stream rules that need no browser.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { paramOf, textOfParam } from '../../adapters/dashboard/page/model/rules.ts';
import {
  contentsOf,
  DDL_WORDS,
  type Definition,
  exampleRows,
  filterOf,
  isDefinition,
  messagesIn,
  nodesOf,
  outputRate,
  rowOfMessage,
  rowsOfInputs,
  sinkOf,
  specsOf,
  streamsIn,
  totalsOf
} from '../../adapters/dashboard/page/model/streams.ts';
import { DDL_OPTIONS } from '../../lib/streams/ddl/options.ts';

const DEMO: Definition = {
  Name: 'demo',
  StreamFields: [
    { Name: 't', FieldType: 'float' },
    { Name: 'list', FieldType: { Type: 'array', ElementType: 'bigint' } }
  ],
  Options: { DATASOURCE: 'sensors/+/state, others', FORMAT: 'JSON', TYPE: '', CONF_KEY: '' },
  sql: ''
};

describe('Statements of stream rules in the console', () => {
  it('finds the streams and tables of a statement, also while it is not complete', () => {
    const sql = "SELECT 'from x' FROM demo -- join nothing\nLEFT JOIN `odd name` ON a = b INNER JOIN demo ON c = d";
    assert.deepEqual(streamsIn(sql), ['demo', 'odd name']);
    assert.deepEqual(streamsIn('SELECT * FROM'), []);
    assert.deepEqual(streamsIn('select * from größe'), ['größe']);
  });

  it('tells definitions from other statements, also after comments', () => {
    for (const sql of ['create stream', '\n-- a\n/* b */ CREATE TABLE']) assert.equal(isDefinition(sql), true, sql);
    for (const sql of ['', 'SELECT 1', '-- create', 'created', '/* CREATE'])
      assert.equal(isDefinition(sql), false, sql);
  });
});

describe('Definitions of streams in the console', () => {
  it('completes the options of streams and tables that have an effect', () => {
    const effective = [...DDL_OPTIONS].filter(([, { about }]) => !/without effect/i.test(about)).map(([name]) => name);
    assert.deepEqual(DDL_WORDS.options.toSorted(), effective.toSorted());
  });

  it('finds the messages of a schema with its package, and none in comments, strings and other messages', () => {
    const proto = `syntax = "proto3"; // message No {}
      package plant.one;
      /* message Neither {} */
      message Reading { message Inner { string message = 1; } Inner inner = 1; }
      enum Kind { NONE = 0; }
      message Last { string text = 1 [default = "message Not {"]; }`;
    assert.deepEqual(messagesIn(proto), ['plant.one.Reading', 'plant.one.Last']);
    assert.deepEqual(messagesIn('/* '.repeat(1_000)), []);
  });

  it('counts what an export contains, and recognises other files', () => {
    assert.deepEqual(contentsOf('{"streams":{"a":"CREATE"},"rules":{"r":"{}","s":"{}"}}'), {
      streams: 1,
      tables: 0,
      rules: 2
    });
    assert.deepEqual(contentsOf('{"connectionConfig":{"mqtt":"{}"}}'), { streams: 0, tables: 0, rules: 0 });
    for (const text of ['', 'no', '{}', '[]', 'null', '{"streams":1}', '"text"'])
      assert.equal(contentsOf(text), undefined, text);
  });
});

describe('Rows for the test of a stream rule', () => {
  it('makes an example for each stream, with values of the types of its columns', () => {
    assert.deepEqual(exampleRows([DEMO, { ...DEMO, Name: 'schemaless', StreamFields: null }]), [
      { stream: 'demo', at: 0, values: { t: 21.5, list: [] } },
      { stream: 'schemaless', at: 1_000, values: {} }
    ]);
  });

  it('takes the last inputs of a rule, except for those that were shortened', () => {
    const inputs = [
      { at: 5, node: 'source_demo', values: { t: 1 }, cut: false },
      { at: 6, node: 'source_demo', values: {}, cut: true }
    ];
    assert.deepEqual(rowsOfInputs(inputs), [{ stream: 'demo', at: 5, values: { t: 1 } }]);
  });

  it('makes rows of messages whose payload is an object in JSON', () => {
    assert.deepEqual(rowOfMessage('demo', 'a/b', 7, '{"t":1}'), {
      stream: 'demo',
      at: 7,
      values: { t: 1 },
      meta: { topic: 'a/b' }
    });
    for (const payload of ['no', '1', '[1]', 'null', ''])
      assert.equal(rowOfMessage('demo', 'a', 7, payload), undefined);
  });

  it('observes the first topic of a stream that reads this broker, and no other source', () => {
    assert.equal(filterOf(DEMO), 'sensors/+/state');
    for (const other of [{ TYPE: 'memory' }, { CONF_KEY: 'plant' }, { FORMAT: 'protobuf' }])
      assert.equal(filterOf({ ...DEMO, Options: { ...DEMO.Options, ...other } }), undefined);
  });
});

describe('Forms for sinks and sources', () => {
  it('keeps durations with a unit, lists and secrets as they are', () => {
    const property = (name: string, type: string, more = {}) => ({
      name,
      type,
      optional: true,
      hint: { en_US: '' },
      ...more
    });
    const specs = new Map(
      specsOf([
        property('interval', 'number'),
        property('servers', 'array'),
        property('password', 'string', { secret: true }),
        property('qos', 'number', { values: [0, 1] })
      ])
    );
    const kept = (name: string, value: unknown) => paramOf(specs.get(name) ?? {}, textOfParam(value));
    assert.equal(kept('interval', '10s'), '10s');
    assert.equal(kept('interval', 500), 500);
    assert.deepEqual(kept('servers', ['a', 'b']), ['a', 'b']);
    assert.equal(kept('servers', 'a,b'), 'a,b');
    assert.equal(kept('qos', 1), 1);
    assert.equal(specs.get('password')?.type, 'password');
    assert.equal(kept('password', '******'), '******');
  });

  it('finds the type and the properties of an action', () => {
    assert.deepEqual(sinkOf({ mqtt: { topic: 'a' } }), ['mqtt', { topic: 'a' }]);
    assert.deepEqual(sinkOf({}), ['', {}]);
  });
});

describe('Counters of the nodes of a stream rule', () => {
  const metrics = {
    status: 'running',
    source_a_0_records_in_total: 3,
    source_a_0_records_out_total: 2,
    source_a_0_exceptions_total: 1,
    source_a_0_last_exception: 'not JSON',
    source_a_0_connection_status: -1,
    op_1_filter_0_records_in_total: 3,
    op_1_filter_0_exceptions_total: 1,
    op_1_filter_0_last_exception: 'not JSON',
    sink_log_0_0_records_in_total: 2
  };

  it('lists the nodes, and shows an error at the node where it began', () => {
    assert.deepEqual(
      nodesOf(metrics).map(({ name, kind, inputs, lastException }) => [name, kind, inputs, lastException]),
      [
        ['source_a', 'source', 3, 'not JSON'],
        ['op_1_filter', 'op', 3, ''],
        ['sink_log_0', 'sink', 2, '']
      ]
    );
    assert.equal(nodesOf(metrics)[0].connection, -1);
    assert.equal(nodesOf(metrics)[1].connection, undefined);
  });

  it('counts the rows that a rule has read and sent, and each error once', () => {
    const more = { ...metrics, sink_log_0_0_records_out_total: 2, sink_mqtt_1_0_records_in_total: 1 };
    assert.deepEqual(totalsOf(more), { inputs: 2, outputs: 2, exceptions: 1 });
    assert.deepEqual(totalsOf({ status: 'stopped' }), { inputs: 0, outputs: 0, exceptions: 0 });
  });

  it('computes the rate of a node also after a time without changes, and none after a restart', () => {
    const at = (at: number, count: number) => ({ at, metrics: { source_a_0_records_out_total: count } });
    assert.equal(outputRate(at(0, 10), at(1_000, 30), 'source_a'), 20);
    assert.equal(outputRate(at(0, 10), at(60_000, 15), 'source_a'), 5);
    assert.equal(outputRate(at(0, 10), at(1_000, 0), 'source_a'), 0);
    assert.equal(outputRate(undefined, at(1_000, 5), 'source_a'), 0);
  });
});
