/** The 61 characters that stand for a value of 6 bits; the values 61, 62 and 63 are `9A`, `9B` and `9C`. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678';
const ESCAPE = '9';

function letterOf(value: number): string {
  return value < LETTERS.length ? LETTERS[value] : ESCAPE + 'ABC'[value - LETTERS.length];
}

/**
 * Encode bytes as the setting `encode_payload = base62` does: letters and digits only. It is a form of Base64: 6 bits
 * make a character, or two for the three highest values; the last character has the remaining 2 or 4 bits. There is no
 * padding.
 */
export function encodeBase62(bytes: Uint8Array): string {
  let text = '';
  let at = 0;
  for (; at + 3 <= bytes.length; at += 3) {
    const bits = (bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2];
    text += letterOf(bits >> 18) + letterOf((bits >> 12) & 63) + letterOf((bits >> 6) & 63) + letterOf(bits & 63);
  }
  const left = bytes.length - at;
  if (left === 1) text += letterOf(bytes[at] >> 2) + letterOf(bytes[at] & 3);
  if (left === 2) {
    const bits = (bytes[at] << 8) | bytes[at + 1];
    text += letterOf(bits >> 10) + letterOf((bits >> 4) & 63) + letterOf(bits & 15);
  }
  return text;
}

/**
 * Decode a result of `encodeBase62`.
 * @throws RangeError for any other string
 */
export function decodeBase62(text: string): Buffer {
  const values: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const isEscape = text[at] === ESCAPE;
    const value = isEscape ? 'ABC'.indexOf(text[++at]) : LETTERS.indexOf(text[at]);
    if (value < 0 || at >= text.length) throw new RangeError(`not base62: "${text[at] ?? ''}" at ${at}`);
    values.push(isEscape ? value + LETTERS.length : value);
  }
  const length = Math.floor((values.length * 6) / 8);
  const bytes = Buffer.alloc(length);
  let bits = 0;
  let count = 0;
  let at = 0;
  for (const [index, value] of values.entries()) {
    const isLast = index === values.length - 1;
    const take = isLast && values.length % 4 !== 0 ? length * 8 - index * 6 : 6;
    bits = (bits << take) | (value & ((1 << take) - 1));
    count += take;
    while (count >= 8) {
      count -= 8;
      bytes[at++] = (bits >> count) & 255;
    }
  }
  return bytes;
}
