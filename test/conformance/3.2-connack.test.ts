import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import type { EventName } from '../../lib/events/catalogue.ts';
import type { Properties, QoS, UserProperty } from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { connectPacket, type RawClient, rawClient } from '../support/raw-client.ts';
import {
  granted,
  payloads,
  publish,
  refusedConnect,
  rest,
  startBroker,
  subscribe,
  turns,
  withResolvers
} from '../support/wire.ts';
import { connectBytes, field, frame } from '../support/wire-connect.ts';

const x = field('x');
const NONE = Buffer.from([0]);

function me(broker: Broker, properties: Properties = {}, clean = false): Promise<RawClient> {
  return rawClient(broker, { clientId: 'me', clean, properties: { sessionExpiryInterval: 100, ...properties } });
}

async function cut(client: RawClient): Promise<void> {
  client.cut();
  await turns(4);
}

/** Returns all bytes that the broker sends for a CONNECT. */
async function answer(broker: Broker, bytes: Buffer): Promise<Buffer> {
  const stream = broker.stream();
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.write(bytes);
  await turns();
  stream.destroy();
  return Buffer.concat(chunks);
}

function properties(client: RawClient): Properties {
  return client.connack?.properties ?? {};
}

/** Collects the sizes of the packets that a client receives. */
function sizes(client: RawClient): number[] {
  const all: number[] = [];
  let rest = Buffer.alloc(0);
  client.stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      let length = 0;
      let at = 1;
      for (let shift = 0; at < rest.length; shift += 7) {
        length |= (rest[at] & 127) << shift;
        if (rest[at++] < 128) break;
      }
      if (rest.length < 2 || rest.length < at + length) return;
      all.push(at + length);
      rest = rest.subarray(at + length);
    }
  });
  return all;
}

