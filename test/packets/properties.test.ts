import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ProtocolError } from '../../lib/base/errors.ts';
import {
  copyPublishProperties,
  newPublishScan,
  propertiesLength,
  readProperties,
  scanPublishProperties,
  strippedPublishLength,
  writeProperties
} from '../../lib/packets/properties.ts';
import { type PacketProperty, PROPERTIES, type PropertySet } from '../../lib/packets/property-table.ts';
import type { Properties } from '../../lib/packets/types.ts';
import { properties, runs } from './arbitraries.ts';
import { body, refusal } from './frames.ts';

const SETS: readonly PropertySet[] = [
  'connect',
  'will',
  'connack',
  'publish',
  'publishFromServer',
  'ack',
  'subscribe',
  'suback',
  'unsubscribe',
  'unsuback',
  'disconnect',
  'disconnectFromServer',
  'auth'
];

/**
 * The properties that the specification allows in each packet. This table is written by hand and sorted by packet, so that it reveals
 * mistakes in the library's table, which is sorted by property. User Property is allowed everywhere.
 */
const ALLOWED: Record<PropertySet, readonly number[]> = {
  connect: [0x11, 0x15, 0x16, 0x17, 0x19, 0x21, 0x22, 0x27],
  will: [0x01, 0x02, 0x03, 0x08, 0x09, 0x18],
  connack: [0x11, 0x12, 0x13, 0x15, 0x16, 0x1a, 0x1c, 0x1f, 0x21, 0x22, 0x24, 0x25, 0x27, 0x28, 0x29, 0x2a],
  publish: [0x01, 0x02, 0x03, 0x08, 0x09, 0x23],
  publishFromServer: [0x01, 0x02, 0x03, 0x08, 0x09, 0x0b, 0x23],
  ack: [0x1f],
  subscribe: [0x0b],
  suback: [0x1f],
  unsubscribe: [],
  unsuback: [0x1f],
  disconnect: [0x11, 0x1f],
  disconnectFromServer: [0x1c, 0x1f],
  auth: [0x15, 0x16, 0x1f]
};

const SAMPLES = {
  flag: { bytes: body(1), value: 1 },
  u16: { bytes: body(0x12, 0x34), value: 0x1234 },
  u32: { bytes: body(0xfe, 0xdc, 0xba, 0x98), value: 0xfedcba98 },
  varint: { bytes: body(0xff, 0x7f), value: [16383] },
  string: { bytes: body('text ü'), value: 'text ü' },
  binary: { bytes: body(0, 3, 0, 0xff, 0x80), value: Buffer.from([0, 0xff, 0x80]) },
  pair: { bytes: body('name', 'value'), value: [['name', 'value']] }
} as const;

/** The bytes of one property with a valid value. Authentication Data comes with the Authentication Method that it requires. */
function sample(row: PacketProperty): Buffer {
  const own = body(row.id, SAMPLES[row.type].bytes);
  return row.name === 'authenticationData' ? Buffer.concat([own, body(0x15, 'SCRAM')]) : own;
}

function expected(row: PacketProperty): Properties {
  const own = { [row.name]: SAMPLES[row.type].value };
  return row.name === 'authenticationData' ? { ...own, authenticationMethod: 'SCRAM' } : own;
}

function isAllowed(row: PacketProperty, set: PropertySet): boolean {
  return row.name === 'userProperties' || ALLOWED[set].includes(row.id);
}

function read(bytes: Buffer, set: PropertySet): Properties {
  return readProperties(bytes, 0, bytes.length, set);
}

function write(it: Properties): Buffer {
  const buf = Buffer.alloc(propertiesLength(it));
  assert.equal(writeProperties(buf, 0, it), buf.length, 'the length is what gets written');
  return buf;
}

/** The reason code of the ProtocolError that `run` throws; undefined if it throws none. Other errors pass through. */
function codeOf(run: () => void): number | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof ProtocolError) return error.reasonCode;
    throw error;
  }
}

