import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Clock, systemClock } from '../../lib/base/clock.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { connect, granted, nothing, payloads, publish, refused, startBroker, turns } from '../support/wire.ts';

/** One error of each kind that ends a connection, with the reason code for 5.0. */
const MISTAKES: readonly (readonly [what: string, bytes: string, code: number])[] = [
  ['packet type 0', '00 00', 0x81],
  ['a remaining length of five bytes', '30 ff ff ff ff 7f', 0x81],
  ['a remaining length longer than needed', '30 84 00 0001 61 00', 0x81],
  ['PUBLISH that ends inside its topic', '30 03 0009 61', 0x81],
  ['PUBLISH with QoS 3', '36 06 0001 61 0001 00', 0x81],
  ['PUBLISH with DUP at QoS 0', '38 04 0001 61 00', 0x82],
  ['PUBLISH with packet id 0', '32 06 0001 61 0000 00', 0x82],
  ['PUBLISH with an alias beyond the announced', '30 07 0001 61 03 23 ffff', 0x94],
  ['PUBLISH with a subscription identifier', '30 06 0001 61 02 0b 01', 0x82],
  ['PUBLISH with an unknown property', '30 06 0001 61 02 7f 01', 0x81],
  ['PUBLISH with a property twice', '30 08 0001 61 04 01 00 01 00', 0x82],
  ['PUBACK that is cut short', '40 01 00', 0x81],
  ['PUBREL with flags 0', '60 02 0001', 0x81],
  ['PUBREC with a code of no table', '50 03 0001 7f', 0x82],
  ['SUBSCRIBE without its options', '82 06 0001 00 0001 61', 0x81],
  ['PINGREQ with a body', 'c0 01 00', 0x81],
  ['DISCONNECT with a property of CONNECT', 'e0 05 00 03 21 0001', 0x82],
  ['AUTH without a method', 'f0 02 19 00', 0x82],
  ['a second CONNECT', '10 0d 0004 4d515454 05 02 0000 00 0000', 0x82],
  ['CONNACK', '20 03 00 00 00', 0x82]
];

async function mustLive(other: RawClient): Promise<void> {
  other.send(publish('alive', 'yes'));
  assert.deepEqual(await payloads(other), ['yes']);
}

