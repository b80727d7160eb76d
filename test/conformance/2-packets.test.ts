import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { ProtocolVersion } from '../../lib/packets/types.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, publish, startBroker, subscribe, unsubscribe } from '../support/wire.ts';
import { connectBytes, field, frame, sized, u16, u32 } from '../support/wire-connect.ts';

const ID = Buffer.from([0, 1]);
const ZERO_ID = Buffer.from([0, 0]);
const NONE = Buffer.from([0]);
const x = field('x');

const string = field('text');
const byte = Buffer.from([1]);
const two = u16(7);
const four = u32(7);
const varint = Buffer.from([7]);
const pair = Buffer.concat([field('name'), field('value')]);

/** The places where a client may put a property. `ack` stands for each of the four acknowledgements. */
type Place = 'connect' | 'will' | 'publish' | 'ack' | 'subscribe' | 'unsubscribe' | 'disconnect' | 'auth';

/** The properties of section 2.2.2.2 that a client may send: id, name, a value, and the packets that may carry it. */
const PROPERTIES: readonly (readonly [id: number, name: string, value: Buffer, places: readonly Place[]])[] = [
  [0x01, 'Payload Format Indicator', byte, ['publish', 'will']],
  [0x02, 'Message Expiry Interval', four, ['publish', 'will']],
  [0x03, 'Content Type', string, ['publish', 'will']],
  [0x08, 'Response Topic', string, ['publish', 'will']],
  [0x09, 'Correlation Data', string, ['publish', 'will']],
  [0x0b, 'Subscription Identifier', varint, ['subscribe']],
  [0x11, 'Session Expiry Interval', four, ['connect', 'disconnect']],
  [0x12, 'Assigned Client Identifier', string, []],
  [0x13, 'Server Keep Alive', two, []],
  [0x15, 'Authentication Method', string, ['connect', 'auth']],
  [0x16, 'Authentication Data', string, ['connect', 'auth']],
  [0x17, 'Request Problem Information', byte, ['connect']],
  [0x18, 'Will Delay Interval', four, ['will']],
  [0x19, 'Request Response Information', byte, ['connect']],
  [0x1a, 'Response Information', string, []],
  [0x1c, 'Server Reference', string, []],
  [0x1f, 'Reason String', string, ['ack', 'disconnect', 'auth']],
  [0x21, 'Receive Maximum', two, ['connect']],
  [0x22, 'Topic Alias Maximum', two, ['connect']],
  [0x23, 'Topic Alias', two, ['publish']],
  [0x24, 'Maximum QoS', byte, []],
  [0x25, 'Retain Available', byte, []],
  [
    0x26,
    'User Property',
    pair,
    ['connect', 'will', 'publish', 'ack', 'subscribe', 'unsubscribe', 'disconnect', 'auth']
  ],
  [0x27, 'Maximum Packet Size', four, ['connect']],
  [0x28, 'Wildcard Subscription Available', byte, []],
  [0x29, 'Subscription Identifier Available', byte, []],
  [0x2a, 'Shared Subscription Available', byte, []]
];

const METHOD = Buffer.concat([Buffer.from([0x15]), field('text')]);

/** Packets of a connected client with this property block, one or more for each place. */
const PACKETS: readonly (readonly [name: string, place: Place, make: (block: Buffer) => Buffer])[] = [
  ['PUBLISH', 'publish', (block) => frame(0x30, x, sized(block))],
  ['PUBLISH QoS 2', 'publish', (block) => frame(0x34, x, ID, sized(block))],
  ['PUBACK', 'ack', (block) => frame(0x40, ID, NONE, sized(block))],
  ['PUBREC', 'ack', (block) => frame(0x50, ID, NONE, sized(block))],
  ['PUBREL', 'ack', (block) => frame(0x62, ID, NONE, sized(block))],
  ['PUBCOMP', 'ack', (block) => frame(0x70, ID, NONE, sized(block))],
  ['SUBSCRIBE', 'subscribe', (block) => frame(0x82, ID, sized(block), x, NONE)],
  ['UNSUBSCRIBE', 'unsubscribe', (block) => frame(0xa2, ID, sized(block), x)],
  ['DISCONNECT', 'disconnect', (block) => frame(0xe0, NONE, sized(block))]
];