describe('readProperties', () => {
  it('supports the 27 properties of MQTT 5.0', () => {
    assert.equal(PROPERTIES.length, 27);
    assert.equal(new Set(PROPERTIES.map(({ id }) => id)).size, 27);
  });

  for (const row of PROPERTIES) {
    for (const set of SETS) {
      if (isAllowed(row, set)) {
        it(`decodes ${row.name} in ${set}`, () => {
          assert.deepEqual(read(sample(row), set), expected(row));
        });
        if (row.name === 'userProperties' || (row.id === 0x0b && set === 'publishFromServer')) {
          it(`decodes two ${row.name} in ${set}, in order`, () => {
            const one = sample(row);
            const value = SAMPLES[row.type].value as readonly unknown[];
            assert.deepEqual(read(Buffer.concat([one, one]), set), { [row.name]: [...value, ...value] });
          });
        } else {
          it(`refuses a second ${row.name} in ${set} with 0x82`, () => {
            const doubled = Buffer.concat([sample(row), body(row.id, SAMPLES[row.type].bytes)]);
            assert.throws(() => read(doubled, set), refusal(0x82, new RegExp(`^${row.name}: may occur only once`)));
          });
        }
        it(`refuses ${row.name} in ${set} if it is cut at any byte`, () => {
          const one = body(row.id, SAMPLES[row.type].bytes);
          // The bytes that follow are well-formed, so that reading past the end would succeed.
          const buf = Buffer.concat([one, one, one]);
          for (let end = 1; end < one.length; end += 1) {
            assert.throws(() => readProperties(buf, 0, end, set), refusal(0x81), `${end} bytes`);
          }
        });
      } else {
        it(`refuses ${row.name} in ${set} with 0x82`, () => {
          assert.throws(() => read(sample(row), set), refusal(0x82, new RegExp(`^${row.name}: not allowed in`)));
        });
      }
    }
  }

  it('refuses every unknown id with 0x81', () => {
    const known = new Set(PROPERTIES.map(({ id }) => id));
    for (let id = 0; id < 0x80; id += 1) {
      if (known.has(id)) continue;
      for (const set of SETS) assert.throws(() => read(body(id, 0, 0, 0, 0), set), refusal(0x81, /unknown/));
    }
    assert.throws(() => read(body(0x80, 0x01, 0), 'connect'), refusal(0x81), 'an id of two bytes');
    assert.throws(() => read(body(0xa6, 0x00, 'a', 'b'), 'connect'), refusal(0x81), 'an id in too many bytes');
  });

  for (const row of PROPERTIES.filter(({ type }) => type === 'flag')) {
    it(`refuses ${row.name} other than 0 and 1 with 0x82`, () => {
      const set = row.sets[0];
      assert.deepEqual(read(body(row.id, 0), set), { [row.name]: 0 });
      for (const value of [2, 0x80, 0xff]) assert.throws(() => read(body(row.id, value), set), refusal(0x82));
    });
  }

  for (const [name, set, bytes, code] of [
    ['receiveMaximum', 'connect', body(0x21, 0, 0), 0x82],
    ['receiveMaximum', 'connack', body(0x21, 0, 0), 0x82],
    ['maximumPacketSize', 'connect', body(0x27, 0, 0, 0, 0), 0x82],
    ['subscriptionIdentifier', 'subscribe', body(0x0b, 0), 0x82],
    ['subscriptionIdentifier', 'publishFromServer', body(0x0b, 0), 0x82],
    ['topicAlias', 'publish', body(0x23, 0, 0), 0x94]
  ] as const) {
    it(`refuses ${name} 0 in ${set} with 0x${code.toString(16)}${name === 'topicAlias' ? ' [MQTT-3.3.2-8]' : ''}`, () => {
      assert.throws(() => read(bytes, set), refusal(code, new RegExp(`^${name}: 0 is not allowed`)));
    });
  }

  it('accepts 0 for properties that allow it', () => {
    assert.deepEqual(read(body(0x11, 0, 0, 0, 0, 0x22, 0, 0), 'connect'), {
      sessionExpiryInterval: 0,
      topicAliasMaximum: 0
    });
    assert.deepEqual(read(body(0x13, 0, 0), 'connack'), { serverKeepAlive: 0 });
  });

  it('refuses a Subscription Identifier of more bytes than needed with 0x81 [MQTT-1.5.5-1]', () => {
    assert.throws(() => read(body(0x0b, 0x81, 0x00), 'subscribe'), refusal(0x81));
    assert.throws(() => read(body(0x0b, 0x80, 0x80, 0x80, 0x80, 0x01), 'subscribe'), refusal(0x81));
  });

  it('refuses a Subscription Identifier in the PUBLISH of a client with 0x82 [MQTT-3.3.4-6]', () => {
    assert.throws(() => read(body(0x0b, 1), 'publish'), refusal(0x82, /^subscriptionIdentifier: /));
  });

  it('refuses Authentication Data without Authentication Method with 0x82, in any order', () => {
    for (const set of ['connect', 'connack', 'auth'] as const) {
      assert.throws(() => read(body(0x16, 0, 1, 7), set), refusal(0x82, /^authenticationData: /));
      assert.equal(read(body(0x15, 'm', 0x16, 0, 1, 7), set).authenticationMethod, 'm');
      assert.equal(read(body(0x16, 0, 1, 7, 0x15, 'm'), set).authenticationMethod, 'm');
    }
  });

  for (const topic of ['a/#', '+', 'a/+/b', '#', '']) {
    it(`refuses the Response Topic "${topic}" with 0x82 [MQTT-3.3.2-14]`, () => {
      for (const set of ['publish', 'publishFromServer', 'will'] as const) {
        assert.throws(() => read(body(0x08, topic), set), refusal(0x82, /^responseTopic: /));
      }
    });
  }

  for (const [id, name, set, statement] of [
    [0x03, 'contentType', 'publish', 'MQTT-3.3.2-19'],
    [0x08, 'responseTopic', 'publish', 'MQTT-3.3.2-13'],
    [0x15, 'authenticationMethod', 'connect', 'MQTT-1.5.4-1'],
    [0x1f, 'reasonString', 'ack', 'MQTT-1.5.4-1']
  ] as const) {
    it(`refuses a ${name} that is not UTF-8 or has U+0000 with 0x81 [${statement}], [MQTT-1.5.4-2]`, () => {
      for (const bytes of [[0xed, 0xa0, 0x80], [0xc0, 0xaf], [0x00], [0xff]]) {
        const block = body(id, 0, bytes.length, Buffer.from(bytes));
        assert.throws(() => read(block, set), refusal(0x81, new RegExp(`^${name}: `)));
      }
    });
  }

  it('refuses a User Property whose name or value is not UTF-8 with 0x81 [MQTT-1.5.7-1]', () => {
    const bad = body(0, 1, 0xff);
    assert.throws(() => read(body(0x26, bad, 'v'), 'publish'), refusal(0x81, /^user property name: /));
    assert.throws(() => read(body(0x26, 'n', bad), 'publish'), refusal(0x81, /^user property value: /));
  });

  it('keeps the order and the duplicates of User Properties [MQTT-3.3.2-18], [MQTT-3.1.3-10]', () => {
    const pairs = [
      ['b', '1'],
      ['a', ''],
      ['b', '1'],
      ['__proto__', 'x'],
      ['', '']
    ] as const;
    const block = write({ userProperties: pairs });
    for (const set of ['publish', 'will'] as const) assert.deepEqual(read(block, set).userProperties, pairs);
  });

  it('copies binary data, so that it does not reference the read chunk', () => {
    const block = body(0x09, 0, 2, 1, 2);
    const { correlationData } = read(block, 'publish');
    block.fill(0xee);
    assert.deepEqual(correlationData, Buffer.from([1, 2]));
  });

  it('fills the object that is passed in', () => {
    const into: Properties = {};
    assert.equal(readProperties(body(0x21, 0, 9), 0, 3, 'connect', into), into);
    assert.deepEqual(into, { receiveMaximum: 9 });
  });
});

