// One parser for the expressions of both dialects. It asks the dialect what is possible (`hasParts`, `hasOver`,
// `precedence`, ...) and never which dialect it is; grammars of statements are built on it in other files. Levels are
// counted for each operator and each nested expression, because everything that walks a tree recurses; a chain of
// operators is as deep as it is long. Nodes have their place in the text, from which error messages and the names of
// fields without an alias are taken.

import { negate } from './arithmetic.ts';
import { COMPARING, NOT_PRECEDENCE, type Operator, type Predicate, SIGN_PRECEDENCE } from './dialect.ts';
import { TokenReader } from './token-reader.ts';
import type { Access, Binary, Call, Case, Expression, Literal, Over, Path, Range, Step, Wildcard } from './tree.ts';

/** Maximum nesting of an expression; each operator of a chain counts. */
export const MAX_LEVELS = 500;
/** Maximum length of the list that a range creates. */
const MAX_RANGE = 10_000;

/** Parses the expressions of a statement, by precedence climbing. */
export class Parser extends TokenReader {
  #levels = 0;

  /**
   * Parse an expression whose operators bind at least as strongly as `weakest`.
   * @throws SqlError
   */
  expression(weakest = 0): Expression {
    const levels = this.#levels;
    this.#deeper();
    let left = this.#operand();
    for (;;) {
      const operator = this.#operator();
      if (operator === undefined || this.#strength(operator) < weakest) break;
      this.#deeper();
      left =
        operator === 'IN' || operator === 'BETWEEN' || operator === 'LIKE'
          ? this.#predicate(left)
          : this.#binary(left, operator, weakest);
    }
    this.#levels = levels;
    return left;
  }

  #strength(operator: Operator): number {
    return this.dialect.precedence.get(operator) ?? 0;
  }

  #deeper(): void {
    if (++this.#levels > MAX_LEVELS)
      throw this.errorAt(this.token.start, `the expression has more than ${MAX_LEVELS} levels`);
  }

