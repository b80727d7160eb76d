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
  startBroker,
  subscribe,
  turns,
  unsubscribe
} from '../support/wire.ts';

const SUBSCRIBES = [
  ['flags 0000', '80 06 0001 0001 61 00'],
  ['flags 0110', '86 06 0001 0001 61 00'],
  ['packet id 0', '82 06 0000 0001 61 00'],
  ['no filter', '82 02 0001'],
  ['an empty filter', '82 05 0001 0000 00'],
  ['ill-formed UTF-8', '82 06 0001 0001 ff 00'],
  ['U+0000', '82 06 0001 0001 00 00'],
  ['no QoS byte', '82 05 0001 0001 61'],
  ['a length that lies', '82 06 0001 0009 61 00']
] as const;

const UNSUBSCRIBES = [
  ['flags 0000', 'a0 05 0001 0001 61'],
  ['packet id 0', 'a2 05 0000 0001 61'],
  ['no filter', 'a2 02 0001'],
  ['an empty filter', 'a2 04 0001 0000'],
  ['ill-formed UTF-8', 'a2 06 0001 0002 c080'],
  ['a length that lies', 'a2 05 0001 0002 61']
] as const;

describe('SUBSCRIBE of 3.x', () => {
  it('[MQTT3-2.2.2-2] [MQTT3-2.3.1-1] [MQTT3-1.5.3-1, -2] [MQTT3-4.8.0-1] closes the connection without an answer when SUBSCRIBE is malformed', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4] as const) {
      for (const [what, bytes] of [...SUBSCRIBES, ...UNSUBSCRIBES]) {
        const client = await rawClient(broker, { version });
        client.sendBytes(bytes);
        await refused(client, 0);
        assert.equal(client.received.length, 1, what);
      }
    }
  });

  it('[MQTT3-3.8.3-4] [MQTT31-qos-3] closes the connection for a QoS byte above 2, because 3.x has no subscription options', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4] as const) {
      for (const qos of [3, 4, 0x08, 0x10, 0x20, 0x40, 0x81, 0xff]) {
        const client = await rawClient(broker, { version });
        client.send(Buffer.from([0x82, 6, 0, 1, 0, 1, 0x61, qos]));
        await refused(client, 0);
      }
    }
  });

  it('[MQTT3-3.8.3-3] refuses filters with wildcards where the zone forbids them', async () => {
    await using broker = await startBroker({ wildcardSubscription: false });
    const client = await rawClient(broker, { version: 4 });
    assert.deepEqual(await granted(client, 1, ['a', '+', { topic: 'a/#', qos: 2 }]), [0, 0x80, 0x80]);
  });

  it('[MQTT3-suback-codes] reports the granted QoS or 0x80 in SUBACK, in the order of the filters', async () => {
    await using broker = await startBroker({
      maxQosAllowed: 1,
      hooks: { authorizeSubscribe: ({ filter }) => (filter === 'lower' ? 0 : filter !== 'secret') }
    });
    const client = await rawClient(broker, { version: 4 });
    const filters = ['a', 'secret', 'lower', '$share/g', '$share//x'].map((topic) => ({ topic, qos: 2 as const }));
    assert.deepEqual(await granted(client, 65_535, filters), [1, 0x80, 0, 0x80, 0x80]);
    await nothing(client);
  });

  it('[MQTT31-suback] reports a refused filter as granted in SUBACK to MQTT 3.1, which has no 0x80, and delivers nothing for it', async () => {
    await using broker = await startBroker({ hooks: { authorizeSubscribe: ({ filter }) => filter !== 'secret' } });
    const client = await rawClient(broker, { version: 3 });
    assert.deepEqual(
      await granted(client, 1, [
        { topic: 'a', qos: 1 },
        { topic: 'secret', qos: 1 }
      ]),
      [1, 0]
    );
    await broker.publish('secret', 'x');
    await nothing(client);
  });

  it('[MQTT3-3.8.4-3] replaces the subscription for the same filter and always sends retained messages again', async () => {
    await using broker = await startBroker();
    await broker.publish('a', 'kept', { retain: true, qos: 2 });
    for (const version of [3, 4] as const) {
      const client = await rawClient(broker, { version });
      await granted(client, 1, { topic: 'a', qos: 2 });
      const first = await client.next('publish');
      assert.deepEqual([first.qos, first.retain], [2, true]);
      await granted(client, 2, { topic: 'a', qos: 0 });
      const again = await client.next('publish');
      assert.deepEqual([again.qos, again.retain], [0, true]);
      await broker.publish('a', 'live', { retain: true, qos: 1 });
      const live = await client.next('publish');
      assert.deepEqual([live.qos, live.retain], [0, false]);
      await nothing(client);
      client.stream.destroy();
      await broker.publish('a', 'kept', { retain: true, qos: 2 });
    }
  });

  it('[MQTT3-no-v5] sends no subscription identifier and no property to a 3.x subscriber, and a 5.0 subscriber its own', async () => {
    await using broker = await startBroker();
    const old = await rawClient(broker, { version: 4 });
    await granted(old, 1, 'a');
    const modern = await rawClient(broker);
    await granted(modern, 1, 'a', { subscriptionIdentifier: [9] });
    old.send(publish('a', 'x'));
    assert.equal((await old.next('publish')).properties, undefined);
    assert.deepEqual((await modern.next('publish')).properties, { subscriptionIdentifier: [9] });
    modern.send(publish('a', 'y', { properties: { contentType: 't', userProperties: [['k', 'v']] } }));
    const copy = await old.next('publish');
    assert.deepEqual([String(copy.payload), copy.properties], ['y', undefined]);
  });
});

describe('UNSUBSCRIBE of 3.x', () => {
  it('[MQTT3-3.10.4-5] sends UNSUBACK with nothing but the packet id, even when nothing was deleted', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4] as const) {
      const client = await rawClient(broker, { version });
      await granted(client, 1, 'a');
      client.send(unsubscribe(0x1234, 'a', 'never', '$queue/'));
      assert.deepEqual(await client.next('unsuback'), { cmd: 'unsuback', messageId: 0x1234, granted: [] });
      await broker.publish('a', 'x');
      await nothing(client);
    }
  });
});

describe('DISCONNECT of 3.x', () => {
  it('[MQTT3-3.14.4-3] drops the will and sends nothing', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 1 as const, retain: false };
    for (const version of [3, 4] as const) {
      for (const clean of [true, false]) {
        const client = await rawClient(broker, { version, clean, will });
        client.send({ cmd: 'disconnect', reasonCode: 0 });
        await client.closed();
        await turns();
        assert.equal(client.received.length, 1);
        assert.deepEqual(await payloads(watcher), []);
      }
    }
  });

  it('[MQTT3-4.8.0-1] treats a DISCONNECT with a body, as in 5.0, as malformed and publishes the will', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };
    const client = await rawClient(broker, { version: 4, will });
    client.sendBytes('e0 01 00');
    await refused(client, 0);
    assert.deepEqual(await payloads(watcher), ['gone']);
  });

  it('[MQTT3-no-v5] closes without a packet when the app disconnects the client', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { version: 4, clientId: 'c' });
    client.send(subscribe(1, 'a'));
    assert.equal((await rest(client)).length, 1);
    broker.sessions.get('c').kick({ reasonString: 'go', serverReference: 'elsewhere' });
    await client.closed();
    assert.deepEqual(
      client.received.map(({ cmd }) => cmd),
      ['connack', 'suback', 'pingresp']
    );
  });
});
