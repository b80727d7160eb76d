import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { PublishPacket } from '../../lib/packets/types.ts';
import { rawClient } from '../support/raw-client.ts';
import {
  granted,
  nothing,
  payloads,
  publish,
  refused,
  rest,
  sendAll,
  startBroker,
  subscribe,
  turns,
  unsubscribe
} from '../support/wire.ts';

/** Encodes a SUBSCRIBE with one filter, all bytes as given. */
function raw(filter: Buffer | string, options: number, version: 4 | 5 = 5): Buffer {
  const name = Buffer.from(filter);
  const body = [0, 1, ...(version === 5 ? [0] : []), name.length >> 8, name.length & 255, ...name, options];
  return Buffer.from([0x82, body.length, ...body]);
}

async function refuses(broker: Broker, bytes: Buffer, code: number): Promise<void> {
  const client = await rawClient(broker);
  client.send(bytes);
  await refused(client, code);
}

describe('SUBSCRIBE', () => {
  it('[MQTT-3.8.1-1] closes with 0x81 when the reserved flags are not 0010', async () => {
    await using broker = await startBroker();
    const good = raw('a', 0);
    for (const flags of [0, 1, 3, 6, 10, 15]) {
      await refuses(broker, Buffer.from([0x80 | flags, ...good.subarray(1)]), 0x81);
    }
  });

  it('[MQTT-3.8.3-1] closes with 0x81 for a filter that is not UTF-8', async () => {
    await using broker = await startBroker();
    for (const hex of ['61ff', 'c080', 'eda080', 'e282', 'f4908080']) {
      await refuses(broker, raw(Buffer.from(hex, 'hex'), 0), 0x81);
    }
  });

  it('[MQTT-3.8.3-1] closes when the second of several filters is not UTF-8, and grants none', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'half', properties: { sessionExpiryInterval: 60 } });
    client.sendBytes('82 0b 0001 00 0001 61 00 0001 ff 00');
    await refused(client, 0x81);
    assert.deepEqual([...broker.sessions.get('half').subscriptions()], []);
  });

  it('[MQTT-3.8.3-2] closes with 0x82 when there is no filter', async () => {
    await using broker = await startBroker();
    await refuses(broker, Buffer.from('8203000100', 'hex'), 0x82);
  });

  it('[MQTT-2.2.1-3] closes with 0x82 for packet id 0', async () => {
    await using broker = await startBroker();
    await refuses(broker, Buffer.from('8207000000000161 00'.replace(' ', ''), 'hex'), 0x82);
  });

  it('[MQTT-3.8.3-3] does not send a message back when No Local is set, and delivers it to other clients', async () => {
    await using broker = await startBroker();
    const own = await rawClient(broker);
    const other = await rawClient(broker);
    await granted(own, 1, { topic: 'a', qos: 1, noLocal: true });
    await granted(other, 1, { topic: 'a', qos: 1, noLocal: true });
    sendAll(own, publish('a', 'q0'), publish('a', 'q1', { qos: 1, messageId: 1 }));
    assert.equal((await own.next('puback')).messageId, 1);
    await nothing(own);
    assert.deepEqual(await payloads(other), ['q0', 'q1']);
  });

  it('[MQTT-3.8.3-3] applies No Local to the client id, not to the connection', async () => {
    await using broker = await startBroker();
    const properties = { sessionExpiryInterval: 60 };
    const first = await rawClient(broker, { clientId: 'me', properties });
    await granted(first, 1, { topic: 'a', noLocal: true });
    const second = await rawClient(broker, { clientId: 'me', clean: false, properties });
    second.send(publish('a', 'mine'));
    await nothing(second);
  });

  it('[MQTT-3.8.3-3] sends a message back for another subscription without No Local', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, { topic: 'a/#', noLocal: true, qos: 2 }, { subscriptionIdentifier: [1] });
    await granted(client, 2, { topic: 'a/+', qos: 0 }, { subscriptionIdentifier: [2] });
    client.send(publish('a/b', 'x', { qos: 1, messageId: 9 }));
    const copy = await client.next('publish');
    assert.equal(copy.qos, 0);
    assert.deepEqual(copy.properties?.subscriptionIdentifier, [2]);
    await client.next('puback');
    await nothing(client);
  });

  it('[MQTT-3.8.3-4] closes with 0x82 for No Local on a shared subscription', async () => {
    await using broker = await startBroker();
    await refuses(broker, raw('$share/g/a', 0x04), 0x82);
    await refuses(broker, raw('$queue/a', 0x04), 0x82);
  });

  it('[MQTT-3.8.3-5] closes for reserved option bits (0x81), QoS 3 and Retain Handling 3 (0x82)', async () => {
    await using broker = await startBroker();
    for (const options of [0x40, 0x80, 0xc0]) await refuses(broker, raw('a', options), 0x81);
    for (const options of [0x03, 0x30]) await refuses(broker, raw('a', options), 0x82);
  });

  it('[MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-2.2.1-6] answers with a SUBACK of the same packet id', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    for (const id of [1, 256, 65_535, 1]) {
      client.send(subscribe(id, 'a'));
      assert.deepEqual(await client.next('suback'), { cmd: 'suback', messageId: id, granted: [0] });
    }
  });

  it('[MQTT-3.8.4-3] answers with SUBACK of the same packet id', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(
      client,
      1,
      { topic: 'a', qos: 2, noLocal: true, retainAsPublished: true },
      { subscriptionIdentifier: [7] }
    );
    await granted(client, 2, { topic: 'a', qos: 1 }, { subscriptionIdentifier: [8] });
    client.send(publish('a', 'x', { qos: 2, messageId: 1, retain: true }));
    const copy = await client.next('publish');
    assert.deepEqual([copy.qos, copy.retain, copy.properties?.subscriptionIdentifier], [1, false, [8]]);
    await client.next('pubrec');
    await granted(client, 3, { topic: 'a', qos: 0, retainHandling: 2 });
    client.send(publish('a', 'y'));
    const last = await client.next('publish');
    assert.deepEqual([String(last.payload), last.properties], ['y', undefined]);
    await nothing(client);
    assert.equal(broker.metrics.gauge('subscriptions'), 1);
  });

  it('[MQTT-3.8.4-4] sends retained messages again when a subscription is replaced with Retain Handling 0, not with 1 or 2', async () => {
    await using broker = await startBroker();
    await broker.publish('a', 'kept', { retain: true });
    const client = await rawClient(broker);
    const rounds: [0 | 1 | 2, string[]][] = [
      [0, ['kept']],
      [0, ['kept']],
      [1, []],
      [2, []],
      [0, ['kept']]
    ];
    for (const [retainHandling, expected] of rounds) {
      await granted(client, 1, { topic: 'a', retainHandling });
      assert.deepEqual(await payloads(client), expected, `Retain Handling ${retainHandling}`);
    }
    client.send(unsubscribe(2, 'a'));
    await client.next('unsuback');
    await granted(client, 3, { topic: 'a', retainHandling: 1 });
    assert.deepEqual(await payloads(client), ['kept']);
  });

  it('[MQTT-3.8.4-4] loses no message while a subscription is replaced', async () => {
    await using broker = await startBroker();
    const publisher = await rawClient(broker);
    const client = await rawClient(broker, { properties: { sessionExpiryInterval: 60 } });
    await granted(client, 1, { topic: 'a', qos: 1 });
    for (let i = 0; i < 20; i++) {
      publisher.send(publish('a', String(i), { qos: 1, messageId: i + 1 }));
      client.send(subscribe(i + 1, { topic: 'a', qos: i % 2 === 0 ? 1 : 2, retainHandling: 2 }));
      await publisher.next('puback');
    }
    const seen = (await rest(client)).filter((packet) => packet.cmd === 'publish');
    assert.deepEqual(
      seen.map((packet) => String((packet as PublishPacket).payload)),
      Array.from({ length: 20 }, (_, i) => String(i))
    );
  });

  it('[MQTT-3.8.4-5] [MQTT-3.8.4-6] processes several filters in order and answers all of them in one SUBACK', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    const filters = [
      { topic: 'a', qos: 1 as const },
      '$queue/',
      { topic: 'c', qos: 2 as const },
      { topic: 'a', qos: 0 as const }
    ];
    assert.deepEqual(await granted(client, 5, filters), [1, 0x8f, 2, 0]);
    client.send(publish('a', 'x', { qos: 2, messageId: 1 }));
    assert.equal((await client.next('publish')).qos, 0); // the second subscription to "a" counts
    assert.equal((await rest(client)).length, 1); // PUBREC
  });

  it('[MQTT-3.8.4-5] sends retained messages once for each time that one SUBSCRIBE contains the filter, as several SUBSCRIBEs would', async () => {
    await using broker = await startBroker();
    for (const topic of ['a/1', 'a/2']) await broker.publish(topic, topic, { retain: true, qos: 1 });
    for (const qos of [0, 1] as const) {
      const client = await rawClient(broker);
      const filter = { topic: 'a/+', qos };
      assert.deepEqual(await granted(client, 1, [filter, filter, filter]), [qos, qos, qos]);
      assert.deepEqual(await payloads(client), ['a/1', 'a/2', 'a/1', 'a/2', 'a/1', 'a/2']);
      const other = await rawClient(broker);
      await granted(other, 1, [
        { ...filter, retainHandling: 1 },
        { ...filter, retainHandling: 1 }
      ]);
      assert.deepEqual(await payloads(other), ['a/1', 'a/2'], 'Retain Handling 1');
    }
  });

  it('[MQTT-3.8.4-7] grants the requested QoS or a lower one, or reports a failure for that filter only', async () => {
    await using broker = await startBroker({
      maxQosAllowed: 1,
      hooks: { authorizeSubscribe: ({ filter }) => filter !== 'secret' }
    });
    const client = await rawClient(broker);
    const filters = (['a', 'b', 'c', 'secret'] as const).map((topic, at) => ({
      topic,
      qos: Math.min(at, 2) as 0 | 1 | 2
    }));
    assert.deepEqual(await granted(client, 1, filters), [0, 1, 1, 0x87]);
  });

  it('[MQTT-3.8.4-8] delivers at the lower of the published and the granted QoS', async () => {
    await using broker = await startBroker();
    const publisher = await rawClient(broker);
    for (const asked of [0, 1, 2] as const) {
      const client = await rawClient(broker);
      await granted(client, 1, { topic: 'a', qos: asked });
      for (const qos of [0, 1, 2] as const) {
        publisher.send(publish('a', '', { qos, messageId: qos === 0 ? undefined : 1 }));
        assert.equal((await client.next('publish')).qos, Math.min(qos, asked));
        if (qos === 2) {
          await publisher.next('pubrec');
          publisher.send({ cmd: 'pubrel', messageId: 1, reasonCode: 0 });
        }
        await rest(publisher);
      }
      client.cut();
    }
  });

  it('[MQTT-3.8.4-1] refuses a filter in SUBACK if it is too deep or exceeds a limit, and continues', async () => {
    await using broker = await startBroker({ maxTopicLevels: 3, maxSubscriptions: 2 });
    const client = await rawClient(broker);
    assert.deepEqual(await granted(client, 1, ['a/b/c/d', 'a/b/c', '$share/g/a/b/c', 'one/more']), [0x8f, 0, 0, 0x97]);
    assert.deepEqual(await granted(client, 2, 'a/b/c'), [0]); // a replacement does not count against the limit
  });
});

