import type { Expression, Step } from '../../sql/tree.ts';
import { Float } from '../../sql/values.ts';

/** The expressions inside an expression, those of its steps included. */
export function childrenOf(node: Expression): readonly Expression[] {
  switch (node.type) {
    case 'path':
      return node.steps.flatMap(expressionsOf);
    case 'access':
      return [node.subject, ...node.steps.flatMap(expressionsOf)];
    case 'call': {
      const { partitionBy = [], when } = node.over ?? {};
      return [...node.args, ...partitionBy, ...given(when)];
    }
    case 'unary':
      return [node.operand];
    case 'binary':
      return [node.left, node.right];
    case 'in':
      return [node.subject, ...node.items];
    case 'between':
      return [node.subject, node.low, node.high];
    case 'like':
      return [node.subject, node.pattern];
    case 'case': {
      const { subject, branches, otherwise } = node;
      return [...given(subject), ...branches.flatMap(({ when, result }) => [when, result]), ...given(otherwise)];
    }
    case 'list':
      return node.items;
    default:
      return [];
  }
}

function expressionsOf(step: Step): readonly Expression[] {
  if (step.type === 'index') return [step.index];
  return step.type === 'part' ? [...given(step.from), ...given(step.to)] : [];
}

function given(node: Expression | undefined): readonly Expression[] {
  return node === undefined ? [] : [node];
}

/** How many expressions are inside each other. */
export function levelsOf(node: Expression): number {
  let deepest = 0;
  for (const child of childrenOf(node)) deepest = Math.max(deepest, levelsOf(child));
  return deepest + 1;
}

/**
 * The same text for expressions that have the same value in all rows.
 * @param aliasOf the number of the alias that a name means
 */
export function canonical(node: Expression, aliasOf: (name: string) => number | undefined): string {
  return JSON.stringify(node, function (this: Record<string, unknown>, key, value) {
    const original = this[key];
    if (key === 'start' || key === 'end') return undefined;
    if (original instanceof Float) return { float: original.value };
    if (typeof original === 'bigint') return { bigint: String(original) };
    if (typeof value !== 'object' || value === null) return value;
    if (value.type === 'path') return { ...value, alias: aliasOf(value.name) };
    return value.type === 'call' ? { ...value, name: value.name.toLowerCase() } : value;
  });
}

/** The parts of a condition that all have to be true. */
export function conjunctsOf(node: Expression | undefined): readonly Expression[] {
  if (node === undefined) return [];
  if (node.type !== 'binary' || node.operator !== 'AND') return [node];
  return [...conjunctsOf(node.left), ...conjunctsOf(node.right)];
}
