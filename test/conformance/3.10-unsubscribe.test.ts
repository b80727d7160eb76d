import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
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
  unsubscribe
} from '../support/wire.ts';

describe('UNSUBSCRIBE', () => {
  it('[MQTT-3.10.1-1] closes with 0x81 when the reserved flags are not 0010', async () => {
    await using broker = await startBroker();
    for (const flags of [0, 1, 3, 6, 10, 15]) {
      const client = await rawClient(broker);
      client.send(Buffer.from([0xa0 | flags, 6, 0, 1, 0, 0, 1, 0x61]));
      await refused(client, 0x81);
    }
  });

  it('[MQTT-3.10.3-1] closes with 0x81 for a filter that is not UTF-8, and removes none', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c', properties: { sessionExpiryInterval: 60 } });
    await granted(client, 1, 'a');
    client.sendBytes('a2 0a 0002 00 0001 61 0002 c080');
    await refused(client, 0x81);
    assert.deepEqual(
      [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter),
      ['a']
    );
  });

  it('[MQTT-3.10.3-2] closes with 0x82 when there is no filter', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    client.sendBytes('a2 03 0001 00');
    await refused(client, 0x82);
  });

  it('[MQTT-2.2.1-3] closes with 0x82 for packet id 0', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    client.sendBytes('a2 06 0000 00 0001 61');
    await refused(client, 0x82);
  });

  it('[MQTT-3.10.4-1] deletes the filter that is equal character by character, and no other', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c' });
    await granted(client, 1, ['a/+', 'a/#', 'A/b', '/a/b', '$share/g/a/b', 'e\u0301']);
    const others = ['a/b', '+/+', 'a/b/', '$share/h/a/b', '$queue/a/b', '\u00e9'];
    client.send(unsubscribe(2, ...others));
    assert.deepEqual(
      (await client.next('unsuback')).granted,
      others.map(() => 0x11)
    );
    client.send(unsubscribe(3, '$share/g/a/b', 'a/#', 'e\u0301'));
    assert.deepEqual((await client.next('unsuback')).granted, [0, 0, 0]);
    const left = [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter);
    assert.deepEqual(left, ['a/+', 'A/b', '/a/b']);
  });

  it('[MQTT-3.10.4-1] keeps the same filter of other clients', async () => {
    await using broker = await startBroker();
    const one = await rawClient(broker);
    const other = await rawClient(broker);
    await granted(one, 1, 'a');
    await granted(other, 1, 'a');
    one.send(unsubscribe(2, 'a'));
    await one.next('unsuback');
    await broker.publish('a', 'x');
    assert.deepEqual(await payloads(other), ['x']);
    await nothing(one);
  });

  it('[MQTT-3.10.4-2] delivers no further message once UNSUBSCRIBE has been read, even within the same chunk', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, { topic: 'a', qos: 1 });
    const byQos1 = { qos: 1 as const, messageId: 1 };
    sendAll(client, publish('a', 'before'), unsubscribe(2, 'a'), publish('a', 'after'), publish('a', 'late', byQos1));
    const cmds = (await rest(client)).map((packet) => packet.cmd);
    assert.deepEqual(cmds, ['publish', 'unsuback', 'puback']);
  });

  it('[MQTT-3.10.4-3] completes QoS 1 and QoS 2 messages that are already in flight', async () => {
    await using broker = await startBroker();
    const properties = { sessionExpiryInterval: 60 };
    const first = await rawClient(broker, { clientId: 'c', properties });
    await granted(first, 1, { topic: 'a', qos: 2 });
    await broker.publish('a', 'one', { qos: 1 });
    await broker.publish('a', 'two', { qos: 2 });
    const one = await first.next('publish');
    const two = await first.next('publish');
    first.send(unsubscribe(2, 'a'));
    await first.next('unsuback');
    first.stream.destroy();
    const second = await rawClient(broker, { clientId: 'c', clean: false, properties });
    const again = [await second.next('publish'), await second.next('publish')];
    assert.deepEqual(
      again.map(({ messageId, dup }) => [messageId, dup]),
      [
        [one.messageId, true],
        [two.messageId, true]
      ]
    );
    second.send({ cmd: 'puback', messageId: one.messageId as number, reasonCode: 0 });
    second.send({ cmd: 'pubrec', messageId: two.messageId as number, reasonCode: 0 });
    assert.deepEqual(await second.next('pubrel'), { cmd: 'pubrel', messageId: two.messageId, reasonCode: 0 });
    second.send({ cmd: 'pubcomp', messageId: two.messageId as number, reasonCode: 0 });
    await nothing(second);
  });

  it('[MQTT-3.10.4-3] still delivers messages that were queued because the window was full', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { properties: { receiveMaximum: 1 } });
    await granted(client, 1, { topic: 'a', qos: 1 });
    await broker.publish('a', 'one', { qos: 1 });
    await broker.publish('a', 'two', { qos: 1 });
    const one = await client.next('publish');
    client.send(unsubscribe(2, 'a'));
    await client.next('unsuback');
    client.send({ cmd: 'puback', messageId: one.messageId as number, reasonCode: 0 });
    assert.deepEqual(await payloads(client), ['two']);
  });

  it('[MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-2.2.1-6] answers with the same packet id, even when nothing was deleted (0x11)', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    for (const id of [1, 300, 65_535]) {
      client.send(unsubscribe(id, 'never'));
      assert.deepEqual(await client.next('unsuback'), { cmd: 'unsuback', messageId: id, granted: [0x11] });
    }
  });

  it('[MQTT-3.10.4-6] processes several filters in order and answers them with one UNSUBACK', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    client.send(unsubscribe(2, 'a', 'a'));
    assert.deepEqual((await client.next('unsuback')).granted, [0, 0x11]);
    await nothing(client);
  });

  it('[MQTT-3.10.4-1] deletes one subscription while overlapping ones still deliver', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, { topic: 'a/#', qos: 2 }, { subscriptionIdentifier: [1] });
    await granted(client, 2, { topic: 'a/b', qos: 0 }, { subscriptionIdentifier: [2] });
    await broker.publish('a/b', 'x', { qos: 1 });
    const ids = (await client.next('publish')).properties?.subscriptionIdentifier ?? [];
    assert.deepEqual([...ids].sort(), [1, 2]);
    client.send(unsubscribe(3, 'a/#'));
    await client.next('unsuback');
    await broker.publish('a/b', 'y', { qos: 1 });
    const left = await client.next('publish');
    assert.deepEqual([left.qos, left.properties?.subscriptionIdentifier], [0, [2]]);
  });
});

