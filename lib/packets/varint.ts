import { ProtocolError } from '../base/errors.ts';
import { ReasonCode } from './reason-codes.ts';

/** The maximum of a variable byte integer, and so of the remaining length: 268,435,455. */
export const VARINT_MAX = 0x0fff_ffff;

let after = 0;

/**
 * Read the variable byte integer at `at`.
 *
 * Afterwards `varintEnd()` returns the offset after it; returning both values here would allocate.
 * @returns 0..268,435,455
 * @throws ProtocolError 0x81 if it extends past `end`, has more than four bytes, or more bytes than needed [MQTT-1.5.5-1]
 */
export function readVarint(buf: Buffer, at: number, end: number): number {
  if (at < end) {
    const first = buf[at];
    if (first < 0x80) {
      after = at + 1;
      return first;
    }
  }
  return readLongVarint(buf, at, end);
}

/** The offset after the integer that `readVarint` read last. */
export function varintEnd(): number {
  return after;
}

/** The size of `value` as a variable byte integer: 1 to 4 bytes. */
export function varintLength(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : 4;
}

/**
 * Write `value` (0..268,435,455) at `at` in the fewest bytes [MQTT-1.5.5-1].
 * @returns the offset after it
 */
export function writeVarint(buf: Buffer, at: number, value: number): number {
  while (value > 0x7f) {
    buf[at++] = (value & 0x7f) | 0x80;
    value >>>= 7;
  }
  buf[at++] = value;
  return at;
}

function readLongVarint(buf: Buffer, at: number, end: number): number {
  let value = 0;
  for (let shift = 0; shift < 28; shift += 7) {
    if (at >= end) throw malformed('the packet ends before its last byte; send all of its bytes');
    const byte = buf[at++];
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (byte === 0 && shift > 0) throw malformed('encoded in more bytes than needed; use the fewest bytes');
      after = at;
      return value;
    }
  }
  throw malformed(`longer than four bytes; the greatest value is ${VARINT_MAX}`);
}

function malformed(why: string): ProtocolError {
  return new ProtocolError(ReasonCode.malformedPacket, `variable byte integer: ${why}`);
}