describe('CONNACK', () => {
  it('[MQTT-3.2.0-1] sends CONNACK before the messages that are queued for a resumed session', async () => {
    await using broker = await startBroker();
    const client = await me(broker);
    await granted(client, 1, { topic: '#', qos: 1 });
    await broker.publish('x', 'in flight', { qos: 1 });
    await client.next('publish');
    await cut(client);
    await broker.publish('x', 'waiting', { qos: 1 });
    const back = await rawClient(broker, { connect: false });
    back.send(connectPacket({ clientId: 'me', clean: false }), publish('x', 'behind'));
    const got = (await rest(back)).map((packet) => (packet.cmd === 'publish' ? String(packet.payload) : packet.cmd));
    assert.deepEqual(got, ['connack', 'in flight', 'waiting', 'behind']);
  });

  it('[MQTT-3.2.0-1] sends CONNACK before retained messages of subscriptions made at connect', async () => {
    await using broker = await startBroker({ autoSubscriptions: [{ topic: 'x', qos: 1 }] });
    await broker.publish('x', 'kept', { retain: true });
    assert.deepEqual(await payloads(await rawClient(broker)), ['kept']);
    await cut(await me(broker));
    assert.deepEqual(await payloads(await me(broker)), ['kept']);
  });

  it('[MQTT-3.2.0-1] sends CONNACK before messages that the app publishes in listeners of session events', async () => {
    const names: EventName[] = [
      'client.connect',
      'session.takenover',
      'client.disconnected',
      'session.discarded',
      'session.terminated',
      'session.created',
      'session.resumed',
      'client.connack',
      'client.connected'
    ];
    for (const qos of [0, 1, 2] as const) {
      for (const clean of [true, false]) {
        await using broker = await startBroker();
        const client = await me(broker);
        await granted(client, 1, { topic: 'x', qos: 2 });
        const heard: EventName[] = [];
        for (const name of names) {
          broker.on(name, () => {
            heard.push(name);
            void broker.publish('x', name, { qos });
          });
        }
        const second = await me(broker, {}, clean);
        // QoS 1 and 2 messages that were sent to the old connection are sent again.
        const again = qos === 0 ? [] : ['client.connect', 'session.takenover'];
        const later = ['client.disconnected', 'session.resumed', 'client.connack', 'client.connected'];
        assert.deepEqual(await payloads(second), clean ? [] : [...again, ...later], `QoS ${qos}`);
        assert.ok(heard.includes('client.connack'));
      }
    }
  });

  it('[MQTT-3.2.0-1] sends CONNACK before retained messages of subscriptions that the app adds when the session is created', async () => {
    await using broker = await startBroker();
    await broker.publish('x', 'kept', { retain: true });
    broker.on('session.created', ({ client }) => {
      broker.sessions.get(client.clientId).subscribe('x');
    });
    assert.deepEqual(await payloads(await rawClient(broker)), ['kept']);
  });

  it('[MQTT-3.2.0-1] sends CONNACK before messages from other clients in the same turn', async () => {
    await using broker = await startBroker();
    const writer = await rawClient(broker);
    const client = await me(broker);
    await granted(client, 1, 'x');
    const second = await rawClient(broker, { connect: false });
    const packets = Array.from({ length: 50 }, (_, at) => publish('x', String(at)));
    writer.send(...packets.slice(0, 25));
    second.send(connectPacket({ clientId: 'me', clean: false }));
    writer.send(...packets.slice(25));
    await turns();
    assert.equal((await second.next('connack')).sessionPresent, true);
    const got = [...client.received, ...(await rest(second))].flatMap((packet) =>
      packet.cmd === 'publish' ? [String(packet.payload)] : []
    );
    assert.deepEqual(
      got,
      packets.map(({ payload }) => String(payload))
    );
  });

  it('[MQTT-3.2.0-2] sends CONNACK once, regardless of listeners and hooks', async () => {
    await using broker = await startBroker();
    broker.on('client.connack', ({ client }) => {
      if (client.clientId === 'kicked' && broker.sessions.has('kicked')) broker.sessions.get('kicked').kick();
    });
    const client = await rawClient(broker, { connect: false });
    client.send(connectPacket({ clientId: 'kicked' }));
    await client.closed();
    assert.equal(client.received.filter(({ cmd }) => cmd === 'connack').length, 1);
    const good = await rawClient(broker);
    good.send(connectPacket());
    await good.closed();
    assert.equal(good.received.filter(({ cmd }) => cmd === 'connack').length, 1);
  });

  it('[MQTT-3.2.2-1] sets no flag but Session Present in CONNACK', async () => {
    await using broker = await startBroker();
    const persistent = connectBytes({ flags: 0, properties: Buffer.from('1100000064', 'hex') });
    assert.equal((await answer(broker, persistent))[2], 0);
    assert.equal((await answer(broker, persistent))[2], 1);
    assert.equal((await answer(broker, connectBytes({ flags: 0x03 })))[2], 0);
    assert.equal((await answer(broker, connectBytes({ level: 4, flags: 0, clientId: 'four' })))[2], 0);
    assert.equal((await answer(broker, connectBytes({ level: 4, flags: 0, clientId: 'four' })))[2], 1);
  });

  it('[MQTT-3.2.2-2] sends Session Present 0 for Clean Start 1', async () => {
    await using broker = await startBroker();
    await cut(await me(broker));
    assert.equal((await me(broker, {}, true)).connack?.sessionPresent, false);
    assert.equal((await me(broker, {}, true)).connack?.sessionPresent, false); // taken over
  });

  it('[MQTT-3.2.2-3] sends Session Present 1 for Clean Start 0 if a session is stored, even one without subscriptions', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const first = await me(broker);
    assert.equal(first.connack?.sessionPresent, false);
    const second = await me(broker);
    assert.equal(second.connack?.sessionPresent, true); // connected
    await cut(second);
    const third = await me(broker);
    assert.equal(third.connack?.sessionPresent, true); // offline
    await cut(third);
    await clock.advance('100s');
    assert.equal((await me(broker)).connack?.sessionPresent, false); // expired
    const brief = await rawClient(broker, { clientId: 'brief', clean: false });
    assert.equal(brief.connack?.sessionPresent, false);
    assert.equal((await rawClient(broker, { clientId: 'brief', clean: false })).connack?.sessionPresent, false);
  });

  it('[MQTT-3.2.2-6] sends Session Present 0 in a refusing CONNACK, even if a session is stored', async () => {
    const hooks = { authenticate: ({ username }: { username?: string }) => username !== 'thief' };
    await using broker = await startBroker({ hooks });
    await cut(await me(broker));
    for (const version of [4, 5] as const) {
      const given = { clientId: 'me', clean: false, username: 'thief', version };
      assert.equal((await refusedConnect(broker, given)).sessionPresent, false);
    }
    assert.equal((await me(broker)).connack?.sessionPresent, true);
  });

  it('[MQTT-3.2.2-7] closes after a refusing CONNACK', async () => {
    await using broker = await startBroker({ hooks: { preConnect: () => ({ allow: false, reasonCode: 0x9c }) } });
    const client = await rawClient(broker, { connect: false });
    client.send(connectPacket(), subscribe(1, 'x'), { cmd: 'pingreq' });
    await client.closed();
    assert.equal(client.received.length, 1);
  });

  it('[MQTT-3.2.2-8] sends a valid reason code in CONNACK, regardless of what a hook returns', async () => {
    const table = new Set([
      0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99, 0x9a, 0x9b, 0x9c,
      0x9d, 0x9f
    ]);
    let reasonCode = 0;
    await using broker = await startBroker({ hooks: { preConnect: () => ({ allow: false, reasonCode }) } });
    for (reasonCode = 0; reasonCode < 256; reasonCode++) {
      const bytes = await answer(broker, connectBytes());
      assert.equal(bytes[0], 0x20, `code ${reasonCode}`);
      assert.ok(table.has(bytes[3]), `hook ${reasonCode}, CONNACK ${bytes[3]}`);
      if (table.has(reasonCode)) assert.equal(bytes[3], reasonCode);
      // 3.x: return codes 1 to 5, or no answer.
      const old = await answer(broker, connectBytes({ level: 4 }));
      assert.ok(
        old.length === 0 || (old.length === 4 && old[2] === 0 && old[3] >= 1 && old[3] <= 5),
        old.toString('hex')
      );
    }
  });

  it('[MQTT-3.2.2-16] assigns no client id that a stored session has', async () => {
    await using broker = await startBroker();
    const ids = new Set<string>();
    for (let count = 0; count < 100; count++) {
      const client = await rawClient(broker, {
        clientId: '',
        clean: false,
        properties: { sessionExpiryInterval: 100 }
      });
      assert.equal(client.connack?.sessionPresent, false);
      ids.add(properties(client).assignedClientIdentifier as string);
      await cut(client);
    }
    assert.equal(ids.size, 100);
    assert.equal([...broker.sessions].length, 100);
  });
});