describe('UNSUBACK', () => {
  it('[MQTT-3.11.2-1] [MQTT-3.11.2-2] sends no Reason String and no User Property in UNSUBACK that could exceed a Maximum Packet Size', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { properties: { maximumPacketSize: 30 } });
    client.send(unsubscribe(1, 'a', '$queue/'));
    assert.deepEqual(await client.next('unsuback'), { cmd: 'unsuback', messageId: 1, granted: [0x11, 0x8f] });
  });

  it('[MQTT-3.1.2-24] sends no UNSUBACK whose codes alone exceed the Maximum Packet Size: the connection ends with 0x95', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { properties: { maximumPacketSize: 20 } });
    client.send(unsubscribe(1, ...Array.from({ length: 30 }, (_, at) => `f${at}`)));
    await refused(client, 0x95);
    assert.ok(!client.received.some(({ cmd }) => cmd === 'unsuback'));
  });

  it('[MQTT-3.11.3-1] [MQTT-3.11.3-2] sends UNSUBACK with one valid reason code for each filter, in their order', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, ['a', '$share/g/b']);
    client.send(unsubscribe(2, 'x', 'a', '$queue/', '$share/g/b', '$queue/$share/g/b', 'a'));
    assert.deepEqual((await client.next('unsuback')).granted, [0x11, 0, 0x8f, 0, 0x8f, 0x11]);
  });
});
