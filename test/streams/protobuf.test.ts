import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { protobufFormat } from '../../adapters/streams/protobuf/index.ts';
import type { StreamFormatCodec, StreamFormatSetup } from '../../lib/adapter.ts';
import type { StreamValueObject } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';
import { TestSink, turns } from './sink-bench.ts';

const ALL = `
  syntax = "proto3";
  package library;
  enum Genre { NOVEL = 0; POEM = 3; }
  message All {
    double d = 1; float f = 2;
    int32 i32 = 3; sint32 s32 = 4; sfixed32 sf32 = 5; uint32 u32 = 6; fixed32 f32 = 7;
    int64 i64 = 8; sint64 s64 = 9; sfixed64 sf64 = 10; uint64 u64 = 11; fixed64 f64 = 12;
    bool b = 13; string text = 14; bytes raw = 15; Genre genre = 16;
    All inner = 17;
    repeated int64 many = 18; repeated All all = 19;
    map<string, int64> names = 20; map<int64, string> longs = 21; map<uint64, bool> ulongs = 22; map<bool, All> flags = 23;
    map<int32, Genre> genres = 24;
    optional int32 maybe = 25;
    oneof choice { string left = 26; int32 right = 27; }
    repeated Genre shelf = 28;
    string snake_case_name = 29;
  }
  message Numbers { repeated int32 n = 1; }
`;

const OLD = `
  syntax = "proto2";
  message Old {
    required int32 id = 1;
    optional string name = 2 [default = "none"];
    optional int64 count = 3;
    repeated group Line = 4 { optional int32 number = 5; }
  }
`;

const DEFAULTS: StreamValueObject = {
  ...{ d: 0, f: 0, i32: 0n, s32: 0n, sf32: 0n, u32: 0n, f32: 0n, i64: 0n, s64: 0n, sf64: 0n, u64: 0n, f64: 0n },
  ...{ b: false, text: '', raw: new Uint8Array(), genre: 0n, inner: null, many: [], all: [], names: {}, longs: {} },
  ...{ ulongs: {}, flags: {}, genres: {}, maybe: null, left: null, right: null, shelf: [], snake_case_name: '' }
};

async function codec(schemaId: string, setup: Partial<StreamFormatSetup> = {}): Promise<StreamFormatCodec> {
  const type = await protobufFormat({ schemas: { all: ALL, old: OLD } });
  return type.make({ what: 'stream "demo"', options: { SCHEMAID: schemaId }, ...setup });
}

const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');

