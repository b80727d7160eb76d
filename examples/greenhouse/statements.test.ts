// Tests of the statements alone, without a broker.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRule } from 'embermq/rules';
import { compileStreamRule } from 'embermq/streams';
import { ALARM_SQL, meanSql, NOTIFY_SQL, TEMPERATURES } from './statements.ts';

describe('the rule for alarms', () => {
  it('selects temperatures above 35 degrees, with the greenhouse and the device', async () => {
    const rule = await compileRule(ALARM_SQL);
    const run = (celsius: number) =>
      rule.run({
        topic: 'greenhouses/north/north-1/temperature',
        clientid: 'north-1',
        payload: JSON.stringify({ celsius })
      }).outputs;
    assert.deepEqual(run(35), []);
    assert.deepEqual(run(36), [{ greenhouse: 'north', device: 'north-1', celsius: 36 }]);
  });
});

describe('the rule for notifications', () => {
  it('passes the alarm on', async () => {
    const alarm = { greenhouse: 'north', device: 'north-1', celsius: 36 };
    const { outputs } = (await compileRule(NOTIFY_SQL)).run({
      topic: 'greenhouses/north/alarm',
      payload: JSON.stringify(alarm)
    });
    assert.deepEqual(outputs, [alarm]);
  });
});

describe('the stream rule', () => {
  it('emits the mean of each greenhouse at the end of each minute', async () => {
    const rule = await compileStreamRule(meanSql(60), { definitions: [TEMPERATURES] });
    const row = (greenhouse: string, celsius: number, at: number) => ({
      stream: 'temperatures',
      values: { celsius },
      meta: { topic: `greenhouses/${greenhouse}/${greenhouse}-1/temperature` },
      at
    });
    const { outputs } = rule.run([row('north', 20, 1_000), row('south', 30, 2_000), row('north', 22, 59_000)]);
    assert.deepEqual(outputs, [
      {
        at: 60_000,
        rows: [
          { greenhouse: 'north', celsius: 21, count: 2 },
          { greenhouse: 'south', celsius: 30, count: 1 }
        ]
      }
    ]);
  });
});
