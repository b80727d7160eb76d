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

/** A page that is read while it is sent. */
interface OpenPage<R> {
  /** The first rows. */
  readonly text: string;
  /** The remaining rows. */
  readonly parts: PageParts<R>;
  wholeOf(end: PageEnd): Whole | undefined;
}

/** A page of a list. Its rows become text when they are sent, a few at a time, so that a long page does not delay other work. */
export class Listing<R = unknown> {
  readonly #rows: readonly R[];
  #write: (row: R) => string;
  #open: OpenPage<R> | undefined = undefined;
  /** Undefined: the answer has no `meta`. */
  readonly #whole: Whole | undefined;

  constructor(rows: readonly R[], whole: Whole | undefined, shape: (row: R) => unknown = (row) => row) {
    this.#rows = rows;
    this.#write = (row) => JSON.stringify(shape(row));
    this.#whole = whole;
  }

  /**
   * A page whose rows are written by a function.
   * @param write returns a row as JSON
   */
  static written<R>(rows: readonly R[], whole: Whole | undefined, write: (row: R) => string): Listing<R> {
    const listing = new Listing(rows, whole);
    listing.#write = write;
    return listing;
  }

  /**
   * A page that is read in parts while it is sent: only one part is in memory, however slow the client is.
   * @param wholeOf derives the information about the whole list from the end of the page
   * @param write returns a row as JSON
   * @throws errors of the first part
   */
  static async read<R>(
    parts: PageParts<R>,
    wholeOf: (end: PageEnd) => Whole | undefined,
    write: (row: R) => string
  ): Promise<Listing<R>> {
    const { value } = await parts.next();
    const { entries = [], end } = value ?? {};
    if (end !== undefined) return Listing.written(entries, wholeOf(end), write);
    const listing = Listing.written<R>([], undefined, write);
    listing.#open = { text: listing.#textOf(entries), parts, wholeOf };
    return listing;
  }

  /** The page, if it is short. */
  get text(): { readonly rows: string; readonly whole: Whole | undefined } | undefined {
    if (this.#open !== undefined || this.#rows.length > ROWS_AT_ONCE) return undefined;
    return { rows: this.#textOf(this.#rows), whole: this.#whole };
  }

  /**
   * The rows as JSON, separated by commas, some in each slice.
   * @param nextSlice waits for the next slice
   * @returns a generator that returns `whole`
   */
  async *parts(nextSlice: () => Promise<void>): AsyncGenerator<string, Whole | undefined, void> {
    if (this.#open !== undefined) return yield* this.#openParts(this.#open);
    for (let from = 0; from < this.#rows.length; from += ROWS_AT_ONCE) {
      if (from > 0) await nextSlice();
      yield (from === 0 ? '' : ',') + this.#textOf(this.#rows.slice(from, from + ROWS_AT_ONCE));
    }
    return this.#whole;
  }

  async *#openParts({ text, parts, wholeOf }: OpenPage<R>): AsyncGenerator<string, Whole | undefined, void> {
    let before = '';
    if (text !== '') {
      yield text;
      before = ',';
    }
    for await (const { entries, end } of parts) {
      if (entries.length > 0) yield before + this.#textOf(entries);
      if (entries.length > 0) before = ',';
      if (end !== undefined) return wholeOf(end);
    }
    return undefined;
  }

  #textOf(rows: readonly R[]): string {
    return rows.map(this.#write).join();
  }
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
  shape?: (row: R) => unknown,
  order?: Order<R>
): Listing<R> {
  const from = cursor === undefined || order === undefined ? skip : placeAfter(all, cursor, order);
  const rows = all.slice(from, from + limit);
  const isLast = from + rows.length >= all.length;
  const next = order === undefined || isLast ? undefined : `${order.keyOf(rows[rows.length - 1])}`;
  return new Listing(rows, { count: all.length, cursor: next }, shape);
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