  #binary(left: Expression, operator: Exclude<Operator, Predicate>, weakest: number): Binary {
    this.advance();
    const precedence = this.#strength(operator);
    const right = this.expression(precedence + 1);
    if (precedence === COMPARING && !this.dialect.chainsComparisons) this.#refuseChain(weakest);
    return { type: 'binary', operator, left, right, start: left.start, end: right.end };
  }

  /** Refuse `a = b = c`, which has no meaning. */
  #refuseChain(weakest: number): void {
    const next = this.#operator();
    if (next !== undefined && this.#strength(next) === COMPARING && COMPARING >= weakest)
      throw this.unexpected('AND, OR or the end of the condition', 'comparisons cannot be chained: a = b AND b = c');
  }

  /** IN, BETWEEN or LIKE, with or without NOT. */
  #predicate(subject: Expression): Expression {
    const isNegated = this.takeKeyword('NOT');
    const { start } = subject;
    const { precedence } = this.dialect;
    if (precedence.has('BETWEEN') && this.takeKeyword('BETWEEN')) {
      const low = this.expression(COMPARING + 1);
      this.expectKeyword('AND');
      const high = this.expression(COMPARING + 1);
      return { type: 'between', isNegated, subject, low, high, start, end: high.end };
    }
    if (precedence.has('LIKE') && this.takeKeyword('LIKE')) {
      const pattern = this.expression(COMPARING + 1);
      return { type: 'like', isNegated, subject, pattern, start, end: pattern.end };
    }
    this.expectKeyword('IN');
    if (this.dialect.hasInArray && !this.isSymbol('(')) {
      const array = this.#operand();
      return { type: 'in', isNegated, subject, items: [array], isArray: true, start, end: array.end };
    }
    this.expectSymbol('(');
    const items = this.#list(')');
    if (items.length === 0) throw this.errorAt(this.previousEnd - 1, 'the list of IN is empty');
    return { type: 'in', isNegated, subject, items, start, end: this.previousEnd };
  }

  /** The next token as an operator, if it is one. */
  #operator(): Operator | undefined {
    const { type, text } = this.token;
    const { precedence, wordOperators } = this.dialect;
    if (type === 'symbol') return precedence.has(text) ? (text as Operator) : undefined;
    if (type !== 'word') return undefined;
    const operator = wordOperators.get(text.toUpperCase());
    if (operator !== 'div' && operator !== 'mod') return operator;
    return this.#isBeforeOperand() ? operator : undefined;
  }

  /** Check whether an operand follows the next token; otherwise `div` and `mod` are aliases. */
  #isBeforeOperand(): boolean {
    const { type, text } = this.lexer.peek();
    if (type === 'symbol') return ['(', '[', '+', '-'].includes(text);
    const upper = text.toUpperCase();
    return type !== 'end' && (type !== 'word' || upper === 'CASE' || !this.dialect.keywords.has(upper));
  }

  #operand(): Expression {
    const operand = this.#value();
    return this.dialect.hasParts && operand.type !== 'literal' ? this.#access(operand) : operand;
  }

  /** Parse the steps below a value. */
  #access(subject: Expression): Expression {
    const below = this.#steps();
    if (below.length === 0) return subject;
    const { start } = subject;
    const steps = subject.type === 'path' || subject.type === 'access' ? [...subject.steps, ...below] : below;
    this.#refuseDepth(steps.length);
    if (subject.type === 'path') return { ...subject, steps, end: this.previousEnd };
    const inner = subject.type === 'access' ? subject.subject : subject;
    return { type: 'access', subject: inner, steps, start, end: this.previousEnd } satisfies Access;
  }

  #value(): Expression {
    const { type, text, start } = this.token;
    switch (type) {
      case 'number':
      case 'string':
        return this.#literal();
      case 'quoted':
        return this.path();
      case 'symbol':
        if (text === '-' || text === '+') return this.#sign(text, start);
        if (text === '(') return this.#parenthesized();
        if (text === '[' && this.dialect.hasLists) return this.#listOrRange();
        break;
      case 'word':
        return this.#wordOperand();
    }
    throw this.unexpected('an expression');
  }

  #wordOperand(): Expression {
    const { text, start } = this.token;
    const keyword = this.keyword;
    if (keyword === 'NOT' && this.dialect.hasNot) {
      this.advance();
      const operand = this.expression(NOT_PRECEDENCE);
      return { type: 'unary', operator: 'NOT', operand, start, end: operand.end };
    }
    if (keyword === 'CASE') return this.#case();
    if (keyword !== undefined) throw this.unexpected('an expression');
    const next = this.lexer.text.charCodeAt(this.token.end);
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
    if (operator === '-' && this.token.type === 'number' && this.dialect.hasSignedNumbers) {
      const { value, end } = this.advance();
      return { type: 'literal', value: negate(value), start, end };
    }
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
    const { start } = this.token;
    const name = this.token.text;
    const next = this.lexer.peek();
    if (next.type !== 'symbol' || next.text !== '(') return this.path();
    this.advance();
    this.advance();
    const args = this.#list(')');
    const call: Call = { type: 'call', name, args, start, end: this.previousEnd };
    const over = this.takeOver();
    return over === undefined ? call : { ...call, over, end: this.previousEnd };
  }

  /** Parse `OVER (PARTITION BY a, b WHEN c)` if it comes next. @throws SqlError */
  takeOver(): Over | undefined {
    if (!this.dialect.hasOver || !this.takeKeyword('OVER')) return undefined;
    this.expectSymbol('(');
    const partitionBy = this.#partition();
    const when = this.takeKeyword('WHEN') ? this.expression() : undefined;
    if (partitionBy.length === 0 && when === undefined) throw this.unexpected('PARTITION BY or WHEN');
    this.expectSymbol(')');
    return { partitionBy, ...(when === undefined ? {} : { when }) };
  }

  #partition(): readonly Expression[] {
    if (!this.takeKeyword('PARTITION')) return [];
    this.expectKeyword('BY');
    const items = [this.expression()];
    while (this.takeSymbol(',')) items.push(this.expression());
    return items;
  }

  /** Parse `*` or `demo.*` if it comes next. @throws SqlError */
  takeWildcard(): Wildcard | undefined {
    const { start, end, text } = this.token;
    if (!this.dialect.hasWildcards) return undefined;
    if (this.takeSymbol('*')) return { type: 'wildcard', start, end };
    if (!this.isName) return undefined;
    ALL_OF.lastIndex = end;
    if (!ALL_OF.test(this.lexer.text)) return undefined;
    for (let tokens = 0; tokens < 3; tokens++) this.advance();
    return { type: 'wildcard', stream: text, start, end: this.previousEnd };
  }

  /** Parse expressions up to a closing symbol, and consume it. */
  #list(close: string): Expression[] {
    const items: Expression[] = [];
    if (this.takeSymbol(close)) return items;
    do items.push(this.takeWildcard() ?? this.expression());
    while (this.takeSymbol(','));
    if (!this.takeSymbol(close)) throw this.unexpected(`"," or "${close}"`);
    return items;
  }

  #listOrRange(): Expression {
    const { start } = this.advance();
    if (this.takeSymbol(']')) return { type: 'list', items: [], start, end: this.previousEnd };
    const first = this.expression();
    if (this.isSymbol('..')) return this.#range(first, start);
    const items = [first];
    while (this.takeSymbol(',')) items.push(this.expression());
    if (!this.takeSymbol(']')) throw this.unexpected('"," or "]"');
    return { type: 'list', items, start, end: this.previousEnd };
  }

  #range(first: Expression, start: number): Range {
    const from = this.#bound(first);
    this.advance();
    const to = this.#bound(this.expression());
    this.expectSymbol(']');
    if (to - from >= MAX_RANGE) throw this.errorAt(start, `the range has more than ${MAX_RANGE} elements`);
    return { type: 'range', from, to, start, end: this.previousEnd };
  }

  /** The bound of a range or a slice: an integer, optionally signed. */
  #bound(expression: Expression): number {
    const isNegative = expression.type === 'unary' && expression.operator === '-';
    const inner = expression.type === 'unary' && expression.operator !== 'NOT' ? expression.operand : expression;
    if (inner.type !== 'literal' || !Number.isSafeInteger(inner.value))
      throw this.errorAt(expression.start, 'the bounds of a range must be integers');
    return isNegative ? -(inner.value as number) : (inner.value as number);
  }

  /** Parse a column and the steps below it. @throws SqlError */
  path(): Path {
    const { start } = this.token;
    const { text: name } = this.advance();
    const steps = this.#steps();
    if (this.isSymbol('.')) throw this.unexpected('an operator', 'a slice must be the last step of a path');
    return { type: 'path', name, steps, start, end: this.previousEnd };
  }

  #steps(): Step[] {
    const steps: Step[] = [];
    for (;;) {
      if (this.isSymbol('.')) steps.push({ type: 'key', key: this.takeKey().text });
      else if (this.isSymbol('[')) steps.push(this.#index());
      else if (this.isSymbol('->')) steps.push({ type: 'key', key: this.takeKey().text, isArrow: true });
      else break;
      if (steps[steps.length - 1].type === 'slice') break;
      this.#refuseDepth(steps.length);
    }
    return steps;
  }

  #refuseDepth(steps: number): void {
    if (steps > MAX_LEVELS) throw this.errorAt(this.token.start, `the path has more than ${MAX_LEVELS} steps`);
  }

  /** Parse `[1]`, `[1:3]` or `[:]`. */
  #part(): Step {
    if (this.takeSymbol(']')) return { type: 'part' };
    const from = this.isSymbol(':') ? undefined : this.expression();
    if (from !== undefined && this.takeSymbol(']')) return { type: 'index', index: from };
    if (!this.takeSymbol(':')) throw this.unexpected('":" or "]"');
    const to = this.isSymbol(']') ? undefined : this.expression();
    this.expectSymbol(']');
    return { type: 'part', ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  }

  #index(): Step {
    this.advance();
    if (this.dialect.hasParts) return this.#part();
    const index = this.expression();
    if (this.takeSymbol('..')) {
      const from = this.#bound(index);
      const last = this.expression();
      const to = this.#bound(last);
      if (from === 0 || to === 0)
        throw this.errorAt(
          from === 0 ? index.start : last.start,
          'a slice cannot have the bound 0',
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
      end: this.previousEnd
    };
  }
}

function isMinusZero(index: Expression): boolean {
  return (
    index.type === 'unary' && index.operator === '-' && index.operand.type === 'literal' && index.operand.value === 0
  );
}

/** The characters after a stream name that select all its columns. */
const ALL_OF = /\s*\.\s*\*/y;
