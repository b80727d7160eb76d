import { truncated } from '../../base/errors.ts';
import { parseJson } from '../formats/json.ts';
import type { OutputRows } from '../graph/sink-node.ts';
import type { Template } from '../template/template.ts';
import { StreamFailure } from '../values/values.ts';
import type { CommonProperties } from './common-properties.ts';

type Fields = Readonly<Record<string, unknown>>;

/** An output to be sent. */
export interface Output {
  /** The rows, or one of them, as the rule produced them: the input of property templates. */
  readonly rows: OutputRows | Fields;
  /** The value to be sent. */
  readonly value: unknown;
}

/** Converts an emission to the outputs to be sent. @throws StreamFailure */
export type Transform = (rows: OutputRows) => readonly Output[];

/** Apply `sendSingle`, `omitIfEmpty`, the template, `dataField` and `fields`, in this order. @param fill the template */
export function makeTransform(properties: CommonProperties, fill: Template | undefined): Transform {
  const { sendSingle, omitIfEmpty } = properties;
  const select = makeSelect(properties);
  const isObjectNeeded = !['json', 'binary'].includes(properties.format.toLowerCase()) || select !== undefined;
  const make = (rows: OutputRows | Fields): Output => {
    let value: unknown = rows;
    if (fill !== undefined) {
      const text = sendSingle ? fill(rows) : filledFromList(fill, rows);
      value = isObjectNeeded ? decoded(text, select !== undefined) : text;
    }
    return { rows, value: select === undefined || isError(rows) ? value : select(value) };
  };
  if (sendSingle) {
    return (rows) => {
      if (rows.length === 1 && !omitIfEmpty) return [make(rows[0])];
      return rows.filter((row) => !omitIfEmpty || !isEmptyRow(row)).map(make);
    };
  }
  return (rows) => {
    if (omitIfEmpty && (rows.length === 0 || (rows.length === 1 && isEmptyRow(rows[0])))) return [];
    return [make(rows)];
  };
}

/** Fill in a template from the list of rows. A template that reads a column fails, with the remedy. */
function filledFromList(fill: Template, rows: OutputRows | Fields): string {
  try {
    return fill(rows);
  } catch (error) {
    if (!(error instanceof StreamFailure) || !error.message.endsWith(' in type []interface {}')) throw error;
    throw new StreamFailure(`${error.message}; the template gets a list of rows unless sendSingle is true`, error);
  }
}

/** The rows that a template's output encodes, if rows are needed. */
function decoded(text: string, isNeeded: boolean): unknown {
  try {
    return parseJson(text, `fail to decode data ${truncated(text, 100)} after applying dataTemplate`);
  } catch (error) {
    if (!isNeeded) return text; // the format may accept a string
    throw error;
  }
}

function isEmptyRow(row: Fields): boolean {
  for (const key in row) if (row[key] !== undefined) return false;
  return true;
}

/** Check whether it is the error of a row, which is sent regardless of the selected columns. */
function isError(rows: OutputRows | Fields): boolean {
  const row = Array.isArray(rows) ? (rows.length === 1 ? (rows[0] as Fields) : undefined) : (rows as Fields);
  if (row === undefined || typeof row.error !== 'string') return false;
  return Object.keys(row).length === 1;
}

function makeSelect({ dataField, fields, excludeFields }: CommonProperties): ((value: unknown) => unknown) | undefined {
  const hasField = dataField !== undefined && dataField !== '';
  const pick = makePick(fields, excludeFields);
  if (!hasField) return pick;
  return (value) => {
    const row: unknown = Array.isArray(value) ? value[0] : value;
    if (typeof row !== 'object' || row === null) throw new StreamFailure(`no row has the dataField ${dataField}`);
    const part = (row as Fields)[dataField];
    return pick === undefined ? part : pick(part);
  };
}

function makePick(
  fields: readonly string[] | undefined,
  excluded: readonly string[] | undefined
): ((value: unknown) => unknown) | undefined {
  const isWanted = fields?.length ? undefined : excluded?.length ? new Set(excluded) : undefined;
  if (!fields?.length && isWanted === undefined) return undefined;
  const pickRow = (row: unknown): unknown => {
    if (typeof row !== 'object' || row === null) return row;
    const entries =
      isWanted === undefined
        ? (fields ?? [])
            .filter((name) => Object.hasOwn(row, name))
            .map((name) => [name, (row as Fields)[name]] as const)
        : Object.entries(row).filter(([name]) => !isWanted.has(name));
    return Object.fromEntries(entries);
  };
  return (value) => (Array.isArray(value) ? value.map(pickRow) : pickRow(value));
}
