// An expression is bound once and compiled for each start of its rule (`make`), since functions can depend on the
// rule. While it is checked, a `Recorder` notes what it uses; plans are decided from that alone, so a new kind of
// dependency has to be recorded. Equal calls of functions with a state share one operator, by their canonical text.
// An alias that others use gets a slot if evaluating it again would cost more; slots are numbered in `slots`, when
// everything is bound.

import { constantOf } from '../../sql/compile.ts';
import { MAX_READS, readsIn } from '../../sql/inspect.ts';
import { SqlError } from '../../sql/sql-error.ts';
import type { Call, Expression, Path, Wildcard } from '../../sql/tree.ts';
import type {
  BoundAggregate,
  BoundAnalytic,
  BoundExpression,
  BoundSlots,
  Catalogue,
  Uses
} from '../expressions/bound.ts';
import { checkCall, compileArguments } from '../expressions/calls.ts';
import { compileNode } from '../expressions/compile.ts';
import { Constants } from '../expressions/constants.ts';
import type { CompiledExpression, Head, NameScope } from '../expressions/scope.ts';
import type {
  AggregateFunction,
  AnalyticFunction,
  ExpandingFunction,
  StreamFunction,
  StreamFunctionTools,
  StreamPattern
} from '../function.ts';
import { timed } from '../limits.ts';
import type { Evaluate, GroupRow } from '../values/tuple.ts';
import { aliasesIn } from './alias-order.ts';
import { argumentNames } from './names.ts';
import { lazily } from './slots.ts';
import type { Sources } from './sources.ts';
import { canonical, MAX_LEVELS, Measures } from './walk.ts';

/** The context in which statements are bound. */
export interface BindContext {
  /** The text of the statement, for the positions of errors. */
  readonly text: string;
  readonly catalogue: Catalogue;
  /** Functions by name in lower case. */
  readonly functions: ReadonlyMap<string, StreamFunction>;
  /**
   * Compiles regular expressions, so that those of the statement are checked. If undefined, they are checked when the
   * rule starts.
   */
  readonly pattern?: ((text: string) => StreamPattern) | undefined;
}

/** A clause that contains expressions, and the calls that it allows. */
export interface Clause {
  /** The reason why aggregate calls are not allowed; undefined if they are. */
  readonly noAggregates?: string;
  /** The reason why analytic calls are not allowed; undefined if they are. */
  readonly noAnalytics?: string;
}

const IN_AGGREGATE: Clause = { noAggregates: 'Not allowed to call aggregate functions in an aggregate function.' };

interface Alias {
  readonly name: string;
  readonly expression: Expression;
  readonly bound: BoundExpression;
  readonly levels: number;
  /** True if its definition reads a column of the same name: `avg(t) AS t`. */
  readonly hasColumn: boolean;
  /** Cheap enough to evaluate again instead of caching. */
  readonly isTrivial: boolean;
  isUsed: boolean;
  slot: number | undefined;
}

/** Records the dependencies of an expression while it is checked. */
class Recorder {
  readonly sources = new Set<number>();
  readonly certain = new Set<number>();
  aggregates = false;
  analytics = false;
  frame = false;
  chance = false;
  /** Nesting depth of the aliases used. */
  levels = 0;
  readonly #read = new Set<readonly number[]>();

  add(uses: Uses): void {
    for (const source of uses.sources) this.sources.add(source);
    for (const source of uses.certain) this.certain.add(source);
    this.aggregates ||= uses.aggregates;
    this.analytics ||= uses.analytics;
    this.frame ||= uses.frame;
    this.chance ||= uses.chance;
  }

