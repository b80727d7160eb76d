import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRule, formatRule, ruleEvents, ruleFunctions } from '../../lib/rules/index.ts';

describe('The language of rules without a broker', () => {
  it('evaluates a statement for an event', async () => {
    const rule = await compileRule('SELECT payload.t as t FROM "sensors/#" WHERE t > 80');
    assert.deepEqual([rule.topics, rule.isForeach], [['sensors/#'], false]);
    assert.deepEqual(rule.run({ topic: 'sensors/1', payload: '{"t": 90}' }).outputs, [{ t: 90 }]);
    assert.equal(rule.run({ topic: 'sensors/1', payload: '{"t": 70}' }).result, 'where');
    assert.equal(rule.run({ topic: 'other' }).result, 'topic');
  });

  it('takes the time, the node and functions from its caller', async () => {
    const twice = {
      name: 'twice',
      family: 'app',
      params: ['number'],
      returns: 'number',
      about: 'Twice the number.',
      run: (number: number) => number * 2
    } as const;
    const options = { functions: [twice], now: () => 1_000, node: 'a@b' };
    const rule = await compileRule('SELECT twice(qos) as q, timestamp, node FROM "a"', options);
    assert.deepEqual(rule.run().outputs, [{ q: 2, timestamp: 1_000, node: 'a@b' }]);
    await assert.rejects(compileRule('SELECT 1 FROM "a"', { functions: [{} as never] }), { code: 'FUNCTION_INVALID' });
    await assert.rejects(compileRule('SELECT'), { code: 'SQL_INVALID' });
  });

  it('refuses a statement that is not a string', async () => {
    for (const sql of [undefined, null, 5, {}]) {
      await assert.rejects(compileRule(sql as never), { code: 'RULE_INVALID', field: 'sql' });
      assert.throws(() => formatRule(sql as never), { code: 'RULE_INVALID', field: 'sql' });
    }
  });

  it('formats a statement', () => {
    assert.equal(formatRule('select  a.b as c from "t" where c>1'), 'SELECT a.b AS c FROM "t" WHERE c > 1');
  });

  it('lists the functions and the events', () => {
    const functions = ruleFunctions();
    assert.deepEqual(
      functions.find(({ name }) => name === 'upper'),
      {
        name: 'upper',
        family: 'text',
        params: ['string'],
        returns: 'string',
        about: functions.find(({ name }) => name === 'upper')?.about
      }
    );
    assert.ok(functions.every(({ about }) => /\.$/.test(about)));
    assert.equal(ruleEvents()[0].event, '$events/message_publish');
  });
});
