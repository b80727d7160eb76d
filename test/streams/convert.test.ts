import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type ConversionSetup, compileConversion } from '../../lib/streams/formats/convert.ts';
import { makeFormat } from '../../lib/streams/formats/formats.ts';
import type { Column, ColumnType } from '../../lib/streams/types.ts';
import { describe as described, type StreamValueObject } from '../../lib/streams/values/values.ts';

const parseTime = (text: string, pattern: string) => (text === pattern ? 86_400_000 : undefined);

function convert(columns: readonly Column[] | undefined, payload: string, setup: Partial<ConversionSetup> = {}) {
  const values = makeFormat('json', { what: 'x', columns }).decode(Buffer.from(payload)) as StreamValueObject;
  return compileConversion({ columns, isStrict: true, parseTime, ...setup })(values);
}

/** The type denoted by a text such as `array(struct(b bigint))`. */
function typeOf(text: string): ColumnType {
  const [, name, inner] = /^(\w+)(?:\((.*)\))?$/.exec(text) as string[];
  if (name === 'array') return { type: 'array', element: typeOf(inner) };
  if (name !== 'struct') return { type: name as 'bigint' };
  const fields = inner.split(/, (?![^(]*\))/).map((field) => {
    const [column, ...type] = field.split(' ');
    return { name: column, type: typeOf(type.join(' ')) };
  });
  return { type: 'struct', fields };
}

function resultOf(column: Column, payload: string, isStrict: boolean): string {
  try {
    return described(convert([column], payload, { isStrict }).a);
  } catch (error) {
    assert.equal((error as { code: string }).code, 'STREAM_FAILED');
    return `! ${(error as Error).message}`;
  }
}

const cases = readFileSync(join(import.meta.dirname, 'convert-cases.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));

describe('the conversion of a column', () => {
  for (const line of cases) {
    const [type, payload, strict, lenient = strict] = line.split(' | ');
    it(`returns the expected ${type} for ${payload}`, () => {
      const column = { name: 'a', type: typeOf(type) };
      assert.equal(resultOf(column, payload, true), strict);
      assert.equal(resultOf(column, payload, false), lenient);
    });
  }
});

describe('the conversion of rows', () => {
  const columns: readonly Column[] = [
    { name: 'a', type: { type: 'bigint' } },
    { name: 'Name', type: { type: 'string' } }
  ];

  it('drops keys that are not declared', () => {
    assert.deepEqual(convert(columns, '{"a":1,"name":"x","c":3}'), { a: 1n, Name: 'x' });
  });

  it('reads only the needed columns, whose names may be written in any case', () => {
    assert.deepEqual(convert(columns, '{"a":"no number","Name":"x"}', { needed: ['NAME', 'name', 'other'] }), {
      Name: 'x'
    });
    assert.deepEqual(convert(columns, '{}', { needed: [] }), {});
  });

  it('leaves values unchanged without a schema', () => {
    const values = { a: 1, b: [undefined] };
    assert.equal(compileConversion({ columns: undefined, isStrict: true, parseTime })(values), values);
  });

  it('parses strings of DATETIME columns by TIMESTAMP_FORMAT', () => {
    const time: readonly Column[] = [{ name: 't', type: { type: 'datetime' } }];
    const setup = { timestampFormat: 'pattern' };
    assert.deepEqual(convert(time, '{"t":"pattern"}', setup), { t: new Date(86_400_000) });
    assert.deepEqual(convert(time, '{"t":5}', setup), { t: new Date(5) });
    assert.throws(() => convert(time, '{"t":"2019-09-19"}', setup), /cannot convert to datetime/);
  });

  it('accepts values that already have the type', () => {
    const all = ['bigint', 'float', 'string', 'boolean', 'datetime', 'bytea'] as const;
    const values = {
      bigint: 1n,
      float: 1.5,
      string: 'x',
      boolean: true,
      datetime: new Date(0),
      bytea: Buffer.from('x')
    };
    const types = all.map((type) => ({ name: type, type: { type } }));
    assert.deepEqual(compileConversion({ columns: types, isStrict: true, parseTime })(values), values);
  });

  it('shortens values in messages', () => {
    const payload = JSON.stringify({ a: 'x'.repeat(1000) });
    assert.throws(
      () => convert(columns, payload),
      ({ message }) => message.length < 200
    );
    assert.throws(
      () => convert([columns[1]], payload),
      ({ message }) => message.length < 300
    );
  });

  it('keeps a column "__proto__" as a column', () => {
    const row = convert(
      [{ name: '__proto__', type: { type: 'array', element: { type: 'float' } } }],
      '{"__proto__":[1]}'
    );
    assert.deepEqual(Object.keys(row), ['__proto__']);
    assert.equal(Object.getPrototypeOf(row), Object.prototype);
  });
});
