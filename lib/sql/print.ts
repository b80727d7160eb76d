import type { Dialect } from './dialect.ts';
import { NOT_PRECEDENCE, PRECEDENCE, SIGN_PRECEDENCE } from './parser.ts';
import type { Expression, Field, Path, Statement, Step } from './tree.ts';
import { formatFloat, type Value } from './values.ts';

/** Binding power of what needs no parentheses. */
const STRONGEST = 8;

/** Print a statement as SQL, on one line. `parseStatement` gives an equal statement again. */
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
  parts.push(`FROM ${statement.from.map(({ name }) => quoted(name)).join(', ')}`);
  if (statement.where !== undefined) parts.push(`WHERE ${print.expression(statement.where)}`);
  return parts.join(' ');
}

/** Print an expression as SQL. */
export function printExpression(expression: Expression, dialect: Dialect): string {
  return new Printer(dialect).expression(expression);
}

class Printer {
  readonly #dialect: Dialect;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  fields(fields: readonly Field[]): string {
    return fields.map((field) => this.#field(field)).join(', ');
  }

  #field(field: Field): string {
    if (field.type === 'star') return '*';
    const text = this.expression(field.expression);
    return field.alias === undefined ? text : `${text} AS ${this.#path(field.alias)}`;
  }

  /** @param weakest operators that bind less strongly are put in parentheses */
  expression(node: Expression, weakest = 0): string {
    const text = this.#text(node);
    return strengthOf(node) < weakest ? `(${text})` : text;
  }

  #text(node: Expression): string {
    switch (node.type) {
      case 'literal':
        return literal(node.value);
      case 'path':
        return this.#path(node);
      case 'call':
        return `${node.name}(${this.#list(node.args)})`;
      case 'unary': {
        if (node.operator === 'NOT') return `NOT ${this.expression(node.operand, NOT_PRECEDENCE)}`;
        // two signs in a row would begin a comment
        return `${node.operator}${this.expression(node.operand, STRONGEST)}`;
      }
      case 'binary': {
        const strength = PRECEDENCE[node.operator];
        const left = this.expression(node.left, strength === PRECEDENCE['='] ? strength + 1 : strength);
        return `${left} ${node.operator} ${this.expression(node.right, strength + 1)}`;
      }
      case 'in': {
        const subject = this.expression(node.subject, PRECEDENCE.IN + 1);
        return `${subject} ${node.isNegated ? 'NOT IN' : 'IN'} (${this.#list(node.items)})`;
      }
      case 'case': {
        const subject = node.subject === undefined ? '' : ` ${this.expression(node.subject)}`;
        const branches = node.branches.map(
          ({ when, result }) => ` WHEN ${this.expression(when)} THEN ${this.expression(result)}`
        );
        const otherwise = node.otherwise === undefined ? '' : ` ELSE ${this.expression(node.otherwise)}`;
        return `CASE${subject}${branches.join('')}${otherwise} END`;
      }
      case 'list':
        return `[${this.#list(node.items)}]`;
      case 'range':
        return `[${node.from}..${node.to}]`;
    }
  }

  #list(items: readonly Expression[]): string {
    return items.map((item) => this.expression(item)).join(', ');
  }

  #path({ name, steps }: Path): string {
    const isWord = /^\p{L}[\p{L}\p{N}_$@~]*$/u.test(name) && !this.#isReserved(name);
    return `${isWord ? name : quoted(name)}${steps.map((step) => this.#step(step)).join('')}`;
  }

  /** `true` and `false` are constants, and some words would be an operator or belong to other dialects. */
  #isReserved(name: string): boolean {
    return this.#dialect.keywords.has(name.toUpperCase()) || AMBIGUOUS.test(name);
  }

  #step(step: Step): string {
    switch (step.type) {
      case 'key':
        return /^[\p{L}\p{N}_$@~]+$/u.test(step.key) ? `.${step.key}` : `.${quoted(step.key)}`;
      case 'index':
        return `[${step.append === true ? '-0' : this.expression(step.index)}]`;
      case 'slice':
        return `[${step.from}..${step.to}]`;
    }
  }
}

const AMBIGUOUS = /^(true|false|div|mod|distinct)$/i;

function strengthOf(node: Expression): number {
  switch (node.type) {
    case 'binary':
      return PRECEDENCE[node.operator];
    case 'in':
      return PRECEDENCE.IN;
    case 'unary':
      return node.operator === 'NOT' ? NOT_PRECEDENCE : SIGN_PRECEDENCE;
    default:
      return STRONGEST;
  }
}

function literal(value: Value): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  const number = Number(value);
  return typeof value === 'number' && Number.isInteger(value) ? String(value) : formatFloat(number);
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