describe('the format protobuf', () => {
  it('reads a stream whose schema is valid, whatever other schemas of the store are', async () => {
    const type = await protobufFormat();
    const own = 'syntax = "proto3"; message Small { bool b = 1; }';
    await type.checkSchema?.('own', own);
    const make = (id: string) =>
      type.make({ what: 'stream "demo"', options: { SCHEMAID: id }, schemas: { broken: 'message {', own } });
    assert.deepEqual(make('own.Small').decode(bytes('08 01')), { b: true });
    assert.throws(() => make('broken.Small'), /schema "broken" of the format protobuf/);
    assert.throws(() => make('other.Small'), /known: broken\.MESSAGE, own\.MESSAGE/);
  });

  it('decodes integers to integers, floats to floats, and absent fields to their defaults', async () => {
    const { decode } = await codec('all.library.All');
    assert.deepEqual(decode(Buffer.alloc(0)), DEFAULTS);
    assert.deepEqual(decode(bytes('18 9601')), { ...DEFAULTS, i32: 150n });
    assert.deepEqual(decode(bytes('20 03 40 ffffffffffffffffff01')), { ...DEFAULTS, s32: -2n, i64: -1n });
    assert.deepEqual(decode(bytes('58 ffffffffffffffffff01')), { ...DEFAULTS, u64: 2n ** 64n - 1n });
    assert.deepEqual(decode(bytes('09 000000000000f83f 8001 07')), { ...DEFAULTS, d: 1.5, genre: 7n });
    assert.deepEqual(decode(bytes('c801 00 d201 00')), { ...DEFAULTS, maybe: 0n, left: '' });
    assert.deepEqual(decode(bytes('9201 02 0105')), { ...DEFAULTS, many: [1n, 5n] });
  });

  it('encodes decoded messages of all types', async () => {
    const { decode, encode } = await codec('all.All');
    const row: StreamValueObject = {
      ...{ d: 0.1, f: 1.5, i32: -5n, s32: -(2n ** 31n), sf32: 7n, u32: 2n ** 32n - 1n, f32: 8n },
      ...{ i64: -(2n ** 63n), s64: 2n ** 63n - 1n, sf64: -(2n ** 40n), u64: 2n ** 64n - 1n, f64: 2n ** 33n + 1n },
      ...{ b: true, text: 'grün', raw: new Uint8Array([0, 255]), genre: 3n, inner: { ...DEFAULTS, i32: 1n } },
      ...{ many: [1n, -(2n ** 62n)], all: [DEFAULTS, { ...DEFAULTS, text: 'x' }], names: { a: 1n, b: -1n } },
      longs: { 12345678: 'a', [String(-(2n ** 63n))]: 'b', 0: 'c', [String(0x3938_3736_3534_3332n)]: 'd' },
      ...{ ulongs: { [String(2n ** 64n - 1n)]: true }, flags: { true: DEFAULTS }, genres: { '-1': 3n } },
      ...{ maybe: 0n, left: null, right: 5n, shelf: [0n, 3n], snake_case_name: 's' }
    };
    assert.deepEqual(decode(encode(row)), row);
    assert.equal(encode({ i32: 150 }).toString('hex'), '189601');
    const names = { genre: 'POEM', shelf: ['NOVEL'], raw: 'AP8=', f: 3n };
    assert.deepEqual(decode(encode(names)), {
      ...{ ...DEFAULTS, genre: 3n, shelf: [0n], raw: new Uint8Array([0, 255]), f: 3 }
    });
  });

  it('reads schemas of proto2, with defaults, required fields and groups', async () => {
    const { decode, encode } = await codec('old.Old');
    assert.deepEqual(decode(bytes('08 01')), { id: 1n, name: 'none', count: 0n, line: [] });
    const row = { id: 2n, name: '', count: 3n, line: [{ number: 4n }] };
    assert.deepEqual(decode(encode(row)), row);
    assert.throws(() => decode(Buffer.alloc(0)), { code: 'STREAM_FAILED', message: /missing required 'id'/ });
    assert.throws(() => encode({ name: 'x' }), { code: 'STREAM_FAILED', message: /the field Old\.id is required/ });
  });

  it('reads only the needed columns, and retains no part of the payload', async () => {
    const { decode } = await codec('all.All', { needed: ['I32', 'raw'] });
    const payload = bytes('18 01 7a 01 05 72 01 61');
    const row = decode(payload);
    payload.fill(0);
    assert.deepEqual(row, { i32: 1n, raw: new Uint8Array([5]) });
  });

  it('supports names of fields and keys of maps that objects inherit', async () => {
    const text = 'syntax = "proto3"; message M { string constructor = 1; map<string, int32> toString = 2; }';
    const type = await protobufFormat({ schemas: { m: text } });
    const { decode, encode } = type.make({ what: 'x', options: { SCHEMAID: 'm.M' } });
    assert.deepEqual(decode(Buffer.alloc(0)), { constructor: '', toString: {} });
    const map = JSON.parse('{"__proto__": 1, "constructor": 2}') as Record<string, number>;
    const row = decode(encode({ constructor: 'c', toString: map })) as Record<string, Record<string, unknown>>;
    assert.deepEqual(Object.entries(row.toString), [
      ['__proto__', 1n],
      ['constructor', 2n]
    ]);
    assert.equal(Object.getPrototypeOf(row.toString), Object.prototype);
  });

  it('fails for payloads that are not messages, too large, or too deeply nested', async () => {
    const { decode } = await codec('all.All');
    const fails = (payload: Uint8Array, message: RegExp) =>
      assert.throws(() => decode(payload), { code: 'STREAM_FAILED', message });
    fails(bytes('18'), /the payload is not a message All: index out of range/);
    fails(bytes('72 01 ff'), /the payload is not a message All/);
    fails(Buffer.alloc(1_048_577), /1048577 bytes, more than 1048576/);
    let deep = Buffer.alloc(0);
    const lengthOf = (size: number) => (size < 128 ? [size] : [(size % 128) + 128, size >> 7]);
    for (let level = 0; level < 200; level++)
      deep = Buffer.concat([Buffer.from([0x8a, 0x01, ...lengthOf(deep.length)]), deep]);
    fails(deep, /the payload is not a message All: max depth exceeded/);
    fails(Buffer.concat(Array.from({ length: 100_000 }, () => bytes('9a01 00'))), /more than 1000000 values/);
  });

  it('fails for rows that the message cannot represent', async () => {
    const { encode } = await codec('all.All');
    const cases: [row: unknown, message: RegExp][] = [
      [[{ i32: 1 }], /needs single rows: set "sendSingle" to true/],
      ['text', /needs a row for the message All/],
      [{ error: 'it failed', other: 1 }, /no column of the row is a field of the message All: error, other/],
      [{ i32: 2 ** 31 }, /the field All\.i32 must be an integer of the type int32; got "2147483648"/],
      [{ i32: 1.5 }, /All\.i32 must be an integer/],
      [{ u64: -1n }, /All\.u64 must be an integer of the type uint64; got "-1"/],
      [{ text: 5 }, /All\.text must be a string; got "5"/],
      [{ b: 'true' }, /All\.b must be a boolean/],
      [{ d: '1' }, /All\.d must be a number/],
      [{ raw: '?' }, /All\.raw must be bytes, or a string in base64/],
      [{ genre: 'DRAMA' }, /All\.genre must be a name or a number of Genre; got "DRAMA"/],
      [{ inner: [] }, /All\.inner must be a struct/],
      [{ inner: { many: 1 } }, /All\.many must be an array/],
      [{ all: [null] }, /All\.all must be a struct; got null/],
      [{ longs: { a: 'x' } }, /All\.longs must be a struct whose keys are of the type int64; got "a"/],
      [{ left: 'a', right: 1 }, /only one of the fields left and right of All can be set \(choice\)/]
    ];
    for (const [row, message] of cases) assert.throws(() => encode(row), { code: 'STREAM_FAILED', message });
    const circle: Record<string, unknown> = { i32: 1 };
    circle.inner = circle;
    assert.throws(() => encode(circle), { code: 'STREAM_FAILED', message: /more than 100 levels/ });
  });

  it('never fails with another error, for any payload', async () => {
    const { decode, encode } = await codec('all.All');
    const seed = readSeed();
    let state = seed;
    const next = () => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 16;
    const whole = encode({ text: 'abc', many: [1, 2], longs: { 5: 'x' }, inner: { raw: 'AAAA' }, flags: { true: {} } });
    for (let round = 0; round < samples(3000); round++) {
      const payload = round % 2 === 0 ? Buffer.from(whole) : Buffer.alloc(next() % 40);
      for (let change = 0; change < payload.length / 4; change++) payload[next() % payload.length] = next();
      try {
        encode(decode(payload));
      } catch (error) {
        if ((error as { code?: string }).code !== 'STREAM_FAILED') throw new Error(shownSeed(seed), { cause: error });
      }
    }
  });
});

