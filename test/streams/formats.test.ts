import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FormatSetup } from '../../lib/streams/format.ts';
import { makeFormat } from '../../lib/streams/formats/formats.ts';
import type { Column } from '../../lib/streams/types.ts';

function decode(name: string, payload: string | Buffer, setup: Partial<FormatSetup> = {}): unknown {
  return makeFormat(name, { what: 'stream "demo"', ...setup }).decode(Buffer.from(payload as string));
}

function encode(name: string, value: unknown, setup: Partial<FormatSetup> = {}): string {
  return makeFormat(name, { what: 'sink', ...setup })
    .encode(value)
    .toString();
}

const BIGINT: readonly Column[] = [{ name: 'id', type: { type: 'bigint' } }];

describe('formats', () => {
  it('finds formats in any case, with json as the default', () => {
    assert.equal(makeFormat('JSON', { what: 'x' }).name, 'json');
    assert.equal(makeFormat(undefined, { what: 'x' }).name, 'json');
  });

  it('refuses an unknown format, and lists the known ones', () => {
    const message = 'stream "demo": option \'format=xml\' is invalid: use one of binary, delimited, json, urlencoded';
    assert.throws(() => makeFormat('xml', { what: 'stream "demo"' }), { code: 'STREAM_INVALID', message });
  });

  it('supports formats of the app', () => {
    const own = {
      name: 'length',
      about: '',
      make: () => ({
        name: 'length',
        decode: (bytes: Uint8Array) => ({ n: bytes.length }),
        encode: () => Buffer.alloc(0)
      })
    };
    assert.deepEqual(makeFormat('length', { what: 'x' }, [own]).decode(Buffer.from('abc')), { n: 3 });
  });
});

