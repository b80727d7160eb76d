/**
 * The interfaces that use other names for fields of records: revisions of the management interface, webhooks, and
 * rules.
 */
export type Dialect = 'later' | 'earlier' | 'webhook' | 'rule';

/** Units of fields. `ms`: wall-clock milliseconds since 1970. */
type FieldUnit = 'ms' | 's' | 'bytes' | 'packets' | 'messages' | 'filters' | 'ids' | 'reads' | 'writes';

/** A field of a record: the source of its value, its unit, and its name in each dialect that has it. */
export interface Field<Source, Value> extends Partial<Readonly<Record<Dialect, string>>> {
  /** Read the value. @param node name of the answering node */
  readonly from: (source: Source, node: string) => Value;
  readonly unit?: FieldUnit;
}

/** The fields of the record `R`, in the order in which they are listed. */
export type RecordTable<Source, R> = { readonly [N in keyof R]-?: Field<Source, R[N]> };

/** The precomputed form of the records of a table. */
interface Shape {
  /**
   * All fields, without values. V8 creates a slow object if many fields are added by name; a copy of this one stays
   * fast.
   */
  readonly blank: object;
  readonly rows: readonly { readonly name: string; readonly from: (source: never, node: string) => unknown }[];
}

const shapes = new WeakMap<object, Shape>();

function shapeOf<R>(table: RecordTable<never, R>): Shape {
  const names = Object.keys(table) as (keyof R & string)[];
  const blank = JSON.parse(`{${names.map((name) => `${JSON.stringify(name)}:null`).join()}}`);
  const shape = { blank, rows: names.map((name) => ({ name, from: table[name].from })) };
  shapes.set(table, shape);
  return shape;
}

/** Build a record. @param node name of the answering node */
export function recordOf<Source, R>(table: RecordTable<Source, R>, source: Source, node: string): R {
  const { blank, rows } = shapes.get(table) ?? shapeOf(table);
  const record: Record<string, unknown> = { ...blank };
  for (const { name, from } of rows) record[name] = from(source as never, node);
  return record as R;
}

/** The names of a table's fields by their names in a dialect. Fields that the dialect does not have are omitted. */
export function namesIn<R>(table: RecordTable<never, R>, dialect: Dialect): Map<string, keyof R> {
  const names = new Map<string, keyof R>();
  for (const name in table) {
    const theirs = table[name][dialect];
    if (theirs !== undefined) names.set(theirs, name);
  }
  return names;
}
