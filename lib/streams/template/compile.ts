// Templates have the syntax of templates of Go, which the documented product uses, and the messages of its errors. A
// template comes from the author of a rule and its data from clients, so output, turns of loops, the depth of uses
// and the work of functions are bounded for each execution (`Run`). Variables are slots, found when a template is
// compiled. A template can use itself, so its entry exists before it is compiled.

import { truncated } from '../../base/errors.ts';
import { StreamFailure } from '../values/values.ts';
import type { BoundFunctions } from './function-table.ts';
import { printInner, printValue } from './print.ts';
import { placeOf } from './template-error.ts';
import {
  isList,
  isObject,
  isTruthy,
  memberOf,
  sortedKeys,
  type TemplateValue,
  tooLong,
  typeOf
} from './template-value.ts';
import type { Expression, Node, Pipeline, Tree } from './tree.ts';

/** Maximum number of iterations of all loops of one output, including the uses of templates. */
const MAX_TURNS = 1_000_000;
/** Maximum work of functions for one output, as a multiple of its limit: characters, elements and calls. */
const MAX_WORK = 100;
/** Functions that do not access the elements of a list. */
const CHEAP: ReadonlySet<string> = new Set([
  ...['coalesce', 'default', 'dict', 'empty', 'first', 'index', 'kindIs', 'kindOf', 'last', 'len', 'list', 'not'],
  ...['ternary', 'tuple', 'typeOf']
]);
/** Maximum nesting of templates that use each other. */
const MAX_DEPTH = 100;

/** The state of one execution. */
export class Run {
  dot: TemplateValue;
  /** The variables of the template being executed; the first one is `$`. */
  variables: TemplateValue[];
  out = '';
  turns = 0;
  work = 0;
  depth = 0;
  readonly most: number;

  constructor(data: TemplateValue, most: number) {
    this.dot = data;
    this.variables = [data];
    this.most = most;
  }

  write(text: string): void {
    this.out += text;
    if (this.out.length > this.most) throw tooLong(this.most);
  }

  /** Write a value, which is not a part of the template itself. @throws StreamFailure */
  insert(text: string): void {
    this.write(text);
  }

  /** Check the complete output. @throws StreamFailure */
  end(): void {}

  /** Count an iteration of a loop, or the use of a template. @throws StreamFailure */
  turn(): void {
    if (++this.turns > MAX_TURNS)
      throw new StreamFailure(`the loops of a template have more than ${MAX_TURNS} iterations`);
  }

  /**
   * Count the input or output of a call.
   * @param isCheap whether the elements of lists are not counted
   * @throws StreamFailure
   */
  spend(value: TemplateValue, isCheap: boolean): void {
    this.work += typeof value === 'string' || (isList(value) && !isCheap) ? value.length : 1;
    if (this.work > MAX_WORK * this.most)
      throw new StreamFailure(
        `the functions of a template read and create more than ${MAX_WORK * this.most} characters (bounds.templateCharacters)`
      );
  }
}

/** The continuation after an action: the next action, or the end or the next iteration of the enclosing loop. */
type Signal = 'next' | 'break' | 'continue';
type Action = (run: Run) => Signal;
type Evaluate = (run: Run) => TemplateValue;

/** Options of `compileTree`. */
interface CompileOptions {
  readonly functions: BoundFunctions;
  /** If true, fields of a list are those of its first element, instead of an error. */
  readonly readsFirst: boolean;
}

/** Compile a template to closures. @param text the template, for messages */
export function compileTree(tree: Tree, text: string, options: CompileOptions): (run: Run) => void {
  return new Compiler(tree, text, options).template(tree.body);
}

class Compiler {
  readonly #tree: Tree;
  readonly #text: string;
  readonly #options: CompileOptions;
  /** The definitions that are compiled or being compiled. */
  readonly #templates = new Map<string, { run: Action }>();
  /** The visible variables, by their slots. */
  #variables: string[] = ['$'];

  constructor(tree: Tree, text: string, options: CompileOptions) {
    this.#tree = tree;
    this.#text = text;
    this.#options = options;
  }

  template(nodes: readonly Node[]): Action {
    const outer = this.#variables;
    this.#variables = ['$'];
    const action = this.#sequence(nodes);
    this.#variables = outer;
    return action;
  }