  /** Note that a name is read, and the sources that may have it. */
  read(candidates: readonly number[]): void {
    if (this.#read.has(candidates)) return; // a statement may have thousands of names and sources
    this.#read.add(candidates);
    for (const candidate of candidates) this.sources.add(candidate);
    if (candidates.length === 1) this.certain.add(candidates[0]);
  }

  uses(): Uses {
    const { aggregates, analytics, frame, chance } = this;
    const [sources, certain] = [this.sources, this.certain].map((set) => [...set].sort((a, b) => a - b));
    return { sources, certain, aggregates, analytics, frame, chance };
  }
}

/** A checked expression. */
interface Checked {
  readonly bound: BoundExpression;
  readonly levels: number;
  readonly compiled: CompiledExpression;
}

/** The location of the result of a call. */
type Result = { readonly type: 'aggregate'; readonly index: number } | { readonly type: 'slot'; readonly slot: number };

/** Binds the expressions of one statement: knows the aliases, and collects the calls that have a separate operator. */
export class Bindings {
  readonly context: BindContext;
  readonly sources: Sources;
  readonly constants = new Constants();
  readonly #aliases: Alias[] = [];
  readonly #aliasNumbers = new Map<string, number>();
  readonly #measures = new Measures();
  readonly #aggregates: BoundAggregate[] = [];
  readonly #analytics: BoundAnalytic[] = [];
  /** Results by the text of the call. */
  readonly #known = new Map<string, Result>();
  readonly #results = new Map<Call, Result>();
  /** The compiled aliases, for each start of the rule. */
  readonly #compiled = new WeakMap<StreamFunctionTools, (Evaluate | undefined)[]>();
  #slotCount = 0;
  readonly #slotsOfEmission: number[] = [];

  constructor(context: BindContext, sources: Sources) {
    this.context = context;
    this.sources = sources;
  }

  get aggregates(): readonly BoundAggregate[] {
    return this.#aggregates;
  }

  get analytics(): readonly BoundAnalytic[] {
    return this.#analytics;
  }

  /** The number of aliases so far. */
  get aliasCount(): number {
    return this.#aliases.length;
  }

