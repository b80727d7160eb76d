import type { WorkTime } from '../base/slices.ts';
import type { FunctionFields, FunctionTools, Parameter, Pattern } from '../sql/functions/function.ts';
import type { RowWork } from './limits.ts';
import type { Frame, Tuple } from './values/tuple.ts';
import type { StreamValue } from './values/values.ts';

/** Types of parameters, which are checked for literals when the rule is created. `number`: bigint or float. */
export type StreamParameterType =
  | 'any'
  | 'bigint'
  | 'float'
  | 'number'
  | 'string'
  | 'boolean'
  | 'datetime'
  | 'array'
  | 'struct';

/** A parameter of one of these types; `?` marks it as optional, `...` as repeatable. */
export type StreamParameter = Parameter<StreamParameterType>;

/** A regular expression, without the groups of its first match. */
export type StreamPattern = Pick<Pattern, 'parts' | 'test' | 'replace'>;

/** Dependencies of functions on the rule and the process. */
export interface StreamFunctionTools extends Omit<FunctionTools, 'table' | 'pattern'> {
  /** Compile a regular expression. @throws SqlFailure */
  pattern(text: string): StreamPattern;
  /** The id of the rule. */
  readonly ruleId: string;
  /** Start time of the rule, in milliseconds since 1970. */
  readonly startedAt: number;
  /** Offset from UTC of the service's zone at a time, in minutes. */
  offsetMinutes(timeMs: number): number;
  /** A property of the service that its rules share: `get_keyed_state`, `props`. */
  property(name: string): StreamValue;
  /**
   * Number of emissions of the rule or, with OVER (WHEN ...), of triggers of its window, and the time of the last one.
   * The time is that of the row or of the end of the window, also in event time.
   */
  readonly hits: {
    /** Number of emissions or triggers. */
    count: number;
    /** Time of the last one, in milliseconds since 1970; 0: there was none. */
    lastAt: number;
  };
  /** Number of groups that passed HAVING, and the time of the last one. */
  readonly groupHits: {
    /** Number of groups. */
    count: number;
    /** Time of the last one, in milliseconds since 1970; 0: there was none. */
    lastAt: number;
  };
  /**
   * The time at which the delays of `delay` have elapsed, in wall-clock milliseconds: emissions are sent after that.
   */
  readonly delayed: {
    /** The time, in milliseconds since 1970. */
    until: number;
  };
  /** The context of the current evaluation. */
  readonly frame: Frame;
  /** The limit `rowWeight`. Default: `MAX_WEIGHT`. */
  readonly rowWeight?: number;
  /** The work of all functions for one row. Absent if it is not counted. @internal */
  readonly rowWork?: RowWork;
  /** The time limit of a test, after which evaluation fails. @internal */
  readonly time?: Pick<WorkTime, 'isOver'>;
}

/** The fields that all functions of streams have. */
export interface FunctionBase extends FunctionFields<StreamParameterType> {
  /**
   * Check the literals of a call when the rule is created; arguments that are not literals are undefined.
   * @returns the fault
   */
  readonly check?: (literals: readonly (StreamValue | undefined)[]) => string | undefined;
}

/** A function of the values of one tuple. */
export interface ScalarFunction extends FunctionBase {
  /** A function of the values of one tuple. */
  readonly kind: 'scalar';
  /** Set if the result is null whenever the first argument is null; the function is then not called. */
  readonly nullIsNull?: true;
  /** Set if the result depends only on the arguments: calls with literals are evaluated once. */
  readonly isPure?: true;
  /** Compute the result of the function for one row. It must not be async. @throws StreamFailure */
  // biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
  readonly run: (...args: any[]) => StreamValue;
}

/** A scalar function that depends on the rule or the process. */
export interface ContextFunction extends FunctionBase {
  /** A function that depends on the rule or the process. */
  readonly kind: 'context';
  /** Called when a rule starts. */
  readonly make: (tools: StreamFunctionTools) => (tuple: Tuple, ...args: StreamValue[]) => StreamValue;
}

