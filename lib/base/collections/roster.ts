/**
 * A list in the order of arrival that can be read from any position on, although entries are removed in between.
 *
 * Each entry has a number, which never changes and is never used again. Adding takes constant time; removing and finding a position take
 * the time of a binary search.
 */
export class Roster<T extends { readonly number: number }> {
  /** In ascending order of their numbers. A removed entry leaves its number, so that the order can still be searched. */
  #places: (T | number)[] = [];
  #removed = 0;
  #last = 0;

  get size(): number {
    return this.#places.length - this.#removed;
  }

  /** The number for the next entry. */
  nextNumber(): number {
    return ++this.#last;
  }

  /** Append an entry, which has the last number of `nextNumber`. */
  add(entry: T): void {
    this.#places.push(entry);
  }

  /** Remove an entry, if it is in the list. */
  delete(entry: T): void {
    const at = this.#search(entry.number);
    if (this.#places[at] !== entry) return;
    this.#places[at] = entry.number;
    this.#removed++;
    if (this.#removed * 2 > this.#places.length) {
      this.#places = this.#places.filter((place) => typeof place !== 'number');
      this.#removed = 0;
    }
  }

  /** Get the entries that follow a number. @param most maximum number of entries, at least 1 */
  after(number: number, most: number): T[] {
    const found: T[] = [];
    for (let at = this.#search(number + 1); at < this.#places.length && found.length < most; at++) {
      const place = this.#places[at];
      if (typeof place !== 'number') found.push(place);
    }
    return found;
  }

  /** Find the first position whose number is not below `number`. */
  #search(number: number): number {
    let low = 0;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const place = this.#places[middle];
      if ((typeof place === 'number' ? place : place.number) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
