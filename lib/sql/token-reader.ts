import type { Dialect } from './dialect.ts';
import { Lexer, type Token } from './lexer.ts';
import { SqlError } from './sql-error.ts';

/** Reads the tokens of a statement for parsers, with one token of look-ahead. */
export class TokenReader {
  readonly dialect: Dialect;
  protected readonly lexer: Lexer;
  #token: Token;
  #previousEnd = 0;

  /** @throws SqlError */
  constructor(text: string, dialect: Dialect) {
    this.dialect = dialect;
    this.lexer = new Lexer(text, dialect.lexis);
    this.#token = this.lexer.next();
  }

  /** The text of the statement. */
  get text(): string {
    return this.lexer.text;
  }

  /** The next token, without consuming it. */
  get token(): Token {
    return this.#token;
  }

  /** End of the last token that was consumed. */
  get previousEnd(): number {
    return this.#previousEnd;
  }

  /** @throws SqlError */
  advance(): Token {
    const token = this.#token;
    this.#previousEnd = token.end;
    this.#token = this.lexer.next();
    return token;
  }

  /** Consume a dot or an arrow and the key that follows. @throws SqlError */
  takeKey(): Token {
    this.#token = this.lexer.key();
    const { type } = this.#token;
    if (type !== 'word' && type !== 'quoted' && type !== 'string')
      throw this.unexpected('a key', this.dialect.lexis.keyHint);
    return this.advance();
  }

  /** The next token in upper case if it is a keyword. */
  get keyword(): string | undefined {
    const { type, text } = this.#token;
    if (type !== 'word') return undefined;
    const upper = text.toUpperCase();
    return this.dialect.keywords.has(upper) ? upper : undefined;
  }

  /** True if the next token is a name: quoted, or a word that is not a keyword. */
  get isName(): boolean {
    const { type } = this.#token;
    return type === 'quoted' || (type === 'word' && this.keyword === undefined);
  }

  isSymbol(symbol: string): boolean {
    return this.#token.type === 'symbol' && this.#token.text === symbol;
  }

  /** Check whether the next token is the given word, which need not be a keyword. @param word in upper case */
  isWord(word: string): boolean {
    return this.#token.type === 'word' && this.#token.text.toUpperCase() === word;
  }

  /**
   * Consume a keyword, or another word that has a meaning here, if it is next. @param keyword in upper case @throws
   * SqlError
   */
  takeKeyword(keyword: string): boolean {
    if (!this.isWord(keyword)) return false;
    this.advance();
    return true;
  }

  /** Consume a symbol if it is next. @throws SqlError */
  takeSymbol(symbol: string): boolean {
    if (!this.isSymbol(symbol)) return false;
    this.advance();
    return true;
  }

  /** @throws SqlError */
  expectSymbol(symbol: string): void {
    if (!this.takeSymbol(symbol)) throw this.unexpected(`"${symbol}"`);
  }

  /** @throws SqlError */
  expectKeyword(keyword: string): void {
    if (!this.takeKeyword(keyword)) throw this.unexpected(keyword);
  }

  /** The error for a next token that is not allowed here. @param expected the tokens that are allowed */
  unexpected(expected: string, hint?: string): SqlError {
    const { type, text, start } = this.#token;
    const advice = hint ?? (type === 'word' ? this.dialect.wordHints[text.toUpperCase()] : this.#symbolHint(text));
    return this.errorAt(start, `syntax error before: ${this.found}: expected ${expected}`, advice);
  }

  /** The next token as shown in messages. */
  get found(): string {
    const { type, start, end } = this.#token;
    return type === 'end' ? 'the end of the statement' : JSON.stringify(this.lexer.text.slice(start, end));
  }

  #symbolHint(text: string): string | undefined {
    const before = this.lexer.text[this.#previousEnd - 1];
    if (text !== '.' || this.dialect.hasParts) return this.dialect.symbolHints[`${before}${text}`];
    return before === ')' ? HINT_OF_KEYS : HINT_OF_FRACTIONS;
  }

  errorAt(start: number, fault: string, hint?: string): SqlError {
    return new SqlError(fault, this.lexer.text, start, hint);
  }

  /** True if the next word has a meaning in other dialects and therefore cannot be an alias without AS. */
  get isForeignWord(): boolean {
    return this.#token.type === 'word' && this.dialect.wordHints[this.#token.text.toUpperCase()] !== undefined;
  }
}

const HINT_OF_FRACTIONS = 'a number has a digit before the point: 0.5';
const HINT_OF_KEYS = 'only columns and aliases have keys: json_decode(payload) AS p, p.a';
