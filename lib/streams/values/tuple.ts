// Rows are shared by the rules on a stream and by the windows of a rule: a tuple is never changed, except for its
// slots, and a rule that needs slots makes a tuple with new ones (`with`). Names are matched exactly first and
// without regard to case afterwards. `Frame` is what expressions see besides their tuple; there is one for each
// running rule, and an operator sets it before it evaluates, so nothing may wait between the two.

import { type Cause, deeper } from './cause.ts';
import { isNull, member, type StreamValue, type StreamValueObject } from './values.ts';

/** Metadata of a row, besides its columns, such as its topic. */
export type Metadata = StreamValueObject;

export const NO_METADATA: Metadata = {};

/** The content of a slot whose value has not been computed. */
export const PENDING = Symbol('pending') as unknown as StreamValue;

const NO_SLOTS: StreamValue[] = [];

/**
 * An item that flows between operators: a row of one stream, a joined row or a group of rows.
 *
 * Expressions refer to the stream of a column by its position among the sources of the statement, from 0; the planner
 * knows the names.
 */
export interface Tuple {
  /** Arrival time in milliseconds since 1970, or the time column that the stream declares. */
  readonly timestamp: number;
  /** The values of aliases that other clauses use, and of stateful functions; `PENDING` until they are computed. */
  readonly slots: StreamValue[];
  /** The rules that caused the item; undefined for most rows. */
  readonly cause: Cause | undefined;
  /** The value of a column, from the first stream that has it; undefined if none has it. */
  column(name: string): StreamValue;
  /** The value of a column of one stream. */
  columnOf(source: number, name: string): StreamValue;
  /** The value of a metadata field. */
  meta(name: string): StreamValue;
  /** The value of a metadata field of one stream. */
  metaOf(source: number, name: string): StreamValue;
  /** All columns, or those of one stream. Of equal names, the first stream's column is used. */
  columns(source?: number): StreamValueObject;
  /** All metadata, or that of one stream. */
  metadata(source?: number): Metadata;
  /** A copy of the tuple with separate slots. A shared tuple is never changed. */
  with(slots: StreamValue[]): Tuple;
}

/** A row of one stream. Rules share rows, so they are never changed. */
export class StreamRow implements Tuple {
  readonly values: StreamValueObject;
  readonly timestamp: number;
  readonly source: Metadata;
  readonly slots: StreamValue[];
  readonly cause: Cause | undefined;

  constructor(
    values: StreamValueObject,
    timestamp: number,
    metadata: Metadata = NO_METADATA,
    slots: StreamValue[] = NO_SLOTS,
    cause?: Cause
  ) {
    this.values = values;
    this.timestamp = timestamp;
    this.source = metadata;
    this.slots = slots;
    this.cause = cause;
  }

  column(name: string): StreamValue {
    return member(this.values, name);
  }

  columnOf(_source: number, name: string): StreamValue {
    return member(this.values, name);
  }

  meta(name: string): StreamValue {
    return member(this.source, name);
  }

  metaOf(_source: number, name: string): StreamValue {
    return member(this.source, name);
  }

  columns(): StreamValueObject {
    return this.values;
  }

  metadata(): Metadata {
    return this.source;
  }

  with(slots: StreamValue[]): StreamRow {
    return new StreamRow(this.values, this.timestamp, this.source, slots, this.cause);
  }

  /** The same row at another time. */
  at(timestamp: number): StreamRow {
    return new StreamRow(this.values, timestamp, this.source, this.slots, this.cause);
  }
}

/** Rows of several streams, at most one of each. */
export class JoinedRow implements Tuple {
  /** By position of the stream; undefined if no row of it matches. */
  readonly parts: readonly (StreamRow | undefined)[];
  /** The positions in the order in which columns are looked up. */
  readonly order: readonly number[];
  readonly slots: StreamValue[];

  constructor(parts: readonly (StreamRow | undefined)[], order: readonly number[], slots: StreamValue[] = NO_SLOTS) {
    this.parts = parts;
    this.order = order;
    this.slots = slots;
  }

  get timestamp(): number {
    for (const position of this.order) {
      const part = this.parts[position];
      if (part !== undefined) return part.timestamp;
    }
    return 0;
  }

  /** The cause with the longest chain among the rows. */
  get cause(): Cause | undefined {
    let cause: Cause | undefined;
    for (const position of this.order) cause = deeper(cause, this.parts[position]?.cause);
    return cause;
  }

  column(name: string): StreamValue {
    for (const position of this.order) {
      const value = this.parts[position]?.column(name);
      if (!isNull(value)) return value;
    }
    return undefined;
  }

  columnOf(source: number, name: string): StreamValue {
    return this.parts[source]?.column(name);
  }

