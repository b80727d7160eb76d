import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeJson } from '../../lib/sql/json.ts';
import { Members, readMembers } from '../../lib/sql/json-members.ts';
import { Float, isObject, own, type Value } from '../../lib/sql/values.ts';
import { Random } from '../fuzz/random.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';

const NAMES = ['a', 'temp', 'b c', '-'];
const WANTED = Members.of(NAMES) as Members;

/** Read the members of a text that has other bytes before and after it. */
function read(text: string, members = WANTED): Record<string, Value> | undefined {
  const bytes = Buffer.from(`{"a":1}${text}{"a":2}`);
  return readMembers(bytes, 7, bytes.length - 7, members);
}

/** The same members of the fully decoded text. */
function expected(text: string): Record<string, Value> {
  const whole = decodeJson(text);
  assert.ok(isObject(whole), `${text} is an object`);
  const present = NAMES.filter((name) => Object.hasOwn(whole, name));
  return Object.fromEntries(present.map((name) => [name, own(whole, name)]));
}

describe('Members of JSON objects', () => {
  for (const text of [
    '{}',
    ' {\t"a" :\r\n1 , "x":[ ] } ',
    '{"a":0,"temp":-7,"b c":0.5,"-":-12.25}',
    '{"a":123456789012345,"temp":0.1,"b c":1234.567890123,"-":99999999.9}',
    '{"a":1.0,"temp":0.0,"b c":100.00}',
    '{"a":"text","temp":"","b c":true,"-":null}',
    '{"x":{"a":1,"y":[{"a":[1,2]},"]}",null]},"a":false}',
    '{"a":1,"x":2,"a":"the last one"}',
    '{"other":123456789012345678901234567890,"a":1}'
  ])
    it(`reads the members of ${JSON.stringify(text)} without the others`, () => {
      assert.deepEqual(read(text), expected(text));
    });

  it('distinguishes integers and floating point numbers', () => {
    assert.deepEqual(read('{"a":1.0,"temp":1}'), { a: new Float(1), temp: 1 });
  });

  for (const [why, text] of [
    ['no object', '[{"a":1}]'],
    ['no object', '1'],
    ['empty', ''],
    ['cut', '{"a":1'],
    ['cut', '{"a":1,'],
    ['cut', '{"a"'],
    ['cut', '{"x":[1,'],
    ['cut', '{"a":tru'],
    ['followed by more', '{"a":1}}'],
    ['followed by more', '{"a":1}x'],
    ['followed by more', '{}x'],
    ['with a comma too many', '{"a":1,}'],
    ['with a comma too many', '{"x":[1,],"a":1}'],
    ['without a colon', '{"a" 1}'],
    ['without a comma', '{"a":1 "b":2}'],
    ['with a leading zero', '{"a":01}'],
    ['with a number without digits', '{"a":-}'],
    ['with a number that ends in a point', '{"a":1.}'],
    ['with a number that begins with a point', '{"a":.5}'],
    ['with a word that is wrong', '{"x":nul1}'],
    ['with a control character', '{"x":"\n"}'],
    ['with brackets that do not match', '{"x":[1},"a":1]}']
  ])
    it(`reads no members of a text that is ${why}: ${JSON.stringify(text)}`, () => {
      assert.equal(read(text), undefined);
    });

  for (const [why, text] of [
    ['escapes', '{"\\u0061":1}'],
    ['escapes', '{"x":"\\n"}'],
    ['letters beyond ASCII', '{"x":"ä"}'],
    ['exponents', '{"x":1e5}'],
    ['long numbers', '{"a":1234567890123456}'],
    ['long numbers', '{"a":0.12345678901234567}'],
    ['negative zero', '{"a":-0}'],
    ['objects', '{"a":{"b":1}}'],
    ['lists', '{"a":[1]}'],
    ['many levels', `{"x":${'['.repeat(40)}${']'.repeat(40)}}`],
    ['many bytes', `{"x":"${'x'.repeat(3000)}"}`]
  ])
    it(`leaves members with ${why} to the decoder of whole texts: ${text.slice(0, 40)}`, () => {
      assert.notEqual(decodeJson(text), undefined);
      assert.equal(read(text), undefined);
    });

  it('accepts only names that can be found by their bytes', () => {
    assert.deepEqual(Members.of(['a', 'b c'])?.names, ['a', 'b c']);
    for (const names of [[], ['ä'], ['q"q'], ['\\'], [''], ['__proto__'], ['toString'], [...'abcdefghi']])
      assert.equal(Members.of(names), undefined, names.join());
  });

  it('returns the same members as decoding the whole text, even if the text was damaged', () => {
    const seed = readSeed();
    const random = new Random(seed);
    const counts = { read: 0, left: 0 };
    for (let run = 0; run < samples(20_000); run++) {
      const text = random.once(2) ? objectOf(random) : damaged(objectOf(random), random);
      const found = read(text);
      counts[found === undefined ? 'left' : 'read']++;
      if (found !== undefined) assert.deepEqual(found, expected(text), `${shownSeed(seed)}, ${text}`);
    }
    assert.ok(
      counts.read > samples(4000) && counts.left > samples(1000),
      `${shownSeed(seed)}: ${JSON.stringify(counts)}`
    );
  });
});

const SCALARS = ['0', '-0', '1', '-17', '1.0', '23.50', '1e3', '0.1', '99999999999999999', 'true', 'false', 'null'];
const TEXTS = ['""', '"a"', '"temp"', '"}"', '"a b, c: [d]"', '"\\"', '"\\u00e4"', '"ä"'];

function objectOf(random: Random): string {
  const space = () => (random.once(4) ? random.pick([' ', '\n', '\t ', '\r\n']) : '');
  const value = (level: number): string => {
    const kind = random.below(level > 3 ? 6 : 8);
    if (kind < 4) return random.pick(SCALARS);
    if (kind < 6) return random.pick(TEXTS.slice(0, random.once(5) ? undefined : 5));
    const items = Array.from({ length: random.below(4) }, () =>
      kind === 6 ? value(level + 1) : `"${random.pick(NAMES)}"${space()}:${space()}${value(level + 1)}`
    );
    const inside = `${space()}${items.join(`${space()},${space()}`)}${space()}`;
    return kind === 6 ? `[${inside}]` : `{${inside}}`;
  };
  const keys = [...NAMES, 'x', 'tem', 'tempo', 'A'];
  const items = Array.from({ length: random.below(6) }, () => `"${random.pick(keys)}"${space()}:${space()}${value(0)}`);
  return `${space()}{${space()}${items.join(`${space()},${space()}`)}${space()}}${space()}`;
}

/** A text with some characters missing, doubled or replaced. */
function damaged(text: string, random: Random): string {
  const at = random.below(text.length);
  const what = random.pick(['', text.slice(at, at + 2), ...'{}[]",:.-01e \n\\ä']);
  return text.slice(0, at) + what + text.slice(at + random.below(3));
}
