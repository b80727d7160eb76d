/** What a chunk, or a frame in it, takes in memory besides its bytes: a Buffer and its place in a list. */
const OBJECT_BYTES = 128;
/** Bytes of the first frame that are kept: its header, and of its payload enough for the beginning of a CONNECT. */
const FIRST_BYTES = 32;
/** Of a CONNECT: what says how large it is, and for which version of MQTT. The shortest CONNECT has one byte more, so it is never whole. */
const BEGINNING_BYTES = 13;

const BINARY = 2;

/**
 * Measures how much memory the frames take that come to a WebSocket before its client is let in. ws keeps the chunks of a frame and the
 * fragments of a message until the message is complete, and its only bound, `maxPayload`, cannot change during a connection.
 */
export class FrameMeter {
  /** Bytes that came and what it takes to keep them. */
  occupied = 0;
  #first: Buffer | undefined = Buffer.alloc(0);
  /** Payload bytes of the frame that are still to come. */
  #payloadLeft = 0;
  /** Bytes of the header so far, and its length as far as it is known. */
  #headerAt = 0;
  #headerLength = 2;
  #length = 0;

  note(chunk: Buffer): void {
    this.occupied += chunk.length + OBJECT_BYTES;
    if (this.#first !== undefined && this.#first.length < FIRST_BYTES)
      this.#first = Buffer.concat([this.#first, chunk.subarray(0, FIRST_BYTES - this.#first.length)]);
    for (let at = 0; at < chunk.length; ) {
      if (this.#payloadLeft > 0) {
        const count = Math.min(this.#payloadLeft, chunk.length - at);
        this.#payloadLeft -= count;
        at += count;
      } else this.#header(chunk[at++]);
    }
  }

  /** A message has been handed on. */
  delivered(): void {
    this.#first = undefined;
  }

  /** The first bytes of the first message, never a whole CONNECT; empty once a message has been handed on. */
  beginning(): Buffer {
    const first = this.#first;
    if (first === undefined || first.length < 2 || (first[0] & 0x7f) !== BINARY) return Buffer.alloc(0);
    const length = first[1] & 0x7f;
    const maskAt = length === 127 ? 10 : length === 126 ? 4 : 2;
    const payloadAt = maskAt + 4;
    const end = payloadAt + (length < 126 ? Math.min(length, BEGINNING_BYTES) : BEGINNING_BYTES);
    return Buffer.from(first.subarray(payloadAt, end).map((byte, at) => byte ^ first[maskAt + (at & 3)]));
  }

  /** One byte of a header (RFC 6455 5.2). */
  #header(byte: number): void {
    const at = this.#headerAt++;
    if (at === 0) this.#length = 0;
    else if (at === 1) {
      const short = byte & 0x7f;
      const extended = short === 127 ? 8 : short === 126 ? 2 : 0;
      this.#headerLength = 2 + extended + (byte > 127 ? 4 : 0);
      if (extended === 0) this.#length = short;
    } else if (at < this.#headerLength - 4) this.#length = this.#length * 256 + byte; // a client's frames are masked, else ws refuses them
    if (at < 1 || this.#headerAt < this.#headerLength) return;
    this.occupied += OBJECT_BYTES;
    this.#payloadLeft = this.#length;
    this.#headerAt = 0;
    this.#headerLength = 2;
  }
}