describe('format json', () => {
  it('decodes numbers to floats', () => {
    assert.deepEqual(decode('json', '{"a":1,"b":1.5,"c":[1],"d":{"e":null}}'), {
      a: 1,
      b: 1.5,
      c: [1],
      d: { e: null }
    });
  });

  it('decodes an array of objects to several rows', () => {
    assert.deepEqual(decode('json', '[{"a":1},{"a":2}]'), [{ a: 1 }, { a: 2 }]);
    assert.deepEqual(decode('json', '[]'), []);
  });

  it('refuses JSON that is not an object or an array of objects', () => {
    assert.throws(() => decode('json', '[{"a":1},3]'), {
      code: 'STREAM_FAILED',
      message: 'the payload is not a JSON object or array of objects: it has float64(3)'
    });
    assert.throws(() => decode('json', 'null'), /it has <nil>\(<nil>\)/);
    assert.throws(() => decode('json', '{"a":'), { code: 'STREAM_FAILED', message: /^the payload is not JSON: / });
    assert.throws(() => decode('json', ''), { code: 'STREAM_FAILED' });
  });

  it('keeps integers beyond 2^53 exact in a column BIGINT', () => {
    const payload = '{"id":9007199254740993,"x":1.0,"y":[1.0]}';
    assert.deepEqual(decode('json', payload, { columns: BIGINT }), { id: 9007199254740993n, x: 1, y: [1] });
    assert.deepEqual(decode('json', '{"id":9007199254740993,"x":1e400}', { columns: BIGINT }), {
      id: 9007199254740993n,
      x: Infinity
    });
  });

  it('keeps integers from 2^53 on exact for a stream without columns, and decodes others to floats', () => {
    const payload = '{"id":9007199254740993,"n":-12345678901234567890,"x":9007199254740991,"y":[1.0,1e300,1e16]}';
    const row = { id: 9007199254740993n, n: -12345678901234567890n, x: 9007199254740991, y: [1, 1e300, 1e16] };
    assert.deepEqual(decode('json', payload), row);
    assert.deepEqual(decode('json', payload, { needed: ['id', 'n', 'x', 'y'] }), row);
  });

  it('refuses a number that exceeds the range of floats in a row without columns', () => {
    for (const number of ['1e999', '-1e400', `1${'0'.repeat(309)}`])
      for (const setup of [{}, { integers: true }, { needed: ['a'] }])
        assert.throws(() => decode('json', `{"a":[${number}]}`, setup), {
          code: 'STREAM_FAILED',
          message: /^the number .* is too large: the greatest float is about 1\.8e308$/
        });
  });

  it('distinguishes integers from floats on request', () => {
    const payload = '{"a":1,"b":1.0,"c":1e2,"d":[-3,0.5],"e":9223372036854775807,"f":9223372036854775808,"g":"1"}';
    assert.deepEqual(decode('json', payload, { integers: true }), {
      a: 1n,
      b: 1,
      c: 100,
      d: [-3n, 0.5],
      e: 9223372036854775807n,
      f: 2n ** 63n,
      g: '1'
    });
  });

  it('keeps a member "__proto__" as a member', () => {
    const row = decode('json', '{"__proto__":{"a":1}}', { integers: true }) as object;
    assert.equal(Object.getPrototypeOf(row), Object.prototype);
    assert.deepEqual(Object.keys(row), ['__proto__']);
  });

  it('reads only the needed members, also from payloads of another form', () => {
    const needed = ['a', 'b'];
    const cases: [payload: string, expected: unknown][] = [
      ['{"a":1.0,"b":"x","c":3}', { a: 1, b: 'x' }],
      [' { "c" : [1,{"d":2}], "b" : null , "a" : true } ', { a: true, b: null }],
      ['{"a":1,"B":2}', { a: 1, B: 2 }],
      ['{"a":{"x":1},"b":2}', { a: { x: 1 }, b: 2 }],
      ['{"a":"\\u00e9","b":2}', { a: 'é', b: 2 }],
      ['[{"a":1,"b":2,"c":3}]', [{ a: 1, b: 2, c: 3 }]]
    ];
    for (const [payload, expected] of cases) assert.deepEqual(decode('json', payload, { needed }), expected);
    assert.throws(() => decode('json', '{"a":1,"b":2', { needed }), { code: 'STREAM_FAILED' });
  });

  it('decodes whole payloads if needed members are often missing, and returns to reading members later', () => {
    const { decode } = makeFormat('json', { what: 'x', needed: ['a'] });
    for (let i = 0; i < 3000; i++) assert.deepEqual(decode(Buffer.from('{"b":1}')), { b: 1 });
    let pruned = 0;
    for (let i = 0; i < 2000; i++) if (!('b' in decode(Buffer.from('{"a":1,"b":1}')))) pruned++;
    assert.ok(pruned >= 1000, String(pruned));
  });

  it("reads objects that are or only seem similar to the last one as the engine's decoder does", () => {
    const { decode } = makeFormat('json', { what: 'x' });
    const read = (text: string) => {
      try {
        return JSON.stringify(decode(Buffer.from(text)));
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    for (const text of [
      '{"a":1.5,"b":"x"}',
      '{"a":2.0,"b":"y"}',
      ' { "a" : -3 , "b" : null } ',
      '{"b":"y","a":1}',
      '{"a":1,"b":2,"c":3}',
      '{"a":1,"b":2}',
      '{"a":1}',
      '{"a":1,"a":2}',
      '{"a":2,"b":{"c":1}}',
      '{"a":1234567890123456,"b":1e3}',
      '{"a":"\\u00e9","b":"é"}',
      '{"2":1,"1":2}',
      '{"1":1,"2":2}',
      '{}',
      '[{"a":1,"b":2}]'
    ]) {
      const expected = JSON.stringify(JSON.parse(text));
      for (const first of ['{"a":1,"b":2}', '{"1":1,"2":2}', '{"a":1}', text]) {
        read(first);
        assert.equal(read(text), expected, `${text} after ${first}`);
      }
    }
    assert.ok(Object.is((decode(Buffer.from('{"a":-0}')) as { a: number }).a, -0));
    for (const text of ['{"a":1,"b":2', '{"a":1,"b":2}}', '{"a":1,"b":}', '{"a":01,"b":2}', '{"a":1 "b":2}', '']) {
      read('{"a":1,"b":2}');
      assert.equal(read(text), 'STREAM_FAILED', text);
    }
  });

  it('reads objects of many forms in turn', () => {
    const { decode } = makeFormat('json', { what: 'x' });
    for (let i = 0; i < 5000; i++) {
      const row = i % 3 === 0 ? { a: i } : i % 3 === 1 ? { [`k${i}`]: true, a: [i] } : { a: i, b: 'x' };
      assert.deepEqual(decode(Buffer.from(JSON.stringify(row))), row);
    }
  });

  it('encodes objects of short values as the engine does', () => {
    for (const value of [
      {},
      { a: 1, b: -0, c: 1e21, d: 1 / 3, e: NaN, f: -Infinity },
      { a: true, b: false, c: 'text', d: '', 'k"e\ny': 'ü', ü: '"\\' },
      { a: 'x'.repeat(500), b: '\u2028\ud800' },
      { a: null, b: undefined, c: [1], d: { e: {} } },
      { 2: 1, 1: 2, ['x'.repeat(300)]: 3 },
      JSON.parse('{"__proto__":1,"toJSON":2}')
    ])
      for (let times = 0; times < 2; times++) assert.equal(encode('json', value), JSON.stringify(value));
    assert.equal(makeFormat('json', { what: 'x' }).text?.({ a: 1n }), '{"a":1}');
  });

  it('encodes bigints with all digits, bytes as base64 and times as ISO 8601', () => {
    assert.equal(encode('json', [{ a: 1, b: undefined, c: NaN }]), '[{"a":1,"c":null}]');
    const value = { a: 2n ** 63n - 1n, b: Buffer.from('hi'), c: new Date(0), d: [1n, null], e: undefined, 'f"': 'g"' };
    const text = '{"a":9223372036854775807,"b":"aGk=","c":"1970-01-01T00:00:00.000Z","d":[1,null],"f\\"":"g\\""}';
    assert.equal(encode('json', value), text);
  });

  it('refuses to encode an object that contains itself', () => {
    const loop: Record<string, unknown> = {};
    loop.loop = loop;
    assert.throws(() => encode('json', loop), { code: 'STREAM_FAILED', message: 'a value has more than 1000 levels' });
  });
});

describe('format binary', () => {
  it('returns the payload in the column "self", or in the only column', () => {
    assert.deepEqual(decode('binary', 'hi'), { self: Buffer.from('hi') });
    const columns: readonly Column[] = [{ name: 'image', type: { type: 'bytea' } }];
    assert.deepEqual(decode('binary', 'hi', { columns }), { image: Buffer.from('hi') });
  });

  it('copies the payload', () => {
    const payload = Buffer.from('hi');
    const row = makeFormat('binary', { what: 'x' }).decode(payload);
    payload.fill(0);
    assert.deepEqual(row, { self: Buffer.from('hi') });
  });

  it('refuses other columns', () => {
    const message = 'stream "demo": a stream with FORMAT="binary" has no columns, or a single one of type BYTEA';
    assert.throws(() => decode('binary', '', { columns: BIGINT }), { code: 'STREAM_INVALID', message });
  });

  it('encodes bytes, strings and rows with one column of bytes', () => {
    assert.equal(encode('binary', Buffer.from('hi')), 'hi');
    assert.equal(encode('binary', 'hi'), 'hi');
    assert.equal(encode('binary', [{ a: Buffer.from('h') }, { a: Buffer.from('i') }]), 'hi');
    assert.throws(() => encode('binary', { a: 1 }), { code: 'STREAM_FAILED' });
  });
});

describe('format delimited', () => {
  const columns: readonly Column[] = [
    { name: 'a', type: { type: 'bigint' } },
    { name: 'b', type: { type: 'string' } }
  ];

  it('assigns the columns of the schema in order', () => {
    assert.deepEqual(decode('delimited', '1,x,more', { columns }), { a: '1', b: 'x' });
    assert.deepEqual(decode('delimited', '1', { columns }), { a: '1' });
  });

  it('numbers the columns without a schema', () => {
    assert.deepEqual(decode('delimited', '1:x', { options: { DELIMITER: ':' } }), { col0: '1', col1: 'x' });
  });

  it('creates a row for each line', () => {
    assert.deepEqual(decode('delimited', '1,x\r\n2,y\n', { columns }), [
      { a: '1', b: 'x' },
      { a: '2', b: 'y' }
    ]);
  });

  it('reads fields in quotation marks', () => {
    assert.deepEqual(decode('delimited', '"a,b","say ""hi""","""",""'), {
      col0: 'a,b',
      col1: 'say "hi"',
      col2: '"',
      col3: ''
    });
    assert.deepEqual(decode('delimited', 'a"b,"open'), { col0: 'a"b', col1: '"open' });
  });

  it('encodes rows to lines', () => {
    assert.equal(
      encode('delimited', [
        { a: 1, b: 'x,y' },
        { a: null, b: [1] }
      ]),
      '1,"x,y"\n,[1]'
    );
    assert.equal(encode('delimited', { b: 'x', a: 1 }, { columns }), '1,x');
  });

  it('refuses a delimiter that cannot be distinguished from quotation marks and line ends', () => {
    assert.throws(() => decode('delimited', '', { options: { DELIMITER: '"' } }), { code: 'STREAM_INVALID' });
  });
});

describe('format urlencoded', () => {
  it('decodes strings, and arrays for repeated names', () => {
    assert.deepEqual(decode('urlencoded', 'a=1&b=x+y&a=2&c=%C3%A9'), { a: ['1', '2'], b: 'x y', c: 'é' });
  });

  it('encodes single rows', () => {
    assert.equal(
      encode('urlencoded', { a: 1, b: ['x', 'y'], c: { d: 1 }, e: null }),
      'a=1&b=x&b=y&c=%7B%22d%22%3A1%7D'
    );
    assert.throws(() => encode('urlencoded', [{}]), { code: 'STREAM_FAILED', message: /sendSingle/ });
  });
});
