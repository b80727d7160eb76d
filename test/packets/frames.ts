import assert from 'node:assert/strict';
import { ProtocolError } from '../../lib/base/errors.ts';
import { decodeClientPacket } from '../../lib/packets/decode.ts';
import { decodeServerPacket } from '../../lib/packets/decode-server.ts';
import type { Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import { readVarint, varintEnd } from '../../lib/packets/varint.ts';

export type Side = 'client' | 'server';

/** Decode one complete packet that `from` sent. */
export function decodeFrame(frame: Buffer, version: ProtocolVersion, from: Side): Packet {
  const remaining = readVarint(frame, 1, frame.length);
  const start = varintEnd();
  assert.equal(start + remaining, frame.length, 'the remaining length fits the frame');
  return decodeBody(frame[0], frame, start, frame.length, version, from);
}

export function decodeBody(
  header: number,
  buf: Buffer,
  start: number,
  end: number,
  version: ProtocolVersion,
  from: Side
): Packet {
  const decode = from === 'client' ? decodeClientPacket : decodeServerPacket;
  return decode(header >> 4, header & 0x0f, buf, start, end, version);
}

/** Offset of the body in a complete packet. */
export function bodyOf(frame: Buffer): number {
  readVarint(frame, 1, frame.length);
  return varintEnd();
}

/** Join numbers, strings (after their two length bytes) and buffers (unchanged) to a body. */
export function body(...parts: (number | string | Buffer)[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'number') return Buffer.from([part]);
      if (typeof part !== 'string') return part;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(part));
      return Buffer.concat([length, Buffer.from(part)]);
    })
  );
}

/** A validation function for `assert.throws`: expects a ProtocolError with this reason code and a matching message. */
export function refusal(reasonCode: number, message?: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof ProtocolError, `a ProtocolError, not ${String(error)}`);
    assert.equal(error.reasonCode, reasonCode, error.message);
    if (message !== undefined) assert.match(error.message, message);
    return true;
  };
}