  meta(name: string): StreamValue {
    for (const position of this.order) {
      const value = this.parts[position]?.meta(name);
      if (!isNull(value)) return value;
    }
    return undefined;
  }

  metaOf(source: number, name: string): StreamValue {
    return this.parts[source]?.meta(name);
  }

  columns(source?: number): StreamValueObject {
    if (source !== undefined) return this.parts[source]?.columns() ?? {};
    return this.#union((part) => part.columns());
  }

  metadata(source?: number): Metadata {
    if (source !== undefined) return this.parts[source]?.metadata() ?? {};
    return this.#union((part) => part.metadata());
  }

  with(slots: StreamValue[]): JoinedRow {
    return new JoinedRow(this.parts, this.order, slots);
  }

  #union(read: (part: StreamRow) => StreamValueObject): StreamValueObject {
    const union: Record<string, StreamValue> = { __proto__: null } as never;
    for (const position of this.order) {
      const part = this.parts[position];
      if (part === undefined) continue;
      for (const [name, value] of Object.entries(read(part))) if (!(name in union)) union[name] = value;
    }
    return union;
  }
}

/** The rows of a group. Its columns are those of its first row [stream rules 4.6]. */
export class GroupRow implements Tuple {
  readonly first: Tuple;
  /** The results of the statement's aggregate calls, in the order of the plan. */
  readonly aggregates: readonly StreamValue[];
  readonly slots: StreamValue[];

  constructor(first: Tuple, aggregates: readonly StreamValue[], slots: StreamValue[] = first.slots) {
    this.first = first;
    this.aggregates = aggregates;
    this.slots = slots;
  }

  get timestamp(): number {
    return this.first.timestamp;
  }

  get cause(): Cause | undefined {
    return this.first.cause;
  }

  column(name: string): StreamValue {
    return this.first.column(name);
  }

  columnOf(source: number, name: string): StreamValue {
    return this.first.columnOf(source, name);
  }

  meta(name: string): StreamValue {
    return this.first.meta(name);
  }

  metaOf(source: number, name: string): StreamValue {
    return this.first.metaOf(source, name);
  }

  columns(source?: number): StreamValueObject {
    return this.first.columns(source);
  }

  metadata(source?: number): Metadata {
    return this.first.metadata(source);
  }

  with(slots: StreamValue[]): GroupRow {
    return new GroupRow(this.first, this.aggregates, slots);
  }
}

/** The bounds of a window, in milliseconds since 1970. */
export interface WindowRange {
  /** The beginning. */
  readonly start: number;
  /** The end. */
  readonly end: number;
  /** Time of the emission. */
  readonly trigger: number;
  /** The longest cause of its rows. Absent if they have none. */
  readonly cause?: Cause;
}

/** The tuples of one emission of a window; after an aggregation, its groups. */
export interface Collection {
  readonly tuples: readonly Tuple[];
  readonly range: WindowRange;
}

export function isCollection(item: Tuple | Collection): item is Collection {
  return 'tuples' in item;
}

/** The result of a statement for a row or a window: what sinks receive. */
export interface Emission {
  readonly rows: readonly StreamValueObject[];
  /** The rules that caused it. */
  readonly cause: Cause | undefined;
}

/** The cause of an item. */
export function causeOf(item: Tuple | Collection): Cause | undefined {
  return isCollection(item) ? item.range.cause : item.cause;
}

/** The topic of the message from which an item comes; undefined if it comes from none, from several, or from a window. */
export function topicOf(item: Tuple | Collection): string | undefined {
  const parts = item instanceof StreamRow ? [item] : item instanceof JoinedRow ? item.parts : [];
  const [topic, ...others] = new Set(parts.flatMap((part) => topicIn(part?.source) ?? []));
  return others.length === 0 ? topic : undefined;
}

/** The topic in the metadata of a message. */
export function topicIn(metadata: Metadata | undefined): string | undefined {
  return typeof metadata?.topic === 'string' ? metadata.topic : undefined;
}

/** The bounds of a window with its cause. */
export function rangeOf(start: number, end: number, cause: Cause | undefined): WindowRange {
  const range = { start, end, trigger: end };
  return cause === undefined ? range : { ...range, cause };
}

/** The context of expressions besides their tuple. Each running rule has one; operators set it before they evaluate. */
export interface Frame {
  /** The window being evaluated. */
  range: WindowRange | undefined;
  /** Number of the row in its emission, from 1. */
  rowNumber: number;
  /**
   * The message with many rows to which the current row belongs, and whether an error of it was sent; undefined if
   * there is none.
   */
  many?:
    | {
        /** True if an error of it was sent. */
        hasFailed: boolean;
      }
    | undefined;
}

/** A compiled expression. @throws StreamFailure */
export type Evaluate = (tuple: Tuple) => StreamValue;