  /**
   * The parts of a bound expression that read values: columns, aliases, and calls that depend on more than their arguments. Those that may have
   * effects are left out, because they are evaluated again: functions of the app, and `delay`.
   */
  reads(node: Expression, clause: Clause): readonly BoundExpression[] {
    const { functions } = this.context;
    const isRead = (name: string) => functions.get(name.toLowerCase())?.kind !== 'scalar';
    const reads = new Map(readsIn(node, isRead).map((read) => [this.#measures.textOf(read), read]));
    const bound = [...reads.values()].slice(0, MAX_READS).map((read) => this.expression(read, clause));
    return bound.filter(({ uses }) => !uses.chance);
  }

  /**
   * Check an expression.
   * @param visible number of aliases that it can use, from the first
   * @throws SqlError
   */
  expression(node: Expression, clause: Clause, visible = this.aliasCount): BoundExpression {
    return this.#checked(node, clause, visible).bound;
  }

  #checked(node: Expression, clause: Clause, visible: number): Checked {
    const { text } = this.context;
    const recorder = new Recorder();
    const compile = (tools?: StreamFunctionTools, used?: Recorder) =>
      compileNode(node, new BindScope(this, { clause, visible, tools, recorder: used }));
    const compiled = compile(undefined, recorder);
    const levels = this.#measures.levelsOf(node) + recorder.levels;
    if (levels > MAX_LEVELS)
      throw new SqlError(`the expression has more than ${MAX_LEVELS} levels, with its aliases`, text, node.start);
    const make = (tools: StreamFunctionTools) => timed(compile(tools).evaluate, tools);
    return { bound: { text: this.#measures.textOf(node), uses: recorder.uses(), make }, levels, compiled };
  }

  /** The alias to which a name refers; undefined if there is none. */
  aliasOf(name: string, visible: number): number | undefined {
    const index = this.#aliasNumbers.get(name);
    return index !== undefined && index < visible ? index : undefined;
  }

  /**
   * Define an alias, which the following expressions can use.
   * @param visible number of aliases that its definition can use
   * @throws SqlError
   */
  define(alias: Path, expression: Expression, clause: Clause, visible: number): BoundExpression {
    const { name } = alias;
    if (this.aliasOf(name, this.aliasCount) !== undefined)
      throw new SqlError(`duplicate alias ${name}`, this.context.text, alias.start);
    const index = this.aliasCount;
    const { bound, levels } = this.#checked(expression, clause, visible);
    const hasColumn = aliasesIn(expression, this.sources).has(name);
    const isTrivial = isTrivialExpression(expression, this.context.functions);
    this.#aliasNumbers.set(name, index);
    this.#aliases.push({ name, expression, bound, levels, hasColumn, isTrivial, isUsed: false, slot: undefined });
    return { ...bound, make: (tools) => this.readAlias(index, tools) };
  }

  /**
   * Check whether a name refers to the column instead of its alias, because the clause does not allow the calls of the
   * alias.
   */
  meansColumn(index: number, { noAggregates, noAnalytics }: Clause): boolean {
    const { bound, hasColumn } = this.#aliases[index];
    const { aggregates, analytics } = bound.uses;
    return hasColumn && ((aggregates && noAggregates !== undefined) || (analytics && noAnalytics !== undefined));
  }

  /** Note that an expression uses an alias. @returns the dependencies of the alias */
  useAlias(index: number, recorder: Recorder): Uses {
    const alias = this.#aliases[index];
    alias.isUsed = true;
    recorder.add(alias.bound.uses);
    recorder.levels = Math.max(recorder.levels, alias.levels);
    return alias.bound.uses;
  }

  /** The function that reads an alias, for one start of the rule. */
  readAlias(index: number, tools: StreamFunctionTools): Evaluate {
    let compiled = this.#compiled.get(tools);
    if (compiled === undefined) this.#compiled.set(tools, (compiled = []));
    const known = compiled[index];
    if (known !== undefined) return known;
    const { bound, slot } = this.#aliases[index];
    const evaluate = bound.make(tools);
    return (compiled[index] = slot === undefined ? evaluate : lazily(slot, evaluate));
  }

  /** Assign a slot to each alias that others use. Call this when everything is bound. */
  slots(): BoundSlots {
    for (const alias of this.#aliases) {
      const { aggregates, frame } = alias.bound.uses;
      if (alias.isUsed && !alias.isTrivial) alias.slot = this.#newSlot(aggregates || frame);
    }
    return { count: this.#slotCount, ofEmission: this.#slotsOfEmission };
  }

  #newSlot(isOfEmission: boolean): number {
    const slot = this.#slotCount++;
    if (isOfEmission) this.#slotsOfEmission.push(slot);
    return slot;
  }

  /** The function that reads the result of a call, for one start of the rule. */
  readResult(call: Call): Evaluate {
    const result = this.#results.get(call);
    if (result === undefined) throw new TypeError(`${call.name}() is not bound`);
    if (result.type === 'slot') {
      const { slot } = result;
      return (tuple) => tuple.slots[slot];
    }
    const { index } = result;
    return (tuple) => (tuple as GroupRow).aggregates[index];
  }

  /** Note an aggregate call. @throws SqlError for arguments that it does not accept */
  aggregate(call: Call, row: AggregateFunction, visible: number): void {
    const args = this.arguments(call, row, IN_AGGREGATE, visible);
    this.#once(call, visible, () => {
      this.#aggregates.push({ text: this.#measures.textOf(call), function: row, args });
      return { type: 'aggregate', index: this.#aggregates.length - 1 };
    });
  }

  /** Note an analytic call. @returns its slot. @throws SqlError for arguments that it does not accept */
  analytic(
    call: Call,
    row: AnalyticFunction | ExpandingFunction,
    clause: Clause,
    { visible, recorder }: { readonly visible: number; readonly recorder: Recorder }
  ): number {
    const args = this.arguments(call, row, clause, visible);
    const partitionBy = (call.over?.partitionBy ?? []).map((node) => this.expression(node, clause, visible));
    const when = call.over?.when && this.expression(call.over.when, clause, visible);
    const parts = [...args, ...partitionBy, ...(when === undefined ? [] : [when])];
    for (const { uses } of parts) recorder.add({ ...uses, chance: false });
    const isOverGroups = parts.some(({ uses }) => uses.aggregates || uses.frame);
    // functions with several columns are computed for the selected columns [stream rules 6.7]
    const phase = row.kind !== 'analytic' ? 'results' : isOverGroups ? 'groups' : 'rows';
    const result = this.#once(call, visible, () => {
      const slot = this.#newSlot(isOverGroups);
      const names = argumentNames(call, this.sources);
      this.#analytics.push({
        text: this.#measures.textOf(call),
        function: row,
        names,
        slot,
        phase,
        args,
        partitionBy,
        when
      });
      return { type: 'slot', slot };
    });
    return (result as { readonly slot: number }).slot;
  }

