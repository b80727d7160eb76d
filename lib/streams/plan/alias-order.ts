import { childrenOf } from '../../sql/inspect.ts';
import { SqlError } from '../../sql/sql-error.ts';
import type { Expression, Field } from '../../sql/tree.ts';
import { isPlaceFunction } from '../expressions/place-functions.ts';
import type { Sources } from './sources.ts';
import { MAX_LEVELS } from './walk.ts';

/** The names in an expression that may refer to an alias: those without a source. */
export function aliasesIn(node: Expression, sources: Sources, names = new Set<string>()): ReadonlySet<string> {
  if (node.type === 'path') {
    const [first] = node.steps;
    const isQualified = first?.type === 'key' && first.isArrow !== true && sources.position(node.name) !== undefined;
    if (!isQualified) names.add(node.name);
  }
  if (node.type === 'call' && isPlaceFunction(node.name.toLowerCase())) return names; // `meta(topic)` does not refer to a column
  for (const child of childrenOf(node)) aliasesIn(child, sources, names);
  return names;
}

/**
 * The order in which the fields of SELECT are bound, as indexes: each follows the fields whose aliases it uses,
 * regardless of their textual order. Fields whose aliases use each other form one group, in which a name refers to the
 * column, as it does in the definition of an alias with this name.
 * @param aliases the indexes of the fields by alias
 * @throws SqlError if aliases use each other in too many levels
 */
export function bindingOrder(
  fields: readonly Field[],
  aliases: ReadonlyMap<string, number>,
  { sources, text }: { readonly sources: Sources; readonly text: string }
): readonly (readonly number[])[] {
  const groups: number[][] = [];
  const numbers = new Map<number, number>(); // in the order of the visits
  const lowest = new Map<number, number>();
  const open: number[] = [];
  // strongly connected components by Tarjan's algorithm: a group follows the groups that it depends on
  const visit = (at: number, level: number): void => {
    const field = fields[at];
    if (level > MAX_LEVELS)
      throw new SqlError(`the expression has more than ${MAX_LEVELS} levels, with its aliases`, text, field.start);
    const number = numbers.size;
    numbers.set(at, number);
    lowest.set(at, number);
    open.push(at);
    const names = field.type === 'star' ? [] : aliasesIn(field.expression, sources);
    for (const name of names) {
      const used = aliases.get(name);
      if (used === undefined) continue;
      if (!numbers.has(used)) visit(used, level + 1);
      if (open.includes(used)) lowest.set(at, Math.min(lowest.get(at) as number, lowest.get(used) as number));
    }
    if (lowest.get(at) === number) groups.push(open.splice(open.indexOf(at)));
  };
  for (let at = 0; at < fields.length; at++) if (!numbers.has(at)) visit(at, 1);
  return groups;
}
