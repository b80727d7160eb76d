import type { Expression, Join, JoinKind } from '../../sql/tree.ts';
import type { BoundExpression, BoundJoin, BoundPredicate, Equality, Uses } from '../expressions/bound.ts';
import type { Bindings, Clause } from './bindings.ts';
import { conjunctsOf } from './walk.ts';

const ON: Clause = {
  noAggregates: 'Not allowed to call aggregate functions in ON clause.',
  noAnalytics: 'Not allowed to call analytic functions in ON clause.'
};
const WHERE: Clause = { noAggregates: 'Not allowed to call aggregate functions in WHERE clause.' };

/**
 * The joins through which a filter on the rows of a source can be moved, by the side of the source. Rows on a side that
 * is padded with null cannot be filtered before the join, because their partners would get null instead. The same holds
 * for the right side of CROSS: a merged row has only the columns of the first right row.
 */
const KEEPS: Readonly<Record<JoinKind, { readonly left: boolean; readonly right: boolean }>> = {
  inner: { left: true, right: true },
  left: { left: true, right: false },
  right: { left: false, right: true },
  full: { left: false, right: false },
  cross: { left: true, right: false }
};

/** Bind WHERE, part by part. @throws SqlError */
export function bindWhere(where: Expression | undefined, joins: readonly Join[], bindings: Bindings): BoundPredicate[] {
  return conjunctsOf(where).map((node) => {
    const bound = bindings.expression(node, WHERE);
    const source = onlySource(bound.uses);
    const isLegal = source !== undefined && passes(source, joins);
    return { ...bound, reads: bindings.reads(node, WHERE), movesTo: isLegal ? source : undefined };
  });
}

/** Bind the condition of a join, part by part. @param index index of the join, from 0. @throws SqlError */
export function bindJoin({ kind, on }: Join, index: number, bindings: Bindings): BoundJoin {
  const source = index + 1;
  const parts = conjunctsOf(on).map((node) => ({
    ...bindings.expression(node, ON),
    equality: equalityOf(node, source, bindings)
  }));
  return { kind, source, on: parts };
}

/** Check whether a filter on the rows of a source can be moved before all joins of a statement. */
function passes(source: number, joins: readonly Join[]): boolean {
  return joins.every(({ kind }, index) => {
    const position = index + 1;
    return position < source || KEEPS[kind][position === source ? 'right' : 'left'];
  });
}

/** The only source that an expression reads, if its value does not depend on where it is evaluated. */
function onlySource({ sources, aggregates, analytics, frame, chance }: Uses): number | undefined {
  return sources.length === 1 && !aggregates && !analytics && !frame && !chance ? sources[0] : undefined;
}

function equalityOf(node: Expression, source: number, bindings: Bindings): Equality | undefined {
  if (node.type !== 'binary' || node.operator !== '=') return undefined;
  const sides = [node.left, node.right].map((side) => ({ side, bound: bindings.expression(side, ON) }));
  const right = sides.find(({ bound }) => onlySource(bound.uses) === source);
  const left = sides.find((side) => side !== right && isOfOthers(side.bound, source));
  if (left === undefined || right === undefined) return undefined;
  return { left: left.bound, right: right.bound, column: bindings.columnOf(right.side) };
}

function isOfOthers({ uses }: BoundExpression, source: number): boolean {
  return !uses.chance && !uses.frame && uses.sources.every((other) => other < source);
}
