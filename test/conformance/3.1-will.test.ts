import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import type { Hooks } from '../../lib/events/hooks.ts';
import type { DropReason } from '../../lib/events/reasons.ts';
import type { Properties, PublishPacket, UserProperty, Will } from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { type RawClient, type RawClientOptions, rawClient } from '../support/raw-client.ts';
import {
  granted,
  payloads,
  publish,
  refusedConnect,
  rest,
  startBroker,
  turns,
  withResolvers
} from '../support/wire.ts';
import { field, frame } from '../support/wire-connect.ts';

/** Starts a broker on its own virtual clock, and a client that receives everything but `$SYS` at QoS 2. */
async function stage(options: BrokerOptions = {}): Promise<{ broker: Broker; clock: VirtualClock; reader: RawClient }> {
  const clock = new VirtualClock({ patienceMs: 20 });
  const broker = await startBroker({ clock, sysInterval: 0, sysHeartbeat: 0, ...options });
  const reader = await rawClient(broker, { clientId: 'reader' });
  await granted(reader, 1, { topic: '#', qos: 2, retainAsPublished: true });
  return { broker, clock, reader };
}

function will(given: Partial<Will> = {}): Will {
  return { topic: 'will', payload: Buffer.from('gone'), qos: 0, retain: false, ...given };
}

/** Connects a client with a will. */
function device(broker: Broker, given: Partial<Will> = {}, options: RawClientOptions = {}): Promise<RawClient> {
  return rawClient(broker, { clientId: 'device', will: will(given), ...options });
}

/** Connects a client with a delayed will, in a session that outlives its connection. */
function patient(
  broker: Broker,
  willDelayInterval: number,
  sessionExpiryInterval: number,
  options: RawClientOptions = {}
): Promise<RawClient> {
  return device(broker, { properties: { willDelayInterval } }, { properties: { sessionExpiryInterval }, ...options });
}

async function cut(client: RawClient): Promise<void> {
  client.cut();
  await turns(4);
}