  /**
   * Check a call with several results. If its function has a state, it is computed in the same way as analytic calls.
   * @throws SqlError for arguments that it does not accept
   */
  expanding(
    call: Call,
    row: ExpandingFunction,
    clause: Clause
  ): { readonly args: readonly BoundExpression[]; readonly slot: number | undefined } {
    const visible = this.aliasCount;
    checkCall(call, row, this.context.text);
    if (row.load === undefined) return { args: this.arguments(call, row, clause, visible), slot: undefined };
    return { args: [], slot: this.analytic(call, row, clause, { visible, recorder: new Recorder() }) };
  }

  /** The column that an expression consists of; undefined for other expressions. */
  columnOf(node: Expression): string | undefined {
    return this.#checked(node, {}, this.aliasCount).compiled.column?.name;
  }

  /** Check the arguments of a call. `*` is 1 or an object with all columns. @throws SqlError */
  arguments(call: Call, row: StreamFunction, clause: Clause, visible: number): BoundExpression[] {
    const scope = new BindScope(this, { clause, visible, tools: undefined, recorder: new Recorder() });
    const bound: BoundExpression[] = [];
    compileArguments(call, row, scope, (arg): CompiledExpression => {
      const checked = arg.type === 'wildcard' ? undefined : this.#checked(arg, clause, visible);
      bound.push(checked?.bound ?? this.#wildcard(call, row, arg as Wildcard));
      return checked?.compiled ?? { evaluate: NEVER };
    });
    return bound;
  }

  #wildcard(call: Call, row: StreamFunction, arg: Wildcard): BoundExpression {
    const { text } = this.context;
    const wildcard =
      row.kind === 'aggregate' || row.kind === 'analytic' ? row.wildcard : row.kind === 'columns' ? 'rows' : undefined;
    if (wildcard === undefined) throw new SqlError(`${call.name}() does not accept *`, text, arg.start);
    const recorder = new Recorder();
    if (wildcard === 'ones') return { text: '*', uses: recorder.uses(), make: () => constantOf(1n).evaluate };
    const source = arg.stream === undefined ? undefined : this.sources.position(arg.stream);
    if (arg.stream !== undefined && source === undefined)
      throw new SqlError(`unknown source ${arg.stream}`, text, arg.start);
    recorder.read(this.sources.all(source));
    return { text: '*', uses: recorder.uses(), make: () => (tuple) => tuple.columns(source) };
  }

  #once(call: Call, visible: number, make: () => Result): Result {
    const key = canonical(call, {
      aliasOf: (name) => this.aliasOf(name, visible),
      resultOf: (inner) => this.#results.get(inner)
    });
    const result = this.#known.get(key) ?? make();
    this.#known.set(key, result);
    this.#results.set(call, result);
    return result;
  }
}

function isTrivialExpression(node: Expression, functions: ReadonlyMap<string, StreamFunction>): boolean {
  if (node.type === 'literal') return true;
  if (node.type === 'path') return node.steps.every(({ type }) => type === 'key');
  if (node.type !== 'call') return false;
  const kind = functions.get(node.name.toLowerCase())?.kind;
  return kind === 'aggregate' || kind === 'analytic';
}

