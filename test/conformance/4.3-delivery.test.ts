import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import type { Packet, ProtocolVersion, PublishPacket, QoS } from '../../lib/packets/types.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { ack, cutOff, onlyPublish, persistent, subscriber, summarize, timedBroker } from '../support/flows.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { publish, subscribe, turns, withResolvers } from '../support/wire.ts';

/** Statement ids of both standards for the same rule, because the flows are the same in all versions. */
function rule(version: ProtocolVersion, of5: string, of4: string): string {
  if (version === 5) return `[${of5}]`;
  return version === 4 ? `[${of4}]` : `[${of4}] (3.1)`;
}

/** Acknowledges the messages that a client has received and still receives with QoS 1. Returns their payloads by topic. */
async function acknowledgeAll(client: RawClient, received: readonly Packet[] = []): Promise<Map<string, string[]>> {
  const got = new Map<string, string[]>();
  for (let packets = received, isFirst = true; isFirst || packets.length > 0; packets = await client.rest()) {
    isFirst = false;
    for (const packet of packets) {
      if (packet.cmd !== 'publish') continue;
      got.set(packet.topic, [...(got.get(packet.topic) ?? []), String(packet.payload)]);
      client.send(ack('puback', packet.messageId as number));
    }
  }
  return got;
}

describe('Session state', () => {
  it('[MQTT-4.1.0-1] keeps the session state while the connection is open, even with an expiry of 0', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    for (const sessionExpiryInterval of [0, 5]) {
      const client = await subscriber(broker, { topic: 'a', qos: 2 }, { properties: { sessionExpiryInterval } });
      client.send(publish('x', '', { qos: 2, messageId: 5 }));
      await client.rest();
      await clock.advance('1h');
      await broker.publish('a', 'x', { qos: 2 });
      client.send(publish('x', '', { qos: 2, messageId: 5, dup: true }));
      assert.deepEqual(summarize(await client.rest()), ['publish 1 q2 a=x', 'pubrec 5']);
      client.cut();
    }
  });

  it('[MQTT-4.1.0-2] drops the session state when its expiry has passed, not earlier', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 10 } };
    await cutOff(broker, await subscriber(broker, { topic: 'a', qos: 1 }, options));
    await broker.publish('a', 'kept', { qos: 1 });
    await clock.advance('9s');
    const back = await rawClient(broker, options);
    assert.equal(back.connack?.sessionPresent, true);
    assert.deepEqual(summarize(await back.rest()), ['publish 1 q1 a=kept']);
    await cutOff(broker, back);
    await clock.advance('11s');
    assert.equal(broker.sessions.has('c'), false);
    const fresh = await rawClient(broker, options);
    assert.equal(fresh.connack?.sessionPresent, false);
    await fresh.nothing();
  });
});

describe('Transport', () => {
  it('[MQTT-4.2.0-1] accepts any ordered, lossless stream: packets may be split anywhere', async () => {
    await using test = await timedBroker();
    const receiver = await subscriber(test.broker, { topic: '#', qos: 1 });
    const client = await rawClient(test.broker);
    const expected: string[] = [];
    const packets: Buffer[] = [];
    for (let n = 1; n <= 60; n++) {
      const qos = (n % 2) as QoS;
      const packet = publish('a/b', `${n}`.repeat(n), { qos, messageId: qos > 0 ? n : undefined });
      packets.push(encode(packet, 5));
      expected.push(`${n}`.repeat(n));
    }
    const bytes = Buffer.concat(packets);
    for (let at = 0, size = 1; at < bytes.length; at += size, size = 1 + ((size * 7) % 50)) {
      client.send(bytes.subarray(at, at + size));
      await turns(1);
    }
    await client.rest();
    const got = ((await receiver.rest()) as PublishPacket[]).map(({ payload }) => String(payload));
    // Messages of one QoS stay in order.
    for (const parity of [0, 1])
      assert.deepEqual(
        got.filter((text) => expected.indexOf(text) % 2 === parity),
        expected.filter((_, at) => at % 2 === parity)
      );
    assert.equal(got.length, 60);
  });
});

