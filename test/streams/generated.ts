import type {
  BinaryOperator,
  Expression,
  Field,
  FromStream,
  Join,
  JoinKind,
  Selected,
  Step,
  StreamSelect,
  TimeUnit,
  Window
} from '../../lib/sql/tree.ts';
import { Float, type Value } from '../../lib/sql/values.ts';
import type { Random } from '../fuzz/random.ts';

const PLACE = { start: 0, end: 0 };
const NAMES = [
  'a',
  'demo',
  'größe',
  '_x1',
  'select',
  'a b',
  'q`q',
  'true',
  'over',
  'filter',
  'ss',
  'desc',
  'a-b',
  '1x'
];
const STREAMS = ['demo', 'site/+/temp/#', 'a`b', 'from', 'x1'];
const KEYS = ['a', '1', '_y', 'from', 'a-b', 'c d', 'q`q', '2x'];
const FUNCTIONS = ['upper', 'count', 'f_2'];
const OPERATORS: readonly BinaryOperator[] = [
  ...(['OR', 'AND', '=', '!=', '<', '>', '<=', '>='] as const),
  ...(['+', '-', '*', '/', '%', '&', '|', '^'] as const)
];
const LITERALS: readonly Value[] = [
  ...[0, 1, -1, 42, 1.5, -0.25, new Float(1), new Float(-1), new Float(1e21), 1e-7],
  ...[12345678901234567890n, -12345678901234567890n, true, false],
  ...['a', "it's", '"', '', 'ü\n\t\\', '\0\u2028', '\ud800', '--', '/*']
];

