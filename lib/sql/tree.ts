import type { Value } from './values.ts';

/** Place of a node in the text of its statement. */
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
  | { readonly type: 'key'; readonly key: string }
  /** `append`: the index `-0` of an alias. */
  | { readonly type: 'index'; readonly index: Expression; readonly append?: true }
  | { readonly type: 'slice'; readonly from: number; readonly to: number };

/** A column, or what is below it: `payload.a[1]`. */
export interface Path extends Placed {
  readonly type: 'path';
  readonly name: string;
  readonly steps: readonly Step[];
}

export interface Call extends Placed {
  readonly type: 'call';
  readonly name: string;
  readonly args: readonly Expression[];
}

export type UnaryOperator = 'NOT' | '-' | '+';

export interface Unary extends Placed {
  readonly type: 'unary';
  readonly operator: UnaryOperator;
  readonly operand: Expression;
}

export type Comparison = '=' | '!=' | '<' | '>' | '<=' | '>=' | '=~';
export type Arithmetic = '+' | '-' | '*' | '/' | 'div' | 'mod';
export type BinaryOperator = 'OR' | 'AND' | Comparison | Arithmetic;

export interface Binary extends Placed {
  readonly type: 'binary';
  readonly operator: BinaryOperator;
  readonly left: Expression;
  readonly right: Expression;
}

/** `a IN (1, 2)`. */
export interface Membership extends Placed {
  readonly type: 'in';
  readonly isNegated: boolean;
  readonly subject: Expression;
  readonly items: readonly Expression[];
}

/** `CASE WHEN a THEN b ELSE c END`; with a subject, `CASE x WHEN 1 THEN b END`. */
export interface Case extends Placed {
  readonly type: 'case';
  readonly subject?: Expression;
  readonly branches: readonly { readonly when: Expression; readonly result: Expression }[];
  readonly otherwise?: Expression;
}

/** `[a, 'b', 3]`. */
export interface List extends Placed {
  readonly type: 'list';
  readonly items: readonly Expression[];
}

/** `[1..4]`. */
export interface Range extends Placed {
  readonly type: 'range';
  readonly from: number;
  readonly to: number;
}

export type Expression = Literal | Path | Call | Unary | Binary | Membership | Case | List | Range;

/** `*`. */
export interface Star extends Placed {
  readonly type: 'star';
}

/** A selected expression, with its alias where it has one. */
export interface Selected extends Placed {
  readonly type: 'selected';
  readonly expression: Expression;
  readonly alias?: Path;
}

export type Field = Star | Selected;

/** A name after FROM. */
export interface Source extends Placed {
  readonly name: string;
}

/** `SELECT fields FROM sources WHERE condition`. */
export interface Select {
  readonly type: 'select';
  readonly fields: readonly Field[];
  readonly from: readonly Source[];
  readonly where?: Expression;
}

/** `FOREACH fields DO fields INCASE condition FROM sources WHERE condition`. */
export interface Foreach {
  readonly type: 'foreach';
  readonly fields: readonly Field[];
  readonly does?: readonly Field[];
  readonly incase?: Expression;
  readonly from: readonly Source[];
  readonly where?: Expression;
}

export type Statement = Select | Foreach;
