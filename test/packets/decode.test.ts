import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  checkConnectHeader,
  checkFlags,
  decodeAck,
  decodeAuth,
  decodeClientPacket,
  decodeConnect,
  decodeDisconnect,
  decodePublish,
  decodeSubscribe,
  decodeUnsubscribe,
  peekConnectVersion,
  UnsupportedVersion
} from '../../lib/packets/decode.ts';
import { PacketType, type ProtocolVersion } from '../../lib/packets/types.ts';
import { body, refusal } from './frames.ts';

const WILL = 0x04;
const RETAIN = 0x20;
const PASSWORD = 0x40;
const USER = 0x80;
const CLEAN = 0x02;
const BAD_TEXT = Buffer.from([0, 3, 0xed, 0xa0, 0x80]);
const NUL_TEXT = Buffer.from([0, 1, 0]);

/** A body between well-formed strings, so that reading past its end would succeed. */
function within<T>(bytes: Buffer, run: (buf: Buffer, start: number, end: number) => T): T {
  const buf = Buffer.concat([Buffer.from([0xee]), bytes, body('more', 'more', 'more', 'more', 0, 'more')]);
  return run(buf, 1, 1 + bytes.length);
}

const connect = (...parts: Parameters<typeof body>) => within(body(...parts), decodeConnect);
const head = (version: ProtocolVersion, flags: number) =>
  body(version === 3 ? 'MQIsdp' : 'MQTT', version, flags, 0, 60, ...(version === 5 ? [0] : []));

