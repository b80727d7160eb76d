import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveManagement, startBroker } from '../support/management.ts';

describe('Statements and samples of rules over HTTP', () => {
  it('lists the functions and the columns of events, with those of the app', async () => {
    await using broker = await startBroker();
    await broker.rules.createFunction({
      name: 'double',
      family: 'app',
      params: ['number'],
      returns: 'number',
      about: 'Twice a number.',
      run: (n: number) => 2 * n
    });
    await using server = await serveManagement(broker);
    const { data } = (await server.call('GET', '/api/x/rules/functions')).body;
    const named = (name: string) => data.functions.find((one: { name: string }) => one.name === name);
    const own = { name: 'double', family: 'app', params: ['number'], returns: 'number', about: 'Twice a number.' };
    assert.deepEqual(named('double'), own);
    assert.deepEqual(named('substr').params, ['string', 'integer', 'integer?']);
    assert.equal(named('clientid').about, 'The client id.');
    for (const { about } of data.functions) assert.match(about, /\.$/);
    const connected = data.events.find(({ event }: { event: string }) => event === '$events/client_connected');
    const column = connected.columns.find(({ name }: { name: string }) => name === 'keepalive');
    assert.deepEqual([column.type, column.example], ['integer', 60]);
    assert.match(connected.about, /connected/);
  });

  it('answers with the errors of a statement and their places, or with what it reads', async () => {
    await using broker = await startBroker();
    await broker.users.create('vic', 'secret of vic', 'viewer');
    await using server = await serveManagement(broker, { credentials: ['applications', 'users'] });
    const check = async (rawsql: string, headers?: Record<string, string>) => {
      const { status, body } = await server.call('POST', '/api/x/rules/validate', { rawsql }, headers);
      assert.equal(status, 200);
      return body.data;
    };
    const valid = await check('SELECT payload.x AS x, clientid() FROM "a/#", "$events/client_connected" WHERE qos > 0');
    assert.deepEqual(valid, {
      valid: true,
      errors: [],
      hints: [],
      foreach: false,
      topics: ['a/#', '$events/client_connected'],
      events: ['message.publish', 'client.connected'],
      columns: ['payload', 'qos', 'clientid']
    });
    assert.deepEqual((await check('FOREACH payload.l DO *, item.x FROM "a" WHERE "str" = 1')).columns, [
      '*',
      'payload'
    ]);
    for (const [sql, line, column, length, message] of [
      ['SELECT a\nFROM "t"\nWHERE nosuch(a)', 3, 7, 6, /unknown function nosuch/],
      ['SELECT * FROM "a/#/b"', 1, 15, 7, /#/],
      ['SELECT * FROM', 1, 14, 0, /expected/],
      ["SELECT 'open FROM", 1, 8, 10, /./],
      ['SELECT a FROM "t" WHERE a === 1', 1, 28, 2, /./]
    ] as const) {
      const { valid, errors, topics } = await check(sql, {
        authorization: `Basic ${Buffer.from('vic:secret of vic').toString('base64')}`
      });
      assert.deepEqual([valid, topics, errors.length], [false, [], 1], sql);
      const [error] = errors;
      assert.deepEqual([error.line, error.column, error.length], [line, column, length], sql);
      assert.match(error.message, message);
      assert.equal(error.message.includes('\n'), false);
    }
    assert.deepEqual(broker.monitor.audit.list().entries, [], 'nothing has changed');
    for (const body of [{}, { rawsql: 5 }, { rawsql: 'x', test: true }])
      assert.equal((await server.call('POST', '/api/x/rules/validate', body)).status, 400);
  });

  it('shows the samples of a rule', async () => {
    await using broker = await startBroker();
    const { id } = await broker.rules.create({
      sql: 'SELECT payload.n AS n FROM "a" WHERE n > 1',
      actions: [
        () => {
          throw new Error('no');
        }
      ]
    });
    await using server = await serveManagement(broker);
    const path = `/api/x/rules/${encodeURIComponent(id)}/samples`;
    const empty = { inputs: [], outputs: [], errors: [], rejected: [], excluded: 0 };
    assert.deepEqual((await server.call('GET', path)).body.data, empty);
    await broker.publish('a', '{"n": 12345678901234567890}');
    await broker.publish('a', '{"n": 1}');
    const { text, body } = await server.call('GET', path);
    assert.match(text, /"output":\{"n":12345678901234567890\}/);
    const { inputs, errors, rejected, excluded } = body.data;
    assert.equal(excluded, 1);
    assert.deepEqual([inputs.length, inputs[0].event, inputs[0].cut], [1, 'message.publish', false]);
    assert.match(errors[0].action, /^function_/);
    assert.deepEqual([errors[0].code, errors[0].message], ['ACTION_FAILED', 'no']);
    assert.deepEqual([rejected[0].topic, rejected[0].columns], ['a', { n: 1 }]);
    assert.equal((await server.call('GET', '/api/x/rules/none/samples')).status, 404);
  });
});
