import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import type { Properties, PublishPacket, QoS, UserProperty } from '../../lib/packets/types.ts';
import { ack, cutOff, onlyPublish, persistent, subscriber, summarize, timedBroker } from '../support/flows.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { publish, subscribe } from '../support/wire.ts';

/** Subscribes, and returns the packets that follow the SUBACK. */
async function handedOut(client: RawClient, ...args: Parameters<typeof subscribe>): Promise<string[]> {
  client.send(subscribe(...args));
  const packets = await client.rest();
  assert.equal(packets[0]?.cmd, 'suback');
  return summarize(packets.slice(1));
}

/** Sends bytes from a client, and checks the reason code of the close and that no subscriber receives anything. */
async function refuses(broker: Broker, bytes: Buffer | string, code: number): Promise<void> {
  const witness = await subscriber(broker, { topic: '#', qos: 2 });
  const client = await rawClient(broker);
  client.send(typeof bytes === 'string' ? Buffer.from(bytes.replaceAll(' ', ''), 'hex') : bytes);
  assert.deepEqual(await client.refused(code), []);
  await witness.nothing();
  await cutOff(broker, witness);
}

/** Encodes a PUBLISH of QoS 0 to "a" with this property block. */
function withProperties(hex: string): Buffer {
  const block = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  return Buffer.from([0x30, 4 + block.length, 0, 1, 0x61, block.length, ...block]);
}

describe('PUBLISH: flags', () => {
  it('[MQTT-3.3.1-1] sets DUP only when it sends a message again', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const before = await subscriber(broker, { topic: 'a', qos: 1 }, persistent('c'));
    await broker.publish('a', 'x', { qos: 1 });
    assert.deepEqual(summarize(await before.rest()), ['publish 1 q1 a=x']);
    await cutOff(broker, before);
    const after = await rawClient(broker, persistent('c'));
    assert.deepEqual(summarize(await after.rest()), ['publish 1 q1 dup a=x']);
  });

  it('[MQTT-3.3.1-2] closes with 0x82 for DUP with QoS 0', async () => {
    await using test = await timedBroker();
    await refuses(test.broker, '38 04 0001 61 00', 0x82);
    await refuses(test.broker, '39 04 0001 61 00', 0x82);
  });

  it('[MQTT-3.3.1-3] does not pass on the DUP of the publisher', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const receivers = [
      await subscriber(broker, { topic: 'a', qos: 2 }),
      await subscriber(broker, { topic: 'a', qos: 0 }),
      await subscriber(broker, { topic: 'a', qos: 2 }, { version: 4 })
    ];
    const client = await rawClient(broker);
    client.send(publish('a', 'one', { qos: 1, messageId: 1, dup: true }));
    client.send(publish('a', 'two', { qos: 2, messageId: 2, dup: true }));
    await client.rest();
    for (const receiver of receivers) {
      const packets = (await receiver.rest()) as PublishPacket[];
      assert.deepEqual(
        packets.map(({ dup, payload }) => [String(payload), dup]),
        [
          ['one', false],
          ['two', false]
        ]
      );
    }
  });

  it('[MQTT-3.3.1-4] closes with 0x81 for QoS 3', async () => {
    await using test = await timedBroker();
    await refuses(test.broker, '36 06 0001 61 0001 00', 0x81);
    await refuses(test.broker, '3e 06 0001 61 0001 00', 0x81);
  });

  it('[MQTT-2.2.1-2] sends QoS 0 without a packet id, regardless of the QoS with which the message was published', async () => {
    await using test = await timedBroker();
    const receiver = await subscriber(test.broker, { topic: 'a', qos: 0 });
    const client = await rawClient(test.broker);
    client.send(publish('a', 'x', { qos: 2, messageId: 9 }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 9']);
    assert.deepEqual(summarize(await receiver.rest()), ['publish q0 a=x']);
  });

  it('[MQTT-2.2.1-3] closes with 0x82 for packet id 0', async () => {
    await using test = await timedBroker();
    await refuses(test.broker, '32 06 0001 61 0000 00', 0x82);
    await refuses(test.broker, '34 06 0001 61 0000 00', 0x82);
  });
});

