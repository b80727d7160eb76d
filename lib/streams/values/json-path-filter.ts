import type { PathScanner } from './json-path-scanner.ts';
import { isNull, isNumber, type StreamValue } from './values.ts';

/** Counts the values that a query visits. */
export interface Work {
  /** @throws StreamFailure if the limit is exceeded */
  take(count: number): void;
}

/** Evaluate a path or an operand of a filter. @param current the element that is tested */
export type Selector = (current: StreamValue, root: StreamValue, work: Work) => StreamValue;

/** A filter condition: whether an element is kept. */
export type Condition = (current: StreamValue, root: StreamValue, work: Work) => boolean;

/**
 * Parse the condition of a filter: comparisons, arithmetic, `&&`, `||`, `!`, parentheses.
 * @param parsePath parses the path after `$` or `@`
 * @throws StreamFailure if it is invalid
 */
export function parseCondition(scanner: PathScanner, parsePath: (scanner: PathScanner) => Selector): Condition {
  const select = new ConditionParser(scanner, parsePath).parse();
  return (current, root, work) => isTrue(select(current, root, work));
}

/** A path without a comparison is true if it selects a value other than null and false. */
function isTrue(value: StreamValue): boolean {
  return !isNull(value) && value !== false && !(Array.isArray(value) && value.length === 0);
}

type Operate = (left: StreamValue, right: StreamValue) => StreamValue;

/** Operators by level, weakest first; within a level, longer ones first. */
const LEVELS: readonly (readonly (readonly [string, Operate])[])[] = [
  [
    ['==', isEqual],
    ['!=', (a, b) => !isEqual(a, b)],
    ['<=', (a, b) => order(a, b, (x) => x <= 0)],
    ['>=', (a, b) => order(a, b, (x) => x >= 0)],
    ['<', (a, b) => order(a, b, (x) => x < 0)],
    ['>', (a, b) => order(a, b, (x) => x > 0)]
  ],
  [
    ['+', (a, b) => calculate(a, b, (x, y) => x + y)],
    ['-', (a, b) => calculate(a, b, (x, y) => x - y)]
  ],
  [
    ['*', (a, b) => calculate(a, b, (x, y) => x * y)],
    ['/', (a, b) => calculate(a, b, (x, y) => x / y)],
    ['%', (a, b) => calculate(a, b, (x, y) => x % y)]
  ]
];

function isEqual(left: StreamValue, right: StreamValue): boolean {
  if (isNumber(left) && isNumber(right)) return Number(left) === Number(right);
  return left === right || (isNull(left) && isNull(right));
}

/** Numbers are compared with numbers and strings with strings; other pairs are unordered. */
function order(left: StreamValue, right: StreamValue, holds: (order: number) => boolean): boolean {
  if (isNumber(left) && isNumber(right)) return holds(Number(left) - Number(right));
  if (typeof left !== 'string' || typeof right !== 'string') return false;
  return holds(left < right ? -1 : left > right ? 1 : 0);
}

function calculate(left: StreamValue, right: StreamValue, compute: (x: number, y: number) => number): StreamValue {
  return isNumber(left) && isNumber(right) ? compute(Number(left), Number(right)) : null;
}

const WORDS: readonly (readonly [string, StreamValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null]
];

class ConditionParser {
  readonly #scanner: PathScanner;
  readonly #parsePath: (scanner: PathScanner) => Selector;

  constructor(scanner: PathScanner, parsePath: (scanner: PathScanner) => Selector) {
    this.#scanner = scanner;
    this.#parsePath = parsePath;
  }

  parse(): Selector {
    let left = this.#conjunction();
    while (this.#takes('||')) {
      const [first, second] = [left, this.#conjunction()];
      left = (current, root, work) => isTrue(first(current, root, work)) || isTrue(second(current, root, work));
    }
    return left;
  }

  #conjunction(): Selector {
    let left = this.#operation(0);
    while (this.#takes('&&')) {
      const [first, second] = [left, this.#operation(0)];
      left = (current, root, work) => isTrue(first(current, root, work)) && isTrue(second(current, root, work));
    }
    return left;
  }

  #operation(level: number): Selector {
    const operators = LEVELS[level];
    if (operators === undefined) return this.#unary();
    let left = this.#operation(level + 1);
    for (;;) {
      const found = operators.find(([text]) => this.#takes(text));
      if (found === undefined) return left;
      const [first, second, operate] = [left, this.#operation(level + 1), found[1]];
      left = (current, root, work) => operate(first(current, root, work), second(current, root, work));
    }
  }

  #unary(): Selector {
    if (this.#takes('!')) {
      const operand = this.#scanner.nested(() => this.#unary());
      return (current, root, work) => !isTrue(operand(current, root, work));
    }
    if (this.#takes('-')) {
      const operand = this.#scanner.nested(() => this.#unary());
      return (current, root, work) => calculate(0, operand(current, root, work), (x, y) => x - y);
    }
    return this.#primary();
  }

  #primary(): Selector {
    const scanner = this.#scanner;
    if (this.#takes('(')) {
      const inner = scanner.nested(() => this.parse());
      scanner.expect(')');
      return inner;
    }
    if (scanner.takes('@')) return this.#path(false);
    if (scanner.takes('$')) return this.#path(true);
    for (const [word, value] of WORDS) if (scanner.takes(word)) return () => value;
    const value = scanner.string() ?? scanner.number();
    if (value === undefined) throw scanner.failure('expected @, $, a number, a string, true, false or null');
    return () => value;
  }

  #path(isOfRoot: boolean): Selector {
    const select = this.#parsePath(this.#scanner);
    return (current, root, work) => {
      work.take(1);
      return select(isOfRoot ? root : current, root, work);
    };
  }

  #takes(text: string): boolean {
    this.#scanner.skipSpace();
    return this.#scanner.takes(text);
  }
}
