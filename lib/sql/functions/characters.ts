/** Text in which each character is one UTF-16 unit and none combines with another. */
const SIMPLE = /^[\x20-\x7e]*$/;

/**
 * UTF-16 units that are segmented at once: each step of `Intl.Segmenter` takes time proportional to its whole input.
 */
const WINDOW = 256;

const segmenter = new Intl.Segmenter();

/** True if the characters of a text are its units, and are found without segmentation. */
export function isSimple(text: string): boolean {
  return SIMPLE.test(text);
}

/** The characters of a text as a reader sees them (grapheme clusters), in time proportional to the text. */
export function charactersOf(text: string): readonly string[] {
  if (SIMPLE.test(text)) return text.split('');
  const characters: string[] = [];
  let start = 0;
  while (start < text.length) {
    const window = windowOf(text, start, WINDOW);
    const segments = Array.from(segmenter.segment(window), ({ segment }) => segment);
    // the last one may continue beyond the window
    if (start + window.length < text.length) segments.pop();
    if (segments.length === 0) segments.push(longCharacter(text, start));
    for (const segment of segments) {
      characters.push(segment);
      start += segment.length;
    }
  }
  return characters;
}

/** Number of characters. */
export function lengthOf(text: string): number {
  return SIMPLE.test(text) ? text.length : charactersOf(text).length;
}

/** The characters from one index up to, but not including, another. */
export function partOf(text: string, from: number, to: number): string {
  return SIMPLE.test(text) ? text.slice(from, to) : charactersOf(text).slice(from, to).join('');
}

/** A character that is longer than a window. */
function longCharacter(text: string, start: number): string {
  for (let size = WINDOW * 2; ; size *= 2) {
    const window = windowOf(text, start, size);
    const first = segmenter.segment(window).containing(0)?.segment ?? window;
    if (first.length < window.length || start + window.length === text.length) return first;
  }
}

/** A part of a text that does not end inside a surrogate pair. */
function windowOf(text: string, start: number, size: number): string {
  const last = text.charCodeAt(start + size - 1);
  return text.slice(start, start + size + (last >= 0xd800 && last < 0xdc00 ? 1 : 0));
}
