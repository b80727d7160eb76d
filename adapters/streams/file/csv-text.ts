import { streamJson } from '../../../lib/adapter.ts';

type CsvRow = Readonly<Record<string, unknown>>;

/**
 * Lines of a CSV file.
 * @param withHeader begin with the names of the columns
 */
export function csvText(
  rows: readonly CsvRow[],
  columns: readonly string[],
  delimiter: string,
  withHeader: boolean
): string {
  const lines = rows.map((row) => columns.map((name) => field(row[name], delimiter)).join(delimiter));
  if (withHeader) lines.unshift(columns.map((name) => field(name, delimiter)).join(delimiter));
  return `${lines.join('\n')}\n`;
}

function field(value: unknown, delimiter: string): string {
  if (value === undefined || value === null) return '';
  const isObject = typeof value === 'object' && !(value instanceof Date);
  const text = value instanceof Date ? value.toISOString() : isObject ? streamJson(value) : String(value);
  return text.includes(delimiter) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
