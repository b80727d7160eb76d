// Expressions of rules over events become closures, once for a statement; a row never walks the tree. Everything that
// is wrong without a row is an `SqlError` here: unknown functions, numbers and types of arguments, constant
// arguments. What a row can cause is an `SqlFailure` of that row. The work of a row is bounded (calls, lists that are
// read, regular expressions, the size of results), and compiling has a budget, since a statement may come from an
// operator of the management interface. Only with `time`, for tests, do calls look at the clock.

import type { WorkTime } from '../base/slices.ts';
import { type Compiled, compileExpression, type ExpressionContext } from './compile.ts';
import { CompileBudget } from './compile-budget.ts';
import type { Dialect } from './dialect.ts';
import { EVENTS } from './event-semantics.ts';
import {
  type CallRules,
  checkConstant,
  checkCount,
  type Remedies,
  typeAt,
  unknownFunction
} from './functions/calls.ts';
import type { FunctionTools, ParameterType, SqlFunction } from './functions/function.ts';
import type { Members } from './json-members.ts';
import { type CompiledStep, walk } from './paths.ts';
import type { EventClosure, Scope, WorkLimits } from './row.ts';
import { SqlError, SqlFailure } from './sql-error.ts';
import type { Access, Call, Expression, Path, Step } from './tree.ts';
import { describe, isList, isNumber, isObject, kindOf, own, type Value } from './values.ts';

/** The context in which a statement is compiled. */
export interface CompileContext {
  /** The text of the statement, for error messages. */
  readonly text: string;
  readonly dialect: Dialect;
  readonly functions: ReadonlyMap<string, SqlFunction>;
  readonly tools: FunctionTools;
  /** The work for an event. Default: that of rules. */
  readonly limits?: WorkLimits;
  /** The time limit of a test: each function call fails when it has elapsed. */
  readonly time?: Pick<WorkTime, 'isOver'> | undefined;
}

type CompiledExpression = Compiled<Scope, Value>;

const AGGREGATES = 'avg sum min max count collect median stddev';
const REMEDIES: Remedies = new Map(
  AGGREGATES.split(' ').map((name) => [name, 'each event is evaluated separately; aggregates are for stream rules'])
);

/** Compiles the expressions of a statement to closures. */
export class EventCompiler implements ExpressionContext<Scope, Value> {
  readonly semantics = EVENTS;
  readonly text: string;
  readonly #context: CompileContext;
  /** The slots of the aliases that are visible. */
  readonly #slots = new Map<string, number>();
  readonly #aliases: (readonly [name: string, slot: number])[] = [];
  readonly #members: ReadonlyMap<string, Members>;
  readonly #budget = new CompileBudget();

