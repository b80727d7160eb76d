import { once } from 'node:events';
import { printable, type Shell } from './command.ts';

/** What an action prints: rows, a single record, lines of text, or nothing. */
export type Output =
  | AsyncIterable<object>
  | Iterable<object>
  | { readonly record: object }
  | { readonly lines: AsyncIterable<string> }
  | undefined;

/** How rows are printed. */
export interface OutputStyle {
  /** One line of JSON for each row, instead of a table. */
  readonly json: boolean;
  /** The columns of the table. Default: all fields of the first row. */
  readonly columns?: readonly string[] | undefined;
  /** Rows that are printed at most. */
  readonly limit: number;
}

/** Rows whose widths decide on those of the columns of a table. */
const MEASURED_ROWS = 1_000;

/** Print what an action has found. */
export async function print(shell: Shell, output: Output, style: OutputStyle): Promise<void> {
  if (output === undefined) return;
  if ('record' in output) {
    if (style.json) await write(shell, `${JSON.stringify(output.record)}\n`);
    else await write(shell, table(Object.entries(flat(output.record)).map(([name, value]) => [name, cell(value)])));
    return;
  }
  if ('lines' in output) {
    let left = style.limit;
    for await (const line of output.lines) {
      await write(shell, `${style.json ? line : printable(line)}\n`);
      if (--left === 0) break;
    }
    return;
  }
  let rows: object[] = [];
  let heads = style.columns;
  let count = 0;
  for await (const row of output) {
    if (++count > style.limit) break;
    if (style.json) await write(shell, `${JSON.stringify(row)}\n`);
    else if (rows.push(row) === MEASURED_ROWS) {
      heads = await printTable(shell, rows, heads, count === rows.length);
      rows = [];
    }
  }
  if (rows.length > 0) await printTable(shell, rows, heads, count <= MEASURED_ROWS);
}

/** @returns the columns */
async function printTable(
  shell: Shell,
  rows: readonly object[],
  columns: readonly string[] | undefined,
  hasHeads: boolean
): Promise<readonly string[]> {
  const found = rows.map((row) => flat(row));
  const names = columns ?? Object.keys(found[0]);
  const lines = found.map((row) => names.map((name) => cell(row[name])));
  await write(shell, table(hasHeads ? [names, ...lines] : lines));
  return names;
}

/** The fields of a record, and of the records in it: `desc.title`. */
function flat(record: object, prefix = ''): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]): [string, unknown][] =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.entries(flat(value, `${prefix}${name}.`))
        : [[prefix + name, value]]
    )
  );
}

function cell(value: unknown): string {
  const text =
    value === undefined || value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : `${value}`;
  return printable(text).replaceAll('\n', '\\n');
}

function table(lines: readonly (readonly string[])[]): string {
  const widths = lines[0]?.map((_, at) => Math.max(...lines.map((line) => line[at].length))) ?? [];
  return lines
    .map(
      (line) =>
        `${line
          .map((text, at) => text.padEnd(widths[at]))
          .join('  ')
          .trimEnd()}\n`
    )
    .join('');
}

async function write({ stdout }: Shell, text: string): Promise<void> {
  if (!stdout.write(text)) await once(stdout, 'drain');
}
