// Nodes are plain readonly objects with a tag in `type`, and `start` and `end` in the text of the statement. A part
// that was not written is absent. Both dialects share the nodes; some exist in one of them only, and the parser, not
// the tree, decides which. A new node needs a case in the parser, in `Printer`, in the visitors of expressions and in
// the compilers.

import type { Value } from './values.ts';

/** Position of a node in the text of its statement. */
interface Placed {
  readonly start: number;
  readonly end: number;
}

/** A constant: a number, a string or a boolean. */
export interface Literal extends Placed {
  readonly type: 'literal';
  readonly value: Value;
}

/** A step of a path: a key, an index, or a slice of a list. */
export type Step =
  /** `isArrow`: written `a->b`. */
  | { readonly type: 'key'; readonly key: string; readonly isArrow?: true }
  /** `append`: the index `-0` of an alias. */
  | { readonly type: 'index'; readonly index: Expression; readonly append?: true }
  | { readonly type: 'slice'; readonly from: number; readonly to: number }
  /** `a[1:3]`: from one index up to, but not including, another. */
  | { readonly type: 'part'; readonly from?: Expression; readonly to?: Expression };

/** A column, or a value below it: `payload.a[1]`. */
export interface Path extends Placed {
  readonly type: 'path';
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Steps below the value of an expression that is not a column: `collect(*)[0]->a`. */
export interface Access extends Placed {
  readonly type: 'access';
  readonly subject: Expression;
  readonly steps: readonly Step[];
}

export interface Call extends Placed {
  readonly type: 'call';
  readonly name: string;
  readonly args: readonly Expression[];
  /** `OVER (PARTITION BY a WHEN b)`. */
  readonly over?: Over;
}

/** `OVER (PARTITION BY a, b WHEN c)`. */
export interface Over {
  readonly partitionBy: readonly Expression[];
  readonly when?: Expression;
}

type UnaryOperator = 'NOT' | '-' | '+';

export interface Unary extends Placed {
  readonly type: 'unary';
  readonly operator: UnaryOperator;
  readonly operand: Expression;
}

type Comparison = '=' | '!=' | '<' | '>' | '<=' | '>=' | '=~';
export type Arithmetic = '+' | '-' | '*' | '/' | 'div' | 'mod';
/** Additional operators of streams: remainder and bit operations. */
type BitOperator = '%' | '&' | '|' | '^';
export type BinaryOperator = 'OR' | 'AND' | Comparison | Arithmetic | BitOperator;

export interface Binary extends Placed {
  readonly type: 'binary';
  readonly operator: BinaryOperator;
  readonly left: Expression;
  readonly right: Expression;
}

/** `a IN (1, 2)`. */
interface Membership extends Placed {
  readonly type: 'in';
  readonly isNegated: boolean;
  readonly subject: Expression;
  readonly items: readonly Expression[];
  /** `a IN b`: the only item is an array whose elements are meant. */
  readonly isArray?: true;
}

/** `a BETWEEN 1 AND 2`. */
export interface Between extends Placed {
  readonly type: 'between';
  readonly isNegated: boolean;
  readonly subject: Expression;
  readonly low: Expression;
  readonly high: Expression;
}

/** `a LIKE "x%"`. */
export interface Like extends Placed {
  readonly type: 'like';
  readonly isNegated: boolean;
  readonly subject: Expression;
  readonly pattern: Expression;
}

/** `*` as an argument, as in `count(*)`; `demo.*`. */
export interface Wildcard extends Placed {
  readonly type: 'wildcard';
  readonly stream?: string;
}

/** `CASE WHEN a THEN b ELSE c END`; with a subject, `CASE x WHEN 1 THEN b END`. */
export interface Case extends Placed {
  readonly type: 'case';
  readonly subject?: Expression;
  readonly branches: readonly { readonly when: Expression; readonly result: Expression }[];
  readonly otherwise?: Expression;
}

/** `[a, 'b', 3]`. */
interface List extends Placed {
  readonly type: 'list';
  readonly items: readonly Expression[];
}

/** `[1..4]`. */
export interface Range extends Placed {
  readonly type: 'range';
  readonly from: number;
  readonly to: number;
}

export type Expression =
  | Literal
  | Path
  | Access
  | Call
  | Unary
  | Binary
  | Membership
  | Between
  | Like
  | Wildcard
  | Case
  | List
  | Range;

/** `*`; for streams also `demo.*`, `* EXCEPT(a, b)` and `* REPLACE(a + 1 AS a)`. */
export interface Star extends Placed {
  readonly type: 'star';
  readonly stream?: string;
  readonly except?: readonly string[];
  readonly replace?: readonly Selected[];
}

/** A selected expression with its optional alias. */
export interface Selected extends Placed {
  readonly type: 'selected';
  readonly expression: Expression;
  readonly alias?: Path;
  /** Set if the field is not part of the output: `expression AS alias INVISIBLE`. */
  readonly isInvisible?: true;
}

export type Field = Star | Selected;

/** A name after FROM. */
export interface FromTopic extends Placed {
  readonly name: string;
}

/** `SELECT fields FROM sources WHERE condition`. */
export interface Select {
  readonly type: 'select';
  readonly fields: readonly Field[];
  readonly from: readonly FromTopic[];
  readonly where?: Expression;
}

/** `FOREACH fields DO fields INCASE condition FROM sources WHERE condition`. */
export interface Foreach {
  readonly type: 'foreach';
  readonly fields: readonly Field[];
  readonly does?: readonly Field[];
  readonly incase?: Expression;
  readonly from: readonly FromTopic[];
  readonly where?: Expression;
}

export type Statement = Select | Foreach;

/** A stream or table after FROM or JOIN. */
export interface FromStream extends Placed {
  readonly name: string;
  readonly alias?: string;
}

export type JoinKind = 'inner' | 'left' | 'right' | 'full' | 'cross';

export interface Join extends Placed {
  readonly kind: JoinKind;
  readonly source: FromStream;
  readonly on?: Expression;
}

export type WindowKind = 'tumbling' | 'hopping' | 'sliding' | 'session' | 'count' | 'state';

/** Units of window lengths: day, hour, minute, second, millisecond. */
export type TimeUnit = 'dd' | 'hh' | 'mi' | 'ss' | 'ms';

/** `TUMBLINGWINDOW(ss, 10) FILTER (WHERE a) OVER (WHEN b)`. */
export interface Window extends Placed {
  readonly kind: WindowKind;
  /** Absent for windows that count rows or follow a state. */
  readonly unit?: TimeUnit;
  /** The numbers as written: a length, and the optional second number. */
  readonly lengths: readonly number[];
  /** The conditions of a state window: either one, or one to begin and one to end it. */
  readonly conditions: readonly Expression[];
  readonly filter?: Expression;
  readonly when?: Expression;
  /** `OVER (PARTITION BY a)` of a state window. */
  readonly partitionBy: readonly Expression[];
}

export interface OrderKey extends Placed {
  readonly expression: Expression;
  readonly isDescending: boolean;
}

/** A statement over streams. */
export interface StreamSelect {
  readonly type: 'stream-select';
  readonly fields: readonly Field[];
  readonly from: FromStream;
  readonly joins: readonly Join[];
  readonly where?: Expression;
  readonly window?: Window;
  /** The grouping expressions besides the window. */
  readonly groupBy: readonly Expression[];
  readonly having?: Expression;
  readonly orderBy: readonly OrderKey[];
  readonly limit?: number;
}
