import { StreamFailure } from '../values/values.ts';

/** Most elements of an array that a function makes. */
export const MOST_ELEMENTS = 1_000_000;
/** Most characters of a string, or bytes, that a function makes from something shorter. */
export const MOST_CHARACTERS = 1_048_576;

/** @throws StreamFailure if a function makes too long an array */
export function checkElements(count: number): void {
  if (count > MOST_ELEMENTS) throw new StreamFailure(`the result has more than ${MOST_ELEMENTS} elements`);
}

/** @throws StreamFailure if a function makes too long a string */
export function checkCharacters(count: number): void {
  if (count > MOST_CHARACTERS) throw new StreamFailure(`the result has more than ${MOST_CHARACTERS} characters`);
}

/** Makes a string of parts up to the bound. */
export class TextParts {
  readonly #parts: string[] = [];
  #length = 0;

  /** @throws StreamFailure if the string would be too long */
  add(part: string): void {
    this.#length += part.length;
    checkCharacters(this.#length);
    this.#parts.push(part);
  }

  toString(): string {
    return this.#parts.join('');
  }
}