for (const version of [5, 4, 3] as const) {
  describe(`QoS towards a client of version ${version}`, () => {
    it(`${rule(version, 'MQTT-4.3.1-1', 'MQTT3-4.3.1-1')} sends QoS 0 with DUP 0 and no packet id, and never again`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      const client = await subscriber(broker, { topic: 'a', qos: 0 }, persistent('c', version));
      const publisher = await rawClient(broker, { version });
      publisher.send(publish('a', '1'), publish('a', '2', { qos: 1, messageId: 1, dup: true }));
      await publisher.rest();
      assert.deepEqual(summarize(await client.rest()), ['publish q0 a=1', 'publish q0 a=2']);
      await cutOff(broker, client);
      await (await rawClient(broker, persistent('c', version))).nothing();
    });

    it(`${rule(version, 'MQTT-4.3.2-1, -2, -3', 'MQTT3-4.3.2-1')} sends QoS 1 with an unused packet id and DUP 0 at first, unacknowledged until PUBACK`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      const client = await subscriber(broker, { topic: 'a', qos: 1 }, persistent('c', version));
      for (const payload of ['1', '2', '3']) await broker.publish('a', payload, { qos: 1 });
      assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 a=1', 'publish 2 q1 a=2', 'publish 3 q1 a=3']);
      client.send(ack('puback', 2));
      await client.nothing();
      await cutOff(broker, client);
      const back = await rawClient(broker, persistent('c', version));
      assert.deepEqual(summarize(await back.rest()), ['publish 1 q1 dup a=1', 'publish 3 q1 dup a=3']);
      back.send(ack('puback', 1), ack('puback', 3));
      await engineOf(broker).services.work.settled();
      await broker.publish('a', '4', { qos: 1 });
      assert.deepEqual(summarize(await back.rest()), ['publish 4 q1 a=4']);
    });

    it(`${rule(version, 'MQTT-4.3.3-1, -2, -3', 'MQTT3-4.3.3-1')} sends QoS 2 with an unused packet id and DUP 0 at first, unacknowledged until PUBREC`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c', version));
      for (const payload of ['1', '2']) await broker.publish('a', payload, { qos: 2 });
      assert.deepEqual(summarize(await client.rest()), ['publish 1 q2 a=1', 'publish 2 q2 a=2']);
      await cutOff(broker, client);
      for (let times = 0; times < 2; times++) {
        const back = await rawClient(broker, persistent('c', version));
        assert.deepEqual(summarize(await back.rest()), ['publish 1 q2 dup a=1', 'publish 2 q2 dup a=2']);
        await cutOff(broker, back);
      }
    });

    it(`${rule(version, 'MQTT-4.3.3-4, -5, -6', 'MQTT3-4.3.3-1')} answers PUBREC with PUBREL, repeats PUBREL until PUBCOMP, and does not repeat PUBLISH`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c', version));
      await broker.publish('a', 'x', { qos: 2 });
      await client.next('publish');
      client.send(ack('pubrec', 1), ack('pubrec', 1));
      assert.deepEqual(summarize(await client.rest()), ['pubrel 1', 'pubrel 1']);
      await cutOff(broker, client);
      for (let times = 0; times < 2; times++) {
        const back = await rawClient(broker, persistent('c', version));
        assert.deepEqual(summarize(await back.rest()), ['pubrel 1']);
        await cutOff(broker, back);
      }
      const back = await rawClient(broker, persistent('c', version));
      await back.next('pubrel');
      back.send(ack('pubcomp', 1));
      await back.nothing();
      await cutOff(broker, back);
      await (await rawClient(broker, persistent('c', version))).nothing();
    });

    it(`${rule(version, 'MQTT-4.4.0-1', 'MQTT3-4.4.0-1')} sends again on reconnect, and at no other time regardless of the delay`, async () => {
      await using test = await timedBroker();
      const { broker, clock } = test;
      const client = await subscriber(broker, { topic: 'a', qos: 2 }, { ...persistent('c', version), keepalive: 0 });
      await broker.publish('a', '1', { qos: 1 });
      await broker.publish('a', '2', { qos: 2 });
      await broker.publish('a', '3', { qos: 2 });
      await client.rest();
      client.send(ack('pubrec', 3));
      await client.next('pubrel');
      await clock.advance('1h');
      await client.nothing();
      await cutOff(broker, client);
      await broker.publish('a', '4', { qos: 1 });
      const back = await rawClient(broker, persistent('c', version));
      assert.equal(back.connack?.sessionPresent, version !== 3);
      const got = summarize(await back.rest());
      assert.deepEqual(
        got.filter((text) => text.startsWith('publish')),
        ['publish 1 q1 dup a=1', 'publish 2 q2 dup a=2', 'publish 4 q1 a=4']
      );
      assert.deepEqual(
        got.filter((text) => !text.startsWith('publish')),
        ['pubrel 3']
      );
    });

    it(`${rule(version, 'MQTT-4.4.0-1', 'MQTT3-4.4.0-1')} sends again to a client that takes over its own connection`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      await subscriber(broker, { topic: 'a', qos: 1 }, persistent('c', version));
      await broker.publish('a', 'x', { qos: 1 });
      const next = await rawClient(broker, persistent('c', version));
      assert.deepEqual(summarize(await next.rest()), ['publish 1 q1 dup a=x']);
    });

    it(`${rule(version, 'MQTT-4.4.0-1', 'MQTT3-4.4.0-1')} sends nothing again in a new session`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      const client = await subscriber(broker, { topic: 'a', qos: 1 }, persistent('c', version));
      await broker.publish('a', 'x', { qos: 1 });
      await client.next('publish');
      await cutOff(broker, client);
      const anew = await subscriber(broker, { topic: 'a', qos: 1 }, { clientId: 'c', version });
      await anew.nothing();
      await broker.publish('a', 'y', { qos: 1 });
      assert.deepEqual(summarize(await anew.rest()), ['publish 1 q1 a=y']);
    });
  });

  describe(`QoS from a client of version ${version}`, () => {
    it(`${rule(version, 'MQTT-4.3.2-4, -5', 'MQTT3-4.3.2-2')} answers QoS 1 with PUBACK, and then treats the same packet id as a new message, with any DUP`, async () => {
      await using test = await timedBroker();
      const receiver = await subscriber(test.broker, { topic: 'a', qos: 2 });
      const client = await rawClient(test.broker, { version });
      for (const dup of [false, true]) {
        client.send(publish('a', `dup ${dup}`, { qos: 1, messageId: 3, dup }));
        assert.deepEqual(summarize(await client.rest()), ['puback 3']);
      }
      assert.deepEqual(summarize(await receiver.rest()), ['publish 1 q1 a=dup false', 'publish 2 q1 a=dup true']);
    });

    it(`${rule(version, 'MQTT-4.3.3-8, -10, -11, -12', 'MQTT3-4.3.3-2')} delivers QoS 2 once between PUBLISH and PUBCOMP`, async () => {
      await using test = await timedBroker();
      const receiver = await subscriber(test.broker, { topic: 'a', qos: 2 });
      const client = await rawClient(test.broker, { version });
      const send = (dup: boolean) => client.send(publish('a', 'x', { qos: 2, messageId: 3, dup }));
      for (let times = 0; times < 2; times++) {
        send(false);
        send(true);
        send(false);
        assert.deepEqual(summarize(await client.rest()), ['pubrec 3', 'pubrec 3', 'pubrec 3']);
        assert.equal((await receiver.rest()).length, 1);
        client.send(ack('pubrel', 3));
        assert.deepEqual(summarize(await client.rest()), ['pubcomp 3']);
        await receiver.nothing();
      }
    });

    it(`${rule(version, 'MQTT-4.3.3-10, -11', 'MQTT3-4.3.3-2')} delivers QoS 2 once across reconnects at every point`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      const receiver = await subscriber(broker, { topic: 'a', qos: 2 });
      const options = persistent('c', version);
      let client = await rawClient(broker, options);
      const again = async () => {
        await cutOff(broker, client);
        client = await rawClient(broker, options);
        await client.nothing();
      };
      client.send(publish('a', 'x', { qos: 2, messageId: 9 }));
      await client.next('pubrec');
      await again();
      client.send(publish('a', 'x', { qos: 2, messageId: 9, dup: true }));
      await client.next('pubrec');
      await again();
      client.send(ack('pubrel', 9));
      await client.next('pubcomp');
      await again();
      client.send(ack('pubrel', 9));
      await client.next('pubcomp');
      assert.deepEqual(summarize(await receiver.rest()), ['publish 1 q2 a=x']);
      client.send(publish('a', 'y', { qos: 2, messageId: 9 }));
      await client.next('pubrec');
      assert.equal(String((await onlyPublish(receiver)).payload), 'y');
    });

    it(`${rule(version, 'MQTT-4.3.3-10', 'MQTT3-4.3.3-2')} treats a QoS 2 packet id of a discarded session as new`, async () => {
      await using test = await timedBroker();
      const receiver = await subscriber(test.broker, { topic: 'a', qos: 0 });
      for (const options of [persistent('c', version), { clientId: 'c', version }]) {
        const client = await rawClient(test.broker, options);
        client.send(publish('a', 'x', { qos: 2, messageId: 1 }));
        await client.next('pubrec');
        await cutOff(test.broker, client);
      }
      assert.equal((await receiver.rest()).length, 2);
    });
  });
}