describe('Announcements in CONNACK', () => {
  it('[MQTT-3.2.2-9] announces Maximum QoS if it is less than 2', async () => {
    for (const maxQosAllowed of [0, 1, 2] as const) {
      await using broker = await startBroker({ maxQosAllowed });
      const expected = maxQosAllowed === 2 ? undefined : maxQosAllowed;
      assert.equal(properties(await rawClient(broker)).maximumQoS, expected);
    }
  });

  it('[MQTT-3.2.2-10] accepts subscriptions of every QoS nevertheless, and grants less', async () => {
    for (const maxQosAllowed of [0, 1] as const) {
      await using broker = await startBroker({ maxQosAllowed });
      for (const version of [4, 5] as const) {
        const client = await rawClient(broker, { version });
        const filters = ([0, 1, 2] as QoS[]).map((qos) => ({ topic: `x/${qos}`, qos }));
        assert.deepEqual(await granted(client, 1, filters), [0, maxQosAllowed, maxQosAllowed]);
      }
    }
  });

  it('[MQTT-3.2.2-11] closes with 0x9B for a PUBLISH above Maximum QoS', async () => {
    await using broker = await startBroker({ maxQosAllowed: 1 });
    const client = await rawClient(broker);
    client.send(publish('x', '', { qos: 1, messageId: 1 }));
    await client.next('puback');
    client.send(publish('x', '', { qos: 2, messageId: 2 }));
    await client.refused(0x9b);
  });

  it('[MQTT-3.2.2-12] refuses a will above Maximum QoS with 0x9B', async () => {
    await using broker = await startBroker({ maxQosAllowed: 0 });
    for (const qos of [1, 2] as const) {
      const will = { topic: 'will', payload: Buffer.alloc(0), qos, retain: false };
      assert.equal((await refusedConnect(broker, { will })).reasonCode, 0x9b);
      assert.equal(
        (await answer(broker, connectBytes({ level: 4, flags: 6 | (qos << 3), payload: [x, x] }))).length,
        0
      );
    }
    await rawClient(broker, { will: { topic: 'will', payload: Buffer.alloc(0), qos: 0, retain: false } });
  });

  it('[MQTT-3.2.2-13] refuses a retained will with 0x9A if retain is off', async () => {
    await using broker = await startBroker({ retainAvailable: false });
    assert.equal(properties(await rawClient(broker)).retainAvailable, 0);
    const will = { topic: 'will', payload: Buffer.alloc(0), qos: 0 as const, retain: true };
    assert.equal((await refusedConnect(broker, { will })).reasonCode, 0x9a);
  });

  it('[MQTT-3.2.2-14] closes with 0x9A for a retained PUBLISH if retain is off', async () => {
    await using broker = await startBroker({ retainAvailable: false });
    for (const qos of [0, 1, 2] as const) {
      const client = await rawClient(broker);
      client.send(publish('x', 'kept', { qos, retain: true, messageId: qos === 0 ? undefined : 1 }));
      assert.deepEqual(await client.refused(0x9a), []);
    }
    for await (const message of broker.retained.match('#')) assert.fail(message.topic);
  });

  it('[MQTT-3.2.2-15] closes with 0x95 for a packet above the Maximum Packet Size, at its fixed header', async () => {
    await using broker = await startBroker({ maxPacketSize: 200 });
    const first = await rawClient(broker);
    assert.equal(properties(first).maximumPacketSize, 200);
    const fits = frame(0x32, x, Buffer.from([0, 1]), NONE, Buffer.alloc(200 - 9));
    assert.equal(fits.length, 200);
    first.send(fits);
    await first.next('puback');
    first.send(frame(0x32, x, Buffer.from([0, 1]), NONE, Buffer.alloc(200 - 8)).subarray(0, 3));
    assert.deepEqual(await first.refused(0x95), []);
    for (const header of ['30ffffff7f', '82ff01', 'e0ffff03']) {
      const client = await rawClient(broker);
      client.sendBytes(header);
      assert.deepEqual(await client.refused(0x95), []);
    }
  });

  it('[MQTT-3.2.2-17] closes with 0x94 for an alias above the announced maximum', async () => {
    await using broker = await startBroker({ maxTopicAlias: 5 });
    const client = await rawClient(broker);
    assert.equal(properties(client).topicAliasMaximum, 5);
    client.send(publish('x', '', { properties: { topicAlias: 5 } }));
    await client.nothing();
    client.send(publish('x', '', { properties: { topicAlias: 6 } }));
    await client.refused(0x94);
  });

  it('[MQTT-3.2.2-18] closes with 0x94 for any alias if no Topic Alias Maximum is announced', async () => {
    await using broker = await startBroker({ maxTopicAlias: 0 });
    const client = await rawClient(broker);
    assert.equal(properties(client).topicAliasMaximum, undefined);
    client.send(publish('x', '', { properties: { topicAlias: 1 } }));
    await client.refused(0x94);
  });

  it('[MQTT-3.3.4-7] announces Receive Maximum if it is below 65535, and closes with 0x93 when it is exceeded', async () => {
    await using broker = await startBroker({ receiveMaximum: 3 });
    const client = await rawClient(broker);
    assert.equal(properties(client).receiveMaximum, 3);
    for (const messageId of [1, 2, 3]) client.send(publish('x', '', { qos: 2, messageId }));
    await rest(client);
    client.send(publish('x', '', { qos: 2, messageId: 4 }));
    await client.refused(0x93);
    await using free = await startBroker();
    assert.equal(properties(await rawClient(free)).receiveMaximum, undefined);
  });

  it('[MQTT-3.9.3-2] announces each feature that is switched off, and refuses it with its code', async () => {
    const switches: [BrokerOptions, keyof Properties, Parameters<typeof subscribe>, number][] = [
      [{ wildcardSubscription: false }, 'wildcardSubscriptionAvailable', [1, ['x/+', 'x']], 0xa2],
      [{ sharedSubscription: false }, 'sharedSubscriptionAvailable', [1, ['$share/g/x', 'x']], 0x9e],
      [
        { subscriptionIdentifiers: false },
        'subscriptionIdentifiersAvailable',
        [1, ['x'], { subscriptionIdentifier: [3] }],
        0xa1
      ]
    ];
    await using open = await startBroker();
    const all = properties(await rawClient(open));
    for (const [options, name, request, code] of switches) {
      assert.equal(all[name], undefined);
      await using broker = await startBroker(options);
      const client = await rawClient(broker);
      assert.equal(properties(client)[name], 0);
      client.send(subscribe(...request));
      assert.equal((await client.next('suback')).granted[0], code);
    }
  });

  it('[MQTT-3.2.2-8] announces only Maximum Packet Size and Topic Alias Maximum if nothing is limited', async () => {
    await using broker = await startBroker();
    assert.deepEqual(properties(await rawClient(broker)), { maximumPacketSize: 1_048_576, topicAliasMaximum: 64 });
  });
});

