import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileJsonPath } from '../../lib/streams/values/json-path.ts';
import { StreamFailure, type StreamValue } from '../../lib/streams/values/values.ts';

/** Cases of selections are in `cases/functions.txt`. */
describe('JSON paths', () => {
  it('limits the number of values that it visits', () => {
    const large: StreamValue = Array.from({ length: 2000 }, () => ({ a: 1 }));
    const path = compileJsonPath('$[? $[? @.a == 1] == @]');
    assert.throws(() => path.query(large), { message: 'the JSON path visits more than 1000000 values' });
    const inner: StreamValue = new Array(1000).fill(0);
    assert.throws(() => compileJsonPath('$..*').query(new Array(2000).fill(inner)), StreamFailure);
  });

  it('selects from deeply nested values', () => {
    const deep = JSON.parse('['.repeat(5000) + ']'.repeat(5000)) as StreamValue;
    assert.equal((compileJsonPath('$..*').query(deep) as StreamValue[]).length, 4999);
  });

  it('limits its length and number of levels', () => {
    assert.throws(() => compileJsonPath(`$${'.a'.repeat(6000)}`), /more than 10000 characters/);
    assert.throws(() => compileJsonPath(`$[?${'('.repeat(60)}`), /more than 50 levels/);
    assert.throws(() => compileJsonPath(`$[?${'!'.repeat(60)}@]`), /more than 50 levels/);
    assert.throws(() => compileJsonPath(`$${'[?@'.repeat(60)}`), /more than 50 levels/);
  });

  it('selects only own members of objects', () => {
    assert.throws(() => compileJsonPath('$.constructor').query({}), StreamFailure);
    assert.equal(compileJsonPath('$["__proto__"]').find({}), undefined);
    assert.deepEqual(compileJsonPath('$.__proto__').query(JSON.parse('{"__proto__":1}')), 1);
  });

  it('reads escapes in keys', () => {
    assert.equal(compileJsonPath('$["a\\"\\u0062\\n"]').query({ 'a"b\n': 1 }), 1);
  });

  it('compares integers with floats', () => {
    assert.deepEqual(compileJsonPath('$[? @ == 2]').query([1n, 2n, 2]), [2n, 2]);
  });
});