describe('QoS 2, further rules', () => {
  it('[MQTT-4.3.3-7] sends an unacknowledged PUBLISH again after its expiry, with a remaining interval of 0', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    for (const qos of [1, 2] as const) {
      const options = persistent(`c${qos}`);
      const client = await subscriber(broker, { topic: 'a', qos }, options);
      await broker.publish('a', 'x', { qos, properties: { messageExpiryInterval: 5 } });
      await client.next('publish');
      await cutOff(broker, client);
      await clock.advance('1m');
      const back = await rawClient(broker, options);
      const again = await onlyPublish(back);
      assert.deepEqual([again.dup, again.properties], [true, { messageExpiryInterval: 0 }]);
      await cutOff(broker, back);
    }
  });

  it('[MQTT-4.3.3-13] continues the handshake when the message has expired', async () => {
    await using test = await timedBroker();
    const { broker, clock } = test;
    const receiver = await subscriber(broker, { topic: 'a', qos: 2 });
    const client = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 2, messageId: 1, properties: { messageExpiryInterval: 1 } }));
    await client.next('pubrec');
    await receiver.next('publish');
    await clock.advance('5s');
    client.send(publish('a', 'x', { qos: 2, messageId: 1, dup: true }), ack('pubrel', 1));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1', 'pubcomp 1']);
    receiver.send(ack('pubrec', 1));
    assert.deepEqual(summarize(await receiver.rest()), ['pubrel 1']);
    receiver.send(ack('pubcomp', 1));
    await receiver.nothing();
  });

  it('[MQTT-4.3.3-9] treats a packet id as new after PUBREC refused its message', async () => {
    await using test = await timedBroker();
    const receiver = await subscriber(test.broker, { topic: '#', qos: 2 });
    let isAllowed = false;
    test.broker.hook('authorizePublish', () => isAllowed);
    const client = await rawClient(test.broker);
    client.send(publish('a', '1', { qos: 2, messageId: 1 }), publish('a', '1', { qos: 2, messageId: 1, dup: true }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1 0x87', 'pubrec 1 0x87']);
    isAllowed = true;
    client.send(publish('a', '2', { qos: 2, messageId: 1 }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1']);
    assert.deepEqual(summarize(await receiver.rest()), ['publish 1 q2 a=2']);
  });

  it('[MQTT-4.3.3-10] treats a different message with a packet id in use as a duplicate', async () => {
    await using test = await timedBroker();
    const receiver = await subscriber(test.broker, { topic: '#', qos: 2 });
    const client = await rawClient(test.broker);
    client.send(publish('a', '1', { qos: 2, messageId: 1 }), publish('b', '2', { qos: 2, messageId: 1 }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1', 'pubrec 1']);
    assert.deepEqual(summarize(await receiver.rest()), ['publish 1 q2 a=1']);
  });

  it('[MQTT-4.3.3-10] keeps packet ids of QoS 1 and QoS 2, and of the two directions, separate', async () => {
    await using test = await timedBroker();
    const client = await subscriber(test.broker, { topic: 'a', qos: 2 });
    client.send(publish('a', '1', { qos: 2, messageId: 1 }), publish('a', '2', { qos: 1, messageId: 1 }));
    const got = ['publish 1 q2 a=1', 'pubrec 1', 'publish 2 q1 a=2', 'puback 1'];
    assert.deepEqual(summarize(await client.rest()), got);
    client.send(ack('pubrec', 1), ack('pubrel', 1), ack('puback', 2), ack('pubcomp', 1));
    assert.deepEqual(summarize(await client.rest()), ['pubrel 1', 'pubcomp 1']);
  });

  it('[MQTT-4.4.0-2] ends the flow of a message that PUBACK or PUBREC refuses', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c'));
    await broker.publish('a', '1', { qos: 1 });
    await broker.publish('a', '2', { qos: 2 });
    await client.rest();
    client.send(ack('puback', 1, 0x87), ack('pubrec', 2, 0x97));
    await client.nothing();
    assert.equal(broker.sessions.get('c').counters().inflight, 0);
    await cutOff(broker, client);
    await (await rawClient(broker, persistent('c'))).nothing();
  });

  it('[MQTT-4.3.3-10] answers, and delivers once, when the connection is lost or taken over while a hook decides', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const receiver = await subscriber(broker, { topic: '#', qos: 2 });
    for (const isReset of [true, false]) {
      for (const qos of [0, 1, 2] as const) {
        const answers = [withResolvers<boolean>(), withResolvers<boolean>()];
        let asked = 0;
        const unhook = broker.hook('authorizePublish', () => answers[asked++]?.promise ?? true);
        const client = await rawClient(broker, persistent('c'));
        client.send(publish('a', `q${qos}`, { qos, messageId: qos > 0 ? 1 : undefined }));
        await turns();
        if (isReset) {
          const gone = broker.nextEvent('client.disconnected');
          client.stream.destroy(new Error('reset'));
          await gone;
        }
        const back = await rawClient(broker, persistent('c'));
        if (qos > 0) back.send(publish('a', `q${qos}`, { qos, messageId: 1, dup: true }));
        await turns();
        for (const { resolve } of answers) resolve(true);
        if (qos === 2) back.send(ack('pubrel', 1));
        const got = summarize(await back.rest());
        assert.deepEqual(got, { 0: [], 1: ['puback 1'], 2: ['pubrec 1', 'pubcomp 1'] }[qos]);
        // At QoS 1 the client sends it twice and the subscriber receives it twice.
        assert.equal((await receiver.rest()).length, qos === 1 ? 2 : 1, `QoS ${qos}`);
        unhook();
        await cutOff(broker, back);
      }
    }
  });
});

describe('Messages that match several sessions', () => {
  it('[MQTT-4.5.0-1] delivers a message to every matching session, including offline ones', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const here = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('here'));
    for (const version of [3, 4, 5] as const)
      await cutOff(
        broker,
        await subscriber(broker, { topic: '+', qos: version === 4 ? 2 : 1 }, persistent(`away${version}`, version))
      );
    const client = await rawClient(broker);
    client.send(publish('a', '1', { qos: 2, messageId: 1 }), publish('a', '2', { qos: 1, messageId: 2 }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1', 'puback 2']);
    assert.deepEqual(summarize(await here.rest()), ['publish 1 q2 a=1', 'publish 2 q1 a=2']);
    for (const version of [3, 4, 5] as const) {
      const back = await rawClient(broker, persistent(`away${version}`, version));
      assert.deepEqual(summarize(await back.rest()), [`publish 1 q${version === 4 ? 2 : 1} a=1`, 'publish 2 q1 a=2']);
    }
  });

  it('[MQTT-4.5.0-1] routes a message by the subscriptions that exist when a hook has decided', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const leaving = await subscriber(broker, { topic: 'a' });
    const coming = await rawClient(broker);
    const { promise, resolve } = withResolvers<boolean>();
    broker.hook('authorizePublish', () => promise);
    const client = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 1, messageId: 1 }));
    await turns();
    leaving.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a'] });
    await leaving.next('unsuback');
    coming.send(subscribe(1, 'a'));
    await coming.next('suback');
    resolve(true);
    assert.deepEqual(summarize([await client.next('puback')]), ['puback 1']);
    await leaving.nothing();
    assert.deepEqual(summarize(await coming.rest()), ['publish q0 a=x']);
  });

  it('[MQTT-4.5.0-2] keeps a message with a session until its client acknowledges, without delaying other clients', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const silent = await subscriber(broker, { topic: 'a', qos: 1 }, { properties: { receiveMaximum: 1 } });
    const prompt = await subscriber(broker, { topic: 'a', qos: 1 }, { properties: { receiveMaximum: 1 } });
    for (const payload of ['1', '2', '3']) {
      await broker.publish('a', payload, { qos: 1 });
      const { messageId = 0 } = await onlyPublish(prompt);
      prompt.send(ack('puback', messageId));
    }
    assert.deepEqual(summarize(await silent.rest()), ['publish 1 q1 a=1']);
  });
});

