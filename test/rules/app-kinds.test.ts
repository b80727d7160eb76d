import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRule } from '../../lib/rules/index.ts';
import type { SqlFunction } from '../../lib/sql/functions/function.ts';

function returning(result: () => unknown): SqlFunction {
  return { name: 'f', family: 'app', params: [], returns: 'any', about: 'For tests.', run: result as never };
}

describe('A function of the app for statements', () => {
  const faults: readonly [string, () => unknown, RegExp][] = [
    ['a promise', () => Promise.resolve(1), /f\(\) has returned a promise/],
    ['a promise that rejects', () => Promise.reject(new Error('late')), /f\(\) has returned a promise/],
    ['a function', () => () => 1, /f\(\) has returned a function/],
    ['a symbol', () => Symbol('s'), /f\(\) has returned a symbol/],
    ['a Date', () => new Date(0), /f\(\) has returned an object of the class Date/],
    ['a Map', () => new Map(), /f\(\) has returned an object of the class Map/]
  ];
  for (const [what, result, message] of faults)
    it(`fails the evaluation if it returns ${what}`, async () => {
      const rule = await compileRule('SELECT f() as v FROM "a"', { functions: [returning(result)] });
      assert.throws(() => rule.run(), { code: 'SQL_FAILED', message });
    });

  it('may return every kind of value that statements know', async () => {
    const values = [
      undefined,
      null,
      1,
      10n ** 30n,
      'x',
      true,
      new Uint8Array([255]),
      [1, { a: [] }],
      Object.create(null)
    ];
    for (const value of values) {
      const rule = await compileRule('SELECT f() as v FROM "a"', { functions: [returning(() => value)] });
      assert.deepEqual(rule.run().outputs, [value === undefined ? {} : { v: value }]);
    }
  });

  it('is refused if a parameter has a type that does not exist', async () => {
    const given = { ...returning(() => 1), params: ['string', 'text?'] as never };
    await assert.rejects(compileRule('SELECT 1 FROM "a"', { functions: [given] }), {
      code: 'FUNCTION_INVALID',
      field: 'f.params[1]',
      message: /any, string, bytes, integer, number, boolean, list, object/
    });
  });
});

