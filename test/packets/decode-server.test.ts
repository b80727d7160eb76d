import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeServerPacket } from '../../lib/packets/decode-server.ts';
import { PacketType, type ProtocolVersion } from '../../lib/packets/types.ts';
import { body, refusal } from './frames.ts';

function decode(type: keyof typeof PacketType, version: ProtocolVersion, ...parts: Parameters<typeof body>) {
  const bytes = body(...parts);
  const flags = type === 'pubrel' ? 2 : 0;
  return decodeServerPacket(PacketType[type], flags, bytes, 0, bytes.length, version);
}

describe('decodeServerPacket', () => {
  it('decodes an MQTT 5.0 CONNACK and accepts only its reason codes [MQTT-3.2.2-8]', () => {
    assert.deepEqual(decode('connack', 5, 1, 0, 3, 0x21, 0, 9), {
      cmd: 'connack',
      sessionPresent: true,
      reasonCode: 0,
      properties: { receiveMaximum: 9 }
    });
    const allowed = [0, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c];
    allowed.push(0x90, 0x95, 0x97, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9f);
    for (let code = 0; code < 256; code += 1) {
      if (allowed.includes(code)) decode('connack', 5, 0, code, 0);
      else assert.throws(() => decode('connack', 5, 0, code, 0), refusal(0x82, /^CONNACK: reason code/));
    }
  });

  it('translates the return codes of 3.x to MQTT 5.0 reason codes', () => {
    for (const [code, reasonCode] of [0, 0x84, 0x85, 0x88, 0x86, 0x87].entries()) {
      assert.deepEqual(decode('connack', 4, 0, code), { cmd: 'connack', sessionPresent: false, reasonCode });
    }
    assert.throws(() => decode('connack', 4, 0, 6), refusal(0x82));
  });

  it('refuses reserved CONNACK flags [MQTT-3.2.2-1] and Session Present with a failure [MQTT-3.2.2-6]', () => {
    for (const version of [3, 4, 5] as const) {
      assert.throws(() => decode('connack', version, 2, 0, 0), refusal(0x81));
      assert.throws(() => decode('connack', version, 1, version === 5 ? 0x87 : 5, 0), refusal(0x82));
    }
    assert.throws(() => decode('connack', 4, 0, 0, 0), refusal(0x81, /after the last field/));
  });

  it('decodes a SUBACK and accepts only its reason codes [MQTT-3.9.3-2]', () => {
    assert.deepEqual(decode('suback', 4, 0, 7, 2, 0x80), { cmd: 'suback', messageId: 7, granted: [2, 0x80] });
    const allowed = [0, 1, 2, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2];
    for (let code = 0; code < 256; code += 1) {
      if (allowed.includes(code)) decode('suback', 5, 0, 7, 0, code);
      else assert.throws(() => decode('suback', 5, 0, 7, 0, code), refusal(0x82, /^SUBACK: reason code/));
      if (code > 2 && code !== 0x80) assert.throws(() => decode('suback', 4, 0, 7, code), refusal(0x82));
    }
    assert.throws(() => decode('suback', 4, 0, 7), refusal(0x82, /no reason code/));
    assert.throws(() => decode('suback', 4, 0, 0, 1), refusal(0x82, /^packet id/));
  });

  it('decodes an UNSUBACK and accepts only its reason codes [MQTT-3.11.3-2]', () => {
    assert.deepEqual(decode('unsuback', 4, 0, 7), { cmd: 'unsuback', messageId: 7, granted: [] });
    const allowed = [0, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91];
    for (let code = 0; code < 256; code += 1) {
      if (allowed.includes(code)) decode('unsuback', 5, 0, 7, 0, code);
      else assert.throws(() => decode('unsuback', 5, 0, 7, 0, code), refusal(0x82, /^UNSUBACK: reason code/));
    }
    assert.throws(() => decode('unsuback', 4, 0, 7, 0), refusal(0x81));
    assert.throws(() => decode('unsuback', 5, 0, 7, 0), refusal(0x82));
  });

  it('decodes several Subscription Identifiers of a PUBLISH in order [MQTT-3.3.4-4]', () => {
    assert.deepEqual(decode('publish', 5, 'a', 4, 0x0b, 9, 0x0b, 1, Buffer.from('x')), {
      cmd: 'publish',
      topic: 'a',
      payload: Buffer.from('x'),
      qos: 0,
      dup: false,
      retain: false,
      properties: { subscriptionIdentifier: [9, 1] }
    });
  });

  it('accepts only the DISCONNECT codes of a server and no Session Expiry Interval [MQTT-3.14.2-1], [MQTT-3.14.2-2]', () => {
    for (const code of [0x00, 0x04, 0x01, 0xff]) {
      assert.throws(() => decode('disconnect', 5, code), refusal(0x82, /^DISCONNECT: reason code/));
    }
    for (const code of [0x80, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x9c, 0x9d, 0xa2]) decode('disconnect', 5, code);
    assert.throws(() => decode('disconnect', 5), refusal(0x82));
    assert.throws(() => decode('disconnect', 5, 0x8b, 5, 0x11, 0, 0, 0, 1), refusal(0x82, /^sessionExpiryInterval: /));
    assert.throws(() => decode('disconnect', 4), refusal(0x82));
  });

  it('accepts only the AUTH codes of a server [MQTT-3.15.2-1]', () => {
    assert.deepEqual(decode('auth', 5), { cmd: 'auth', reasonCode: 0 });
    decode('auth', 5, 0x18, 4, 0x15, 'm');
    assert.throws(() => decode('auth', 5, 0x19, 4, 0x15, 'm'), refusal(0x82));
    assert.throws(() => decode('auth', 4, 0x18, 4, 0x15, 'm'), refusal(0x81));
  });

  it('refuses packet types that only a client sends with 0x82', () => {
    for (const type of [PacketType.connect, PacketType.subscribe, PacketType.unsubscribe, PacketType.pingreq]) {
      const flags = type === PacketType.subscribe || type === PacketType.unsubscribe ? 2 : 0;
      assert.throws(() => decodeServerPacket(type, flags, body(0), 0, 1, 5), refusal(0x82, /only a client/));
    }
    assert.throws(() => decode('pingresp', 5, 0), refusal(0x81));
  });
});
