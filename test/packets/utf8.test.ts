import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { checkUtf8, readString } from '../../lib/packets/utf8.ts';
import { runs } from './arbitraries.ts';
import { refusal } from './frames.ts';

/** Place a string between bytes that would make any string ill-formed, so that reading outside shows. */
function walled(bytes: Buffer): { buf: Buffer; start: number; end: number } {
  const buf = Buffer.concat([Buffer.from([0xff, 0xff]), bytes, Buffer.from([0x80, 0x80, 0x80, 0x80])]);
  return { buf, start: 2, end: 2 + bytes.length };
}

function check(bytes: Buffer): boolean {
  const { buf, start, end } = walled(bytes);
  return checkUtf8(buf, start, end);
}

const ILL_FORMED: readonly (readonly [what: string, bytes: number[]])[] = [
  ['a lone continuation byte', [0x80]],
  ['the last continuation byte', [0xbf]],
  ['an overlong slash of two bytes', [0xc0, 0xaf]],
  ['an overlong U+007F', [0xc1, 0xbf]],
  ['an overlong U+0000 of two bytes', [0xc0, 0x80]],
  ['an overlong slash of three bytes', [0xe0, 0x80, 0xaf]],
  ['an overlong U+07FF', [0xe0, 0x9f, 0xbf]],
  ['an overlong slash of four bytes', [0xf0, 0x80, 0x80, 0xaf]],
  ['an overlong U+FFFF', [0xf0, 0x8f, 0xbf, 0xbf]],
  ['the surrogate U+D800', [0xed, 0xa0, 0x80]],
  ['the surrogate U+DFFF', [0xed, 0xbf, 0xbf]],
  ['a pair of surrogates', [0xed, 0xa0, 0x80, 0xed, 0xb0, 0x80]],
  ['U+110000', [0xf4, 0x90, 0x80, 0x80]],
  ['a lead byte F5', [0xf5, 0x80, 0x80, 0x80]],
  ['a lead byte of five', [0xf8, 0x88, 0x80, 0x80, 0x80]],
  ['the byte FF', [0xff]],
  ['two bytes cut after one', [0xc3]],
  ['three bytes cut after two', [0xe2, 0x82]],
  ['four bytes cut after three', [0xf0, 0x9f, 0x94]],
  ['a character broken off by ASCII', [0xe2, 0x82, 0x41]]
];

describe('checkUtf8', () => {
  for (const [what, bytes] of ILL_FORMED) {
    for (const padding of [0, 3, 200]) {
      it(`refuses ${what} after ${padding} ASCII characters [MQTT-1.5.4-1]`, () => {
        assert.equal(check(Buffer.concat([Buffer.alloc(padding, 0x61), Buffer.from(bytes)])), false);
      });
    }
  }

  it('refuses U+0000 at every position of a short and a long string [MQTT-1.5.4-2]', () => {
    for (const length of [1, 4, 5, 11, 127, 128, 300]) {
      for (const place of [0, 1, 3, length - 1]) {
        const bytes = Buffer.alloc(length, 0x61);
        bytes[Math.min(place, length - 1)] = 0;
        assert.equal(check(bytes), false, `length ${length}, place ${place}`);
      }
    }
  });

  it('accepts the first and last character of every encoded length', () => {
    for (const point of [1, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfeff, 0xfffe, 0xffff, 0x10000, 0x10ffff]) {
      assert.equal(check(Buffer.from(String.fromCodePoint(point))), true, point.toString(16));
    }
  });

  it('accepts an empty string', () => {
    assert.equal(check(Buffer.alloc(0)), true);
  });

  it('agrees with Node.js on random bytes', () => {
    // Bytes at the edges of the ranges make nearly valid sequences likely.
    const edges = fc.constantFrom(
      0x01,
      0x7f,
      0x80,
      0x8f,
      0x90,
      0x9f,
      0xa0,
      0xbf,
      0xc2,
      0xdf,
      0xe0,
      0xed,
      0xef,
      0xf0,
      0xf4
    );
    const byte = fc.oneof(edges, fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 9 }), fc.constantFrom(0, 1, 2, 3, 130), (list, padding) => {
        const bytes = Buffer.concat([Buffer.alloc(padding, 0x61), Buffer.from(list)]);
        assert.equal(check(bytes), isUtf8(bytes) && !bytes.includes(0));
      }),
      runs('checkUtf8', 20_000)
    );
  });
});

describe('readString', () => {
  it('keeps a leading U+FEFF [MQTT-1.5.4-3]', () => {
    for (const text of ['\ufeffabc', '\ufeff', `\ufeff${'a'.repeat(200)}`]) {
      const { buf, start, end } = walled(Buffer.from(text));
      assert.equal(readString(buf, start, end), text);
    }
  });

  it('returns strings of any length and alphabet unchanged', () => {
    for (const text of ['', 'a', 'sensors/1/temp', 'räume/温度/🔥', 'x'.repeat(65535), '温'.repeat(21845)]) {
      const { buf, start, end } = walled(Buffer.from(text));
      assert.equal(readString(buf, start, end), text);
    }
  });

  it('refuses an ill-formed string with 0x81 and names the field [MQTT-1.5.4-1]', () => {
    for (const padding of [0, 200]) {
      const bytes = Buffer.concat([Buffer.alloc(padding, 0x61), Buffer.from([0xed, 0xa0, 0x80])]);
      assert.throws(() => readString(bytes, 0, bytes.length, 'client id'), refusal(0x81, /^client id: /));
    }
  });
});