describe('the schemas of the format protobuf', () => {
  const fails = (schemas: Record<string, string>, message: RegExp, files = {}) =>
    assert.rejects(protobufFormat({ schemas, files }), { code: 'OPTION_INVALID', message });

  it('imports files of the app and those of Google', async () => {
    const book = `
      syntax = "proto3";
      import "shared/author.proto";
      import "google/protobuf/timestamp.proto";
      message Book { Author author = 1; google.protobuf.Timestamp printed = 2; }
    `;
    const files = {
      'shared/author.proto': 'syntax = "proto3"; import "shared/name.proto"; message Author { Name name = 1; }',
      'shared/name.proto': 'syntax = "proto3"; import "shared/author.proto"; message Name { string last = 1; }'
    };
    const type = await protobufFormat({ schemas: { book }, files });
    const { decode, encode } = type.make({ what: 'x', options: { SCHEMAID: 'book.Book' } });
    const row = { author: { name: { last: 'Eco' } }, printed: { seconds: 5n, nanos: 0n } };
    assert.deepEqual(decode(encode(row)), row);
    await fails({ book }, /schema "book" .*: it imports "shared\/author\.proto", which is not among the files/);
  });

  it('refuses an invalid schema with its name', async () => {
    await fails({ a: 'message {' }, /schema "a" of the format protobuf: illegal/);
    const start = 'syntax = "proto3";\nmessage A {';
    for (const text of [start, `${start} int32`, `${start} int32 b = 1`, 'syntax = "proto3";\nimport'])
      await fails({ a: text }, /schema "a" of the format protobuf: the text ends too early, in line 2$/);
    await fails({ a: 'syntax = "proto3"; message A { null b = 1; }' }, /schema "a".*: no such Type or Enum .null./);
    await fails({ a: 'syntax = "proto3"; message A { Missing b = 1; }' }, /schema "a".*Missing/);
    await fails({ 'a.b': ALL }, /must not contain a dot/);
    await fails({ a: 5 as unknown as string }, /the content of a \.proto file is needed/);
    await fails({ a: 'x'.repeat(1_048_577) }, /more than 1048576 characters/);
    await assert.rejects(protobufFormat({ schemas: {}, maxBytes: 0 }), { code: 'OPTION_INVALID', message: /maxBytes/ });
  });

  it('resolves SCHEMAID, and lists the known schemas in errors', async () => {
    const missing = (id: string | undefined, message: RegExp) =>
      assert.rejects(codec(id as string), { code: 'STREAM_INVALID', message });
    await missing(
      undefined,
      /stream "demo": SCHEMAID .* must be SCHEMA\.MESSAGE; known: all\.MESSAGE, old\.MESSAGE; got ""/
    );
    await missing('none.All', /known: all\.MESSAGE, old\.MESSAGE; got "none\.All"/);
    await missing('all.None', /known: all\.library\.All, all\.library\.Numbers; got "all\.None"/);
    await missing('all.Genre', /got "all\.Genre"/);
  });
});

