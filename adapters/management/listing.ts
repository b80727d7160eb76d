/** The part of a list that a request asks for. */
export interface PageRequest {
  /** From 1. */
  readonly number: number;
  readonly limit: number;
  /** Rows of the pages before. */
  readonly skip: number;
}

/** What an answer says about the whole list. */
export interface Whole {
  /** Number of rows; -1: not counted, because the query has conditions. */
  readonly count: number;
  /** Whether a next page exists; undefined: the answer does not say. */
  readonly hasNext?: boolean | undefined;
}

/** A page of a list. Its rows are shaped when they are written, a few at a time, so that a long page does not delay other work. */
export class Listing<R = unknown> {
  readonly #rows: readonly R[];
  readonly #shape: (row: R) => unknown;
  /** Undefined: the answer has no `meta`. */
  readonly whole: Whole | undefined;

  constructor(rows: readonly R[], whole: Whole | undefined, shape: (row: R) => unknown = (row) => row) {
    this.#rows = rows;
    this.#shape = shape;
    this.whole = whole;
  }

  get length(): number {
    return this.#rows.length;
  }

  /** Some rows, shaped. */
  slice(from: number, to: number): unknown[] {
    return this.#rows.slice(from, to).map(this.#shape);
  }
}

/** A page of a list that is in memory. */
export function pageOf<R>(all: readonly R[], { skip, limit }: PageRequest, shape?: (row: R) => unknown): Listing<R> {
  return new Listing(all.slice(skip, skip + limit), { count: all.length }, shape);
}
