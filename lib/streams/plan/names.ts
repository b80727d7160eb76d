import type { Call, Field, Selected } from '../../sql/tree.ts';
import type { ArgumentNames } from '../function.ts';
import type { Sources } from './sources.ts';

/**
 * The names of the output columns: the alias, the column, the function in lower case, or else `kuiper_field_N` with the
 * first unused number. The name of `*` is empty.
 */
export function fieldNames(fields: readonly Field[], sources: Sources): string[] {
  return numbered(fields.map((field) => (field.type === 'star' ? '' : ownName(field, sources))));
}

/**
 * The column names of the arguments of a call, determined in the same way. Literals have no name, and `*` is undefined.
 */
export function argumentNames({ args }: Call, sources: Sources): ArgumentNames {
  const names = numbered(
    args.map((arg) => {
      if (arg.type === 'wildcard' || arg.type === 'literal') return '';
      const last = arg.type === 'path' ? arg.steps[arg.steps.length - 1] : undefined;
      return last?.type === 'key' ? last.key : ownName({ expression: arg }, sources);
    })
  );
  return names.map((name, index) => (args[index].type === 'wildcard' ? undefined : name));
}

function numbered(names: readonly (string | undefined)[]): string[] {
  const taken = new Set(names);
  let next = 0;
  return names.map((name) => {
    if (name !== undefined) return name;
    while (taken.has(`kuiper_field_${next}`)) next++;
    return `kuiper_field_${next++}`;
  });
}

function ownName({ alias, expression }: Pick<Selected, 'alias' | 'expression'>, sources: Sources): string | undefined {
  if (alias !== undefined) return alias.name;
  if (expression.type === 'call') return expression.name.toLowerCase();
  if (expression.type !== 'path') return undefined;
  const { name, steps } = expression;
  const [first] = steps;
  if (first === undefined) return name;
  const isQualified = steps.length === 1 && first.type === 'key' && first.isArrow !== true;
  return isQualified && sources.position(name) !== undefined ? first.key : undefined;
}
