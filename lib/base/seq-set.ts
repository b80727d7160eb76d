/** Of most sessions none are done out of order. */
const NONE: number[] = Object.freeze([]) as unknown as number[];

/**
 * Which of the numbers 1, 2, 3, ... are done. They are done in order, nearly: below `low` all are, above it a few ranges.
 */
export class SeqSet {
  /** The first that is not done. */
  low: number;
  /** Beginnings and ends (exclusive), in order. */
  #from: number[] = NONE;
  #to: number[] = NONE;

  constructor(low = 1) {
    this.low = low;
  }

  /** Ranges above `low`. */
  get ranges(): number {
    return this.#from.length;
  }

  /** Behind the last that is done. */
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

  /** @param to the first that is not meant */
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
    // what it touches on either side becomes one with it
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

  /** Add all that are in another set. */
  addAll(other: SeqSet): this {
    this.addRange(1, other.low);
    other.forEach((from, to) => {
      this.addRange(from, to);
    });
    return this;
  }

  /** Ranges below `end` that are not in it, as beginnings and ends (exclusive). */
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

  /** Call for each range above `low`. @param each gets beginning and end (exclusive) */
  forEach(each: (from: number, to: number) => void): void {
    for (let at = 0; at < this.#from.length; at++) each(this.#from[at], this.#to[at]);
  }

  /** The last range that begins at or before `seq`; -1: there is none. */
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
