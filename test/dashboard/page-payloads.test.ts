// Binary payloads in the web page: CBOR and Sparkplug B.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { cborText } from '../../adapters/dashboard/page/model/cbor.ts';
import { type Decoded, MAX_VALUES } from '../../adapters/dashboard/page/model/decoded.ts';
import { formOf } from '../../adapters/dashboard/page/model/payload.ts';
import { sparkplugText } from '../../adapters/dashboard/page/model/sparkplug.ts';
import { readSeed } from '../support/samples.ts';

const bytesOfHex = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'));
/** A text without blanks outside of strings. */
const dense = (text: string) => text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, (_, string = '') => string);
const faultOf = ({ fault }: Decoded) => fault && `${fault.code} ${fault.at}`;

/** The examples of RFC 8949, appendix A. */
const EXAMPLES = `
00 0
01 1
0a 10
17 23
1818 24
1864 100
1903e8 1000
1a000f4240 1000000
1b000000e8d4a51000 1000000000000
1bffffffffffffffff 18446744073709551615
c249010000000000000000 18446744073709551616
3bffffffffffffffff -18446744073709551616
c349010000000000000000 -18446744073709551617
20 -1
29 -10
3863 -100
3903e7 -1000
f90000 0.0
f98000 -0.0
f93c00 1.0
fb3ff199999999999a 1.1
f93e00 1.5
f97bff 65504.0
fa47c35000 100000.0
fa7f7fffff 3.4028234663852886e+38
fb7e37e43c8800759c 1.0e+300
f90001 5.960464477539063e-8
f90400 0.00006103515625
f9c400 -4.0
fbc010666666666666 -4.1
f97c00 Infinity
f97e00 NaN
f9fc00 -Infinity
fa7f800000 Infinity
fa7fc00000 NaN
faff800000 -Infinity
fb7ff0000000000000 Infinity
fb7ff8000000000000 NaN
fbfff0000000000000 -Infinity
f4 false
f5 true
f6 null
f7 undefined
f0 simple(16)
f8ff simple(255)
c074323031332d30332d32315432303a30343a30305a 0("2013-03-21T20:04:00Z")
c11a514b67b0 1(1363896240)
c1fb41d452d9ec200000 1(1363896240.5)
d74401020304 23(h'01020304')
d818456449455446 24(h'6449455446')
d82076687474703a2f2f7777772e6578616d706c652e636f6d 32("http://www.example.com")
40 h''
4401020304 h'01020304'
60 ""
6161 "a"
6449455446 "IETF"
62225c "\\"\\\\"
62c3bc "ü"
63e6b0b4 "水"
64f0908591 "𐅑"
80 []
83010203 [1,2,3]
8301820203820405 [1,[2,3],[4,5]]
98190102030405060708090a0b0c0d0e0f101112131415161718181819 [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]
a0 {}
a201020304 {1:2,3:4}
a26161016162820203 {"a":1,"b":[2,3]}
826161a161626163 ["a",{"b":"c"}]
a56161614161626142616361436164614461656145 {"a":"A","b":"B","c":"C","d":"D","e":"E"}
5f42010243030405ff (_h'0102',h'030405')
7f657374726561646d696e67ff (_"strea","ming")
9fff [_]
9f018202039f0405ffff [_1,[2,3],[_4,5]]
9f01820203820405ff [_1,[2,3],[4,5]]
83018202039f0405ff [1,[2,3],[_4,5]]
83019f0203ff820405 [1,[_2,3],[4,5]]
9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff [_1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]
bf61610161629f0203ffff {_"a":1,"b":[_2,3]}
826161bf61626163ff ["a",{_"b":"c"}]
bf6346756ef563416d7421ff {_"Fun":true,"Amt":-2}`
  .trim()
  .split('\n')
  .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)] as const);

describe('Payloads as CBOR', () => {
  it('shows the examples of RFC 8949 in its diagnostic notation', () => {
    assert.equal(EXAMPLES.length, 80);
    for (const [hex, expected] of EXAMPLES) {
      const decoded = cborText(bytesOfHex(hex));
      assert.equal(dense(decoded.text), expected, hex);
      assert.equal(decoded.fault, undefined, hex);
    }
  });

  it('shows one value a line, with the content of maps and arrays further to the right', () => {
    assert.equal(
      cborText(bytesOfHex('a2617401616182c10280')).text,
      '{\n  "t": 1,\n  "a": [\n    1(2),\n    []\n  ]\n}'
    );
  });

  it('shows what precedes a fault, and where the fault is', () => {
    const faults = {
      '8301': ['[\n  1', 'ends 2'],
      '9affffffff01': ['[\n  1', 'ends 6'], // an array of 4,294,967,295 values
      bbffffffffffffffff01: ['{\n  1', 'ends 10'],
      '5bffffffffffffffff01': ['', 'ends 9'],
      '1c': ['', 'wrong 0'],
      ff: ['', 'wrong 0'],
      '82ff': ['[', 'wrong 1'],
      bf01ff: ['{_\n  1', 'wrong 2'],
      '7f4100ff': ['(_ ', 'wrong 1'], // bytes in a text in parts
      '61ff': ['', 'wrong 0'], // not UTF-8
      f81f: ['', 'wrong 0'],
      '0102': ['1', 'rest 1'],
      '': ['', 'ends 0']
    };
    for (const [hex, [text, fault]] of Object.entries(faults)) {
      const decoded = cborText(bytesOfHex(hex));
      assert.deepEqual([decoded.text, faultOf(decoded)], [text, fault], hex);
    }
  });

  it('reads a limited depth and a limited number of values', () => {
    for (const nested of [0x81, 0x9f, 0xc1, 0xa1])
      assert.match(faultOf(cborText(new Uint8Array(1_000_000).fill(nested))) ?? '', /^(deep|wrong) \d\d$/);
    const many = new Uint8Array(1_000_000).fill(1);
    many.set([0x9f]);
    assert.equal(faultOf(cborText(many)), `many ${MAX_VALUES + 1}`);
  });
});