describe('PUBLISH: retained messages', () => {
  it('[MQTT-3.3.1-5] replaces the retained message of a topic', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(publish('a', 'old', { retain: true, qos: 1, messageId: 1 }), publish('a', 'new', { retain: true }));
    await client.rest();
    assert.deepEqual(await handedOut(client, 1, { topic: 'a', qos: 2 }), ['publish q0 retain a=new']);
  });

  it('[MQTT-3.3.1-5] replaces the retained message including its properties and QoS', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(publish('a', 'old', { retain: true, properties: { contentType: 'old' } }));
    client.send(publish('a', 'new', { retain: true, qos: 2, messageId: 1, properties: { responseTopic: 'r' } }));
    await client.rest();
    client.send(subscribe(1, { topic: 'a', qos: 1 }));
    await client.next('suback');
    const message = await onlyPublish(client);
    assert.equal(message.qos, 1);
    assert.deepEqual(message.properties, { responseTopic: 'r' });
  });

  it('[MQTT-3.3.1-6] deletes the retained message for an empty payload, which is delivered as an ordinary message', async () => {
    await using test = await timedBroker();
    const watcher = await subscriber(test.broker, { topic: 'a' });
    const client = await rawClient(test.broker);
    client.send(publish('a', 'x', { retain: true }), publish('a', '', { retain: true }));
    await client.rest();
    assert.deepEqual(summarize(await watcher.rest()), ['publish q0 a=x', 'publish q0 a=']);
    assert.deepEqual(await handedOut(client, 1, 'a'), []);
  });

  it('[MQTT-3.3.1-7] does not store a retained message with an empty payload', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(publish('a', '', { retain: true, qos: 1, messageId: 1, properties: { contentType: 'empty' } }));
    await client.rest();
    assert.deepEqual(await handedOut(client, 1, 'a'), []);
  });

  it('[MQTT-3.3.1-8] leaves the retained message unchanged when RETAIN is 0', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(publish('b', 'not kept'));
    client.send(publish('a', 'kept', { retain: true }), publish('a', 'passing'), publish('a', ''));
    await client.rest();
    assert.deepEqual(await handedOut(client, 1, '#'), ['publish q0 retain a=kept']);
  });

  it('[MQTT-3.3.1-9, MQTT-3.3.1-10, MQTT-3.3.1-11] sends retained messages according to Retain Handling', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    await broker.publish('a', 'x', { retain: true });
    const expected = { 0: [true, true], 1: [true, false], 2: [false, false] };
    for (const retainHandling of [0, 1, 2] as const) {
      const client = await rawClient(broker);
      for (const isHandedOut of expected[retainHandling]) {
        const got = await handedOut(client, 1, { topic: 'a', retainHandling });
        assert.deepEqual(got, isHandedOut ? ['publish q0 retain a=x'] : [], `Retain Handling ${retainHandling}`);
      }
    }
  });

  it('[MQTT-3.3.1-10] treats a subscription of the resumed session as existing', async () => {
    await using test = await timedBroker();
    await test.broker.publish('a', 'x', { retain: true });
    await cutOff(test.broker, await subscriber(test.broker, { topic: 'a', retainHandling: 2 }, persistent('c')));
    const client = await rawClient(test.broker, persistent('c'));
    assert.equal(client.connack?.sessionPresent, true);
    assert.deepEqual(await handedOut(client, 2, { topic: 'a', retainHandling: 1 }), []);
  });

  it('[MQTT-3.3.1-12, MQTT-3.3.1-13] keeps RETAIN as published for subscriptions with Retain As Published', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const plain = await subscriber(broker, { topic: 'a', qos: 1, retainAsPublished: false });
    const asPublished = await subscriber(broker, { topic: 'a', qos: 1, retainAsPublished: true });
    const both = await subscriber(broker, { topic: 'a', retainAsPublished: true });
    both.send(subscribe(2, { topic: '+', retainAsPublished: false }));
    await both.next('suback');
    const client = await rawClient(broker);
    client.send(publish('a', '1', { retain: true, qos: 1, messageId: 1 }), publish('a', '2', { retain: true }));
    client.send(publish('a', '3'), publish('a', '4', { qos: 1, messageId: 2 }));
    await client.rest();
    const retained = async (receiver: RawClient) =>
      ((await receiver.rest()) as PublishPacket[]).map(({ retain }) => retain);
    assert.deepEqual(await retained(plain), [false, false, false, false]);
    assert.deepEqual(await retained(asPublished), [true, true, false, false]);
    assert.deepEqual(await retained(both), [true, true, false, false]);
  });

  it('[MQTT-3.3.1-12, MQTT-3.3.1-13] keeps the RETAIN flag of messages that are queued or sent again', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    for (const retainAsPublished of [false, true]) {
      const away = await subscriber(
        broker,
        { topic: 'a', qos: 1, retainAsPublished, retainHandling: 2 },
        persistent('c')
      );
      await cutOff(broker, away);
      await broker.publish('a', 'x', { qos: 1, retain: true });
      for (const dup of ['', ' dup']) {
        const back = await rawClient(broker, persistent('c'));
        assert.deepEqual(summarize(await back.rest()), [`publish 1 q1${dup}${retainAsPublished ? ' retain' : ''} a=x`]);
        await cutOff(broker, back);
      }
      (await rawClient(broker, { clientId: 'c' })).cut();
    }
  });

  it('[MQTT-3.3.1-12] sends retained messages with RETAIN 1, including those that have to wait for the window', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    for (const topic of ['r/1', 'r/2', 'r/3']) await broker.publish(topic, 'x', { qos: 1, retain: true });
    const client = await rawClient(broker, { properties: { receiveMaximum: 1 } });
    assert.deepEqual(await handedOut(client, 1, { topic: 'r/#', qos: 1 }), ['publish 1 q1 retain r/1=x']);
    client.send(ack('puback', 1));
    assert.deepEqual(summarize(await client.rest()), ['publish 2 q1 retain r/2=x']);
    client.send(ack('puback', 2));
    assert.deepEqual(summarize(await client.rest()), ['publish 3 q1 retain r/3=x']);
  });
});

describe('PUBLISH: topic names', () => {
  it('[MQTT-3.3.2-1] closes with 0x81 when the topic name is truncated or not UTF-8', async () => {
    await using test = await timedBroker();
    for (const bytes of [
      '30 02 0005',
      '30 04 0009 61 00',
      '30 04 0001 ff 00',
      '30 06 0003 eda080 00',
      '30 05 0002 c080 00'
    ]) {
      await refuses(test.broker, bytes, 0x81);
    }
  });

  it('[MQTT-3.3.2-2] closes with 0x82 for a wildcard in the topic name', async () => {
    await using test = await timedBroker();
    for (const topic of ['a/+', '#', 'a#', '+a']) {
      const bytes = Buffer.from(topic);
      await refuses(test.broker, Buffer.from([0x30, 3 + bytes.length, 0, bytes.length, ...bytes, 0]), 0x82);
    }
  });

  it('[MQTT-3.3.2-3] forwards the topic name unchanged to subscribers whose filter matches it', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const level = await subscriber(broker, { topic: 'a/+/c' });
    const all = await subscriber(broker, { topic: '#' });
    const client = await rawClient(broker);
    const topics = ['a/b/c', 'a//c', '/a/b/c', 'a/b/c/d', 'a/\u{feff}/c', 'a/é/c', 'a/\u{65}\u{301}/c'];
    client.send(...topics.map((topic) => publish(topic, topic)));
    await client.rest();
    const topicsOf = async (receiver: RawClient) =>
      ((await receiver.rest()) as PublishPacket[]).map(({ topic }) => topic);
    assert.deepEqual(await topicsOf(all), topics);
    assert.deepEqual(await topicsOf(level), ['a/b/c', 'a//c', 'a/\u{feff}/c', 'a/é/c', 'a/\u{65}\u{301}/c']);
  });

  it('[MQTT-3.3.2-3] sends only retained messages that match the new filter, regardless of what else is published in the meantime', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    for (let n = 0; n < 1200; n++) await broker.publish(n === 1100 ? 'x' : `r/${n}`, 'old', { retain: true });
    const client = await subscriber(broker, { topic: 'x', retainHandling: 2 });
    client.send(subscribe(2, 'r/#'));
    await client.next('suback');
    await broker.publish('x', 'new');
    await broker.publish('r/1199', 'new');
    await engineOf(broker).services.work.settled();
    const packets = (await client.rest()) as PublishPacket[];
    assert.equal(packets.length, 1199 + 2);
    assert.deepEqual(summarize(packets.filter(({ topic }) => topic === 'x')), ['publish q0 x=new']);
    const last = summarize(packets.filter(({ topic }) => topic === 'r/1199'));
    assert.deepEqual(last, ['publish q0 retain r/1199=old', 'publish q0 r/1199=new']);
  });

  it('[MQTT-4.7.3-1] closes with 0x82 for an empty topic name without an alias', async () => {
    await using test = await timedBroker();
    await refuses(test.broker, '30 03 0000 00', 0x82);
    await refuses(test.broker, '32 05 0000 0001 00', 0x82);
  });
});

