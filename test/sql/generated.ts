import type { BinaryOperator, Expression, Field, Path, Statement, Step } from '../../lib/sql/tree.ts';
import { Float, type Value } from '../../lib/sql/values.ts';
import type { Random } from '../fuzz/random.ts';

const PLACE = { start: 0, end: 0 };
const NAMES = ['a', 'qos', 'payload', 'größe', 'x$1', 'select', 'a b', 'q"q', 'true', 'mod', 'distinct'];
const KEYS = ['a', '1', '_y', 'from', 'a-b', 'c d', 'q"q', '2x'];
const OPERATORS: readonly BinaryOperator[] = [
  'OR',
  'AND',
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
  '/',
  'div',
  'mod'
];
const LITERALS: readonly Value[] = [
  0,
  1,
  42,
  1.5,
  new Float(1),
  new Float(1e21),
  1e-7,
  12345678901234567890n,
  'a',
  "it's",
  '',
  'ü"',
  true,
  false
];

/** Makes random statements. */
export class StatementMaker {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  statement(): Statement {
    const fields = this.#list(3, () => this.#field());
    const from = this.#list(2, () => ({ name: this.#random.pick(['t/#', 'a "b"', '$events/x']), ...PLACE }));
    const where = this.#random.next() < 0.5 ? { where: this.expression(3) } : {};
    if (this.#random.next() < 0.6) return { type: 'select', fields, from, ...where };
    const does = this.#random.next() < 0.5 ? { does: this.#list(2, () => this.#field()) } : {};
    const incase = this.#random.next() < 0.5 ? { incase: this.expression(2) } : {};
    return { type: 'foreach', fields, ...does, ...incase, from, ...where };
  }

  expression(depth: number): Expression {
    const next = () => this.expression(depth - 1);
    const kind = depth === 0 ? this.#random.below(2) : this.#random.below(10);
    switch (kind) {
      case 0:
        return { type: 'literal', value: this.#random.pick(LITERALS), ...PLACE };
      case 1:
        return this.#path(depth, true);
      case 2:
        return { type: 'call', name: this.#random.pick(['upper', 'mod', 'f']), args: this.#list(3, next, 0), ...PLACE };
      case 3:
        return { type: 'unary', operator: this.#random.pick(['NOT', '-', '+']), operand: next(), ...PLACE };
      case 4: {
        const isNegated = this.#random.next() < 0.5;
        return { type: 'in', isNegated, subject: next(), items: this.#list(3, next), ...PLACE };
      }
      case 5: {
        const subject = this.#random.next() < 0.5 ? { subject: next() } : {};
        const otherwise = this.#random.next() < 0.5 ? { otherwise: next() } : {};
        const branches = this.#list(2, () => ({ when: next(), result: next() }));
        return { type: 'case', ...subject, branches, ...otherwise, ...PLACE };
      }
      case 6:
        return { type: 'list', items: this.#list(3, next, 0), ...PLACE };
      case 7:
        return { type: 'range', from: this.#random.below(5) - 2, to: this.#random.below(9), ...PLACE };
      default:
        return { type: 'binary', operator: this.#random.pick(OPERATORS), left: next(), right: next(), ...PLACE };
    }
  }

  #field(): Field {
    if (this.#random.next() < 0.1) return { type: 'star', ...PLACE };
    const alias = this.#random.next() < 0.5 ? { alias: this.#path(1, false) } : {};
    return { type: 'selected', expression: this.expression(3), ...alias, ...PLACE };
  }

  #path(depth: number, hasSlices: boolean): Path {
    const steps: Step[] = this.#list(3, () => this.#step(depth), 0);
    if (hasSlices && this.#random.next() < 0.1) steps.push({ type: 'slice', from: -2, to: 3 });
    return { type: 'path', name: this.#random.pick(NAMES), steps, ...PLACE };
  }

  #step(depth: number): Step {
    if (depth === 0 || this.#random.next() < 0.6) return { type: 'key', key: this.#random.pick(KEYS) };
    return { type: 'index', index: this.expression(depth - 1) };
  }

  #list<T>(most: number, make: () => T, least = 1): T[] {
    return Array.from({ length: least + this.#random.below(most - least + 1) }, make);
  }
}

/** A tree without positions in its text, and without fields that its maker does not set: whether an index is `-0`. */
export function withoutPlaces(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutPlaces);
  if (typeof node === 'bigint') return `${node}n`;
  if (typeof node !== 'object' || node === null || node instanceof Float) return node;
  const entries = Object.entries(node).filter(([key]) => key !== 'start' && key !== 'end' && key !== 'append');
  return Object.fromEntries(entries.map(([key, value]) => [key, withoutPlaces(value)]));
}
