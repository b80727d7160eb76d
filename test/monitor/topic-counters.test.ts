import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

describe('Counters of topic filters', () => {
  it('counts messages by QoS and direction, with the rates of the last ten seconds', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const { topicCounters } = broker.monitor;
    topicCounters.create('a/+');
    topicCounters.create('#');
    const receiver = await kit.connect({ clientId: 'r' });
    await receiver.subscribe('a/1', { qos: 1 });
    const device = await kit.connect({ clientId: 'd' });
    for (const qos of [0, 1, 2] as const) await device.publish('a/1', 'x', { qos });
    await device.publish('a/2', 'x', { qos: 1 });
    await device.publish('b', 'x', { qos: 1 });
    await clock.advance(10_000);
    const record = topicCounters.get('a/+');
    assert.deepEqual(record?.counts, {
      in: 4,
      out: 3,
      dropped: 1,
      'qos0.in': 1,
      'qos0.out': 1,
      'qos1.in': 2,
      'qos1.out': 2,
      'qos2.in': 1,
      'qos2.out': 0
    });
    assert.equal(record?.rates.in, 0.4);
    assert.deepEqual(
      topicCounters.list().map(({ filter, counts }) => [filter, counts.in, counts.dropped]),
      [
        ['a/+', 4, 1],
        ['#', 5, 2]
      ]
    );
    await clock.advance(10_000);
    assert.equal(topicCounters.get('a/+')?.rates.in, 0);
  });

  it('takes only the topics that a filter matches from the fast path', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const { routing, publishing, services } = engineOf(broker);
    const { topicCounters } = broker.monitor;
    topicCounters.create('a/#');
    assert.deepEqual(
      [routing.of('a/b').isForRuns, routing.of('b').isForRuns, publishing.hooks.isFastPathOpen],
      [false, true, true]
    );
    topicCounters.create('b');
    assert.equal(topicCounters.delete('a/#'), true);
    assert.equal(topicCounters.delete('a/#'), false);
    assert.deepEqual([routing.of('a/b').isForRuns, routing.of('b').isForRuns], [true, false]);
    assert.equal(services.events.heard['message.publish'], true);
    topicCounters.clear();
    assert.equal(services.events.heard['message.publish'], false);
    assert.deepEqual(topicCounters.list(), []);
  });

  it('leaves no listeners for a filter that could not be observed', async (t) => {
    await using kit = await createTestBroker();
    const { topicCounters } = kit.broker.monitor;
    const { routing, services } = engineOf(kit.broker);
    const observe = t.mock.method(routing, 'watch', () => {
      throw new Error('no room');
    });
    assert.throws(() => topicCounters.create('a'), /no room/);
    observe.mock.restore();
    assert.deepEqual([topicCounters.list(), services.events.heard['message.publish']], [[], false]);
    topicCounters.create('a');
    await kit.broker.publish('a', 'x');
    assert.equal(topicCounters.get('a')?.counts.in, 1, 'a message is counted once');
    topicCounters.delete('a');
    assert.equal(services.events.heard['message.publish'], false);
  });

  it('refuses invalid and shared filters, those that are counted already, and more than 512', async () => {
    await using kit = await createTestBroker();
    const { topicCounters } = kit.broker.monitor;
    for (const filter of ['a/#/b', '', '$share/g/a'])
      assert.throws(() => topicCounters.create(filter), { code: 'TOPIC_FILTER_INVALID' });
    for (let number = 0; number < 512; number++) topicCounters.create(`t/${number}`);
    assert.throws(() => topicCounters.create('t/0'), { code: 'RECORD_EXISTS' });
    assert.throws(() => topicCounters.create('u'), { code: 'TOO_MANY_TOPICS' });
  });
});
