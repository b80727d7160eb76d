import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ArrivalQuestion, Broker, Cause } from '../../../lib/index.ts';
import { FakeTarget, RESOURCE, ruleKit, TO_FAKE } from '../../rules/support.ts';

/** The texts of the causes of an answer, in order. */
async function textsOf(broker: Broker, question: ArrivalQuestion): Promise<string[]> {
  return (await broker.monitor.why(question)).causes.map(({ text }) => text);
}

/** The first cause of an answer. */
async function firstOf(broker: Broker, question: ArrivalQuestion): Promise<Cause> {
  const { causes } = await broker.monitor.why(question);
  return causes[0] ?? assert.fail('there is no cause');
}

describe('A target of a rule that takes nothing', () => {
  it('names the outputs of a rule that wait in the queue of a resource, until its target has taken them', async () => {
    const target = new FakeTarget();
    target.onSend = () => {
      throw new Error('connect ECONNREFUSED 127.0.0.1:1');
    };
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { broker, clock } = kit;
    await broker.rules.resources.create(RESOURCE);
    await broker.rules.create({ id: 'up', sql: 'SELECT * FROM "a/+"', actions: [TO_FAKE] });
    await broker.rules.create({ id: 'other', sql: 'SELECT * FROM "b"', actions: [TO_FAKE] });
    const published = clock.now();
    await broker.publish('a/1', 'x');
    await clock.advance('10m');
    await broker.publish('a/1', 'y');
    await clock.advance('10s');
    const { code, kind, count, text, evidence } = await firstOf(broker, { topic: 'a/1', rule: 'up' });
    assert.deepEqual([code, kind, count, evidence.waiting], ['target_refused', 'derived', 2, 2]);
    assert.equal(
      text,
      'The target of an action of rule "up" has not accepted the message yet: ' +
        '2 outputs wait in the queue of resource "r": connect ECONNREFUSED 127.0.0.1:1.'
    );
    assert.equal((await firstOf(broker, { topic: 'a/1', rule: 'up', at: published + 7 })).count, 1);
    const between = { topic: 'a/1', rule: 'up', at: published + 100_007 };
    assert.deepEqual(await textsOf(broker, between), [], 'outputs of another time are not those of this message');
    assert.deepEqual(await textsOf(broker, { topic: 'b', rule: 'other' }), [], 'outputs of another rule');
    target.onSend = () => undefined;
    await clock.advance('10m');
    assert.deepEqual(await textsOf(broker, { topic: 'a/1', rule: 'up' }), []);
  });

  it('names the outputs of a rule that wait in the queue of a sink', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    let isDown = true;
    const sink = {
      name: 'down',
      about: 'Fails.',
      open: () => ({
        send() {
          if (isDown) throw new Error('the pump is off');
        },
        close: () => undefined
      })
    };
    await broker.streams.createSink(sink);
    await broker.rules.create({ id: 'up', sql: 'SELECT * FROM "a"', actions: [{ name: 'down', params: {} }] });
    await broker.publish('a', 'x');
    await clock.advance('1s');
    const { code, text } = await firstOf(broker, { topic: 'a', rule: 'up' });
    assert.equal(code, 'target_refused');
    assert.match(text, /yet: 1 output waits in the queue of action down_\d+ of rule up: the pump is off\.$/);
    isDown = false;
    await clock.advance('10m');
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'up' }), []);
  });
});
