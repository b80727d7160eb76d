import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PublishPacket } from '../../lib/packets/types.ts';
import { ack, cutOff, persistent, subscriber, summarize, timedBroker } from '../support/flows.ts';
import { rawClient } from '../support/raw-client.ts';
import { publish, subscribe } from '../support/wire.ts';

for (const version of [4, 3] as const) {
  const name = version === 3 ? ' (3.1)' : '';

  describe(`PUBLISH, version ${version}`, () => {
    it(`[MQTT3-3.3.1-7]${name} replaces a retained message with one of QoS 0, regardless of the QoS of the previous one`, async () => {
      await using test = await timedBroker();
      const client = await rawClient(test.broker, { version });
      client.send(publish('a', 'old', { qos: 2, messageId: 1, retain: true }), ack('pubrel', 1));
      client.send(publish('a', 'new', { retain: true }));
      await client.rest();
      client.send(subscribe(2, { topic: 'a', qos: 2 }));
      assert.deepEqual(summarize(await client.rest()), ['suback', 'publish q0 retain a=new']);
    });

    it(`[MQTT3-3.3.1-8, -9]${name} sets RETAIN for a new subscription and clears it for an existing one`, async () => {
      await using test = await timedBroker();
      const client = await subscriber(test.broker, { topic: 'a', qos: 1 }, { version });
      client.send(publish('a', 'x', { qos: 1, messageId: 1, retain: true }));
      assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 a=x', 'puback 1']);
      client.send(subscribe(2, { topic: 'a', qos: 0 }));
      assert.deepEqual(summarize(await client.rest()), ['suback', 'publish q0 retain a=x']);
    });

    it(`[MQTT3-3.3.5-1]${name} sends one copy for overlapping filters, at the highest QoS among them`, async () => {
      await using test = await timedBroker();
      const client = await rawClient(test.broker, { version });
      client.send(
        subscribe(1, [
          { topic: 'a/b', qos: 1 },
          { topic: 'a/#', qos: 2 },
          { topic: '+/b', qos: 0 }
        ])
      );
      await client.next('suback');
      for (const qos of [2, 1, 0] as const) await test.broker.publish('a/b', 'x', { qos });
      assert.deepEqual(summarize(await client.rest()), [
        'publish 1 q2 a/b=x',
        'publish 2 q1 a/b=x',
        'publish q0 a/b=x'
      ]);
    });

    it(`[MQTT3-3.3.5-2]${name} acknowledges a message that the client may not publish as if it were accepted, and delivers it to no client`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      broker.hook('authorizePublish', ({ message }) => message.topic !== 'no');
      const witness = await subscriber(broker, { topic: '#' });
      const client = await rawClient(broker, { version });
      client.send(publish('no', '', { qos: 1, messageId: 1 }), publish('no', '', { retain: true }));
      client.send(publish('no', '', { qos: 2, messageId: 2 }), publish('no', '', { qos: 2, messageId: 2, dup: true }));
      client.send(ack('pubrel', 2));
      assert.deepEqual(summarize(await client.rest()), ['puback 1', 'pubrec 2', 'pubrec 2', 'pubcomp 2']);
      await witness.nothing();
    });

    it(`[MQTT3-3.3.5-2]${name} closes without an answer for it where the zone is configured so`, async () => {
      await using test = await timedBroker({ aclDenyAction: 'disconnect' });
      test.broker.hook('authorizePublish', ({ message }) => message.topic !== 'no');
      const client = await rawClient(test.broker, { version });
      client.send(publish('yes', '', { qos: 1, messageId: 1 }), publish('no', '', { qos: 1, messageId: 2 }));
      client.send(publish('yes', '', { qos: 1, messageId: 3 }));
      assert.deepEqual(summarize(await client.refused(0)), ['puback 1']);
    });

    it(`[MQTT3-4.8.0-1]${name} closes without an answer for each violation of the rules of PUBLISH and its acknowledgements`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      const witness = await subscriber(broker, { topic: '#', qos: 2 });
      const wrong = [
        '36 05 0001 61 0001', // QoS 3
        '38 03 0001 61', // DUP with QoS 0
        '32 05 0001 61 0000', // packet id 0
        '30 02 0000', // no topic
        '30 03 0001 23', // a wildcard
        '30 03 0001 ff', // not UTF-8
        '30 03 0001 00', // U+0000
        '30 02 0005', // truncated
        '32 04 0001 61 00', // truncated packet id
        '40 02 0000',
        '40 01 00',
        '40 03 0001 00', // reason codes exist in 5.0 only
        '50 03 0001 00',
        '62 03 0001 00',
        '70 03 0001 00',
        '60 02 0001', // PUBREL with flags 0000
        ...(version === 4 ? ['42 02 0001', '63 02 0001', 'c1 00', 'e8 00'] : []), // 3.1 does not use these flags
        '20 02 0000', // CONNACK
        'd0 00', // PINGRESP
        'f0 00' // AUTH
      ];
      for (const bytes of wrong) {
        const client = await rawClient(broker, { version });
        client.sendBytes(bytes);
        assert.deepEqual(await client.refused(0), [], bytes);
      }
      await witness.nothing();
    });
  });
}

