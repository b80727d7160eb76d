// Rules that read times and integers alike share a lane, which decodes and converts a payload once, with the columns
// that any of them needs; decoding is compiled again when that set changes. A column that cannot be converted is an
// error only of the rules that need it. Up to `MAX_AT_ONCE` rows of a message are passed on in one go, of a longer
// one some in each turn: half a megabyte can be 60,000 rows, which held up all clients for more than a second. Rules
// can come and go in the middle of such a message.

import { truncated } from '../../base/errors.ts';
import type { Format } from '../format.ts';
import { type Convert, compileConversion } from '../formats/convert.ts';
import { timeOf } from '../formats/convert-column.ts';
import type { Consumer, Need } from '../graph/consumer.ts';
import type { FirstMessage } from '../types.ts';
import type { Cause } from '../values/cause.ts';
import { type Metadata, NO_METADATA, StreamRow } from '../values/tuple.ts';
import { member, printed, StreamFailure, type StreamValueObject } from '../values/values.ts';
import { Consumers } from './consumers.ts';
import type { StreamSettings } from './stream-settings.ts';
import type { TableRows } from './table-rows.ts';

/** Maximum number of rows of a message that are passed on at once; longer messages are passed on in slices. */
export const MAX_AT_ONCE = 1_000;
/** Number of rows in such a slice. */
export const SLICE_ROWS = 200;

/** A message with many rows, some of which have not been passed on. */
interface LongMessage {
  readonly payload: Uint8Array;
  rows: readonly StreamValueObject[];
  /** Index of the next row. */
  at: number;
  readonly metadata: Metadata;
  readonly arrivedAt: number;
  readonly cause: Cause | undefined;
  /** The consumers of its rows, by rule. */
  readonly takers: Map<Consumer, Consumer>;
}

/** Reports of a lane to its source. */
interface LaneHost {
  /** Count a payload or a row that could not be read. */
  failed(error: unknown): void;
  /** Called when a consumer throws. */
  broken(error: unknown): void;
  /** Wall-clock milliseconds. */
  now(): number;
}

/**
 * The rules that share the rows of a source, because they read numbers and times in the same way.
 *
 * Rows have the columns that any of the rules needs. Decoding and conversion are recompiled, at the next row, when this
 * changes.
 */
export class Lane {
  readonly #settings: StreamSettings;
  readonly #host: LaneHost;
  readonly #isEventTime: boolean;
  readonly #integers: boolean;
  readonly #table: TableRows | undefined;
  readonly #consumers: Consumers;
  readonly #needs = new Map<Consumer, Need>();
  #format: Format | undefined;
  #convert: Convert = (values) => values;
  /** For a table: rows that wait until its first rows are read. Undefined if none wait. */
  #held: StreamRow[] | undefined;
  #long: LongMessage | undefined;
  readonly #isWhole: boolean;
  /** For a lane whose rules take slices as a whole: the rows of the current slice. */
  #rows: StreamRow[] | undefined;

  /** @param isWhole whether the rules take all slices of a message in one turn, each as a whole */
  constructor(settings: StreamSettings, host: LaneHost, need: Need, isWhole: boolean) {
    const { isEventTime = false, integers = false } = need;
    this.#settings = settings;
    this.#isWhole = isWhole;
    this.#host = host;
    this.#isEventTime = isEventTime;
    this.#integers = integers;
    this.#table = settings.makeTable();
    this.#consumers = new Consumers((error) => host.broken(error));
  }

  serves({ isEventTime = false, integers = false }: Need): boolean {
    return isEventTime === this.#isEventTime && integers === this.#integers;
  }

  get isEmpty(): boolean {
    return this.#needs.size === 0;
  }