describe('Message order', () => {
  it('[MQTT-4.6.0-1] keeps the original order when messages are sent again, over several connections', async () => {
    await using test = await timedBroker({ maxInflight: 0 });
    const { broker } = test;
    let client = await subscriber(broker, { topic: '#', qos: 2 }, persistent('c'));
    for (let n = 1; n <= 40; n++) await broker.publish(`t${n % 3}`, String(n), { qos: n % 2 === 0 ? 2 : 1 });
    await client.rest();
    client.send(...[3, 8, 21, 40].map((id) => ack(id % 2 === 0 ? 'pubrec' : 'puback', id)));
    await client.rest();
    for (let times = 0; times < 3; times++) {
      await cutOff(broker, client);
      await broker.publish('t', String(41 + times), { qos: 1 });
      client = await rawClient(broker, persistent('c'));
      const packets = await client.rest();
      const ids = (packets.filter(({ cmd }) => cmd === 'publish') as PublishPacket[]).map(({ payload }) =>
        Number(payload)
      );
      const expected = Array.from({ length: 41 + times }, (_, at) => at + 1);
      assert.deepEqual(
        ids,
        expected.filter((n) => ![3, 8, 21, 40].includes(n))
      );
    }
  });

  it('[MQTT-4.6.0-1] keeps the order when the Receive Maximum of the new connection is smaller', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const client = await subscriber(broker, { topic: '#', qos: 2 }, persistent('c'));
    for (let n = 1; n <= 6; n++) await broker.publish('a', String(n), { qos: n === 2 ? 2 : 1 });
    await client.rest();
    client.send(ack('pubrec', 2));
    await client.next('pubrel');
    await cutOff(broker, client);
    await broker.publish('a', '7', { qos: 1 });
    const back = await rawClient(broker, {
      ...persistent('c'),
      properties: { sessionExpiryInterval: 60, receiveMaximum: 2 }
    });
    // A PUBREL counts as unacknowledged until its PUBCOMP.
    assert.deepEqual(summarize(await back.rest()).sort(), ['publish 1 q1 dup a=1', 'pubrel 2']);
    back.send(ack('pubcomp', 2));
    assert.deepEqual(summarize(await back.rest()), ['publish 3 q1 dup a=3']);
    back.send(ack('puback', 5)); // not sent on this connection yet, but has a packet id
    await back.nothing();
    back.send(ack('puback', 1), ack('puback', 3));
    assert.deepEqual(summarize(await back.rest()), ['publish 4 q1 dup a=4', 'publish 6 q1 dup a=6']);
    back.send(ack('puback', 4));
    assert.deepEqual(summarize(await back.rest()), ['publish 7 q1 a=7']);
  });

  it('[MQTT-4.6.0-2] [MQTT-4.6.0-3] sends PUBACK and PUBREC in the order of the messages, even when hooks answer out of order', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const answers = new Map<string, (value: boolean) => void>();
    broker.hook('authorizePublish', ({ message: { topic } }) =>
      topic === 'sync' ? true : new Promise((resolve) => answers.set(topic, resolve))
    );
    const client = await rawClient(broker);
    const other = await rawClient(broker);
    client.send(publish('slow', '', { qos: 1, messageId: 1 }), publish('sync', '', { qos: 1, messageId: 2 }));
    client.send(publish('slower', '', { qos: 2, messageId: 3 }), publish('sync', '', { qos: 2, messageId: 4 }));
    other.send(publish('sync', '', { qos: 1, messageId: 1 }));
    assert.deepEqual(summarize(await other.rest()), ['puback 1 0x10'], 'other messages are not deferred');
    await turns();
    answers.get('slow')?.(true);
    await turns();
    answers.get('slower')?.(true);
    assert.deepEqual(summarize(await client.rest()), [
      'puback 1 0x10',
      'puback 2 0x10',
      'pubrec 3 0x10',
      'pubrec 4 0x10'
    ]);
  });

  it('[MQTT-4.6.0-4] sends PUBREL in the order of PUBREC, even when PUBREL is sent again', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c'));
    for (let n = 1; n <= 4; n++) await broker.publish('a', String(n), { qos: 2 });
    await client.rest();
    client.send(...[3, 1, 4, 2].map((id) => ack('pubrec', id)));
    const rels = ['pubrel 3', 'pubrel 1', 'pubrel 4', 'pubrel 2'];
    assert.deepEqual(summarize(await client.rest()), rels);
    await cutOff(broker, client);
    assert.deepEqual(summarize(await (await rawClient(broker, persistent('c'))).rest()), rels);
  });

  it('[MQTT-4.6.0-5] [MQTT-4.6.0-6] keeps the order of one publisher at each QoS and in every topic, regardless of how the messages are queued', async () => {
    await using test = await timedBroker({ maxMqueueLen: 0 });
    const { broker } = test;
    const sent: Record<QoS, string[]> = { 0: [], 1: [], 2: [] };
    const got: Record<QoS, string[]> = { 0: [], 1: [], 2: [] };
    const options = { ...persistent('c'), properties: { sessionExpiryInterval: 60, receiveMaximum: 7 } };
    let client = await subscriber(broker, { topic: '#', qos: 2 }, options);
    const publisher = await rawClient(broker, { clientId: 'p' });
    const seen = new Set<string>();
    /** Reads the messages that arrived, and acknowledges all of them or none. */
    const take = async (isAnswering = true) => {
      for (let packets = await client.rest(); packets.length > 0; packets = await client.rest()) {
        for (const packet of packets) {
          if (packet.cmd === 'publish') {
            const text = String(packet.payload);
            if (!seen.has(text)) got[packet.qos].push(text);
            seen.add(text);
            if (isAnswering && packet.qos > 0)
              client.send(ack(packet.qos === 1 ? 'puback' : 'pubrec', packet.messageId ?? 0));
          } else if (packet.cmd === 'pubrel') client.send(ack('pubcomp', packet.messageId));
        }
      }
    };
    let n = 0;
    const burst = async (count: number) => {
      for (let end = n + count; n < end; n++) {
        const qos = ((n * 7) % 3) as QoS;
        sent[qos].push(String(n));
        publisher.send(publish(`t${n % 2}`, String(n), { qos, messageId: qos > 0 ? 1 + (n % 500) : undefined }));
        if (qos === 2) publisher.send(ack('pubrel', 1 + (n % 500)));
      }
      await publisher.rest();
    };
    await burst(50);
    await take();
    await burst(50); // with a full window
    await take(false);
    await cutOff(broker, client);
    await burst(50); // into the backlog
    client = await rawClient(broker, options);
    await burst(50); // while the backlog is sent
    await take();
    assert.deepEqual(got, sent);
  });

  it('[MQTT-4.6.0-5] keeps the order between retained messages and newer ones', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    for (let n = 0; n < 1500; n++) await broker.publish(`r/${n}`, 'old', { retain: true });
    const client = await rawClient(broker);
    client.send(subscribe(1, 'r/#'));
    await client.next('suback');
    for (let n = 0; n < 1500; n += 100) await broker.publish(`r/${n}`, 'new');
    await engineOf(broker).services.work.settled();
    const last = new Map<string, string>();
    for (const { topic, payload } of (await client.rest()) as PublishPacket[]) {
      assert.ok(last.get(topic) !== 'new', `${topic}: the older message arrived after the newer one`);
      last.set(topic, String(payload));
    }
    assert.equal(last.size, 1500);
    assert.equal([...last.values()].filter((text) => text === 'new').length, 15);
  });

  it('[MQTT-4.6.0-5] is kept between retained messages that have not been looked up yet and newer ones', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const send = (topic: string, payload: string, retain = false) => broker.publish(topic, payload, { qos: 1, retain });
    // While more than 1,000 retained messages wait for the client, those of further subscriptions are not looked up.
    for (let n = 0; n < 1200; n++) await send(`first/${n}`, 'old', true);
    for (const topic of ['second/a', 'second/b']) await send(topic, 'old', true);
    const client = await rawClient(broker, { properties: { receiveMaximum: 100 } });
    client.send(subscribe(1, { topic: 'first/#', qos: 1 }), subscribe(2, { topic: 'second/#', qos: 1 }));
    const sent = await client.rest();
    assert.equal(sent.length, 102); // with the SUBACK packets
    await send('second/a', 'new');
    await send('second/c', 'new', true);
    await send('second/c', 'newer');
    await send('first/1000', 'new');
    const got = await acknowledgeAll(client, sent);
    assert.deepEqual(got.get('second/a'), ['old', 'new']);
    assert.deepEqual(got.get('second/b'), ['old']);
    assert.deepEqual(got.get('second/c'), ['new', 'newer']);
    assert.deepEqual(got.get('first/1000'), ['old', 'new']);
    assert.equal(got.size, 1203);
  });

  it('[MQTT-4.6.0-5] is kept between retained messages that were sent in part and newer ones, while the client is offline', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const send = (topic: string, payload: string, retain = false) => broker.publish(topic, payload, { qos: 1, retain });
    for (let n = 0; n < 5; n++) await send(`r/${n}`, 'old', true);
    const options = { ...persistent('c'), properties: { sessionExpiryInterval: 60, receiveMaximum: 2 } };
    const client = await subscriber(broker, { topic: 'r/#', qos: 1 }, options);
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 retain r/0=old', 'publish 2 q1 retain r/1=old']);
    client.send(ack('puback', 1), ack('puback', 2));
    assert.deepEqual(summarize(await client.rest()), ['publish 3 q1 retain r/2=old', 'publish 4 q1 retain r/3=old']);
    await cutOff(broker, client);
    await send('r/0', 'new');
    await send('r/4', 'new');
    const got = await acknowledgeAll(await rawClient(broker, options));
    assert.deepEqual(Object.fromEntries([...got].sort()), {
      'r/0': ['new'],
      'r/2': ['old'],
      'r/3': ['old'],
      'r/4': ['old', 'new']
    });
  });

  it('[MQTT-4.6.0-5] sends a retained message that went ahead of a newer one once, although the client reconnects in between', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const send = (topic: string, payload: string, retain = false) => broker.publish(topic, payload, { qos: 1, retain });
    for (let n = 0; n < 5; n++) await send(`r/${n}`, 'old', true);
    const options = { ...persistent('c'), properties: { sessionExpiryInterval: 60, receiveMaximum: 2 } };
    const client = await subscriber(broker, { topic: 'r/#', qos: 1 }, options);
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 retain r/0=old', 'publish 2 q1 retain r/1=old']);
    await send('r/4', 'new');
    await cutOff(broker, client);
    const got = await acknowledgeAll(await rawClient(broker, options));
    assert.deepEqual(Object.fromEntries([...got].sort()), {
      'r/0': ['old'],
      'r/1': ['old'],
      'r/2': ['old'],
      'r/3': ['old'],
      'r/4': ['old', 'new']
    });
  });
});

