/** Selects the items with the smallest keys from any number of items, in memory for as many as are wanted. */
export class Smallest<T> {
  readonly #count: number;
  readonly #keyOf: (item: T) => string;
  /** A binary heap: the first item has the greatest key. */
  readonly #heap: T[] = [];

  /** @param count number of wanted items, at least 1 */
  constructor(count: number, keyOf: (item: T) => string) {
    this.#count = count;
    this.#keyOf = keyOf;
  }

  offer(item: T): void {
    const heap = this.#heap;
    if (heap.length < this.#count) {
      heap.push(item);
      this.#rise(heap.length - 1);
    } else if (this.#keyOf(item) < this.#keyOf(heap[0])) {
      heap[0] = item;
      this.#sink();
    }
  }

  /** Remove the selected items one after the other, the one with the greatest key first. */
  *taken(): Generator<T, void> {
    const heap = this.#heap;
    for (let last = heap.pop(); last !== undefined; last = heap.pop()) {
      if (heap.length === 0) {
        yield last;
        return;
      }
      yield heap[0];
      heap[0] = last;
      this.#sink();
    }
  }

  #rise(at: number): void {
    const heap = this.#heap;
    const item = heap[at];
    const key = this.#keyOf(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#keyOf(heap[parent]) >= key) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = item;
  }

  #sink(): void {
    const heap = this.#heap;
    const item = heap[0];
    const key = this.#keyOf(item);
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && this.#keyOf(heap[child + 1]) > this.#keyOf(heap[child])) child++;
      if (this.#keyOf(heap[child]) <= key) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = item;
  }
}
