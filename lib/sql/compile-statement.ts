// The fields of SELECT are evaluated before WHERE, because WHERE can use their aliases. WHERE comes first only if
// that makes no difference: it uses no alias, and no field can fail. The order of aliases matters in the same way, so
// `define` is called when a field is compiled, and what is compiled before does not see its alias. Values share their
// parts and are encoded as trees, so an output that may contain lists or objects is weighed; a statement of 1.2 KB
// once took 4 GB.

import { errorText } from '../base/errors.ts';
import { type CompileContext, EventCompiler } from './compile-events.ts';
import { canFail, MAX_READS, membersIn, namesIn, readsIn } from './inspect.ts';
import { decodeJson } from './json.ts';
import { type CompiledStep, place } from './paths.ts';
import { type EventClosure, type EventColumns, Scope } from './row.ts';
import { SqlError, SqlFailure } from './sql-error.ts';
import type { Expression, Field, Foreach, Path, Select, Selected, Statement } from './tree.ts';
import { isList, setKey, type Value } from './values.ts';

/** Maximum number of outputs of one event. */
const MAX_OUTPUTS = 10_000;
/** The name of the FOREACH element if it has no alias. */
export const ELEMENT = 'item';
const JSON_LIST =
  'FOREACH was given a string that contains a JSON list; a string has no elements: use json_decode(...)';

/**
 * Takes the values that WHERE has read of an event that it excludes. They are taken during the evaluation, because another one could have
 * effects: functions of the app, and `kv_store_put`.
 */
export interface Excluded {
  /** The values by their text in the statement; absent ones are left out. */
  values: Readonly<Record<string, Value>> | undefined;
}

/** A compiled statement. */
interface CompiledStatement {
  /**
   * Evaluate the statement for an event.
   * @param hints receives remarks on possible mistakes in the statement
   * @param excluded receives the values that WHERE has read, if it is not true
   * @returns the outputs: one for SELECT, one for each element of FOREACH; undefined if WHERE is not true
   * @throws SqlFailure
   */
  readonly run: (row: EventColumns, hints?: string[], excluded?: Excluded) => readonly Value[] | undefined;
  /** The same evaluation in steps: the generator yields after each element of FOREACH. */
  readonly steps: (row: EventColumns, hints?: string[]) => Generator<void, readonly Value[] | undefined>;
}

/** A FOREACH list whose elements are being processed. */
interface Taken {
  readonly scope: Scope;
  readonly elements: readonly Value[];
  /** The values of aliases before the first element. */
  readonly shared: readonly Value[];
  readonly outputs: Value[];
}

type Output = Record<string, Value>;

/** Writes a field to the output and makes its alias visible. */
type CompiledField = (scope: Scope, output: Output) => void;

/** Compile a statement. @throws SqlError */
export function compileStatement(statement: Statement, context: CompileContext): CompiledStatement {
  const compiler = new StatementCompiler(statement, context);
  return statement.type === 'select' ? compiler.select(statement) : compiler.foreach(statement);
}

class StatementCompiler {
  readonly #context: CompileContext;
  readonly #expressions: EventCompiler;
  /** The names that expressions use; aliases with other names need no slot. */
  readonly #used: ReadonlySet<string>;

  constructor(statement: Statement, context: CompileContext) {
    this.#context = context;
    this.#expressions = new EventCompiler(context, membersIn(statement));
    this.#used = namesIn(statement);
  }