describe('Flow control', () => {
  it("[MQTT-4.9.0-1] starts with the client's Receive Maximum, or 65535 if absent, and no more than maxInflight", async () => {
    for (const [maxInflight, receiveMaximum, expected] of [
      [0, undefined, 200],
      [0, 3, 3],
      [10, 3, 3],
      [10, undefined, 10],
      [10, 65_535, 10]
    ] as const) {
      await using test = await timedBroker({ maxInflight });
      const client = await subscriber(test.broker, { topic: 'a', qos: 1 }, { properties: { receiveMaximum } });
      for (let n = 0; n < 200; n++) await test.broker.publish('a', '', { qos: 1 });
      assert.equal((await client.rest()).length, expected);
    }
  });

  for (const store of [undefined, memoryStore()])
    it(`[MQTT-4.9.0-3] limits the bytes in flight to maxInflightBytes as well, and sends a larger message alone${store === undefined ? '' : ', with a store'}`, async () => {
      await using test = await timedBroker({ maxInflightBytes: 1000, store });
      const { broker } = test;
      const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c'));
      const send = (text: string, qos: 0 | 1 | 2, size = 400) => broker.publish('a', text.padEnd(size, '.'), { qos });
      const came = async () => {
        const packets = await client.rest();
        await test.clock.settle(); // With a store, some of the messages wait for a commit.
        packets.push(...(await client.rest()));
        return packets.map((packet) => (packet.cmd === 'publish' ? String(packet.payload).slice(0, 3) : packet.cmd));
      };
      for (const text of ['n01', 'n02', 'n03']) await send(text, 2);
      await send('n04', 0);
      await send('big', 1, 5000);
      await send('n05', 1, 10);
      assert.deepEqual(await came(), ['n01', 'n02', 'n04']); // QoS 0 does not wait [MQTT-3.3.4-10].
      client.send(ack('pubrec', 1)); // Released messages no longer count.
      assert.deepEqual(await came(), ['pubrel', 'n03']);
      client.send(ack('pubrec', 2), ack('pubrec', 3));
      assert.deepEqual((await came()).sort(), ['big', 'pubrel', 'pubrel']);
      client.send(ack('pubcomp', 1), ack('pubcomp', 2), ack('pubcomp', 3));
      assert.deepEqual(await came(), []);
      await cutOff(broker, client);
      const back = await rawClient(broker, persistent('c'));
      assert.equal((await onlyPublish(back)).messageId, 4);
      back.send(ack('puback', 4));
      assert.deepEqual(summarize(await back.rest()), ['publish 5 q1 a=n05.......']);
      assert.equal(broker.sessions.get('c').counters().mqueueLen, 0);
    });

  it('[MQTT-4.9.0-2] sends no QoS 1 and 2 without quota; PUBACK, PUBCOMP and a refusing PUBREC each return one unit', async () => {
    await using test = await timedBroker();
    const client = await subscriber(test.broker, { topic: 'a', qos: 2 }, { properties: { receiveMaximum: 3 } });
    for (let n = 1; n <= 7; n++) await test.broker.publish('a', String(n), { qos: n === 1 ? 1 : 2 });
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 a=1', 'publish 2 q2 a=2', 'publish 3 q2 a=3']);
    client.send(ack('puback', 1));
    assert.deepEqual(summarize(await client.rest()), ['publish 4 q2 a=4']);
    client.send(ack('puback', 1), ack('pubcomp', 9));
    await client.nothing(); // no packets with these ids are in flight
    client.send(ack('pubrec', 2, 0x80));
    assert.deepEqual(summarize(await client.rest()), ['publish 5 q2 a=5']);
    client.send(ack('pubrec', 3));
    assert.deepEqual(summarize(await client.rest()), ['pubrel 3']);
    client.send(ack('pubcomp', 3));
    assert.deepEqual(summarize(await client.rest()), ['publish 6 q2 a=6']);
  });

  it('[MQTT-4.9.0-3] sends all other packets without quota', async () => {
    await using test = await timedBroker();
    const client = await subscriber(test.broker, { topic: 'a', qos: 2 }, { properties: { receiveMaximum: 1 } });
    for (let n = 1; n <= 2; n++) await test.broker.publish('a', String(n), { qos: 2 });
    await test.broker.publish('a', 'zero');
    client.send(publish('x', '', { qos: 1, messageId: 1 }), publish('x', '', { qos: 2, messageId: 2 }));
    client.send(subscribe(3, 'b'), { cmd: 'unsubscribe', messageId: 4, unsubscriptions: ['b'] }, ack('pubrec', 1));
    const got = await client.rest();
    assert.deepEqual(summarize(got), [
      'publish 1 q2 a=1',
      'publish q0 a=zero',
      'puback 1 0x10',
      'pubrec 2 0x10',
      'suback',
      'unsuback',
      'pubrel 1'
    ]);
  });

  it('[MQTT-2.2.1-4] never reuses a packet id in flight when the ids wrap around', async () => {
    await using test = await timedBroker({ maxInflight: 0 });
    const client = await subscriber(test.broker, { topic: '#', qos: 1 });
    await test.broker.publish('stuck', '', { qos: 1 });
    assert.equal((await onlyPublish(client)).messageId, 1);
    const publisher = await rawClient(test.broker);
    const burst = Buffer.concat(new Array(2000).fill(encode(publish('a', '', { qos: 1, messageId: 1 }), 5)));
    const ids = new Set<number>();
    for (let round = 0; round < 35; round++) {
      publisher.send(burst);
      await publisher.rest();
      const packets = (await client.rest()) as PublishPacket[];
      for (const { messageId = 0 } of packets) ids.add(messageId);
      client.send(
        Buffer.concat(packets.map(({ messageId = 0 }) => Buffer.from([0x40, 2, messageId >> 8, messageId & 255])))
      );
    }
    assert.ok(!ids.has(0) && !ids.has(1));
    assert.ok(ids.size > 65_000 && Math.max(...ids) === 65_535, 'the packet ids have wrapped around');
  });
});