interface ScopeOptions {
  readonly clause: Clause;
  readonly visible: number;
  /** Absent if the expression is only checked; the recorder is then present. */
  readonly tools: StreamFunctionTools | undefined;
  readonly recorder: Recorder | undefined;
}

/** The scope of one expression of a statement. */
class BindScope implements NameScope {
  readonly text: string;
  readonly functions: ReadonlyMap<string, StreamFunction>;
  readonly tools: StreamFunctionTools | undefined;
  readonly pattern: ((text: string) => StreamPattern) | undefined;
  readonly constants: Constants;
  readonly #bindings: Bindings;
  readonly #clause: Clause;
  readonly #visible: number;
  readonly #recorder: Recorder;

  constructor(bindings: Bindings, { clause, visible, tools, recorder }: ScopeOptions) {
    this.text = bindings.context.text;
    this.functions = bindings.context.functions;
    this.constants = bindings.constants;
    this.tools = tools;
    this.pattern = tools?.pattern ?? bindings.context.pattern;
    this.#bindings = bindings;
    this.#clause = clause;
    this.#visible = visible;
    this.#recorder = recorder ?? new Recorder();
  }

  resolve(path: Path): Head {
    const { sources } = this.#bindings;
    const [first] = path.steps;
    const isQualified = first?.type === 'key' && first.isArrow !== true && sources.position(path.name) !== undefined;
    const alias = isQualified ? undefined : this.#bindings.aliasOf(path.name, this.#visible);
    if (alias !== undefined && !this.#bindings.meansColumn(alias, this.#clause))
      return { type: 'value', evaluate: this.#alias(alias, path) };
    const { candidates, ...column } = sources.column(path);
    this.#recorder.read(candidates);
    return { type: 'column', ...column };
  }

  #alias(index: number, path: Path): Evaluate {
    if (this.tools !== undefined) return this.#bindings.readAlias(index, this.tools);
    const { aggregates, analytics } = this.#bindings.useAlias(index, this.#recorder);
    if (aggregates) this.#refuse(this.#clause.noAggregates, path.start);
    if (analytics) this.#refuse(this.#clause.noAnalytics, path.start);
    return NEVER;
  }

  sourceOf(name: string): number | undefined {
    return this.#bindings.sources.position(name);
  }

  special(call: Call, row: AggregateFunction | AnalyticFunction | ExpandingFunction): Evaluate {
    if (this.tools !== undefined) return this.#bindings.readResult(call);
    const recorder = this.#recorder;
    if (row.kind === 'aggregate') {
      this.#refuse(this.#clause.noAggregates, call.start);
      this.#bindings.aggregate(call, row, this.#visible);
      recorder.aggregates = true;
      return NEVER;
    }
    if (row.kind !== 'analytic') {
      const hint = `it returns several ${row.kind}`;
      throw new SqlError(
        `${row.name}() is allowed only as a column of SELECT, outside of other expressions`,
        this.text,
        call.start,
        hint
      );
    }
    this.#refuse(this.#clause.noAnalytics, call.start);
    this.#bindings.analytic(call, row, this.#clause, { visible: this.#visible, recorder });
    recorder.analytics = true;
    return NEVER;
  }

  meta(source: number | undefined, key: string | undefined): void {
    this.#recorder.read(this.#bindings.sources.meta(source, key));
  }

  row(): void {
    for (let position = 0; position < this.#bindings.sources.count; position++) this.#recorder.sources.add(position);
  }

  frame(): void {
    this.#recorder.frame = true;
  }

  chance(): void {
    this.#recorder.chance = true;
  }

  #refuse(reason: string | undefined, start: number): void {
    if (reason !== undefined) throw new SqlError(reason, this.text, start);
  }
}

/** Placeholder for an expression that is only checked. */
const NEVER: Evaluate = () => null;
