/** Something with a size in bytes that can be listed in a `BySize`. Only the list changes these fields. */
export abstract class Sized {
  listedBytes = 0;
  nextOfSize: this | undefined = undefined;
  previousOfSize: this | undefined = undefined;
}

/** Larger sizes are listed as this one. */
const LARGEST = 0x7fff_ffff;

/**
 * Finds the largest of very many things whose sizes change all the time. They are listed in rings, one for each power of two. Changing a
 * size and finding the largest, exact to a factor of two, take a few steps, however many are listed.
 */
export class BySize<T extends Sized> {
  /** Of all sizes. */
  bytes = 0;
  readonly #rings: (T | undefined)[] = new Array(31).fill(undefined);
  /** A bit for each ring that is not empty. */
  #filled = 0;

  /** @param bytes its size from now on; 0: it leaves */
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

  /** One of the largest, each in its turn; undefined when there is none. */
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

/** The power of two below a size. */
function ringOf(bytes: number): number {
  return 31 - Math.clz32(bytes > LARGEST ? LARGEST : bytes);
}