describe('Maximum Packet Size of the client', () => {
  it('[MQTT-3.1.2-24] [MQTT-3.1.2-25] drops larger messages for that client only, and treats them as delivered', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const drops: string[] = [];
    broker.on('message.dropped', ({ reason, message }) => drops.push(`${reason} ${message.payload.length}`));
    const properties = { maximumPacketSize: 100, receiveMaximum: 1, sessionExpiryInterval: 60 };
    const small = await subscriber(broker, { topic: 'a', qos: 1 }, { clientId: 'small', clean: false, properties });
    const large = await subscriber(broker, { topic: 'a', qos: 1 });
    // Fixed header 2, topic 3, packet id 2, properties 1.
    const sizes = [91, 92, 93, 1];
    for (const size of sizes) await broker.publish('a', 'x'.repeat(size), { qos: 1 });
    assert.equal((await large.rest()).length, 4);
    for (const [id, size] of [
      [1, 91],
      [2, 92],
      [3, 1]
    ] as const) {
      const message = await onlyPublish(small);
      assert.deepEqual([message.messageId, message.payload.length], [id, size]);
      small.send(ack('puback', id));
    }
    await small.nothing();
    assert.deepEqual(drops, ['too_large 93']);
  });

  it('[MQTT-3.1.2-24] [MQTT-3.1.2-25] applies the Maximum Packet Size to runs of QoS 0, to retained and queued messages, and to messages that are sent again', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    await broker.publish('a', 'x'.repeat(200), { retain: true });
    const properties = (maximumPacketSize?: number) => ({ sessionExpiryInterval: 60, maximumPacketSize });
    const options = { clientId: 'c', clean: false };
    const client = await subscriber(broker, { topic: 'a', qos: 1 }, { ...options, properties: properties(100) });
    const publisher = await rawClient(broker);
    publisher.send(publish('a', 'y'.repeat(200)), publish('a', '1'), publish('a', 'y'.repeat(99)), publish('a', '2'));
    await publisher.rest();
    assert.deepEqual(summarize(await client.rest()), ['publish q0 a=1', 'publish q0 a=2']);
    await cutOff(broker, client);
    const wide = await rawClient(broker, { ...options, properties: properties() });
    for (const size of [1, 200, 2]) await broker.publish('a', 'z'.repeat(size), { qos: 1 });
    assert.equal((await wide.rest()).length, 3);
    await cutOff(broker, wide);
    for (const size of [200, 3]) await broker.publish('a', 'z'.repeat(size), { qos: 1 });
    const narrow = await rawClient(broker, { ...options, properties: properties(100) });
    assert.deepEqual(summarize(await narrow.rest()), [
      'publish 1 q1 dup a=z',
      'publish 3 q1 dup a=zz',
      'publish 4 q1 a=zzz'
    ]);
    narrow.send(ack('puback', 1), ack('puback', 3), ack('puback', 4));
    await narrow.nothing();
    assert.equal(broker.sessions.get('c').counters().inflight, 0);
  });
});