describe('writeProperties', () => {
  it('writes properties in the order of the table, regardless of their order in the object', () => {
    const block = write({ topicAlias: 7, userProperties: [['n', 'v']], payloadFormatIndicator: 1 });
    assert.deepEqual(block, body(0x01, 1, 0x23, 0, 7, 0x26, 'n', 'v'));
  });

  it('writes nothing for absent, undefined and unknown properties', () => {
    assert.equal(propertiesLength(undefined), 0);
    assert.equal(writeProperties(Buffer.alloc(0), 0, undefined), 0);
    const odd = { topicAlias: undefined, nonsense: 5 } as Properties;
    assert.equal(write(odd).length, 0);
  });

  it('refuses strings and binary data above 65,535 bytes', () => {
    const long = 'é'.repeat(32768);
    assert.throws(() => propertiesLength({ contentType: long }), { code: 'VALUE_TOO_LONG', field: 'contentType' });
    assert.throws(() => propertiesLength({ userProperties: [['n', long]] }), { code: 'VALUE_TOO_LONG' });
    assert.throws(() => write({ correlationData: Buffer.alloc(65536) }), { code: 'VALUE_TOO_LONG' });
    assert.throws(() => write({ subscriptionIdentifier: [0] }), { code: 'VALUE_INVALID' });
  });

  for (const set of SETS) {
    it(`writes properties that readProperties decodes to the same object in ${set}`, () => {
      fc.assert(
        fc.property(properties(set), (it) => {
          const block = write(it ?? {});
          const at = 3;
          const walled = Buffer.concat([Buffer.alloc(at, 0xff), block, Buffer.alloc(3, 0xff)]);
          assert.deepEqual(readProperties(walled, at, at + block.length, set), it ?? {});
        }),
        runs(`properties of ${set}`, 300)
      );
    });
  }
});

