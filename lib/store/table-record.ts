import { RecordReader } from './record.ts';
import type { Entry } from './store.ts';

/** An entry of a table in the store. */
export interface TableEntry {
  readonly table: string;
  readonly key: string;
  readonly value: unknown;
}

/** Read the record of a table entry. @throws RecordError if the record is damaged; SyntaxError if its value is not JSON */
export function readTableEntry({ key, value }: Entry): TableEntry {
  const end = key.indexOf(0, 1);
  const json = new RecordReader(key, value).bytes().toString();
  return { table: key.toString('utf8', 1, end), key: key.toString('utf8', end + 1), value: frozen(json) };
}

/** Parse JSON into a deeply frozen value. @throws SyntaxError */
export function frozen(json: string): unknown {
  return JSON.parse(json, (_key, value: unknown) => Object.freeze(value));
}
