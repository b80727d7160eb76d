import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';

describe('The ranking of slow subscriptions', () => {
  it('lists the clients and topics whose messages were acknowledged late, the slowest first', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const { slowSubscriptions } = broker.monitor;
    slowSubscriptions.start({ thresholdMs: 100 });
    const slow = await rawClient(broker, { clientId: 'slow' });
    slow.send({
      cmd: 'subscribe',
      messageId: 1,
      subscriptions: [{ topic: 'a/#', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
    } as never);
    await slow.next('suback');
    for (const [topic, ms] of [
      ['a/1', 150],
      ['a/2', 400],
      ['a/1', 250],
      ['a/3', 50]
    ] as const) {
      await broker.publish(topic, 'x', { qos: 1 });
      const { messageId } = await slow.next('publish');
      await clock.advance(ms);
      const acked = broker.nextEvent('message.acked');
      slow.send({ cmd: 'puback', messageId } as never);
      await acked;
    }
    const now = clock.now();
    assert.deepEqual(slowSubscriptions.list(), [
      { clientId: 'slow', topic: 'a/2', latencyMs: 400, count: 1, at: now - 300 },
      { clientId: 'slow', topic: 'a/1', latencyMs: 250, count: 2, at: now - 50 }
    ]);
    await clock.advance(300_000 - 40);
    assert.deepEqual(slowSubscriptions.list(), []);
  });

  it('leaves out messages that were published before the client connected, and retained ones', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const { slowSubscriptions } = broker.monitor;
    slowSubscriptions.start({ thresholdMs: 100 });
    const away = await kit.connect({ clientId: 'away', sessionExpiry: 600 });
    await away.subscribe('a/#', { qos: 1 });
    await away.disconnect();
    await broker.publish('a/1', 'x', { qos: 1 });
    await broker.publish('a/kept', 'x', { qos: 1, retain: true });
    await clock.advance(5_000);
    const back = await kit.connect({ clientId: 'away', sessionExpiry: 600, clean: false });
    await clock.advance(0);
    await back.subscribe('a/kept');
    assert.deepEqual(slowSubscriptions.list(), []);
  });

  it('limits the number of entries, and gives the last place to a slower subscription', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const { slowSubscriptions } = broker.monitor;
    slowSubscriptions.start({ thresholdMs: 10, limit: 2 });
    const slow = await rawClient(broker, { clientId: 'slow' });
    slow.send({
      cmd: 'subscribe',
      messageId: 1,
      subscriptions: [{ topic: '#', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
    } as never);
    await slow.next('suback');
    for (const ms of [30, 20, 40, 10]) {
      await broker.publish(`t/${ms}`, 'x', { qos: 1 });
      const { messageId } = await slow.next('publish');
      await clock.advance(ms);
      const acked = broker.nextEvent('message.acked');
      slow.send({ cmd: 'puback', messageId } as never);
      await acked;
    }
    const latencies = () => slowSubscriptions.list().map(({ latencyMs }) => latencyMs);
    assert.deepEqual(latencies(), [40, 30]);
    slowSubscriptions.start({ thresholdMs: 35 });
    assert.deepEqual(latencies(), [40]);
    assert.throws(() => slowSubscriptions.start({ limit: 0 }), { code: 'OPTION_INVALID' });
  });

  it('costs nothing while it is off, and leaves the fast path open', async () => {
    await using kit = await createTestBroker();
    const { services, publishing, routing } = engineOf(kit.broker);
    const { slowSubscriptions } = kit.broker.monitor;
    assert.deepEqual([slowSubscriptions.settings, services.events.heard['message.acked']], [undefined, false]);
    slowSubscriptions.start();
    assert.deepEqual([publishing.hooks.isFastPathOpen, routing.of('a').isForRuns], [true, true]);
    assert.equal(services.events.heard['message.acked'], true);
    slowSubscriptions.stop();
    assert.deepEqual([slowSubscriptions.settings, services.events.heard['message.acked']], [undefined, false]);
  });
});
