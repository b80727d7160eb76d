import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import type { PublishPacket, QoS } from '../../lib/packets/types.ts';
import { ack, cutOff, persistent, subscriber, summarize, timedBroker } from '../support/flows.ts';
import { rawClient } from '../support/raw-client.ts';
import { publish, subscribe } from '../support/wire.ts';

/** Creates an offline session that is subscribed to everything. */
async function away(broker: Broker, qos: QoS = 2): Promise<void> {
  await cutOff(broker, await subscriber(broker, { topic: '#', qos, retainHandling: 2 }, persistent('away')));
}

/** Returns the messages that an offline session receives when it reconnects; everything is acknowledged. */
async function waiting(broker: Broker): Promise<string[]> {
  const client = await rawClient(broker, persistent('away'));
  const got: string[] = [];
  for (let packets = await client.rest(); packets.length > 0; packets = await client.rest()) {
    for (const packet of packets) {
      if (packet.cmd === 'publish') {
        got.push(`${packet.topic} ${packet.payload}`);
        if (packet.qos > 0) client.send(ack(packet.qos === 1 ? 'puback' : 'pubrec', packet.messageId ?? 0));
      } else if (packet.cmd === 'pubrel') client.send(ack('pubcomp', packet.messageId));
    }
  }
  await cutOff(broker, client);
  return got;
}

