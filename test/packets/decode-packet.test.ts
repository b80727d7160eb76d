import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, it } from 'node:test';
import { decodePacket, type Packet, type PacketTap } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

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

  it('refuses bytes that are not exactly one packet with PACKET_INVALID', () => {
    const ping = Buffer.from([0xc0, 0]);
    const wrong = [
      Buffer.alloc(0),
      Buffer.from([0x30, 5, 0]),
      Buffer.concat([ping, ping]),
      Buffer.from([0x00, 0]),
      'text'
    ];
    for (const bytes of wrong) assert.throws(() => decodePacket(bytes as Buffer, 5), { code: 'PACKET_INVALID' });
  });
});
