import { parseStreamJson, type SinkItem } from '../../lib/adapter.ts';
import { StreamFailure } from '../../lib/index.ts';

/** A row as a sink receives it. */
export type SinkRow = Readonly<Record<string, unknown>>;

/**
 * The rows of an item: its list, or its only row; after a template, those in its JSON.
 * @param what for the message: `sql sink`
 * @throws StreamFailure
 */
export function rowsOf({ value }: Pick<SinkItem, 'value'>, what: string): readonly SinkRow[] {
  const rows = rowsIn(value);
  if (rows !== undefined) return rows;
  throw new StreamFailure(`${what}: the output must be a row or a list of rows`);
}

/** The rows of a value, or of JSON; undefined: not rows. */
export function rowsIn(value: unknown): readonly SinkRow[] | undefined {
  const rows = typeof value === 'string' ? parsed(value) : value;
  const list: readonly unknown[] = Array.isArray(rows) ? rows : [rows];
  return list.every(isRow) ? list : undefined;
}

function isRow(value: unknown): value is SinkRow {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !(value instanceof Uint8Array) && !(value instanceof Date);
}

function parsed(text: string): unknown {
  try {
    return parseStreamJson(text);
  } catch {
    return undefined;
  }
}

const ROW_KINDS = ['insert', 'update', 'upsert', 'delete'] as const;

/** The operation of a sink on a row. */
export type RowKind = (typeof ROW_KINDS)[number];

/**
 * Read the column `rowkindField` of a row.
 * @param field undefined: all rows are inserted, as are rows without the column
 * @throws StreamFailure
 */
export function rowKindOf(row: SinkRow, field: string | undefined, what: string): RowKind {
  const kind = field === undefined ? undefined : row[field];
  if (kind === undefined || kind === null) return 'insert';
  const known = ROW_KINDS.find((each) => each === kind);
  if (known !== undefined) return known;
  throw new StreamFailure(`${what}: the column ${field} must be one of ${ROW_KINDS.join(', ')}`);
}
