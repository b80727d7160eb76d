import type { WorkTime } from '../base/slices.ts';
import type { RowWork } from './limits.ts';
import type { Frame, Tuple } from './values/tuple.ts';
import type { Value } from './values/values.ts';

/** Types of parameters that are checked for literals when the rule is made. `number`: bigint or float. */
export type ParameterType =
  | 'any'
  | 'bigint'
  | 'float'
  | 'number'
  | 'string'
  | 'boolean'
  | 'datetime'
  | 'array'
  | 'struct';

/** A parameter; with `?` it may be left out, with `...` there may be any number of them. */
export type Parameter = ParameterType | `${ParameterType}?` | `${ParameterType}...`;

/** A regular expression that takes time in proportion to the text and to its parts. */
export interface Pattern {
  /** Number of its parts, if its repetitions are written out. */
  readonly parts: number;
  test(text: string): boolean;
  /** Replace each match. */
  replace(text: string, replacement: (match: readonly string[]) => string): string;
}

/** What functions use of the rule and the process. */
export interface FunctionTools {
  readonly ruleId: string;
  /** When the rule was started, in milliseconds since 1970. */
  readonly startedAt: number;
  /** Wall-clock milliseconds. */
  now(): number;
  /** A number from 0 to 1. */
  random(): number;
  /** Compile a regular expression. @throws StreamFailure */
  pattern(text: string): Pattern;
  /** Offset of the zone of the service from UTC at a time, in minutes. */
  offsetMinutes(timeMs: number): number;
  /** A property of the service that is shared by its rules: `get_keyed_state`, `props`. */
  property(name: string): Value;
  /**
   * Number of emissions of the rule, or with OVER (WHEN ...) of triggers of its window, and the time of the last one. The time is that of the row or
   * of the end of the window, in event time too.
   */
  readonly hits: { count: number; lastAt: number };
  /** How many groups HAVING has let pass, and when last. */
  readonly groupHits: { count: number; lastAt: number };
  /** When the calls of `delay` have waited, in wall-clock milliseconds: emissions leave after that. */
  readonly delayed: { until: number };
  readonly frame: Frame;
  /** The bound `rowWeight`. Default: `MAX_WEIGHT`. */
  readonly rowWeight?: number;
  /** The work of all functions for one row. Absent: it is not counted. @internal */
  readonly rowWork?: RowWork;
  /** Of a test: evaluation fails when its time is over. @internal */
  readonly time?: Pick<WorkTime, 'isOver'>;
}

/** What all functions have. */
export interface FunctionBase {
  /** In lower case. */
  readonly name: string;
  /** Functions that belong together in the documents. */
  readonly family: string;
  readonly params: readonly Parameter[];
  /** What it does, in one sentence. */
  readonly about: string;
  /** The values that a literal argument can have, by its index. */
  readonly choices?: Readonly<Record<number, readonly string[]>>;
  /** Check the literals of a call when the rule is made; undefined for what is no literal. @returns what is wrong */
  readonly check?: (literals: readonly (Value | undefined)[]) => string | undefined;
  /** An argument, by its index, that is a regular expression; a literal is compiled when the rule is made. The first argument is its text. */
  readonly patternAt?: number;
}

/** A function of the values of one tuple. */
export interface ScalarFunction extends FunctionBase {
  readonly kind: 'scalar';
  /** The result is null if the first argument is, without a call. */
  readonly nullIsNull?: true;
  /** Its result depends on nothing but its arguments: calls with literals are evaluated once. */
  readonly isPure?: true;
  /** @throws StreamFailure */
  // biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
  readonly run: (...args: any[]) => Value;
}

/** A scalar function that uses the rule or the process. */
export interface ContextFunction extends FunctionBase {
  readonly kind: 'context';
  /** Called when a rule starts. */
  readonly make: (tools: FunctionTools) => (tuple: Tuple, ...args: Value[]) => Value;
}

/** The state of one aggregation. The arrays of arguments are reused: an accumulator keeps values, but not the array. */
export interface Accumulator {
  /** @param tuple the row of the values; for `collect(*)` */
  add(args: readonly Value[], tuple: Tuple): void;
  /** Take back what was added first. Those of `makeSliding` have it. */
  remove?(args: readonly Value[], tuple: Tuple): void;
  /** @throws StreamFailure */
  result(): Value;
  /** For checkpoints: what `v8.serialize` can write. */
  save(): unknown;
}

/** A function of the values of a group of rows. */
export interface AggregateFunction extends FunctionBase {
  readonly kind: 'aggregate';
  /** It needs no rows, but only its state: `sum`, but not `percentile_cont`. */
  readonly isIncremental?: true;
  /** `count(*)`: what the argument `*` stands for. `rows`: an object with all columns of each row. */
  readonly wildcard?: 'ones' | 'rows';
  readonly make: (tools: FunctionTools) => Accumulator;
  /** Make an accumulator with `remove`, for windows that overlap. Absent: the rows of such windows are aggregated for each emission. */
  readonly makeSliding?: (tools: FunctionTools) => Accumulator;
  /** Continue with the state of a checkpoint, whether it is of `make` or of `makeSliding`. */
  readonly load: (tools: FunctionTools, state: unknown) => Accumulator;
}

/** The state of an analytic function, for one partition. */
export interface AnalyticState {
  /** Called before WHERE for each row whose condition WHEN is true, or that has none. */
  next(args: readonly Value[], tuple: Tuple): Value;
  /** The result for a row whose condition WHEN is false. Absent: the previous result is repeated. */
  skipped?(args: readonly Value[], tuple: Tuple): Value;
  /** For checkpoints: what `v8.serialize` can write. */
  save(): unknown;
}

/** A function that remembers earlier rows of its rule: `lag`. */
export interface AnalyticFunction extends FunctionBase {
  readonly kind: 'analytic';
  /** It takes `*`: an object with all columns, whose name is undefined. */
  readonly wildcard?: 'rows';
  readonly make: (tools: FunctionTools, names: ArgumentNames) => AnalyticState;
  readonly load: (tools: FunctionTools, names: ArgumentNames, state: unknown) => AnalyticState;
}

/** The state of a call of an expanding function. */
export interface ExpandingState {
  /** For `rows`: an array; objects in it are spread to columns. For `columns`: an object. */
  next(args: readonly Value[], tuple: Tuple): Value;
  /** For checkpoints: what `v8.serialize` can write. */
  save?(): unknown;
}

/** The columns that the arguments of a call would be; undefined for `*`, whose value is an object with all columns. */
export type ArgumentNames = readonly (string | undefined)[];

/** A function with several results: `unnest` makes rows of them, `changed_cols` and `extract` columns. */
export interface ExpandingFunction extends FunctionBase {
  readonly kind: 'rows' | 'columns';
  readonly make: (tools: FunctionTools, names: ArgumentNames) => ExpandingState;
  /** Continue with the state of a checkpoint. */
  readonly load?: (tools: FunctionTools, names: ArgumentNames, state: unknown) => ExpandingState;
}

export type StreamFunction =
  | ScalarFunction
  | ContextFunction
  | AggregateFunction
  | AnalyticFunction
  | ExpandingFunction;