describe('PUBLISH: properties', () => {
  const EVERYTHING: Properties = {
    payloadFormatIndicator: 1,
    contentType: 'text/plain; charset=utf-8 ✓',
    responseTopic: 'answers/to/me',
    correlationData: Buffer.from([0, 255, 1, 254]),
    userProperties: [
      ['z', '1'],
      ['a', '2'],
      ['z', '1'],
      ['', ''],
      ['a', '3']
    ]
  };

  /** Sends a message by every path through the broker, and checks the properties of each copy that arrives. */
  async function forwards(properties: Properties): Promise<void> {
    await using test = await timedBroker();
    const { broker } = test;
    const live = [
      await subscriber(broker, { topic: 'a', qos: 0 }),
      await subscriber(broker, { topic: 'a', qos: 1 }),
      await subscriber(broker, { topic: 'a', qos: 2 })
    ];
    const away = await subscriber(broker, { topic: 'a', qos: 1 }, persistent('away'));
    await cutOff(broker, away);
    const client = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 1, messageId: 1, retain: true, properties }));
    await client.rest();
    for (const receiver of live) assert.deepEqual((await onlyPublish(receiver)).properties, properties, 'live');
    const back = await rawClient(broker, persistent('away'));
    assert.deepEqual((await onlyPublish(back)).properties, properties, 'queued');
    await cutOff(broker, back);
    assert.deepEqual((await onlyPublish(await rawClient(broker, persistent('away')))).properties, properties, 'again');
    client.send(subscribe(1, 'a', { subscriptionIdentifier: [7] }));
    await client.next('suback');
    const retained = await onlyPublish(client);
    assert.deepEqual(retained.properties, { ...properties, subscriptionIdentifier: [7] }, 'retained');
    client.send(publish('a', 'y', { properties }));
    await client.rest();
    for (const receiver of live) assert.deepEqual((await onlyPublish(receiver)).properties, properties, 'QoS 0');
  }

  it('[MQTT-3.3.2-4] forwards the Payload Format Indicator, including 0', async () => {
    await forwards({ payloadFormatIndicator: 1 });
    await forwards({ payloadFormatIndicator: 0 });
  });

  it('[MQTT-3.3.2-15] forwards the Response Topic unchanged', () => forwards({ responseTopic: 'r/\u{feff}é' }));

  it('[MQTT-3.3.2-16] forwards Correlation Data unchanged, including empty data', async () => {
    await forwards({ correlationData: Buffer.from([0, 1, 2, 0xff, 0]) });
    await forwards({ correlationData: Buffer.alloc(0) });
  });

  it('[MQTT-3.3.2-17, MQTT-3.3.2-18] forwards User Properties in order, including duplicates', () =>
    forwards({ userProperties: EVERYTHING.userProperties as readonly UserProperty[] }));

  it('[MQTT-3.3.2-20] forwards the Content Type unchanged', () => forwards({ contentType: 'é/ø' }));

  it('[MQTT-3.3.2-4, MQTT-3.3.2-15, MQTT-3.3.2-18] forwards all properties together', () => forwards(EVERYTHING));

  it('[MQTT-3.3.2-13, MQTT-3.3.2-19, MQTT-1.5.7-1] closes with 0x81 for strings that are not UTF-8', async () => {
    await using test = await timedBroker();
    for (const block of ['08 0001 ff', '03 0002 c080', '26 0001 ff 0001 61', '26 0001 61 0003 eda080']) {
      await refuses(test.broker, withProperties(block), 0x81);
    }
  });

  it('[MQTT-3.3.2-14] closes for a Response Topic with a wildcard', async () => {
    await using test = await timedBroker();
    for (const block of ['08 0001 23', '08 0003 612f2b']) {
      const witness = await subscriber(test.broker, { topic: '#' });
      const client = await rawClient(test.broker);
      client.send(withProperties(block));
      await client.closed();
      const last = client.received.at(-1);
      assert.ok(last?.cmd === 'disconnect' && (last.reasonCode === 0x82 || last.reasonCode === 0x90));
      await witness.nothing();
    }
  });

  it('[MQTT-3.3.4-6] closes with 0x82 for a Subscription Identifier in a PUBLISH from a client', async () => {
    await using test = await timedBroker();
    await refuses(test.broker, withProperties('0b 01'), 0x82);
  });

  it('[MQTT-3.3.2-17] sends no properties to a 3.x subscriber, and none for a message of a 3.x publisher', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const old = await subscriber(broker, { topic: 'a', qos: 1 }, { version: 4 });
    const young = await subscriber(broker, { topic: 'a', qos: 1 });
    const client = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 1, messageId: 1, properties: { ...EVERYTHING, messageExpiryInterval: 9 } }));
    client.send(publish('a', 'y', { properties: EVERYTHING }));
    await client.rest();
    assert.deepEqual(summarize(await old.rest()), ['publish 1 q1 a=x', 'publish q0 a=y']);
    await young.rest();
    const publisher = await rawClient(broker, { version: 4 });
    publisher.send(publish('a', 'z'));
    await publisher.rest();
    assert.deepEqual((await onlyPublish(young)).properties, undefined);
  });

  it('[MQTT-2.2.2-1] sends a property length of 0 when there are no properties', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    const bytes: Buffer[] = [];
    client.stream.on('data', (chunk: Buffer) => bytes.push(chunk));
    client.send(subscribe(1, 'a'));
    await client.next('suback');
    bytes.length = 0;
    await test.broker.publish('a', 'x');
    await client.next('publish');
    assert.deepEqual(Buffer.concat(bytes), Buffer.from([0x30, 5, 0, 1, 0x61, 0, 0x78]));
  });
});

