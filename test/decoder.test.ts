import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { decodeFrames, decodePacket } from '../lib/decoder.ts';
import type { BrokerError, Packet, PacketTap, ProtocolVersion } from '../lib/index.ts';
import { encode } from '../lib/packets/encode.ts';
import { PacketType } from '../lib/packets/types.ts';
import { createTestBroker } from '../lib/testing/index.ts';
import { runs } from './packets/arbitraries.ts';

describe('decodePacket', () => {
  it('decodes the packets of the diagnostics channels in every version', async () => {
    for (const protocolVersion of [3, 4, 5] as const) {
      await using kit = await createTestBroker();
      const packets: Packet[] = [];
      const note = (tap: unknown) => {
        const { broker, bytes, client } = tap as PacketTap;
        if (broker === kit.broker) packets.push(decodePacket(bytes, client.protocolVersion));
      };
      const channels = ['embermq:packet:received', 'embermq:packet:sent'];
      for (const name of channels) subscribe(name, note);
      try {
        const client = await kit.connect({ clientId: 'c', protocolVersion });
        await client.subscribe('a/+', { qos: 1 });
        await client.publish('a/b', 'x', { qos: 1 });
        await kit.clock.settle();
      } finally {
        for (const name of channels) unsubscribe(name, note);
      }
      assert.deepEqual(packets.map(({ cmd }) => cmd).sort(), [
        'connack',
        'connect',
        'puback',
        'puback',
        'publish',
        'publish',
        'suback',
        'subscribe'
      ]);
      const one = <C extends Packet['cmd']>(cmd: C) =>
        packets.find((packet) => packet.cmd === cmd) as Extract<Packet, { cmd: C }>;
      assert.equal(one('connect').clientId, 'c');
      assert.equal(one('connect').protocolVersion, protocolVersion);
      assert.equal(one('publish').topic, 'a/b');
      assert.equal(String(one('publish').payload), 'x');
      assert.deepEqual(one('suback').granted, [1]);
    }
  });

  it('copies the bytes, so that the caller may reuse the buffer', () => {
    const bytes = encode(
      { cmd: 'publish', topic: 'a', payload: Buffer.from('x'), qos: 0, dup: false, retain: false },
      5
    );
    const packet = decodePacket(bytes, 5);
    bytes.fill(0);
    assert.ok(packet.cmd === 'publish' && String(packet.payload) === 'x');
  });

  it('decodes packets that only a client or only a server may send', () => {
    const disconnect = { cmd: 'disconnect', properties: {} } as const;
    const fromServer = encode({ ...disconnect, reasonCode: 0x8b, properties: { serverReference: 'other' } }, 5);
    const fromClient = encode({ ...disconnect, reasonCode: 0x04, properties: { sessionExpiryInterval: 5 } }, 5);
    assert.deepEqual(decodePacket(fromServer, 5), {
      ...disconnect,
      reasonCode: 0x8b,
      properties: { serverReference: 'other' }
    });
    assert.deepEqual(decodePacket(fromClient, 5), {
      ...disconnect,
      reasonCode: 4,
      properties: { sessionExpiryInterval: 5 }
    });
  });

  it('decodes packets that the broker refuses', () => {
    const bytes = Buffer.from('3005000361232f', 'hex'); // a wildcard in a topic name
    assert.deepEqual(decodePacket(bytes, 4), {
      cmd: 'publish',
      topic: 'a#/',
      payload: Buffer.alloc(0),
      qos: 0,
      dup: false,
      retain: false
    });
  });

  it('keeps every user property, those of one name next to each other', () => {
    const userProperties = [
      ['a', '1'],
      ['__proto__', '2'],
      ['a', '3']
    ] as const;
    const publish = {
      cmd: 'publish',
      topic: 'a',
      payload: Buffer.alloc(0),
      qos: 0,
      dup: false,
      retain: false
    } as const;
    const packet = decodePacket(encode({ ...publish, properties: { userProperties } }, 5), 5);
    assert.ok(packet.cmd === 'publish');
    assert.deepEqual(packet.properties?.userProperties, [
      ['a', '1'],
      ['a', '3'],
      ['__proto__', '2']
    ]);
  });

  it('refuses bytes that are not exactly one packet with PACKET_INVALID', () => {
    const ping = Buffer.from([0xc0, 0]);
    const wrong = [
      Buffer.alloc(0),
      Buffer.from([0x30, 5, 0]),
      Buffer.concat([ping, ping]),
      Buffer.from([0x00, 0]),
      Buffer.from([0x20, 0]), // CONNACK without its flags
      Buffer.from([0x40, 1, 0]), // PUBACK with half a packet id
      Buffer.from([0x30, 6, 0, 1, 0x61, 4, 0x26, 0]), // a property that is cut off
      'text'
    ];
    for (const bytes of wrong) assert.throws(() => decodePacket(bytes as Buffer, 5), { code: 'PACKET_INVALID' });
  });

  it('returns a packet or throws PACKET_INVALID for any bytes', () => {
    const input = fc.tuple(
      fc.constantFrom(3, 4, 5),
      fc.integer({ min: 0, max: 255 }),
      fc.uint8Array({ maxLength: 40 })
    );
    fc.assert(
      fc.property(input, ([version, first, rest]) => {
        const bytes = Buffer.from([first, rest.length, ...rest]);
        try {
          assert.ok(decodePacket(bytes, version as ProtocolVersion).cmd in PacketType);
        } catch (error) {
          assert.equal((error as BrokerError).code, 'PACKET_INVALID', String(error));
        }
      }),
      runs('decodePacket, random bytes', 5_000)
    );
  });
});

describe('decodeFrames', () => {
  it('refuses input that is not a Buffer or Uint8Array with PACKET_INVALID', () => {
    for (const bytes of ['c000', undefined, [0xc0, 0], new ArrayBuffer(2)])
      assert.throws(() => [...decodeFrames(bytes as unknown as Buffer, 5)], { code: 'PACKET_INVALID' });
  });

  it('returns frames with a reason for any bytes that begin with a CONNECT', () => {
    const input = fc.uint8Array({ maxLength: 40 });
    fc.assert(
      fc.property(input, (rest) => {
        const [frame] = decodeFrames(Buffer.from([0x10, rest.length, ...rest]));
        assert.ok(frame.packet !== undefined || frame.fault !== undefined);
      }),
      runs('decodeFrames, random CONNECT', 2_000)
    );
  });

  it('uses the version of a CONNACK for the packets that follow', () => {
    const connack = { cmd: 'connack', sessionPresent: false, reasonCode: 0 } as const;
    for (const version of [4, 5] as const) {
      const bytes = Buffer.concat([encode(connack, version), Buffer.from([0xd0, 0])]);
      assert.deepEqual(
        [...decodeFrames(bytes)].map(({ protocolVersion, packet }) => [protocolVersion, packet?.cmd]),
        [
          [version, 'connack'],
          [version, 'pingresp']
        ]
      );
    }
  });

  it('asks for the version if neither a CONNECT nor a CONNACK states it', () => {
    assert.throws(() => [...decodeFrames(Buffer.from([0xc0, 0]))], {
      code: 'OPTION_MISSING',
      message: 'neither a CONNECT nor a CONNACK states the protocol version; pass protocolVersion'
    });
  });
});
