/** Letters with a meaning after a backslash. */
const LETTERS: Readonly<Record<string, string | undefined>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
  "'": "'"
};

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-7]{3})|([\s\S]))/g;
const LAST_CODE_POINT = 0x10_ffff;

/**
 * Replace the escapes of C and Go in the content of a string, such as `\n`, `\"`, `\u00e9` and `\x41`.
 * @param refuse makes the error for an unknown escape, from its offset and text
 * @throws that error
 */
export function decodeEscapes(content: string, refuse: (offset: number, sequence: string) => Error): string {
  if (!content.includes('\\')) return content;
  return content.replace(ESCAPE, (sequence, four, eight, two, octal, letter, offset: number) => {
    const hex = four ?? eight ?? two;
    const code = hex === undefined ? (octal === undefined ? undefined : parseInt(octal, 8)) : parseInt(hex, 16);
    if (code !== undefined && code <= LAST_CODE_POINT) return String.fromCodePoint(code);
    const character = code === undefined ? LETTERS[letter] : undefined;
    if (character === undefined) throw refuse(offset, sequence);
    return character;
  });
}
