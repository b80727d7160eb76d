import type { Dialect } from './dialect.ts';
import { Lexer, type Token } from './lexer.ts';
import { SqlError } from './sql-error.ts';
import type { Binary, BinaryOperator, Case, Expression, Literal, Path, Range, Step } from './tree.ts';

/** Most levels of an expression; each operator of a chain counts. */
const MOST_LEVELS = 500;
/** Longest list that a range makes. */
const LONGEST_RANGE = 10_000;

/** The binding powers of operators, from the weakest. */
export const PRECEDENCE: Readonly<Record<BinaryOperator | 'IN', number>> = {
  OR: 1,
  AND: 2,
  '=': 4,
  '!=': 4,
  '<': 4,
  '>': 4,
  '<=': 4,
  '>=': 4,
  '=~': 4,
  IN: 4,
  '+': 5,
  '-': 5,
  '*': 6,
  '/': 6,
  div: 6,
  mod: 6
};
/** NOT binds weaker than a comparison, a sign stronger than everything. */
export const NOT_PRECEDENCE = 3;
export const SIGN_PRECEDENCE = 7;
const COMPARING = 4;

/** What to write instead of words of other dialects. */
const WORD_HINTS: Readonly<Record<string, string | undefined>> = {
  IS: 'use is_null(x) or is_not_null(x)',
  NULL: 'use is_null(x) or is_not_null(x)',
  LIKE: 'use regex_match(x, pattern)',
  BETWEEN: 'use x >= a AND x <= b',
  DISTINCT: 'each event is evaluated by itself, so DISTINCT has no meaning',
  GROUP: 'each event is evaluated by itself, so GROUP BY has no meaning',
  ORDER: 'each event is evaluated by itself, so ORDER BY has no meaning',
  HAVING: 'use WHERE',
  LIMIT: 'each event is evaluated by itself, so LIMIT has no meaning',
  JOIN: 'a statement evaluates one event at a time; name several topics with commas',
  UNION: 'make one rule for each statement'
};

/** Parses the expressions of a statement, by precedence climbing. */
export class Parser {
  readonly dialect: Dialect;
  readonly #lexer: Lexer;
  #token: Token;
  #previousEnd = 0;
  #levels = 0;

  /** @throws SqlError */
  constructor(text: string, dialect: Dialect) {
    this.dialect = dialect;
    this.#lexer = new Lexer(text);
    this.#token = this.#lexer.next();
  }