function property(id: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([id]), value]);
}

/** Checks that this CONNECT is refused with this code. */
async function refusesConnect(broker: Broker, bytes: Buffer, code: number, what: string): Promise<void> {
  const client = await rawClient(broker, { connect: false });
  client.send(bytes);
  const got = await client.closed();
  const codes = got.map((packet) => (packet.cmd === 'connack' ? packet.reasonCode : packet.cmd));
  assert.deepEqual(codes, [code], what);
}

/** Checks that this packet of a connected client is refused with this code. */
async function refuses(broker: Broker, bytes: Buffer, code: number, what: string): Promise<void> {
  const client = await rawClient(broker);
  client.send(bytes);
  const before = await client.refused(code).catch((error: Error) => assert.fail(`${what}: ${error.message}`));
  assert.deepEqual(before, [], what);
}

/** CONNECT packets with this block, once as their own properties and once as those of the will. */
function connectWith(block: Buffer): Buffer {
  return connectBytes({ properties: block });
}

function willWith(block: Buffer): Buffer {
  return connectBytes({ flags: 0x06, payload: [sized(block), x, x] });
}

/** Sends a re-authentication with this block after a CONNECT that named the method. */
async function refusesAuth(block: Buffer, code: number, what: string): Promise<void> {
  await using broker = await startBroker({ hooks: { authenticate: () => true } });
  const client = await rawClient(broker, { properties: { authenticationMethod: 'text' } });
  assert.equal(client.connack?.reasonCode, 0);
  client.send(frame(0xf0, Buffer.from([0x19]), sized(block)));
  const before = await client.refused(code).catch((error: Error) => assert.fail(`${what}: ${error.message}`));
  assert.deepEqual(before, [], what);
}

async function ofVersion(broker: Broker, version: ProtocolVersion): Promise<RawClient> {
  return rawClient(broker, { version });
}