describe('Limits and requests in CONNECT', () => {
  it("[MQTT-3.1.2-24] sends packets up to the client's Maximum Packet Size, and none larger", async () => {
    await using broker = await startBroker();
    for (const maximumPacketSize of [30, 64, 300]) {
      const client = await rawClient(broker, { properties: { maximumPacketSize } });
      const seen = sizes(client);
      await granted(client, 1, { topic: 'x', qos: 2 });
      for (let bytes = 0; bytes < maximumPacketSize + 5; bytes++) {
        for (const qos of [0, 1, 2] as const) {
          await broker.publish('x', Buffer.alloc(bytes), { qos });
          for (const packet of await rest(client)) {
            assert.ok(packet.cmd === 'publish' || packet.cmd === 'pubrel');
            if (packet.cmd !== 'publish' || packet.messageId === undefined) continue;
            const { messageId } = packet;
            client.send({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId, reasonCode: qos === 1 ? 0 : 0x80 });
          }
        }
      }
      assert.equal(Math.max(...seen), maximumPacketSize);
      client.cut();
    }
  });

  it('[MQTT-3.1.2-24] counts properties, including those that the broker adds, for the Maximum Packet Size', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { properties: { maximumPacketSize: 40, topicAliasMaximum: 5 } });
    const seen = sizes(client);
    client.send(subscribe(1, { topic: 'x', qos: 1 }, { subscriptionIdentifier: [268_435_455] }));
    await client.next('suback');
    for (let bytes = 0; bytes < 40; bytes++) {
      for (const properties of [{}, { contentType: 'text' }, { userProperties: [['a', 'b']] as UserProperty[] }]) {
        await broker.publish('x', Buffer.alloc(bytes), {
          qos: 1,
          properties: { messageExpiryInterval: 9, ...properties }
        });
        for (const packet of await rest(client))
          if (packet.cmd === 'publish')
            client.send({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
      }
    }
    assert.ok(Math.max(...seen) <= 40 && Math.max(...seen) >= 38, String(Math.max(...seen)));
  });

  it('[MQTT-3.1.2-24] refuses the client if its CONNACK exceeds the Maximum Packet Size, and does not send that CONNACK', async () => {
    await using broker = await startBroker();
    const whole = await answer(broker, connectBytes({ clientId: 'fits' }));
    for (let size = 1; size <= whole.length; size++) {
      const block = Buffer.from([0x27, 0, 0, 0, size]);
      const got = await answer(broker, connectBytes({ clientId: `size${size}`, properties: block }));
      assert.ok(got.length <= size, `${got.length} bytes for ${size}`);
      if (size === whole.length) assert.equal(got[3], 0);
      else {
        if (got.length > 0) assert.ok(got[3] >= 0x80);
        assert.equal(broker.sessions.has(`size${size}`), false);
      }
    }
  });

  it('[MQTT-3.1.2-25] drops a message that is too large as if it were delivered, and delivers it to other clients', async () => {
    await using broker = await startBroker({ maxInflight: 1 });
    const dropped: string[] = [];
    broker.on('message.dropped', ({ reason, client }) => dropped.push(`${client?.clientId} ${reason}`));
    const options = { properties: { maximumPacketSize: 50, sessionExpiryInterval: 100 }, clean: false };
    const small = await rawClient(broker, { clientId: 'small', ...options });
    const large = await rawClient(broker, { clientId: 'large' });
    for (const client of [small, large]) await granted(client, 1, { topic: 'x', qos: 2 });
    const writer = await rawClient(broker);
    for (const qos of [1, 2] as const) {
      writer.send(publish('x', 'a'.repeat(100), { qos, messageId: qos }));
      // The flow with the publisher is unaffected.
      assert.equal((await writer.next(qos === 1 ? 'puback' : 'pubrec')).reasonCode, 0);
      const { messageId } = await large.next('publish');
      large.send({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId: messageId as number, reasonCode: 0x80 });
    }
    await small.nothing();
    // The dropped messages take no place in the window of one message.
    await broker.publish('x', 'fits', { qos: 1 });
    assert.equal(String((await small.next('publish')).payload), 'fits');
    assert.deepEqual(dropped, ['small too_large', 'small too_large']);
    // Queued messages are checked against the limit of the next connection.
    await cut(small);
    await broker.publish('x', 'b'.repeat(40), { qos: 1 });
    await broker.publish('x', 'c', { qos: 1 });
    const properties = { maximumPacketSize: 30, sessionExpiryInterval: 100 };
    const back = await rawClient(broker, { clientId: 'small', clean: false, properties });
    const first = await back.next('publish');
    assert.deepEqual([String(first.payload), first.dup], ['fits', true]);
    back.send({ cmd: 'puback', messageId: first.messageId as number, reasonCode: 0 });
    assert.equal(String((await back.next('publish')).payload), 'c');
  });

  it('[MQTT-3.1.2-26] keeps topic aliases towards the client within its Topic Alias Maximum', async () => {
    await using broker = await startBroker({ maxOutboundTopicAlias: 20 });
    for (const topicAliasMaximum of [1, 5, 100]) {
      const client = await rawClient(broker, { properties: { topicAliasMaximum } });
      await granted(client, 1, 'x/#');
      const topics = new Map<number, string>();
      const wanted: string[] = [];
      // Each topic three times in a row, then all topics again.
      for (let count = 0; count < 120; count++) {
        const topic = `x/${Math.floor(count / 3) % 30}`;
        wanted.push(topic);
        await broker.publish(topic, topic);
      }
      const got: string[] = [];
      for (const packet of await rest(client)) {
        assert.ok(packet.cmd === 'publish');
        const alias = packet.properties?.topicAlias;
        if (alias !== undefined) {
          assert.ok(alias >= 1 && alias <= Math.min(topicAliasMaximum, 20), `alias ${alias}`);
          if (packet.topic !== '') topics.set(alias, packet.topic);
        }
        got.push(packet.topic === '' ? (topics.get(alias as number) as string) : packet.topic);
        assert.equal(got.at(-1), String(packet.payload));
      }
      assert.deepEqual(got, wanted);
      assert.equal(topics.size, Math.min(topicAliasMaximum, 20));
      client.cut();
    }
  });

  it('[MQTT-3.1.2-27] sends no alias if Topic Alias Maximum is absent or 0', async () => {
    await using broker = await startBroker();
    for (const properties of [undefined, { topicAliasMaximum: 0 }]) {
      const client = await rawClient(broker, { properties });
      await granted(client, 1, 'x');
      for (let count = 0; count < 5; count++) await broker.publish('x', 'a');
      for (const packet of await rest(client)) {
        assert.ok(packet.cmd === 'publish' && packet.topic === 'x');
        assert.equal(packet.properties?.topicAlias, undefined);
      }
    }
  });

  it('[MQTT-3.1.2-28] sends Response Information only to clients that request it', async () => {
    await using broker = await startBroker({ responseInformation: 'answers/%c/%u' });
    const ask = async (requestResponseInformation: 0 | 1 | undefined) => {
      const client = await rawClient(broker, {
        clientId: 'me',
        username: 'ann',
        properties: { requestResponseInformation }
      });
      return properties(client).responseInformation;
    };
    assert.equal(await ask(undefined), undefined);
    assert.equal(await ask(0), undefined);
    assert.equal(await ask(1), 'answers/me/ann');
    await using without = await startBroker();
    const client = await rawClient(without, { properties: { requestResponseInformation: 1 } });
    assert.equal(properties(client).responseInformation, undefined);
  });

  it('[MQTT-3.1.2-29] sends reasons only where they are still allowed when Request Problem Information is 0', async () => {
    const hooks = {
      authorizePublish: ({ message }: { message: { topic: string } }) =>
        message.topic !== 'no' || ({ allow: false, reasonCode: 0x87, reasonString: 'not you' } as const),
      authorizeSubscribe: ({ filter }: { filter: string }) =>
        filter !== 'no' || ({ allow: false, reasonCode: 0x87, reasonString: 'not you' } as const)
    };
    await using broker = await startBroker({ hooks });
    const client = await rawClient(broker, { properties: { requestProblemInformation: 0 } });
    client.send(publish('no', '', { qos: 1, messageId: 1 }), publish('no', '', { qos: 2, messageId: 2 }));
    client.send(subscribe(3, ['no', '$queue/']), {
      cmd: 'unsubscribe',
      messageId: 4,
      unsubscriptions: ['none', '$queue/']
    });
    client.send({ cmd: 'pubrel', messageId: 9, reasonCode: 0 }, { cmd: 'pubrec', messageId: 9, reasonCode: 0 });
    const answers = await rest(client);
    assert.deepEqual(
      answers.map(({ cmd }) => cmd),
      ['puback', 'pubrec', 'suback', 'unsuback', 'pubcomp', 'pubrel']
    );
    for (const packet of answers)
      assert.equal((packet as { properties?: Properties }).properties, undefined, packet.cmd);
    await granted(client, 5, 'x');
    await broker.publish('x', '', { properties: { userProperties: [['a', 'b']] } });
    assert.deepEqual((await client.next('publish')).properties?.userProperties, [['a', 'b']]);
    client.sendBytes('0000');
    await client.refused(0x81);
  });

  it('[MQTT-3.2.2-19] omits the Reason String of a refusing CONNACK that would be too large', async () => {
    const reasonString = 'a long story';
    await using broker = await startBroker({
      hooks: { preConnect: () => ({ allow: false, reasonCode: 0x87, reasonString }) }
    });
    const whole = 2 + 2 + 1 + 3 + reasonString.length;
    for (const maximumPacketSize of [5, 10, whole - 1, whole]) {
      const connack = await refusedConnect(broker, { properties: { maximumPacketSize } });
      assert.equal(connack.reasonCode, 0x87);
      assert.equal(connack.properties?.reasonString, maximumPacketSize < whole ? undefined : reasonString);
    }
    for (const size of [1, 2, 3, 4]) {
      const bytes = await answer(broker, connectBytes({ properties: Buffer.from([0x27, 0, 0, 0, size]) }));
      assert.equal(bytes.length, 0);
    }
  });

  it('[MQTT-3.2.2-20] omits the user properties of a CONNACK that would be too large, but no property that binds the client', async () => {
    const userProperties: UserProperty[] = [['greeting', 'a'.repeat(50)]];
    const hooks = { authenticate: () => ({ allow: true, userProperties }) as const };
    await using broker = await startBroker({ hooks, receiveMaximum: 7 });
    const free = await rawClient(broker);
    assert.deepEqual(properties(free).userProperties, userProperties);
    const tight = await rawClient(broker, { properties: { maximumPacketSize: 40 } });
    assert.equal(properties(tight).userProperties, undefined);
    assert.equal(properties(tight).receiveMaximum, 7);
    assert.equal(properties(tight).maximumPacketSize, 1_048_576);
  });
});