  /** The next token, which is not consumed yet. */
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
    this.#token = this.#lexer.next();
    return token;
  }

  /** The keyword that comes next, in upper case. */
  get keyword(): string | undefined {
    const { type, text } = this.#token;
    if (type !== 'word') return undefined;
    const upper = text.toUpperCase();
    return this.dialect.keywords.has(upper) ? upper : undefined;
  }

  isSymbol(symbol: string): boolean {
    return this.#token.type === 'symbol' && this.#token.text === symbol;
  }

  /** Consume a keyword if it comes next. @throws SqlError */
  takeKeyword(keyword: string): boolean {
    if (this.keyword !== keyword) return false;
    this.advance();
    return true;
  }

  /** Consume a symbol if it comes next. @throws SqlError */
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

  /** The error that the next token is not what can stand here. @param expected what can */
  unexpected(expected: string, hint?: string): SqlError {
    const { type, text, start } = this.#token;
    const found =
      type === 'end' ? 'the end of the statement' : JSON.stringify(this.#lexer.text.slice(start, this.#token.end));
    const advice = hint ?? (type === 'word' ? WORD_HINTS[text.toUpperCase()] : this.#symbolHint(text));
    return this.errorAt(start, `syntax error before: ${found}: expected ${expected}`, advice);
  }

  #symbolHint(text: string): string | undefined {
    if (text !== '.') return undefined;
    return this.#lexer.text[this.#previousEnd - 1] === ')' ? HINT_OF_KEYS : HINT_OF_FRACTIONS;
  }

  errorAt(start: number, fault: string, hint?: string): SqlError {
    return new SqlError(fault, this.#lexer.text, start, hint);
  }

  /** Whether the next word has a meaning in other dialects, so that it is no alias without AS. */
  get isForeignWord(): boolean {
    return this.#token.type === 'word' && WORD_HINTS[this.#token.text.toUpperCase()] !== undefined;
  }

  /**
   * Parse an expression of operators that bind at least this strongly.
   * @throws SqlError
   */
  expression(weakest = 0): Expression {
    const levels = this.#levels;
    this.#deeper();
    let left = this.#operand();
    for (;;) {
      const operator = this.#operator();
      if (operator === undefined || PRECEDENCE[operator] < weakest) break;
      this.#deeper();
      left = operator === 'IN' ? this.#membership(left) : this.#binary(left, operator, weakest);
    }
    this.#levels = levels;
    return left;
  }

  #deeper(): void {
    if (++this.#levels > MOST_LEVELS)
      throw this.errorAt(this.#token.start, `the expression has more than ${MOST_LEVELS} levels`);
  }

  #binary(left: Expression, operator: BinaryOperator, weakest: number): Binary {
    this.advance();
    const precedence = PRECEDENCE[operator];
    const right = this.expression(precedence + 1);
    if (precedence === COMPARING) this.#refuseChain(weakest);
    return { type: 'binary', operator, left, right, start: left.start, end: right.end };
  }

  /** `a = b = c` has no meaning. */
  #refuseChain(weakest: number): void {
    const next = this.#operator();
    if (next !== undefined && PRECEDENCE[next] === COMPARING && COMPARING >= weakest)
      throw this.unexpected('AND, OR or the end of the condition', 'comparisons cannot be chained: a = b AND b = c');
  }

  #membership(subject: Expression): Expression {
    const isNegated = this.takeKeyword('NOT');
    this.expectKeyword('IN');
    this.expectSymbol('(');
    const items = this.#list(')');
    if (items.length === 0) throw this.errorAt(this.#previousEnd - 1, 'the list of IN is empty');
    return { type: 'in', isNegated, subject, items, start: subject.start, end: this.#previousEnd };
  }

  /** The operator that comes next, if one does. */
  #operator(): BinaryOperator | 'IN' | undefined {
    const { type, text } = this.#token;
    if (type === 'symbol')
      return (SYMBOL_OPERATORS as ReadonlySet<string>).has(text) ? (text as BinaryOperator) : undefined;
    if (type !== 'word') return undefined;
    const upper = text.toUpperCase();
    if (upper === 'AND' || upper === 'OR' || upper === 'IN') return upper;
    if (upper === 'NOT') return 'IN';
    if (upper !== 'DIV' && upper !== 'MOD') return undefined;
    return this.#isBeforeOperand() ? (upper.toLowerCase() as 'div' | 'mod') : undefined;
  }

  /** Whether an operand follows the next token; otherwise `div` and `mod` are aliases. */
  #isBeforeOperand(): boolean {
    const { type, text } = this.#lexer.peek();
    if (type === 'symbol') return ['(', '[', '+', '-'].includes(text);
    const upper = text.toUpperCase();
    return type !== 'end' && (type !== 'word' || upper === 'CASE' || !this.dialect.keywords.has(upper));
  }

  #operand(): Expression {
    const { type, text, start } = this.#token;
    switch (type) {
      case 'number':
      case 'string':
        return this.#literal();
      case 'quoted':
        return this.path();
      case 'symbol':
        if (text === '-' || text === '+') return this.#sign(text, start);
        if (text === '(') return this.#parenthesized();
        if (text === '[') return this.#listOrRange();
        break;
      case 'word':
        return this.#wordOperand();
    }
    throw this.unexpected('an expression');
  }

  #wordOperand(): Expression {
    const { text, start } = this.#token;
    const keyword = this.keyword;
    if (keyword === 'NOT') {
      this.advance();
      const operand = this.expression(NOT_PRECEDENCE);
      return { type: 'unary', operator: 'NOT', operand, start, end: operand.end };
    }
    if (keyword === 'CASE') return this.#case();
    if (keyword !== undefined) throw this.unexpected('an expression');
    const next = this.#lexer.text.charCodeAt(this.#token.end);
    if (/^(true|false)$/i.test(text) && next !== 0x2e && next !== 0x28) {
      const { end } = this.advance();
      return { type: 'literal', value: text.toLowerCase() === 'true', start, end };
    }
    return this.#pathOrCall();
  }

  #literal(): Literal {
    const { type, text, value, start, end } = this.advance();
    return { type: 'literal', value: type === 'number' ? value : text, start, end };
  }

  #sign(operator: '+' | '-', start: number): Expression {
    this.advance();
    const operand = this.expression(SIGN_PRECEDENCE);
    return { type: 'unary', operator, operand, start, end: operand.end };
  }

  #parenthesized(): Expression {
    this.advance();
    const inner = this.expression();
    this.expectSymbol(')');
    return inner;
  }

  #pathOrCall(): Expression {
    const { start } = this.#token;
    const name = this.#token.text;
    const next = this.#lexer.peek();
    if (next.type !== 'symbol' || next.text !== '(') return this.path();
    this.advance();
    this.advance();
    const args = this.#list(')');
    return { type: 'call', name, args, start, end: this.#previousEnd };
  }

  /** Expressions up to a closing symbol, which is consumed. */
  #list(close: string): Expression[] {
    const items: Expression[] = [];
    if (this.takeSymbol(close)) return items;
    do items.push(this.expression());
    while (this.takeSymbol(','));
    if (!this.takeSymbol(close)) throw this.unexpected(`"," or "${close}"`);
    return items;
  }

  #listOrRange(): Expression {
    const { start } = this.advance();
    if (this.takeSymbol(']')) return { type: 'list', items: [], start, end: this.#previousEnd };
    const first = this.expression();
    if (this.isSymbol('..')) return this.#range(first, start);
    const items = [first];
    while (this.takeSymbol(',')) items.push(this.expression());
    if (!this.takeSymbol(']')) throw this.unexpected('"," or "]"');
    return { type: 'list', items, start, end: this.#previousEnd };
  }

  #range(first: Expression, start: number): Range {
    const from = this.#bound(first);
    this.advance();
    const to = this.#bound(this.expression());
    this.expectSymbol(']');
    if (to - from >= LONGEST_RANGE) throw this.errorAt(start, `the range has more than ${LONGEST_RANGE} elements`);
    return { type: 'range', from, to, start, end: this.#previousEnd };
  }

  /** A bound of a range or a slice: an integer, with or without a sign. */
  #bound(expression: Expression): number {
    const isNegative = expression.type === 'unary' && expression.operator === '-';
    const inner = expression.type === 'unary' && expression.operator !== 'NOT' ? expression.operand : expression;
    if (inner.type !== 'literal' || !Number.isSafeInteger(inner.value))
      throw this.errorAt(expression.start, 'the bounds of a range are integers');
    return isNegative ? -(inner.value as number) : (inner.value as number);
  }

  /** Parse a column and the steps below it. @throws SqlError */
  path(): Path {
    const { start } = this.#token;
    const { text: name } = this.advance();
    const steps: Step[] = [];
    for (;;) {
      if (this.isSymbol('.')) steps.push({ type: 'key', key: this.#key() });
      else if (this.isSymbol('[')) steps.push(this.#index());
      else break;
      if (steps[steps.length - 1].type === 'slice') break;
      this.#refuseDepth(steps.length);
    }
    if (this.isSymbol('.')) throw this.unexpected('an operator', 'a slice is the last step of a path');
    return { type: 'path', name, steps, start, end: this.#previousEnd };
  }

  #refuseDepth(steps: number): void {
    if (steps > MOST_LEVELS) throw this.errorAt(this.#token.start, `the path has more than ${MOST_LEVELS} steps`);
  }

  /** The key after a dot. */
  #key(): string {
    this.#token = this.#lexer.key();
    const { type } = this.#token;
    if (type !== 'word' && type !== 'quoted' && type !== 'string')
      throw this.unexpected('a key', 'keys with other characters stand in quotes: payload."a b"');
    return this.advance().text;
  }

  #index(): Step {
    this.advance();
    const index = this.expression();
    if (this.takeSymbol('..')) {
      const from = this.#bound(index);
      const last = this.expression();
      const to = this.#bound(last);
      if (from === 0 || to === 0)
        throw this.errorAt(
          from === 0 ? index.start : last.start,
          'a bound of a slice is 0',
          'the first element has the index 1'
        );
      this.expectSymbol(']');
      return { type: 'slice', from, to };
    }
    if (!this.takeSymbol(']')) throw this.unexpected('"]"');
    return isMinusZero(index) ? { type: 'index', index, append: true } : { type: 'index', index };
  }

  #case(): Case {
    const { start } = this.advance();
    const subject = this.keyword === 'WHEN' ? undefined : this.expression();
    const branches: { when: Expression; result: Expression }[] = [];
    while (this.takeKeyword('WHEN')) {
      const when = this.expression();
      this.expectKeyword('THEN');
      branches.push({ when, result: this.expression() });
    }
    if (branches.length === 0) throw this.unexpected('WHEN');
    const otherwise = this.takeKeyword('ELSE') ? this.expression() : undefined;
    this.expectKeyword('END');
    return {
      type: 'case',
      ...(subject === undefined ? {} : { subject }),
      branches,
      ...(otherwise === undefined ? {} : { otherwise }),
      start,
      end: this.#previousEnd
    };
  }
}

function isMinusZero(index: Expression): boolean {
  return (
    index.type === 'unary' && index.operator === '-' && index.operand.type === 'literal' && index.operand.value === 0
  );
}

const SYMBOL_OPERATORS: ReadonlySet<BinaryOperator> = new Set([
  '=',
  '!=',
  '<',
  '>',
  '<=',
  '>=',
  '=~',
  '+',
  '-',
  '*',
  '/'
]);

const HINT_OF_FRACTIONS = 'a number has a digit before the point: 0.5';
const HINT_OF_KEYS = 'only columns and aliases have keys: json_decode(payload) AS p, p.a';
