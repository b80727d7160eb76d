// The output must parse to an equal tree in the same dialect. So parentheses follow from the precedence of the
// dialect, names are quoted unless its lexis reads them as a word, and two signs are never adjacent, as they would
// begin a comment. A new kind of node needs a case here and in `Parser`.

import { COMPARING, type Dialect, NOT_PRECEDENCE, type Operator, SIGN_PRECEDENCE } from './dialect.ts';
import type { Call, Expression, Field, Path, Selected, Star, Statement, Step } from './tree.ts';
import { formatFloat, isNumber, type Value } from './values.ts';

/** Binding power of expressions that need no parentheses. */
const STRONGEST = 8;

/** Print a statement as SQL on one line. `parseStatement` turns it back into an equal statement. */
export function printStatement(statement: Statement, dialect: Dialect): string {
  const print = new Printer(dialect);
  const parts =
    statement.type === 'select'
      ? [`SELECT ${print.fields(statement.fields)}`]
      : [
          `FOREACH ${print.fields(statement.fields)}`,
          ...(statement.does === undefined ? [] : [`DO ${print.fields(statement.does)}`]),
          ...(statement.incase === undefined ? [] : [`INCASE ${print.expression(statement.incase)}`])
        ];
  parts.push(`FROM ${statement.from.map(({ name }) => print.quoted(name)).join(', ')}`);
  if (statement.where !== undefined) parts.push(`WHERE ${print.expression(statement.where)}`);
  return parts.join(' ');
}

/** Prints the parts of statements. */
export class Printer {
  readonly #dialect: Dialect;
  readonly #known: WeakMap<Expression, string> | undefined;

  /** @param known the texts of calls that are printed already, for callers that print many parts of one expression */
  constructor(dialect: Dialect, known?: WeakMap<Expression, string>) {
    this.#dialect = dialect;
    this.#known = known;
  }

  fields(fields: readonly Field[]): string {
    return fields.map((field) => (field.type === 'star' ? this.#star(field) : this.#selected(field))).join(', ');
  }

  #star({ stream, except, replace }: Star): string {
    const all = stream === undefined ? '*' : `${this.name(stream)}.*`;
    const without = except === undefined ? '' : ` EXCEPT(${except.map((name) => this.name(name)).join(', ')})`;
    return `${all}${without}${replace === undefined ? '' : ` REPLACE(${this.fields(replace)})`}`;
  }

  #selected({ expression, alias, isInvisible }: Selected): string {
    const text = this.expression(expression);
    const named = alias === undefined ? text : `${text} AS ${this.#path(alias)}`;
    return isInvisible === true ? `${named} INVISIBLE` : named;
  }

  /** @param weakest expressions whose operators bind less strongly are put in parentheses */
  expression(node: Expression, weakest = 0): string {
    const text = this.#text(node);
    return this.#strengthOf(node) < weakest ? `(${text})` : text;
  }

  /** Print expressions separated by commas. */
  list(items: readonly Expression[]): string {
    return items.map((item) => this.expression(item)).join(', ');
  }

