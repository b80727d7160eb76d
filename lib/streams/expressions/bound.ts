// The result of resolving the names of a statement (`lib/streams/plan/bind.ts`), from which the operators are
// planned. All of it is immutable and shared by every start of a rule; the state of a run is only in closures from
// `make` and in operators. A flag of `Uses` that is missing or too narrow moves an expression to a place where its
// value is not known yet.

import type { JoinKind, Window } from '../../sql/tree.ts';
import type {
  AggregateFunction,
  AnalyticFunction,
  ArgumentNames,
  ExpandingFunction,
  StreamFunctionTools
} from '../function.ts';
import type { StreamDefinition } from '../types.ts';
import type { Evaluate } from '../values/tuple.ts';

/**
 * The dependencies of an expression, including those of its aliases. They decide where the expression may be evaluated.
 */
export interface Uses {
  /**
   * The positions of the sources whose columns or metadata it reads, ascending. An ambiguous name counts for each of
   * its sources.
   */
  readonly sources: readonly number[];
  /** The sources among them that it certainly reads, because the name is unambiguous. */
  readonly certain: readonly number[];
  /** True if it reads the result of an aggregate call, so that it is evaluated over groups. */
  readonly aggregates: boolean;
  /**
   * True if it reads the result of an analytic call, so that it is evaluated after the operator that writes its slot.
   */
  readonly analytics: boolean;
  /** True if it reads the window, or the number of a row in its emission. */
  readonly frame: boolean;
  /** True if its value may differ at each evaluation: `rand()`, `now()`, and functions of the app. */
  readonly chance: boolean;
}

/** An expression whose names are resolved. */
export interface BoundExpression {
  /** The expression as SQL. */
  readonly text: string;
  readonly uses: Uses;
  /**
   * Make the closure that evaluates the expression, for a rule that starts. The same object is passed for all
   * expressions of a rule.
   * @throws SqlError for an invalid regular expression, if `bind` could not check it
   */
  readonly make: (tools: StreamFunctionTools) => Evaluate;
  /** Of a condition: what it reads, such as columns, for samples of what it excludes. Absent: nothing is known. */
  readonly reads?: readonly BoundExpression[];
}

/** A part of WHERE, which is the conjunction of its parts. */
export interface BoundPredicate extends BoundExpression {
  /**
   * The source whose rows may be filtered by this part before they are joined, without changing the results. Undefined
   * if the part is evaluated after the joins, as are parts that read analytic calls, the window or chance.
   */
  readonly movesTo: number | undefined;
}

/** A part of ON, which is the conjunction of its parts. */
interface BoundMatch extends BoundExpression {
  /** Set for `a.x = b.y`. */
  readonly equality: Equality | undefined;
}

/** An equality between an expression over the sources joined so far and one over the joined source alone. */
export interface Equality {
  readonly left: BoundExpression;
  readonly right: BoundExpression;
  /** Set if the right side is a plain column. */
  readonly column: string | undefined;
}

/** `stream`: rows trigger evaluations. `table`: the latest rows are joined. `lookup`: rows are looked up by keys. */
export type SourceRole = 'stream' | 'table' | 'lookup';

/** A source of the statement. Its position, from 0, is its position in FROM and JOIN. */
export interface BoundSource {
  readonly position: number;
  /** Name of the stream or table. */
  readonly name: string;
  /** The name by which the statement refers to it. */
  readonly label: string;
  readonly role: SourceRole;
  readonly definition: StreamDefinition;
  /**
   * The columns that the statement reads, spelled as in the schema if there is one. Without a schema, ambiguous names
   * count for each source. The TIMESTAMP column is not included.
   */
  readonly needed: ReadonlySet<string> | 'all';
  /** The metadata keys that the statement reads. */
  readonly neededMeta: ReadonlySet<string> | 'all';
}

/** A join, in the order of the statement. */
export interface BoundJoin {
  readonly kind: JoinKind;
  /** The position of its source; the sources before it are on its left side. */
  readonly source: number;
  /** If empty, every row matches. */
  readonly on: readonly BoundMatch[];
}