describe('PUBLISH: message expiry', () => {
  const lives = (sec: number, qos: QoS = 0, retain = false) =>
    publish('a', 'x', { qos, retain, messageId: qos > 0 ? 1 : undefined, properties: { messageExpiryInterval: sec } });

  it('[MQTT-3.3.2-5, MQTT-3.3.2-6] forwards the whole interval to a connected subscriber', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const receivers = [
      await subscriber(broker, { topic: 'a', qos: 0 }),
      await subscriber(broker, { topic: 'a', qos: 1 })
    ];
    const client = await rawClient(broker);
    for (const qos of [0, 1] as const) {
      client.send(lives(10, qos));
      await client.rest();
      for (const receiver of receivers) {
        const { properties } = await onlyPublish(receiver);
        assert.deepEqual(properties, { messageExpiryInterval: 10 });
      }
    }
  });

  it('[MQTT-3.3.2-6] forwards the remaining interval to a subscriber that was offline', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    await cutOff(broker, await subscriber(broker, { topic: 'a', qos: 1 }, persistent('c')));
    const client = await rawClient(broker);
    client.send(lives(10, 1));
    await client.rest();
    await clock.advance('3700ms');
    const back = await rawClient(broker, persistent('c'));
    assert.deepEqual((await onlyPublish(back)).properties, { messageExpiryInterval: 7 });
  });

  it('[MQTT-3.3.2-5] deletes messages that expired while a subscriber was offline', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    const drops: string[] = [];
    broker.on('message.dropped', ({ reason, client }) => drops.push(`${client?.clientId} ${reason}`));
    for (const version of [4, 5] as const)
      await cutOff(broker, await subscriber(broker, { topic: 'a', qos: 1 }, persistent(`c${version}`, version)));
    const client = await rawClient(broker);
    client.send(lives(10, 1));
    await client.rest();
    await clock.advance('10s');
    for (const version of [4, 5] as const)
      await (await rawClient(broker, persistent(`c${version}`, version))).nothing();
    assert.deepEqual(drops, ['c4 expired', 'c5 expired']);
    assert.equal(broker.metrics.counter('messages.expired'), 2);
  });

  it('[MQTT-3.3.2-5, MQTT-3.3.2-6] counts the time that a message waits for a full window', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    const slow = await subscriber(broker, { topic: '#', qos: 1 }, { properties: { receiveMaximum: 1 } });
    const client = await rawClient(broker);
    client.send(publish('first', '', { qos: 1, messageId: 9 }));
    client.send(lives(3, 1), lives(8, 1));
    await client.rest();
    assert.deepEqual(summarize(await slow.rest()), ['publish 1 q1 first=']);
    await clock.advance('5s');
    slow.send(ack('puback', 1));
    assert.deepEqual((await onlyPublish(slow)).properties, { messageExpiryInterval: 3 });
  });

  it('[MQTT-3.3.2-5, MQTT-3.3.2-6] counts the time that a message is retained', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    const client = await rawClient(broker);
    client.send(lives(10, 1, true));
    await client.rest();
    await clock.advance('4s');
    const early = await subscriber(broker, { topic: 'a', qos: 1 });
    assert.deepEqual((await onlyPublish(early)).properties, { messageExpiryInterval: 6 });
    await clock.advance('6s');
    await (await subscriber(broker, { topic: 'a', qos: 1 })).nothing();
    assert.equal(broker.metrics.gauge('retained'), 0);
  });

  it('[MQTT-3.3.2-5] counts the time that a subscriber does not read', async () => {
    await using test = await timedBroker({ outputHighWaterMark: 1 });
    const { broker, clock } = test;
    const slow = await subscriber(broker, { topic: '#', qos: 1 });
    slow.stream.pause();
    // One message fills the buffer of the reader, the other blocks the rest.
    for (let n = 0; n < 2; n++) {
      await broker.publish('big', Buffer.alloc(300_000));
      await engineOf(broker).services.work.settled();
    }
    for (let n = 0; n < 3; n++) {
      await broker.publish('a', `lives on ${n}`, { qos: 1 });
      await broker.publish('a', 'x', { qos: 1, properties: { messageExpiryInterval: 2 } });
      await engineOf(broker).services.work.settled();
    }
    await clock.advance('5s');
    slow.stream.resume();
    for (let n = 0; n < 2; n++) await slow.next('publish');
    const rest = (await slow.rest()) as PublishPacket[];
    assert.deepEqual(
      rest.map(({ payload }) => String(payload)),
      ['lives on 0', 'lives on 1', 'lives on 2']
    );
  });

  it('[MQTT-3.3.2-5] counts the time that a hook takes', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    let go = () => {};
    broker.hook('authorizePublish', () => new Promise((resolve) => (go = () => resolve(true))));
    const receiver = await subscriber(broker, { topic: '#', qos: 1 });
    const client = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 1, messageId: 1, properties: { messageExpiryInterval: 9 } }));
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    const passing = clock.advance('4s');
    await passing;
    go();
    await client.next('puback');
    assert.deepEqual((await onlyPublish(receiver)).properties, { messageExpiryInterval: 5 });
  });

  it('[MQTT-3.3.2-5] delivers a message with an interval of 0 to connected subscribers, and does not queue or retain it', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    const here = await subscriber(broker, { topic: 'a', qos: 1 });
    await cutOff(broker, await subscriber(broker, { topic: 'a', qos: 1 }, persistent('away')));
    const client = await rawClient(broker);
    client.send(lives(0, 1, true));
    await client.rest();
    assert.deepEqual((await onlyPublish(here)).properties, { messageExpiryInterval: 0 });
    await clock.advance('1s');
    await (await rawClient(broker, persistent('away'))).nothing();
    await (await subscriber(broker, { topic: 'a', qos: 1 })).nothing();
  });

  it('[MQTT-3.3.2-6] forwards the limit of the broker when it is shorter', async () => {
    await using test = await timedBroker({ maxMessageExpiryInterval: 5 });
    const { broker, clock } = test;
    const live = await subscriber(broker, { topic: 'a', qos: 1 });
    await cutOff(broker, await subscriber(broker, { topic: 'a', qos: 1 }, persistent('away')));
    const client = await rawClient(broker);
    client.send(lives(100, 1));
    await client.rest();
    assert.deepEqual((await onlyPublish(live)).properties, { messageExpiryInterval: 5 });
    await clock.advance('2s');
    const back = await rawClient(broker, persistent('away'));
    assert.deepEqual((await onlyPublish(back)).properties, { messageExpiryInterval: 3 });
  });
});

