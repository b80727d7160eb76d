import { STREAM_DIALECT } from '../sql/dialect.ts';
import { Printer } from '../sql/print.ts';
import type { FromStream, Join, StreamSelect, Window } from '../sql/tree.ts';

/** Print a statement over streams as SQL on one line. `parseStreamStatement` turns it back into an equal statement. */
export function printStreamStatement(select: StreamSelect): string {
  const { fields, from, joins, where, window, groupBy, having, orderBy, limit } = select;
  const print = new Printer(STREAM_DIALECT);
  const groups = [
    ...groupBy.map((node) => print.expression(node)),
    ...(window === undefined ? [] : [windowText(window, print)])
  ];
  const keys = orderBy.map(
    ({ expression, isDescending }) => `${print.expression(expression)}${isDescending ? ' DESC' : ''}`
  );
  const parts = [
    `SELECT ${print.fields(fields)} FROM ${sourceText(from, print)}`,
    ...joins.map((join) => joinText(join, print)),
    ...(where === undefined ? [] : [`WHERE ${print.expression(where)}`]),
    ...(groups.length === 0 ? [] : [`GROUP BY ${groups.join(', ')}`]),
    ...(having === undefined ? [] : [`HAVING ${print.expression(having)}`]),
    ...(keys.length === 0 ? [] : [`ORDER BY ${keys.join(', ')}`]),
    ...(limit === undefined ? [] : [`LIMIT ${limit}`])
  ];
  return parts.join(' ');
}

function sourceText({ name, alias }: FromStream, print: Printer): string {
  return alias === undefined ? print.name(name) : `${print.name(name)} AS ${print.name(alias)}`;
}

function joinText({ kind, source, on }: Join, print: Printer): string {
  const condition = on === undefined ? '' : ` ON ${print.expression(on)}`;
  return `${kind.toUpperCase()} JOIN ${sourceText(source, print)}${condition}`;
}

function windowText({ kind, unit, lengths, conditions, filter, when, partitionBy }: Window, print: Printer): string {
  const args = [...(unit === undefined ? [] : [unit]), ...lengths, ...conditions.map((node) => print.expression(node))];
  const filtered = filter === undefined ? '' : ` FILTER (WHERE ${print.expression(filter)})`;
  const partition = partitionBy.length === 0 ? [] : [`PARTITION BY ${print.list(partitionBy)}`];
  const over = [...partition, ...(when === undefined ? [] : [`WHEN ${print.expression(when)}`])];
  const behind = over.length === 0 ? '' : ` OVER (${over.join(' ')})`;
  return `${kind.toUpperCase()}WINDOW(${args.join(', ')})${filtered}${behind}`;
}
