import { errorText } from '../base/errors.ts';
import { ELEMENT } from '../sql/compile-statement.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import { functionsIn, namesIn, pathsIn } from '../sql/inspect.ts';
import { decodeJson } from '../sql/json.ts';
import type { Field, Statement } from '../sql/tree.ts';
import type { ValueObject } from '../sql/values.ts';
import type { RuleEventName } from './events/event-name.ts';
import { RULE_EVENTS } from './events/rows.ts';

/** The events from which a statement selects. */
interface Origin {
  readonly filters: readonly string[];
  readonly events: ReadonlySet<RuleEventName>;
}

/**
 * Find possible mistakes in a valid statement: a string in double quotes, which is the name of a column, and an alias
 * of DO in INCASE, which is evaluated before DO.
 */
export function hintsOf(statement: Statement, sql: string, origin: Origin): string[] {
  const columns = columnsOf(origin);
  const hints = new Set<string>();
  const visible = new Set([...columns, ...aliasesOf(statement.fields)]);
  if (statement.type === 'foreach') {
    const done = aliasesOf(statement.does ?? []);
    if (statement.fields.every((field) => field.type === 'star' || field.alias === undefined)) visible.add(ELEMENT);
    if (statement.incase !== undefined)
      for (const name of namesIn(statement.incase))
        if (done.has(name) && !visible.has(name))
          hints.add(`${name} is an alias of DO, and INCASE is evaluated before DO: use its expression in INCASE`);
    for (const name of done) visible.add(name);
  }
  for (const { name, steps, start } of pathsIn(statement))
    if (sql[start] === '"' && steps.length === 0 && !visible.has(name))
      hints.add(`"${name}" in double quotes is a column that does not exist; put strings in single quotes: '${name}'`);
  return [...hints];
}

/** The columns of its events that a statement reads, and `*` if it selects all. Functions such as `clientid()` read one, too. */
export function columnsIn(
  statement: Statement,
  origin: Origin,
  functions: ReadonlyMap<string, SqlFunction>
): readonly string[] {
  const known = new Set(columnsOf(origin));
  const called = [...functionsIn(statement)].flatMap((name) => functions.get(name)?.column ?? []);
  const does = statement.type === 'foreach' ? (statement.does ?? []) : [];
  const hasStar = [...statement.fields, ...does].some(({ type }) => type === 'star');
  const read = [...namesIn(statement), ...called].filter((name) => known.has(name));
  return [...new Set([...(hasStar ? ['*'] : []), ...read])];
}

/** The columns below which a statement reads values. */
export function decodedColumns(statement: Statement): string[] {
  return [...new Set(pathsIn(statement).flatMap(({ name, steps }) => (steps.length === 0 ? [] : [name])))];
}

/**
 * Check the columns that a statement reads as JSON for texts that are nearly JSON.
 * @param names see `decodedColumns`
 */
export function jsonHints(names: readonly string[], columns: ValueObject): string[] {
  return names.flatMap((name) => {
    const text = Object.hasOwn(columns, name) ? columns[name] : undefined;
    if (typeof text !== 'string' || !/^\s*[[{]/.test(text) || decodeJson(text) !== undefined) return [];
    return [`${name} is not valid JSON, so all values below it are absent: ${faultOf(text)}`];
  });
}

function faultOf(text: string): string {
  if (/,\s*[\]}]/.test(text)) return 'there may be a comma before a closing bracket';
  try {
    JSON.parse(text);
    return 'a number has too many digits';
  } catch (error) {
    return errorText(error);
  }
}

function columnsOf({ filters, events }: Origin): string[] {
  const names: readonly RuleEventName[] = filters.length === 0 ? [...events] : ['message.publish', ...events];
  return ['metadata', ...names.flatMap((name) => RULE_EVENTS[name].names)];
}

function aliasesOf(fields: readonly Field[]): Set<string> {
  return new Set(fields.flatMap((field) => (field.type === 'star' || !field.alias ? [] : [field.alias.name])));
}
