/** A record of a table, with the number that gives its place. */
interface Numbered {
  /** Absent in records of earlier versions, which come first. */
  readonly number?: number | undefined;
}

/** The table that keeps the records. */
export interface NumberedTable<R extends Numbered> extends Iterable<readonly [key: string, record: R]> {
  readonly size: number;
  get(key: string): R | undefined;
  /** Bring the entries into another order, which lasts until the store is read again. */
  reorder(compare: (a: R, b: R) => number): void;
}

/** A part of a list. */
export interface ListPart {
  /** Number of records before it. */
  readonly skip: number;
  readonly limit: number;
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

  /** The records with their keys, the oldest first. Most often the table is in this order, and nothing is sorted. */
  oldestFirst(): Iterable<readonly [key: string, record: R]> {
    let last = 0;
    for (const [, { number = 0 }] of this.#table) {
      if (number < last) {
        this.#table.reorder(({ number: a = 0 }, { number: b = 0 }) => a - b);
        break;
      }
      last = number;
    }
    return this.#table;
  }

  /** The same for readers that take several turns: the records of the first turn, without those that have been deleted when they are read. */
  *lasting(): Iterable<readonly [key: string, record: R]> {
    for (const key of this.#keys()) {
      const record = this.#table.get(key);
      if (record !== undefined) yield [key, record];
    }
  }

  /** The keys in the order of `oldestFirst`, which takes a second walk only if the records must be sorted. */
  #keys(): string[] {
    const keys: string[] = [];
    let last = 0;
    for (const [key, { number = 0 }] of this.#table) {
      if (number < last) return Array.from(this.oldestFirst(), ([each]) => each);
      keys.push(key);
      last = number;
    }
    return keys;
  }
}

/** The items of a part of a list. */
export function partOf<T>(items: Iterable<T>, { skip, limit }: ListPart): T[] {
  const part: T[] = [];
  if (limit === 0) return part;
  let at = 0;
  for (const item of items) {
    if (at++ < skip) continue;
    part.push(item);
    if (part.length === limit) break;
  }
  return part;
}