describe('PUBLISH: limit of the message expiry', () => {
  it('[MQTT-3.3.2-6] applies the limit to messages that a hook changes and to delayed ones, in every version', async () => {
    await using test = await timedBroker({
      maxMessageExpiryInterval: 5,
      hooks: { publish: ({ message }) => (message.topic === 'a' ? { topic: 'a', payload: 'changed' } : true) }
    });
    const { broker, clock } = test;
    const receiver = await subscriber(broker, { topic: '#' });
    for (const version of [4, 5] as const) {
      const client = await rawClient(broker, { version });
      client.send(publish('a', 'x'), publish('$delayed/10/b', 'x'));
      await client.rest();
      await clock.advance('10s');
    }
    const packets = (await receiver.rest()) as PublishPacket[];
    assert.deepEqual(summarize(packets), [
      'publish q0 a=changed',
      'publish q0 b=x',
      'publish q0 a=changed',
      'publish q0 b=x'
    ]);
    for (const { properties } of packets) assert.deepEqual(properties, { messageExpiryInterval: 5 });
  });
});

describe('PUBLISH: topic aliases from a client', () => {
  const aliased = (topic: string, topicAlias: number, payload = '') =>
    publish(topic, payload, { properties: { topicAlias } });

  it('[MQTT-3.3.2-7] uses the topic name that an alias was set to, until the alias is set again', async () => {
    await using test = await timedBroker();
    const receiver = await subscriber(test.broker, { topic: '#' });
    const client = await rawClient(test.broker);
    client.send(aliased('a', 1, '1'), aliased('', 1, '2'), aliased('b', 1, '3'), aliased('', 1, '4'));
    await client.rest();
    const packets = (await receiver.rest()) as PublishPacket[];
    assert.deepEqual(summarize(packets), ['publish q0 a=1', 'publish q0 a=2', 'publish q0 b=3', 'publish q0 b=4']);
    assert.ok(
      packets.every(({ properties }) => properties === undefined),
      'the alias is not forwarded'
    );
  });

  it('[MQTT-3.3.2-7] discards aliases at the end of the connection, even if the session continues', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker, persistent('c'));
    client.send(aliased('a', 1));
    await client.rest();
    await cutOff(test.broker, client);
    const back = await rawClient(test.broker, persistent('c'));
    assert.equal(back.connack?.sessionPresent, true);
    back.send(encode(aliased('', 1), 5));
    await back.refused(0x82);
  });

  it('[MQTT-3.3.2-7] keeps the aliases of two connections separate', async () => {
    await using test = await timedBroker();
    const receiver = await subscriber(test.broker, { topic: '#' });
    const [one, two] = [await rawClient(test.broker), await rawClient(test.broker)];
    one.send(aliased('one', 1));
    await one.rest();
    two.send(aliased('two', 1));
    await two.rest();
    one.send(aliased('', 1, 'x'));
    await one.rest();
    assert.deepEqual(summarize(await receiver.rest()), ['publish q0 one=', 'publish q0 two=', 'publish q0 one=x']);
  });

  it('[MQTT-3.3.2-8] closes with 0x94 for alias 0', async () => {
    await using test = await timedBroker();
    await refuses(test.broker, withProperties('23 0000'), 0x94);
  });

  it('[MQTT-3.3.2-9] [MQTT-3.2.2-17, -18] closes with 0x94 for an alias above the announced maximum, and for any alias when none was announced', async () => {
    for (const maxTopicAlias of [0, 3]) {
      await using test = await timedBroker({ maxTopicAlias });
      const client = await rawClient(test.broker);
      assert.equal(client.connack?.properties?.topicAliasMaximum, maxTopicAlias === 0 ? undefined : maxTopicAlias);
      client.send(aliased('a', maxTopicAlias + 1));
      await client.refused(0x94);
    }
  });

  it('[MQTT-3.3.2-12] accepts every alias from 1 to the announced maximum', async () => {
    await using test = await timedBroker({ maxTopicAlias: 65_535 });
    const receiver = await subscriber(test.broker, { topic: '#' });
    const client = await rawClient(test.broker);
    assert.equal(client.connack?.properties?.topicAliasMaximum, 65_535);
    const aliases = [1, 2, 255, 256, 32_768, 65_535];
    client.send(...aliases.map((alias) => aliased(`t${alias}`, alias)));
    client.send(...aliases.map((alias) => aliased('', alias)));
    await client.rest();
    const topics = ((await receiver.rest()) as PublishPacket[]).map(({ topic }) => topic);
    assert.deepEqual(
      topics,
      [...aliases, ...aliases].map((alias) => `t${alias}`)
    );
  });

  it('[MQTT-3.3.2-7] closes with 0x82 for an alias that has not been set', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(encode(aliased('', 2), 5));
    await client.refused(0x82);
  });

  it('[MQTT-3.3.2-7] sets the alias of a QoS 2 duplicate and of a message that was refused', async () => {
    await using test = await timedBroker({ payloadFormatCheck: true });
    const { broker } = test;
    const receiver = await subscriber(broker, { topic: '#' });
    broker.hook('authorizePublish', ({ message }) => message.topic !== 'forbidden');
    const client = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 2, messageId: 1 }));
    client.send(publish('a', 'x', { qos: 2, messageId: 1, dup: true, properties: { topicAlias: 1 } }));
    client.send(publish('forbidden', 'x', { qos: 1, messageId: 2, properties: { topicAlias: 2 } }));
    client.send(publish('b', Buffer.from([255]), { properties: { topicAlias: 3, payloadFormatIndicator: 1 } }));
    client.send(aliased('', 1, 'y'), publish('', '', { qos: 1, messageId: 3, properties: { topicAlias: 2 } }));
    client.send(aliased('', 3, 'z'));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1', 'pubrec 1', 'puback 2 0x87', 'puback 3 0x87']);
    assert.deepEqual(summarize(await receiver.rest()), ['publish q0 a=x', 'publish q0 a=y', 'publish q0 b=z']);
  });

  it('[MQTT-3.3.2-7] stores a message that used an alias under its topic name: retained, queued and sent again', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    await cutOff(broker, await subscriber(broker, { topic: 'a', qos: 1 }, persistent('away')));
    const client = await rawClient(broker);
    client.send(publish('a', 'first', { properties: { topicAlias: 5 } }));
    client.send(
      publish('', 'x', { qos: 1, messageId: 1, retain: true, properties: { topicAlias: 5, contentType: 't' } })
    );
    await client.rest();
    for (const dup of ['', ' dup']) {
      const back = await rawClient(broker, persistent('away'));
      const packets = ((await back.rest()) as PublishPacket[]).filter(({ qos }) => qos === 1);
      assert.deepEqual(summarize(packets), [`publish 1 q1${dup} a=x`]);
      assert.deepEqual(packets[0]?.properties, { contentType: 't' });
      await cutOff(broker, back);
    }
    assert.deepEqual(await handedOut(client, 1, 'a'), ['publish q0 retain a=x']);
  });
});

