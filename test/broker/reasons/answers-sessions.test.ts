import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ArrivalQuestion, type Broker, memoryStore } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';

/** The codes of the records of a client, the oldest first. */
function historyOf(broker: Broker, clientId: string): string[] {
  return broker.monitor.reasons
    .list({ clientId, limit: 100 })
    .entries.map(({ code }) => code)
    .reverse();
}

/** The codes of the causes of an answer, in order. */
async function codesOf(broker: Broker, question: ArrivalQuestion): Promise<string[]> {
  return (await broker.monitor.why(question)).causes.map(({ code }) => code);
}

describe('The history of a client', () => {
  it('keeps its connections, subscriptions and their ends while it floods topics without subscribers', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const flooding = await broker.connect({ clientId: 'flooding' });
    await flooding.subscribe('a');
    for (let number = 0; number < 100; number++) await flooding.publish(`none/${number}`, 'x', { qos: 1 });
    await flooding.unsubscribe('a');
    broker.sessions.get('flooding').kick();
    const history = historyOf(broker, 'flooding');
    assert.equal(history.length, 32);
    assert.deepEqual(history.slice(0, 2), ['connected', 'subscribed']);
    assert.deepEqual(history.slice(-2), ['unsubscribed', 'disconnected_kicked']);
    const again = await broker.connect({ clientId: 'flooding' });
    for (let number = 0; number < 100; number++) await again.publish(`none/${number}`, 'x', { qos: 1 });
    const others = historyOf(broker, 'flooding').filter((code) => code !== 'no_subscribers');
    const lost = ['unsubscribed', 'disconnected_kicked'];
    assert.deepEqual(others, ['connected', 'subscribed', ...lost, 'connected']);
    await again.disconnect();
  });
});

describe('Causes in the session of the receiver', () => {
  for (const store of [undefined, memoryStore()]) {
    const kind = store === undefined ? 'in memory' : 'in a store';
    it(`names the end of a session that discarded a message which waited ${kind}, asked for the time of the message`, async () => {
      await using kit = await createTestBroker(store === undefined ? {} : { store });
      const { broker, clock } = kit;
      const connect = (clientId: string, clean = false) => broker.connect({ clientId, clean, sessionExpiry: 60 });
      for (const clientId of ['expires', 'discarded', 'read']) {
        const client = await connect(clientId);
        await client.subscribe('a', { qos: 1 });
        await client.disconnect();
      }
      const later = await connect('later');
      await later.subscribe('a', { qos: 1 });
      await clock.advance('10s');
      await broker.publish('a', 'x', { qos: 1 });
      const at = clock.now();
      await clock.advance('10s');
      await (await connect('read')).disconnect(); // it gets the message
      await (await connect('discarded', true)).disconnect();
      await later.disconnect();
      await clock.advance('10m');
      assert.equal((await codesOf(broker, { topic: 'a', clientId: 'expires', at }))[0], 'session_ended');
      assert.equal((await codesOf(broker, { topic: 'a', clientId: 'discarded', at }))[0], 'session_ended');
      for (const clientId of ['read', 'later'])
        assert.ok(!(await codesOf(broker, { topic: 'a', clientId, at })).includes('session_ended'), clientId);
      for (const clientId of ['expires', 'discarded'])
        assert.ok(!(await codesOf(broker, { topic: 'b', clientId, at })).includes('session_ended'), clientId);
    });
  }

  it('leaves out the end of a session before the message if the client has connected and subscribed again', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const gone = await broker.connect({ clientId: 'c' });
    await gone.subscribe(['plant/a', 'plant/sensor']);
    await gone.disconnect();
    await clock.advance('3s');
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe(['plant/a', 'plant/sensor'], { qos: 1 });
    await clock.advance('3s');
    for (const topic of ['plant/a', 'plant/sensors']) await broker.publish(topic, 'x', { qos: 1 });
    assert.deepEqual(await codesOf(broker, { topic: 'plant/sensors', clientId: 'c' }), ['no_subscriber']);
    const delivered = await broker.monitor.why({ topic: 'plant/a', clientId: 'c' });
    assert.deepEqual([delivered.isComplete, delivered.causes], [true, []]);
    await client.disconnect();
  });
});

