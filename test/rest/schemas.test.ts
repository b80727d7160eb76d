import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type * as Type from 'typebox';
import {
  any,
  anyObject,
  anyOf,
  check,
  componentOf,
  flag,
  integer,
  listOf,
  loadChecks,
  number,
  objectOf,
  oneOf,
  optional,
  text
} from '../../adapters/rest/kit/index.ts';

const json = (schema: Type.TSchema) => JSON.parse(JSON.stringify(schema));

describe('Schemas made from fields', () => {
  it('makes the keywords of a schema from the columns of a field', () => {
    assert.deepEqual(json(integer('The QoS', { min: 0, max: 2, default: 0 })), {
      type: 'integer',
      minimum: 0,
      maximum: 2,
      default: 0,
      description: 'The QoS'
    });
    assert.deepEqual(json(text('The name', { min: 1 })), { type: 'string', minLength: 1, description: 'The name' });
    assert.deepEqual(json(oneOf(['allow', 'deny'], 'The answer', { default: 'deny' })), {
      enum: ['allow', 'deny'],
      default: 'deny',
      description: 'The answer'
    });
    assert.deepEqual([number(), flag(), any()].map(json), [{ type: 'number' }, { type: 'boolean' }, {}]);
  });

  it('gives a part of a document its keyword `documented`, which no check reads', () => {
    assert.deepEqual(json(any('', { documented: { in: ['later'] } })), { documented: { in: ['later'] } });
  });

  it('requires the properties of an object that are not optional', () => {
    const user = componentOf('User', 'A user', { name: text(), tags: optional(listOf(text(), 'Words')) });
    assert.deepEqual(json(user), {
      type: 'object',
      title: 'User',
      description: 'A user',
      required: ['name'],
      properties: { name: { type: 'string' }, tags: { type: 'array', items: { type: 'string' }, description: 'Words' } }
    });
  });

  it('checks values, and infers their type', async () => {
    await loadChecks();
    const schema = objectOf({ id: anyOf([text(), integer()]), level: oneOf(['a', 'b']), more: optional(anyObject()) });
    const value = check<Type.Static<typeof schema>>(schema, { id: 1, level: 'a' }, 'body');
    const level: 'a' | 'b' = value.level;
    const more: Record<string, unknown> | undefined = value.more;
    assert.deepEqual([level, more], ['a', undefined]);
    for (const wrong of [{ id: true, level: 'a' }, { id: 1, level: 'c' }, { id: 1, level: 'a', more: 1 }, { id: 1 }])
      assert.throws(() => check(schema, wrong, 'body'), { name: 'Fault' });
  });
});
