import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveRules } from '../support/rules.ts';

describe('The output of a test of a rule', () => {
  for (const [what, sql, ctx, json] of [
    [
      'integers of any size',
      'SELECT payload.n AS n FROM "t"',
      { payload: '{"n":9007199254740993}' },
      '{"n":9007199254740993}'
    ],
    ['floating point numbers without a fraction', 'SELECT 10 / 2 AS n, 1.0 AS m FROM "t"', {}, '{"n":5.0,"m":1.0}'],
    ['fractions', 'SELECT 1 / 4 AS n FROM "t"', {}, '{"n":0.25}'],
    ['strings', 'SELECT payload FROM "t"', { payload: 'é"\n' }, '{"payload":"é\\"\\n"}'],
    [
      'null and truth values',
      'SELECT payload.a AS a, payload.b AS b FROM "t"',
      { payload: '{"a":null,"b":true}' },
      '{"a":null,"b":true}'
    ],
    ['no absent values', 'SELECT nothing, 1 AS n FROM "t"', {}, '{"n":1}'],
    ['bytes as a string', `SELECT base64_decode('/w==') AS b FROM "t"`, {}, '{"b":"\ufffd"}']
  ] as const)
    it(`returns ${what}`, async () => {
      await using served = await serveRules();
      const { text } = await served.call('POST', '/api/rules?test', { rawsql: sql, ctx: { topic: 't', ...ctx } });
      assert.equal(text, `{"code":0,"data":${json}}`);
    });

  it('keeps the numbers of columns as the request has written them', async () => {
    await using served = await serveRules();
    const sql = 'SELECT payload.list AS list, qos FROM \\"t\\"';
    const ctx = '{"topic":"t","payload":{"list":[12345678901234567890,1.0,1e3,2]},"qos":9007199254740993}';
    const { text } = await served.call('POST', '/api/rules?test', `{"rawsql":"${sql}","ctx":${ctx}}`);
    assert.equal(text, '{"code":0,"data":{"list":[12345678901234567890,1.0,1000.0,2],"qos":9007199254740993}}');
  });
});

describe('A test of a rule', () => {
  it('refuses numbers that are too large for a floating point number', async () => {
    await using served = await serveRules();
    const { text } = await served.call(
      'POST',
      '/api/rules?test',
      '{"rawsql":"SELECT 1 AS n FROM \\"t\\"","ctx":{"x":1e999}}'
    );
    assert.match(text, /"code":400,.*the number of .*x.* is too large/);
  });
});

describe('The metrics of a rule', () => {
  it('reports a speed with two decimals, the maximum, and the mean of five minutes', async () => {
    await using served = await serveRules();
    const { broker, clock, call } = served;
    await broker.rules.create({ id: 'r', sql: 'SELECT * FROM "t"', actions: ['do_nothing'] });
    for (const count of [20, 0, 30]) {
      for (let i = 0; i < count; i++) await broker.publish('t', '');
      await clock.advance('10s');
    }
    const { metrics, actions } = (await call('GET', '/api/rules/r')).body.data;
    const { matched, speed, speed_max, speed_last5m } = metrics[0];
    assert.deepEqual(
      { matched, speed, speed_max, speed_last5m },
      { matched: 50, speed: 3, speed_max: 3, speed_last5m: 1.67 }
    );
    assert.deepEqual(actions[0].metrics, [{ node: 'embermq@127.0.0.1', success: 50, failed: 0, taken: 50 }]);
  });

  it('adds the metrics of rules to the counters of the broker, and counts rules, actions and resources', async () => {
    await using served = await serveRules();
    const { broker, call } = served;
    const config = { url: 'http://192.0.2.1/' };
    await broker.rules.resources.create({ type: 'test_target', config });
    await broker.rules.create({ id: 'r', sql: 'SELECT * FROM "t"', actions: ['do_nothing', 'do_nothing'] });
    await broker.rules.create({ id: 's', sql: 'SELECT * FROM "t"', actions: [] });
    await broker.publish('t', '');
    await call('GET', '/api/stats');
    await broker.rules.delete('s');
    const [{ metrics }] = (await call('GET', '/api/metrics')).body.data;
    const counted = ['rules.matched', 'actions.success', 'actions.failure'].map((name) => metrics[name]);
    assert.deepEqual(counted, [2, 2, 0]);
    const [{ stats }] = (await call('GET', '/api/stats')).body.data;
    const names = ['rules.count', 'rules.max', 'actions.count', 'actions.max', 'resources.count', 'resources.max'];
    assert.deepEqual(
      names.map((name) => stats[name]),
      [1, 2, 4, 4, 1, 1]
    );
  });
});