  /** @param members the only members that the statement reads from the JSON of columns */
  constructor(context: CompileContext, members: ReadonlyMap<string, Members>) {
    this.text = context.text;
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
  compile(node: Expression): EventClosure {
    return compileExpression(node, this).evaluate;
  }

  /** Events evaluate nothing early: what a constant costs is counted as the work of each event. */
  fold(_node: Expression, _parts: readonly CompiledExpression[], evaluate: EventClosure): CompiledExpression {
    return { evaluate };
  }

  list(items: readonly EventClosure[]): EventClosure {
    return (scope) =>
      scope.made(
        items.map((item) => item(scope) ?? null),
        'list',
        'sum',
        items.length
      );
  }

  /** `=~`, which the dialect implements. */
  other(node: Expression): CompiledExpression {
    const { matchTopic } = this.#context.dialect;
    if (node.type !== 'binary' || node.operator !== '=~' || matchTopic === undefined)
      throw new SqlError('this expression is not available in rules over events', this.text, node.start);
    const [left, right] = [this.compile(node.left), this.compile(node.right)];
    return {
      evaluate: (scope) => {
        const [topic, filter] = [left(scope), right(scope)];
        if (topic === undefined || filter === undefined) return false;
        const name = topicOf(topic);
        const matched = topicOf(filter);
        scope.compared(Math.min(name.length, matched.length));
        return matchTopic(name, matched);
      }
    };
  }

  /** The value of a column, or of the alias that shadows it. */
  head(name: string): EventClosure {
    const slot = this.#slots.get(name);
    if (slot === undefined) return ({ row }) => row.column(name);
    return ({ row, slots }) => {
      const value = slots[slot];
      return value === undefined ? row.column(name) : value;
    };
  }

  steps(steps: readonly Step[]): readonly CompiledStep[] {
    return steps.map((step) => {
      if (step.type === 'part') throw new Error('unreachable: the dialect has no parts of lists');
      if (step.type !== 'index') return step;
      return { type: 'index', index: this.compile(step.index), append: step.append === true };
    });
  }

  path(node: Path | Access): CompiledExpression {
    return node.type === 'path' ? { evaluate: this.#path(node) } : this.other(node);
  }

  #path({ name, steps }: Path): EventClosure {
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
  #start(name: string): EventClosure {
    const members = this.#members.get(name);
    if (!this.#slots.has(name)) return ({ row }) => row.decoded(name, members);
    const head = this.head(name);
    return (scope) => {
      const value = head(scope);
      return typeof value === 'string' ? scope.decode(value) : value;
    };
  }

  /** A call that may take long and is followed by others. */
  #timed(call: EventClosure): CompiledExpression {
    const { time } = this.#context;
    if (time === undefined) return { evaluate: call };
    return {
      evaluate: (scope) => {
        const value = call(scope);
        if (time.isOver) throw new SqlFailure('the time of the test is over');
        return value;
      }
    };
  }

  call(node: Call): CompiledExpression {
    return this.#timed(this.#call(node));
  }

  #call(node: Call): EventClosure {
    const { functions, tools } = this.#context;
    const row = functions.get(node.name);
    if (row === undefined)
      throw unknownFunction(node, [...functions.keys()], {
        fault: `unknown function ${node.name}()`,
        text: this.text,
        remedies: REMEDIES
      });
    checkCount(node, row, RULES, this.text);
    for (const [index, arg] of node.args.entries()) this.#checkLiteral(row, index, arg);
    const run = row.make?.(tools) ?? row.run;
    const args = node.args.map((arg, index) => this.#argument(row, index, arg));
    if (row.isSegmented) args[0] = segmented(args[0]);
    if (row.patternAt !== undefined) this.#countMatching(node, row, args);
    const { column, countsWork, name, weighs } = row;
    if (countsWork) {
      const values = args;
      return (scope) => scope.made(run(scope, ...values.map((arg) => arg(scope))), name, weighs, values.length);
    }
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
  #countMatching({ args: nodes }: Call, { name, patternAt = 0 }: SqlFunction, args: EventClosure[]): void {
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

  /** Report errors that are visible without an event before the first event. */
  #checkLiteral(row: SqlFunction, index: number, arg: Expression): void {
    if (arg.type !== 'literal') return;
    const checkPattern = (pattern: string) => {
      if (this.#budget.takePattern(pattern)) this.#context.tools.pattern(pattern);
    };
    checkConstant(row, index, { value: arg.value, arg }, RULES, { text: this.text, checkPattern });
  }

  /** An argument with its type check. */
  #argument(row: SqlFunction, index: number, arg: Expression): EventClosure {
    const value = this.compile(arg);
    const type = typeAt(row.params, index);
    if (type === 'any' || (arg.type === 'literal' && type !== 'json')) return value;
    const { accepts } = RULES.types[type];
    if (type === 'json') return (scope) => scope.jsonIn(value(scope));
    const isCounted = type === 'string' || type === 'bytes' || row.scans === index;
    const choices = row.choices?.[index];
    return (scope) => {
      const given = value(scope);
      if (!accepts(given)) throw new SqlFailure(RULES.type(row, index, given)[0]);
      if (choices !== undefined && !choices.includes(given as string))
        throw new SqlFailure(RULES.choice(row.name, index, choices));
      return isCounted ? scope.counted(given) : given;
    };
  }
}

function segmented(text: EventClosure): EventClosure {
  return (scope) => scope.segmented(text(scope));
}

/** A topic name or filter on a side of `=~`. */
function topicOf(value: Value): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || value === null) return String(value);
  throw new SqlFailure(`=~ needs topics, but has ${describe(value)}`);
}

const RULES: CallRules<ParameterType, Value> = {
  types: {
    any: { name: 'a value', accepts: () => true },
    json: { name: 'a value', accepts: () => true },
    string: { name: 'a string', accepts: (value) => typeof value === 'string' },
    bytes: {
      name: 'a string or bytes',
      accepts: (value) => typeof value === 'string' || value instanceof Uint8Array
    },
    integer: { name: 'an integer', accepts: (value) => kindOf(value) === 'integer' },
    number: { name: 'a number', accepts: isNumber },
    boolean: { name: 'true or false', accepts: (value) => typeof value === 'boolean' },
    list: { name: 'a list', accepts: isList },
    object: { name: 'an object', accepts: isObject }
  },
  count: (name, counts, given) => `${name}() takes ${counts} argument${counts === '1' ? '' : 's'}, but has ${given}`,
  type: ({ name, params }, index, value) => [
    `argument ${index + 1} of ${name}() is ${describe(value)}, not ${RULES.types[typeAt(params, index)].name}`
  ],
  choice: (name, index, choices) => `argument ${index + 1} of ${name}() is not one of ${choices.join(', ')}`
};
