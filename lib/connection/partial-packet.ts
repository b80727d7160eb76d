/** Parts of an incomplete packet up to this size are joined as they arrive. */
const SMALL_PART = 16_384;

/** A packet of which only a part has arrived. Only received bytes take memory, regardless of the length that the packet announces. */
export class PartialPacket {
  readonly #parts: Buffer[];
  /** Number of missing bytes, or 1 while the fixed header is incomplete. */
  #missing: number;

  /** @param chunk contains the first part, from `at` on */
  constructor(chunk: Buffer, at: number, missing: number) {
    this.#parts = [detachFrom(chunk, at)];
    this.#missing = missing;
  }

  /** Take the missing bytes from a chunk, from `at` on, as far as the chunk contains them. @returns the offset after them */
  take(chunk: Buffer, at: number): number {
    const end = at + this.#missing;
    if (end > chunk.length) {
      gatherPart(this.#parts, at === 0 ? chunk : chunk.subarray(at));
      this.#missing = end - chunk.length;
      return chunk.length;
    }
    this.#parts.push(chunk.subarray(at, end));
    this.#missing = 0;
    return end;
  }

  get isComplete(): boolean {
    return this.#missing === 0;
  }

  /** The bytes of the packet in a separate buffer. */
  join(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** The bytes from `at` on, for later turns. They are copied if their buffer is more than twice as large. */
export function detachFrom(chunk: Buffer, at: number): Buffer {
  const part = at === 0 ? chunk : chunk.subarray(at);
  return part.length * 2 < part.buffer.byteLength ? concatenate(part) : part;
}

/** Concatenate buffers without using the buffer pool of Node.js: there, a few bytes keep a slab of 64 KB (from Node.js 24) in memory. */
function concatenate(...parts: readonly Buffer[]): Buffer {
  const own = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(own, at);
  return own;
}

/**
 * Append a chunk to the parts of a packet. Small parts are joined with the previous ones, as in a binary counter, because a chunk of one
 * byte takes about 200 bytes of memory.
 */
function gatherPart(parts: Buffer[], chunk: Buffer): void {
  parts.push(chunk);
  for (let last = parts.length - 1; last > 0; last--) {
    if (parts[last].length > SMALL_PART || parts[last - 1].length > parts[last].length) return;
    parts[last - 1] = concatenate(parts[last - 1], parts[last]);
    parts.pop();
  }
}