describe('decodeConnect', () => {
  it('decodes every field in the order of the payload [MQTT-3.1.3-1], [MQTT-3.1.2-9], [MQTT-3.1.3-3]', () => {
    const flags = USER | PASSWORD | RETAIN | (2 << 3) | WILL | CLEAN;
    const packet = connect(
      ...['MQTT', 5, flags, 0x12, 0x34, 5, 0x11, 0, 0, 0, 9],
      ...['client', 5, 0x18, 0, 0, 0, 7, 'will/topic', body(0, 2, 0, 0xff), 'user', body(0, 1, 0)]
    );
    assert.deepEqual(packet, {
      cmd: 'connect',
      protocolVersion: 5,
      bridge: false,
      clientId: 'client',
      clean: true,
      keepalive: 0x1234,
      properties: { sessionExpiryInterval: 9 },
      will: {
        topic: 'will/topic',
        payload: Buffer.from([0, 0xff]),
        qos: 2,
        retain: true,
        properties: { willDelayInterval: 7 }
      },
      username: 'user',
      password: Buffer.from([0])
    });
  });

  for (const [name, level, version, bridge] of [
    ['MQIsdp', 3, 3, false],
    ['MQTT', 4, 4, false],
    ['MQTT', 5, 5, false],
    ['MQIsdp', 0x83, 3, true],
    ['MQTT', 0x84, 4, true]
  ] as const) {
    it(`decodes ${name} with level ${level} as version ${version}${bridge ? ' with the bridge bit' : ''}`, () => {
      const packet = connect(name, level, CLEAN, 0, 0, ...(version === 5 ? [0] : []), 'c');
      assert.equal(packet.protocolVersion, version);
      assert.equal(packet.bridge, bridge);
      const bytes = body(name, level, CLEAN, 0, 0, 0, 'c');
      assert.equal(peekConnectVersion(bytes, 0, bytes.length), version);
    });
  }

  for (const [name, level, answerAs, statement] of [
    ['MQIsdp', 4, 4, 'MQTT-3.1.2-1'],
    ['MQTT', 3, 4, 'MQTT-3.1.2-1'],
    ['MQIsdp', 5, 5, 'MQTT-3.1.2-1'],
    ['mqtt', 4, 4, 'MQTT-3.1.2-1'],
    ['MQTTX', 5, 5, 'MQTT-3.1.2-1'],
    ['', 4, 4, 'MQTT-3.1.2-1'],
    ['MQTT', 0, 4, 'MQTT-3.1.2-2'],
    ['MQTT', 6, 5, 'MQTT-3.1.2-2'],
    ['MQTT', 0x83, 4, 'MQTT-3.1.2-1'],
    ['MQTT', 0x85, 5, 'MQTT-3.1.2-2'],
    ['MQTT', 0xff, 5, 'MQTT-3.1.2-2']
  ] as const) {
    it(`refuses "${name}" with level ${level} with 0x84 and a CONNACK in the format of version ${answerAs} [${statement}]`, () => {
      assert.throws(
        () => connect(name, level, CLEAN, 0, 0, 0, 'c'),
        (error) => {
          assert.ok(error instanceof UnsupportedVersion);
          assert.equal(error.reasonCode, 0x84);
          assert.equal(error.level, level);
          assert.equal(error.answerAs, answerAs);
          return true;
        }
      );
      const bytes = body(name, level, CLEAN, 0, 0, 0, 'c');
      assert.equal(peekConnectVersion(bytes, 0, bytes.length), undefined);
    });
  }

  it('refuses an unknown version without checking the bytes after it', () => {
    assert.throws(() => connect('MQTT', 9), UnsupportedVersion);
  });

  for (const version of [4, 5] as const) {
    it(`refuses the reserved flag with 0x81, version ${version} [MQTT-3.1.2-3]`, () => {
      assert.throws(() => connect(head(version, CLEAN | 1), 'c'), refusal(0x81, /bit 0/));
    });

    it(`refuses will QoS 3 with 0x81, version ${version} [MQTT-3.1.2-12]`, () => {
      const will = version === 5 ? [0, 'w', 'p'] : ['w', 'p'];
      assert.throws(() => connect(head(version, WILL | 0x18), 'c', ...will), refusal(0x81, /QoS 3/));
      assert.throws(() => connect(head(version, 0x18), 'c'), refusal(0x81, /QoS 3/));
    });

    it(`refuses will QoS without a will with 0x82, version ${version} [MQTT-3.1.2-11]`, () => {
      for (const qos of [1, 2]) assert.throws(() => connect(head(version, qos << 3), 'c'), refusal(0x82));
    });

    it(`refuses will retain without a will with 0x82, version ${version} [MQTT-3.1.2-13]`, () => {
      assert.throws(() => connect(head(version, RETAIN), 'c'), refusal(0x82));
    });
  }

  for (const version of [3, 4, 5] as const) {
    for (const topic of ['', '#', 'a/+', 'a#']) {
      it(`refuses the will topic "${topic}" with 0x82, version ${version} [MQTT-3.1.3-11]`, () => {
        const will = version === 5 ? [0, topic, 'p'] : [topic, 'p'];
        assert.throws(() => connect(head(version, WILL), 'c', ...will), refusal(0x82, /^will topic: /));
      });
    }

    it(`refuses a client id that is not UTF-8 or has U+0000, version ${version} [MQTT-3.1.3-4], [MQTT-1.5.4-2]`, () => {
      for (const bad of [BAD_TEXT, NUL_TEXT]) {
        assert.throws(() => connect(head(version, CLEAN), bad), refusal(0x81, /^client id: /));
      }
    });

    it(`refuses a user name that is not UTF-8 or has U+0000, version ${version} [MQTT-3.1.3-12]`, () => {
      for (const bad of [BAD_TEXT, NUL_TEXT]) {
        assert.throws(() => connect(head(version, USER), 'c', bad), refusal(0x81, /^user name: /));
      }
    });

    it(`refuses a will topic that is not UTF-8 or has U+0000, version ${version} [MQTT-3.1.3-11]`, () => {
      for (const bad of [BAD_TEXT, NUL_TEXT]) {
        const will = version === 5 ? [0, bad, 'p'] : [bad, 'p'];
        assert.throws(() => connect(head(version, WILL), 'c', ...will), refusal(0x81, /^will topic: /));
      }
    });

    it(`refuses bytes after the last field with 0x81, version ${version} [MQTT-3.1.2-16], [MQTT-3.1.2-18]`, () => {
      assert.throws(() => connect(head(version, CLEAN), 'c', 'user'), refusal(0x81, /after the last field/));
      assert.throws(() => connect(head(version, USER), 'c', 'user', 'password'), refusal(0x81, /after the last field/));
    });

    it(`accepts an empty client id, version ${version}`, () => {
      assert.equal(connect(head(version, CLEAN), '').clientId, '');
    });

    it(`copies will payload and password, version ${version}`, () => {
      const will = version === 5 ? [0, 'w', body(0, 1, 7)] : ['w', body(0, 1, 7)];
      const bytes = body(head(version, WILL | USER | PASSWORD), 'c', ...will, 'u', body(0, 1, 8));
      const packet = decodeConnect(bytes, 0, bytes.length);
      bytes.fill(0xee);
      assert.deepEqual(packet.will?.payload, Buffer.from([7]));
      assert.deepEqual(packet.password, Buffer.from([8]));
    });
  }

  for (const version of [4, 5] as const) {
    it(`refuses a CONNECT that lacks a flagged user name or password, version ${version} [MQTT-3.1.2-17], [MQTT-3.1.2-19]`, () => {
      assert.throws(() => connect(head(version, USER), 'c'), refusal(0x81, /^user name: /));
      assert.throws(() => connect(head(version, USER | PASSWORD), 'c', 'u'), refusal(0x81, /^password: /));
    });
  }

  it('accepts an MQTT 3.1 CONNECT that lacks a flagged user name or password', () => {
    const packet = connect(head(3, USER | PASSWORD), 'c');
    assert.equal('username' in packet || 'password' in packet, false);
    assert.equal(connect(head(3, USER | PASSWORD), 'c', 'u').username, 'u');
    assert.throws(() => connect(head(3, USER), 'c', 0), refusal(0x81, /^user name: /));
  });

  it('refuses a password without a user name in 3.x, and accepts it in 5.0 [MQTT-3.1.2-22] of 3.1.1', () => {
    for (const version of [3, 4] as const) {
      assert.throws(() => connect(head(version, PASSWORD), 'c', 'p'), refusal(0x82, /password/));
    }
    assert.deepEqual(connect(head(5, PASSWORD), 'c', 'p').password, Buffer.from('p'));
  });

  it('refuses properties that extend past the packet with 0x81', () => {
    const bytes = body('MQTT', 5, CLEAN, 0, 0, 100, 'c');
    assert.throws(() => decodeConnect(bytes, 0, bytes.length), refusal(0x81, /^properties: /));
  });

  it('refuses a CONNECT with two Session Expiry Intervals with 0x82', () => {
    const twice = [0x11, 0, 0, 0, 1, 0x11, 0, 0, 0, 2];
    assert.throws(() => connect('MQTT', 5, CLEAN, 0, 0, 10, ...twice, 'c'), refusal(0x82, /sessionExpiryInterval/));
  });
});

