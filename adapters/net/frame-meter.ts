// Before CONNECT, memory is what counts (`maxConnectSize`), since the client is unknown. The connection checks the
// CONNECT at its fixed header and joins small chunks. `ws` fixes its bound `maxPayload` for the life of a connection
// and must admit the largest packets later, so until CONNACK the adapter counts WebSocket frames beside `ws` (128
// bytes for each chunk and fragment) and pauses or refuses the connection. Up to 16 KB behind a CONNECT are read
// while a hook decides, because Node does not see the end of a paused socket; the rest stays in the socket, except
// for one or two chunks of up to 64 KB that Node has read already.

/** Memory of a chunk or a frame in addition to its bytes: a Buffer object and its slot in a list. */
const OBJECT_BYTES = 128;
/** Number of bytes of the first frame that are kept: its header, and enough payload for the start of a CONNECT. */
const FIRST_BYTES = 32;
/**
 * Start of a CONNECT that contains its size and protocol version. The shortest CONNECT has one byte more, so this is
 * never a complete one.
 */
const CONNECT_START_BYTES = 13;

const BINARY = 2;

/**
 * Measures the memory taken by the frames that a WebSocket receives before its client is admitted.
 *
 * `ws` keeps the chunks of a frame and the fragments of a message until the message is complete. Its only limit, `maxPayload`, cannot
 * change during a connection.
 */
export class FrameMeter {
  /** Bytes received, plus the memory for keeping them. */
  occupiedBytes = 0;
  #first: Buffer | undefined = Buffer.alloc(0);
  /** Payload bytes of the current frame that have not arrived yet. */
  #payloadLeft = 0;
  /** Number of bytes of the current header so far, and its length as far as it is known. */
  #headerBytes = 0;
  #headerLength = 2;
  #length = 0;

  /** Called when the broker has consumed the received data. */
  taken(): void {
    this.occupiedBytes = 0;
  }

  /** Measure a chunk that was received from the socket. */
  addChunk(chunk: Buffer): void {
    this.occupiedBytes += chunk.length + OBJECT_BYTES;
    if (this.#first !== undefined && this.#first.length < FIRST_BYTES)
      this.#first = Buffer.concat([this.#first, chunk.subarray(0, FIRST_BYTES - this.#first.length)]);
    for (let at = 0; at < chunk.length; ) {
      if (this.#payloadLeft > 0) {
        const count = Math.min(this.#payloadLeft, chunk.length - at);
        this.#payloadLeft -= count;
        at += count;
      } else this.#addHeaderByte(chunk[at++]);
    }
  }

  /** Discard the first bytes, because a message has been delivered. */
  messageDelivered(): void {
    this.#first = undefined;
  }

  /** Return the start of the first message, never a complete CONNECT; empty once a message has been delivered. */
  connectStart(): Buffer {
    const first = this.#first;
    if (first === undefined || first.length < 2 || (first[0] & 0x7f) !== BINARY) return Buffer.alloc(0);
    const length = first[1] & 0x7f;
    const maskAt = length === 127 ? 10 : length === 126 ? 4 : 2;
    const payloadAt = maskAt + 4;
    const end = payloadAt + (length < 126 ? Math.min(length, CONNECT_START_BYTES) : CONNECT_START_BYTES);
    return Buffer.from(first.subarray(payloadAt, end).map((byte, at) => byte ^ first[maskAt + (at & 3)]));
  }

  /** Process one byte of a frame header (RFC 6455 5.2). */
  #addHeaderByte(byte: number): void {
    const at = this.#headerBytes++;
    if (at === 0) this.#length = 0;
    else if (at === 1) {
      const short = byte & 0x7f;
      const extended = short === 127 ? 8 : short === 126 ? 2 : 0;
      this.#headerLength = 2 + extended + (byte > 127 ? 4 : 0);
      if (extended === 0) this.#length = short;
    } else if (at < this.#headerLength - 4) this.#length = this.#length * 256 + byte; // frames of clients are masked; `ws` refuses others
    if (at < 1 || this.#headerBytes < this.#headerLength) return;
    this.occupiedBytes += OBJECT_BYTES;
    this.#payloadLeft = this.#length;
    this.#headerBytes = 0;
    this.#headerLength = 2;
  }
}
