// The most frequent forms, a single `*` and plain columns, have separate functions; all others go through `Write`.
// Rows can be shared with other rules, so an output is a new object or the row itself, which must not be changed.
// Absent and null columns are left out unless `sendNilField` is set. An expanding function makes several rows, each
// with the other columns, so what one row makes is weighed in total.

import { setKey } from '../../sql/values.ts';
import { type KnownWeights, MAX_WEIGHT, weightOf } from '../../sql/weight.ts';
import type { BoundField, BoundSelect } from '../expressions/bound.ts';
import type { ExpandingState, StreamFunctionTools } from '../function.ts';
import { checkTime, MAX_ROW_FACTOR } from '../limits.ts';
import type { Evaluate, Tuple } from '../values/tuple.ts';
import {
  isArray,
  isNull,
  isStruct,
  StreamFailure,
  type StreamValue,
  type StreamValueObject,
  tooHeavy,
  typeName
} from '../values/values.ts';

/**
 * Appends the output rows of a tuple to a list: one, unless a function such as `unnest` creates several.
 * @throws StreamFailure
 */
type Project = (tuple: Tuple, outputs: StreamValueObject[]) => void;

interface ProjectOptions {
  /** Output null for columns without a value instead of omitting them. */
  readonly sendNilField: boolean;
  /** Add the metadata of the row as `__meta`. */
  readonly sendMetaToSink: boolean;
}

type Output = Record<string, StreamValue>;

/** Writes a part of the output. */
type Write = (tuple: Tuple, output: Output) => void;

/**
 * Make the function that computes the output of a statement. Columns are in the order of SELECT; of equal names, the
 * last value stands at the position of the first. Values are those of `values.ts`: an integer is a bigint. The rows may
 * be shared with other rules, so they are never changed.
 */
export function makeProject(
  { fields }: Pick<BoundSelect, 'fields'>,
  tools: StreamFunctionTools,
  options: ProjectOptions
): Project {
  const { sendNilField, sendMetaToSink } = options;
  const [first] = fields;
  if (!sendMetaToSink) {
    if (fields.length === 1 && first.type === 'star' && first.except.length + first.replace.length === 0)
      return everything(first.source, sendNilField);
    if (fields.every(isColumn)) return fixedColumns(fields, tools, sendNilField);
  }
  const expanding = fields.findIndex((field) => field.type === 'expanding' && field.function.kind === 'rows');
  const writes = fields.map((field, index) => (index === expanding ? nothing : writeOf(field, tools, sendNilField)));
  if (sendMetaToSink) writes.push((tuple, output) => setKey(output, '__meta', tuple.metadata()));
  if (expanding !== -1) return severalRows(fields[expanding] as Expanding, writes, { tools, expanding, sendNilField });
  return (tuple, outputs) => {
    const output: Output = {};
    for (const write of writes) write(tuple, output);
    outputs.push(output);
  };
}

type Star = Extract<BoundField, { type: 'star' }>;
type Column = Extract<BoundField, { type: 'column' }>;
type Expanding = Extract<BoundField, { type: 'expanding' }>;

function isColumn(field: BoundField): field is Column {
  return field.type === 'column' && field.name !== '__proto__';
}

function nothing(): void {}

/** `SELECT *`: the row itself, unless a column of it is null. */
function everything(source: number | undefined, sendNilField: boolean): Project {
  return (tuple, outputs) => {
    const columns = tuple.columns(source);
    outputs.push(sendNilField || !hasNull(columns) ? columns : withoutNull(columns));
  };
}

function hasNull(columns: StreamValueObject): boolean {
  for (const name in columns) if (isNull(columns[name])) return true;
  return false;
}

function withoutNull(columns: StreamValueObject): StreamValueObject {
  const output: Output = {};
  for (const name of Object.keys(columns)) if (!isNull(columns[name])) setKey(output, name, columns[name]);
  return output;
}

/** The most frequent form. The objects share one shape as long as no value is null. */
function fixedColumns(fields: readonly Column[], tools: StreamFunctionTools, sendNilField: boolean): Project {
  const names = fields.map(({ name }) => name);
  const evaluates = fields.map(({ expression }) => expression.make(tools));
  const count = names.length;
  return (tuple, outputs) => {
    const output: Output = {};
    for (let index = 0; index < count; index++) {
      const value = evaluates[index](tuple);
      if (value !== null && value !== undefined) output[names[index]] = value;
      else if (sendNilField) output[names[index]] = null;
      else if (output[names[index]] !== undefined) delete output[names[index]]; // of equal names, the last one is used
    }
    outputs.push(output);
  };
}