describe('Publication of the will', () => {
  const endings: Record<string, (device: RawClient, broker: Broker, clock: VirtualClock) => unknown> = {
    'the stream ends': (client) => client.stream.end(),
    'the stream is destroyed': (client) => client.cut(),
    'the stream fails': (client) => client.stream.destroy(new Error('cable')),
    'keep alive has passed': (_client, _broker, clock) => clock.advance('15s'),
    'the client breaks a rule': (client) => client.send(frame(0x00)),
    'the client leaves with 0x04': (client) => client.send({ cmd: 'disconnect', reasonCode: 0x04 }),
    'the client leaves with an error': (client) => client.send({ cmd: 'disconnect', reasonCode: 0x80 }),
    'the app ends it': (_client, broker) => broker.sessions.get('device').kick()
  };

  for (const [what, end] of Object.entries(endings)) {
    it(`[MQTT-3.1.2-7] [MQTT-3.1.2-8] publishes the will at once when ${what}`, async () => {
      const { broker, clock, reader } = await stage();
      await using _ = broker;
      const client = await device(broker, {}, { keepalive: 10 });
      await reader.nothing();
      await end(client, broker, clock);
      await turns();
      const { topic, payload, qos, retain } = await reader.next('publish');
      assert.deepEqual([topic, String(payload), qos, retain], ['will', 'gone', 0, false]);
      await reader.nothing();
    });
  }

  it('[MQTT-3.1.2-8] [MQTT-3.14.4-3] does not publish the will when the client sends DISCONNECT 0x00', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    for (const bytes of ['e000', 'e00100', 'e0020000']) {
      const client = await patient(broker, 0, 100, { clean: false });
      client.sendBytes(bytes);
      await client.closed();
      await clock.advance('101s');
      assert.equal(broker.sessions.has('device'), false);
    }
    await reader.nothing();
  });

  it('[MQTT-3.1.2-8] does not publish the will when the client sends DISCONNECT 0x00 and cuts the connection at once', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    const client = await device(broker);
    client.send(publish('x', 'last'), { cmd: 'disconnect', reasonCode: 0 });
    client.stream.end();
    await turns();
    assert.deepEqual(await payloads(reader), ['last']);
  });

  it('[MQTT-3.1.2-8] does not publish the will when the client has disconnected while a hook decides on its last message', async () => {
    const answer = withResolvers<boolean>();
    const { broker, reader } = await stage({ hooks: { authorizePublish: () => answer.promise } });
    await using _ = broker;
    const client = await device(broker);
    client.send(publish('x', 'last'), { cmd: 'disconnect', reasonCode: 0 });
    client.stream.end();
    await turns();
    answer.resolve(true);
    await turns();
    assert.deepEqual(await payloads(reader), ['last']);
  });

  it('[MQTT-3.1.2-8] publishes the will when the broker stops, unless it is configured to drop wills', async () => {
    for (const wills of ['publish', 'keep'] as const) {
      const { broker } = await stage();
      const heard: string[] = [];
      broker.on('message.publish', ({ message }) => heard.push(message.topic));
      await device(broker);
      await broker.stop({ wills });
      assert.deepEqual(heard, wills === 'publish' ? ['will'] : []);
    }
  });

  it('[MQTT-3.1.2-8] publishes the will after everything that the client published before', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    const client = await device(broker);
    for (let count = 0; count < 100; count++) client.send(publish('x', String(count)));
    client.send(frame(0x30, field('x'), Buffer.from([0]), Buffer.from('cut')).subarray(0, 5));
    client.stream.end();
    await turns();
    assert.deepEqual(await payloads(reader), [...Array.from({ length: 100 }, (_, at) => String(at)), 'gone']);
  });

  it('[MQTT-3.1.2-8] does not publish the will of a client that is cut before its CONNACK', async () => {
    const answer = withResolvers<boolean>();
    const hooks = {
      authenticate: ({ client }: { client: { clientId: string } }) => client.clientId === 'reader' || answer.promise
    };
    const { broker, reader } = await stage({ hooks });
    await using _ = broker;
    const client = await rawClient(broker, { connect: false });
    client.send({
      cmd: 'connect',
      protocolVersion: 5,
      bridge: false,
      clientId: 'device',
      clean: true,
      keepalive: 0,
      will: will()
    });
    await turns();
    await cut(client);
    answer.resolve(true);
    await turns();
    await reader.nothing();
  });
});