  #sequence(nodes: readonly Node[]): Action {
    const visible = this.#variables.length;
    const actions = nodes.map((node) => this.#action(node));
    this.#variables.length = visible;
    return (run) => {
      for (let i = 0; i < actions.length; i++) {
        const signal = actions[i](run);
        if (signal !== 'next') return signal;
      }
      return 'next';
    };
  }

  #action(node: Node): Action {
    switch (node.type) {
      case 'text': {
        const { text } = node;
        return (run) => {
          run.write(text);
          return 'next';
        };
      }
      case 'print':
        return this.#print(node.pipeline);
      case 'if':
      case 'with':
        return this.#if(node.type === 'with', node);
      case 'range':
        return this.#range(node);
      case 'template':
        return this.#use(node);
      default: {
        const signal = node.type;
        return () => signal;
      }
    }
  }

  #print(pipeline: Pipeline): Action {
    const evaluate = this.#pipeline(pipeline);
    if (pipeline.variables.length > 0)
      return (run) => {
        evaluate(run);
        return 'next';
      };
    const last = pipeline.commands[pipeline.commands.length - 1];
    const isEncoded = last.type === 'call' && last.name === 'urlquery';
    return (run) => {
      const value = evaluate(run);
      const text = typeof value === 'string' ? value : printValue(value, run.most);
      if (isEncoded) run.write(text);
      else run.insert(text);
      return 'next';
    };
  }

  #if(isWith: boolean, { pipeline, body, otherwise }: Extract<Node, { body: unknown }>): Action {
    const visible = this.#variables.length;
    const evaluate = this.#pipeline(pipeline);
    const [then, or] = [this.#sequence(body), this.#sequence(otherwise)];
    this.#variables.length = visible;
    if (!isWith) return (run) => (isTruthy(evaluate(run)) ? then(run) : or(run));
    return (run) => {
      const value = evaluate(run);
      if (!isTruthy(value)) return or(run);
      const { dot } = run;
      run.dot = value;
      const signal = then(run);
      run.dot = dot;
      return signal;
    };
  }

  #range({ pipeline, body, otherwise }: Extract<Node, { body: unknown }>): Action {
    const visible = this.#variables.length;
    const evaluate = this.#pipeline({ ...pipeline, variables: [] });
    const slots = pipeline.variables.map((name) => this.#slot(name, pipeline.isAssignment));
    const [turn, or] = [this.#sequence(body), this.#sequence(otherwise)];
    this.#variables.length = visible;
    const [keySlot, valueSlot] = slots.length === 2 ? slots : [undefined, slots[0]];
    const each = (run: Run, key: TemplateValue, value: TemplateValue): Signal => {
      run.turn();
      if (keySlot !== undefined) run.variables[keySlot] = key;
      if (valueSlot !== undefined) run.variables[valueSlot] = value;
      run.dot = value;
      return turn(run);
    };
    return (run) => {
      const value = evaluate(run);
      const { dot } = run;
      let isEmpty = true;
      if (isList(value))
        for (let i = 0; i < value.length; i++) {
          isEmpty = false;
          if (each(run, BigInt(i), value[i]) === 'break') break;
        }
      else if (typeof value === 'bigint')
        for (let i = 0n; i < value; i++) {
          isEmpty = false;
          if (each(run, i, i) === 'break') break;
        }
      else if (isObject(value))
        for (const key of sortedKeys(value)) {
          isEmpty = false;
          if (each(run, key, value[key]) === 'break') break;
        }
      else if (value !== undefined && value !== null)
        this.#fail(pipeline.commands[0], `range can't iterate over ${printInner(value, run.most)}`);
      run.dot = dot;
      return isEmpty ? or(run) : 'next';
    };
  }

  /** `{{template "name" data}}` */
  #use(node: Extract<Node, { type: 'template' }>): Action {
    const { name, pipeline } = node;
    const evaluate = pipeline === undefined ? () => undefined : this.#pipeline(pipeline);
    let compiled = this.#templates.get(name);
    const body = this.#tree.definitions.get(name);
    if (compiled === undefined && body !== undefined) {
      compiled = { run: () => 'next' }; // the template may use itself
      this.#templates.set(name, compiled);
      compiled.run = this.template(body);
    }
    return (run) => {
      if (compiled === undefined) return this.#fail(node, `template ${JSON.stringify(name)} not defined`);
      const value = evaluate(run);
      const { dot, variables } = run;
      run.turn();
      if (++run.depth > MAX_DEPTH) throw new StreamFailure(`more than ${MAX_DEPTH} nested templates`);
      run.dot = value;
      run.variables = [value];
      compiled.run(run);
      run.depth--;
      run.dot = dot;
      run.variables = variables;
      return 'next';
    };
  }

  #slot(name: string, isAssignment: boolean): number {
    return isAssignment ? this.#variables.lastIndexOf(name) : this.#variables.push(name) - 1;
  }

  #pipeline({ commands, variables, isAssignment }: Pipeline): Evaluate {
    let evaluate = this.#expression(commands[0]);
    for (const command of commands.slice(1))
      evaluate = this.#call(command as Extract<Expression, { type: 'call' }>, evaluate);
    if (variables.length === 0) return evaluate;
    const slot = this.#slot(variables[0], isAssignment);
    return (run) => (run.variables[slot] = evaluate(run));
  }

  #expression(expression: Expression): Evaluate {
    switch (expression.type) {
      case 'literal': {
        const { value } = expression;
        return () => value;
      }
      case 'dot':
        return (run) => run.dot;
      case 'variable': {
        const slot = this.#variables.lastIndexOf(expression.name);
        return (run) => run.variables[slot];
      }
      case 'fields':
        return this.#fields(expression);
      case 'pipeline':
        return this.#pipeline(expression.pipeline);
      case 'call':
        return this.#call(expression, undefined);
    }
  }

  #fields(expression: Extract<Expression, { type: 'fields' }>): Evaluate {
    let evaluate = this.#expression(expression.of);
    for (const name of expression.names) {
      const of = evaluate;
      evaluate = (run) => {
        const object = of(run);
        return isObject(object) ? memberOf(object, name) : this.#field(expression, object, name);
      };
    }
    return evaluate;
  }

  /** The field of a value that is not an object. */
  #field(expression: Expression, value: TemplateValue, name: string): TemplateValue {
    if (value === undefined) return undefined;
    if (value === null) return this.#fail(expression, `nil pointer evaluating interface {}.${name}`);
    if (this.#options.readsFirst && isList(value)) {
      const [first] = value;
      if (first === undefined) return undefined;
      if (isObject(first)) return memberOf(first, name);
    }
    const type = isList(value) ? typeOf(value) : 'interface {}';
    return this.#fail(expression, `can't evaluate field ${name} in type ${type}`);
  }

  /** @param last the last argument: the result of the preceding command */
  #call(expression: Extract<Expression, { type: 'call' }>, last: Evaluate | undefined): Evaluate {
    const { name } = expression;
    const args = expression.args.map((arg) => this.#expression(arg));
    if (last !== undefined) args.push(last);
    if (name === 'and' || name === 'or') return decide(name === 'or', args);
    const call = this.#options.functions(name);
    const isCheap = CHEAP.has(name);
    return (run) => {
      const values = new Array<TemplateValue>(args.length);
      for (let i = 0; i < args.length; i++) {
        values[i] = args[i](run);
        run.spend(values[i], isCheap);
      }
      let result: TemplateValue;
      try {
        result = call(values);
      } catch (error) {
        const { message } = error as Error;
        if (!(error instanceof StreamFailure || error instanceof RangeError)) throw error;
        return this.#fail(expression, `error calling ${name}: ${message}`);
      }
      if ((typeof result === 'string' || isList(result)) && result.length > run.most) throw tooLong(run.most);
      run.spend(result, isCheap);
      return result;
    };
  }

  #fail({ start, end }: { readonly start: number; readonly end: number }, message: string): never {
    const source = this.#text.slice(start, end);
    const shown = truncated(source, 50);
    throw new StreamFailure(`${placeOf(this.#text, start)}: executing "sink" at <${shown}>: ${message}`);
  }
}

/** `and` and `or` evaluate arguments only until the result is known. */
function decide(isOr: boolean, args: readonly Evaluate[]): Evaluate {
  return (run) => {
    let value: TemplateValue;
    for (const arg of args) {
      value = arg(run);
      if (isTruthy(value) === isOr) return value;
    }
    return value;
  };
}