export interface BoundWindow {
  /** Kind, unit and lengths. */
  readonly node: Window;
  readonly filter: BoundExpression | undefined;
  readonly when: BoundExpression | undefined;
  readonly conditions: readonly BoundExpression[];
  /**
   * For a state window: the expressions of OVER (PARTITION BY ...), or else the keys of GROUP BY that are available
   * before the window.
   */
  readonly partitionBy: readonly BoundExpression[];
}

/** An aggregate call. Equal calls are merged. */
export interface BoundAggregate {
  readonly text: string;
  readonly function: AggregateFunction;
  /** Evaluated for each row of a group. For `*`: 1, or an object with all columns of the row. */
  readonly args: readonly BoundExpression[];
}

/** A call that remembers earlier rows. Equal calls are merged. */
export interface BoundAnalytic {
  readonly text: string;
  readonly function: AnalyticFunction | ExpandingFunction;
  /** The names passed to `make` of its function. */
  readonly names: ArgumentNames;
  /**
   * The slot that its operator writes for each tuple. Calls are computed in list order, because one may be an argument
   * of another.
   */
  readonly slot: number;
  /**
   * `rows`: computed for rows, before WHERE. `groups`: reads an aggregate call or the window, so it is computed for the
   * tuples of emissions. `results`: computed for the selected columns, such as `changed_cols`.
   */
  readonly phase: 'rows' | 'groups' | 'results';
  readonly args: readonly BoundExpression[];
  readonly partitionBy: readonly BoundExpression[];
  readonly when: BoundExpression | undefined;
}

/** A part of the output, in the order of SELECT. */
export type BoundField =
  /** `*` or `demo.*`: all columns, without those of EXCEPT and with those of REPLACE. */
  | {
      readonly type: 'star';
      readonly source: number | undefined;
      readonly except: readonly string[];
      readonly replace: readonly { readonly name: string; readonly expression: BoundExpression }[];
    }
  | { readonly type: 'column'; readonly name: string; readonly expression: BoundExpression }
  /** A call of a function such as `unnest`, whose results are rows, or `changed_cols`, whose results are columns. */
  | {
      readonly type: 'expanding';
      /** Column name for results that are not structs. */
      readonly name: string;
      readonly function: ExpandingFunction;
      readonly names: ArgumentNames;
      readonly args: readonly BoundExpression[];
      /** The slot of the analytic call that computes it. If undefined, it is computed here. */
      readonly slot: number | undefined;
    };

/**
 * The slots of tuples. If there are any, the first operator gives each tuple new slots (`freshSlots`), and so does a
 * join. After a window and after an aggregation, each tuple of an emission receives a copy without the values of the
 * previous emission (`emissionSlots`).
 */
export interface BoundSlots {
  readonly count: number;
  /** The slots whose value depends on the emission. */
  readonly ofEmission: readonly number[];
}

/**
 * A SELECT over streams with resolved names. It is immutable: operators are created from it each time the rule starts.
 */
export interface BoundSelect {
  readonly sources: readonly BoundSource[];
  readonly joins: readonly BoundJoin[];
  /** Empty if there is no WHERE. */
  readonly where: readonly BoundPredicate[];
  readonly window: BoundWindow | undefined;
  readonly groupBy: readonly BoundExpression[];
  readonly having: BoundExpression | undefined;
  readonly orderBy: readonly { readonly expression: BoundExpression; readonly isDescending: boolean }[];
  readonly limit: number | undefined;
  /** The output, without INVISIBLE fields. */
  readonly fields: readonly BoundField[];
  /** The results of these calls are the aggregates of a `GroupRow`, in this order. */
  readonly aggregates: readonly BoundAggregate[];
  readonly analytics: readonly BoundAnalytic[];
  readonly slots: BoundSlots;
  /** True if rows are grouped: there is an aggregate call or a key of GROUP BY. */
  readonly isGrouped: boolean;
  /** True if the statement calls `delay`. */
  readonly isDelayed: boolean;
}

/** The existing streams and tables. */
export interface Catalogue {
  get(name: string): StreamDefinition | undefined;
}
