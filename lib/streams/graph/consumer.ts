import type { Cause } from '../values/cause.ts';
import type { Row } from '../values/tuple.ts';

/** What a rule needs of the rows of a stream. */
export interface Need {
  /** The columns that the statement uses. */
  readonly columns: ReadonlySet<string> | 'all';
  /** The time of rows is that of the column TIMESTAMP. Default false: when they arrived. */
  readonly isEventTime?: boolean | undefined;
  /** Whole numbers of streams without a schema are integers. Default false: they are floats. */
  readonly integers?: boolean | undefined;
}

/** A rule, as its sources see it. Its methods do not throw. */
export interface Consumer {
  /** A row of a stream. It is shared with other rules, and may have more columns than were needed. */
  push(row: Row): void;
  /** Something could not be read or converted. @param cause what has led to it */
  fail(error: unknown, cause?: Cause): void;
  /** The rows of a table have changed: these are all of them. Needed for tables; rows of tables are not pushed. */
  replace?(rows: readonly Row[]): void;
  /**
   * A message with many rows follows, which come in several turns.
   * @returns what takes its rows and errors; undefined or absent: the consumer itself does
   */
  many?(): Consumer | undefined;
  /** All rows of a message are needed in the turn in which it arrives, because its publisher is answered when it ends. Default false. */
  readonly takesWhole?: boolean;
  /** Take a slice of a message with many rows. Used if `takesWhole`; absent: they are pushed. */
  pushAll?(rows: readonly Row[]): void;
}

/** Stands for a rule that has gone in the middle of a row. */
export const NOBODY: Consumer = { push: () => undefined, fail: () => undefined };