describe('The backlog of a session', () => {
  it('sends the backlog in order, even through a small window', async () => {
    await using test = await timedBroker({ maxInflight: 2 });
    await away(test.broker);
    for (let n = 0; n < 10; n++) await test.broker.publish('a', String(n), { qos: ((n % 2) + 1) as QoS });
    assert.equal(test.broker.sessions.get('away').counters().mqueueLen, 10);
    assert.deepEqual(
      await waiting(test.broker),
      Array.from({ length: 10 }, (_, n) => `a ${n}`)
    );
    assert.equal(test.broker.sessions.get('away').counters().mqueueLen, 0);
  });

  it('limits and orders the backlog by the last zone of its client', async () => {
    const zones = { wide: {}, narrow: { maxMqueueLen: 2, mqueuePriorities: 'high=1' } };
    await using test = await timedBroker({ zones });
    const { broker } = test;
    await away(broker);
    for (let n = 1; n <= 4; n++) await broker.publish('a', String(n), { qos: 1 });
    const drops: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => drops.push(`${message.payload} ${reason}`));
    const client = await rawClient(broker, {
      ...persistent('away'),
      properties: { ...persistent('away').properties, receiveMaximum: 1 },
      meta: { zone: 'narrow' }
    });
    assert.deepEqual(drops, ['1 queue_full', '2 queue_full'], 'the excess is dropped');
    await cutOff(broker, client);
    await broker.publish('high', '5', { qos: 1 });
    assert.deepEqual(await waiting(broker), ['a 3', 'high 5', 'a 4'], '3 was in flight');
  });

  it('sends the backlog by priority', async () => {
    await using test = await timedBroker({ mqueuePriorities: 'high=10,low=2' });
    await away(test.broker);
    for (const topic of ['other', 'low', 'high', 'other', 'low', 'high'])
      await test.broker.publish(topic, 'x', { qos: 1 });
    assert.deepEqual(await waiting(test.broker), ['high x', 'high x', 'low x', 'low x', 'other x', 'other x']);
  });

  it('drops the oldest message of a full backlog, counts and reports it, and leaves the publisher’s acknowledgement unchanged', async () => {
    await using test = await timedBroker({ maxMqueueLen: 2 });
    const { broker } = test;
    await away(broker);
    const drops: string[] = [];
    broker.on('message.dropped', ({ message, reason, client }) =>
      drops.push(`${message.payload} ${reason} ${client?.clientId}`)
    );
    const publisher = await rawClient(broker);
    for (let n = 1; n <= 4; n++) publisher.send(publish('a', String(n), { qos: 1, messageId: n }));
    assert.deepEqual(summarize(await publisher.rest()), ['puback 1', 'puback 2', 'puback 3', 'puback 4']);
    assert.deepEqual(drops, ['1 queue_full away', '2 queue_full away']);
    assert.equal((await broker.publish('a', '5', { qos: 1 })).receivers, 1);
    assert.equal(broker.metrics.counter('delivery.dropped'), 3);
    assert.equal(broker.metrics.counter('delivery.dropped.queue_full'), 3);
    const { mqueueLen, mqueueDropped, maxMqueue } = broker.sessions.get('away').counters();
    assert.deepEqual({ mqueueLen, mqueueDropped, maxMqueue }, { mqueueLen: 2, mqueueDropped: 3, maxMqueue: 2 });
    assert.deepEqual(await waiting(broker), ['a 4', 'a 5']);
  });

  it('applies a limit to each priority', async () => {
    await using test = await timedBroker({ maxMqueueLen: 1, mqueuePriorities: { high: 1 } });
    await away(test.broker);
    for (const topic of ['high', 'a', 'b']) await test.broker.publish(topic, 'x', { qos: 1 });
    assert.deepEqual(await waiting(test.broker), ['high x', 'b x']);
  });

  it('refuses a message with more bytes than the backlog may contain', async () => {
    await using test = await timedBroker({ maxMqueueBytes: 1000 });
    await away(test.broker);
    assert.equal((await test.broker.publish('a', 'x'.repeat(2000), { qos: 1 })).receivers, 0);
    assert.equal((await test.broker.publish('a', 'y', { qos: 1 })).receivers, 1);
    assert.deepEqual(await waiting(test.broker), ['a y']);
  });

  it('queues QoS 0 for an offline session, or drops it as qos0_msg without mqueueStoreQos0', async () => {
    for (const mqueueStoreQos0 of [true, false]) {
      await using test = await timedBroker({ mqueueStoreQos0 });
      const { broker } = test;
      await away(broker);
      const publisher = await rawClient(broker);
      publisher.send(publish('a', 'zero'), publish('a', 'one', { qos: 1, messageId: 1 }));
      await publisher.rest();
      assert.equal(broker.metrics.counter('delivery.dropped.qos0_msg'), mqueueStoreQos0 ? 0 : 1);
      assert.deepEqual(await waiting(broker), mqueueStoreQos0 ? ['a zero', 'a one'] : ['a one']);
    }
  });

  it('decides by the granted QoS, not by the published one', async () => {
    await using test = await timedBroker({ mqueueStoreQos0: false });
    await away(test.broker, 0);
    await test.broker.publish('a', 'x', { qos: 2 });
    assert.deepEqual(await waiting(test.broker), []);
  });

  it('keeps the newest messages for a connected client that does not read, including QoS 0', async () => {
    await using test = await timedBroker({ maxMqueueLen: 3, mqueueStoreQos0: false, outputHighWaterMark: 1 });
    const { broker } = test;
    const client = await subscriber(broker, { topic: '#', qos: 1 });
    client.stream.pause();
    for (let n = 0; n < 2; n++) {
      await broker.publish('big', Buffer.alloc(300_000));
      await engineOf(broker).services.work.settled();
    }
    for (let n = 0; n < 6; n++) await broker.publish('a', String(n), { qos: (n % 2) as QoS });
    client.stream.resume();
    for (let n = 0; n < 2; n++) await client.next('publish');
    const packets = (await client.rest()) as PublishPacket[];
    assert.deepEqual(packets.map(({ payload }) => String(payload)).sort(), ['3', '4', '5']);
    assert.equal(broker.metrics.counter('delivery.dropped.queue_full'), 3);
  });

  it('drops the backlog with its session, and reports it', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    await away(broker);
    await broker.publish('a', 'x', { qos: 1 });
    const drops: string[] = [];
    broker.on('message.dropped', ({ reason }) => drops.push(reason));
    await clock.advance('3601s');
    assert.equal(broker.sessions.has('away'), false);
    assert.deepEqual(drops, ['session_terminated']);
  });

  it('keeps the retained messages that a new subscription did not receive before the connection ended', async () => {
    await using test = await timedBroker({ maxInflight: 1 });
    const { broker } = test;
    broker.hook('deliver', ({ message }) => message.topic !== 'r/3');
    for (let n = 1; n <= 4; n++) await broker.publish(`r/${n}`, 'x', { qos: 1, retain: true });
    await cutOff(broker, await subscriber(broker, { topic: 'r/+', qos: 1 }, persistent('away')));
    const client = await rawClient(broker, persistent('away'));
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 dup retain r/1=x']);
    client.send(ack('puback', 1));
    assert.deepEqual(summarize(await client.rest()), ['publish 2 q1 retain r/2=x']);
    client.send(ack('puback', 2));
    assert.deepEqual(summarize(await client.rest()), ['publish 3 q1 retain r/4=x']);
  });

  it('does not keep a retained message that was sent early because a newer one for its topic arrived', async () => {
    await using test = await timedBroker({ maxInflight: 1 });
    const { broker } = test;
    for (let n = 1; n <= 3; n++) await broker.publish(`r/${n}`, 'old', { qos: 1, retain: true });
    const first = await subscriber(broker, { topic: 'r/+', qos: 1 }, persistent('away'));
    await broker.publish('r/3', 'new', { qos: 1 });
    await cutOff(broker, first);
    const client = await rawClient(broker, persistent('away'));
    const got: string[] = [];
    for (let id = 1; id <= 5; id++) {
      got.push(...summarize(await client.rest()));
      client.send(ack('puback', id));
    }
    assert.deepEqual(got, [
      'publish 1 q1 dup retain r/1=old',
      'publish 2 q1 retain r/3=old',
      'publish 3 q1 r/3=new',
      'publish 4 q1 retain r/2=old'
    ]);
  });
});

