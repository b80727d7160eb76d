import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as Type from 'typebox';
import { operation } from '../../adapters/rest/kit/index.ts';

describe('operation', () => {
  it('returns its row with the literal types of name, method, path and schemas', () => {
    const query = Type.Object({ limit: Type.Optional(Type.Integer()) });
    const data = Type.Array(Type.String());
    const given = {
      name: 'list',
      method: 'GET',
      path: '/lists/:name',
      descr: 'A list',
      query,
      data
    } as const;
    const row = operation()({
      ...given,
      // the compiler checks the types of the input
      run: (_context, { params, query: { limit }, body }): [string, number | undefined, undefined] => [
        params.name,
        limit,
        body
      ]
    });
    const kept: { readonly name: 'list'; readonly method: 'GET'; readonly path: '/lists/:name' } = row;
    const schemas: { readonly query?: typeof query; readonly data?: typeof data; readonly body?: undefined } = row;
    assert.deepEqual({ ...kept, run: undefined }, { ...given, run: undefined });
    assert.deepEqual([schemas.query, schemas.data, schemas.body], [query, data, undefined]);
  });
});
