import { truncated } from '../../base/errors.ts';
import { setKey } from '../../sql/values.ts';
import type { Column } from '../types.ts';
import { member, printed, StreamFailure, type StreamValue, type StreamValueObject } from '../values/values.ts';
import { type ColumnReader, columnReader, type ParseTime } from './convert-column.ts';

export interface ConversionSetup {
  /** The declared columns; undefined if the stream has no schema. */
  readonly columns: readonly Column[] | undefined;
  /** The columns that statements use, in any case; undefined: all. */
  readonly needed?: readonly string[] | undefined;
  /**
   * The option STRICT_VALIDATION. If true, a row with a missing or wrong column is an error; if false, such a column is
   * null.
   */
  readonly isStrict: boolean;
  /** The option TIMESTAMP_FORMAT, for strings in DATETIME columns. Default: ISO 8601. */
  readonly timestampFormat?: string | undefined;
  readonly parseTime: ParseTime;
}

/** Converts the values of a payload to columns of the declared types. @throws StreamFailure */
export type Convert = (values: StreamValueObject) => StreamValueObject;

/**
 * Compile the conversion of the columns of a stream. Keys that are not declared are dropped. Without a schema, values
 * stay as they are.
 *
 * Keys of payloads are matched with the names of columns without regard to case.
 */
export function compileConversion(setup: ConversionSetup): Convert {
  const { columns, needed } = setup;
  if (columns === undefined) return (values) => values;
  return structReader(needed === undefined ? columns : declaredOf(columns, needed), setup);
}

/** The declared columns to which names refer. */
function declaredOf(columns: readonly Column[], needed: readonly string[]): Column[] {
  const found = new Set<Column>();
  for (const name of needed) {
    const lower = name.toLowerCase();
    const column =
      columns.find((each) => each.name === name) ?? columns.find((each) => each.name.toLowerCase() === lower);
    if (column !== undefined) found.add(column);
  }
  return [...found];
}

function structReader(columns: readonly Column[], setup: ConversionSetup): Convert {
  const { isStrict } = setup;
  const names = columns.map(({ name }) => name);
  const readers: ColumnReader[] = columns.map(({ type }) =>
    columnReader(type, setup, (fields) => structReader(fields, setup))
  );
  return (values) => {
    const converted: Record<string, StreamValue> = {};
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      const value = member(values, name);
      if (value === undefined && isStrict)
        throw new StreamFailure(`invalid data ${truncated(printed(values), 200)}, field ${name} not found`);
      setKey(converted, name, readers[i](value, name));
    }
    return converted;
  };
}
