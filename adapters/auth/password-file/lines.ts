/** A user of a password file, as written. */
export interface UserLine {
  /** The number of the line, from 1. */
  readonly number: number;
  readonly name: string;
  /** The password hash, followed by the SCRAM credentials. */
  readonly words: readonly string[];
}

/**
 * Read one line of a password file: `name:HASH`, followed by SCRAM credentials after spaces.
 * @returns undefined for an empty line or a comment, and for a line without a colon a user without words
 */
export function readLine(line: string, number: number): UserLine | undefined {
  const text = line.trim();
  if (text === '' || text.startsWith('#')) return undefined;
  const end = text.indexOf(':');
  if (end < 0) return { number, name: text, words: [] };
  const words = text.slice(end + 1).trim();
  return { number, name: text.slice(0, end).trim(), words: words === '' ? [] : words.split(/\s+/) };
}

/** Split text into lines that keep their line breaks. */
export function linesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\n)/);
}
