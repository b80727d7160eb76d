import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { ConnectPacket, Packet } from '../../lib/packets/types.ts';
import { clientPacket, runs, serverPacket } from './arbitraries.ts';
import { body, refusal } from './frames.ts';

const CONNECT: ConnectPacket = {
  cmd: 'connect',
  protocolVersion: 5,
  bridge: false,
  clientId: 'c',
  clean: true,
  keepalive: 60
};
const PING: Packet = { cmd: 'pingreq' };

function publish(payload: Buffer): Packet {
  return { cmd: 'publish', topic: 'a', payload, qos: 0, dup: false, retain: false };
}

describe('PacketReader', () => {
  for (const version of [3, 4, 5] as const) {
    it(`returns the same packets for any split of the bytes into chunks, version ${version}`, () => {
      const sides = [
        { side: 'server', packets: clientPacket(version) },
        { side: 'client', packets: serverPacket(version) }
      ] as const;
      for (const { side, packets } of sides) {
        fc.assert(
          fc.property(fc.array(packets, { maxLength: 6 }), fc.array(fc.integer({ min: 1, max: 40 })), (list, cuts) => {
            const reader = new PacketReader({ side, version });
            const bytes = Buffer.concat(list.map((packet) => encode(packet, version)));
            const found: Packet[] = [];
            let at = 0;
            for (const cut of [...cuts, bytes.length]) {
              found.push(...reader.push(Buffer.from(bytes.subarray(at, at + cut))));
              at += cut;
            }
            assert.deepEqual(found, list);
            assert.equal(reader.bufferedBytes, 0);
          }),
          runs(`PacketReader of a ${side}, version ${version}`, 300)
        );
      }
    });
  }

  it('returns packets that arrive byte by byte', () => {
    const reader = new PacketReader({ side: 'server' });
    const list = [CONNECT, publish(Buffer.alloc(300, 7)), PING];
    const bytes = Buffer.concat(list.map((packet) => encode(packet, 5)));
    const found: Packet[] = [];
    for (const byte of bytes) found.push(...reader.push(Buffer.from([byte])));
    assert.deepEqual(found, list);
  });

  it('uses the version of the CONNECT', () => {
    const reader = new PacketReader({ side: 'server' });
    assert.equal(reader.version, undefined);
    reader.push(encode({ ...CONNECT, protocolVersion: 4 }, 4));
    assert.equal(reader.version, 4);
    assert.deepEqual(reader.push(body(0xe0, 0)), [{ cmd: 'disconnect', reasonCode: 0 }]);
  });

  it('refuses a first packet other than CONNECT with 0x82 at its first byte [MQTT-3.1.0-1]', () => {
    assert.throws(() => new PacketReader({ side: 'server' }).push(body(0x30)), refusal(0x82, /CONNECT/));
  });

  it('refuses bad flags at the first byte', () => {
    const reader = new PacketReader({ side: 'client', version: 5 });
    assert.throws(() => reader.push(body(0x3e)), refusal(0x81));
  });

  it('refuses a packet above the maximum size with 0x95 as soon as its header is complete', () => {
    const options = { side: 'server', version: 4, maximumPacketSize: 100 } as const;
    assert.equal(new PacketReader(options).push(encode(publish(Buffer.alloc(95)), 4)).length, 1);
    assert.throws(() => new PacketReader(options).push(body(0x30, 99)), refusal(0x95, /101 bytes/));
    assert.throws(() => new PacketReader(options).push(body(0x30, 0xff, 0xff, 0xff, 0x7f)), refusal(0x95));
  });

  it('refuses a remaining length of five bytes or of more bytes than needed with 0x81 [MQTT-1.5.5-1]', () => {
    const options = { side: 'server', version: 4 } as const;
    assert.throws(() => new PacketReader(options).push(body(0x30, 0x80, 0x80, 0x80, 0x80)), refusal(0x81));
    assert.throws(() => new PacketReader(options).push(body(0x30, 0x85, 0x00)), refusal(0x81));
    assert.deepEqual(new PacketReader(options).push(body(0x30, 0x80, 0x80, 0x80)), []);
  });

  it('returns the packets before an invalid one from next(), and throws at every later call', () => {
    const reader = new PacketReader({ side: 'server', version: 4 });
    reader.feed(Buffer.concat([encode(PING, 4), body(0xc1, 0), encode(PING, 4)]));
    assert.deepEqual(reader.next(), PING);
    assert.throws(() => reader.next(), refusal(0x81));
    assert.throws(() => reader.next(), refusal(0x81));
    assert.throws(() => reader.push(encode(PING, 4)), refusal(0x81));
  });

  it('joins the chunks of a large packet only once', (t) => {
    const reader = new PacketReader({ side: 'client', version: 4 });
    const packet = publish(Buffer.alloc(1 << 20, 7));
    const bytes = encode(packet, 4);
    const concat = t.mock.method(Buffer, 'concat');
    const found: Packet[] = [];
    for (let at = 0; at < bytes.length; at += 1000) found.push(...reader.push(bytes.subarray(at, at + 1000)));
    assert.equal(concat.mock.callCount(), 1);
    assert.deepEqual(found, [packet]);
  });

  it('joins only the bytes of the packet that is split', (t) => {
    const reader = new PacketReader({ side: 'client', version: 4 });
    const packet = publish(Buffer.alloc(1_000, 7));
    const bytes = Buffer.concat(Array.from({ length: 1_000 }, () => encode(packet, 4)));
    const concat = t.mock.method(Buffer, 'concat');
    let found = 0;
    for (let at = 0; at < bytes.length; at += 65_536) found += reader.push(bytes.subarray(at, at + 65_536)).length;
    assert.equal(found, 1_000);
    const joined = concat.mock.calls.reduce((sum, { result }) => sum + (result as Buffer).length, 0);
    assert.ok(joined <= 16 * 1_100, `${joined} bytes`);
  });
});
