/** Maximum number of records that are examined in one turn. */
const RECORDS_AT_ONCE = 2_000;

/** Maximum number of keys in one set of a `KeySet`. */
const KEYS_AT_MOST = 16_384;

/** A record of a table, with the number that determines its position. */
interface Numbered {
  /** Absent in records of earlier versions, which come first. */
  readonly number?: number | undefined;
}

/** The table that keeps the records. */
export interface NumberedTable<R extends Numbered> extends Iterable<readonly [key: string, record: R]> {
  readonly size: number;
  /** Number of failed commits whose changes were undone. After each, the order of the entries may have changed. */
  readonly undone: number;
  get(key: string): R | undefined;
  /** Sort the entries; the order lasts until the store is read again. */
  reorder(compare: (a: R, b: R) => number): void;
}

/** A part of a list. */
export interface ListPart {
  /** Number of records to skip. */
  readonly skip: number;
  /** Maximum number of records of the part. */
  readonly limit: number;
}

/** A collection of many keys, in sets of limited size: a set of several 100,000 keys takes about 10 ms in the turn in which it grows. */
class KeySet {
  readonly #sets: Set<string>[] = [new Set()];

  /** Add a key. @returns whether it is new */
  add(key: string): boolean {
    for (const set of this.#sets) if (set.has(key)) return false;
    const [latest] = this.#sets;
    if (latest.size < KEYS_AT_MOST) latest.add(key);
    else this.#sets.unshift(new Set([key]));
    return true;
  }
}

/** Numbers the records of a table as they are added, because a store returns them in the order of their keys. */
export class RecordOrder<R extends Numbered> {
  readonly #table: NumberedTable<R>;
  #last = 0;
  /** True once `#last` is at least the greatest number in the table. */
  #isKnown = false;
  /** Number of times the table has been sorted. */
  #sorted = 0;
  /** The value of `undone` for which the order was checked. */
  #checked = 0;

  constructor(table: NumberedTable<R>) {
    this.#table = table;
  }

  /** The number for a record that is added now. */
  next(): number {
    if (!this.#isKnown) {
      if (this.#table.size === 0) return 1; // possibly because the store is not open yet
      for (const [, { number = 0 }] of this.#table) this.#last = Math.max(this.#last, number);
      this.#isKnown = true;
    }
    return ++this.#last;
  }

  /** The records with their keys, the oldest first. In most cases the table is in this order already, and nothing is sorted. */
  oldestFirst(): Iterable<readonly [key: string, record: R]> {
    let last = 0;
    for (const [, { number = 0 }] of this.#table) {
      if (number < last) {
        this.#sort();
        break;
      }
      last = number;
    }
    this.#checked = this.#table.undone;
    return this.#table;
  }

  #sort(): void {
    this.#table.reorder(({ number: a = 0 }, { number: b = 0 }) => a - b);
    this.#sorted++;
  }

  /** Sort the table if it may be out of order after a failed commit. */
  #restoreOrder(): void {
    if (this.#checked !== this.#table.undone) this.oldestFirst();
  }

  /**
   * A part of the wanted records, the oldest first. They are walked from the first to the last of the part, in slices, each in its own
   * turn. The table is sorted, in one turn, only if it is out of order, which can happen after a failed commit. When the table is read from
   * a store, `oldestFirst` must be called before.
   * @param shown makes an item of the list
   * @param isWanted default: all records
   */
  async part<T>(
    { skip, limit }: ListPart,
    pause: () => Promise<void>,
    shown: (key: string, record: R) => T,
    isWanted: (key: string) => boolean = () => true
  ): Promise<T[]> {
    for (;;) {
      this.#restoreOrder();
      const found: T[] = [];
      const [sorted, undone] = [this.#sorted, this.#table.undone];
      let isWhole = true;
      let [left, last, passed] = [RECORDS_AT_ONCE, 0, 0];
      for (const [key, record] of this.#table) {
        if (found.length === limit) break;
        if (left-- === 0) {
          await pause();
          left = RECORDS_AT_ONCE - 1;
        }
        const { number = 0 } = record;
        // sorted, or changed by a failed commit, during the pause: rows can come twice, or not at all
        isWhole = number >= last && sorted === this.#sorted && undone === this.#table.undone;
        if (!isWhole) break;
        last = number;
        if (isWanted(key) && passed++ >= skip) found.push(shown(key, record));
      }
      if (isWhole) return found;
      if (sorted === this.#sorted && undone === this.#table.undone) this.#sort();
    }
  }

  /**
   * The records, the oldest first, for readers that take several turns: they are walked as they are read. Records that are deleted before
   * they are read are left out, and records that are added in the meantime come last. Each key comes once, with its record of that moment.
   * When the table is read from a store, `oldestFirst` must be called before.
   */
  *lasting(): Iterable<readonly [key: string, record: R]> {
    this.#restoreOrder();
    const passed = new KeySet();
    let sorted = this.#sorted;
    let last = 0;
    for (const entry of this.#table) {
      const [key, { number = 0 }] = entry;
      if (sorted !== this.#sorted) {
        // sorted in the meantime: the iterator has started again
        sorted = this.#sorted;
        last = 0;
      }
      if (number < last)
        this.#sort(); // the iterator starts again, and comes to this record later
      else if (passed.add(key)) yield entry;
      last = number;
    }
  }
}