  select({ fields, where }: Select): CompiledStatement {
    const expressions = this.#expressions;
    const aliases = new Set(
      fields.flatMap((field) => (field.type === 'star' || !field.alias ? [] : [field.alias.name]))
    );
    const isEarly =
      where !== undefined &&
      ![...namesIn(where)].some((name) => aliases.has(name)) &&
      !fields.some((field) => field.type === 'selected' && this.#canFail(field));
    const early = isEarly ? expressions.compile(where) : undefined;
    const earlyReads = isEarly ? this.#reads(where) : undefined;
    const compiled = this.#fields(fields);
    const late = isEarly || where === undefined ? undefined : expressions.compile(where);
    const reads = earlyReads ?? this.#reads(where);
    const { slotCount } = expressions;
    const count = valuesOf(fields, slotCount);
    const run: CompiledStatement['run'] = (row, _, excluded) => {
      const scope = scopeOf(row, slotCount, this.#context);
      let clause = 'WHERE';
      try {
        if (early !== undefined && early(scope) !== true) return exclude(scope, reads, excluded);
        clause = 'SELECT';
        const output: Output = {};
        for (const field of compiled) field(scope, output);
        clause = 'WHERE';
        if (late !== undefined && late(scope) !== true) return exclude(scope, reads, excluded);
        clause = 'SELECT';
        return [hasParts(output) ? scope.output(output, count) : output];
      } catch (error) {
        throw failureIn(clause, error);
      }
    };
    return {
      run,
      // biome-ignore lint/correctness/useYield: there is only one step
      *steps(row) {
        return run(row);
      }
    };
  }

  foreach({ fields, does, incase, where }: Foreach): CompiledStatement {
    const expressions = this.#expressions;
    const last = this.#listOf(fields);
    const hasStar = does?.some(({ type }) => type === 'star') ?? false;
    const helpers = this.#fields(fields.slice(0, -1), hasStar);
    const list = expressions.compile(last.expression);
    const name = last.alias?.name ?? ELEMENT;
    const slot = expressions.define(name);
    const filter = where && expressions.compile(where);
    const reads = this.#reads(where);
    const condition = incase && expressions.compile(incase);
    const compiled = does && this.#fields(does);
    const { slotCount } = expressions;
    const count = valuesOf(does ?? [], slotCount);
    /** @returns undefined if WHERE is not true */
    const begin = (row: EventColumns, hints: string[] | undefined, excluded?: Excluded): Taken | undefined => {
      const scope = scopeOf(row, slotCount, this.#context);
      let clause = 'FOREACH';
      try {
        const helped: Output = {};
        for (const helper of helpers) helper(scope, helped);
        const elements = list(scope);
        scope.slots[slot] = elements;
        clause = 'WHERE';
        if (filter !== undefined && filter(scope) !== true) return exclude(scope, reads, excluded);
        if (isList(elements)) return { scope, elements, shared: [...scope.slots], outputs: [] };
        if (hints !== undefined && typeof elements === 'string' && isList(decodeJson(elements))) hints.push(JSON_LIST);
        return { scope, elements: [], shared: [], outputs: [] };
      } catch (error) {
        throw failureIn(clause, error);
      }
    };
    const take = ({ scope, elements, shared, outputs }: Taken, begin: number, end: number): void => {
      let clause = 'INCASE';
      try {
        for (let index = begin; index < end; index++) {
          const element = elements[index];
          scope.slots[slot] = element;
          clause = 'INCASE';
          if (condition !== undefined && condition(scope) !== true) continue;
          if (outputs.length === MAX_OUTPUTS) throw new SqlFailure(`the event has more than ${MAX_OUTPUTS} outputs`);
          if (compiled === undefined) {
            outputs.push(element);
            continue;
          }
          clause = 'DO';
          const output: Output = {};
          for (const field of compiled) field(scope, output);
          outputs.push(scope.output(output, count));
          // aliases of DO are visible only within the element
          for (let at = 0; at < slotCount; at++) scope.slots[at] = shared[at];
        }
      } catch (error) {
        throw failureIn(clause, error);
      }
    };
    return {
      run: (row, hints, excluded) => {
        const taken = begin(row, hints, excluded);
        if (taken !== undefined) take(taken, 0, taken.elements.length);
        return taken?.outputs;
      },
      *steps(row, hints) {
        const taken = begin(row, hints);
        for (let at = 0; at < (taken?.elements.length ?? 0); at++) {
          take(taken as Taken, at, at + 1);
          yield;
        }
        return taken?.outputs;
      }
    };
  }

  /** The list of FOREACH, which is its last field. @throws SqlError */
  #listOf(fields: readonly Field[]): Selected {
    const { text } = this.#context;
    const last = fields[fields.length - 1];
    if (last.type === 'star')
      throw new SqlError('the last field of FOREACH is *', text, last.start, 'it is the list: FOREACH payload.list');
    if (last.alias !== undefined && last.alias.steps.length > 0)
      throw new SqlError('the alias of the list is a path', text, last.alias.start, 'use a single name');
    return last;
  }

  /** The closures of what an expression reads, by their text. */
  #reads(where: Expression | undefined): ReadonlyMap<string, EventClosure> {
    const { text, functions } = this.#context;
    const reads = new Map<string, EventClosure>();
    const isRead = (name: string) => functions.get(name)?.column !== undefined;
    for (const node of where === undefined ? [] : readsIn(where, isRead))
      if (reads.size < MAX_READS) reads.set(text.slice(node.start, node.end), this.#expressions.compile(node));
    return reads;
  }

  #canFail({ expression, alias }: Selected): boolean {
    const { functions } = this.#context;
    return canFail(expression, functions) || (alias?.steps.some((step) => step.type === 'index') ?? false);
  }

  /** @param isBeforeStar whether the aliases are visible to the `*` of another clause */
  #fields(fields: readonly Field[], isBeforeStar = false): CompiledField[] {
    const lastStar = fields.findLastIndex(({ type }) => type === 'star');
    return fields.map((field, index) => {
      const hasStarLater = isBeforeStar || index < lastStar;
      return field.type === 'star' ? this.#star() : this.#field(field, hasStarLater);
    });
  }