describe('Packet format', () => {
  it('[MQTT-2.1.3-1] closes with 0x81 when reserved flags of the fixed header are wrong', async () => {
    await using broker = await startBroker();
    const right: Record<number, number> = { 6: 2, 8: 2, 10: 2 };
    for (const type of [4, 5, 6, 7, 8, 10, 12, 14, 15]) {
      const body = [8, 10].includes(type)
        ? [ID, NONE, x, ...(type === 8 ? [NONE] : [])]
        : [4, 5, 6, 7].includes(type)
          ? [ID]
          : [];
      for (let flags = 0; flags < 16; flags++) {
        if (flags === (right[type] ?? 0)) continue;
        await refuses(broker, frame((type << 4) | flags, ...body), 0x81, `type ${type}, flags ${flags}`);
      }
    }
    // The broker sends nothing before it has read a valid CONNECT.
    for (let flags = 1; flags < 16; flags++) {
      const client = await rawClient(broker, { connect: false });
      client.send(connectBytes({ first: 0x10 | flags }));
      assert.deepEqual(await client.closed(), [], `CONNECT, flags ${flags}`);
    }
  });

  it('[MQTT-2.1.3-1] closes with 0x81 for packet type 0', async () => {
    await using broker = await startBroker();
    for (const first of [0x00, 0x01, 0x0f]) await refuses(broker, frame(first), 0x81, `first byte ${first}`);
  });

  it('[MQTT-2.1.3-1] sends packets of every type with the flags that the specification fixes', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    const first: number[] = [];
    client.stream.on('data', (chunk: Buffer) => {
      // Every packet here is shorter than 128 bytes.
      for (let at = 0; at < chunk.length; at += 2 + chunk[at + 1]) first.push(chunk[at]);
    });
    await granted(client, 1, { topic: 'x', qos: 2 });
    client.send(publish('x', '', { qos: 2, messageId: 1 }));
    await client.next('publish');
    await client.next('pubrec');
    client.send({ cmd: 'pubrel', messageId: 1, reasonCode: 0 }, { cmd: 'pubrec', messageId: 1, reasonCode: 0 });
    client.send({ cmd: 'pubcomp', messageId: 1, reasonCode: 0 }, unsubscribe(2, 'x'));
    client.send(publish('x', '', { qos: 1, messageId: 1 }), { cmd: 'pingreq' }, frame(0x00));
    await client.closed();
    assert.deepEqual(
      [...new Set(first)].sort((a, b) => a - b).map((value) => value.toString(16)),
      ['34', '40', '50', '62', '70', '90', 'b0', 'd0', 'e0']
    );
  });

  it('[MQTT-2.2.1-2] sends QoS 0 messages without a packet id, and expects none in received ones', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, { topic: 'x', qos: 2 });
    const frames = [
      frame(0x30, x, NONE, Buffer.from([0, 9])),
      frame(0x30, x, sized(property(0x01, byte)), Buffer.from('a'))
    ];
    for (const bytes of frames) {
      const sent = new Promise<Buffer>((resolve) => client.stream.once('data', resolve));
      client.send(bytes);
      assert.deepEqual(await sent, bytes);
      await client.next('publish');
    }
  });

  it('[MQTT-2.2.1-3] closes with 0x82 for packet id 0', async () => {
    await using broker = await startBroker();
    const bad: Record<string, Buffer> = {
      'PUBLISH QoS 1': frame(0x32, x, ZERO_ID, NONE),
      'PUBLISH QoS 2': frame(0x34, x, ZERO_ID, NONE),
      SUBSCRIBE: frame(0x82, ZERO_ID, NONE, x, NONE),
      UNSUBSCRIBE: frame(0xa2, ZERO_ID, NONE, x),
      PUBACK: frame(0x40, ZERO_ID),
      PUBREC: frame(0x50, ZERO_ID),
      PUBREL: frame(0x62, ZERO_ID),
      'PUBREL with a code': frame(0x62, ZERO_ID, NONE),
      PUBCOMP: frame(0x70, ZERO_ID)
    };
    for (const [what, bytes] of Object.entries(bad)) await refuses(broker, bytes, 0x82, what);
  });

  it('[MQTT-2.2.1-4] never uses packet id 0 or one that is in flight, even after the ids have wrapped around', async () => {
    await using broker = await startBroker({ maxInflight: 1_100, maxMqueueLen: 0 });
    const client = await rawClient(broker);
    await granted(client, 1, { topic: 'x', qos: 2 });
    const inFlight = new Set<number>();
    const kept = 5;
    let sent = 0;
    while (sent < 66_000) {
      for (let count = 0; count < 1_000; count++) void broker.publish('x', '', { qos: 1 });
      const acks: Buffer[] = [];
      for (let count = 0; count < 1_000; count++) {
        const { messageId } = await client.next('publish');
        assert.ok(messageId !== undefined && messageId > 0 && !inFlight.has(messageId), `id ${messageId}`);
        sent++;
        inFlight.add(messageId);
        if (sent <= kept) continue; // the first few are never acknowledged
        inFlight.delete(messageId);
        acks.push(frame(0x40, u16(messageId)));
      }
      client.send(...acks);
    }
    assert.deepEqual([...inFlight], [1, 2, 3, 4, 5]);
  });

  it('[MQTT-2.2.1-4] does not use the packet id of a QoS 2 message that waits for PUBCOMP', async () => {
    await using broker = await startBroker({ maxInflight: 2 });
    const client = await rawClient(broker);
    await granted(client, 1, { topic: 'x', qos: 2 });
    for (let count = 0; count < 3; count++) void broker.publish('x', '', { qos: 2 });
    assert.equal((await client.next('publish')).messageId, 1);
    assert.equal((await client.next('publish')).messageId, 2);
    client.send({ cmd: 'pubrec', messageId: 1, reasonCode: 0 });
    assert.equal((await client.next('pubrel')).messageId, 1);
    await client.nothing();
    client.send({ cmd: 'pubcomp', messageId: 1, reasonCode: 0 });
    assert.equal((await client.next('publish')).messageId, 3);
  });

  it('[MQTT-2.2.1-5] acknowledges with the packet id of the PUBLISH', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    for (const messageId of [1, 127, 128, 255, 256, 32_767, 65_535]) {
      client.send(publish('x', '', { qos: 1, messageId }));
      assert.equal((await client.next('puback')).messageId, messageId);
      client.send(publish('x', '', { qos: 2, messageId }));
      assert.equal((await client.next('pubrec')).messageId, messageId);
      client.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
      assert.equal((await client.next('pubcomp')).messageId, messageId);
    }
  });

  it('[MQTT-2.2.1-6] answers SUBSCRIBE and UNSUBSCRIBE with their packet ids', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    for (const messageId of [1, 255, 256, 65_535]) {
      client.send(subscribe(messageId, 'x'), unsubscribe(messageId, 'x'));
      assert.equal((await client.next('suback')).messageId, messageId);
      assert.equal((await client.next('unsuback')).messageId, messageId);
    }
  });

  it('[MQTT-2.2.2-1] closes with 0x81 when the property length is missing in a packet that has no short form', async () => {
    await using broker = await startBroker();
    await refuses(broker, frame(0x30, x), 0x81, 'PUBLISH');
    await refuses(broker, frame(0x32, x, ID), 0x81, 'PUBLISH QoS 1');
    await refuses(broker, frame(0x82, ID), 0x81, 'SUBSCRIBE');
    await refuses(broker, frame(0xa2, ID), 0x81, 'UNSUBSCRIBE');
    await refuses(broker, frame(0x82, ID, x, NONE), 0x81, 'SUBSCRIBE of 3.1.1');
    const connect = Buffer.concat([field('MQTT'), Buffer.from([5, 2, 0, 0])]);
    await refusesConnect(broker, frame(0x10, connect), 0x81, 'CONNECT');
    await refusesConnect(broker, connectBytes({ flags: 0x06, payload: [x, x] }), 0x81, 'will properties');
  });

  it('[MQTT-2.2.2-1] writes a property length of zero when there are no properties', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    const chunks: Buffer[] = [];
    client.stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    client.send(subscribe(7, 'x'));
    await client.next('suback');
    client.send(publish('x', '1'));
    await client.next('publish');
    client.send(unsubscribe(8, 'x'));
    await client.next('unsuback');
    assert.equal(
      Buffer.concat(chunks).toString('hex'),
      ['90040007 00 00', '3005 0001 78 00 31', 'b0040008 00 00'].join('').replaceAll(' ', '')
    );
  });

  it('[MQTT-2.2.2-1] closes with 0x81 for a property length that exceeds the packet', async () => {
    await using broker = await startBroker();
    const long = Buffer.from([9]);
    await refuses(broker, frame(0x30, x, long, byte), 0x81, 'PUBLISH');
    await refuses(broker, frame(0x82, ID, long, x, NONE), 0x81, 'SUBSCRIBE');
    await refuses(broker, frame(0xa2, ID, Buffer.from([127]), x), 0x81, 'UNSUBSCRIBE');
    await refuses(broker, frame(0x40, ID, NONE, long), 0x81, 'PUBACK');
    await refuses(broker, frame(0xe0, NONE, long), 0x81, 'DISCONNECT');
    const connect = Buffer.concat([field('MQTT'), Buffer.from([5, 2, 0, 0, 99])]);
    await refusesConnect(broker, frame(0x10, connect, x), 0x81, 'CONNECT');
  });
});

