import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message } from '../../lib/packets/message.ts';
import type { QoS } from '../../lib/packets/types.ts';

const PUBLISHER = { clientId: 'c', username: undefined };
const PAYLOADS = ['', 'text', 'ü😀', '\ud800', 'x'.repeat(300), Buffer.from([0, 255, 128])];
/** Lengths around the one at which topic and payload are written in another way. */
const LENGTHS = [117, 118, 119, 120, 121, 127];

describe('A message without properties that is encoded in one step', () => {
  it('gets the same fields and packets as a message from the input of the app', () => {
    const payloads = [...PAYLOADS, ...LENGTHS.flatMap((length) => ['x'.repeat(length), `${'x'.repeat(length - 1)}ü`])];
    for (const [payload, topic] of payloads.flatMap((each) => [[each, 'a/ü'] as const, [each, 'a'] as const]))
      for (const qos of [0, 1, 2] as QoS[])
        for (const retain of [false, true]) {
          const plain = Message.plain(topic, payload, qos, retain, PUBLISHER, 5, 7);
          const usual = Message.from({ topic, payload, qos, retain }, PUBLISHER, 5, 7);
          for (const layout of [4, 5] as const)
            for (const withPacketId of [false, true])
              assert.deepEqual(bytesOf(plain, layout, withPacketId), bytesOf(usual, layout, withPacketId));
          assert.deepEqual(fieldsOf(plain), fieldsOf(usual));
          assert.equal(plain.origin, PUBLISHER);
          assert.equal(plain.takenAtMs, 5);
        }
  });

  it('keeps its bytes when others have been created, after it was detached', () => {
    const message = Message.plain('a', 'first', 1, false, PUBLISHER, 0, 0);
    message.detach();
    Message.releaseTurnFrame(message);
    for (let i = 0; i < 2000; i++) Message.plain('b', 'x'.repeat(100), 0, false, PUBLISHER, 0, 0);
    assert.equal(String(message.payload), 'first');
  });
});

/** The packet of a format, without the flags and the packet id, which are written for each receiver. */
function bytesOf(message: Message, layout: 4 | 5, withPacketId: boolean): Buffer {
  const { buf, start, end, packetIdAt } = message.form(layout, withPacketId);
  const bytes = Buffer.from(buf.subarray(start, end));
  bytes[0] &= 0xf0;
  assert.equal(packetIdAt > 0, withPacketId);
  if (withPacketId) bytes.fill(0, packetIdAt - start, packetIdAt - start + 2);
  return bytes;
}

/** The fields that do not depend on the format in which the message was encoded. */
function fieldsOf(message: Message): object {
  const { bytes, ...fields } = message.toJSON() as { bytes: number };
  return fields;
}