  add(consumer: Consumer, need: Need): void {
    this.#needs.set(consumer, need);
    this.#consumers.add(consumer);
    this.#format = undefined;
    if (this.#long !== undefined) this.#takeMany(this.#long, consumer);
    if (this.#table !== undefined && this.#table.rows.length > 0) consumer.replace?.(this.#table.rows);
  }

  delete(consumer: Consumer): boolean {
    const taker = this.#takerOf(consumer);
    this.#long?.takers.delete(consumer);
    this.#needs.delete(taker);
    if (!this.#consumers.delete(taker)) return false;
    this.#format = undefined;
    return true;
  }

  /** Number of remaining rows of the current message for a rule. */
  leftOf(consumer: Consumer): number {
    const long = this.#long;
    return long === undefined || !this.#needs.has(this.#takerOf(consumer)) ? 0 : long.rows.length - long.at;
  }

  /**
   * @param cause the rules that caused the bytes
   * @returns the number of rows. Those of a long message are passed on by `slice`
   */
  bytes(payload: Uint8Array, metadata: Metadata, arrivedAt: number, cause: Cause | undefined): number {
    const format = this.#format ?? this.#compile();
    let decoded: StreamValueObject | readonly StreamValueObject[];
    try {
      decoded = format.decode(payload);
    } catch (error) {
      this.#host.failed(error);
      this.fail(error, cause, metadata);
      return 1;
    }
    if (!Array.isArray(decoded)) {
      this.#row(decoded as StreamValueObject, metadata, arrivedAt, cause);
      return 1;
    }
    if (decoded.length > MAX_AT_ONCE && this.#canWait) {
      const long = { rows: decoded, at: 0, metadata, arrivedAt, cause, takers: new Map<Consumer, Consumer>() };
      this.#long = { ...long, payload: Uint8Array.prototype.slice.call(payload) };
      for (const consumer of [...this.#needs.keys()]) this.#takeMany(this.#long, consumer);
    } else for (const values of decoded) this.#row(values, metadata, arrivedAt, cause);
    return decoded.length;
  }

  /** True while some rows of a message have not been passed on. */
  get isInMessage(): boolean {
    return this.#long !== undefined;
  }

  /** Pass on rows of the current message. @returns their number; 0 if there are no more */
  slice(most: number): number {
    const long = this.#long;
    if (long === undefined) return 0;
    if (this.#format === undefined) this.#readAgain(long);
    const begin = long.at;
    const end = Math.min(begin + most, long.rows.length);
    const isOwn = this.#table !== undefined && this.#held === undefined;
    if (isOwn) this.#held = []; // a table changes once
    if (this.#isWhole) this.#rows = [];
    while (long.at < end) this.#row(long.rows[long.at++], long.metadata, long.arrivedAt, long.cause);
    if (isOwn) this.release([]);
    if (this.#rows !== undefined) this.#passSlice(this.#rows);
    if (long.at >= long.rows.length) this.#endLong(long);
    return end - begin;
  }

  values(values: StreamValueObject, metadata: Metadata, arrivedAt: number, cause: Cause | undefined): void {
    if (this.#format === undefined) this.#compile();
    this.#row(values, metadata, arrivedAt, cause);
  }

  /** Pass the rows of a rule to another consumer. */
  swap(consumer: Consumer, next: Consumer): void {
    const takers = this.#long?.takers;
    const taker = takers?.get(consumer);
    if (takers === undefined || taker === undefined) {
      this.#swap(consumer, next);
      return;
    }
    takers.delete(consumer); // it continues until the message ends
    takers.set(next, taker);
  }

  #swap(consumer: Consumer, next: Consumer): void {
    const need = this.#needs.get(consumer);
    if (need === undefined) return;
    this.#needs.delete(consumer);
    this.#needs.set(next, need);
    this.#consumers.swap(consumer, next);
  }

  get isTable(): boolean {
    return this.#table !== undefined;
  }

  /** For a table: make rows wait for the first rows, which follow. */
  hold(): void {
    this.#held = [];
  }

  /** For a table: drop the rows beyond its limit, if there are many. */
  trim(rows: StreamRow[]): void {
    const most = this.#table?.most ?? Infinity;
    if (rows.length > 2 * most + MAX_AT_ONCE) rows.splice(0, rows.length - most);
  }

  /** For a table: add the first rows, followed by the waiting ones. */
  release(first: readonly StreamRow[]): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    const table = this.#table as TableRows;
    if (table.addAll([...first, ...held])) this.#replace(table.rows);
  }

  /**
   * Make a function that reads first messages for a rule.
   * @returns a function that calls `took` with each row, and `failed` for input that cannot be read
   */
  reader(
    need: Need
  ): (message: FirstMessage, took: (row: StreamRow) => void, failed: (error: unknown) => void) => void {
    const needed = this.#settings.payloadKeys(this.#columnsOf([need]));
    const format = this.#settings.makeFormat(needed, this.#integers);
    const convert = this.#conversion([need]);
    return ({ payload, metadata = NO_METADATA, cause }, took, failed) => {
      const attempt = <T>(read: () => T): T | undefined => {
        try {
          return read();
        } catch (error) {
          this.#host.failed(error);
          failed(error);
          return undefined;
        }
      };
      const decoded = attempt(() => format.decode(payload)) ?? [];
      const now = this.#host.now();
      for (const values of (Array.isArray(decoded) ? decoded : [decoded]) as readonly StreamValueObject[]) {
        const row = attempt(() => this.#rowOf(convert, values, metadata, now, cause));
        if (row !== undefined) took(row);
      }
    };
  }

  end(): void {
    if (this.#table?.end() === true) this.#replace(this.#table.rows);
  }

  /** Report an error, which has been counted, to the rules. */
  fail(...failure: Parameters<Consumer['fail']>): void {
    this.#consumers.each((consumer) => consumer.fail(...failure));
  }

  /** True if the rows of a message can arrive in several turns. */
  get #canWait(): boolean {
    return this.#table?.isBatch !== true;
  }

  #takerOf(consumer: Consumer): Consumer {
    return this.#long?.takers.get(consumer) ?? consumer;
  }

  #takeMany({ takers }: LongMessage, consumer: Consumer): void {
    const taker = consumer.many?.();
    if (taker === undefined) return;
    this.#swap(consumer, taker);
    takers.set(consumer, taker);
  }

  /** Recompile, because the columns that rules need have changed. */
  #readAgain(long: LongMessage): void {
    try {
      long.rows = this.#compile().decode(long.payload) as readonly StreamValueObject[];
    } catch (error) {
      this.#host.failed(error);
      this.fail(error, long.cause, long.metadata);
      long.at = long.rows.length;
    }
  }

  #passSlice(rows: readonly StreamRow[]): void {
    this.#rows = undefined;
    this.#consumers.each((consumer) => {
      if (consumer.pushAll !== undefined) consumer.pushAll(rows);
      else for (const row of rows) consumer.push(row);
    });
  }

  #endLong({ takers }: LongMessage): void {
    this.#long = undefined;
    for (const [consumer, taker] of takers) this.#swap(taker, consumer);
  }

  #row(values: StreamValueObject, metadata: Metadata, arrivedAt: number, cause: Cause | undefined): void {
    let row: StreamRow;
    try {
      row = this.#rowOf(this.#convert, values, metadata, arrivedAt, cause);
    } catch (error) {
      this.#apart((convert) => this.#rowOf(convert, values, metadata, arrivedAt, cause), error, cause, metadata);
      return;
    }
    if (this.#rows !== undefined) this.#rows.push(row);
    else if (this.#table === undefined) this.#consumers.push(row);
    else this.#keep(this.#table, row);
  }

  #rowOf(
    convert: Convert,
    values: StreamValueObject,
    metadata: Metadata,
    arrivedAt: number,
    cause: Cause | undefined
  ): StreamRow {
    const converted = convert(values);
    const timestamp = this.#isEventTime ? this.#timeOf(converted) : arrivedAt;
    // rows of tables trigger nothing, so they carry no cause
    return new StreamRow(converted, timestamp, metadata, undefined, this.#table === undefined ? cause : undefined);
  }

  /** Report that a column cannot be converted to those rules only that need it. */
  #apart(rowOf: (convert: Convert) => StreamRow, error: unknown, cause: Cause | undefined, metadata: Metadata): void {
    this.#host.failed(error);
    const results = new Map<string, StreamRow | StreamFailure>();
    this.#consumers.each((consumer) => {
      const need = this.#needs.get(consumer);
      if (need === undefined) return;
      const key = need.columns === 'all' ? '' : JSON.stringify([...need.columns].sort());
      let result = results.get(key);
      if (result === undefined) {
        try {
          result = rowOf(this.#conversion([need]));
        } catch (failure) {
          result = failure as StreamFailure;
        }
        results.set(key, result);
      }
      if (result instanceof StreamRow && this.#table === undefined) consumer.push(result);
      else consumer.fail(result instanceof StreamRow ? error : result, cause, metadata);
    });
  }

  #keep(table: TableRows, row: StreamRow): void {
    if (this.#held !== undefined) {
      this.#held.push(row);
      return;
    }
    try {
      if (table.add(row)) this.#replace(table.rows);
    } catch (error) {
      this.#host.failed(error);
      this.fail(error, undefined, row.source);
    }
  }

