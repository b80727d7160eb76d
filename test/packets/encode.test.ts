import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { encode, encodeAck, encodeAuth, encodeConnack, encodeDisconnect } from '../../lib/packets/encode.ts';
import type { AckPacket, ConnectPacket, Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import { clientPacket, runs, serverPacket } from './arbitraries.ts';
import { body, decodeFrame } from './frames.ts';

const hex = (packet: Packet, version: ProtocolVersion) => encode(packet, version).toString('hex');

const CONNECT: ConnectPacket = {
  cmd: 'connect',
  protocolVersion: 4,
  bridge: false,
  clientId: 'c',
  clean: true,
  keepalive: 60
};

describe('encode', () => {
  for (const version of [3, 4, 5] as const) {
    it(`encodes client packets that decode to the same packet, version ${version}`, () => {
      fc.assert(
        fc.property(clientPacket(version), (packet) => {
          assert.deepEqual(decodeFrame(encode(packet, version), version, 'client'), packet);
        }),
        runs(`client packets, version ${version}`, 2_000)
      );
    });

    it(`encodes server packets that decode to the same packet, version ${version}`, () => {
      fc.assert(
        fc.property(serverPacket(version), (packet) => {
          assert.deepEqual(decodeFrame(encode(packet, version), version, 'server'), packet);
        }),
        runs(`server packets, version ${version}`, 2_000)
      );
    });
  }

  it('encodes PINGREQ and PINGRESP', () => {
    assert.equal(hex({ cmd: 'pingreq' }, 4), 'c000');
    assert.equal(hex({ cmd: 'pingresp' }, 5), 'd000');
  });

  it('sets the required flags of PUBREL, SUBSCRIBE and UNSUBSCRIBE [MQTT-3.6.1-1], [MQTT-3.8.1-1], [MQTT-3.10.1-1]', () => {
    assert.equal(hex({ cmd: 'pubrel', messageId: 1, reasonCode: 0 }, 5), '62020001');
    const subscriptions = [
      { topic: 'a', qos: 1 as const, noLocal: true, retainAsPublished: true, retainHandling: 2 as const }
    ];
    assert.equal(hex({ cmd: 'subscribe', messageId: 1, subscriptions }, 5), '82070001000001612d');
    assert.equal(hex({ cmd: 'unsubscribe', messageId: 1, unsubscriptions: ['a'] }, 4), 'a2050001000161');
  });

  it('writes a property length of 0 in MQTT 5.0 and none before [MQTT-2.2.2-1]', () => {
    const suback: Packet = { cmd: 'suback', messageId: 1, granted: [2] };
    assert.equal(hex(suback, 5), '900400010002');
    assert.equal(hex(suback, 4), '9003000102');
  });

  it('leaves out properties and subscription options before MQTT 5.0', () => {
    const properties = { userProperties: [['n', 'v']] } as const;
    const publish: Packet = {
      cmd: 'publish',
      topic: 'a',
      payload: Buffer.from('x'),
      qos: 0,
      dup: false,
      retain: true,
      properties
    };
    assert.equal(hex(publish, 4), '310400016178');
    const subscriptions = [
      { topic: 'a', qos: 1 as const, noLocal: true, retainAsPublished: true, retainHandling: 2 as const }
    ];
    assert.equal(hex({ cmd: 'subscribe', messageId: 1, subscriptions, properties }, 4), '8206000100016101');
    const will = { topic: 'w', payload: Buffer.alloc(0), qos: 0, retain: false, properties } as const;
    assert.deepEqual(
      encode({ ...CONNECT, will, properties }, 4),
      body(0x10, 18, 'MQTT', 4, 0x06, 0, 60, 'c', 'w', body(0, 0))
    );
  });

  it('encodes remaining lengths of every size', () => {
    for (const size of [122, 123, 124, 16_378, 16_379, 16_380, 2_097_146, 2_097_147, 2_097_148]) {
      const packet: Packet = {
        cmd: 'publish',
        topic: 'abc',
        payload: Buffer.alloc(size, 7),
        qos: 0,
        dup: false,
        retain: false
      };
      assert.deepEqual(decodeFrame(encode(packet, 4), 4, 'server'), packet, `payload of ${size}`);
    }
  });

  it('refuses values that are too long for a packet', () => {
    const long = 'x'.repeat(65536);
    const tooLong = { code: 'VALUE_TOO_LONG' };
    assert.throws(() => encode({ ...CONNECT, clientId: long }, 4), tooLong);
    assert.throws(() => encode({ ...CONNECT, username: long }, 4), tooLong);
    assert.throws(() => encode({ ...CONNECT, username: 'u', password: Buffer.alloc(65536) }, 4), tooLong);
    const will = { topic: 'w', payload: Buffer.alloc(65536), qos: 0, retain: false } as const;
    assert.throws(() => encode({ ...CONNECT, will }, 4), tooLong);
    assert.throws(() => encode({ cmd: 'unsubscribe', messageId: 1, unsubscriptions: [long] }, 4), tooLong);
    const huge = { length: 268_435_455 } as Buffer;
    const publish: Packet = { cmd: 'publish', topic: 'a', payload: huge, qos: 0, dup: false, retain: false };
    assert.throws(() => encode(publish, 4), tooLong);
  });
});

describe('encodeConnack', () => {
  it('never sets Session Present with a failure [MQTT-3.2.2-6]', () => {
    const refused = { cmd: 'connack', sessionPresent: true, reasonCode: 0x87 } as const;
    assert.equal(encodeConnack(refused, 5).toString('hex'), '2003008700');
    assert.equal(encodeConnack(refused, 4).toString('hex'), '20020005');
  });

  it('sets Session Present in 3.1.1 and 5.0, but not in 3.1, which reserves the byte', () => {
    const resumed = { cmd: 'connack', sessionPresent: true, reasonCode: 0 } as const;
    assert.equal(encodeConnack(resumed, 5).toString('hex'), '2003010000');
    assert.equal(encodeConnack(resumed, 4).toString('hex'), '20020100');
    assert.equal(encodeConnack(resumed, 3).toString('hex'), '20020000');
  });

  for (const [reasonCode, returnCode] of [
    [0x84, 1],
    [0x85, 2],
    [0x88, 3],
    [0x86, 4],
    [0x87, 5],
    [4, 4]
  ]) {
    it(`encodes 0x${reasonCode.toString(16)} as return code ${returnCode} in 3.x`, () => {
      const buf = encodeConnack({ cmd: 'connack', sessionPresent: false, reasonCode }, 4);
      assert.deepEqual(buf, body(0x20, 2, 0, returnCode));
    });
  }

  it('returns an empty buffer if 3.x has no return code for the reason code', () => {
    assert.equal(encodeConnack({ cmd: 'connack', sessionPresent: false, reasonCode: 0x81 }, 4).length, 0);
  });
});

describe('encodeAck', () => {
  const ack: AckPacket = { cmd: 'puback', messageId: 0x1234, reasonCode: 0 };

  it('uses the shortest form: 4 bytes for 0x00, 5 bytes for another code, more with properties', () => {
    assert.equal(encodeAck(ack, 5).toString('hex'), '40021234');
    assert.equal(encodeAck({ ...ack, reasonCode: 0x10 }, 5).toString('hex'), '4003123410');
    assert.deepEqual(
      encodeAck({ ...ack, properties: { reasonString: 'r' } }, 5),
      body(0x40, 8, 0x12, 0x34, 0, 4, 0x1f, 'r')
    );
    assert.equal(encodeAck({ ...ack, properties: {} }, 5).toString('hex'), '40021234');
  });

  it('always encodes 4 bytes in 3.x, which has no failure codes [MQTT-3.3.5-2] of 3.1.1', () => {
    for (const version of [3, 4] as const) {
      const refused = { ...ack, reasonCode: 0x87, properties: { reasonString: 'no' } };
      assert.equal(encodeAck(refused, version).toString('hex'), '40021234');
    }
  });
});

describe('encodeSuback', () => {
  it('writes any code in 5.0, one failure code in 3.1.1 and no failure code in 3.1', () => {
    const packet: Packet = { cmd: 'suback', messageId: 1, granted: [0, 2, 0x87, 0x9e] };
    assert.equal(hex(packet, 5), '90070001000002879e');
    assert.equal(hex(packet, 4), '9006000100028080');
    assert.equal(hex(packet, 3), '9006000100020000');
  });
});

describe('encodeUnsuback', () => {
  it('writes reason codes in 5.0 and none before', () => {
    const packet: Packet = { cmd: 'unsuback', messageId: 1, granted: [0, 0x11] };
    assert.equal(hex(packet, 5), 'b0050001000011');
    assert.equal(hex(packet, 4), 'b0020001');
  });
});

describe('encodeDisconnect', () => {
  it('uses the shortest form: 2 bytes for 0x00, 3 bytes for another code, more with properties', () => {
    assert.equal(encodeDisconnect({ cmd: 'disconnect', reasonCode: 0 }).toString('hex'), 'e000');
    assert.equal(encodeDisconnect({ cmd: 'disconnect', reasonCode: 0x8e }).toString('hex'), 'e0018e');
    assert.deepEqual(
      encodeDisconnect({ cmd: 'disconnect', reasonCode: 0x9d, properties: { serverReference: 's' } }),
      body(0xe0, 6, 0x9d, 4, 0x1c, 's')
    );
  });

  it('writes no reason code in 3.x', () => {
    assert.equal(hex({ cmd: 'disconnect', reasonCode: 4 }, 4), 'e000');
  });
});

describe('encodeAuth', () => {
  it('writes a property length except for 0x00 without properties', () => {
    assert.equal(encodeAuth({ cmd: 'auth', reasonCode: 0 }).toString('hex'), 'f000');
    assert.equal(encodeAuth({ cmd: 'auth', reasonCode: 0x18 }).toString('hex'), 'f0021800');
    assert.equal(hex({ cmd: 'auth', reasonCode: 0x18 }, 4), '');
  });
});