describe('Will Delay Interval', () => {
  it('[MQTT-3.1.2-8] defers the will for the delay', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    const client = await patient(broker, 30, 100);
    await cut(client);
    await clock.advance(29_999);
    await reader.nothing();
    await clock.advance(1);
    const { properties } = await reader.next('publish');
    assert.equal(properties, undefined); // the message does not contain the delay
    await clock.advance('100s');
    await reader.nothing();
  });

  it('[MQTT-3.1.2-8] publishes the will when the session ends before the delay has passed', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 30, 10));
    await clock.advance(9999);
    await reader.nothing();
    await clock.advance(1);
    await reader.next('publish');
    assert.equal(broker.sessions.has('device'), false);
    await clock.advance('60s');
    await reader.nothing();
  });

  it('[MQTT-3.1.2-8] publishes the will at once when the session ends with its connection', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 30, 0));
    await reader.next('publish');
    await clock.advance('60s');
    await reader.nothing();
  });

  it('[MQTT-3.1.2-8] publishes the will once when the delay and the session end together', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 30, 30));
    await clock.advance('31s');
    await reader.next('publish');
    await reader.nothing();
    assert.equal(broker.sessions.has('device'), false);
  });

  it('[MQTT-3.1.2-8] publishes the will when the app ends the stored session', async () => {
    for (const end of ['kick', 'discard'] as const) {
      const { broker, reader } = await stage();
      await using _ = broker;
      await cut(await patient(broker, 30, 100));
      broker.sessions.get('device')[end]();
      await reader.next('publish');
      await reader.nothing();
    }
  });

  it('[MQTT-3.1.2-8] publishes the will at once when DISCONNECT 0x04 also ends the session', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    const client = await patient(broker, 30, 100);
    client.send({ cmd: 'disconnect', reasonCode: 4, properties: { sessionExpiryInterval: 0 } });
    await client.closed();
    await reader.next('publish');
    await reader.nothing();
  });

  it('[MQTT-3.1.2-8] starts the will delay with DISCONNECT 0x04 as well', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    const client = await patient(broker, 30, 100);
    client.send({ cmd: 'disconnect', reasonCode: 4 });
    await client.closed();
    await clock.advance(29_999);
    await reader.nothing();
    await clock.advance(1);
    await reader.next('publish');
  });

  it('[MQTT-3.1.2-8] never publishes a will with the longest delay while the session exists', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 0xffff_ffff, 0xffff_ffff));
    await clock.advance('3650d');
    await reader.nothing();
    assert.equal(broker.sessions.get('device').state, 'disconnected');
  });

  it('[MQTT-3.1.2-8] uses monotonic time: a step of the wall clock publishes nothing', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 30, 100));
    clock.stepWall(3_600_000);
    await clock.advance(29_999);
    await reader.nothing();
    clock.stepWall(-7_200_000);
    await clock.advance(1);
    await reader.next('publish');
  });

  it('[MQTT-3.1.3-9] does not publish the will when the client resumes the session before the delay has passed', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 30, 100));
    await clock.advance(29_999);
    const options = { clientId: 'device', clean: false, properties: { sessionExpiryInterval: 100 } };
    const back = await rawClient(broker, options);
    assert.equal(back.connack?.sessionPresent, true);
    await clock.advance('200s');
    await reader.nothing();
    await cut(back);
    await clock.advance('200s');
    await reader.nothing(); // the new CONNECT had no will
  });

  it('[MQTT-3.1.3-9] replaces the will with that of the new CONNECT', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 30, 100));
    await clock.advance('20s');
    const second = { payload: Buffer.from('second'), properties: { willDelayInterval: 5 } };
    await cut(await device(broker, second, { clean: false, properties: { sessionExpiryInterval: 100 } }));
    await clock.advance(4999);
    await reader.nothing();
    await clock.advance('100s');
    assert.deepEqual(await payloads(reader), ['second']);
  });

  it('[MQTT-3.1.3-9] publishes the will when a clean start ends the session before the delay has passed', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 30, 100));
    const back = await rawClient(broker, { clientId: 'device', clean: true });
    assert.equal(back.connack?.sessionPresent, false);
    assert.deepEqual(await payloads(reader), ['gone']);
    await clock.advance('60s');
    await reader.nothing();
  });

  it('[MQTT-3.1.3-9] keeps the will when a CONNECT is refused', async () => {
    const hooks = { authenticate: ({ username }: { username?: string }) => username !== 'thief' };
    const { broker, clock, reader } = await stage({ hooks });
    await using _ = broker;
    await cut(await patient(broker, 30, 100));
    await refusedConnect(broker, { clientId: 'device', clean: false, username: 'thief' });
    await refusedConnect(broker, { clientId: 'device', clean: true, username: 'thief' });
    await clock.advance('30s');
    assert.deepEqual(await payloads(reader), ['gone']);
  });

  it('[MQTT-4.1.0-2] ends a session at its expiry although its will has been published', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    for (const delay of [0, 5]) {
      await cut(await patient(broker, delay, 10));
      await clock.advance(9999);
      assert.equal(broker.sessions.has('device'), true);
      await clock.advance(1);
      assert.equal(broker.sessions.has('device'), false);
    }
  });
});