/** A part of sparkplug_b.proto, read by another implementation of protocol buffers. */
const PROTO = `
  syntax = "proto2";
  message Payload {
    message PropertyValue { optional uint32 type = 1; optional bool is_null = 2; optional uint32 int_value = 3; optional string string_value = 8;
      optional PropertySet propertyset_value = 9; }
    message PropertySet { repeated string keys = 1; repeated PropertyValue values = 2; }
    message DataSetValue { optional uint32 int_value = 1; optional string string_value = 6; }
    message Row { repeated DataSetValue elements = 1; }
    message DataSet { optional uint64 num_of_columns = 1; repeated string columns = 2; repeated uint32 types = 3; repeated Row rows = 4; }
    message Parameter { optional string name = 1; optional uint32 type = 2; optional double double_value = 6; }
    message Template { optional string version = 1; repeated Metric metrics = 2; repeated Parameter parameters = 3; optional string template_ref = 4;
      optional bool is_definition = 5; }
    message MetaData { optional string content_type = 2; optional string description = 8; }
    message Metric { optional string name = 1; optional uint64 alias = 2; optional uint64 timestamp = 3; optional uint32 datatype = 4;
      optional bool is_historical = 5; optional bool is_null = 7; optional MetaData metadata = 8; optional PropertySet properties = 9;
      optional uint32 int_value = 10; optional uint64 long_value = 11; optional float float_value = 12; optional double double_value = 13;
      optional bool boolean_value = 14; optional string string_value = 15; optional bytes bytes_value = 16; optional DataSet dataset_value = 17;
      optional Template template_value = 18; }
    optional uint64 timestamp = 1; repeated Metric metrics = 2; optional uint64 seq = 3; optional string uuid = 4; optional bytes body = 5;
  }`;
const PayloadType = protobuf.parse(PROTO, { keepCase: true }).root.lookupType('Payload');
const encode = (payload: object) => PayloadType.encode(PayloadType.fromObject(payload)).finish();
const metricOf = (metric: object) => JSON.parse(sparkplugText(encode({ metrics: [metric] })).text).metrics[0];