describe('a property block with several faults', () => {
  for (const set of SETS) {
    it(`reports 0x81 (malformed) in ${set} if a property that is not allowed there is also cut off`, () => {
      for (const row of PROPERTIES.filter((it) => !isAllowed(it, set))) {
        const own = body(row.id, SAMPLES[row.type].bytes);
        for (let end = 1; end < own.length; end += 1)
          assert.throws(() => readProperties(own, 0, end, set), refusal(0x81), `${row.name}, ${end} bytes`);
        assert.throws(() => read(own, set), refusal(0x82, /not allowed in/), row.name);
      }
    });
  }

  it('reports 0x81 (malformed) if an invalid value, a duplicate or alias 0 precedes bytes that cannot be parsed', () => {
    const scan = newPublishScan();
    const refusals = [
      body(0x01, 2),
      body(0x01, 1, 0x01, 1),
      body(0x23, 0, 0),
      body(0x08, 'a/+'),
      body(0x11, 0, 0, 0, 1)
    ];
    for (const refused of refusals) {
      assert.throws(
        () => read(refused, 'publish'),
        (error: ProtocolError) => error.reasonCode !== 0x81
      );
      for (const cut of [body(0x02, 0, 0), body(0x26, 'name'), body(0x7f), body(0x03, 0, 1, 0xff)]) {
        const block = Buffer.concat([refused, cut]);
        assert.throws(() => read(block, 'publish'), refusal(0x81), block.toString('hex'));
        assert.throws(() => scanPublishProperties(block, 0, block.length, scan), refusal(0x81), block.toString('hex'));
      }
    }
  });
});

