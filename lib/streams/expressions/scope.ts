import type { Call, Expression, Path } from '../../sql/tree.ts';
import type {
  AggregateFunction,
  AnalyticFunction,
  ExpandingFunction,
  FunctionTools,
  Pattern,
  StreamFunction
} from '../function.ts';
import type { Evaluate } from '../values/tuple.ts';
import type { Value } from '../values/values.ts';
import type { Constants } from './constants.ts';

/** Where a path begins. */
export type Head =
  /** A column: of one source, or of the first one that has it. `taken`: the steps of the path that belong to its name, 1 for `demo.a`. */
  | { readonly type: 'column'; readonly name: string; readonly source: number | undefined; readonly taken: 0 | 1 }
  /** An alias. */
  | { readonly type: 'value'; readonly evaluate: Evaluate };

/** What an expression depends on besides columns, aliases and the functions that are given to `Scope.special`. */
interface Dependencies {
  /** A key of the metadata of a source, or of the first one that has it. Without a key: all of them. */
  meta(source: number | undefined, key: string | undefined): void;
  /** The tuple itself, whatever sources it has: its time. */
  row(): void;
  /** The window, the number of the row in its emission. */
  frame(): void;
  /** A result that may be another one at the next evaluation. */
  chance(): void;
}

/** What an expression is compiled in: the names that it can use, and the functions. */
export interface Scope extends Dependencies {
  /** The statement, for the positions of errors. */
  readonly text: string;
  /** By name in lower case. */
  readonly functions: ReadonlyMap<string, StreamFunction>;
  /** undefined: the expression is only checked, and what is compiled is never evaluated. */
  readonly tools: FunctionTools | undefined;
  /** Compiles regular expressions, to check those that are literals. undefined: they are not checked. */
  readonly pattern: ((text: string) => Pattern) | undefined;
  /** The constants of the statement. */
  readonly constants: Constants;
  /** The column or the alias that a path begins with. @throws SqlError */
  resolve(path: Path): Head;
  /** The position of a source; undefined: none has this name. */
  sourceOf(name: string): number | undefined;
  /** A call whose result is computed by an operator of its own. @returns what reads the result. @throws SqlError where it cannot stand */
  special(call: Call, row: AggregateFunction | AnalyticFunction | ExpandingFunction): Evaluate;
}

/** An expression that is compiled. */
export interface Compiled {
  readonly evaluate: Evaluate;
  /** It has the same value for all rows. */
  readonly constant?: { readonly value: Value };
  /** It is nothing but a column. */
  readonly column?: { readonly name: string; readonly source: number | undefined };
}

/** Compiles an expression in the scope at hand. */
export type Compile = (node: Expression) => Compiled;

/** An expression that has the same value for all rows. */
export function constantOf(value: Value): Compiled {
  return { evaluate: () => value, constant: { value } };
}
