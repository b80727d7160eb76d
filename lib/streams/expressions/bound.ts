import type { JoinKind, Window } from '../../sql/tree.ts';
import type {
  AggregateFunction,
  AnalyticFunction,
  ArgumentNames,
  ExpandingFunction,
  FunctionTools
} from '../function.ts';
import type { StreamDefinition } from '../types.ts';
import type { Evaluate } from '../values/tuple.ts';

/** What an expression depends on, those of its aliases included. It decides where the expression may be evaluated. */
export interface Uses {
  /** The positions of the sources whose columns or metadata it reads, ascending. A name that several sources may have counts for all of them. */
  readonly sources: readonly number[];
  /** Those of them that it reads for certain: by a name that no other source can have. */
  readonly certain: readonly number[];
  /** It reads the result of an aggregate call, so it is evaluated over groups. */
  readonly aggregates: boolean;
  /** It reads the result of an analytic call, so it is evaluated behind the operator that writes its slot. */
  readonly analytics: boolean;
  /** It reads the window, or the number of a row in its emission. */
  readonly frame: boolean;
  /** It may have another value at each evaluation: `rand()`, `now()`, and functions of the app. */
  readonly chance: boolean;
}

/** An expression whose names are known. */
export interface BoundExpression {
  /** The expression as SQL. */
  readonly text: string;
  readonly uses: Uses;
  /**
   * Make the closure that evaluates it, for a rule that starts. All expressions of a rule are made with the same object.
   * @throws SqlError for a regular expression that is none, if `bind` could not check them
   */
  readonly make: (tools: FunctionTools) => Evaluate;
}

/** A part of WHERE: the condition is the conjunction of its parts. */
export interface BoundPredicate extends BoundExpression {
  /**
   * The source whose rows may be filtered by this part before they are joined, without a change of the results. undefined: the part is evaluated
   * behind the joins. So is a part that reads analytic calls, the window or chance.
   */
  readonly movesTo: number | undefined;
}

/** A part of ON: the condition is the conjunction of its parts. */
interface BoundMatch extends BoundExpression {
  /** For `a.x = b.y`. undefined: the part is something else. */
  readonly equality: Equality | undefined;
}

/** An equality of an expression over the sources that are joined already, and one over the source of the join alone. */
export interface Equality {
  readonly left: BoundExpression;
  readonly right: BoundExpression;
  /** Set if the right side is a plain column. */
  readonly column: string | undefined;
}

/** `stream`: its rows trigger. `table`: its latest rows are joined. `lookup`: rows are looked up by keys. */
export type SourceRole = 'stream' | 'table' | 'lookup';

/** A source of the statement. Its position, from 0, is its place in FROM and JOIN. */
export interface BoundSource {
  readonly position: number;
  /** Name of the stream or table. */
  readonly name: string;
  /** What the statement calls it. */
  readonly label: string;
  readonly role: SourceRole;
  readonly definition: StreamDefinition;
  /**
   * The columns that the statement reads, spelled as in the schema if there is one. Without a schema, names of several sources count for each.
   * The column of TIMESTAMP is not added.
   */
  readonly needed: ReadonlySet<string> | 'all';
  /** The keys of metadata that the statement reads. */
  readonly neededMeta: ReadonlySet<string> | 'all';
}

/** A join, in the order of the statement. */
export interface BoundJoin {
  readonly kind: JoinKind;
  /** The position of its source; the sources before it are those on its left. */
  readonly source: number;
  /** Empty: every row matches. */
  readonly on: readonly BoundMatch[];
}

export interface BoundWindow {
  /** Kind, unit and lengths. */
  readonly node: Window;
  readonly filter: BoundExpression | undefined;
  readonly when: BoundExpression | undefined;
  readonly conditions: readonly BoundExpression[];
  /** Of a state window: those of OVER (PARTITION BY ...), or else the keys of GROUP BY that the rows before the window have. */
  readonly partitionBy: readonly BoundExpression[];
}

/** An aggregate call. Equal calls are one. */
export interface BoundAggregate {
  readonly text: string;
  readonly function: AggregateFunction;
  /** Evaluated for each row of a group. For `*`: 1, or an object with all columns of the row. */
  readonly args: readonly BoundExpression[];
}

/** A call that remembers earlier rows. Equal calls are one. */
export interface BoundAnalytic {
  readonly text: string;
  readonly function: AnalyticFunction | ExpandingFunction;
  /** Arguments of `make` of its function. */
  readonly names: ArgumentNames;
  /** The slot that its operator writes for each tuple. The calls are computed in the order of the list, because one can be an argument of another. */
  readonly slot: number;
  /**
   * `rows`: computed for rows, before WHERE. `groups`: it reads an aggregate call or the window, so it is computed for the tuples of emissions.
   * `results`: computed for what is selected, such as `changed_cols`.
   */
  readonly phase: 'rows' | 'groups' | 'results';
  readonly args: readonly BoundExpression[];
  readonly partitionBy: readonly BoundExpression[];
  readonly when: BoundExpression | undefined;
}

/** A part of the output, in the order of SELECT. */
export type BoundField =
  /** `*`, `demo.*`: all columns, without some, and with others instead. */
  | {
      readonly type: 'star';
      readonly source: number | undefined;
      readonly except: readonly string[];
      readonly replace: readonly { readonly name: string; readonly expression: BoundExpression }[];
    }
  | { readonly type: 'column'; readonly name: string; readonly expression: BoundExpression }
  /** A call of `unnest`, whose results are rows, or of one such as `changed_cols`, whose results are columns. */
  | {
      readonly type: 'expanding';
      /** For results that are no structs. */
      readonly name: string;
      readonly function: ExpandingFunction;
      readonly names: ArgumentNames;
      readonly args: readonly BoundExpression[];
      /** The slot of the analytic call that computes it. undefined: it is computed here. */
      readonly slot: number | undefined;
    };

/**
 * The slots of tuples. If there are any, the first operator gives each tuple new ones (`freshSlots`), and so does a join. After a window and after
 * an aggregation, each tuple of an emission gets a copy without the values of the previous emission (`emissionSlots`).
 */
export interface BoundSlots {
  readonly count: number;
  /** The slots whose value depends on the emission. */
  readonly ofEmission: readonly number[];
}

/** A SELECT over streams whose names are known. It is plain and read-only: operators are made from it each time the rule starts. */
export interface BoundSelect {
  readonly sources: readonly BoundSource[];
  readonly joins: readonly BoundJoin[];
  /** Empty: there is no WHERE. */
  readonly where: readonly BoundPredicate[];
  readonly window: BoundWindow | undefined;
  readonly groupBy: readonly BoundExpression[];
  readonly having: BoundExpression | undefined;
  readonly orderBy: readonly { readonly expression: BoundExpression; readonly isDescending: boolean }[];
  readonly limit: number | undefined;
  /** The output, without what is INVISIBLE. */
  readonly fields: readonly BoundField[];
  /** The results of these calls are the aggregates of a `GroupRow`, in this order. */
  readonly aggregates: readonly BoundAggregate[];
  readonly analytics: readonly BoundAnalytic[];
  readonly slots: BoundSlots;
  /** There is an aggregate call or a key of GROUP BY: rows are grouped. */
  readonly isGrouped: boolean;
  /** It calls `delay`. */
  readonly isDelayed: boolean;
}

/** The streams and tables that there are. */
export interface Catalogue {
  get(name: string): StreamDefinition | undefined;
}
