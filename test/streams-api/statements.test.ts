import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { streamsApi } from '../../adapters/streams-api/index.ts';
import { serve, startBroker } from '../support/management.ts';

describe('Statements and samples of stream rules over HTTP', () => {
  it('answers with the errors of a statement and their places, or with what it reads', async () => {
    await using broker = await startBroker();
    await broker.streams.create('CREATE STREAM demo (a BIGINT, b STRING) WITH (DATASOURCE="d", FORMAT="json")');
    await broker.streams.create('CREATE TABLE named () WITH (DATASOURCE="n", FORMAT="json", TYPE="mqtt")');
    await using server = await serve(streamsApi(broker).node);
    const check = async (sql: string) => {
      const { status, body } = await server.call('POST', '/x/rules/validate', { sql });
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    };
    assert.deepEqual(await check('SELECT a, named.x AS x FROM demo INNER JOIN named ON demo.b = named.b'), {
      valid: true,
      errors: [],
      sources: ['demo', 'named'],
      columns: { demo: ['a', 'b'], named: ['x', 'b'] }
    });
    assert.deepEqual((await check('SELECT * FROM demo')).columns, { demo: ['*'] });
    for (const [sql, line, column, length, message] of [
      ['SELECT a\nFROM demo\nWHERE nosuch(a) > 1', 3, 7, 6, /nosuch/],
      ['SELECT a FROM demo WHERE', 1, 25, 0, /./],
      ['SELECT c FROM demo', 1, 8, 1, /c/],
      ['SELECT a FROM demo INNER JOIN gone ON demo.a = gone.a', 1, 31, 4, /gone/],
      ['SELECT a FROM demo GROUP BY', 1, 28, 0, /./]
    ] as const) {
      const { valid, errors, sources } = await check(sql);
      assert.deepEqual([valid, sources, errors.length], [false, [], 1], sql);
      const [error] = errors;
      assert.deepEqual([error.line, error.column, error.length], [line, column, length], sql);
      assert.match(error.message, message);
    }
    assert.deepEqual(await broker.streams.rules.list(), []);
    assert.equal((await server.call('POST', '/x/rules/validate', {})).status, 400);
  });

  it('answers with the errors of CREATE STREAM and CREATE TABLE and their places, and defines nothing', async () => {
    await using broker = await startBroker();
    await using server = await serve(streamsApi(broker).node);
    const check = async (sql: string) => (await server.call('POST', '/x/rules/validate', { sql })).body;
    assert.deepEqual(await check('-- a comment\nCREATE STREAM demo (t FLOAT) WITH (DATASOURCE="a")'), {
      valid: true,
      errors: [],
      sources: [],
      columns: {},
      defines: { kind: 'stream', name: 'demo' }
    });
    assert.deepEqual((await check('create table `odd name` () with (TYPE="memory")')).defines, {
      kind: 'table',
      name: 'odd name'
    });
    for (const [sql, line, column, length, message] of [
      ['CREATE STREAM demo (t FLOT)', 1, 23, 4, /found "FLOT"/],
      ['CREATE STREAM demo ()\nWITH (DATASORCE="a")', 2, 7, 9, /unknown option keys/],
      ['CREATE', 1, 7, 0, /stream or table/],
      ['CREATE TABLE t () WITH (FORMAT="binary")', 1, 24, 1, /not supported for table/]
    ] as const) {
      const { valid, errors, defines } = await check(sql);
      assert.deepEqual([valid, defines, errors.length], [false, undefined, 1], sql);
      assert.deepEqual([errors[0].line, errors[0].column, errors[0].length], [line, column, length], sql);
      assert.match(errors[0].message, message);
    }
    assert.deepEqual([await broker.streams.list('stream'), await broker.streams.list('table')], [[], []]);
  });

  it('shows the samples of a rule', async () => {
    await using broker = await startBroker();
    await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="d", FORMAT="json")');
    await broker.streams.rules.create({ id: 'r', sql: 'SELECT a FROM demo WHERE a > 5', actions: [() => undefined] });
    await using server = await serve(streamsApi(broker).node);
    await broker.publish('d', '{"a": 3}');
    await broker.publish('d', '{"a": 7}');
    const { inputs, outputs, errors, rejected } = (await server.call('GET', '/rules/r/samples')).body;
    assert.deepEqual([inputs[0].node, inputs[0].values, inputs[0].cut], ['source_demo', { a: 3 }, false]);
    assert.deepEqual([outputs[0].rows, errors], [[{ a: 7 }], []]);
    assert.deepEqual([rejected[0].reason, rejected[0].values], ['WHERE', { a: 3 }]);
    assert.equal((await server.call('GET', '/rules/none/samples')).status, 404);
  });
});
