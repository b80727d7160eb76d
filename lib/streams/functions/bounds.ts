import { StreamFailure } from '../values/values.ts';

/** Maximum number of elements of an array that a function creates. */
export const MAX_ELEMENTS = 1_000_000;
/** Maximum length of a string, in characters, or of bytes that a function creates from a shorter value. */
export const MAX_CHARACTERS = 1_048_576;

/** @throws StreamFailure if a function would create too long an array */
export function checkElements(count: number): void {
  if (count > MAX_ELEMENTS) throw new StreamFailure(`the result has more than ${MAX_ELEMENTS} elements`);
}

/** @throws StreamFailure if a function would create too long a string */
export function checkCharacters(count: number): void {
  if (count > MAX_CHARACTERS) throw new StreamFailure(`the result has more than ${MAX_CHARACTERS} characters`);
}

/** Builds a string from parts up to the limit. */
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
