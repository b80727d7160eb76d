import { once } from 'node:events';
import { isPlainObject } from '../../../lib/adapter.ts';
import { jsonLine, oneLine, printable, type Shell } from '../command.ts';
import type { Output, RowForm } from './action.ts';
import { ListTable, pairs } from './table.ts';

/** The style in which the output of an action is printed. */
interface OutputStyle extends RowForm {
  /** True to print one line of JSON for each row instead of a table. */
  readonly json: boolean;
  /** Maximum number of rows that are printed. */
  readonly limit: number;
}

/** Number of rows whose widths determine those of the columns of a table. */
const MEASURED_ROWS = 1_000;
/** The names of fields that are times since 1970, if they have numbers. */
const TIME = /(^|[._])(at|since|until|expired|expires_at|exportedAt)$/;

/** Print the output of an action. */
export async function print(shell: Shell, output: Output, style: OutputStyle): Promise<void> {
  if (output === undefined) return;
  if ('record' in output) {
    if (style.json) await write(shell, `${jsonLine(output.record)}\n`);
    else {
      const fields = Object.entries(flat(output.record)).filter(([, value]) => value !== undefined);
      await write(shell, pairs(fields.map(([name, value]) => [name, cell(name, value, style)])));
    }
    return;
  }
  if ('lines' in output) {
    await printLines(shell, output.lines, printable, output.isWhole ? Infinity : style.limit); // part of a file is of no use
    return;
  }
  const { line } = style;
  if (style.json) await printLines(shell, output, jsonLine, style.limit);
  else if (line !== undefined) await printLines(shell, output, (row) => printable(line(row)), style.limit);
  else await printRows(shell, output, style);
}

async function printLines<T>(
  shell: Shell,
  found: AsyncIterable<T> | Iterable<T>,
  toText: (one: T) => string,
  limit: number
): Promise<void> {
  let left = limit;
  for await (const one of found) {
    await write(shell, `${toText(one)}\n`);
    if (--left === 0) break;
  }
}

/** Print a table, including the rows received before the list failed. */
async function printRows(
  shell: Shell,
  output: AsyncIterable<object> | Iterable<object>,
  style: OutputStyle
): Promise<void> {
  let rows: object[] = [];
  let heads = style.columns;
  let count = 0;
  const table = new ListTable(widthOf(shell));
  const flush = async () => {
    heads ??= [...new Set(rows.flatMap((row) => Object.keys(flat(row))))];
    const named = heads;
    await write(
      shell,
      table.block(
        named,
        rows.map((row) => shownRow(row, named, style))
      )
    );
    rows = [];
  };
  try {
    for await (const row of output) {
      if (rows.push(row) === MEASURED_ROWS) await flush();
      if (++count === style.limit) break;
    }
  } catch (error) {
    if (rows.length > 0) await flush();
    throw error;
  }
  if (rows.length > 0 || count === 0) await flush();
  if (count === 0) await write(shell, '(none)\n');
}

/** The width of the terminal in characters; `Infinity` if standard output is not a terminal. */
function widthOf({ stdout, env }: Shell): number {
  if (stdout.isTTY !== true) return Infinity;
  const given = Number(env.COLUMNS);
  return Number.isInteger(given) && given > 0 ? given : stdout.columns || Infinity;
}

function shownRow(row: object, columns: readonly string[], style: RowForm): string[] {
  const fields = flat(row);
  return columns.map((name) => {
    const value = name in fields ? fields[name] : (row as Record<string, unknown>)[name];
    return isPlainObject(value) ? printable(shownFields(value)) : cell(name, value, style);
  });
}

/** The fields of a record in one line: `topic=a/b qos=1`. */
export function shownFields(record: object): string {
  return Object.entries(flat(record))
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) =>
        `${name}=${typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)}`
    )
    .join(' ');
}

/** The fields of a record, and of the records in it: `desc.title`. */
function flat(record: object, prefix = ''): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]): [string, unknown][] =>
      isPlainObject(value) ? Object.entries(flat(value, `${prefix}${name}.`)) : [[prefix + name, value]]
    )
  );
}

function cell(name: string, value: unknown, { times = 'ms' }: RowForm): string {
  if (value === undefined || value === null) return '';
  if (times !== 'none' && TIME.test(name)) {
    if (value === 'undefined') return 'never';
    if (typeof value === 'number') return timeText(value, times);
  }
  return oneLine(typeof value === 'object' ? JSON.stringify(value) : `${value}`);
}

function timeText(value: number, unit: 'ms' | 's'): string {
  const time = new Date(unit === 's' ? value * 1_000 : value);
  return Number.isNaN(time.getTime()) ? `${value}` : time.toISOString();
}

async function write({ stdout }: Shell, text: string): Promise<void> {
  if (!stdout.write(text)) await once(stdout, 'drain');
}