  /** All columns, and the aliases that shadow them. */
  #star(): CompiledField {
    const { list, visible } = this.#expressions.aliases();
    return (scope, output) => {
      const { row, slots } = scope;
      scope.copied(row.names.length + visible);
      for (const name of row.names) {
        const value = row.column(name);
        if (value !== undefined) setKey(output, name, value);
      }
      for (let at = 0; at < visible; at++) {
        const [name, slot] = list[at];
        if (slots[slot] !== undefined) setKey(output, name, slots[slot]);
      }
    };
  }

  #field(field: Selected, hasStarLater: boolean): CompiledField {
    const expressions = this.#expressions;
    const { expression } = field;
    const evaluate = expressions.compile(expression);
    const target = field.alias ?? targetOf(expression, this.#context.text);
    const steps = expressions.steps(target.steps);
    const { name } = target;
    const isVisible = field.alias !== undefined && (this.#used.has(name) || hasStarLater);
    if (!isVisible) return outputOnly(evaluate, name, steps);
    const before = expressions.head(name);
    const slot = expressions.define(name);
    return (scope, output) => {
      const value = evaluate(scope);
      if (value === undefined) return;
      if (steps.length > 0) scope.placed();
      scope.slots[slot] = steps.length === 0 ? value : place(before(scope), steps, value, scope);
      put(output, name, steps, value, scope);
    };
  }
}

function outputOnly(evaluate: EventClosure, name: string, steps: readonly CompiledStep[]): CompiledField {
  if (steps.length === 0 && name !== '__proto__')
    return (scope, output) => {
      const value = evaluate(scope);
      if (value !== undefined) output[name] = value;
    };
  return (scope, output) => {
    const value = evaluate(scope);
    if (value !== undefined) put(output, name, steps, value, scope);
  };
}

function put(output: Output, name: string, steps: readonly CompiledStep[], value: Value, scope: Scope): void {
  if (steps.length === 0) setKey(output, name, value);
  else setKey(output, name, place(Object.hasOwn(output, name) ? output[name] : undefined, steps, value, scope));
}

/**
 * Check whether an output contains lists or objects. Without them it consists of event columns and of function
 * results, which are counted already.
 */
function hasParts(output: Output): boolean {
  for (const name in output) if (typeof output[name] === 'object' && output[name] !== null) return true;
  return false;
}

/**
 * The target of a field without an alias: the path itself, the list's path for a slice, otherwise the text of the
 * expression.
 */
function targetOf(expression: Expression, text: string): Path {
  if (expression.type === 'path')
    return { ...expression, steps: expression.steps.filter((step) => step.type !== 'slice') };
  const { start, end } = expression;
  return { type: 'path', name: text.slice(start, end), steps: [], start, end };
}

/**
 * The maximum number of values in an output. All columns of `*` count as one, because their total weight is known to be
 * small; aliases are added.
 */
function valuesOf(fields: readonly Field[], aliases: number): number {
  return fields.reduce((count, { type }) => count + (type === 'star' ? 1 + aliases : 1), 0);
}

function scopeOf(row: EventColumns, slotCount: number, { text, limits }: CompileContext): Scope {
  return new Scope(row, slotCount === 0 ? NO_SLOTS : new Array<Value>(slotCount), text.length, limits);
}

const NO_SLOTS: Value[] = [];

/** Pass on the values that WHERE has read. @returns undefined: the event has no output */
function exclude(scope: Scope, reads: ReadonlyMap<string, EventClosure>, excluded: Excluded | undefined): undefined {
  if (excluded === undefined) return;
  const values: Output = {};
  excluded.values = values;
  try {
    for (const [text, read] of reads) {
      const value = read(scope);
      if (value !== undefined) setKey(values, text, value);
    }
  } catch {
    // a path can fail that WHERE has not come to; the example has the values before it
  }
}

/** The failure of an evaluation, labelled with its clause. */
function failureIn(clause: string, error: unknown): SqlFailure {
  const message = errorText(error);
  return new SqlFailure(`${clause}: ${message}`, error instanceof SqlFailure ? undefined : error);
}