describe('scanPublishProperties', () => {
  it('stores the properties that the broker evaluates', () => {
    const scan = newPublishScan();
    const block = body(0x01, 1, 0x02, 0xff, 0xff, 0xff, 0xfe, 0x23, 0x01, 0x02, 0x26, 'n', 'v', 0x26, 'n', 'w');
    const buf = Buffer.concat([Buffer.alloc(5), block]);
    scanPublishProperties(buf, 5, buf.length, scan);
    assert.equal(scan.payloadFormatIndicator, 1);
    assert.equal(scan.messageExpiryInterval, 0xffff_fffe);
    assert.equal(scan.topicAlias, 0x102);
  });

  it('clears the values of the previous packet', () => {
    const scan = newPublishScan();
    const full = body(0x01, 1, 0x02, 0, 0, 0, 9, 0x03, 't', 0x08, 'r', 0x09, 0, 0, 0x23, 0, 1, 0x26, 'n', 'v');
    scanPublishProperties(full, 0, full.length, scan);
    scanPublishProperties(full, 0, 0, scan);
    assert.deepEqual(scan, newPublishScan());
    scanPublishProperties(full, 0, full.length, scan);
    scanPublishProperties(full, 0, 2, scan);
    assert.deepEqual(scan, { ...newPublishScan(), payloadFormatIndicator: 1, seen: 1 });
  });

  it('clears the values of a packet that was refused', () => {
    const scan = newPublishScan();
    const bad = body(0x23, 0, 1, 0x02, 0, 0, 0, 9, 0xff);
    assert.throws(() => scanPublishProperties(bad, 0, bad.length, scan));
    scanPublishProperties(bad, 0, 0, scan);
    assert.deepEqual(scan, newPublishScan());
  });

  it('finds the same values and throws the same errors as readProperties', () => {
    const scan = newPublishScan();
    const block = properties('publish').map((it) => write(it ?? {}));
    const foreign = fc.constantFrom(...PROPERTIES.map((row) => sample(row)));
    const noise = fc.uint8Array({ maxLength: 8 }).map((it) => Buffer.from(it));
    const spoilt = fc
      .tuple(block, fc.oneof(foreign, noise), fc.nat(), fc.nat({ max: 255 }), fc.boolean())
      .map(([good, extra, at, value, flip]) => {
        const whole = Buffer.concat([good, extra]);
        if (flip && whole.length > 0) whole[at % whole.length] = value;
        return whole;
      });
    fc.assert(
      fc.property(fc.oneof(block, spoilt), (bytes) => {
        let slow: Properties = {};
        const slowCode = codeOf(() => {
          slow = read(bytes, 'publish');
        });
        const fastCode = codeOf(() => scanPublishProperties(bytes, 0, bytes.length, scan));
        assert.equal(fastCode, slowCode);
        if (slowCode !== undefined) return;
        assert.equal(scan.topicAlias, slow.topicAlias ?? 0);
        assert.equal(scan.messageExpiryInterval, slow.messageExpiryInterval ?? -1);
        assert.equal(scan.payloadFormatIndicator, slow.payloadFormatIndicator ?? -1);
      }),
      runs('scan against read', 5_000)
    );
  });
});

describe('copyPublishProperties', () => {
  it('leaves out alias, expiry and subscription identifiers and copies the rest unchanged [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-20]', () => {
    const source = body(
      ...[0x23, 0, 1, 0x26, 'b', '1', 0x0b, 0xff, 0x7f, 0x02, 0, 0, 0, 9, 0x26, 'a', '2', 0x0b, 1],
      ...[0x08, 'reply', 0x09, 0, 1, 7, 0x01, 1, 0x03, 'x'.repeat(100)]
    );
    const kept = body(0x26, 'b', '1', 0x26, 'a', '2', 0x08, 'reply', 0x09, 0, 1, 7, 0x01, 1, 0x03, 'x'.repeat(100));
    const target = Buffer.alloc(kept.length + 4, 0xee);
    assert.equal(strippedPublishLength(source, 0, source.length), kept.length);
    assert.equal(copyPublishProperties(source, 0, source.length, target, 2), 2 + kept.length);
    assert.deepEqual(target, Buffer.concat([Buffer.alloc(2, 0xee), kept, Buffer.alloc(2, 0xee)]));
  });

  it('copies nothing from an empty block', () => {
    assert.equal(strippedPublishLength(Buffer.alloc(0), 0, 0), 0);
    assert.equal(copyPublishProperties(Buffer.alloc(0), 0, 0, Buffer.alloc(0), 0), 0);
  });

  it('gives the same bytes as decoding, removing the three properties and encoding', () => {
    fc.assert(
      fc.property(properties('publishFromServer'), (it) => {
        const source = Buffer.concat([Buffer.from([0xff]), write(it ?? {}), Buffer.from([0x0b, 0x01])]);
        const end = source.length - 2;
        const target = Buffer.alloc(strippedPublishLength(source, 1, end));
        assert.equal(copyPublishProperties(source, 1, end, target, 0), target.length);
        const { topicAlias: _, messageExpiryInterval: __, subscriptionIdentifier: ___, ...rest } = it ?? {};
        assert.deepEqual(read(target, 'publishFromServer'), rest);
      }),
      runs('copyPublishProperties', 2_000)
    );
  });
});
