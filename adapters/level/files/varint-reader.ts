/** Reads numbers and texts as LevelDB's files have them. */
export class VarintReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.isAtEnd || scale > 2 ** 49) throw new Error('it is not as LevelDB writes it');
      const byte = this.#bytes[this.#at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  skip(bytes: number): Buffer {
    const from = this.#at;
    this.#at += bytes;
    if (this.#at > this.#bytes.length) throw new Error('it is not as LevelDB writes it');
    return this.#bytes.subarray(from, this.#at);
  }
}