  #text(node: Expression): string {
    switch (node.type) {
      case 'literal':
        return this.#literal(node.value);
      case 'path':
        return this.#path(node);
      case 'access':
        return `${this.expression(node.subject, STRONGEST)}${this.#steps(node.steps)}`;
      case 'call':
        return this.#call(node);
      case 'unary': {
        if (node.operator === 'NOT') return `NOT ${this.expression(node.operand, NOT_PRECEDENCE)}`;
        // two signs in a row would begin a comment, and a sign directly before a number would become part of it
        const { operand } = node;
        const isNumeric = this.#dialect.hasSignedNumbers && operand.type === 'literal' && isNumber(operand.value);
        return `${node.operator}${this.expression(operand, isNumeric ? STRONGEST + 1 : STRONGEST)}`;
      }
      case 'binary': {
        const strength = this.#strength(node.operator);
        const left = strength === COMPARING ? this.#compared(node.left) : this.expression(node.left, strength);
        return `${left} ${node.operator} ${this.expression(node.right, strength + 1)}`;
      }
      case 'in': {
        const items = node.isArray === true ? this.list(node.items) : `(${this.list(node.items)})`;
        return `${this.#compared(node.subject)} ${node.isNegated ? 'NOT IN' : 'IN'} ${items}`;
      }
      case 'between': {
        const bounds = [node.low, node.high].map((bound) => this.expression(bound, COMPARING + 1));
        return `${this.#compared(node.subject)} ${node.isNegated ? 'NOT BETWEEN' : 'BETWEEN'} ${bounds.join(' AND ')}`;
      }
      case 'like': {
        const pattern = this.expression(node.pattern, COMPARING + 1);
        return `${this.#compared(node.subject)} ${node.isNegated ? 'NOT LIKE' : 'LIKE'} ${pattern}`;
      }
      case 'wildcard':
        return node.stream === undefined ? '*' : `${this.name(node.stream)}.*`;
      case 'case': {
        const subject = node.subject === undefined ? '' : ` ${this.expression(node.subject)}`;
        const branches = node.branches.map(
          ({ when, result }) => ` WHEN ${this.expression(when)} THEN ${this.expression(result)}`
        );
        const otherwise = node.otherwise === undefined ? '' : ` ELSE ${this.expression(node.otherwise)}`;
        return `CASE${subject}${branches.join('')}${otherwise} END`;
      }
      case 'list':
        return `[${this.list(node.items)}]`;
      case 'range':
        return `[${node.from}..${node.to}]`;
    }
  }

  /** The left side of a comparison, itself a comparison in dialects that allow chains. */
  #compared(node: Expression): string {
    return this.expression(node, this.#dialect.chainsComparisons ? COMPARING : COMPARING + 1);
  }

  #call(node: Call): string {
    const known = this.#known?.get(node);
    if (known !== undefined) return known;
    const text = this.#callText(node);
    this.#known?.set(node, text);
    return text;
  }

  #callText({ name, args, over }: Call): string {
    const call = `${name}(${this.list(args)})`;
    if (over === undefined) return call;
    const partition = over.partitionBy.length === 0 ? [] : [`PARTITION BY ${this.list(over.partitionBy)}`];
    const when = over.when === undefined ? [] : [`WHEN ${this.expression(over.when)}`];
    return `${call} OVER (${[...partition, ...when].join(' ')})`;
  }

  #path({ name, steps }: Path): string {
    return `${this.name(name)}${this.#steps(steps)}`;
  }

  /** A name, quoted if necessary. */
  name(name: string): string {
    const { keywords, lexis } = this.#dialect;
    const upper = name.toUpperCase();
    const isWord = isWhole(lexis.word, name) && !keywords.has(upper) && !lexis.ambiguous.has(upper);
    return isWord ? name : this.quoted(name);
  }

  quoted(name: string): string {
    const quote = this.#dialect.lexis.nameQuote;
    return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`;
  }

  #steps(steps: readonly Step[]): string {
    return steps.map((step) => this.#step(step)).join('');
  }

  #step(step: Step): string {
    switch (step.type) {
      case 'key': {
        const { key: pattern, startsWithPoint } = this.#dialect.lexis;
        const isArrow = step.isArrow === true;
        // `.1` would be a number
        const isBare = isWhole(pattern, step.key) && (isArrow || !startsWithPoint || !/^\d/.test(step.key));
        return `${isArrow ? '->' : '.'}${isBare ? step.key : this.quoted(step.key)}`;
      }
      case 'index':
        return `[${step.append === true ? '-0' : this.expression(step.index)}]`;
      case 'slice':
        return `[${step.from}..${step.to}]`;
      case 'part': {
        const [from, to] = [step.from, step.to].map((bound) => (bound === undefined ? '' : this.expression(bound)));
        return `[${from}:${to}]`;
      }
    }
  }

  #strengthOf(node: Expression): number {
    switch (node.type) {
      case 'binary':
        return this.#strength(node.operator);
      case 'in':
      case 'between':
      case 'like':
        return COMPARING;
      case 'unary':
        return node.operator === 'NOT' ? NOT_PRECEDENCE : SIGN_PRECEDENCE;
      case 'literal':
        return isNumber(node.value) && isNegative(node.value) ? SIGN_PRECEDENCE : STRONGEST;
      default:
        return STRONGEST;
    }
  }

  #strength(operator: Operator): number {
    return this.#dialect.precedence.get(operator) ?? 0;
  }

  #literal(value: Value): string {
    if (typeof value === 'string') {
      const { hasEscapes, stringQuote: quote } = this.#dialect.lexis;
      return hasEscapes ? JSON.stringify(value) : `${quote}${value.replaceAll(quote, quote + quote)}${quote}`;
    }
    if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
    const number = Number(value);
    return typeof value === 'number' && Number.isInteger(value) ? String(value) : formatFloat(number);
  }
}

function isNegative(value: Value): boolean {
  return typeof value === 'bigint' ? value < 0n : Number(value) < 0 || Object.is(Number(value), -0);
}

/** Check whether a sticky pattern matches a whole text. */
function isWhole(pattern: RegExp, text: string): boolean {
  pattern.lastIndex = 0;
  return pattern.test(text) && pattern.lastIndex === text.length;
}