describe('PUBLISH: topic aliases to a client', () => {
  /**
   * Returns the alias of each received PUBLISH and whether it names its topic. Checks that each alias stands for the topic in the payload.
   */
  async function aliasesOf(client: RawClient): Promise<string[]> {
    const known = new Map<number, string>();
    return ((await client.rest()) as PublishPacket[]).map(({ topic, payload, properties }) => {
      const alias = properties?.topicAlias;
      if (alias !== undefined && topic !== '') known.set(alias, topic);
      assert.equal(topic === '' ? known.get(alias ?? 0) : topic, String(payload), 'the topic in the payload');
      return `${alias ?? '-'}${topic === '' ? '' : ` ${topic}`}`;
    });
  }

  it('[MQTT-3.1.2-27] sends no alias to a client that does not announce a maximum', async () => {
    await using test = await timedBroker();
    for (const properties of [undefined, { topicAliasMaximum: 0 }]) {
      const client = await subscriber(test.broker, { topic: '#' }, { properties });
      for (let n = 0; n < 5; n++) await test.broker.publish('a', 'a');
      assert.deepEqual(await aliasesOf(client), ['- a', '- a', '- a', '- a', '- a']);
    }
  });

  it('[MQTT-3.3.2-10, -11] [MQTT-3.1.2-26] uses aliases up to the maximum of the client, and none above', async () => {
    await using test = await timedBroker();
    const client = await subscriber(test.broker, { topic: '#', qos: 1 }, { properties: { topicAliasMaximum: 2 } });
    for (const topic of ['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c', 'b', 'a'])
      await test.broker.publish(topic, topic);
    const got = await aliasesOf(client);
    assert.deepEqual(got, ['1 a', '1', '1', '2 b', '2', '2', '- c', '1 c', '1', '2', '- a']);
  });

  it('[MQTT-3.3.2-11] keeps within the maximum of the zone, which may be 0', async () => {
    for (const maxOutboundTopicAlias of [0, 1]) {
      await using test = await timedBroker({ maxOutboundTopicAlias });
      const client = await subscriber(test.broker, { topic: '#' }, { properties: { topicAliasMaximum: 65_535 } });
      for (const topic of ['a', 'b', 'a', 'b', 'a', 'b', 'b']) await test.broker.publish(topic, topic);
      const aliases = new Set((await aliasesOf(client)).map((text) => text.split(' ')[0]));
      assert.deepEqual(aliases, new Set(maxOutboundTopicAlias === 0 ? ['-'] : ['-', '1']));
    }
  });

  it('[MQTT-3.3.2-7] sets aliases again on the next connection, including for messages that are sent again', async () => {
    await using test = await timedBroker();
    const options = { ...persistent('c'), properties: { sessionExpiryInterval: 60, topicAliasMaximum: 5 } };
    const client = await subscriber(test.broker, { topic: 'a', qos: 1 }, options);
    for (let n = 0; n < 3; n++) await test.broker.publish('a', 'a', { qos: 1 });
    assert.deepEqual(await aliasesOf(client), ['1 a', '1', '1']);
    await cutOff(test.broker, client);
    const back = await rawClient(test.broker, options);
    assert.deepEqual(await aliasesOf(back), ['1 a', '1', '1']);
    await cutOff(test.broker, back);
    const plain = await rawClient(test.broker, persistent('c'));
    assert.deepEqual(await aliasesOf(plain), ['- a', '- a', '- a']);
  });

  it('[MQTT-3.1.2-25, MQTT-3.3.2-11] omits an alias that would make a packet too large', async () => {
    await using test = await timedBroker();
    // "a" and 20 bytes take 2 + 3 + 1 + 20 bytes without an alias, and 3 more with one.
    const properties = { topicAliasMaximum: 5, maximumPacketSize: 26 };
    const client = await subscriber(test.broker, { topic: '#' }, { properties });
    for (let n = 0; n < 4; n++) await test.broker.publish('a', 'x'.repeat(20));
    await test.broker.publish('a', 'x'.repeat(21));
    for (let n = 0; n < 4; n++) await test.broker.publish('a', 'a');
    const packets = (await client.rest()) as PublishPacket[];
    assert.deepEqual(
      packets.map(({ payload }) => payload.length),
      [20, 20, 20, 20, 1, 1, 1, 1]
    );
    const known = new Map<number, string>();
    for (const { topic, properties: { topicAlias = 0 } = {} } of packets) {
      if (topic !== '') known.set(topicAlias, topic);
      else assert.equal(known.get(topicAlias), 'a');
    }
  });

  it('[MQTT-3.3.2-11] sends aliases for the same topic names under a mount point', async () => {
    await using test = await timedBroker({ mountpoint: 'm/' });
    const client = await subscriber(test.broker, { topic: '#' }, { properties: { topicAliasMaximum: 5 } });
    for (let n = 0; n < 4; n++) await test.broker.publish('m/a', 'a');
    assert.deepEqual(await aliasesOf(client), ['1 a', '1', '1', '1']);
  });
});

