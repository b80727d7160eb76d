import type { StreamRow } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';

/** Maximum number of rows of one table. */
const MAX_ROWS = 1_000_000;

/** The rows of a table: for a batch, such as a file, all rows once they are complete; otherwise the latest rows. */
export class TableRows {
  /** 0 for a batch. */
  readonly #retained: number;
  #next: StreamRow[] = [];
  #rows: readonly StreamRow[] = [];

  /** @param retained number of rows that are kept; 0: all rows up to the end of a batch */
  constructor(retained: number) {
    this.#retained = retained;
  }

  get rows(): readonly StreamRow[] {
    return this.#rows;
  }

  /** Maximum number of rows that are kept: the latest ones; infinite for a batch, which refuses more. */
  get most(): number {
    return this.#retained === 0 ? Infinity : this.#retained;
  }

  /** True if the table is complete when a batch ends. */
  get isBatch(): boolean {
    return this.#retained === 0;
  }

  /** @returns whether the table has changed @throws StreamFailure if there are too many rows */
  add(row: StreamRow): boolean {
    if (this.#retained > 0) {
      const kept = this.#retained === 1 ? [] : this.#rows.slice(1 - this.#retained);
      this.#rows = [...kept, row];
      return true;
    }
    if (this.#next.length >= MAX_ROWS)
      throw new StreamFailure(`the table has more than ${MAX_ROWS} rows; the remaining rows are ignored`);
    this.#next.push(row);
    return false;
  }

  /** Add several rows. @returns whether the table has changed @throws StreamFailure if there are too many rows */
  addAll(rows: readonly StreamRow[]): boolean {
    if (this.#retained === 0) return rows.reduce((hasChanged, row) => this.add(row) || hasChanged, false);
    this.#rows = [...this.#rows, ...rows].slice(-this.#retained);
    return rows.length > 0;
  }

  /** Note that the source has produced all rows. @returns whether the table has changed */
  end(): boolean {
    if (this.#retained > 0) return false;
    this.#rows = this.#next;
    this.#next = [];
    return true;
  }
}