describe('Maximum Packet Size of the broker', () => {
  for (const version of [5, 4] as const) {
    const ids = version === 5 ? '[MQTT-3.2.2-15] [MQTT-4.13.1-1]' : '[MQTT3-4.8.0-1]';
    it(`${ids} closes${version === 5 ? ' with 0x95' : ''} at the fixed header of a larger packet, before its body`, async () => {
      await using test = await timedBroker({ maxPacketSize: 200 });
      const receiver = await subscriber(test.broker, { topic: 'a' });
      for (const header of ['30 c701', '30 ffffff7f', '32 c701', '82 c701']) {
        const client = await rawClient(test.broker, { version });
        assert.equal(client.connack?.properties?.maximumPacketSize, version === 5 ? 200 : undefined);
        client.sendBytes(header);
        assert.deepEqual(await client.refused(0x95), [], header);
      }
      const fits = await rawClient(test.broker, { version });
      const overhead = encode(publish('a', ''), version).length + 1;
      fits.send(publish('a', 'x'.repeat(200 - overhead)));
      await fits.rest();
      assert.equal((await receiver.rest()).length, 1);
      fits.send(publish('a', 'x'.repeat(200 - overhead + 1)));
      await fits.refused(0x95);
      await receiver.nothing();
    });
  }
});