describe('The will of a client that is taken over', () => {
  it('[MQTT-3.1.4-3] publishes a will without a delay although the session continues', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    const properties = { sessionExpiryInterval: 100 };
    const first = await device(broker, {}, { clean: false, properties });
    const second = await device(broker, { payload: Buffer.from('second') }, { clean: false, properties });
    await first.refused(0x8e);
    assert.equal(second.connack?.sessionPresent, true);
    assert.deepEqual(await payloads(reader), ['gone']);
    await cut(second);
    assert.deepEqual(await payloads(reader), ['second']);
  });

  it('[MQTT-3.1.4-3] deletes a will with a delay when the session continues', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await patient(broker, 30, 100, { clean: false });
    await rawClient(broker, { clientId: 'device', clean: false, properties: { sessionExpiryInterval: 100 } });
    await clock.advance('200s');
    await reader.nothing();
  });

  it('[MQTT-3.1.4-3] publishes a will with or without a delay when the new CONNECT ends the session', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    for (const delay of [0, 30]) {
      const first = await patient(broker, delay, 100);
      const second = await rawClient(broker, { clientId: 'device', clean: true });
      await first.refused(0x8e);
      assert.deepEqual(await payloads(reader), ['gone']);
      await cut(second);
    }
  });

  it('[MQTT-3.1.4-3] publishes the will when the old session would have ended with its connection', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    await patient(broker, 30, 0);
    const second = await rawClient(broker, { clientId: 'device', clean: false });
    assert.equal(second.connack?.sessionPresent, false);
    assert.deepEqual(await payloads(reader), ['gone']);
  });

  it('[MQTT-3.2.0-1] delivers the will to the client itself after CONNACK if it subscribed to it', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const options = { clean: false, properties: { sessionExpiryInterval: 100 } };
    const first = await device(broker, {}, options);
    await granted(first, 1, { topic: 'will', qos: 1 });
    // `rawClient` accepts only CONNACK as the first packet.
    const second = await device(broker, {}, options);
    assert.deepEqual(await payloads(second), ['gone']);
  });

  it('[MQTT-3.1.2-8] publishes one will for each of many takeovers', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    for (let round = 0; round < 20; round++) {
      const payload = Buffer.from(String(round));
      await device(broker, { payload }, { clean: round % 3 === 0, properties: { sessionExpiryInterval: 100 } });
    }
    assert.deepEqual(
      await payloads(reader),
      Array.from({ length: 19 }, (_, at) => String(at))
    );
  });
});