describe('peekConnectVersion', () => {
  it('returns the version of a CONNECT that is invalid after its protocol level', () => {
    for (const version of [3, 4, 5] as const) {
      const bytes = body(head(version, 1), BAD_TEXT);
      assert.throws(() => decodeConnect(bytes, 0, bytes.length), refusal(0x81));
      assert.equal(peekConnectVersion(bytes, 0, bytes.length), version);
    }
  });

  it('returns undefined and does not read past the end if the protocol level is missing', () => {
    const bytes = body('MQTT', 5);
    for (let end = 0; end < bytes.length; end += 1) assert.equal(peekConnectVersion(bytes, 0, end), undefined);
    assert.equal(peekConnectVersion(bytes, 0, bytes.length), 5);
    assert.equal(peekConnectVersion(body(1, 4, 'MQTT', 5), 0, 9), undefined);
  });
});

describe('decodeSubscribe', () => {
  const decode = (version: ProtocolVersion, ...parts: Parameters<typeof body>) =>
    within(body(...parts), (buf, start, end) => decodeSubscribe(buf, start, end, version));

  it('decodes filters and options in order', () => {
    assert.deepEqual(decode(5, 0, 7, 3, 0x0b, 0xac, 0x02, 'a/+', 0x2e, '#', 0x11), {
      cmd: 'subscribe',
      messageId: 7,
      properties: { subscriptionIdentifier: [300] },
      subscriptions: [
        { topic: 'a/+', qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 },
        { topic: '#', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 1 }
      ]
    });
    assert.deepEqual(decode(4, 1, 0, 'a', 0, 'b', 2), {
      cmd: 'subscribe',
      messageId: 256,
      subscriptions: [
        { topic: 'a', qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 },
        { topic: 'b', qos: 2, noLocal: false, retainAsPublished: false, retainHandling: 0 }
      ]
    });
  });

  for (const version of [3, 4, 5] as const) {
    const none = version === 5 ? [0] : [];

    it(`refuses packet id 0 with 0x82, version ${version} [MQTT-2.2.1-3]`, () => {
      assert.throws(() => decode(version, 0, 0, ...none, 'a', 0), refusal(0x82, /^packet id: /));
    });

    it(`refuses a SUBSCRIBE without filters with 0x82, version ${version} [MQTT-3.8.3-2]`, () => {
      assert.throws(() => decode(version, 0, 1, ...none), refusal(0x82, /no topic filter/));
    });

    it(`refuses an empty filter with 0x82, version ${version} [MQTT-4.7.3-1]`, () => {
      assert.throws(() => decode(version, 0, 1, ...none, '', 0), refusal(0x82, /^topic filter: /));
    });

    it(`refuses a filter that is not UTF-8 or has U+0000 with 0x81, version ${version} [MQTT-3.8.3-1], [MQTT-4.7.3-2]`, () => {
      for (const bad of [BAD_TEXT, NUL_TEXT]) {
        assert.throws(() => decode(version, 0, 1, ...none, 'ok', 0, bad, 0), refusal(0x81, /^topic filter: /));
      }
    });

    it(`leaves the check of wildcards to the caller, version ${version}`, () => {
      assert.equal(decode(version, 0, 1, ...none, 'a/#/b', 0).subscriptions[0].topic, 'a/#/b');
    });

    it(`accepts a filter of 65,535 bytes, version ${version} [MQTT-4.7.3-3]`, () => {
      const filter = '/'.repeat(65535);
      assert.equal(decode(version, 0, 1, ...none, filter, 0).subscriptions[0].topic, filter);
    });
  }

  for (const version of [3, 4] as const) {
    it(`refuses upper option bits and QoS 3 with 0x81, version ${version} [MQTT-3.8.3-4] of 3.1.1`, () => {
      for (const options of [3, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff]) {
        assert.throws(() => decode(version, 0, 1, 'a', options), refusal(0x81), `options ${options}`);
      }
    });
  }

  it('refuses reserved option bits with 0x81 [MQTT-3.8.3-5]', () => {
    for (const options of [0x40, 0x80, 0xc1]) assert.throws(() => decode(5, 0, 1, 0, 'a', options), refusal(0x81));
  });

  it('refuses QoS 3 and Retain Handling 3 with 0x82 [MQTT-3.8.3-5]', () => {
    assert.throws(() => decode(5, 0, 1, 0, 'a', 3), refusal(0x82, /QoS 3/));
    assert.throws(() => decode(5, 0, 1, 0, 'a', 0x30), refusal(0x82, /Retain Handling 3/));
  });

  it('refuses No Local on a shared subscription with 0x82 [MQTT-3.8.3-4]', () => {
    assert.throws(() => decode(5, 0, 1, 0, '$share/g/a', 0x04), refusal(0x82, /No Local/));
    assert.equal(decode(5, 0, 1, 0, '$shared/g/a', 0x04).subscriptions[0].noLocal, true);
  });

  it('refuses two Subscription Identifiers with 0x82', () => {
    assert.throws(() => decode(5, 0, 1, 4, 0x0b, 1, 0x0b, 2, 'a', 0), refusal(0x82, /subscriptionIdentifier/));
  });
});

