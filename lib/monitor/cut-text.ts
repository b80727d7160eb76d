/** Maximum length of strings of clients that are kept in large numbers; longer ones are cut. */
const MAX_CHARACTERS = 256;

/** The beginning of a string, as a separate string: a slice would keep the whole string in memory. */
export function cut(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  return Buffer.from(text.slice(0, MAX_CHARACTERS), 'utf16le').toString('utf16le');
}
