import { RecordReader } from './record.ts';
import type { Entry } from './store.ts';

/** An entry of a table, as the store has it. */
export interface TableEntry {
  readonly table: string;
  readonly key: string;
  readonly value: unknown;
}

/** @throws RecordError; SyntaxError */
export function readTableEntry({ key, value }: Entry): TableEntry {
  const end = key.indexOf(0, 1);
  const json = new RecordReader(key, value).bytes().toString();
  return { table: key.toString('utf8', 1, end), key: key.toString('utf8', end + 1), value: frozen(json) };
}

/** A frozen copy of a JSON value. */
export function frozen(json: string): unknown {
  return JSON.parse(json, (_key, value: unknown) => Object.freeze(value));
}