describe('decodeUnsubscribe', () => {
  const decode = (version: ProtocolVersion, ...parts: Parameters<typeof body>) =>
    within(body(...parts), (buf, start, end) => decodeUnsubscribe(buf, start, end, version));

  it('decodes filters in order', () => {
    assert.deepEqual(decode(5, 0, 7, 7, 0x26, 'n', 'v', 'a', 'b/#'), {
      cmd: 'unsubscribe',
      messageId: 7,
      properties: { userProperties: [['n', 'v']] },
      unsubscriptions: ['a', 'b/#']
    });
  });

  for (const version of [3, 4, 5] as const) {
    const none = version === 5 ? [0] : [];
    it(`refuses packet id 0, no filter and an empty filter with 0x82, version ${version} [MQTT-2.2.1-3], [MQTT-3.10.3-2]`, () => {
      assert.throws(() => decode(version, 0, 0, ...none, 'a'), refusal(0x82, /^packet id: /));
      assert.throws(() => decode(version, 0, 1, ...none), refusal(0x82, /no topic filter/));
      assert.throws(() => decode(version, 0, 1, ...none, ''), refusal(0x82, /^topic filter: /));
    });

    it(`refuses a filter that is not UTF-8 with 0x81, version ${version} [MQTT-3.10.3-1]`, () => {
      assert.throws(() => decode(version, 0, 1, ...none, BAD_TEXT), refusal(0x81, /^topic filter: /));
    });
  }
});

