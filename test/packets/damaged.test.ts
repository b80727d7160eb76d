import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ProtocolError } from '../../lib/base/errors.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import { clientPacket, runs, serverPacket } from './arbitraries.ts';
import { bodyOf, decodeBody, decodeFrame, type Side } from './frames.ts';

const VERSIONS = [3, 4, 5] as const;
const SIDES = ['client', 'server'] as const;

function packetsOf(side: Side, version: ProtocolVersion): fc.Arbitrary<Packet> {
  return side === 'client' ? clientPacket(version) : serverPacket(version);
}

/** Decode a packet. Returns the packet, or the reason code of the error; any other error fails the test. */
function outcome(run: () => Packet): Packet | number {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    assert.ok(error.reasonCode >= 0x80 && error.message.length > 10);
    return error.reasonCode;
  }
}

/** Tell whether `cut` can be left of `whole` after a cut: a short form of the packet, or a list that lacks whole entries. */
function isPrefix(cut: Packet, whole: Packet): boolean {
  if (cut.cmd !== whole.cmd) return false;
  switch (cut.cmd) {
    case 'publish': {
      const { payload } = whole as typeof cut;
      assert.deepEqual(cut, { ...whole, payload: payload.subarray(0, cut.payload.length) });
      return true;
    }
    case 'subscribe': {
      const { subscriptions } = whole as typeof cut;
      assert.deepEqual(cut, { ...whole, subscriptions: subscriptions.slice(0, cut.subscriptions.length) });
      return cut.subscriptions.length < subscriptions.length;
    }
    case 'unsubscribe': {
      const { unsubscriptions } = whole as typeof cut;
      assert.deepEqual(cut, { ...whole, unsubscriptions: unsubscriptions.slice(0, cut.unsubscriptions.length) });
      return cut.unsubscriptions.length < unsubscriptions.length;
    }
    case 'suback':
    case 'unsuback': {
      const { granted } = whole as typeof cut;
      assert.deepEqual(cut, { ...whole, granted: granted.slice(0, cut.granted.length) });
      return cut.granted.length < granted.length;
    }
    case 'puback':
    case 'pubrec':
    case 'pubrel':
    case 'pubcomp':
    case 'disconnect':
    case 'auth':
      return cut.properties === undefined;
    case 'connect':
      // MQTT 3.1 allows user name and password to be missing although their flags are set.
      return cut.protocolVersion === 3 && (cut.password === undefined || cut.username === undefined);
    default:
      return false;
  }
}

for (const version of VERSIONS) {
  for (const side of SIDES) {
    const packets = packetsOf(side, version);

    describe(`a damaged packet of a ${side}, version ${version}`, () => {
      it('refuses a packet that is cut at any byte, unless the remaining bytes are a valid packet', () => {
        fc.assert(
          fc.property(packets, (packet) => {
            const frame = encode(packet, version);
            const start = bodyOf(frame);
            for (let end = start; end < frame.length; end += 1) {
              // The rest of the packet follows the end, so that only the result shows whether the decoder reads past it.
              const result = outcome(() => decodeBody(frame[0], frame, start, end, version, side));
              if (typeof result === 'object') assert.ok(isPrefix(result, packet), `cut to ${end - start} bytes`);
            }
          }),
          runs(`cut, ${side}, version ${version}`, 300)
        );
      });

      it('decodes a packet alike with any bytes around it', () => {
        fc.assert(
          fc.property(packets, fc.nat(), fc.integer({ min: 0, max: 255 }), (packet, cut, filler) => {
            const frame = encode(packet, version);
            const start = bodyOf(frame);
            const end = start + (cut % (frame.length - start + 1));
            const alone = Buffer.from(frame.subarray(start, end));
            const walled = Buffer.concat([Buffer.alloc(7, filler), alone, Buffer.alloc(70, filler)]);
            assert.deepEqual(
              outcome(() => decodeBody(frame[0], walled, 7, 7 + alone.length, version, side)),
              outcome(() => decodeBody(frame[0], alone, 0, alone.length, version, side))
            );
          }),
          runs(`walled, ${side}, version ${version}`, 1_000)
        );
      });

      it('decodes to a packet that survives a round trip, or to a ProtocolError, if any byte is changed', () => {
        fc.assert(
          fc.property(packets, fc.integer({ min: 1, max: 255 }), (packet, mask) => {
            const frame = encode(packet, version);
            const start = bodyOf(frame);
            for (let at = start; at < frame.length; at += 1) {
              const spoilt = Buffer.from(frame);
              spoilt[at] ^= mask;
              const result = outcome(() => decodeBody(spoilt[0], spoilt, start, spoilt.length, version, side));
              if (typeof result === 'number') continue;
              // A CONNECT can turn into another version; empty properties are dropped.
              const now = result.cmd === 'connect' ? result.protocolVersion : version;
              assert.deepEqual(decodeFrame(encode(result, now), now, side), result);
            }
          }),
          runs(`changed, ${side}, version ${version}`, 200)
        );
      });
    });
  }
}

describe('PacketReader', () => {
  it('returns packets or throws a ProtocolError for random bytes', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...VERSIONS),
        fc.constantFrom(...SIDES),
        fc.uint8Array({ maxLength: 60 }),
        (version, side, bytes) => {
          const reader = new PacketReader({ side, version });
          outcome(() => {
            reader.push(Buffer.from(bytes));
            return { cmd: 'pingreq' };
          });
        }
      ),
      runs('random bytes', 20_000)
    );
  });
});
