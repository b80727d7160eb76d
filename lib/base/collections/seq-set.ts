/** Shared by all sets without ranges: in most sessions, no number is done out of order. */
const NONE: number[] = Object.freeze([]) as unknown as number[];

/**
 * A set of sequence numbers (1, 2, 3, ...) that are done. Numbers become done nearly in order, so the set is stored as `low`, below which
 * all numbers are done, and a few ranges above it.
 */
export class SeqSet {
  /** The lowest number that is not done. */
  low: number;
  /** First numbers of the ranges in ascending order, and their exclusive ends. */
  #from: number[] = NONE;
  #to: number[] = NONE;

  constructor(low = 1) {
    this.low = low;
  }

  /** Number of ranges above `low`. */
  get ranges(): number {
    return this.#from.length;
  }

  /** The number after the highest one that is done. */
  get end(): number {
    return this.#to.at(-1) ?? this.low;
  }

  has(seq: number): boolean {
    if (seq < this.low) return true;
    const at = this.#last(seq);
    return at >= 0 && seq < this.#to[at];
  }

  add(seq: number): void {
    this.addRange(seq, seq + 1);
  }

  /** Add the numbers from `from` up to but excluding `to`. */
  addRange(from: number, to: number): void {
    if (from <= this.low) {
      if (to <= this.low) return;
      this.low = to;
      while (this.#from.length > 0 && this.#from[0] <= this.low) {
        if (this.#to[0] > this.low) this.low = this.#to[0];
        this.#from.shift();
        this.#to.shift();
      }
      return;
    }
    // adjoining ranges are merged
    let first = this.#last(from);
    if (first < 0 || this.#to[first] < from) first++;
    else from = this.#from[first];
    let end = first;
    while (end < this.#from.length && this.#from[end] <= to) {
      if (this.#to[end] > to) to = this.#to[end];
      end++;
    }
    if (this.#from === NONE) [this.#from, this.#to] = [[], []];
    this.#from.splice(first, end - first, from);
    this.#to.splice(first, end - first, to);
  }

  /** Add all numbers of another set. */
  addAll(other: SeqSet): this {
    this.addRange(1, other.low);
    other.forEach((from, to) => {
      this.addRange(from, to);
    });
    return this;
  }

  /** Get the ranges of numbers below `end` that are not done; the end of each range is exclusive. */
  gapsBelow(end: number): [from: number, to: number][] {
    const gaps: [number, number][] = [];
    let from = this.low;
    this.forEach((next, to) => {
      if (from < Math.min(next, end)) gaps.push([from, Math.min(next, end)]);
      from = to;
    });
    if (from < end) gaps.push([from, end]);
    return gaps;
  }

  /** Call a function for each range above `low`. @param each receives the first number and the exclusive end */
  forEach(each: (from: number, to: number) => void): void {
    for (let at = 0; at < this.#from.length; at++) each(this.#from[at], this.#to[at]);
  }

  /** Find the last range that begins at or before `seq`. @returns its index, or -1 if there is none */
  #last(seq: number): number {
    let low = 0;
    let high = this.#from.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#from[middle] <= seq) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