describe('PUBLISH: subscriptions that match', () => {
  const identified = (messageId: number, topic: string, id: number, qos: QoS = 0) =>
    subscribe(messageId, { topic, qos }, { subscriptionIdentifier: [id] });

  it('[MQTT-3.3.4-1] answers PUBLISH with PUBACK or PUBREC even if no subscription matches', async () => {
    await using test = await timedBroker();
    await subscriber(test.broker, { topic: 'a' });
    const client = await rawClient(test.broker);
    client.send(publish('a'), publish('a', '', { qos: 1, messageId: 7 }), publish('a', '', { qos: 2, messageId: 8 }));
    assert.deepEqual(summarize(await client.rest()), ['puback 7', 'pubrec 8']);
  });

  it('[MQTT-3.3.4-2] sends one copy for overlapping subscriptions, at the highest QoS', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(
      subscribe(1, [
        { topic: 'a/b', qos: 0 },
        { topic: 'a/+', qos: 2 },
        { topic: '#', qos: 1 }
      ])
    );
    await client.next('suback');
    const publisher = await rawClient(test.broker);
    publisher.send(publish('a/b', '1', { qos: 1, messageId: 1 }), publish('a/b', '2', { qos: 2, messageId: 2 }));
    publisher.send(publish('a/b', '3'), publish('c', '4', { qos: 2, messageId: 3 }));
    await publisher.rest();
    const got = ['publish 1 q1 a/b=1', 'publish 2 q2 a/b=2', 'publish q0 a/b=3', 'publish 3 q1 c=4'];
    assert.deepEqual(summarize(await client.rest()), got);
  });

  it('[MQTT-3.3.4-3, MQTT-3.3.4-4] puts the identifiers of all matching subscriptions into the one copy', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(
      identified(1, 'a/b', 1),
      identified(2, 'a/+', 268_435_455),
      identified(3, '#', 200),
      subscribe(4, '+/b')
    );
    for (let n = 0; n < 4; n++) await client.next('suback');
    const idsOf = async () =>
      [...((await onlyPublish(client)).properties?.subscriptionIdentifier ?? [])].sort((a, b) => a - b);
    for (const qos of [0, 1, 2] as const) {
      await test.broker.publish('a/b', 'x', { qos });
      assert.deepEqual(await idsOf(), [1, 200, 268_435_455]);
    }
    await test.broker.publish('z', 'x');
    assert.deepEqual(await idsOf(), [200]);
    const publisher = await rawClient(test.broker);
    publisher.send(publish('a/b', 'the fast path'));
    await publisher.rest();
    assert.deepEqual(await idsOf(), [1, 200, 268_435_455]);
  });

  it('[MQTT-3.3.4-4] repeats an identifier for each matching subscription that has it', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(identified(1, 'a', 5), identified(2, '+', 5));
    await client.rest();
    await test.broker.publish('a');
    assert.deepEqual((await onlyPublish(client)).properties?.subscriptionIdentifier, [5, 5]);
  });

  it('[MQTT-3.3.4-3] keeps identifiers with messages that are queued or sent again', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker, persistent('c'));
    client.send(identified(1, 'a', 5, 2), identified(2, '+', 6, 2));
    await client.rest();
    await cutOff(test.broker, client);
    await test.broker.publish('a', 'x', { qos: 2, properties: { messageExpiryInterval: 60, contentType: 't' } });
    for (let n = 0; n < 2; n++) {
      await test.clock.advance('1s');
      const back = await rawClient(test.broker, persistent('c'));
      const { properties } = await onlyPublish(back);
      assert.deepEqual(properties?.subscriptionIdentifier, [5, 6]);
      assert.deepEqual(properties?.messageExpiryInterval, 59 - n);
      assert.deepEqual(properties?.contentType, 't');
      await cutOff(test.broker, back);
    }
    const old = await rawClient(test.broker, persistent('c', 4));
    assert.deepEqual(summarize(await old.rest()), ['publish 1 q2 dup a=x']);
  });

  it('[MQTT-3.3.4-3] drops the identifier of a subscription that is replaced by one without', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(identified(1, 'a', 5), subscribe(2, 'a'));
    await client.rest();
    await test.broker.publish('a');
    assert.equal((await onlyPublish(client)).properties, undefined);
  });

  it('[MQTT-3.3.4-5] sends each copy for a shared subscription with its own identifier', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(identified(1, '$share/g/a', 5), identified(2, 'a', 6));
    await client.rest();
    await test.broker.publish('a');
    const packets = (await client.rest()) as PublishPacket[];
    const ids = packets.map(({ properties }) => properties?.subscriptionIdentifier);
    assert.deepEqual(ids.flat().sort(), [5, 6]);
    assert.equal(packets.length, 2);
  });

  it('[MQTT-3.8.3-3] does not send a message back, neither live nor retained, when No Local is set', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 1, noLocal: true }, { clientId: 'c' });
    const other = await subscriber(broker, { topic: 'a', noLocal: true });
    client.send(publish('a', '1'), publish('a', '2', { qos: 1, messageId: 1, retain: true }));
    await client.rest();
    assert.deepEqual(summarize(await other.rest()), ['publish q0 a=1', 'publish q0 a=2']);
    assert.deepEqual(await handedOut(client, 2, { topic: 'a', noLocal: true }), []);
    assert.deepEqual(await handedOut(client, 3, { topic: 'a', noLocal: false }), ['publish q0 retain a=2']);
    client.send({ cmd: 'disconnect', reasonCode: 0 });
    await client.closed();
    const again = await subscriber(broker, { topic: 'a', noLocal: true }, { clientId: 'c' });
    await again.nothing();
  });

  it('[MQTT-3.8.3-3] sends a message back for another subscription, with its QoS and identifier', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(
      subscribe(1, { topic: 'a', qos: 2, noLocal: true }, { subscriptionIdentifier: [1] }),
      subscribe(2, { topic: '+', qos: 1 }, { subscriptionIdentifier: [2] })
    );
    await client.rest();
    client.send(publish('a', 'x', { qos: 2, messageId: 1 }));
    const packets = await client.rest();
    assert.deepEqual(summarize(packets), ['publish 1 q1 a=x', 'pubrec 1']);
    assert.deepEqual((packets[0] as PublishPacket).properties?.subscriptionIdentifier, [2]);
  });
});

