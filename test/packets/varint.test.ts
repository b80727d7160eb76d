import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readVarint, VARINT_MAX, varintEnd, varintLength, writeVarint } from '../../lib/packets/varint.ts';
import { refusal } from './frames.ts';

const EDGES: readonly (readonly [value: number, bytes: number[]])[] = [
  [0, [0x00]],
  [127, [0x7f]],
  [128, [0x80, 0x01]],
  [16_383, [0xff, 0x7f]],
  [16_384, [0x80, 0x80, 0x01]],
  [2_097_151, [0xff, 0xff, 0x7f]],
  [2_097_152, [0x80, 0x80, 0x80, 0x01]],
  [VARINT_MAX, [0xff, 0xff, 0xff, 0x7f]]
];

describe('variable byte integer', () => {
  for (const [value, bytes] of EDGES) {
    it(`encodes ${value} in ${bytes.length} bytes and decodes it [MQTT-1.5.5-1]`, () => {
      assert.equal(varintLength(value), bytes.length);
      const buf = Buffer.alloc(6, 0xee);
      assert.equal(writeVarint(buf, 1, value), 1 + bytes.length);
      assert.deepEqual([...buf.subarray(1, 1 + bytes.length)], bytes);
      assert.equal(readVarint(buf, 1, 1 + bytes.length), value);
      assert.equal(varintEnd(), 1 + bytes.length);
    });

    it(`refuses ${value} if it is cut at any byte`, () => {
      const buf = Buffer.from([...bytes, 0x01]);
      for (let end = 0; end < bytes.length; end += 1) assert.throws(() => readVarint(buf, 0, end), refusal(0x81));
    });
  }

  for (const bytes of [
    [0x80, 0x00],
    [0xff, 0x00],
    [0x80, 0x80, 0x00],
    [0xff, 0xff, 0xff, 0x00]
  ]) {
    it(`refuses ${Buffer.from(bytes).toString('hex')}, which has more bytes than needed [MQTT-1.5.5-1]`, () => {
      assert.throws(() => readVarint(Buffer.from(bytes), 0, bytes.length), refusal(0x81, /fewest/));
    });
  }

  it('refuses a fifth byte [MQTT-1.5.5-1]', () => {
    assert.throws(() => readVarint(Buffer.from([0x80, 0x80, 0x80, 0x80, 0x01]), 0, 5), refusal(0x81, /four/));
  });
});