describe('Errors', () => {
  it('[MQTT-4.13.1-1] ends only the connection with the malformed packet or protocol error, with its code', async () => {
    await using broker = await startBroker();
    const other = await rawClient(broker);
    await granted(other, 1, 'alive');
    for (const [what, bytes, code] of MISTAKES) {
      const client = await rawClient(broker);
      client.sendBytes(bytes);
      const reason = await refused(client, code).catch((error: Error) => assert.fail(`${what}: ${error.message}`));
      assert.ok((reason ?? '').length > 0, `${what}: no Reason String`);
      await mustLive(other);
    }
  });

  it('[MQTT-4.13.1-1] [MQTT3-4.8.0-1] closes a 3.x connection without an answer', async () => {
    await using broker = await startBroker();
    const mistakes = [
      '00 00',
      '30 ff ff ff ff 7f',
      '30 03 0009 61',
      '36 05 0001 61 0001',
      '38 03 0001 61',
      '60 02 0001'
    ];
    for (const bytes of [...mistakes, '32 05 0001 61 0000', 'c0 01 00', 'f0 00', '20 02 00 00', '40 03 0001 00']) {
      const client = await rawClient(broker, { version: 4 });
      client.sendBytes(bytes);
      await client.closed();
      assert.equal(client.received.length, 1, bytes);
    }
  });

  it('[MQTT-4.13.1-1] processes packets before the invalid one in the same chunk, and none after it', async () => {
    await using broker = await startBroker();
    const other = await rawClient(broker);
    await granted(other, 1, { topic: 'a', qos: 1 });
    const client = await rawClient(broker);
    const good = '32 07 0001 61 0001 00 78';
    const fast = '30 05 0001 61 00 79';
    client.sendBytes(`${fast} ${good} ${fast} 36 06 0001 61 0001 00 ${good}`);
    await refused(client, 0x81);
    assert.deepEqual(
      client.received.map(({ cmd }) => cmd),
      ['connack', 'puback', 'disconnect']
    );
    assert.deepEqual(await payloads(other), ['y', 'x', 'y']);
  });

  it('[MQTT-4.13.1-1] keeps the session until its expiry, and publishes the will', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    const properties = { sessionExpiryInterval: 60 };
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };
    const client = await rawClient(broker, { clientId: 'c', properties, will });
    await granted(client, 1, { topic: 'a', qos: 1 });
    client.sendBytes('00 00');
    await refused(client, 0x81);
    assert.deepEqual(await payloads(watcher), ['gone']);
    await broker.publish('a', 'kept', { qos: 1 });
    const again = await rawClient(broker, { clientId: 'c', clean: false, properties });
    assert.equal(again.connack?.sessionPresent, true);
    assert.deepEqual(await payloads(again), ['kept']);
  });

  it('[MQTT-4.13.1-1] answers errors in CONNECT by CONNACK with their code, or by the close alone if CONNECT cannot be read', async () => {
    await using broker = await startBroker();
    for (const [bytes, code] of [
      ['10 0d 0004 4d515454 05 03 0000 00 0000', 0x81], // reserved flag
      ['10 0f 0004 4d515454 05 02 0000 00 0002 c080', 0x81], // client id
      ['10 10 0004 4d515454 05 02 0000 03 21 0000 0000', 0x82], // Receive Maximum 0
      ['10 0d 0004 4d515454 05 0a 0000 00 0000', 0x82] // will QoS without a will
    ] as const) {
      const client = await rawClient(broker, { connect: false });
      client.sendBytes(bytes);
      assert.equal((await client.next('connack')).reasonCode, code, bytes);
      await client.closed();
      assert.equal(client.received.length, 1);
    }
    for (const bytes of ['10 03 0009 4d', '30 04 0001 61 00', 'ff ff ff ff ff ff', '16 03 01 00 05 01']) {
      const client = await rawClient(broker, { connect: false });
      client.sendBytes(bytes);
      assert.deepEqual(await client.closed().then(() => client.received), [], bytes);
    }
  });

  it('[MQTT-4.13.2-1] closes after a CONNACK of 0x80 and above', async () => {
    const codes = [0x80, 0x83, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x97, 0x9c, 0x9d, 0x9f];
    let round = 0;
    await using broker = await startBroker({
      hooks: { preConnect: () => ({ allow: false, reasonCode: codes[round++] }) }
    });
    for (const code of codes) {
      const client = await rawClient(broker, { connect: false });
      client.send(connect(5));
      assert.equal((await client.next('connack')).reasonCode, code);
      await client.closed();
    }
  });

  it('[MQTT-4.13.2-1] closes after a DISCONNECT of 0x80 and above, from the broker and from the client', async () => {
    await using broker = await startBroker();
    const kicked = await rawClient(broker, { clientId: 'c' });
    broker.sessions.get('c').kick({ reasonCode: 0x97 });
    await refused(kicked, 0x97);
    const leaving = await rawClient(broker);
    leaving.send({ cmd: 'disconnect', reasonCode: 0x81 });
    await leaving.closed();
    assert.equal(leaving.received.length, 1);
  });

  it('[MQTT-4.13.1-1] ends the affected connection with 0x83 or 0x80 after an error of the broker, and reports it', async () => {
    let isBroken = false;
    const clock: Clock = {
      ...systemClock,
      now() {
        if (isBroken) {
          isBroken = false;
          throw new Error('a fault');
        }
        return systemClock.now();
      }
    };
    await using broker = await startBroker({ clock });
    const errors: string[] = [];
    broker.on('error', ({ during }) => errors.push(during));
    const other = await rawClient(broker);
    await granted(other, 1, 'alive');
    const client = await rawClient(broker);
    isBroken = true;
    client.send(publish('a', 'x', { qos: 1, messageId: 1 }));
    await refused(client, 0x83);
    assert.deepEqual(errors, ['reading a chunk']);
    await mustLive(other);
    await turns();
    await nothing(other);
  });
});
