/** Records that are looked at in one turn. */
const RECORDS_AT_ONCE = 2_000;

/** A record of a table, with the number that gives its place. */
interface Numbered {
  /** Absent in records of earlier versions, which come first. */
  readonly number?: number | undefined;
}

/** The table that keeps the records. */
export interface NumberedTable<R extends Numbered> extends Iterable<readonly [key: string, record: R]> {
  readonly size: number;
  /** Number of failed commits whose changes were undone. After each, the order of the entries may be another one. */
  readonly undone: number;
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
  /** How often the table has been sorted. */
  #sorted = 0;
  /** The value of `undone` for which the order was checked. */
  #checked = 0;

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
        this.#sort();
        break;
      }
      last = number;
    }
    return this.#table;
  }

  #sort(): void {
    this.#table.reorder(({ number: a = 0 }, { number: b = 0 }) => a - b);
    this.#sorted++;
  }

  /**
   * A part of the records that are wanted, the oldest first. They are walked from the first to the last of the part, in slices, each in a turn
   * of its own. Only if the table is out of order, which can be after a commit has failed, it is sorted, in one turn.
   * @param shown makes an item of the list
   * @param isWanted default: all records
   */
  async part<T>(
    { skip, limit }: ListPart,
    pause: () => Promise<void>,
    shown: (key: string, record: R) => T,
    isWanted: (key: string) => boolean = () => true
  ): Promise<T[]> {
    if (this.#checked !== this.#table.undone) this.oldestFirst();
    this.#checked = this.#table.undone;
    for (;;) {
      const found: T[] = [];
      const sorted = this.#sorted;
      let isInOrder = true;
      let [left, last, passed] = [RECORDS_AT_ONCE, 0, 0];
      for (const [key, record] of this.#table) {
        if (found.length === limit) break;
        if (left-- === 0) {
          await pause();
          left = RECORDS_AT_ONCE - 1;
        }
        const { number = 0 } = record;
        isInOrder = number >= last;
        if (!isInOrder) break;
        last = number;
        if (isWanted(key) && passed++ >= skip) found.push(shown(key, record));
      }
      if (isInOrder) return found;
      // if another list has sorted the table meanwhile, this one has come to its beginning again
      if (sorted === this.#sorted) this.#sort();
    }
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