describe('Content and lifetime of the will', () => {
  it('[MQTT-3.1.2-10] deletes the will once it has been published', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    await cut(await patient(broker, 1, 100));
    await clock.advance('2s');
    assert.deepEqual(await payloads(reader), ['gone']);
    await cut(await rawClient(broker, { clientId: 'device', clean: false, properties: { sessionExpiryInterval: 10 } }));
    await clock.advance('20s');
    assert.equal(broker.sessions.has('device'), false);
    await reader.nothing();
  });

  it('[MQTT-3.1.2-10] deletes the will once the client has sent DISCONNECT 0x00', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    const client = await patient(broker, 10, 100);
    client.send({ cmd: 'disconnect', reasonCode: 0 });
    await client.closed();
    const back = await rawClient(broker, {
      clientId: 'device',
      clean: false,
      properties: { sessionExpiryInterval: 1 }
    });
    await cut(back);
    await clock.advance('200s');
    await reader.nothing();
  });

  it('[MQTT-3.1.2-14] retains nothing when Will Retain is 0', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    reader.send(publish('will', 'before', { retain: true }));
    await reader.next('publish');
    await cut(await device(broker));
    assert.equal((await reader.next('publish')).retain, false);
    for await (const { payload } of broker.retained.match('will')) assert.equal(String(payload), 'before');
  });

  it('[MQTT-3.1.2-15] retains the will when Will Retain is 1, and removes the retained message if the will is empty', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    await cut(await device(broker, { retain: true, qos: 1 }));
    assert.equal((await reader.next('publish')).retain, true);
    const late = await rawClient(broker);
    await granted(late, 1, { topic: 'will', qos: 2 });
    const { payload, qos, retain } = await late.next('publish');
    assert.deepEqual([String(payload), qos, retain], ['gone', 1, true]);
    await cut(await device(broker, { retain: true, payload: Buffer.alloc(0) }));
    const later = await rawClient(broker);
    await granted(later, 1, 'will');
    await later.nothing();
  });

  it('[MQTT-3.1.2-7] publishes the will at its QoS, which a subscription may lower', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    const low = await rawClient(broker);
    await granted(low, 1, { topic: 'will', qos: 1 });
    for (const qos of [0, 1, 2] as const) {
      await cut(await device(broker, { qos }));
      assert.equal((await reader.next('publish')).qos, qos);
      assert.equal((await low.next('publish')).qos, Math.min(qos, 1));
    }
  });

  it('[MQTT-3.1.2-7] queues the will for subscribers that are offline', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const options = { clientId: 'away', clean: false, properties: { sessionExpiryInterval: 100 } };
    const away = await rawClient(broker, options);
    await granted(away, 1, { topic: 'will', qos: 1 });
    await cut(away);
    await cut(await device(broker, { qos: 2 }));
    const back = await rawClient(broker, options);
    assert.equal((await back.next('publish')).qos, 1);
  });

  it('[MQTT-3.1.3-10] publishes user properties in order with duplicates, and all other properties', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    const userProperties: UserProperty[] = [
      ['z', '1'],
      ['a', '2'],
      ['z', '1'],
      ['a', ''],
      ['', 'é']
    ];
    const properties: Properties = {
      payloadFormatIndicator: 1,
      messageExpiryInterval: 7,
      contentType: 'text/plain',
      responseTopic: 'answer/here',
      correlationData: Buffer.from([0, 255]),
      userProperties
    };
    await cut(await device(broker, { properties: { ...properties, willDelayInterval: 0 } }));
    assert.deepEqual((await reader.next('publish')).properties, properties);
  });

  it('[MQTT-3.3.2-6] starts the message expiry of the will when it is published', async () => {
    const { broker, clock, reader } = await stage();
    await using _ = broker;
    const away = await rawClient(broker, {
      clientId: 'away',
      clean: false,
      properties: { sessionExpiryInterval: 999 }
    });
    await granted(away, 1, { topic: 'will', qos: 1 });
    await cut(away);
    const given = { qos: 1 as const, properties: { messageExpiryInterval: 20, willDelayInterval: 60 } };
    await cut(await device(broker, given, { properties: { sessionExpiryInterval: 100 } }));
    await clock.advance('60s');
    assert.equal((await reader.next('publish')).properties?.messageExpiryInterval, 20);
    await clock.advance('15s');
    const back = await rawClient(broker, { clientId: 'away', clean: false });
    assert.equal((await back.next('publish')).properties?.messageExpiryInterval, 5);
  });

  it('[MQTT-3.3.2-6] limits the message expiry of the will to that of the broker', async () => {
    const { broker, reader } = await stage({ maxMessageExpiryInterval: 5 });
    for (const messageExpiryInterval of [undefined, 100, 3]) {
      await cut(await device(broker, { properties: { messageExpiryInterval } }));
      assert.deepEqual((await reader.next('publish')).properties, {
        messageExpiryInterval: messageExpiryInterval === 3 ? 3 : 5
      });
    }
    await cut(await device(broker, {}, { version: 4 }));
    assert.deepEqual((await reader.next('publish')).properties, { messageExpiryInterval: 5 });
  });

  it('[MQTT-3.3.2-5] does not deliver the will after its expiry', async () => {
    const { broker, clock } = await stage();
    await using _ = broker;
    const away = await rawClient(broker, {
      clientId: 'away',
      clean: false,
      properties: { sessionExpiryInterval: 999 }
    });
    await granted(away, 1, { topic: 'will', qos: 1 });
    await cut(away);
    await cut(await device(broker, { qos: 1, retain: true, properties: { messageExpiryInterval: 20 } }));
    await clock.advance('20s');
    const back = await rawClient(broker, { clientId: 'away', clean: false });
    await back.nothing();
    await granted(back, 2, '#');
    await back.nothing();
  });

  it('[MQTT-3.1.3-11] [MQTT-4.7.3-1] refuses an empty will topic or one with a wildcard: 0x82', async () => {
    const { broker } = await stage();
    await using _ = broker;
    for (const topic of ['', '#', 'a/+', 'a/#', '+'])
      assert.equal((await refusedConnect(broker, { will: will({ topic }) })).reasonCode, 0x82, topic);
    for (const topic of ['a/#', '']) {
      const client = await rawClient(broker, { version: 4, connect: false });
      client.send({
        cmd: 'connect',
        protocolVersion: 4,
        bridge: false,
        clientId: 'device',
        clean: true,
        keepalive: 0,
        will: will({ topic })
      });
      assert.deepEqual(await client.closed(), []);
    }
  });

  it('[MQTT-3.1.3-11] refuses a will topic with more levels than the zone allows: 0x90', async () => {
    const { broker, reader } = await stage({ maxTopicLevels: 4 });
    await using _ = broker;
    assert.equal((await refusedConnect(broker, { will: will({ topic: 'a/b/c/d/e' }) })).reasonCode, 0x90);
    await cut(await device(broker, { topic: 'a/b/c/d' }));
    assert.equal((await reader.next('publish')).topic, 'a/b/c/d');
  });

  it('[MQTT-3.1.2-7] publishes the will under the mount point and to the rewritten topic', async () => {
    const { broker } = await stage({ mountpoint: 'tenant/%u/' });
    await using _ = broker;
    const topics: string[] = [];
    broker.on('message.publish', ({ message }) => topics.push(message.topic));
    await cut(await device(broker, {}, { username: 'ann' }));
    assert.deepEqual(topics, ['tenant/ann/will']);
    const other = await startBroker({ rewrite: ['x/# ^x/(.+)$ y/$1'] });
    await using __ = other;
    other.on('message.publish', ({ message }) => topics.push(message.topic));
    await cut(await device(other, { topic: 'x/1' }));
    assert.deepEqual(topics.slice(1), ['y/1']);
  });

  it('[MQTT-4.8.2-3] delivers the will to another member of a share group when its own client was a member', async () => {
    const { broker } = await stage({ sharedSubscriptionStrategy: 'round_robin' });
    await using _ = broker;
    const client = await device(broker, { qos: 1 });
    await granted(client, 1, { topic: '$share/g/will', qos: 1 });
    const options = { clientId: 'away', clean: false, properties: { sessionExpiryInterval: 100 } };
    const away = await rawClient(broker, options);
    await granted(away, 1, { topic: '$share/g/will', qos: 1 });
    await cut(away);
    await cut(client);
    assert.deepEqual(await payloads(await rawClient(broker, options)), ['gone']);
  });

  it('[MQTT-3.8.3-3] does not deliver the will to its own client if that asked for No Local', async () => {
    const { broker } = await stage();
    await using _ = broker;
    const options = { clean: false, properties: { sessionExpiryInterval: 100 } };
    const client = await device(broker, { qos: 1 }, options);
    await granted(client, 1, { topic: 'will', qos: 1, noLocal: true });
    await cut(client);
    const back = await device(broker, {}, options);
    await back.nothing();
  });
});