/** The state of one aggregation. The argument arrays are reused: an accumulator may store values, but not the array. */
export interface Accumulator {
  /** Add the arguments of one row. @param tuple the row of the values, for `collect(*)` */
  add(args: readonly StreamValue[], tuple: Tuple): void;
  /** Remove the values that were added first. Accumulators of `makeSliding` support this. */
  remove?(args: readonly StreamValue[], tuple: Tuple): void;
  /** Compute the result from the values that were added. @throws StreamFailure */
  result(): StreamValue;
  /** The state for a checkpoint, in a form that `v8.serialize` can write. */
  save(): unknown;
}

/** A function of the values of a group of rows. */
export interface AggregateFunction extends FunctionBase {
  /** A function of a group of rows. */
  readonly kind: 'aggregate';
  /** Set if it needs only its state and not the rows: `sum`, but not `percentile_cont`. */
  readonly isIncremental?: true;
  /** `count(*)`: the meaning of the argument `*`. `rows`: an object with all columns of each row. */
  readonly wildcard?: 'ones' | 'rows';
  /** Make the accumulator of a group. */
  readonly make: (tools: StreamFunctionTools) => Accumulator;
  /**
   * Make an accumulator with `remove`, for overlapping windows. If absent, the rows of such windows are aggregated for
   * each emission.
   */
  readonly makeSliding?: (tools: StreamFunctionTools) => Accumulator;
  /** Restore the state of a checkpoint, of an accumulator of either `make` or `makeSliding`. */
  readonly load: (tools: StreamFunctionTools, state: unknown) => Accumulator;
}

/** The state of an analytic function, for one partition. */
export interface AnalyticState {
  /** Called before WHERE for each row whose WHEN condition is true or absent. */
  next(args: readonly StreamValue[], tuple: Tuple): StreamValue;
  /** The result for a row whose WHEN condition is false. If absent, the previous result is repeated. */
  skipped?(args: readonly StreamValue[], tuple: Tuple): StreamValue;
  /** The state for a checkpoint, in a form that `v8.serialize` can write. */
  save(): unknown;
}

/** A function that remembers earlier rows of its rule: `lag`. */
export interface AnalyticFunction extends FunctionBase {
  /** A function that remembers earlier rows. */
  readonly kind: 'analytic';
  /** Set if it accepts `*`: an object with all columns, whose name is undefined. */
  readonly wildcard?: 'rows';
  /** Make the state when a rule starts. */
  readonly make: (tools: StreamFunctionTools, names: ArgumentNames) => AnalyticState;
  /** Restore the state of a checkpoint. */
  readonly load: (tools: StreamFunctionTools, names: ArgumentNames, state: unknown) => AnalyticState;
}

/** The state of a call of an expanding function. */
export interface ExpandingState {
  /** For `rows`: an array, whose objects are spread to columns. For `columns`: an object. */
  next(args: readonly StreamValue[], tuple: Tuple): StreamValue;
  /** The state for a checkpoint, in a form that `v8.serialize` can write. */
  save?(): unknown;
}

/** The column names of the arguments of a call; undefined for `*`, whose value is an object with all columns. */
export type ArgumentNames = readonly (string | undefined)[];

/** A function with several results: `unnest` converts them to rows, `changed_cols` and `extract` to columns. */
export interface ExpandingFunction extends FunctionBase {
  /** `rows`: each result is a row; `columns`: each result is a column. */
  readonly kind: 'rows' | 'columns';
  /** Make the state when a rule starts. */
  readonly make: (tools: StreamFunctionTools, names: ArgumentNames) => ExpandingState;
  /** Restore the state of a checkpoint. */
  readonly load?: (tools: StreamFunctionTools, names: ArgumentNames, state: unknown) => ExpandingState;
}

/** A function of statements of stream rules; `kind` says which of these it is. */
export type StreamFunction =
  | ScalarFunction
  | ContextFunction
  | AggregateFunction
  | AnalyticFunction
  | ExpandingFunction;
