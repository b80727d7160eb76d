/** A set of packet ids. Each takes one bit, so that the set takes at most 8 KiB. */
export class IdSet {
  size = 0;
  #bits: Uint8Array = new Uint8Array(16);

  /** @param other a set whose ids are copied */
  constructor(other?: IdSet) {
    if (other === undefined) return;
    this.size = other.size;
    this.#bits = other.#bits.slice();
  }

  has(id: number): boolean {
    return ((this.#bits[id >> 3] ?? 0) & (1 << (id & 7))) !== 0;
  }

  /** @returns false if the id was already in the set */
  add(id: number): boolean {
    const at = id >> 3;
    if (at >= this.#bits.length) {
      const grown = new Uint8Array(Math.min(8192, Math.max(at + 1, this.#bits.length * 4)));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    const bit = 1 << (id & 7);
    if ((this.#bits[at] & bit) !== 0) return false;
    this.#bits[at] |= bit;
    this.size++;
    return true;
  }

  /** The bits of the set. Bit n of byte m stands for packet id 8 * m + n. */
  get bits(): Uint8Array {
    return this.#bits;
  }

  /** Create a set from the `bits` of another one. @param size number of bits that are set */
  static of(bits: Uint8Array, size: number): IdSet {
    const ids = new IdSet();
    ids.#bits = Uint8Array.from(bits);
    ids.size = size;
    return ids;
  }

  /** Get the ids in ascending order. */
  values(): number[] {
    const ids: number[] = [];
    for (let at = 0; at < this.#bits.length; at++)
      for (let bits = this.#bits[at]; bits !== 0; bits &= bits - 1) ids.push(at * 8 + 31 - Math.clz32(bits & -bits));
    return ids;
  }

  /** @returns false if the id was not in the set */
  delete(id: number): boolean {
    if (!this.has(id)) return false;
    this.#bits[id >> 3] &= ~(1 << (id & 7));
    this.size--;
    return true;
  }
}