describe('Authorization of the will', () => {
  it('[MQTT-3.1.2-8] authorizes the will with the identity of its client when it is published', async () => {
    const asked: string[] = [];
    let isAllowed = true;
    const authorizePublish: Hooks['authorizePublish'] = ({ client, message }) => {
      asked.push(`${client.clientId} ${client.username} ${message.topic} ${message.payload}`);
      return isAllowed;
    };
    const { broker, reader } = await stage({ hooks: { authorizePublish } });
    await using _ = broker;
    const dropped: DropReason[] = [];
    broker.on('message.dropped', ({ reason }) => dropped.push(reason));
    await cut(await device(broker, {}, { username: 'ann' }));
    assert.deepEqual(await payloads(reader), ['gone']);
    isAllowed = false;
    await cut(await device(broker, { retain: true }, { username: 'bob' }));
    await reader.nothing();
    assert.deepEqual(asked, ['device ann will gone', 'device bob will gone']);
    assert.deepEqual(dropped, ['not_authorized']);
    for await (const message of broker.retained.match('#')) assert.fail(`retained ${message.topic}`);
  });

  it('[MQTT-3.1.2-8] waits for a hook although the session has ended', async () => {
    const answer = withResolvers<boolean>();
    const { broker, reader } = await stage({ hooks: { authorizePublish: () => answer.promise } });
    await using _ = broker;
    await cut(await device(broker));
    assert.equal(broker.sessions.has('device'), false);
    await reader.nothing();
    answer.resolve(true);
    await turns();
    assert.deepEqual(await payloads(reader), ['gone']);
  });

  it('[MQTT-3.1.2-8] lets publish hooks change the will', async () => {
    const hooks: Hooks = {
      publish: ({ message, client }) => ({ topic: `changed/${message.topic}`, payload: `by ${client?.clientId}` })
    };
    const { broker, reader } = await stage({ hooks });
    await using _ = broker;
    await cut(await device(broker));
    const got: PublishPacket = await reader.next('publish');
    assert.deepEqual([got.topic, String(got.payload)], ['changed/will', 'by device']);
  });

  it('[MQTT-3.1.2-8] drops only the will whose hook throws, and reports the error', async () => {
    const hooks: Hooks = {
      authorizePublish: ({ message }) => {
        if (message.topic === 'bad') throw new Error('out of order');
        return true;
      }
    };
    const { broker, reader } = await stage({ hooks });
    await using _ = broker;
    const errors: string[] = [];
    broker.on('error', ({ error }) => errors.push(error.message));
    await cut(await device(broker, { topic: 'bad' }));
    await cut(await device(broker, { topic: 'good' }));
    assert.deepEqual(
      (await rest(reader)).map((packet) => (packet as PublishPacket).topic),
      ['good']
    );
    assert.deepEqual(errors, ['out of order']);
  });

  it('[MQTT-4.7.2-1] publishes no will under $SYS, and affects no other client', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    await granted(reader, 2, '$SYS/#');
    const dropped: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.topic} ${reason}`));
    await cut(await device(broker, { topic: '$SYS/brokers' }));
    await rest(reader);
    assert.ok(reader.received.every((packet) => packet.cmd !== 'publish' || packet.topic !== '$SYS/brokers'));
    assert.deepEqual(dropped, ['$SYS/brokers not_authorized']);
  });
});

describe('The will of 3.x clients', () => {
  for (const version of [3, 4] as const) {
    it(`[MQTT3-3.1.2-8] publishes the will at once, regardless of the session (protocol level ${version})`, async () => {
      const { broker, clock, reader } = await stage();
      await using _ = broker;
      for (const clean of [true, false]) {
        await cut(await device(broker, { qos: 1, retain: true }, { version, clean }));
        const { qos, retain, properties } = await reader.next('publish');
        assert.deepEqual([qos, retain, properties], [1, true, undefined]);
      }
      const client = await device(broker, {}, { version, keepalive: 10 });
      await clock.advance('15s');
      await client.closed();
      assert.deepEqual(await payloads(reader), ['gone']);
    });

    it(`[MQTT3-3.1.2-10] deletes the will once it has been published (protocol level ${version})`, async () => {
      const { broker, clock, reader } = await stage({ sessionExpiryInterval: 10 });
      await using _ = broker;
      await cut(await device(broker, {}, { version, clean: false }));
      assert.deepEqual(await payloads(reader), ['gone']);
      await cut(await rawClient(broker, { clientId: 'device', version, clean: false }));
      await clock.advance('20s');
      assert.equal(broker.sessions.has('device'), false);
      await reader.nothing();
    });

    it(`[MQTT3-3.14.4-3] deletes the will at DISCONNECT (protocol level ${version})`, async () => {
      const { broker, clock, reader } = await stage({ sessionExpiryInterval: 10 });
      await using _ = broker;
      for (const clean of [true, false]) {
        const client = await device(broker, {}, { version, clean });
        client.sendBytes('e000');
        await client.closed();
        await clock.advance('20s');
      }
      await reader.nothing();
    });
  }

  it('[MQTT3-3.1.4-2] publishes the will when another connection takes over the client id', async () => {
    const { broker, reader } = await stage();
    await using _ = broker;
    for (const clean of [false, true]) {
      const first = await device(broker, {}, { version: 4, clean });
      const second = await rawClient(broker, { clientId: 'device', version: 4, clean });
      await first.refused(0x8e);
      assert.deepEqual(await payloads(reader), ['gone']);
      await cut(second);
    }
  });
});
