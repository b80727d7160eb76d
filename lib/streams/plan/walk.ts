import { childrenOf } from '../../sql/inspect.ts';
import type { Expression } from '../../sql/tree.ts';
import { Float } from '../../sql/values.ts';

/** Most levels of an expression, those of the aliases that it uses included. */
export const MAX_LEVELS = 1000;

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
