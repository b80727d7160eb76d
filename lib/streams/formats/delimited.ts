import { InvalidInput } from '../../base/errors.ts';
import { bufferOf, type FormatType } from '../format.ts';
import { StreamFailure, type StreamValueObject } from '../values/values.ts';
import { jsonText } from './json-text.ts';

/**
 * Lines of fields between delimiters. The columns are those of the schema, in order; without a schema they are `col0`,
 * `col1`, ... All values are strings, which the schema converts. A field that begins with a quotation mark ends at the
 * next single one.
 */
export const DELIMITED_FORMAT: FormatType = {
  name: 'delimited',
  about: 'Lines of fields separated by DELIMITER, by default a comma.',
  make({ what, columns, options }) {
    const delimiter = options?.DELIMITER ?? ',';
    if (delimiter === '' || /["\r\n]/.test(delimiter))
      throw new InvalidInput('STREAM_INVALID', `${what}: DELIMITER`, 'characters without quotation marks', delimiter);
    const names = columns?.map(({ name }) => name);
    return {
      name: 'delimited',
      decode(payload) {
        const lines = bufferOf(payload).toString().split(/\r?\n/);
        const rows = lines.filter((line) => line !== '').map((line) => rowOf(line, delimiter, names));
        return rows.length === 1 ? rows[0] : rows;
      },
      encode(value) {
        if (typeof value === 'string') return Buffer.from(value);
        const rows = Array.isArray(value) ? value : [value];
        return Buffer.from(rows.map((row: unknown) => lineOf(row, delimiter, names)).join('\n'));
      }
    };
  }
};

function rowOf(line: string, delimiter: string, names: readonly string[] | undefined): StreamValueObject {
  const fields = splitFields(line, delimiter);
  const given = names === undefined ? fields : fields.slice(0, names.length);
  return Object.fromEntries(given.map((field, i) => [names?.[i] ?? `col${i}`, field]));
}

/** Split a line into its fields. */
export function splitFields(line: string, delimiter: string): string[] {
  if (!line.includes('"')) return line.split(delimiter);
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    const parts: string[] = [];
    while (line[at] === '"') {
      const end = line.indexOf('"', at + 1);
      if (end === -1) break;
      parts.push(line.slice(at + 1, end));
      at = end + 1;
    }
    const next = line.indexOf(delimiter, at);
    fields.push(parts.join('"') + line.slice(at, next === -1 ? undefined : next));
    if (next === -1) return fields;
    at = next + delimiter.length;
  }
}

function lineOf(row: unknown, delimiter: string, names: readonly string[] | undefined): string {
  if (typeof row !== 'object' || row === null) throw new StreamFailure('format "delimited" needs rows with columns');
  const values = names === undefined ? Object.values(row) : names.map((name) => (row as Record<string, unknown>)[name]);
  return values.map((value) => fieldOf(value, delimiter)).join(delimiter);
}

function fieldOf(value: unknown, delimiter: string): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : typeof value === 'object' ? jsonText(value) : String(value);
  return text.includes(delimiter) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