describe('SUBACK', () => {
  it('[MQTT-3.9.2-1] [MQTT-3.9.2-2] sends no Reason String and no User Property in SUBACK that could exceed a Maximum Packet Size', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { properties: { maximumPacketSize: 30 } });
    client.send(subscribe(1, ['a', '$queue/']));
    assert.deepEqual(await client.next('suback'), { cmd: 'suback', messageId: 1, granted: [0, 0x8f] });
  });

  it('[MQTT-3.1.2-24] sends no SUBACK whose codes alone exceed the Maximum Packet Size: the connection ends with 0x95', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { properties: { maximumPacketSize: 20 } });
    client.send(
      subscribe(
        1,
        Array.from({ length: 30 }, (_, at) => `f${at}`)
      )
    );
    await refused(client, 0x95);
  });

  it('[MQTT-3.9.3-1] sends the codes of SUBACK in the order of the filters, even if hooks answer late', async () => {
    const answers = new Map<string, (code: number) => void>();
    await using broker = await startBroker({
      hooks: {
        authorizeSubscribe: ({ filter }) =>
          filter === 'now' ? true : new Promise((resolve) => answers.set(filter, resolve))
      }
    });
    const client = await rawClient(broker);
    client.send(
      subscribe(1, [
        { topic: 'late', qos: 2 },
        { topic: 'now', qos: 1 },
        { topic: 'later', qos: 2 }
      ])
    );
    await untilAsked(answers, 'late');
    answers.get('late')?.(0x87);
    await untilAsked(answers, 'later');
    answers.get('later')?.(0);
    assert.deepEqual((await client.next('suback')).granted, [0x87, 1, 0]);
  });

  it('[MQTT-3.9.3-2] sends only valid reason codes in SUBACK, regardless of what a hook returns', async () => {
    const wrong = [0x03, 0x7f, 0x8a, 0x9c, 255, 3.5, -1, Number.NaN];
    await using broker = await startBroker({
      hooks: { authorizeSubscribe: ({ filter }) => wrong[Number(filter)] }
    });
    const client = await rawClient(broker);
    const table = new Set([0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2]);
    const codes = await granted(
      client,
      1,
      wrong.map((_, at) => String(at))
    );
    for (const code of codes) assert.ok(table.has(code), `0x${code.toString(16)}`);
  });

  it('[MQTT-3.9.3-2] reports features that are switched off: 0x9E, 0xA1, 0xA2', async () => {
    await using broker = await startBroker({
      wildcardSubscription: false,
      sharedSubscription: false,
      subscriptionIdentifiers: false
    });
    const client = await rawClient(broker);
    assert.deepEqual(
      await granted(client, 1, ['$share/g/a', 'a/#', '+', 'a', '$queue/a']),
      [0x9e, 0xa2, 0xa2, 0, 0x9e]
    );
    assert.deepEqual(await granted(client, 2, 'a', { subscriptionIdentifier: [1] }), [0xa1]);
  });
});

async function untilAsked(answers: ReadonlyMap<string, unknown>, filter: string): Promise<void> {
  await turns();
  assert.ok(answers.has(filter), `the hook was not called for ${filter}`);
}