describe('decodeDisconnect', () => {
  const decode = (version: ProtocolVersion, ...parts: Parameters<typeof body>) =>
    within(body(...parts), (buf, start, end) => decodeDisconnect(buf, start, end, version));

  it('accepts a code without properties and decodes an absent code as 0x00', () => {
    for (const version of [3, 4, 5] as const) assert.deepEqual(decode(version), { cmd: 'disconnect', reasonCode: 0 });
    assert.deepEqual(decode(5, 4), { cmd: 'disconnect', reasonCode: 4 });
    assert.deepEqual(decode(5, 0, 0), { cmd: 'disconnect', reasonCode: 0 });
  });

  it('decodes the Session Expiry Interval', () => {
    assert.deepEqual(decode(5, 0, 5, 0x11, 0, 0, 1, 0), {
      cmd: 'disconnect',
      reasonCode: 0,
      properties: { sessionExpiryInterval: 256 }
    });
  });

  it('refuses a body in 3.x with 0x81', () => {
    for (const version of [3, 4] as const) assert.throws(() => decode(version, 0), refusal(0x81));
  });

  it('accepts the codes that a client may send and refuses all others with 0x82 [MQTT-3.14.2-1]', () => {
    const allowed = [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99];
    for (let code = 0; code < 256; code += 1) {
      if (allowed.includes(code)) assert.equal(decode(5, code).reasonCode, code);
      else assert.throws(() => decode(5, code), refusal(0x82, /^DISCONNECT: reason code/));
    }
  });

  it('refuses a Server Reference, which only a server may send, and bytes after the properties', () => {
    assert.throws(() => decode(5, 0, 4, 0x1c, 's'), refusal(0x82, /^serverReference: /));
    assert.throws(() => decode(5, 0, 0, 0), refusal(0x81));
    assert.throws(() => decode(5, 0, 9), refusal(0x81));
  });
});

describe('decodeAuth', () => {
  const decode = (...parts: Parameters<typeof body>) => within(body(...parts), decodeAuth);

  it('decodes code, method and data', () => {
    assert.deepEqual(decode(0x18, 8, 0x15, 'm', 0x16, 0, 1, 9), {
      cmd: 'auth',
      reasonCode: 0x18,
      properties: { authenticationMethod: 'm', authenticationData: Buffer.from([9]) }
    });
  });

  it('refuses 0x00, an absent code and unknown codes with 0x82 [MQTT-3.15.2-1]', () => {
    assert.throws(() => decode(), refusal(0x82, /^AUTH: reason code 0x00/));
    for (let code = 0; code < 256; code += 1) {
      if (code === 0x18 || code === 0x19) assert.equal(decode(code, 4, 0x15, 'm').reasonCode, code);
      else assert.throws(() => decode(code, 4, 0x15, 'm'), refusal(0x82, /^AUTH: reason code/));
    }
  });

  it('refuses a missing method with 0x82 and a missing property length with 0x81', () => {
    assert.throws(() => decode(0x18, 0), refusal(0x82, /authenticationMethod/));
    assert.throws(() => decode(0x18), refusal(0x81));
  });
});

