import type { Compiled } from '../../sql/compile.ts';
import type { Call, Expression, Path } from '../../sql/tree.ts';
import type {
  AggregateFunction,
  AnalyticFunction,
  ExpandingFunction,
  StreamFunction,
  StreamFunctionTools,
  StreamPattern
} from '../function.ts';
import type { Evaluate, Tuple } from '../values/tuple.ts';
import type { StreamValue } from '../values/values.ts';
import type { Constants } from './constants.ts';

/** The beginning of a path. */
export type Head =
  /**
   * A column of one source, or of the first source that has it. `taken`: the steps of the path that belong to its name,
   * 1 for `demo.a`.
   */
  | { readonly type: 'column'; readonly name: string; readonly source: number | undefined; readonly taken: 0 | 1 }
  /** An alias. */
  | { readonly type: 'value'; readonly evaluate: Evaluate };

/** Dependencies of an expression other than columns, aliases and the functions that are passed to `NameScope.special`. */
interface Dependencies {
  /** A metadata key of a source, or of the first source that has it. Without a key: all metadata. */
  meta(source: number | undefined, key: string | undefined): void;
  /** The tuple itself, independently of its sources: its time. */
  row(): void;
  /** The window, or the number of the row in its emission. */
  frame(): void;
  /** A result that may differ at the next evaluation. */
  chance(): void;
}

/** The context in which an expression is compiled: the names that it can use, and the functions. */
export interface NameScope extends Dependencies {
  /** The text of the statement, for the positions of errors. */
  readonly text: string;
  /** Functions by name in lower case. */
  readonly functions: ReadonlyMap<string, StreamFunction>;
  /** Undefined if the expression is only checked and the compiled result is never evaluated. */
  readonly tools: StreamFunctionTools | undefined;
  /** Compiles regular expressions, to check literal ones. If undefined, they are not checked. */
  readonly pattern: ((text: string) => StreamPattern) | undefined;
  /** The constants of the statement. */
  readonly constants: Constants;
  /** The column or the alias with which a path begins. @throws SqlError */
  resolve(path: Path): Head;
  /** The position of a source; undefined if no source has this name. */
  sourceOf(name: string): number | undefined;
  /**
   * A call whose result is computed by a separate operator.
   * @returns the function that reads the result.
   * @throws SqlError if the call is not allowed here
   */
  special(call: Call, row: AggregateFunction | AnalyticFunction | ExpandingFunction): Evaluate;
}

export type CompiledExpression = Compiled<Tuple, StreamValue>;

/** Compiles an expression in the current scope. */
export type Compile = (node: Expression) => CompiledExpression;
