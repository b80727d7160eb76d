// Lists of the documented interface are paged by number, those below `/x/` by cursor. Rows are in the order in which
// they were made, so rows that are added change no page. Rows that are removed move the others up; no number can tell
// a reader, so the typed client and its page say it.

import type { PageEnd, PageParts } from '../../lib/index.ts';
import { Fault } from '../rest/index.ts';
import type { Revision } from './revisions.ts';

/** The part of a list that a request asks for. */
export interface PageRequest {
  /** From 1. */
  readonly number: number;
  readonly limit: number;
  /** Rows of the pages before. */
  readonly skip: number;
  /** Where the page before has ended; undefined: `skip` says where this one begins. */
  readonly cursor?: string | undefined;
  /** Whether the request has a parameter of a page. */
  readonly isGiven?: boolean;
}

/** What an answer says about the whole list. */
export interface Whole {
  /** Number of rows; -1: not counted, because the query has conditions. */
  readonly count: number;
  /** Whether a next page exists; undefined: the answer does not say. */
  readonly hasNext?: boolean | undefined;
  /** Where the page ends, if there is a next one and the list has cursors. */
  readonly cursor?: string | undefined;
}

/** The order of a list in memory, which gives it cursors. */
export interface Order<R> {
  /** The key of a row. The list is in the order of its keys, and no two rows have the same. */
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
  /** The others. */
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

  /** A page whose rows a function writes. @param write returns a row as JSON */
  static written<R>(rows: readonly R[], whole: Whole | undefined, write: (row: R) => string): Listing<R> {
    const listing = new Listing(rows, whole);
    listing.#write = write;
    return listing;
  }

  /**
   * A page that is read in parts while it is sent: whatever time the client takes, only a part of it is in memory.
   * @param wholeOf makes of the end of the page what the answer says about the list
   * @param write returns a row as JSON
   * @throws what the first part throws
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
   * The rows as JSON with commas between, some in each slice.
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

/** The figures of a list of the directory in answers of a revision. @param conditions those given */
export function wholeOf({ hasNext }: Revision, conditions: object, { count, cursor }: PageEnd): Whole {
  return { count: countUnder(conditions, count), hasNext: hasNext ? cursor !== undefined : undefined };
}

/** The number of rows that an answer tells: with conditions, the broker has not counted those that meet them. @param conditions those given */
export function countUnder(conditions: object, count: number): number {
  return Object.keys(conditions).length > 0 ? -1 : count;
}

/**
 * A page of a list that is in memory.
 * @param order for lists with cursors. A cursor is the key of the last row of a page, so it stays valid when rows come and go
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
    throw new Fault('wrongParameter', `the parameter "cursor" is not one of this list: ${JSON.stringify(cursor)}`);
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