describe('decodeAck', () => {
  const codes = {
    puback: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
    pubrec: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
    pubrel: [0x00, 0x92],
    pubcomp: [0x00, 0x92]
  } as const;
  const ids = { puback: '3.4.2-1', pubrec: '3.5.2-1', pubrel: '3.6.2-1', pubcomp: '3.7.2-1' } as const;

  for (const cmd of ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const) {
    const decode = (version: ProtocolVersion, ...parts: Parameters<typeof body>) =>
      within(body(...parts), (buf, start, end) => decodeAck(cmd, buf, start, end, version));

    it(`decodes a ${cmd} of every length`, () => {
      for (const version of [3, 4, 5] as const) {
        assert.deepEqual(decode(version, 0xab, 0xcd), { cmd, messageId: 0xabcd, reasonCode: 0 });
      }
      const code = codes[cmd][1];
      assert.deepEqual(decode(5, 0, 1, code), { cmd, messageId: 1, reasonCode: code });
      assert.deepEqual(decode(5, 0, 1, code, 0), { cmd, messageId: 1, reasonCode: code });
      assert.deepEqual(decode(5, 0, 1, code, 4, 0x1f, 'r'), {
        cmd,
        messageId: 1,
        reasonCode: code,
        properties: { reasonString: 'r' }
      });
    });

    it(`refuses a ${cmd} that is too short, too long or has packet id 0`, () => {
      for (const version of [3, 4, 5] as const) {
        assert.throws(() => decode(version), refusal(0x81));
        assert.throws(() => decode(version, 1), refusal(0x81));
        assert.throws(() => decode(version, 0, 0), refusal(0x82, /^packet id: /));
      }
      for (const version of [3, 4] as const) assert.throws(() => decode(version, 0, 1, 0), refusal(0x81));
      assert.throws(() => decode(5, 0, 1, 0, 0, 0), refusal(0x81));
      assert.throws(() => decode(5, 0, 1, 0, 1), refusal(0x81));
      assert.throws(() => decode(5, 0, 1, 0, 0x80, 0), refusal(0x81));
    });

    it(`accepts the codes of ${cmd} and refuses all others with 0x82 [MQTT-${ids[cmd]}]`, () => {
      for (let code = 0; code < 256; code += 1) {
        if ((codes[cmd] as readonly number[]).includes(code)) assert.equal(decode(5, 0, 1, code).reasonCode, code);
        else assert.throws(() => decode(5, 0, 1, code), refusal(0x82, /reason code/));
      }
    });
  }
});

describe('decodePublish', () => {
  const decode = (version: ProtocolVersion, flags: number, ...parts: Parameters<typeof body>) =>
    within(body(...parts), (buf, start, end) => decodePublish(flags, buf, start, end, version, 'client'));

  it('decodes flags, topic, packet id (QoS 1 and 2 only), properties and payload [MQTT-2.2.1-2], [MQTT-3.3.2-1]', () => {
    assert.deepEqual(decode(4, 0x01, 'a/b', body(0, 7, 1)), {
      cmd: 'publish',
      topic: 'a/b',
      payload: Buffer.from([0, 7, 1]),
      qos: 0,
      dup: false,
      retain: true
    });
    assert.deepEqual(decode(5, 0x0c, 'a/b', 0, 7, 2, 0x01, 1, Buffer.from('xy')), {
      cmd: 'publish',
      topic: 'a/b',
      payload: Buffer.from('xy'),
      qos: 2,
      dup: true,
      retain: false,
      messageId: 7,
      properties: { payloadFormatIndicator: 1 }
    });
  });

  for (const version of [3, 4, 5] as const) {
    const none = version === 5 ? [0] : [];
    it(`refuses packet id 0 with 0x82, version ${version} [MQTT-2.2.1-3]`, () => {
      assert.throws(() => decode(version, 0x02, 'a', 0, 0, ...none), refusal(0x82, /^packet id: /));
    });

    it(`refuses a wildcard in the topic name with 0x82, version ${version} [MQTT-3.3.2-2], [MQTT-4.7.0-1]`, () => {
      for (const topic of ['#', 'a/+/b', 'a#']) {
        assert.throws(() => decode(version, 0, topic, ...none), refusal(0x82, /^topic name: /));
      }
    });

    it(`refuses a topic name that is not UTF-8 or has U+0000 with 0x81, version ${version} [MQTT-3.3.2-1]`, () => {
      for (const bad of [BAD_TEXT, NUL_TEXT]) assert.throws(() => decode(version, 0, bad, ...none), refusal(0x81));
    });

    it(`refuses an empty topic name without an alias with 0x82, version ${version} [MQTT-4.7.3-1]`, () => {
      assert.throws(() => decode(version, 0, '', ...none), refusal(0x82));
    });
  }

  it('accepts an empty topic name with an alias', () => {
    assert.equal(decode(5, 0, '', 3, 0x23, 0, 5).properties?.topicAlias, 5);
  });

  it('copies the payload', () => {
    const bytes = body('a', 1, 2);
    const { payload } = decodePublish(0, bytes, 0, bytes.length, 4, 'server');
    bytes.fill(0);
    assert.deepEqual(payload, Buffer.from([1, 2]));
  });
});