/** Makes random statements over streams. */
export class StreamStatementMaker {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  statement(): StreamSelect {
    const some = () => this.#random.once(2);
    return {
      type: 'stream-select',
      fields: this.#list(3, () => this.#field()),
      from: this.#source(),
      joins: this.#list(2, () => this.#join(), 0),
      ...(some() ? { where: this.expression(3) } : {}),
      ...(some() ? { window: this.#window() } : {}),
      groupBy: this.#list(2, () => this.expression(2), 0),
      ...(some() ? { having: this.expression(2) } : {}),
      orderBy: this.#list(2, () => ({ expression: this.expression(2), isDescending: some(), ...PLACE }), 0),
      ...(some() ? { limit: this.#random.below(10) } : {})
    };
  }

  expression(depth: number): Expression {
    const next = () => this.expression(depth - 1);
    const random = this.#random;
    switch (depth === 0 ? random.below(2) : random.below(11)) {
      case 0:
        return { type: 'literal', value: random.pick(LITERALS), ...PLACE };
      case 1:
        return { type: 'path', name: random.pick(NAMES), steps: this.#steps(depth, 0), ...PLACE };
      case 2:
        return this.#call(depth);
      case 3:
        return { type: 'unary', operator: random.pick(['-', '+']), operand: next(), ...PLACE };
      case 4:
        return { type: 'in', isNegated: random.once(2), subject: next(), ...this.#members(depth), ...PLACE };
      case 5:
        return { type: 'between', isNegated: random.once(2), subject: next(), low: next(), high: next(), ...PLACE };
      case 6:
        return { type: 'like', isNegated: random.once(2), subject: next(), pattern: next(), ...PLACE };
      case 7: {
        const subject = random.once(2) ? next() : undefined;
        // CASE without a subject can test only a condition
        const when = () => (subject === undefined ? this.#binary('=', depth) : next());
        const branches = this.#list(2, () => ({ when: when(), result: next() }));
        const otherwise = random.once(2) ? { otherwise: next() } : {};
        return { type: 'case', ...(subject === undefined ? {} : { subject }), branches, ...otherwise, ...PLACE };
      }
      case 8: {
        const subject = random.once(2) ? this.#call(depth) : this.#binary(random.pick(OPERATORS), depth);
        return { type: 'access', subject, steps: this.#steps(depth, 1), ...PLACE };
      }
      default:
        return this.#binary(random.pick(OPERATORS), depth);
    }
  }

  #binary(operator: BinaryOperator, depth: number): Expression {
    return { type: 'binary', operator, left: this.expression(depth - 1), right: this.expression(depth - 1), ...PLACE };
  }

  #call(depth: number): Expression {
    const random = this.#random;
    const next = () => this.expression(depth - 1);
    const args = this.#list<Expression>(3, next, 0);
    const over = {
      partitionBy: this.#list(2, next, 1),
      ...(random.once(2) ? { when: next() } : {})
    };
    const stream = random.once(2) ? {} : { stream: random.pick(NAMES) };
    const all = random.once(4) ? [{ type: 'wildcard' as const, ...stream, ...PLACE }] : args;
    const name = random.pick(FUNCTIONS);
    return { type: 'call', name, args: all, ...(random.once(4) ? { over } : {}), ...PLACE };
  }

  #members(depth: number): { readonly items: readonly Expression[]; readonly isArray?: true } {
    if (this.#random.once(2)) return { items: this.#list(3, () => this.expression(depth - 1)) };
    return { items: [{ type: 'path', name: this.#random.pick(NAMES), steps: [], ...PLACE }], isArray: true };
  }

  #steps(depth: number, least: number): readonly Step[] {
    return this.#list(3, () => this.#step(depth), least);
  }

  #step(depth: number): Step {
    const random = this.#random;
    const key = random.pick(KEYS);
    if (depth === 0 || random.once(2))
      return random.once(2) ? { type: 'key', key } : { type: 'key', key, isArrow: true };
    if (random.once(2)) return { type: 'index', index: this.expression(depth - 1) };
    const from = random.once(2) ? {} : { from: this.expression(depth - 1) };
    return { type: 'part', ...from, ...(random.once(2) ? {} : { to: this.expression(depth - 1) }) };
  }

  #field(): Field {
    const random = this.#random;
    if (!random.once(5)) return this.#selected(random.once(2));
    const stream = random.once(2) ? {} : { stream: random.pick(NAMES) };
    const except = random.once(2) ? {} : { except: this.#list(2, () => random.pick(NAMES)) };
    const replace = random.once(2) ? {} : { replace: this.#list(2, () => this.#selected(true)) };
    return { type: 'star', ...stream, ...except, ...replace, ...PLACE };
  }

  #selected(hasAlias: boolean): Selected {
    const name = this.#random.pick(NAMES);
    const alias = hasAlias ? { alias: { type: 'path' as const, name, steps: [], ...PLACE } } : {};
    const invisible = this.#random.once(5) ? { isInvisible: true as const } : {};
    return { type: 'selected', expression: this.expression(3), ...alias, ...invisible, ...PLACE };
  }

  #source(): FromStream {
    const alias = this.#random.once(2) ? {} : { alias: this.#random.pick(NAMES) };
    return { name: this.#random.pick(STREAMS), ...alias, ...PLACE };
  }

  #join(): Join {
    const kind: JoinKind = this.#random.pick(['inner', 'left', 'right', 'full', 'cross']);
    const on = kind === 'cross' || this.#random.once(3) ? {} : { on: this.expression(2) };
    return { kind, source: this.#source(), ...on, ...PLACE };
  }

  #window(): Window {
    const random = this.#random;
    const length = () => 1 + random.below(5);
    const unit: TimeUnit = random.pick(['dd', 'hh', 'mi', 'ss', 'ms']);
    const timed = { unit, conditions: [], partitionBy: [] };
    const filter = random.once(2) ? {} : { filter: this.expression(2) };
    const common = { ...filter, ...PLACE };
    switch (random.below(6)) {
      case 0:
        return { kind: 'tumbling', ...timed, lengths: [length()], ...common };
      case 1:
        return { kind: 'hopping', ...timed, lengths: [length(), length()], ...common };
      case 2: {
        const when = random.once(2) ? {} : { when: this.expression(2) };
        return { kind: 'sliding', ...timed, lengths: this.#list(2, length), ...when, ...common };
      }
      case 3:
        return { kind: 'session', ...timed, lengths: [length(), length()], ...common };
      case 4:
        return {
          kind: 'count',
          lengths: random.once(2) ? [5] : [5, length()],
          conditions: [],
          partitionBy: [],
          ...common
        };
      default: {
        const conditions = this.#list(2, () => this.expression(2));
        return {
          kind: 'state',
          lengths: [],
          conditions,
          partitionBy: this.#list(2, () => this.expression(1), 0),
          ...common
        };
      }
    }
  }

  #list<T>(most: number, make: () => T, least = 1): T[] {
    return Array.from({ length: least + this.#random.below(most - least + 1) }, make);
  }
}