describe('streams and sinks with the format protobuf', () => {
  it('selects columns of messages, sends messages, and counts payloads that are not messages', async () => {
    const sink = new TestSink();
    const formats = [await protobufFormat({ schemas: { all: ALL } })];
    await using kit = await createTestBroker({ streams: { formats, sinks: [sink] } });
    const { streams } = kit.broker;
    await streams.create('CREATE STREAM demo () WITH (DATASOURCE="a", FORMAT="PROTOBUF", SCHEMAID="all.All")');
    const actions = [{ test: { format: 'protobuf', schemaId: 'all.Numbers', sendSingle: true } }];
    const sql = 'SELECT many AS n FROM demo WHERE i32 = 150';
    await streams.rules.create({ id: 'r', sql, actions, options: { sendError: false } });
    await kit.broker.publish({ topic: 'a', payload: bytes('18 9601 9201 02 0105') });
    await kit.broker.publish({ topic: 'a', payload: bytes('18') });
    await turns();
    assert.equal(Buffer.from(sink.sent[0], 'latin1').toString('hex'), '0a020105');
    const { metrics } = await streams.rules.status('r');
    assert.equal(metrics.source_demo_0_exceptions_total, 1);
    assert.match(String(metrics.source_demo_0_last_exception), /^the payload is not a message All: index out of range/);
    const action = { test: { format: 'protobuf', schemaId: 'all.None' } };
    const wrong = { id: 'w', sql: 'SELECT * FROM demo', actions: [action] };
    await assert.rejects(streams.rules.create(wrong), {
      code: 'PROPERTY_INVALID',
      message: /known: all\.library\.All/
    });
  });
});
