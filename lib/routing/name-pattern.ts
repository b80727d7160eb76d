// Names are compared without regular expressions, because a pattern comes from a person and names from clients: an
// expression such as `a*a*a*b` takes exponential time, and the text search of the language quadratic time. Each part
// between two asterisks is searched once from left to right (Knuth, Morris and Pratt), so the work is in proportion to
// the length of the name.

const STAR = '*';

/** A part of a pattern between asterisks. */
interface Part {
  readonly codes: Uint16Array;
  /** For each position: the length of the longest proper prefix of the part that ends there. */
  readonly borders: Uint16Array;
}

/**
 * A pattern of names. Without an asterisk it matches the names that begin with it; with asterisks, each of which stands for any characters,
 * it matches whole names. The letters A to Z match in either case.
 */
export class NamePattern {
  /** True if there is no asterisk. */
  readonly #isPrefix: boolean;
  readonly #first: Uint16Array;
  readonly #last: Uint16Array;
  readonly #middle: readonly Part[];

  /** @param text at most 65,535 characters */
  constructor(text: string) {
    const [first, ...others] = text.split(STAR).map(codesOf);
    this.#first = first;
    this.#isPrefix = others.length === 0;
    this.#last = others.pop() ?? new Uint16Array(0);
    this.#middle = others.filter(({ length }) => length > 0).map((codes) => ({ codes, borders: bordersOf(codes) }));
  }

  /** Number of characters that a match reads at most, for the work that it is. */
  reach({ length }: string): number {
    return this.#isPrefix ? Math.min(length, this.#first.length) : length;
  }

  /** Tell whether a name matches. */
  matches(name: string): boolean {
    const end = name.length - this.#last.length;
    let at = this.#first.length;
    if (at > end || !isAt(name, 0, this.#first)) return false;
    if (this.#isPrefix) return true;
    if (!isAt(name, end, this.#last)) return false;
    for (const part of this.#middle) {
      at = endOf(part, name, at, end);
      if (at < 0) return false;
    }
    return true;
  }
}

/** The code of a character; that of the small letter for A to Z. */
function folded(code: number): number {
  return code >= 65 && code <= 90 ? code + 32 : code;
}

function codesOf(text: string): Uint16Array {
  return Uint16Array.from({ length: text.length }, (_, at) => folded(text.charCodeAt(at)));
}

function bordersOf(codes: Uint16Array): Uint16Array {
  const borders = new Uint16Array(codes.length);
  let length = 0;
  for (let at = 1; at < codes.length; at++) {
    while (length > 0 && codes[at] !== codes[length]) length = borders[length - 1];
    if (codes[at] === codes[length]) length++;
    borders[at] = length;
  }
  return borders;
}

function isAt(name: string, from: number, codes: Uint16Array): boolean {
  for (let at = 0; at < codes.length; at++) if (folded(name.charCodeAt(from + at)) !== codes[at]) return false;
  return true;
}

/** The end of the first occurrence of a part between two positions of a name; -1: there is none. */
function endOf({ codes, borders }: Part, name: string, from: number, to: number): number {
  let length = 0;
  for (let at = from; at < to; at++) {
    const code = folded(name.charCodeAt(at));
    while (length > 0 && code !== codes[length]) length = borders[length - 1];
    if (code === codes[length]) length++;
    if (length === codes.length) return at + 1;
  }
  return -1;
}
