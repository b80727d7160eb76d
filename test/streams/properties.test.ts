import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InvalidInput } from '../../lib/base/errors.ts';
import type { FieldTable, PropertyTable } from '../../lib/base/fields.ts';
import { readProperties } from '../../lib/streams/properties.ts';

const TABLE: FieldTable = {
  topic: { type: 'string', about: 'Topic.', required: true },
  qos: { type: 'number', about: 'QoS.', default: 0, choices: [0, 1, 2] },
  interval: { type: 'duration', about: 'Interval.', unit: 'ms', min: 1 },
  headers: { type: 'object', about: 'Headers.' },
  fields: { type: 'array', about: 'Fields.' },
  password: { type: 'string', about: 'Password.', isSecret: true },
  body: { type: 'any', about: 'Body.' }
};

function read(given: unknown, warn?: (text: string) => void): Record<string, unknown> {
  return { ...readProperties(TABLE, given, 'mqtt sink', warn) };
}

describe('properties of sources and sinks', () => {
  it('fills in defaults, and omits properties without a value', () => {
    assert.deepEqual(read({ topic: 'a' }), { topic: 'a', qos: 0 });
  });

  it('accepts names that differ in case, but not two of one property [PROPERTY_INVALID]', () => {
    assert.deepEqual(read({ TOPIC: 'a', Interval: 5 }), { topic: 'a', qos: 0, interval: 5 });
    assert.throws(() => read({ TOPIC: 'b', topic: 'a' }), { code: 'PROPERTY_INVALID', field: 'topic' });
  });

  it('converts durations to milliseconds', () => {
    assert.equal(read({ topic: 'a', interval: '1m30s' }).interval, 90_000);
  });

  it('reads a number of milliseconds in the form of 0.2 as a duration, with and without a range', () => {
    const row = { type: 'number', about: 'Interval.', unit: 'ms' } as const;
    const table: PropertyTable = { any: row, limited: { ...row, range: [1, 20_000] } };
    const values = readProperties(table, { any: '10s', limited: '10s' }, 'mqtt sink');
    assert.deepEqual({ ...values }, { any: 10_000, limited: 10_000 });
    assert.throws(() => readProperties(table, { limited: '30s' }, 'mqtt sink'), { code: 'PROPERTY_INVALID' });
  });

  it('does not report unknown properties without a value', () => {
    const warnings: string[] = [];
    read({ topic: 'a', intervall: null, zone: undefined }, (text) => warnings.push(text));
    assert.deepEqual(warnings, []);
  });

  it('keeps and reports unknown properties with the most similar name', () => {
    const warnings: string[] = [];
    const values = read({ topic: 'a', intervall: 1, zone: 2 }, (text) => warnings.push(text));
    assert.deepEqual(values, { topic: 'a', qos: 0, intervall: 1, zone: 2 });
    assert.deepEqual(warnings, [
      'mqtt sink: the unknown property "intervall" has no effect; did you mean "interval"?',
      'mqtt sink: the unknown property "zone" has no effect'
    ]);
  });

  it('names the property and its expected value', () => {
    const cases: readonly (readonly [given: unknown, message: string])[] = [
      [undefined, 'mqtt sink is missing property topic'],
      [{ topic: null }, 'mqtt sink is missing property topic'],
      [[], 'mqtt sink: expect map[string]interface{} type for the properties, but found []'],
      [{ topic: 1 }, 'mqtt sink: property topic must be a string, got 1'],
      [{ topic: 'a', qos: 3 }, 'mqtt sink: property qos must be one of 0, 1, 2, got 3'],
      [
        { topic: 'a', interval: 'x' },
        'mqtt sink: property interval must be a number of milliseconds, or a duration such as "10s", of at least 1, got "x"'
      ],
      [{ topic: 'a', headers: [] }, 'mqtt sink: property headers must be an object, got []'],
      [{ topic: 'a', fields: 'x' }, 'mqtt sink: property fields must be a list, got "x"'],
      [{ topic: 'a', password: 1 }, 'mqtt sink: property password must be a string']
    ];
    for (const [given, message] of cases)
      assert.throws(() => read(given), { name: 'InvalidInput', code: 'PROPERTY_INVALID', message });
  });

  it('shows invalid values without the secrets in them', () => {
    const cases: readonly Record<string, unknown>[] = [
      { qos: 'tcp://user:never-shown@host' },
      { fields: { password: 'never-shown' } },
      { headers: ['http://host/?key=never-shown'] }
    ];
    for (const given of cases)
      assert.throws(
        () => read({ topic: 'a', ...given }),
        (error: InvalidInput) => !`${error.message} ${JSON.stringify(error.got)}`.includes('never-shown')
      );
  });

  it('gives names of the prototype no meaning', () => {
    const values = readProperties(TABLE, JSON.parse('{"topic":"a","__proto__":{"qos":2}}'), 'mqtt sink');
    assert.equal(values.qos, 0);
    assert.equal(readProperties({}, {}, 'x').constructor, undefined);
  });
});