/** The packet types whose QoS bits are 01. */
const REPEATED: readonly number[] = [PacketType.pubrel, PacketType.subscribe, PacketType.unsubscribe];

describe('checkFlags', () => {
  it('accepts the flags of each type and refuses all others with 0x81 [MQTT-2.1.3-1], [MQTT-3.6.1-1], [MQTT-3.8.1-1], [MQTT-3.10.1-1], [MQTT-3.14.1-1], [MQTT-3.15.1-1]', () => {
    for (const version of [4, 5] as const) {
      for (let type = 2; type < 16; type += 1) {
        if (type === PacketType.publish) continue;
        const right = REPEATED.includes(type) ? 2 : 0;
        for (let flags = 0; flags < 16; flags += 1) {
          if (flags === right) checkFlags(type, flags, version);
          else assert.throws(() => checkFlags(type, flags, version), refusal(0x81), `type ${type}, flags ${flags}`);
        }
      }
    }
  });

  it('accepts flags that MQTT 3.1 does not use, and DUP in PUBREL, SUBSCRIBE and UNSUBSCRIBE (V3.1 sections 2.1, 3)', () => {
    for (let type = 2; type < 16; type += 1) {
      if (type === PacketType.publish) continue;
      const isRight = (flags: number) => !REPEATED.includes(type) || (flags & 0b0110) === 0b0010;
      for (let flags = 0; flags < 16; flags += 1) {
        if (isRight(flags)) checkFlags(type, flags, 3);
        else assert.throws(() => checkFlags(type, flags, 3), refusal(0x81), `type ${type}, flags ${flags}`);
      }
    }
  });

  it('refuses flags in the fixed header of CONNECT with 0x81, but not in MQTT 3.1, which does not use them [MQTT-2.1.3-1]', () => {
    for (let flags = 0; flags < 16; flags += 1) {
      checkConnectHeader(flags, 3);
      for (const version of [4, 5, undefined] as const) {
        if (flags === 0) checkConnectHeader(flags, version);
        else
          assert.throws(() => checkConnectHeader(flags, version), refusal(0x81), `version ${version}, flags ${flags}`);
      }
    }
  });

  it('refuses QoS 3 with 0x81 [MQTT-3.3.1-4] and DUP with QoS 0 with 0x82 [MQTT-3.3.1-2]', () => {
    for (let flags = 0; flags < 16; flags += 1) {
      const qos = (flags >> 1) & 3;
      if (qos === 3) assert.throws(() => checkFlags(PacketType.publish, flags, 5), refusal(0x81, /QoS 3/));
      else if (qos === 0 && flags >= 8)
        assert.throws(() => checkFlags(PacketType.publish, flags, 5), refusal(0x82, /DUP/));
      else checkFlags(PacketType.publish, flags, 5);
    }
  });

  it('refuses type 0 with 0x81', () => {
    for (let flags = 0; flags < 16; flags += 1) assert.throws(() => checkFlags(0, flags, 3), refusal(0x81));
  });
});

describe('decodeClientPacket', () => {
  it('refuses packet types that only a server sends with 0x82', () => {
    for (const type of [PacketType.connack, PacketType.suback, PacketType.unsuback, PacketType.pingresp]) {
      assert.throws(() => decodeClientPacket(type, 0, Buffer.alloc(4), 0, 4, 5), refusal(0x82, /only a server/));
    }
  });

  it('refuses AUTH before MQTT 5.0 and a PINGREQ with a body', () => {
    assert.throws(() => decodeClientPacket(PacketType.auth, 0, body(0x18, 0), 0, 2, 4), refusal(0x81));
    assert.throws(() => decodeClientPacket(PacketType.pingreq, 0, body(0), 0, 1, 4), refusal(0x81));
    assert.deepEqual(decodeClientPacket(PacketType.pingreq, 0, body(), 0, 0, 4), { cmd: 'pingreq' });
  });
});
