import { SqlError } from './sql-error.ts';
import { floatOf, MOST_DIGITS, type Value } from './values.ts';

/** Most characters of a statement. */
export const MOST_CHARACTERS = 65_536;

export interface Token {
  /** `word`: a name or a keyword; `quoted`: in double quotes. */
  readonly type: 'word' | 'quoted' | 'string' | 'number' | 'symbol' | 'end';
  /** What it says: without quotes, and for symbols with one spelling for each meaning. */
  readonly text: string;
  /** The value of a number. */
  readonly value?: Value;
  readonly start: number;
  readonly end: number;
}

const SPACE = /(?:[ \t\r\n]|--[^\n]*)+/y;
const WORD = /\p{L}[\p{L}\p{N}_$@~]*/uy;
/** A key after a dot may begin with a digit or an underscore, and be a keyword. */
const KEY = /[\p{L}\p{N}_$@~]+/uy;
const NUMBER = /\d+(?:\.\d+(?:[eE][+-]?\d+)?)?/y;
const NUMBER_LIKE = /[\p{L}\p{N}_.]*/uy;
const SYMBOL = /<>|!=|<=|>=|=~|\.\.|[-+*/=<>(),.;[\]]/y;

/** Reads the tokens of a statement one after the other. */
export class Lexer {
  readonly text: string;
  #at = 0;

  /** @throws SqlError */
  constructor(text: string) {
    this.text = text;
    if (text.length > MOST_CHARACTERS)
      throw new SqlError(`the statement has ${text.length} characters, but ${MOST_CHARACTERS} are the most`, text, 0);
  }

  /** @throws SqlError */
  next(): Token {
    this.#skip(SPACE);
    const { text } = this;
    const start = this.#at;
    if (start >= text.length) return { type: 'end', text: '', start, end: start };
    const first = text.charCodeAt(start);
    if (first === 0x27 || first === 0x22) return this.#quoted(text[start]);
    if (first >= 0x30 && first <= 0x39) return this.#number();
    if (this.#skip(WORD)) return { type: 'word', text: text.slice(start, this.#at), start, end: this.#at };
    if (this.#skip(SYMBOL)) {
      const symbol = text.slice(start, this.#at);
      return { type: 'symbol', text: symbol === '<>' ? '!=' : symbol, start, end: this.#at };
    }
    const character = String.fromCodePoint(text.codePointAt(start) as number);
    const hint = CHARACTER_HINTS[character];
    throw new SqlError(`unexpected character ${JSON.stringify(character)}`, text, start, hint);
  }

  /** The token that comes after the last one that was read, which stays unread. @throws SqlError */
  peek(): Token {
    const at = this.#at;
    const token = this.next();
    this.#at = at;
    return token;
  }

  /** Read the key that follows a dot. @throws SqlError */
  key(): Token {
    const start = this.#at;
    if (!this.#skip(KEY)) return this.next();
    return { type: 'word', text: this.text.slice(start, this.#at), start, end: this.#at };
  }

  #quoted(quote: string): Token {
    const { text } = this;
    const start = this.#at;
    let end = text.indexOf(quote, start + 1);
    while (end !== -1 && text[end + 1] === quote) end = text.indexOf(quote, end + 2);
    if (end === -1) throw new SqlError(`the quote ${quote} is not closed`, text, start);
    this.#at = end + 1;
    const content = text.slice(start + 1, end).replaceAll(quote + quote, quote);
    return { type: quote === "'" ? 'string' : 'quoted', text: content, start, end: end + 1 };
  }

  #number(): Token {
    const { text } = this;
    const start = this.#at;
    this.#skip(NUMBER);
    const end = this.#at;
    const number = text.slice(start, end);
    const next = text[end];
    const isRange = next === '.' && text[end + 1] === '.';
    if (next !== undefined && !isRange && /[\p{L}\p{N}_.]/u.test(next)) {
      this.#skip(NUMBER_LIKE);
      const wrong = text.slice(start, this.#at);
      throw new SqlError(`"${wrong}" is not a number`, text, start, 'numbers are written 1, 1.5 or 1.5e3');
    }
    const value = numberOf(number);
    if (value === Infinity || end - start > MOST_DIGITS)
      throw new SqlError(`the number ${number.slice(0, 60)} is too large`, text, start);
    return { type: 'number', text: number, value, start, end };
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }
}

const CHARACTER_HINTS: Readonly<Record<string, string | undefined>> = {
  '`': 'names with other characters stand in double quotes: payload."a-b"',
  '#': 'topics need double quotes: FROM "a/#"',
  '|': 'join strings with +',
  '&': 'use AND, or bitand(a, b)',
  '%': 'use mod',
  '!': 'use NOT'
};

/** Integers of any size are exact. */
function numberOf(text: string): Value {
  const number = Number(text);
  if (text.includes('.')) return floatOf(number);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}
