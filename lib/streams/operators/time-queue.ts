/** A waiting item, and its position among those of the same time. */
interface Timed<T> {
  readonly time: number;
  readonly number: number;
  readonly item: T;
}

/** Minimum number of taken items at which they are removed from the array; they must also outnumber the others. */
const LEAST_TAKEN = 1024;

/**
 * A queue ordered by time; items of the same time keep their order. Items that arrive in order are in an array, which
 * costs nothing to keep sorted; stragglers are in a heap.
 */
export class TimeQueue<T> {
  #sorted: Timed<T>[] = [];
  #head = 0;
  readonly #heap: Timed<T>[] = [];
  #number = 0;

  get length(): number {
    return this.#sorted.length - this.#head + this.#heap.length;
  }

  /** Infinity if the queue is empty. */
  get firstTime(): number {
    return this.#first()?.time ?? Number.POSITIVE_INFINITY;
  }

  push(time: number, item: T): void {
    const entry = { time, number: this.#number++, item };
    const last = this.#sorted[this.#sorted.length - 1];
    if (last === undefined || last.time <= time) this.#sorted.push(entry);
    else this.#rise(entry);
  }

  /** Take the first item. */
  shift(): T | undefined {
    const entry = this.#first();
    if (entry === undefined) return undefined;
    if (entry === this.#heap[0]) this.#sink();
    else this.#take();
    return entry.item;
  }

  /** All entries in order. */
  entries(): Timed<T>[] {
    return [...this.#sorted.slice(this.#head), ...this.#heap].sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #first(): Timed<T> | undefined {
    const sorted = this.#sorted[this.#head];
    const straggler = this.#heap[0];
    if (straggler === undefined) return sorted;
    return sorted === undefined || isBefore(straggler, sorted) ? straggler : sorted;
  }

  #take(): void {
    this.#head++;
    if (this.#head === this.#sorted.length) {
      this.#sorted = [];
      this.#head = 0;
    } else if (this.#head >= LEAST_TAKEN && this.#head * 2 >= this.#sorted.length) {
      this.#sorted = this.#sorted.slice(this.#head);
      this.#head = 0;
    }
  }

  #rise(entry: Timed<T>): void {
    const heap = this.#heap;
    let at = heap.length;
    for (; at > 0; at = (at - 1) >> 1) {
      const parent = heap[(at - 1) >> 1];
      if (!isBefore(entry, parent)) break;
      heap[at] = parent;
    }
    heap[at] = entry;
  }

  /** Remove the first entry of the heap. */
  #sink(): void {
    const heap = this.#heap;
    const entry = heap.pop() as Timed<T>;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], entry)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = entry;
  }
}

function isBefore<T>(left: Timed<T>, right: Timed<T>): boolean {
  return left.time === right.time ? left.number < right.number : left.time < right.time;
}