describe('CONNACK of 3.x', () => {
  const connect4 = (clean: boolean) => connectBytes({ level: 4, flags: clean ? 2 : 0, clientId: 'me' });
  const connect3 = (clean: boolean) => connectBytes({ name: 'MQIsdp', level: 3, flags: clean ? 2 : 0, clientId: 'me' });

  it('[MQTT3-3.2.2-1] sends Session Present 0 for CleanSession 1', async () => {
    await using broker = await startBroker();
    await answer(broker, connect4(false));
    assert.equal((await answer(broker, connect4(true))).toString('hex'), '20020000');
  });

  it('[MQTT3-3.2.2-2] sends Session Present 1 for CleanSession 0 if a session is stored, even an empty one', async () => {
    await using broker = await startBroker();
    await answer(broker, connect4(false));
    assert.equal((await answer(broker, connect4(false))).toString('hex'), '20020100');
  });

  it('[MQTT3-3.2.2-3] sends Session Present 0 for CleanSession 0 if no session is stored', async () => {
    await using broker = await startBroker();
    assert.equal((await answer(broker, connect4(false))).toString('hex'), '20020000');
    await answer(broker, connect4(true));
    assert.equal((await answer(broker, connect4(false))).toString('hex'), '20020000');
  });

  it('[MQTT3-3.2.2-4] [MQTT3-3.2.2-5] sends Session Present 0 in a refusing CONNACK, and closes', async () => {
    let isOpen = true;
    await using broker = await startBroker({ hooks: { preConnect: () => isOpen } });
    await answer(broker, connect4(false));
    isOpen = false;
    const client = await rawClient(broker, { version: 4, connect: false });
    const chunks: Buffer[] = [];
    client.stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    client.send(connect4(false));
    await client.closed();
    assert.equal(Buffer.concat(chunks).toString('hex'), '20020005');
  });

  it('[MQTT3-3.2.2-6] sends no CONNACK if no return code fits, and closes the connection', async () => {
    await using broker = await startBroker({ retainAvailable: false, maxQosAllowed: 0 });
    for (const flags of [0x26, 0x0e]) {
      for (const head of [{ level: 4 }, { level: 3, name: 'MQIsdp' }])
        assert.equal((await answer(broker, connectBytes({ ...head, flags, payload: [x, x] }))).length, 0);
    }
  });

  it('[MQTT3-connack-codes] sends the return code from 1 to 5 that corresponds to the reason code of 5.0', async () => {
    const codes: [reasonCode: number, returnCode: number | undefined][] = [
      [0x84, 1],
      [0x85, 2],
      [0x88, 3],
      [0x89, 3],
      [0x97, 3],
      [0x9c, 3],
      [0x9d, 3],
      [0x9f, 3],
      [0x86, 4],
      [0x87, 5],
      [0x8a, 5],
      [0x8c, 5],
      [0x80, undefined],
      [0x83, undefined],
      [0x95, undefined]
    ];
    let reasonCode = 0;
    await using broker = await startBroker({ hooks: { preConnect: () => ({ allow: false, reasonCode }) } });
    for (const [given, returnCode] of codes) {
      reasonCode = given;
      const expected = returnCode === undefined ? '' : `2002000${returnCode}`;
      for (const connect of [connect4, connect3])
        assert.equal((await answer(broker, connect(true))).toString('hex'), expected, given.toString(16));
    }
  });

  it('[MQTT3-connack-codes] sends return code 4 for a wrong user name or password, and 5 for a missing one', async () => {
    await using broker = await startBroker({ allowAnonymous: false });
    assert.equal((await answer(broker, connect4(true))).toString('hex'), '20020005');
    const named = connectBytes({ level: 4, flags: 0x82, payload: [field('user')] });
    assert.equal((await answer(broker, named)).toString('hex'), '20020004');
  });

  it('[MQTT3-no-v5] sends no property in CONNACK, and does not change the keep alive or expiry of a 3.x client', async () => {
    const options = { serverKeepalive: 5, maxSessionExpiryInterval: 5, receiveMaximum: 5, responseInformation: 'x' };
    await using broker = await startBroker(options);
    for (const connect of [connect3, connect4]) assert.equal((await answer(broker, connect(true))).length, 4);
  });

  it('[MQTT31-no-session-present] sends 0 as the first byte of CONNACK in MQTT 3.1, even if a session is stored', async () => {
    await using broker = await startBroker();
    for (let count = 0; count < 3; count++)
      assert.equal((await answer(broker, connect3(false))).toString('hex'), '20020000');
    assert.equal((await answer(broker, connect4(false))).toString('hex'), '20020100');
  });
});

describe('CONNACK after an asynchronous hook', () => {
  it('[MQTT-3.2.0-1] sends CONNACK as the first packet even if another connection of the session receives messages in the meantime', async () => {
    const decision = withResolvers<boolean>();
    let count = 0;
    const hooks = { authenticate: () => (count++ === 0 ? true : decision.promise) };
    await using broker = await startBroker({ hooks });
    const first = await me(broker);
    await granted(first, 1, { topic: 'x', qos: 1 });
    const second = await rawClient(broker, { connect: false });
    second.send(connectPacket({ clientId: 'me', clean: false, properties: { sessionExpiryInterval: 100 } }));
    await turns();
    await broker.publish('x', 'to the first', { qos: 1 });
    assert.equal(String((await first.next('publish')).payload), 'to the first');
    decision.resolve(true);
    assert.equal((await second.next('connack')).sessionPresent, true);
    const again = await second.next('publish');
    assert.deepEqual([String(again.payload), again.dup], ['to the first', true]);
  });
});
