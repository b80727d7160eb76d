/** Reads integers and byte strings in the encoding of LevelDB's files. */
export class VarintReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** @throws Error if the bytes end inside the integer, or it is too large */
  readVarint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.isAtEnd || scale > 2 ** 49) throw new Error('it is not in the format of LevelDB');
      const byte = this.#bytes[this.#at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  /** @throws Error if there are fewer bytes */
  readBytes(bytes: number): Buffer {
    const from = this.#at;
    this.#at += bytes;
    if (this.#at > this.#bytes.length) throw new Error('it is not in the format of LevelDB');
    return this.#bytes.subarray(from, this.#at);
  }
}