describe('Properties', () => {
  it('[MQTT-4.13.1-1] refuses with 0x82 each property in each packet that must not carry it', async () => {
    await using broker = await startBroker();
    for (const [id, name, value, places] of PROPERTIES) {
      const block = property(id, value);
      if (!places.includes('connect')) await refusesConnect(broker, connectWith(block), 0x82, `${name} in CONNECT`);
      if (!places.includes('will')) await refusesConnect(broker, willWith(block), 0x82, `${name} in a will`);
      for (const [packet, place, make] of PACKETS)
        if (!places.includes(place)) await refuses(broker, make(block), 0x82, `${name} in ${packet}`);
      if (!places.includes('auth')) await refusesAuth(Buffer.concat([METHOD, block]), 0x82, `${name} in AUTH`);
    }
  });

  it('[MQTT-4.13.1-1] refuses with 0x82 a property that occurs twice, except a user property', async () => {
    await using broker = await startBroker();
    for (const [id, name, value, places] of PROPERTIES) {
      if (id === 0x26) continue;
      // Authentication Data is valid only together with Authentication Method.
      const method = id === 0x16 ? METHOD : Buffer.alloc(0);
      const block = Buffer.concat([method, property(id, value), property(id, value)]);
      if (places.includes('connect')) await refusesConnect(broker, connectWith(block), 0x82, `${name} in CONNECT`);
      if (places.includes('will')) await refusesConnect(broker, willWith(block), 0x82, `${name} in a will`);
      for (const [packet, place, make] of PACKETS)
        if (places.includes(place)) await refuses(broker, make(block), 0x82, `${name} in ${packet}`);
      if (!places.includes('auth')) continue;
      const more = id === 0x15 || id === 0x16 ? block : Buffer.concat([METHOD, block]);
      await refusesAuth(more, 0x82, `${name} in AUTH`);
    }
  });

  it('[MQTT-4.13.1-1] accepts any number of user properties in every packet', async () => {
    await using broker = await startBroker({ hooks: { authenticate: () => true } });
    const block = Buffer.concat(Array.from({ length: 50 }, () => property(0x26, pair)));
    for (const bytes of [connectWith(block), willWith(block)]) {
      const client = await rawClient(broker, { connect: false });
      client.send(bytes);
      assert.equal((await client.next('connack')).reasonCode, 0);
      for (const [, place, make] of PACKETS) if (place !== 'disconnect') client.send(make(block));
      const answers = await client.rest();
      assert.deepEqual(
        answers.map(({ cmd }) => cmd),
        ['pubrec', 'pubrel', 'pubcomp', 'suback', 'unsuback']
      );
      client.send(frame(0xe0, NONE, sized(block)));
      await client.closed();
      assert.equal(client.received.at(-1)?.cmd, 'pingresp');
    }
    const client = await rawClient(broker, { properties: { authenticationMethod: 'text' } });
    client.send(frame(0xf0, Buffer.from([0x19]), sized(METHOD, block)));
    assert.equal((await client.next('auth')).reasonCode, 0);
  });

  it('[MQTT-4.13.1-1] closes with 0x81 for a property id that does not exist', async () => {
    await using broker = await startBroker();
    const known = new Set(PROPERTIES.map(([id]) => id));
    for (let id = 0; id < 0x80; id++) {
      if (known.has(id)) continue;
      await refuses(broker, frame(0x30, x, sized(property(id, four))), 0x81, `PUBLISH, 0x${id.toString(16)}`);
      await refusesConnect(broker, connectWith(property(id, four)), 0x81, `CONNECT, 0x${id.toString(16)}`);
    }
    for (const [name, , make] of PACKETS) await refuses(broker, make(Buffer.from([0xff, 0x7f, 1])), 0x81, name);
  });

  it('[MQTT-4.13.1-1] closes with 0x81 when the property length truncates a property, even one that the packet must not carry', async () => {
    await using broker = await startBroker();
    for (const [id, name, value] of PROPERTIES) {
      for (const kept of new Set([0, 1, value.length - 1])) {
        if (kept >= value.length) continue;
        const block = property(id, value.subarray(0, kept));
        const what = `${name}, ${kept} bytes`;
        await refusesConnect(broker, connectWith(block), 0x81, what);
        await refusesConnect(broker, willWith(block), 0x81, what);
        for (const [packet, , make] of PACKETS) await refuses(broker, make(block), 0x81, `${what} in ${packet}`);
      }
    }
  });

  it('[MQTT-4.13.1-1] refuses values that are out of range with 0x82, and alias 0 with 0x94', async () => {
    await using broker = await startBroker();
    const connect: Record<string, Buffer> = {
      'Receive Maximum 0': property(0x21, u16(0)),
      'Maximum Packet Size 0': property(0x27, u32(0)),
      'Request Problem Information 2': property(0x17, Buffer.from([2])),
      'Request Response Information 255': property(0x19, Buffer.from([255])),
      'Authentication Data without method': property(0x16, field('data'))
    };
    for (const [what, block] of Object.entries(connect)) await refusesConnect(broker, connectWith(block), 0x82, what);
    await refusesConnect(
      broker,
      willWith(property(0x01, Buffer.from([2]))),
      0x82,
      'Payload Format Indicator of a will'
    );
    await refuses(broker, frame(0x30, x, sized(property(0x01, Buffer.from([2])))), 0x82, 'Payload Format Indicator 2');
    await refuses(broker, frame(0x30, x, sized(property(0x23, u16(0)))), 0x94, 'Topic Alias 0');
    await refuses(broker, frame(0x82, ID, sized(property(0x0b, NONE)), x, NONE), 0x82, 'Subscription Identifier 0');
  });

  it('[MQTT-4.13.1-1] accepts the largest value of every property', async () => {
    await using broker = await startBroker();
    const most = Buffer.alloc(4, 255);
    const block = Buffer.concat([
      property(0x11, most),
      property(0x21, most.subarray(2)),
      property(0x22, most.subarray(2)),
      property(0x27, most),
      property(0x17, byte),
      property(0x19, byte)
    ]);
    const client = await rawClient(broker, { connect: false });
    const will = sized(property(0x18, most), property(0x02, most));
    client.send(connectBytes({ flags: 0x06, properties: block, payload: [will, x, x] }));
    assert.equal((await client.next('connack')).reasonCode, 0);
    client.send(frame(0x82, ID, sized(property(0x0b, Buffer.from([0xff, 0xff, 0xff, 0x7f]))), x, NONE));
    assert.deepEqual((await client.next('suback')).granted, [0]);
    client.send(frame(0x30, x, sized(property(0x02, most))));
    const { properties } = await client.next('publish');
    assert.deepEqual(properties?.subscriptionIdentifier, [268_435_455]);
    assert.equal(properties?.messageExpiryInterval, 4_294_967_295);
  });
});