describe('DUP in MQTT 3.1', () => {
  const REPEATED = { subscribe: '8a 06 0001 0001 61 00', unsubscribe: 'aa 05 0002 0001 61', pubrel: '6a 02 0003' };

  it('[MQTT31-dup] accepts PUBREL, SUBSCRIBE and UNSUBSCRIBE with DUP (V3.1 section 2.1)', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker, { version: 3 });
    client.sendBytes(REPEATED.subscribe);
    assert.deepEqual(summarize(await client.rest()), ['suback']);
    client.send(publish('a', 'x', { qos: 2, messageId: 3 }));
    assert.deepEqual(summarize(await client.rest()), ['publish q0 a=x', 'pubrec 3']);
    client.sendBytes(REPEATED.pubrel);
    client.sendBytes(REPEATED.unsubscribe);
    assert.deepEqual(summarize(await client.rest()), ['pubcomp 3', 'unsuback']);
  });

  it('[MQTT31-unused] accepts flags of the fixed header that 3.1 does not use (V3.1 section 3)', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker, { version: 3 });
    client.sendBytes('8b 06 0001 0001 61 01');
    assert.deepEqual(summarize(await client.rest()), ['suback']);
    client.send(publish('a', 'x', { qos: 1, messageId: 3 }));
    assert.deepEqual(summarize(await client.rest()), ['publish 1 q1 a=x', 'puback 3']);
    client.sendBytes('4f 02 0001');
    client.sendBytes('cf 00');
    await client.next('pingresp');
    client.sendBytes('ef 00');
    assert.deepEqual(await client.refused(0), []);
  });

  it('[MQTT31-dup] [MQTT3-2.2.2-2] closes if the QoS bits are others, and for DUP in 3.1.1', async () => {
    await using test = await timedBroker();
    for (const bytes of Object.values(REPEATED)) {
      const old = await rawClient(test.broker, { version: 3 });
      const other = Buffer.from(bytes.replaceAll(' ', ''), 'hex');
      other[0] ^= 2;
      old.send(other);
      assert.deepEqual(await old.refused(0), [], bytes);
      const client = await rawClient(test.broker, { version: 4 });
      client.sendBytes(bytes);
      assert.deepEqual(await client.refused(0), [], bytes);
    }
  });
});

describe('MQTT 3.1.1 in addition to 5.0', () => {
  it('[MQTT3-no-v5] notifies a 3.x client of a takeover or shutdown by the close alone', async () => {
    await using test = await timedBroker();
    const first = await rawClient(test.broker, persistent('c', 4));
    const second = await rawClient(test.broker, persistent('c', 4));
    assert.deepEqual(await first.refused(0), []);
    test.broker.sessions.get('c').kick();
    assert.deepEqual(await second.refused(0), []);
  });

  it('[MQTT3-no-v5] delivers queued messages to a session that is resumed with another version, in the format of that version', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    await cutOff(broker, await subscriber(broker, { topic: 'a', qos: 1 }, persistent('c', 5)));
    const properties = { contentType: 't', messageExpiryInterval: 60 };
    await broker.publish('a', 'x', { qos: 1, properties });
    for (const [version, dup, expected] of [
      [4, '', undefined],
      [3, ' dup', undefined],
      [5, ' dup', properties]
    ] as const) {
      const client = await rawClient(broker, persistent('c', version));
      const packets = (await client.rest()) as PublishPacket[];
      assert.deepEqual(summarize(packets), [`publish 1 q1${dup} a=x`]);
      assert.deepEqual(packets[0]?.properties, expected);
      await cutOff(broker, client);
    }
  });

  it('[MQTT3-4.8.0-2] closes only the connection whose stream fails, without an answer', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const witness = await rawClient(broker, { version: 4 });
    const client = await rawClient(broker, { version: 4 });
    const gone = broker.nextEvent('client.disconnected');
    client.stream.destroy(new Error('the network is gone'));
    assert.equal((await gone).reason, 'stream_error');
    assert.deepEqual(
      client.received.map(({ cmd }) => cmd),
      ['connack']
    );
    await witness.nothing();
  });
});
