import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeJson, encodeJson } from '../../lib/sql/json.ts';
import { shortJson } from '../../lib/sql/weight.ts';

const MOST = 200;

function short(value: unknown, most = MOST) {
  const { json, isCut } = shortJson(value, most, encodeJson);
  assert.ok(json.length <= most, `${json.length} characters`);
  return { value: decodeJson(json), isCut };
}

describe('Short JSON', () => {
  it('leaves short values as they are', () => {
    for (const value of [null, 5, 2n ** 70n, 'text', [1, [2]], { a: { b: 'c' } }])
      assert.deepEqual(short(value), { value, isCut: false });
  });

  it('cuts strings, not within a character', () => {
    assert.deepEqual(short('x'.repeat(500)), { value: `${'x'.repeat(195)}...`, isCut: true });
    const { value } = short(`x${'\u{1f600}'.repeat(500)}`);
    assert.match(value as string, /^x\u{1f600}+\.\.\.$/u);
  });

  it('keeps the first elements of a list and the short members of an object, in their order', () => {
    const { value, isCut } = short(Array.from({ length: 500 }, (_, n) => n));
    assert.equal(isCut, true);
    assert.deepEqual((value as number[]).slice(0, 3), [0, 1, 2]);
    const object = short({ long: 'y'.repeat(1000), id: 'a', other: 'z'.repeat(1000), n: 1 }).value as object;
    assert.deepEqual(Object.keys(object), ['long', 'id', 'other', 'n']);
    assert.deepEqual({ ...object, long: '', other: '' }, { long: '', id: 'a', other: '', n: 1 });
  });

  it('shortens values that escapes make longer, large ones, and those with hostile names', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
    const hostile = JSON.parse('{"__proto__": 1, "constructor": 2}');
    for (const value of [
      '\u0001'.repeat(400),
      { ['\u0001'.repeat(60)]: 1, b: '"'.repeat(180) },
      10n ** 5000n,
      nested(900),
      nested(3000),
      new Uint8Array(5000),
      Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`k${n}`, n])),
      { ['k'.repeat(5000)]: 1 }
    ])
      assert.equal(short(value).isCut, true);
    const { value } = short({ ...hostile, __proto__x: 'y'.repeat(500) });
    assert.equal((value as { constructor: unknown }).constructor, 2);
  });

  it('takes a time that does not grow with the value', () => {
    const wide: unknown[] = [];
    for (let n = 0; n < 300; n++) wide.push(wide.slice());
    const visits = { count: 0 };
    const watched = new Proxy(
      Array.from({ length: 1_000_000 }, (_, n) => n),
      {
        get(target, key) {
          visits.count++;
          return Reflect.get(target, key);
        }
      }
    );
    short({ watched, wide });
    assert.ok(visits.count < 1000, `${visits.count} elements were read`);
  });
});
