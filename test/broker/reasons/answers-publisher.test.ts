import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { summaryOf } from './summary.ts';

describe('The publisher of a question', () => {
  it('says that a publisher has never connected, and since when that would be known', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const began = new Date(clock.now()).toISOString();
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe('a', { qos: 1 });
    await using sensor = await kit.connect({ clientId: 'sensor' });
    await clock.advance('1m');
    const question = { topic: 'a', clientId: 'panel' };
    const text = `Client "ghost" is not connected, and no CONNECT of it is recorded: records begin at ${began}.`;
    const found = await summaryOf(broker, { ...question, publisher: 'ghost' });
    assert.deepEqual(found, [['publisher_unknown', text, undefined]]);
    for (const publisher of ['sensor', '', undefined])
      assert.deepEqual(await summaryOf(broker, { ...question, publisher }), [], publisher);
    const { knownSince } = await broker.monitor.why(question);
    assert.equal(new Date(knownSince ?? 0).toISOString(), began);
    await sensor.disconnect();
    assert.deepEqual(await summaryOf(broker, { ...question, publisher: 'sensor' }), [], 'it was connected');
  });

  it('does not claim that a publisher has never connected if nothing is recorded, or at a time before the broker began', async () => {
    for (const reasons of [undefined, false] as const) {
      await using kit = await createTestBroker(reasons === undefined ? {} : { reasons });
      const { broker, clock } = kit;
      await using panel = await kit.connect({ clientId: 'panel' });
      await panel.subscribe('a', { qos: 1 });
      const at = reasons === false ? clock.now() : clock.now() - 600_000;
      const { causes, isComplete } = await broker.monitor.why({
        topic: 'a',
        clientId: 'panel',
        publisher: 'ghost',
        at
      });
      assert.ok(!causes.some(({ code }) => code === 'publisher_unknown'));
      assert.equal(isComplete, false);
    }
  });
});