describe('upgradeQos', () => {
  it('delivers at the higher of the published and the granted QoS: live, queued and retained', async () => {
    await using test = await timedBroker({ upgradeQos: true });
    const { broker } = test;
    await away(broker, 2);
    const low = await subscriber(broker, { topic: 'a', qos: 0 });
    const high = await subscriber(broker, { topic: 'a', qos: 2 });
    await broker.publish('a', 'x', { qos: 1, retain: true });
    assert.deepEqual(summarize(await low.rest()), ['publish 1 q1 a=x']);
    assert.deepEqual(summarize(await high.rest()), ['publish 1 q2 a=x']);
    const back = await rawClient(broker, persistent('away'));
    assert.deepEqual(summarize(await back.rest()), ['publish 1 q2 a=x']);
    back.send(subscribe(2, { topic: 'a', qos: 2 }));
    assert.deepEqual(summarize(await back.rest()), ['suback', 'publish 2 q2 retain a=x']);
    back.send(subscribe(3, { topic: 'a', qos: 0 }));
    assert.deepEqual(summarize(await back.rest()), ['suback', 'publish 3 q1 retain a=x']);
  });
});

describe('ignoreLoopDeliver', () => {
  it('sets No Local for every subscription, including those of 3.x clients', async () => {
    await using test = await timedBroker({ ignoreLoopDeliver: true });
    const client = await subscriber(test.broker, { topic: 'a', qos: 1 }, { version: 4 });
    const other = await subscriber(test.broker, { topic: 'a', qos: 1 }, { version: 4 });
    client.send(publish('a', 'zero'), publish('a', 'one', { qos: 1, messageId: 1, retain: true }));
    assert.deepEqual(summarize(await client.rest()), ['puback 1']);
    assert.deepEqual(summarize(await other.rest()), ['publish q0 a=zero', 'publish 1 q1 a=one']);
    client.send(subscribe(2, 'a'));
    assert.deepEqual(summarize(await client.rest()), ['suback']);
  });
});

