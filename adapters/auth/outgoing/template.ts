import { InvalidInput } from '../../../lib/index.ts';

/** The values that can be inserted into a request, by the letter of the placeholder. */
export type Facts = Readonly<Record<string, string | Buffer | undefined>>;

/** The facts of some placeholders as an unambiguous string. */
export function credentialsOf(facts: Facts, letters: readonly string[]): string {
  return JSON.stringify(
    letters.map((letter) => {
      const value = facts[letter];
      return typeof value === 'object' ? value.toString('latin1') : value;
    })
  );
}

/** The letters of the placeholders, for error messages and checks. */
export const COMMON_PLACEHOLDERS = 'ucarpCdm';

/**
 * A string with placeholders (`%u`), ready to be filled. Values are inserted unchanged; the caller encodes the result.
 */
export class Template {
  /** Alternating text and letters, beginning with text. */
  readonly #parts: readonly string[];

  /** @throws InvalidInput OPTION_INVALID for an unknown placeholder */
  constructor(text: string, letters: string, field: string) {
    const parts = [''];
    for (let at = 0; at < text.length; at++) {
      const letter = text[at] === '%' ? text[++at] : undefined;
      if (letter === undefined && text[at] !== undefined) parts[parts.length - 1] += text[at];
      else if (letter === '%') parts[parts.length - 1] += '%';
      else if (letter !== undefined && letters.includes(letter)) parts.push(letter, '');
      else {
        const known = [...letters].map((one) => `%${one}`).join(' ');
        throw new InvalidInput(
          'OPTION_INVALID',
          field,
          `only the placeholders ${known}, and %% for a percent sign`,
          text
        );
      }
    }
    this.#parts = parts;
  }

  /** The letters of the placeholders in the template. */
  get letters(): readonly string[] {
    return this.#parts.filter((_, at) => at % 2 === 1);
  }

  /** The bytes of the filled template. A fact that the client does not have is empty. */
  fill(facts: Facts): Buffer {
    return Buffer.concat(
      this.#parts.map((part, at) => {
        const value = at % 2 === 0 ? part : (facts[part] ?? '');
        return typeof value === 'string' ? Buffer.from(value) : value;
      })
    );
  }

  /** Check whether the values of all placeholders satisfy a condition. */
  everyValue(facts: Facts, isGood: (value: string | Buffer) => boolean): boolean {
    return this.#parts.every((part, at) => at % 2 === 0 || isGood(facts[part] ?? ''));
  }
}
