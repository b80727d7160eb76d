import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../../lib/broker/broker.ts';
import type { ArrivalQuestion, Broker, CauseCode } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';

/** The codes of the causes, the nearest first. */
async function codesOf(broker: Broker, question: ArrivalQuestion): Promise<CauseCode[]> {
  const { causes } = await broker.monitor.why(question);
  return causes.map(({ code }) => code);
}

describe('broker.monitor.why', () => {
  it('answers that no subscription matched, and for which client', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const device = await broker.connect({ clientId: 'device' });
    await device.publish('plant/1', 'x', { qos: 1 });
    const { isComplete, causes } = await broker.monitor.why({ topic: 'plant/1', publisher: 'device' });
    assert.equal(isComplete, true);
    assert.deepEqual(causes, [
      {
        code: 'no_subscriber',
        kind: 'recorded',
        at: kit.clock.now(),
        count: 1,
        text: 'No subscription matched topic "plant/1".',
        evidence: { topic: 'plant/1', publisher: 'device', qos: 1 },
        remedy: 'Subscribe to the topic before the message is published, or retain the message.'
      }
    ]);
    assert.deepEqual(await codesOf(broker, { topic: 'plant/2', publisher: 'device' }), []);
    assert.deepEqual(await codesOf(broker, { topic: 'plant/1', publisher: 'other' }), ['publisher_unknown']);
    await device.disconnect();
  });

  it('answers that the client subscribed after the message was published', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const at = kit.clock.now();
    await broker.publish('plant/1', 'x');
    await kit.clock.advance('5s');
    const late = await broker.connect({ clientId: 'late' });
    await late.subscribe('plant/+');
    assert.deepEqual(await codesOf(broker, { topic: 'plant/1', clientId: 'late', at }), [
      'subscribed_later',
      'retained_missing',
      'no_subscriber'
    ]);
    const later = kit.clock.now() + 1_000;
    assert.ok(!(await codesOf(broker, { topic: 'plant/1', clientId: 'late', at: later })).includes('subscribed_later'));
    await late.disconnect();
  });

  it('answers that the queue was full, that the session ended, and which connection took over', async () => {
    await using kit = await createTestBroker({ maxMqueueLen: 1 });
    const { broker } = kit;
    const first = await broker.connect({ clientId: 'c', sessionExpiry: 60 });
    await first.subscribe('a/#', { qos: 1 });
    await first.disconnect();
    await broker.publish('a/1', 'x', { qos: 1 });
    await broker.publish('a/2', 'x', { qos: 1 });
    assert.deepEqual(await codesOf(broker, { topic: 'a/1', clientId: 'c' }), ['queue_full']);
    await kit.clock.advance('61s');
    const { causes } = await broker.monitor.why({ topic: 'a/3', clientId: 'c' });
    assert.match(
      causes.find(({ code }) => code === 'session_ended')?.text ?? '',
      /^The session of client "c" ended, .*The session expiry interval passed/
    );
    const second = await broker.connect({ clientId: 'c' });
    const third = await broker.connect({ clientId: 'c' });
    assert.ok((await codesOf(broker, { topic: 'a/3', clientId: 'c' })).includes('taken_over'));
    await third.disconnect();
    await second.disconnect().catch(() => undefined);
  });

  it('does not name the end of a connection after which the client connected again', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const one = await broker.connect({ clientId: 'c' });
    const two = await broker.connect({ clientId: 'c' });
    await kit.clock.advance('1s');
    const question = { topic: 't', clientId: 'c', at: kit.clock.now() };
    assert.deepEqual(await codesOf(broker, question), ['taken_over', 'no_subscriber'], 'its subscriptions are gone');
    await two.subscribe('t', { qos: 1 });
    assert.deepEqual(await codesOf(broker, question), []);
    await two.disconnect();
    await one.disconnect().catch(() => undefined);
  });

  it('says that records are missing where they are, and never guesses', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const device = await broker.connect({ clientId: 'device' });
    const first = kit.clock.now();
    for (let number = 0; number < 40; number++) {
      await kit.clock.advance('1s');
      await device.publish(`t/${number}`, 'x');
      await device.publish('flush', 'x', { qos: 1 });
    }
    const ask = async (at: number) => (await broker.monitor.why({ topic: 't/0', publisher: 'device', at })).isComplete;
    assert.deepEqual([await ask(first), await ask(kit.clock.now())], [false, true]);
    assert.equal(await ask(first - 60_000), false, 'the broker did not run');
    await device.disconnect();
  });

  it('records nothing with reasons: false, and says that the answer is not complete', async () => {
    await using kit = await createTestBroker({ reasons: false });
    await kit.broker.publish('t', 'x');
    assert.deepEqual(await kit.broker.monitor.why({ topic: 't' }), { isComplete: false, causes: [] });
    assert.equal(kit.broker.monitor.drops.size, 0);
  });

  it('refuses questions that it cannot answer', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await assert.rejects(broker.monitor.why({ topic: 'a/#' }), { code: 'TOPIC_NAME_INVALID' });
    await assert.rejects(broker.monitor.why({} as never), { code: 'TOPIC_NAME_INVALID' });
    await assert.rejects(broker.monitor.why({ topic: 't', client: 'c' } as never), { code: 'OPTION_UNKNOWN' });
    await assert.rejects(broker.monitor.why({ topic: 't', at: Number.NaN }), { code: 'OPTION_INVALID' });
  });

  it('does not call an answer complete if it examined only a part of the connections without a client id', async () => {
    await using kit = await createTestBroker();
    const { reasons } = engineOf(kit.broker).services;
    const isComplete = async () =>
      (await kit.broker.monitor.why({ topic: 't', clientId: 'never connected' })).isComplete;
    for (let number = 0; number < 11; number++) {
      assert.equal(await isComplete(), true, `${number} connections`);
      reasons.add('connection_limit', { address: `192.0.2.${number}`, detail: 'too many' });
    }
    assert.equal(await isComplete(), false);
  });
});
