import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, it } from 'node:test';
import { type DecodedPacket, decodePacket, type PacketTap } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

describe('decodePacket', () => {
  it('shows the packets of the diagnostics channels, in every version', async () => {
    for (const protocolVersion of [3, 4, 5] as const) {
      await using kit = await createTestBroker();
      const seen: Promise<DecodedPacket>[] = [];
      const note = (tap: unknown) => {
        const { broker, bytes, client } = tap as PacketTap;
        if (broker === kit.broker) seen.push(decodePacket(bytes, client.protocolVersion));
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
      const packets = await Promise.all(seen);
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
      const one = (cmd: string) => packets.find((packet) => packet.cmd === cmd);
      assert.equal(one('connect')?.clientId, 'c');
      assert.equal(one('connect')?.protocolVersion, protocolVersion);
      assert.equal(one('publish')?.topic, 'a/b');
      assert.equal(String(one('publish')?.payload), 'x');
      assert.deepEqual(one('suback')?.granted, [1]);
    }
  });

  it('reads the bytes before it returns: they may be reused', async () => {
    const bytes = encode(
      { cmd: 'publish', topic: 'a', payload: Buffer.from('x'), qos: 0, dup: false, retain: false },
      5
    );
    const decoded = decodePacket(bytes, 5);
    bytes.fill(0);
    assert.equal((await decoded).topic, 'a');
  });

  it('refuses what is not one whole packet with PACKET_INVALID', async () => {
    const ping = Buffer.from([0xc0, 0]);
    const wrong = [
      Buffer.alloc(0),
      Buffer.from([0x30, 5, 0]),
      Buffer.concat([ping, ping]),
      Buffer.from([0x00, 0]),
      'text'
    ];
    for (const bytes of wrong) await assert.rejects(decodePacket(bytes as Buffer, 5), { code: 'PACKET_INVALID' });
  });
});
