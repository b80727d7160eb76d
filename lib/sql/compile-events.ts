// Expressions of rules over events become closures, once for a statement; a row never walks the tree. Everything that
// is wrong without a row is an `SqlError` here: unknown functions, numbers and types of arguments, constant
// arguments. What a row can cause is an `SqlFailure` of that row. The work of a row is bounded (calls, lists that are
// read, regular expressions, the size of results), and compiling has a budget, since a statement may come from an
// operator of the management interface. Only with `time`, for tests, do calls look at the clock.

import { nearest } from '../base/fields.ts';
import type { WorkTime } from '../base/slices.ts';
import { add, divide, divideIntegers, multiply, negate, subtract } from './arithmetic.ts';
import { compare, equals, isSame } from './compare.ts';
import { CompileBudget } from './compile-budget.ts';
import type { Dialect } from './dialect.ts';
import type { FunctionTools, Parameter, ParameterType, SqlFunction } from './functions/function.ts';
import type { Members } from './json-members.ts';
import { type CompiledStep, walk } from './paths.ts';
import type { Evaluate } from './row.ts';
import { SqlError, SqlFailure } from './sql-error.ts';
import type { Binary, Call, Case, Expression, Path, Step, Unary } from './tree.ts';
import { describe, isList, isNumber, isObject, kindOf, own, type Value } from './values.ts';

/** The context in which a statement is compiled. */
export interface CompileContext {
  /** The text of the statement, for error messages. */
  readonly text: string;
  readonly dialect: Dialect;
  readonly functions: ReadonlyMap<string, SqlFunction>;
  readonly tools: FunctionTools;
  /** The time limit of a test: each function call fails when it has elapsed. */
  readonly time?: Pick<WorkTime, 'isOver'> | undefined;
}

/** Compiles expressions to closures. */
export class ExpressionCompiler {
  readonly #context: CompileContext;
  /** The slots of the aliases that are visible. */
  readonly #slots = new Map<string, number>();
  readonly #aliases: (readonly [name: string, slot: number])[] = [];
  readonly #members: ReadonlyMap<string, Members>;
  readonly #budget = new CompileBudget();

  /** @param members the only members that the statement reads from the JSON of columns */
  constructor(context: CompileContext, members: ReadonlyMap<string, Members>) {
    this.#context = context;
    this.#members = members;
  }

  /** Number of slots that a scope needs. */
  get slotCount(): number {
    return this.#slots.size;
  }

  /** Make an alias visible from here on. @returns its slot */
  define(name: string): number {
    const known = this.#slots.get(name);
    if (known !== undefined) return known;
    const slot = this.#slots.size;
    this.#slots.set(name, slot);
    this.#aliases.push([name, slot]);
    return slot;
  }

  /**
   * All aliases with their slots, and how many of them, from the first, are visible now. The list is the same for each
   * `*`.
   */
  aliases(): { readonly list: readonly (readonly [name: string, slot: number])[]; readonly visible: number } {
    return { list: this.#aliases, visible: this.#aliases.length };
  }

  /** @throws SqlError for an unknown function, or arguments that it does not accept */
  compile(node: Expression): Evaluate {
    switch (node.type) {
      case 'literal': {
        const { value } = node;
        return () => value;
      }
      case 'path':
        return this.#path(node);
      case 'call':
        return this.#timed(this.#call(node));
      case 'unary':
        return this.#unary(node);
      case 'binary':
        return this.#binary(node);
      case 'in': {
        const subject = this.compile(node.subject);
        const items = node.items.map((item) => this.compile(item));
        const { isNegated } = node;
        return (scope) => {
          const value = subject(scope);
          return items.some((item) => isSame(value, item(scope))) !== isNegated;
        };
      }
      case 'case':
        return this.#case(node);
      case 'list': {
        const items = node.items.map((item) => this.compile(item));
        return (scope) =>
          scope.made(
            items.map((item) => item(scope) ?? null),
            'list',
            'sum',
            items.length
          );
      }
      case 'range': {
        const { from, to } = node;
        const length = Math.max(0, to - from + 1); // consumers of the output may change the list, so each event gets its own
        return (scope) =>
          scope.made(
            Array.from({ length }, (_, index) => from + index),
            'list',
            undefined,
            0
          );
      }
      default:
        throw this.#foreign(node.start);
    }
  }

  /** The value of a column, or of the alias that shadows it. */
  head(name: string): Evaluate {
    const slot = this.#slots.get(name);
    if (slot === undefined) return ({ row }) => row.column(name);
    return ({ row, slots }) => {
      const value = slots[slot];
      return value === undefined ? row.column(name) : value;
    };
  }

  steps(steps: readonly Step[]): readonly CompiledStep[] {
    return steps.map((step) => {
      if (step.type === 'part') throw this.#foreign((step.from ?? step.to)?.start ?? 0);
      if (step.type !== 'index') return step;
      return { type: 'index', index: this.compile(step.index), append: step.append === true };
    });
  }

  #path({ name, steps }: Path): Evaluate {
    if (steps.length === 0) return this.head(name);
    const start = this.#start(name);
    const compiled = this.steps(steps);
    const [first] = compiled;
    if (compiled.length > 1 || first.type !== 'key') return (scope) => walk(start(scope), compiled, scope);
    const { key } = first;
    if (key in Object.prototype)
      return (scope) => {
        const object = start(scope);
        return isObject(object) ? own(object, key) : undefined;
      };
    return (scope) => {
      const object = start(scope);
      return isObject(object) ? object[key] : undefined;
    };
  }

