// Expressions of both languages become closures, once for a statement; a row never walks the tree. The walk is here,
// and a language gives it a `Semantics`: what its values, null, numbers, comparisons and errors mean. The closures of
// operators come from that table, already specialized for their operands, so that none of them tests for the language
// and the engine compiles them for the values of one language. What depends on the statement, such as names and
// functions, is in its `ExpressionContext`.

import { SqlError } from './sql-error.ts';
import type { Access, Binary, BinaryOperator, Call, Case, Expression, Path, Unary } from './tree.ts';
import type { Value } from './values.ts';

/** Evaluates an expression for an input: the scope of an event, or a row of a stream. */
export type Closure<Input, V> = (input: Input) => V;

/** A compiled expression. */
export interface Compiled<Input, V> {
  readonly evaluate: Closure<Input, V>;
  /** Set if the value is the same for all inputs. */
  readonly constant?: { readonly value: V };
  /** Set if the expression is a plain column of a stream. */
  readonly column?: { readonly name: string; readonly source: number | undefined };
}

/** The meaning of expressions in a language, as closures and functions of its values. */
export interface Semantics<Input, V> {
  /** The value of a literal of the tree. */
  literal(value: Value): V;
  readonly unary: Readonly<Record<Unary['operator'], (operand: Compiled<Input, V>) => Closure<Input, V>>>;
  /** The operators that the language has. AND and OR may return their left side if it decides. */
  readonly binary: Readonly<
    Partial<Record<BinaryOperator, (left: Compiled<Input, V>, right: Compiled<Input, V>) => Closure<Input, V>>>
  >;
  /** `[1..3]`. */
  range(from: number, to: number): Compiled<Input, V>;
  /** IN and NOT IN. */
  membership(isNegated: boolean, subject: Compiled<Input, V>, items: readonly Compiled<Input, V>[]): Closure<Input, V>;
  /** Check whether `CASE a WHEN b` takes the branch. */
  isEqual(subject: V, when: V, input: Input): boolean;
  /** Check whether `CASE WHEN a` takes the branch. */
  isTrue(when: V): boolean;
  /** The fault of an expression after CASE WHEN that can never be true. */
  whenFault?(when: Expression): string | undefined;
  /** The value of a CASE of which no branch is taken. */
  readonly absent: V;
}

/** The statement in which expressions are compiled. */
export interface ExpressionContext<Input, V> {
  readonly semantics: Semantics<Input, V>;
  /** The text of the statement, for the positions of errors. */
  readonly text: string;
  /** The constant that an expression is known to be. */
  known?(node: Expression): Compiled<Input, V> | undefined;
  /** An operator over parts, evaluated once if the language evaluates constants early and all parts are constant. */
  fold(node: Expression, parts: readonly Compiled<Input, V>[], evaluate: Closure<Input, V>): Compiled<Input, V>;
  path(node: Path | Access): Compiled<Input, V>;
  /** @throws SqlError for an unknown function, or arguments that it does not accept */
  call(node: Call): Compiled<Input, V>;
  /** `[a, b]`. */
  list(items: readonly Closure<Input, V>[]): Closure<Input, V>;
  /** An expression that only one language has. @throws SqlError if it is not this one */
  other(node: Expression): Compiled<Input, V>;
}

/** A compiled expression with the same value for all inputs. */
export function constantOf<Input, V>(value: V): Compiled<Input, V> {
  return { evaluate: () => value, constant: { value } };
}

/** Compile an expression. @throws SqlError */
export function compileExpression<Input, V>(
  node: Expression,
  context: ExpressionContext<Input, V>
): Compiled<Input, V> {
  return context.known?.(node) ?? compileNode(node, context);
}

function compileNode<Input, V>(node: Expression, context: ExpressionContext<Input, V>): Compiled<Input, V> {
  const { semantics } = context;
  switch (node.type) {
    case 'literal':
      return constantOf(semantics.literal(node.value));
    case 'path':
    case 'access':
      return context.path(node);
    case 'call':
      return context.call(node);
    case 'unary': {
      const operand = compileExpression(node.operand, context);
      return context.fold(node, [operand], semantics.unary[node.operator](operand));
    }
    case 'binary':
      return compileBinary(node, context);
    case 'in': {
      const subject = compileExpression(node.subject, context);
      const items = node.items.map((item) => compileExpression(item, context));
      return context.fold(node, [subject, ...items], semantics.membership(node.isNegated, subject, items));
    }
    case 'case':
      return compileCase(node, context);
    case 'list': {
      const items = node.items.map((item) => compileExpression(item, context));
      return context.fold(node, items, context.list(items.map(({ evaluate }) => evaluate)));
    }
    case 'range':
      return semantics.range(node.from, node.to);
    default:
      return context.other(node);
  }
}

function compileBinary<Input, V>(node: Binary, context: ExpressionContext<Input, V>): Compiled<Input, V> {
  const make = context.semantics.binary[node.operator];
  if (make === undefined) return context.other(node);
  const left = compileExpression(node.left, context);
  const right = compileExpression(node.right, context);
  const evaluate = make(left, right);
  return evaluate === left.evaluate ? left : context.fold(node, [left, right], evaluate);
}

function compileCase<Input, V>(node: Case, context: ExpressionContext<Input, V>): Compiled<Input, V> {
  const { isEqual, isTrue, whenFault, absent } = context.semantics;
  if (node.subject === undefined)
    for (const { when } of node.branches) {
      const fault = whenFault?.(when);
      if (fault !== undefined) throw new SqlError(fault, context.text, when.start);
    }
  const compile = (part: Expression) => compileExpression(part, context).evaluate;
  const subject = node.subject && compile(node.subject);
  const branches = node.branches.map(({ when, result }) => ({ when: compile(when), result: compile(result) }));
  const otherwise = node.otherwise && compile(node.otherwise);
  return {
    evaluate: (input) => {
      const sought = subject?.(input);
      for (const { when, result } of branches)
        if (subject === undefined ? isTrue(when(input)) : isEqual(sought as V, when(input), input))
          return result(input);
      return otherwise === undefined ? absent : otherwise(input);
    }
  };
}
