import type { Cause } from '../values/cause.ts';
import type { Metadata, StreamRow } from '../values/tuple.ts';

/** The requirements of a rule on the rows of a stream. */
export interface Need {
  /** The columns that the statement uses. */
  readonly columns: ReadonlySet<string> | 'all';
  /** If true, the time of rows is the column TIMESTAMP. Default false: the time of arrival. */
  readonly isEventTime?: boolean | undefined;
  /** If true, whole numbers of streams without a schema are integers. Default false: they are floats. */
  readonly integers?: boolean | undefined;
}

/** A rule as its sources see it. `Consumers` catches and reports the errors of the methods. */
export interface Consumer {
  /** Take a row of a stream. The row is shared with other rules, and may have more columns than needed. */
  push(row: StreamRow): void;
  /**
   * Report input that could not be read or converted.
   * @param cause the rules that caused it
   * @param metadata of its message; undefined if it is not known
   */
  fail(error: unknown, cause?: Cause, metadata?: Metadata): void;
  /** Replace all rows of a table. Required for tables, whose rows are not pushed. */
  replace?(rows: readonly StreamRow[]): void;
  /**
   * Announce a message with many rows, which arrive in several turns.
   * @returns the consumer of its rows and errors; undefined or absent: this consumer
   */
  many?(): Consumer | undefined;
  /**
   * True if all rows of a message are needed in the turn in which it arrives, because its publisher is acknowledged
   * when the turn ends. Default false.
   */
  readonly takesWhole?: boolean;
  /** Take a slice of a message with many rows. Used if `takesWhole`; if absent, the rows are pushed. */
  pushAll?(rows: readonly StreamRow[]): void;
}

/** Replaces a rule that was detached while a row was being processed. */
export const NO_CONSUMER: Consumer = { push: () => undefined, fail: () => undefined };
