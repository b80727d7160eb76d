import { decodeEscapes } from './escapes.ts';
import type { Lexis } from './lexis.ts';
import { SqlError } from './sql-error.ts';
import { floatOf, MAX_DIGITS, type Value } from './values.ts';

/** Maximum length of a statement in characters. */
export const MAX_CHARACTERS = 65_536;

export interface Token {
  /** `word`: a name or a keyword; `quoted`: a name in quotes. */
  readonly type: 'word' | 'quoted' | 'string' | 'number' | 'symbol' | 'end';
  /** The content: strings and names without quotes; symbols in a single spelling for each meaning. */
  readonly text: string;
  /** The value of a number. */
  readonly value?: Value;
  readonly start: number;
  readonly end: number;
}

const ZERO = 0x30;
const NINE = 0x39;
const POINT = 0x2e;
const SLASH = 0x2f;
const NUMBER_LIKE = /[\p{L}\p{N}_.]*/uy;

/** Reads the tokens of a statement one by one. */
export class Lexer {
  readonly text: string;
  readonly #lexis: Lexis;
  #at = 0;

  /** @throws SqlError */
  constructor(text: string, lexis: Lexis) {
    this.text = text;
    this.#lexis = lexis;
    if (text.length > MAX_CHARACTERS)
      throw new SqlError(`the statement has ${text.length} characters; the maximum is ${MAX_CHARACTERS}`, text, 0);
  }

  /** @throws SqlError */
  next(): Token {
    const { space, word, symbol, quotes } = this.#lexis;
    this.#skip(space);
    const { text } = this;
    const start = this.#at;
    if (start >= text.length) return { type: 'end', text: '', start, end: start };
    const first = text.charCodeAt(start);
    const quoted = quotes[first];
    if (quoted !== undefined) return this.#quoted(text[start], quoted);
    if (first >= ZERO && first <= NINE) return this.#number();
    if (this.#skip(word)) return { type: 'word', text: text.slice(start, this.#at), start, end: this.#at };
    if (first === POINT || first === SLASH) {
      if (this.#isFraction()) return this.#number();
      this.#refuseOpenComment();
    }
    if (this.#skip(symbol)) {
      const found = text.slice(start, this.#at);
      return { type: 'symbol', text: found === '<>' ? '!=' : found, start, end: this.#at };
    }
    const character = String.fromCodePoint(text.codePointAt(start) as number);
    const hint = this.#lexis.characterHints[character];
    throw new SqlError(`unexpected character ${JSON.stringify(character)}`, text, start, hint);
  }

  /** The next token, without consuming it. @throws SqlError */
  peek(): Token {
    const at = this.#at;
    const token = this.next();
    this.#at = at;
    return token;
  }

  /** Read the key that follows a dot or an arrow. @throws SqlError */
  key(): Token {
    const start = this.#at;
    if (!this.#skip(this.#lexis.key)) return this.next();
    return { type: 'word', text: this.text.slice(start, this.#at), start, end: this.#at };
  }

  /** Check whether a number that begins with its decimal point is next. */
  #isFraction(): boolean {
    const { text } = this;
    return this.#lexis.startsWithPoint && text[this.#at] === '.' && /\d/.test(text[this.#at + 1] ?? '');
  }

  #refuseOpenComment(): void {
    if (this.#lexis.hasBlockComments && this.text.startsWith('/*', this.#at))
      throw new SqlError('the comment is not closed', this.text, this.#at, 'a comment ends with */');
  }

  #quoted(quote: string, type: 'string' | 'quoted'): Token {
    const hasEscapes = type === 'string' && this.#lexis.hasEscapes;
    const start = this.#at;
    const end = hasEscapes ? this.#closing(quote) : this.#closingDoubled(quote);
    if (end === -1) throw new SqlError(`the quote ${quote} is not closed`, this.text, start);
    this.#at = end + 1;
    const content = this.text.slice(start + 1, end);
    const text = hasEscapes
      ? decodeEscapes(content, (offset, sequence) => this.#wrongEscape(start + 1 + offset, sequence))
      : content.replaceAll(quote + quote, quote);
    return { type, text, start, end: end + 1 };
  }

  /** The offset of the closing quote; a doubled quote is part of the content. */
  #closingDoubled(quote: string): number {
    const { text } = this;
    let end = text.indexOf(quote, this.#at + 1);
    while (end !== -1 && text[end + 1] === quote) end = text.indexOf(quote, end + 2);
    return end;
  }

  /** The offset of the closing quote; a quote after a backslash is part of the content. */
  #closing(quote: string): number {
    const { text } = this;
    for (let at = this.#at + 1; at < text.length; at++)
      if (text[at] === '\\') at++;
      else if (text[at] === quote) return at;
    return -1;
  }

  #wrongEscape(start: number, sequence: string): SqlError {
    return new SqlError(`unknown escape ${sequence}`, this.text, start, 'a backslash is written \\\\');
  }

  #number(): Token {
    const { text } = this;
    const start = this.#at;
    this.#skip(this.#lexis.number);
    const end = this.#at;
    const number = text.slice(start, end);
    const next = text[end];
    const isRange = next === '.' && text[end + 1] === '.';
    if (next !== undefined && !isRange && /[\p{L}\p{N}_.]/u.test(next)) {
      this.#skip(NUMBER_LIKE);
      const wrong = text.slice(start, this.#at);
      throw new SqlError(`"${wrong}" is not a number`, text, start, this.#lexis.numberHint);
    }
    const value = numberOf(number);
    if (value === Infinity || end - start > MAX_DIGITS)
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

/** Integers of any size are exact. */
function numberOf(text: string): Value {
  const number = Number(text);
  if (/[.eE]/.test(text)) return floatOf(number);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}
