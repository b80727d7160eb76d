import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { STOPPED, type StreamRuleCode, stateIn, stateText } from '../../lib/streams/rule-states.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const RULE = { sql: 'SELECT * FROM demo', actions: [() => undefined] };

describe('The state of a stream rule', () => {
  it('tells by a code whether a stream rule runs, was stopped, has failed or waits for its schedule', async () => {
    let isBroken = true;
    const open = () => {
      if (isBroken) throw new Error('canceled manually'); // as if a person had stopped it
      return { send: () => undefined, close: () => undefined };
    };
    const sinks = [{ name: 'own', about: 'Opens unless it is broken.', open }];
    await using kit = await createTestBroker({ streams: { sinks } });
    const { streams } = kit.broker;
    kit.broker.on('error', () => undefined);
    const state = async (id: string) => {
      const { code, text } = await streams.rules.status(id);
      return [code, text];
    };
    await streams.create('CREATE STREAM demo () WITH (DATASOURCE="a", FORMAT="json")');
    await streams.rules.create({ ...RULE, id: 'r', triggered: false });
    assert.deepEqual(await state('r'), ['stopped', 'Stopped: canceled manually.']);
    await streams.rules.start('r');
    assert.deepEqual(await state('r'), ['running', 'Running']);
    await streams.rules.stop('r');
    assert.deepEqual(await state('r'), ['stopped', 'Stopped: canceled manually.']);

    await streams.rules.create({ ...RULE, id: 'own', actions: [{ own: {} }], triggered: false });
    await assert.rejects(streams.rules.start('own'));
    assert.deepEqual(await state('own'), ['failed', 'Stopped: canceled manually.']);
    isBroken = false;
    await streams.rules.start('own');
    assert.equal((await state('own'))[0], 'running');

    await streams.rules.create({ ...RULE, id: 'later', options: { cron: '0 12 * * *', duration: '1h' } });
    assert.deepEqual(await state('later'), ['waiting', 'Stopped: waiting for next schedule.']);
    await streams.rules.create({ ...RULE, id: 'once', options: { duration: '1h' } });
    assert.equal((await state('once'))[0], 'running');
    await kit.clock.advance('1h');
    assert.deepEqual(await state('once'), ['over', 'Stopped: schedule terminated.']);

    await streams.stop();
    await streams.start();
    assert.equal((await state('own'))[0], 'running');
  });

  it('finds the code of a stream rule in the text of a list', () => {
    for (const [code, reason] of Object.entries(STOPPED) as [StreamRuleCode, string][])
      assert.deepEqual(stateIn(stateText(code, reason)), { code, reason });
    assert.deepEqual(stateIn(stateText('running', '')), { code: 'running', reason: '' });
    const error = 'Stopped: a <b>"disk"</b>\nis full.';
    assert.deepEqual(stateIn(stateText('failed', error)), { code: 'failed', reason: error });
  });
});