describe('Payloads of Sparkplug B', () => {
  it('shows a payload as JSON with the names of fields and types, and times', () => {
    const at = Date.UTC(2026, 10, 30, 6, 40);
    const { text, fault } = sparkplugText(
      encode({
        timestamp: at,
        seq: 7,
        body: Buffer.from([0, 255]),
        metrics: [
          { name: 'Node Control/Rebirth', alias: 1, timestamp: at, datatype: 11, boolean_value: false },
          { alias: 2, datatype: 8, long_value: '18446744073709551615', is_historical: true }
        ]
      })
    );
    assert.equal(fault, undefined);
    assert.equal(
      text,
      `{
  "timestamp": "2026-11-30T06:40:00.000Z",
  "metrics": [
    {
      "name": "Node Control/Rebirth",
      "alias": 1,
      "timestamp": "2026-11-30T06:40:00.000Z",
      "datatype": "Boolean",
      "value": false
    },
    {
      "alias": 2,
      "datatype": "UInt64",
      "is_historical": true,
      "value": 18446744073709551615
    }
  ],
  "seq": 7,
  "body": "h'00ff'"
}`
    );
  });

  it('gives each value the meaning of its type', () => {
    const values = [
      [{ datatype: 1, int_value: 255 }, -1],
      [{ datatype: 1, int_value: 0xffffffff }, -1],
      [{ datatype: 3, int_value: 0xfffffffe }, -2],
      [{ datatype: 7, int_value: 0xfffffffe }, 4_294_967_294],
      [{ datatype: 4, long_value: '18446744073709551613' }, -3],
      [{ datatype: 9, float_value: 21.5 }, 21.5],
      [{ datatype: 10, double_value: 0.1 }, 0.1],
      [{ datatype: 12, string_value: 'a\n"b"' }, 'a\n"b"'],
      [{ datatype: 13, long_value: 0 }, '1970-01-01T00:00:00.000Z'],
      [{ datatype: 17, bytes_value: Buffer.from([1, 254]) }, "h'01fe'"],
      [{ datatype: 23, bytes_value: Buffer.from([254, 255, 1, 0]) }, [-2, 1]],
      [{ datatype: 23, bytes_value: Buffer.from([254]) }, "h'fe'"]
    ] as const;
    for (const [metric, value] of values) assert.deepEqual(metricOf(metric).value, value);
  });

  it('shows properties, data sets and templates', () => {
    const metric = metricOf({
      name: 'all',
      metadata: { content_type: 'text/plain', description: '<b>' },
      properties: {
        keys: ['Quality', 'more'],
        values: [
          { type: 3, int_value: 192 },
          { type: 20, propertyset_value: { keys: ['unit'], values: [{ type: 12, string_value: 'kWh' }] } }
        ]
      },
      dataset_value: {
        num_of_columns: 2,
        columns: ['n', 's'],
        types: [1, 12],
        rows: [{ elements: [{ int_value: 255 }, { string_value: 'x' }] }]
      },
      datatype: 16
    });
    assert.deepEqual(metric.properties, {
      Quality: { type: 'Int32', value: 192 },
      more: { type: 'PropertySet', value: { unit: { type: 'String', value: 'kWh' } } }
    });
    assert.deepEqual(metric.value, {
      num_of_columns: 2,
      columns: ['n', 's'],
      types: ['Int8', 'String'],
      rows: [[-1, 'x']]
    });
    assert.equal(metric.metadata.description, '<b>');
    const template = {
      template_ref: 'T',
      parameters: [{ name: 'p', type: 10, double_value: 1.5 }],
      metrics: [{ name: 'm' }]
    };
    assert.deepEqual(metricOf({ datatype: 19, template_value: template }).value, {
      metrics: [{ name: 'm' }],
      parameters: [{ name: 'p', type: 'Double', value: 1.5 }],
      template_ref: 'T'
    });
  });

  it('shows unknown fields by their number', () => {
    assert.deepEqual(JSON.parse(sparkplugText(bytesOfHex('9a06020102a00607')).text), {
      'field 99': "h'0102'",
      'field 100': 7
    });
  });

  it('shows what precedes a fault, and where the fault is', () => {
    const whole = encode({ metrics: [{ name: 'first' }, { name: 'second' }] });
    const cut = sparkplugText(whole.subarray(0, whole.length - 3));
    assert.deepEqual(JSON.parse(cut.text).metrics[0], { name: 'first' });
    assert.match(faultOf(cut) ?? '', /^ends/);
    const faults = {
      '12ffffffffffffffffff01': 'ends 11', // a metric of 2^64 - 1 bytes
      '12030a7f61': 'ends 4', // a name that is longer than its metric
      '08ffffffffffffffffffff01': 'wrong 1',
      '0b': 'wrong 0', // a group
      '00': 'wrong 0',
      '0901': 'wrong 0', // a time with eight bytes
      '12040a02ff61': 'wrong 3' // not UTF-8
    };
    for (const [hex, fault] of Object.entries(faults))
      assert.match(faultOf(sparkplugText(bytesOfHex(hex))) ?? '', new RegExp(`^${fault}`), hex);
    assert.match(faultOf(sparkplugText(new TextEncoder().encode('{"t": 21}'))) ?? '', /^wrong 0/);
  });

  it('reads a limited depth and a limited number of values', () => {
    let nested = Buffer.from([]);
    const field = (number: number, content: Buffer) =>
      Buffer.concat([
        protobuf.Writer.create()
          .uint32((number << 3) | 2)
          .uint32(content.length)
          .finish(),
        content
      ]);
    for (let depth = 0; depth < 200; depth++) nested = field(2, field(18, nested)); // a template in a metric in a template
    assert.match(faultOf(sparkplugText(nested)) ?? '', /^deep/);
    assert.match(faultOf(sparkplugText(Buffer.alloc(1_000_000, Buffer.from([0x12, 0])))) ?? '', /^many/);
  });
});

describe('Hostile binary payloads', () => {
  it('ends with a text for any bytes, in a time that follows from the limits', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
        for (const decode of [cborText, sparkplugText]) assert.equal(typeof decode(bytes).text, 'string');
      }),
      { seed: readSeed(), numRuns: 3_000 }
    );
  });
});

describe('The form of a payload', () => {
  it('follows the content type, and the topic of Sparkplug B if the payload is binary', () => {
    const binary = bytesOfHex('0801');
    assert.equal(formOf(binary), 'hex');
    assert.equal(formOf(binary, { topic: 'spBv1.0/group/NDATA/node' }), 'sparkplug');
    assert.equal(formOf(binary, { topic: 'spBv1.0x' }), 'hex');
    assert.equal(formOf(new TextEncoder().encode('{"online":true}'), { topic: 'spBv1.0/STATE/host' }), 'json');
    for (const contentType of ['application/cbor', 'application/senml+cbor', 'Application/CBOR; x=y'])
      assert.equal(formOf(binary, { contentType }), 'cbor');
    assert.equal(formOf(binary, { contentType: 'text/cbor' }), 'hex');
  });
});
