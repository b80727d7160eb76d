/** The tree of a data template, in the syntax of Go's text/template. Positions are offsets in the text of the template. */
interface Placed {
  readonly start: number;
  readonly end: number;
}

/** A value, or a call of a function. */
export type Expression = Placed &
  (
    | { readonly type: 'literal'; readonly value: string | number | bigint | boolean | null }
    | { readonly type: 'dot' }
    | { readonly type: 'variable'; readonly name: string }
    | { readonly type: 'fields'; readonly of: Expression; readonly names: readonly string[] }
    | { readonly type: 'call'; readonly name: string; readonly args: readonly Expression[] }
    | { readonly type: 'pipeline'; readonly pipeline: Pipeline }
  );

/** A sequence of commands, each of which receives the result of the preceding one as its last argument. */
export interface Pipeline extends Placed {
  /** The variables that receive the result; two in `range $index, $element := ...`. */
  readonly variables: readonly string[];
  /** True for `=` instead of `:=`: the variables already exist. */
  readonly isAssignment: boolean;
  /** From the second one on, all commands are calls. */
  readonly commands: readonly Expression[];
}

/** A node of a template. */
export type Node = Placed &
  (
    | { readonly type: 'text'; readonly text: string }
    | { readonly type: 'print'; readonly pipeline: Pipeline }
    | {
        readonly type: 'if' | 'with' | 'range';
        readonly pipeline: Pipeline;
        readonly body: readonly Node[];
        readonly otherwise: readonly Node[];
      }
    | { readonly type: 'template'; readonly name: string; readonly pipeline: Pipeline | undefined }
    | { readonly type: 'break' | 'continue' }
  );

/** A template and the templates that it defines. */
export interface Tree {
  readonly body: readonly Node[];
  readonly definitions: ReadonlyMap<string, readonly Node[]>;
}
