/** Longer texts of clients are cut where many of them are kept. */
const MAX_CHARACTERS = 256;

/** The beginning of a text, as a string of its own: a slice would keep the whole text in memory. */
export function cut(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  return Buffer.from(text.slice(0, MAX_CHARACTERS), 'utf16le').toString('utf16le');
}
