import { InvalidInput } from '../../../lib/index.ts';

/** The facts of a client that a query may contain, by the letter of the placeholder; undefined if the client does not have the fact. */
export type Facts = Readonly<Record<Letter, string | undefined>>;

/** The letters of the placeholders: user name, client id, IP address, common name and subject of the client certificate. */
export type Letter = 'u' | 'c' | 'a' | 'C' | 'd';

/** A row of a table, a document, or the fields of a key. */
export type DatabaseRow = Readonly<Record<string, unknown>>;

/** A query with placeholders, ready to be executed. */
export interface Lookup {
  /** The placeholders that occur: the rows depend only on their facts. */
  readonly letters: readonly Letter[];
  /** @throws or rejects with an error of the driver; Error if the answer does not fit this kind of query */
  find(facts: Facts): Promise<readonly DatabaseRow[]>;
}

/** The maximum number of access rules in an answer. */
export const MAX_RULES = 10_000;

const PLACEHOLDER = /%(.?)/gsu;
const LETTERS = 'ucaCd';
export const KNOWN_PLACEHOLDERS = '%u, %c, %a, %C and %d, and %% for a percent sign';

export function isLetter(text: string): text is Letter {
  return text.length === 1 && LETTERS.includes(text);
}

/** A string of a query that may contain one placeholder, whose value remains a part of this string. */
export class TextTemplate {
  readonly letter: Letter | undefined;
  readonly #before: string;
  readonly #after: string;

  /**
   * @throws InvalidInput OPTION_INVALID for an unknown placeholder, and for several: the boundary between values would
   * be ambiguous
   */
  constructor(text: string, field: string) {
    const parts: string[] = [''];
    let end = 0;
    for (const found of text.matchAll(PLACEHOLDER)) {
      parts[parts.length - 1] += text.slice(end, found.index);
      end = found.index + found[0].length;
      if (found[1] === '%') parts[parts.length - 1] += '%';
      else if (isLetter(found[1])) parts.push(found[1], '');
      else throw new InvalidInput('OPTION_INVALID', field, `only the placeholders ${KNOWN_PLACEHOLDERS}`, text);
    }
    parts[parts.length - 1] += text.slice(end);
    if (parts.length > 3)
      throw new InvalidInput('OPTION_INVALID', field, 'at most one placeholder in each string', text);
    [this.#before, , this.#after = ''] = parts;
    this.letter = parts[1] as Letter | undefined;
  }

  /** Insert the fact, which the client must have. */
  fill(facts: Facts): string {
    return this.letter === undefined ? this.#before : `${this.#before}${facts[this.letter]}${this.#after}`;
  }
}

/** Check whether a client has all facts of some placeholders. */
export function hasAll(facts: Facts, letters: readonly Letter[]): boolean {
  return letters.every((letter) => facts[letter] !== undefined);
}

/**
 * Check that a function of the app has returned a list of rows.
 * @throws Error
 */
export function rowsOf(answer: unknown, name: string): readonly DatabaseRow[] {
  if (Array.isArray(answer) && answer.every((row) => typeof row === 'object' && row !== null)) return answer;
  throw new Error(`the function "${name}" must return a list of objects`);
}
