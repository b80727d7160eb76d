import type { Field, Selected } from '../../sql/tree.ts';
import type { Sources } from './sources.ts';

/**
 * The names of the columns of the output: the alias, the column, the function in lower case, or else `kuiper_field_N` with the first number that
 * is free. Those of `*` are empty.
 */
export function fieldNames(fields: readonly Field[], sources: Sources): string[] {
  const names = fields.map((field) => (field.type === 'star' ? '' : ownName(field, sources)));
  const taken = new Set(names);
  let next = 0;
  return names.map((name) => {
    if (name !== undefined) return name;
    while (taken.has(`kuiper_field_${next}`)) next++;
    return `kuiper_field_${next++}`;
  });
}

function ownName({ alias, expression }: Selected, sources: Sources): string | undefined {
  if (alias !== undefined) return alias.name;
  if (expression.type === 'call') return expression.name.toLowerCase();
  if (expression.type !== 'path') return undefined;
  const { name, steps } = expression;
  const [first] = steps;
  if (first === undefined) return name;
  const isQualified = steps.length === 1 && first.type === 'key' && first.isArrow !== true;
  return isQualified && sources.position(name) !== undefined ? first.key : undefined;
}
