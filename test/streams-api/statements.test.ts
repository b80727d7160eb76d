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
