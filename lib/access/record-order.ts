/** A record of a table, with the number that gives its place. */
interface Numbered {
  /** Absent in records of earlier versions, which come first. */
  readonly number?: number | undefined;
}

/** The table that keeps the records. */
interface NumberedTable<R extends Numbered> extends Iterable<readonly [key: string, record: R]> {
  readonly size: number;
}

/** Numbers the records of a table as they are added: a store returns them in the order of their keys. */
export class RecordOrder<R extends Numbered> {
  readonly #table: NumberedTable<R>;
  #last = 0;
  /** `#last` is at least the greatest number in the table. */
  #isKnown = false;

  constructor(table: NumberedTable<R>) {
    this.#table = table;
  }

  /** The number of a record that is added now. */
  next(): number {
    if (!this.#isKnown) {
      if (this.#table.size === 0) return 1; // possibly because the store is not open yet
      for (const [, { number = 0 }] of this.#table) this.#last = Math.max(this.#last, number);
      this.#isKnown = true;
    }
    return ++this.#last;
  }

  /** The records with their keys, the oldest first. */
  oldestFirst(): (readonly [key: string, record: R])[] {
    return [...this.#table].sort(([, { number: a = 0 }], [, { number: b = 0 }]) => a - b);
  }
}
