// Lists of the documented interface are paged by number, those below `/x/` by cursor. Rows are in the order in which
// they were made, so rows that are added change no page. Rows that are removed move the others up; no number can tell
// a reader, so the typed client and its page say it.

import type { PageEnd, PageParts } from '../../lib/index.ts';
import { Fault } from '../rest/index.ts';
import type { PageRequest } from '../rest/kit/index.ts';
import type { Revision } from './revisions.ts';

/** Information about the whole list in an answer. */
export interface Whole {
  /** Number of rows; -1: not counted, because the query has conditions. */
  readonly count: number;
  /** True if there is a next page; undefined: the answer does not say. */
  readonly hasNext?: boolean | undefined;
  /** The end of the page, if there is a next page and the list has cursors. */
  readonly cursor?: string | undefined;
}

/** The order of a list in memory, which gives it cursors. */
export interface Order<R> {
  /** The key of a row. The list is sorted by key, and keys are unique. */
  keyOf(row: R): string | number;
  /** The greatest key comes first. */
  readonly isDescending?: boolean;
}

/** Rows that are written in one slice. */
const ROWS_AT_ONCE = 200;

/** The text of a part of a page. */
interface TextPart {
  /** The rows as JSON, separated by commas; with a comma in front, if others precede it. */
  readonly text: string;
  /** Information about the whole list: of the last part. Its value is undefined if the answer has no `meta`. */
  readonly end: { readonly whole: Whole | undefined } | undefined;
}

/** A page of a list. Its rows become text when they are sent, a few at a time, so that a long page does not delay other work. */
export class Listing<R = unknown> {
  readonly #rows: Iterable<R> | PageParts<R>;
  readonly #show: (row: R) => object | string;
  readonly #whole: Whole | ((end: PageEnd) => Whole) | undefined;

  /**
   * @param rows in memory; or in parts, of which only one is in memory, however slow the client is
   * @param show returns a row as it is shown: an object, or its JSON
   * @param whole about the whole list, or a function of the end of the page. Default: the answer has no `meta`
   */
  constructor(
    rows: Iterable<R> | PageParts<R>,
    show: (row: R) => object | string,
    whole?: Whole | ((end: PageEnd) => Whole)
  ) {
    this.#rows = rows;
    this.#show = show;
    this.#whole = whole;
  }

  /**
   * The text of the page in parts, of which there is at least one.
   * @param nextSlice waits for the next slice
   */
  async *parts(nextSlice: () => Promise<void>): AsyncGenerator<TextPart, void, void> {
    const rows = this.#rows;
    const whole = this.#whole;
    let before = '';
    for await (const { entries, end } of Symbol.iterator in rows ? slices(rows, nextSlice) : rows) {
      const text = entries.length === 0 ? '' : before + entries.map((row) => this.#textOf(row)).join();
      if (entries.length > 0) before = ',';
      yield { text, end: end && { whole: typeof whole === 'function' ? whole(end) : whole } };
    }
  }

  #textOf(row: R): string {
    const shown = this.#show(row);
    return typeof shown === 'string' ? shown : JSON.stringify(shown);
  }
}

/** Rows in memory as parts, each in its own slice. */
async function* slices<R>(rows: Iterable<R>, nextSlice: () => Promise<void>): PageParts<R> {
  let entries: R[] = [];
  for (const row of rows) {
    if (entries.length === ROWS_AT_ONCE) {
      yield { entries, end: undefined };
      entries = [];
      await nextSlice();
    }
    entries.push(row);
  }
  yield { entries, end: { node: '', cursor: undefined, count: 0 } };
}

/**
 * The information about a directory list in answers of a revision.
 * @param conditions the conditions of the request
 */
export function wholeOf({ hasNext }: Revision, conditions: object, { count, cursor }: PageEnd): Whole {
  return { count: countUnder(conditions, count), hasNext: hasNext ? cursor !== undefined : undefined };
}

/**
 * The number of rows in an answer; -1 with conditions, because the broker does not count matching rows.
 * @param conditions the conditions of the request
 */
export function countUnder(conditions: object, count: number): number {
  return Object.keys(conditions).length > 0 ? -1 : count;
}

/**
 * A page of a list in memory.
 * @param order for lists with cursors. A cursor is the key of the last row of a page, so it stays valid when rows are
 * added or removed
 * @throws Fault wrongParameter
 */
export function pageOf<R>(
  all: readonly R[],
  { skip, limit, cursor }: PageRequest,
  show: (row: R) => object,
  order?: Order<R>
): Listing<R> {
  const from = cursor === undefined || order === undefined ? skip : placeAfter(all, cursor, order);
  const rows = all.slice(from, from + limit);
  const isLast = from + rows.length >= all.length;
  const next = order === undefined || isLast ? undefined : `${order.keyOf(rows[rows.length - 1])}`;
  return new Listing(rows, show, { count: all.length, cursor: next });
}

/** The index of the first row after a cursor. @throws Fault wrongParameter */
function placeAfter<R>(all: readonly R[], cursor: string, { keyOf, isDescending = false }: Order<R>): number {
  if (all.length === 0) return 0;
  const key = typeof keyOf(all[0]) === 'number' ? Number(cursor) : cursor;
  if (Number.isNaN(key))
    throw new Fault('wrongParameter', `the parameter "cursor" does not belong to this list: ${JSON.stringify(cursor)}`);
  let from = 0;
  let end = all.length;
  while (from < end) {
    const middle = (from + end) >>> 1;
    const found = keyOf(all[middle]);
    if (found === key || found < key !== isDescending) from = middle + 1;
    else end = middle;
  }
  return from;
}
