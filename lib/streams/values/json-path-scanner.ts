import { truncated } from '../../base/errors.ts';
import { StreamFailure } from './values.ts';

const SPACE = /\s*/y;
const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy;
const INTEGER = /-?\d{1,15}/y;
const NUMBER = /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };

/** Maximum nesting of brackets and filters in a path. */
const MAX_LEVELS = 50;

/** Reads the text of a JSON path from left to right. */
export class PathScanner {
  readonly text: string;
  at = 0;
  #level = 0;

  constructor(text: string) {
    this.text = text;
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  skipSpace(): void {
    this.#match(SPACE);
  }

  /** Consume a text if it is next. */
  takes(text: string): boolean {
    if (!this.text.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  /** Skip white space and consume a text. @throws StreamFailure if it is not next */
  expect(text: string): void {
    this.skipSpace();
    if (!this.takes(text)) throw this.failure(`expected ${text}`);
  }

  name(): string | undefined {
    return this.#match(NAME);
  }

  integer(): number | undefined {
    const digits = this.#match(INTEGER);
    return digits === undefined ? undefined : Number(digits);
  }

  number(): number | undefined {
    const digits = this.#match(NUMBER);
    return digits === undefined ? undefined : Number(digits);
  }

  /**
   * Consume a string in single or double quotes.
   * @returns undefined if there is none
   * @throws StreamFailure if it is not closed
   */
  string(): string | undefined {
    const quote = this.text[this.at];
    if (quote !== '"' && quote !== "'") return undefined;
    let text = '';
    for (let at = this.at + 1; at < this.text.length; at++) {
      const character = this.text[at];
      if (character === quote) {
        this.at = at + 1;
        return text;
      }
      if (character !== '\\') text += character;
      else {
        at++;
        const escaped = this.text[at] ?? '';
        if (escaped === 'u' && /^[0-9a-fA-F]{4}$/.test(this.text.slice(at + 1, at + 5))) {
          text += String.fromCharCode(Number.parseInt(this.text.slice(at + 1, at + 5), 16));
          at += 4;
        } else text += ESCAPES[escaped] ?? escaped;
      }
    }
    throw this.failure('the string is not closed');
  }

  /** Read a part one level deeper. @throws StreamFailure for too many levels */
  nested<T>(read: () => T): T {
    if (this.#level >= MAX_LEVELS) throw this.failure(`there are more than ${MAX_LEVELS} levels`);
    this.#level++;
    const result = read();
    this.#level--;
    return result;
  }

  failure(reason: string): StreamFailure {
    const text = truncated(this.text, 100);
    return new StreamFailure(`invalid JSON path ${text}: ${reason} at character ${this.at + 1}`);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return undefined;
    this.at = pattern.lastIndex;
    return found[0];
  }
}