  #replace(rows: readonly StreamRow[]): void {
    this.#consumers.each((consumer) => consumer.replace?.(rows));
  }

  #timeOf(values: StreamValueObject): number {
    const { timestamp = '', timestampFormat, parseTime } = this.#settings;
    const value = member(values, timestamp);
    if (value === undefined || value === null)
      throw new StreamFailure(`cannot find timestamp field ${timestamp} in tuple ${shown(values)}`);
    const time = timeOf(value, timestampFormat, parseTime);
    if (time !== undefined) return time;
    const text = `cannot convert timestamp field ${timestamp} to timestamp with error ${printed(value)} is not a time`;
    throw new StreamFailure(`${text}${timestampFormat === undefined ? '' : ` of the format ${timestampFormat}`}`);
  }

  #compile(): Format {
    const needs = [...this.#needs.values()];
    this.#convert = this.#conversion(needs);
    const needed = this.#settings.payloadKeys(this.#columnsOf(needs));
    this.#format = this.#settings.makeFormat(needed, this.#integers);
    return this.#format;
  }

  #conversion(needs: readonly Need[]): Convert {
    const { columns, isStrict, timestampFormat, parseTime } = this.#settings;
    const needed = this.#columnsOf(needs);
    const convert = compileConversion({ columns, needed, isStrict, timestampFormat, parseTime });
    if (columns === undefined) return convert;
    return (values) => {
      try {
        return convert(values);
      } catch (error) {
        throw new StreamFailure(`error in preprocessor: ${(error as Error).message}`, error);
      }
    };
  }

  /**
   * @returns undefined: all columns. Tables have all columns, because rules are attached after their rows have arrived
   */
  #columnsOf(needs: readonly Need[]): string[] | undefined {
    const columns = new Set<string>();
    if (this.#table !== undefined) return undefined;
    for (const need of needs) {
      if (need.columns === 'all') return undefined;
      for (const name of need.columns) columns.add(name);
    }
    if (this.#isEventTime && this.#settings.timestamp !== undefined) columns.add(this.#settings.timestamp);
    return [...columns];
  }
}

function shown(values: StreamValueObject): string {
  return truncated(printed(values), 200);
}
