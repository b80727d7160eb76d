/** An item with a size in bytes that a `BySize` can list. Only the list changes these fields. */
export abstract class Sized {
  listedBytes = 0;
  nextOfSize: this | undefined = undefined;
  previousOfSize: this | undefined = undefined;
}

/** Maximum listed size: larger items are listed with this size. */
const LARGEST = 0x7fff_ffff;

/**
 * Finds the largest of very many items whose sizes change often.
 *
 * The items are linked in rings, one for each power of two. Changing a size, and finding a largest item with an accuracy of a factor of
 * two, take constant time.
 */
export class BySize<T extends Sized> {
  /** Sum of all sizes. */
  bytes = 0;
  readonly #rings: (T | undefined)[] = new Array(31).fill(undefined);
  /** One bit for each ring, set if the ring is not empty. */
  #filled = 0;

  /** Set the size of an item. The item is added if it is not listed, and removed if `bytes` is 0. */
  resize(item: T, bytes: number): void {
    const before = item.listedBytes;
    if (bytes === before) return;
    this.bytes += bytes - before;
    item.listedBytes = bytes;
    const from = ringOf(before);
    const to = ringOf(bytes);
    if (from === to) return;
    if (before > 0) this.#leave(item, from);
    if (bytes > 0) this.#join(item, to);
  }

  /** Get an item of the largest ring; repeated calls take turns within the ring. @returns undefined if there are no items */
  largest(): T | undefined {
    if (this.#filled === 0) return undefined;
    const at = 31 - Math.clz32(this.#filled);
    const item = this.#rings[at] as T;
    this.#rings[at] = item.nextOfSize;
    return item;
  }

  #join(item: T, at: number): void {
    const first = this.#rings[at];
    if (first === undefined) {
      this.#rings[at] = item;
      this.#filled |= 1 << at;
      item.nextOfSize = item.previousOfSize = item;
      return;
    }
    const last = first.previousOfSize as T;
    last.nextOfSize = first.previousOfSize = item;
    item.nextOfSize = first;
    item.previousOfSize = last;
  }

  #leave(item: T, at: number): void {
    const next = item.nextOfSize as T;
    if (next === item) {
      this.#rings[at] = undefined;
      this.#filled &= ~(1 << at);
    } else {
      const previous = item.previousOfSize as T;
      previous.nextOfSize = next;
      next.previousOfSize = previous;
      if (this.#rings[at] === item) this.#rings[at] = next;
    }
    item.nextOfSize = item.previousOfSize = undefined;
  }
}

/** The index of the ring for a size: its binary logarithm, rounded down; -1 for 0. */
function ringOf(bytes: number): number {
  return 31 - Math.clz32(bytes > LARGEST ? LARGEST : bytes);
}