describe('maxAwaitingRel', () => {
  it('refuses further messages with PUBREC 0x97, and accepts them when PUBREL has made room', async () => {
    await using test = await timedBroker({ maxAwaitingRel: 2 });
    const { broker } = test;
    const witness = await subscriber(broker, { topic: '#' });
    const client = await rawClient(broker, { clientId: 'c' });
    for (const id of [1, 2, 3]) client.send(publish('a', String(id), { qos: 2, messageId: id }));
    client.send(publish('a', '2', { qos: 2, messageId: 2, dup: true }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1', 'pubrec 2', 'pubrec 3 0x97', 'pubrec 2']);
    assert.equal(broker.metrics.counter('packets.publish.dropped'), 1);
    const { awaitingRel, maxAwaitingRel } = broker.sessions.get('c').counters();
    assert.deepEqual([awaitingRel, maxAwaitingRel], [2, 2]);
    client.send(ack('pubrel', 1), publish('a', '3', { qos: 2, messageId: 3 }));
    assert.deepEqual(summarize(await client.rest()), ['pubcomp 1', 'pubrec 3']);
    assert.deepEqual(summarize(await witness.rest()), ['publish q0 a=1', 'publish q0 a=2', 'publish q0 a=3']);
  });

  it('ends the connection of a 3.x client, which cannot receive a reason', async () => {
    await using test = await timedBroker({ maxAwaitingRel: 1 });
    const client = await rawClient(test.broker, { version: 4 });
    for (const id of [1, 2]) client.send(publish('a', '', { qos: 2, messageId: id }));
    assert.deepEqual(summarize(await client.refused(0)), ['pubrec 1']);
  });

  it('allows every packet id if it is unlimited', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker, { version: 4, clientId: 'c' });
    const burst = Buffer.alloc(65_535 * 7);
    for (let id = 1; id <= 65_535; id++) burst.set([0x34, 5, 0, 1, 0x61, id >> 8, id & 255], (id - 1) * 7);
    client.stream.removeAllListeners('data');
    let bytes = 0;
    await new Promise<void>((resolve) => {
      client.stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes === 65_535 * 4) resolve();
      });
      client.send(burst);
    });
    assert.equal(test.broker.sessions.get('c').counters().awaitingRel, 65_535);
  });
});

describe('awaitRelTimeout', () => {
  it('removes a packet id that received no PUBREL in this time, and not one that is newer or complete', async () => {
    await using test = await timedBroker({ awaitRelTimeout: '10s' });
    const { broker, clock } = test;
    const client = await rawClient(broker, { clientId: 'c' });
    const send = (id: number) => client.send(publish('a', '', { qos: 2, messageId: id }));
    send(1);
    send(2);
    await client.rest();
    client.send(ack('pubrel', 1));
    await client.rest();
    await clock.advance('6s');
    send(3);
    send(1);
    await client.rest();
    await clock.advance('5s');
    assert.equal(broker.sessions.get('c').counters().awaitingRel, 2);
    assert.equal(broker.metrics.counter('messages.qos2.expired'), 1);
    client.send(ack('pubrel', 2), ack('pubrel', 3), ack('pubrel', 1));
    assert.deepEqual(summarize(await client.rest()), ['pubcomp 2 0x92', 'pubcomp 3', 'pubcomp 1']);
  });
});

describe('retryInterval', () => {
  it('sends again to a connected 3.x client what has waited for an interval, and not what was just sent', async () => {
    await using test = await timedBroker({ retryInterval: '10s' });
    const { broker, clock } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 2 }, { version: 4 });
    await broker.publish('a', '1', { qos: 1 });
    await broker.publish('a', '2', { qos: 2 });
    await clock.advance('9s');
    await broker.publish('a', '3', { qos: 1 });
    await client.rest();
    client.send(ack('pubrec', 2));
    assert.deepEqual(summarize(await client.rest()), ['pubrel 2']);
    await clock.advance('2s');
    await client.nothing();
    await clock.advance('9s');
    assert.deepEqual(summarize(await client.rest()).sort(), [
      'publish 1 q1 dup a=1',
      'publish 3 q1 dup a=3',
      'pubrel 2'
    ]);
    client.send(ack('puback', 1), ack('puback', 3));
    await client.nothing();
    await clock.advance('10s');
    assert.deepEqual(summarize(await client.rest()), ['pubrel 2']);
    client.send(ack('pubcomp', 2));
    await clock.advance('1m');
    await client.nothing();
  });

  it('does not send again when keep alive is checked', async () => {
    await using test = await timedBroker({ retryInterval: '10m' });
    const { broker, clock } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 1 }, { version: 4, keepalive: 10 });
    await broker.publish('a', 'x', { qos: 1 });
    await client.rest();
    for (let n = 0; n < 10; n++) {
      await clock.advance('9s');
      await client.nothing();
    }
  });

  it('does not apply to MQTT 5.0', async () => {
    await using test = await timedBroker({ retryInterval: '1s' });
    const { broker, clock } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 1 });
    await broker.publish('a', 'x', { qos: 1 });
    await client.next('publish');
    await clock.advance('1m');
    await client.nothing();
  });
});
