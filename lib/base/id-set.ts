/**
 * A set of packet ids, one bit each: at most 8 KiB however many of the 65,535 are in it.
 */
export class IdSet {
  size = 0;
  #bits: Uint8Array = new Uint8Array(16);

  /** @param other ids to begin with */
  constructor(other?: IdSet) {
    if (other === undefined) return;
    this.size = other.size;
    this.#bits = other.#bits.slice();
  }

  has(id: number): boolean {
    return ((this.#bits[id >> 3] ?? 0) & (1 << (id & 7))) !== 0;
  }

  /** @returns false if it was there already */
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

  /** The bits themselves: that of id 0 first, lowest bit of a byte first. */
  get bits(): Uint8Array {
    return this.#bits;
  }

  /** @param bits as another one had them @param size how many of them are set */
  static of(bits: Uint8Array, size: number): IdSet {
    const ids = new IdSet();
    ids.#bits = Uint8Array.from(bits);
    ids.size = size;
    return ids;
  }

  /** The ids, in their order. */
  values(): number[] {
    const ids: number[] = [];
    for (let at = 0; at < this.#bits.length; at++)
      for (let bits = this.#bits[at]; bits !== 0; bits &= bits - 1) ids.push(at * 8 + 31 - Math.clz32(bits & -bits));
    return ids;
  }

  /** @returns false if it was not there */
  delete(id: number): boolean {
    if (!this.has(id)) return false;
    this.#bits[id >> 3] &= ~(1 << (id & 7));
    this.size--;
    return true;
  }
}