  /** The value at which the steps of a path begin. */
  #start(name: string): Evaluate {
    const members = this.#members.get(name);
    if (!this.#slots.has(name)) return ({ row }) => row.decoded(name, members);
    const head = this.head(name);
    return (scope) => {
      const value = head(scope);
      return typeof value === 'string' ? scope.decode(value) : value;
    };
  }

  #unary({ operator, operand }: Unary): Evaluate {
    const value = this.compile(operand);
    if (operator === 'NOT') return (scope) => value(scope) === false;
    if (operator === '-') {
      if (operand.type !== 'literal' || !isNumber(operand.value)) return (scope) => negate(value(scope));
      const constant = negate(operand.value);
      return () => constant;
    }
    return (scope) => {
      const number = value(scope);
      if (!isNumber(number)) throw new SqlFailure(`+ needs a number, but has ${describe(number)}`);
      return number;
    };
  }

  #binary({ operator, left: leftNode, right: rightNode, start }: Binary): Evaluate {
    const left = this.compile(leftNode);
    const right = this.compile(rightNode);
    switch (operator) {
      case 'AND':
        return (scope) => left(scope) === true && right(scope) === true;
      case 'OR':
        return (scope) => left(scope) === true || right(scope) === true;
      case '=':
        return (scope) => equals(left(scope), right(scope));
      case '!=':
        return (scope) => !equals(left(scope), right(scope));
      case '<':
        return (scope) => compare(left(scope), right(scope)) < 0;
      case '>':
        return (scope) => compare(left(scope), right(scope)) > 0;
      case '<=':
        return (scope) => compare(left(scope), right(scope)) <= 0;
      case '>=':
        return (scope) => compare(left(scope), right(scope)) >= 0;
      case '=~':
        return this.#topicMatch(left, right);
      case '+':
        return (scope) => scope.counted(add(left(scope), right(scope)));
      case '-':
        return (scope) => subtract(left(scope), right(scope));
      case '*':
        return (scope) => multiply(left(scope), right(scope));
      case '/':
        return (scope) => divide(left(scope), right(scope));
      case 'div':
      case 'mod':
        return (scope) => divideIntegers(operator, left(scope), right(scope));
      default:
        throw this.#foreign(start);
    }
  }

  #topicMatch(left: Evaluate, right: Evaluate): Evaluate {
    const { matchTopic } = this.#context.dialect;
    if (matchTopic === undefined) throw new TypeError('the dialect has no =~');
    return (scope) => {
      const [topic, filter] = [left(scope), right(scope)];
      if (topic === undefined || filter === undefined) return false;
      return matchTopic(topicOf(topic), topicOf(filter));
    };
  }

  #case({ subject, branches, otherwise }: Case): Evaluate {
    const compared = subject && this.compile(subject);
    const compiled = branches.map(({ when, result }) => ({ when: this.compile(when), result: this.compile(result) }));
    const last = otherwise && this.compile(otherwise);
    return (scope) => {
      const value = compared?.(scope);
      for (const { when, result } of compiled) {
        const found = when(scope);
        if (compared === undefined ? found === true : isSame(value, found)) return result(scope);
      }
      return last?.(scope);
    };
  }

  /** A call that may take long and is followed by others. */
  #timed(call: Evaluate): Evaluate {
    const { time } = this.#context;
    if (time === undefined) return call;
    return (scope) => {
      const value = call(scope);
      if (time.isOver) throw new SqlFailure('the time of the test is over');
      return value;
    };
  }

  #call(node: Call): Evaluate {
    const { functions, tools } = this.#context;
    const row = functions.get(node.name);
    if (row === undefined) throw this.#unknownFunction(node);
    this.#checkArguments(node, row);
    const run = row.make?.(tools) ?? row.run;
    const args = node.args.map((arg, index) => this.#argument(row, index, arg));
    if (row.patternAt !== undefined) this.#countMatching(node, row, args);
    const { column, name, weighs } = row;
    if (column !== undefined) args.unshift((scope) => scope.counted(scope.row.column(column)));
    const [first, second, third] = args;
    const count = args.length;
    switch (count) {
      case 0:
        return () => run();
      case 1:
        return (scope) => scope.made(run(first(scope)), name, weighs, count);
      case 2:
        return (scope) => scope.made(run(first(scope), second(scope)), name, weighs, count);
      case 3:
        return (scope) => scope.made(run(first(scope), second(scope), third(scope)), name, weighs, count);
      default:
        return (scope) => scope.made(run(...args.map((arg) => arg(scope))), name, weighs, count);
    }
  }

  /** Make a call count the work of its regular expression, once the expression is known and before it is applied. */
  #countMatching({ args: nodes }: Call, { name, patternAt = 0 }: SqlFunction, args: Evaluate[]): void {
    const { pattern } = this.#context.tools;
    const [text] = args;
    const of = args[patternAt];
    const isConstant = nodes[patternAt].type === 'literal';
    let known: number | undefined;
    let length = 0;
    args[0] = (scope) => {
      const value = text(scope);
      length = (value as string).length;
      return value;
    };
    args[patternAt] = (scope) => {
      const value = of(scope);
      if (!isConstant || known === undefined) known = pattern(value as string).parts;
      scope.matched(known * length, name);
      return value;
    };
  }

  #unknownFunction({ name, start }: Call): SqlError {
    const { functions, text } = this.#context;
    const lower = name.toLowerCase();
    const similar = functions.has(lower) ? lower : nearest(name, [...functions.keys()]);
    const hint = similar === undefined ? undefined : `did you mean ${similar}()?`;
    return new SqlError(`unknown function ${name}()`, text, start, hint);
  }

  /** @throws SqlError */
  #checkArguments({ name, args, start }: Call, row: SqlFunction): void {
    const { params } = row;
    const least = params.filter((param) => !/[?.]$/.test(param)).length;
    const most = params.some((param) => param.endsWith('...')) ? Infinity : params.length;
    if (args.length < least || args.length > most) {
      const counts = least === most ? `${least}` : most === Infinity ? `at least ${least}` : `${least} to ${most}`;
      const fault = `${name}() takes ${counts} argument${counts === '1' ? '' : 's'}, but has ${args.length}`;
      throw this.#error(fault, start, `${name}(${params.join(', ')}): ${row.about}`);
    }
    for (const [index, arg] of args.entries()) this.#checkLiteral(row, index, arg);
  }

  /** Report errors that are visible without an event before the first event. */
  #checkLiteral(row: SqlFunction, index: number, arg: Expression): void {
    if (arg.type !== 'literal') return;
    const { value, start } = arg;
    const type = typeOf(paramAt(row.params, index));
    if (!ACCEPTS[type](value))
      throw this.#error(`argument ${index + 1} of ${row.name}() is ${describe(value)}, not ${NAMES[type]}`, start);
    const choices = row.choices?.[index];
    if (choices !== undefined && !choices.includes(value as string))
      throw this.#error(`argument ${index + 1} of ${row.name}() is not one of ${choices.join(', ')}`, start);
    if (row.patternAt === index)
      try {
        if (this.#budget.takePattern(value as string)) this.#context.tools.pattern(value as string);
      } catch (error) {
        throw this.#error((error as Error).message, start);
      }
  }

  /** An argument with its type check. */
  #argument(row: SqlFunction, index: number, arg: Expression): Evaluate {
    const value = this.compile(arg);
    const param = paramAt(row.params, index);
    const type = typeOf(param);
    if (type === 'any' || (arg.type === 'literal' && type !== 'json')) return value;
    const accepts = ACCEPTS[type];
    if (type === 'json') return (scope) => scope.jsonIn(value(scope));
    const isCounted = type === 'string' || type === 'bytes' || row.scans === index;
    const choices = row.choices?.[index];
    return (scope) => {
      const given = value(scope);
      if (!accepts(given))
        throw new SqlFailure(`argument ${index + 1} of ${row.name}() is ${describe(given)}, not ${NAMES[type]}`);
      if (choices !== undefined && !choices.includes(given as string))
        throw new SqlFailure(`argument ${index + 1} of ${row.name}() is not one of ${choices.join(', ')}`);
      return isCounted ? scope.counted(given) : given;
    };
  }

  /** The error for an expression of another dialect. */
  #foreign(start: number): SqlError {
    return this.#error('this expression is not available in rules over events', start);
  }

  #error(fault: string, start: number, hint?: string): SqlError {
    return new SqlError(fault, this.#context.text, start, hint);
  }
}

/** The parameter of an argument; the last parameter may stand for several arguments. */
function paramAt(params: readonly Parameter[], index: number): Parameter {
  return params[Math.min(index, params.length - 1)];
}

function typeOf(param: Parameter): ParameterType {
  return param.replace(/\?$|\.\.\.$/, '') as ParameterType;
}

const ACCEPTS: Readonly<Record<ParameterType, (value: Value) => boolean>> = {
  any: () => true,
  json: () => true,
  string: (value) => typeof value === 'string',
  bytes: (value) => typeof value === 'string' || value instanceof Uint8Array,
  integer: (value) => kindOf(value) === 'integer',
  number: isNumber,
  boolean: (value) => typeof value === 'boolean',
  list: isList,
  object: isObject
};

const NAMES: Readonly<Record<ParameterType, string>> = {
  any: 'a value',
  json: 'a value',
  string: 'a string',
  bytes: 'a string or bytes',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  list: 'a list',
  object: 'an object'
};

/** A topic name or filter on a side of `=~`. */
function topicOf(value: Value): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || value === null) return String(value);
  throw new SqlFailure(`=~ needs topics, but has ${describe(value)}`);
}