describe('Packet format of 3.x', () => {
  it('[MQTT3-2.2.2-2] closes without an answer when flags of the fixed header are wrong', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4] as const) {
      for (const bytes of [
        frame(0x80, ID, x, NONE),
        frame(0xa0, ID, x),
        frame(0x60, ID),
        frame(0x36, x, ID),
        // MQTT 3.1 does not use these flags
        ...(version === 3 ? [] : [frame(0x83, ID, x, NONE), frame(0x41, ID), frame(0xc1), frame(0xe1)]),
        frame(0xf0),
        frame(0x00)
      ]) {
        const client = await ofVersion(broker, version);
        client.send(bytes);
        assert.deepEqual(await client.refused(0x81), [], bytes.toString('hex'));
      }
    }
  });

  it('[MQTT3-2.3.1-1] closes without an answer for packet id 0', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4] as const) {
      for (const bytes of [
        frame(0x32, x, ZERO_ID),
        frame(0x34, x, ZERO_ID),
        frame(0x82, ZERO_ID, x, NONE),
        frame(0xa2, ZERO_ID, x),
        frame(0x62, ZERO_ID)
      ]) {
        const client = await ofVersion(broker, version);
        client.send(bytes);
        assert.deepEqual(await client.refused(0x82), [], bytes.toString('hex'));
      }
    }
  });

  it('[MQTT31-qos-3] closes for QoS 3 in a PUBLISH, in a SUBSCRIBE and in a will of MQTT 3.1', async () => {
    await using broker = await startBroker();
    for (const bytes of [frame(0x36, x, ID), frame(0x82, ID, x, Buffer.from([3]))]) {
      const client = await ofVersion(broker, 3);
      client.send(bytes);
      assert.deepEqual(await client.refused(0x81), []);
    }
    const client = await rawClient(broker, { version: 3, connect: false });
    client.send(connectBytes({ name: 'MQIsdp', level: 3, flags: 0x1e, payload: [x, x] }));
    assert.deepEqual(await client.closed(), []);
  });
});