describe('The order of causes in the session of the receiver', () => {
  it('names a lost right before a subscription that is later than the first message', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await broker.publish('a', 'x', { qos: 1 });
    await clock.advance('2s');
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe('a', { qos: 1 });
    await broker.publish('a', 'x', { qos: 1 });
    await clock.advance('2s');
    await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: 'a' });
    await broker.publish('a', 'x', { qos: 1 });
    assert.equal((await codesOf(broker, { topic: 'a', clientId: 'panel' }))[0], 'right_withdrawn');
    const first = await codesOf(broker, { topic: 'a', clientId: 'panel', at: clock.now() - 4_000 });
    assert.equal(first[0], 'subscribed_later');
  });

  it('names messages that were dropped from a full queue, and a ban, before those that wait', async () => {
    await using kit = await createTestBroker({ maxMqueueLen: 1 });
    const { broker, clock } = kit;
    for (const clientId of ['full', 'banned']) {
      const client = await broker.connect({ clientId, clean: false, sessionExpiry: 600 });
      await client.subscribe(clientId, { qos: 1 });
      await client.disconnect();
    }
    for (const topic of ['full', 'full', 'banned']) await broker.publish(topic, 'x', { qos: 1 });
    await broker.access.banned.create({ kind: 'clientId', who: 'banned' });
    await assert.rejects(broker.connect({ clientId: 'banned', clean: false, sessionExpiry: 600 }));
    await clock.advance('1m');
    for (const [clientId, code] of [
      ['full', 'queue_full'],
      ['banned', 'banned']
    ])
      assert.deepEqual((await codesOf(broker, { topic: clientId, clientId })).slice(0, 2), [code, 'offline_queued']);
  });

  it('names a message that has expired in the queue of a client that is still away', async () => {
    for (const store of [undefined, memoryStore()]) {
      await using kit = await createTestBroker(store === undefined ? {} : { store });
      const { broker, clock } = kit;
      const client = await broker.connect({ clientId: 'c', clean: false, sessionExpiry: 600 });
      await client.subscribe('a', { qos: 1 });
      await client.disconnect();
      await broker.publish('a', 'x', { qos: 1, properties: { messageExpiryInterval: 5 } });
      const at = clock.now();
      const [waits] = await codesOf(broker, { topic: 'a', clientId: 'c' });
      assert.equal(waits, 'offline_queued');
      await clock.advance('1m');
      for (const question of [{}, { at }]) {
        const codes = await codesOf(broker, { topic: 'a', clientId: 'c', ...question });
        assert.equal(codes[0], 'expired');
        assert.ok(!codes.includes('offline_queued'));
      }
    }
  });

  it('names the filter that the client had at the time of the message, and has corrected since', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('boiler/Temp');
    await clock.advance(1_500); // a whole minute is approximate
    await broker.publish('boiler/temp', 'x');
    const at = clock.now();
    await clock.advance('10s');
    await client.unsubscribe('boiler/Temp');
    await client.subscribe('boiler/temp', { qos: 1 });
    const { causes } = await broker.monitor.why({ topic: 'boiler/temp', clientId: 'c', at });
    assert.equal(
      causes[0].text,
      'Filter "boiler/Temp" of client "c" differs from topic "boiler/temp" in upper and lower case: it had this filter at that time.'
    );
    assert.ok(!causes.some(({ code }) => code === 'retained_missing'));
  });
});

describe('The limits of the broker as causes for a receiver', () => {
  it('names the memory for QoS 0 messages that were not queued because it was short', async () => {
    let used = 0;
    await using kit = await createTestBroker({ memoryHighWatermark: '100MB', memoryUsage: () => used });
    const { broker, clock } = kit;
    broker.on('error', () => undefined);
    const client = await broker.connect({ clientId: 'c', clean: false, sessionExpiry: 600 });
    await client.subscribe(['waits', 'new'], { qos: 0 });
    await client.disconnect();
    await broker.publish('waits', 'x');
    used = 105_000_000;
    await clock.advance('2s');
    await broker.publish('new', 'x');
    for (const topic of ['waits', 'new']) {
      const [{ code, text }] = (await broker.monitor.why({ topic, clientId: 'c' })).causes;
      assert.equal(code, 'memory_watermark', topic);
      assert.match(text, /: QoS 0 messages are not queued while memory is above `memoryHighWatermark`\.$/);
    }
    used = 0;
    await clock.advance('2s');
  });

  it('names the option that limits how long a session is kept', async () => {
    await using kit = await createTestBroker({ maxSessionExpiryInterval: '3s' });
    const { broker, clock } = kit;
    for (const [clientId, sessionExpiry] of [
      ['limited', 600],
      ['short', 2]
    ] as const) {
      const client = await broker.connect({ clientId, sessionExpiry });
      await client.subscribe('a', { qos: 1 });
      await client.disconnect();
    }
    await clock.advance('10s');
    const detailOf = async (clientId: string) =>
      (await broker.monitor.why({ topic: 'a', clientId })).causes.find(({ code }) => code === 'session_ended')?.text;
    assert.match(`${await detailOf('limited')}`, /The option `maxSessionExpiryInterval` of the zone allows 3 s\.$/);
    assert.match(`${await detailOf('short')}`, /The session expiry interval passed after the disconnect\.$/);
  });
});