function writeOf(field: BoundField, tools: StreamFunctionTools, sendNilField: boolean): Write {
  if (field.type === 'star') return starWrite(field, tools, sendNilField);
  if (field.type === 'expanding') {
    const read = resultOf(field, tools);
    return (tuple, output) => {
      const value = read(tuple);
      if (isNull(value)) return;
      if (!isStruct(value))
        throw new StreamFailure(`${field.function.name}() returned ${typeName(value)} instead of columns`);
      for (const name of Object.keys(value)) putUnlessNull(output, name, value[name], sendNilField);
    };
  }
  const { name, expression } = field;
  const evaluate = expression.make(tools);
  return (tuple, output) => putUnlessNull(output, name, evaluate(tuple), sendNilField);
}

function starWrite({ source, except, replace }: Star, tools: StreamFunctionTools, sendNilField: boolean): Write {
  const left = new Set(except.map((name) => name.toLowerCase()));
  const replaced = new Map(
    replace.map(({ name, expression }) => [name.toLowerCase(), { name, evaluate: expression.make(tools) }])
  );
  return (tuple, output) => {
    const columns = tuple.columns(source);
    let count = 0;
    for (const name of Object.keys(columns)) {
      const lower = left.size + replaced.size === 0 ? name : name.toLowerCase();
      if (left.has(lower)) continue;
      const replacement = replaced.get(lower);
      if (replacement !== undefined) count++;
      putUnlessNull(
        output,
        name,
        replacement === undefined ? columns[name] : replacement.evaluate(tuple),
        sendNilField
      );
    }
    if (count === replaced.size) return;
    for (const { name, evaluate } of replaced.values())
      if (!Object.hasOwn(output, name)) putUnlessNull(output, name, evaluate(tuple), sendNilField);
  };
}

function severalRows(
  field: Expanding,
  writes: readonly Write[],
  { tools, expanding, sendNilField }: { tools: StreamFunctionTools; expanding: number; sendNilField: boolean }
): Project {
  const read = resultOf(field, tools);
  const { rowWeight = MAX_WEIGHT, time } = tools;
  const most = MAX_ROW_FACTOR * rowWeight;
  const before = writes.slice(0, expanding);
  const behind = writes.slice(expanding + 1);
  return (tuple, outputs) => {
    const rows = read(tuple);
    if (isNull(rows)) return;
    if (!isArray(rows)) throw new StreamFailure(`${field.function.name}() returned ${typeName(rows)} instead of rows`);
    const known: KnownWeights = new Map();
    let weight = 0;
    for (const row of rows) {
      checkTime(time);
      const output: Output = {};
      for (const write of before) write(tuple, output);
      if (!isNull(row) && isStruct(row))
        for (const name of Object.keys(row)) putUnlessNull(output, name, row[name], sendNilField);
      else putUnlessNull(output, field.name, row, sendNilField);
      for (const write of behind) write(tuple, output);
      // each row contains the other columns, which can be large
      weight += weightOf(output, rowWeight, known);
      if (weight > most) throw tooHeavy(`the result of ${field.function.name}() for a row`, most);
      outputs.push(output);
    }
  };
}

/** The function that returns the results of an expanding call: it reads a slot or calls the function. */
function resultOf({ function: row, names, args, slot }: Expanding, tools: StreamFunctionTools): Evaluate {
  if (slot !== undefined) return (tuple) => tuple.slots[slot];
  const state: ExpandingState = row.make(tools, names);
  const evaluates = args.map((arg) => arg.make(tools));
  return (tuple) =>
    state.next(
      evaluates.map((evaluate) => evaluate(tuple)),
      tuple
    );
}

function putUnlessNull(output: Output, name: string, value: StreamValue, sendNilField: boolean): void {
  if (!isNull(value)) setKey(output, name, value);
  else if (sendNilField) setKey(output, name, null);
  else if (Object.hasOwn(output, name)) delete output[name];
}