describe('PUBLISH: flow control', () => {
  it('[MQTT-3.3.4-7] closes with 0x93 when more than Receive Maximum QoS 2 messages are unacknowledged', async () => {
    await using test = await timedBroker({ receiveMaximum: 2 });
    const client = await rawClient(test.broker);
    assert.equal(client.connack?.properties?.receiveMaximum, 2);
    const send = (messageId: number) => client.send(publish('a', '', { qos: 2, messageId }));
    send(1);
    send(2);
    client.send(publish('a', '', { qos: 2, messageId: 2, dup: true }));
    assert.equal((await client.rest()).length, 3, 'a duplicate does not count as a new message');
    client.send(ack('pubrel', 1));
    send(3);
    assert.deepEqual(summarize(await client.rest()), ['pubcomp 1', 'pubrec 3 0x10']);
    send(4);
    await client.refused(0x93);
  });

  it('[MQTT-3.3.4-7] counts QoS 1 messages as well, and no longer counts those that PUBREC refused', async () => {
    await using test = await timedBroker({ receiveMaximum: 1 });
    test.broker.hook('authorizePublish', ({ message }) => message.topic !== 'no');
    const client = await rawClient(test.broker);
    for (let messageId = 1; messageId < 4; messageId++) client.send(publish('no', '', { qos: 2, messageId }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1 0x87', 'pubrec 2 0x87', 'pubrec 3 0x87']);
    client.send(publish('a', '', { qos: 2, messageId: 4 }));
    await client.next('pubrec');
    client.send(publish('a', '', { qos: 1, messageId: 5 }));
    await client.refused(0x93);
  });

  it('[MQTT-3.3.4-7] counts from zero on a new connection: messages that already waited for PUBREL do not count', async () => {
    await using test = await timedBroker({ receiveMaximum: 2 });
    const client = await rawClient(test.broker, persistent('c'));
    client.send(publish('a', '', { qos: 2, messageId: 1 }), publish('a', '', { qos: 2, messageId: 2 }));
    await client.rest();
    await cutOff(test.broker, client);
    const back = await rawClient(test.broker, persistent('c'));
    back.send(publish('a', '', { qos: 2, messageId: 3 }));
    back.send(publish('a', '', { qos: 2, messageId: 2, dup: true }));
    assert.deepEqual(summarize(await back.rest()), ['pubrec 3 0x10', 'pubrec 2']);
    back.send(ack('pubrel', 1), ack('pubrel', 2), ack('pubrel', 3));
    back.send(publish('a', '', { qos: 2, messageId: 4 }), publish('a', '', { qos: 2, messageId: 5 }));
    assert.equal((await back.rest()).length, 5);
    back.send(publish('a', '', { qos: 2, messageId: 6 }));
    await back.refused(0x93);
  });

  it('[MQTT-3.3.4-8] accepts other packets while Receive Maximum is reached', async () => {
    await using test = await timedBroker({ receiveMaximum: 1 });
    const client = await rawClient(test.broker);
    client.send(publish('a', '', { qos: 2, messageId: 1 }));
    await client.next('pubrec');
    client.send(publish('a'), subscribe(2, 'b'), publish('b', 'x'));
    assert.deepEqual(summarize(await client.rest()), ['suback', 'publish q0 b=x']);
  });

  it("[MQTT-3.3.4-9] sends no more unacknowledged messages than the client's Receive Maximum, and then the rest in order", async () => {
    await using test = await timedBroker();
    const client = await subscriber(test.broker, { topic: 'a', qos: 2 }, { properties: { receiveMaximum: 2 } });
    for (let n = 1; n <= 5; n++) await test.broker.publish('a', String(n), { qos: n % 2 === 0 ? 2 : 1 });
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 a=1', 'publish 2 q2 a=2']);
    client.send(ack('pubrec', 2));
    assert.deepEqual(summarize(await client.rest()), ['pubrel 2'], 'PUBREC alone does not make room');
    client.send(ack('pubcomp', 2));
    assert.deepEqual(summarize(await client.rest()), ['publish 3 q1 a=3']);
    client.send(ack('puback', 1), ack('puback', 3));
    assert.deepEqual(summarize(await client.rest()), ['publish 4 q2 a=4', 'publish 5 q1 a=5']);
    client.send(ack('pubrec', 4, 0x97));
    await client.nothing();
    assert.equal([...test.broker.sessions][0]?.counters().inflight, 1);
  });

  it('[MQTT-3.3.4-10] sends other packets when the window is full, including QoS 0', async () => {
    await using test = await timedBroker();
    const client = await subscriber(test.broker, { topic: '+', qos: 1 }, { properties: { receiveMaximum: 1 } });
    for (let n = 1; n <= 3; n++) await test.broker.publish('a', String(n), { qos: 1 });
    await test.broker.publish('b', 'zero');
    client.send(publish('c', 'own'), publish('$x', '', { qos: 1, messageId: 9 }));
    assert.deepEqual(summarize(await client.rest()), [
      'publish 1 q1 a=1',
      'publish q0 b=zero',
      'publish q0 c=own',
      'puback 9 0x10'
    ]);
  });

  it('[MQTT-3.3.4-10] sends retained messages of QoS 0 to a client that acknowledges nothing', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    for (const [topic, qos] of [
      ['r/1', 1],
      ['r/2', 0],
      ['r/3', 1],
      ['r/4', 0]
    ] as const)
      await broker.publish(topic, 'x', { qos, retain: true });
    const client = await subscriber(broker, { topic: 'a', qos: 1 }, { properties: { receiveMaximum: 1 } });
    await broker.publish('a', '', { qos: 1 });
    await client.next('publish');
    assert.deepEqual(await handedOut(client, 2, { topic: 'r/+', qos: 1 }), [
      'publish q0 retain r/2=x',
      'publish q0 retain r/4=x'
    ]);
    assert.deepEqual(await handedOut(client, 3, { topic: 'r/1', qos: 0 }), ['publish q0 retain r/1=x']);
    client.send(ack('puback', 1));
    assert.deepEqual(summarize(await client.rest()), ['publish 2 q1 retain r/1=x']);
    client.send(ack('puback', 2));
    assert.deepEqual(summarize(await client.rest()), ['publish 3 q1 retain r/3=x']);
  });
});
