import { ProtocolError } from '../base/errors.ts';
import { checkFlags, decodeClientPacket, malformed, refused } from './decode.ts';
import { decodeServerPacket } from './decode-server.ts';
import { ReasonCode } from './reason-codes.ts';
import { type Packet, PacketType, type ProtocolVersion } from './types.ts';
import { readVarint, VARINT_MAX, varintEnd } from './varint.ts';

/** The maximum size of a fixed header in bytes. */
const MAX_HEADER = 5;

/** Options of `PacketReader`. */
type PacketReaderOptions = {
  /** The maximum size of an accepted packet in bytes, including its fixed header. Default: the maximum that MQTT allows, 268,435,460. */
  readonly maximumPacketSize?: number;
} & (
  | {
      /** Decode packets that a server sent. */
      readonly side: 'client';
      /** The protocol version of the packets, which packets of a server do not name. */
      readonly version: ProtocolVersion;
    }
  | {
      /** Decode packets that a client sent. */
      readonly side: 'server';
      /** Default: the version of the CONNECT, which must be the first packet. */
      readonly version?: ProtocolVersion;
    }
);

/**
 * Splits a byte stream into packets and decodes each one strictly.
 *
 * Used by the in-process client, tests and tools; the broker's connections read PUBLISH packets and acknowledgements in place instead.
 * After an invalid packet the reader stays in error: it throws the same error again.
 */
export class PacketReader {
  readonly #side: 'client' | 'server';
  readonly #maximumPacketSize: number;
  #version: ProtocolVersion | undefined;
  /** The chunks not yet decoded, and the offset of the next packet in the first of them. */
  readonly #chunks: Buffer[] = [];
  #at = 0;
  #bufferedBytes = 0;
  /** The number of buffered bytes needed before the next packet can make progress. */
  #neededBytes = 1;
  #error: unknown;

  constructor(options: PacketReaderOptions) {
    this.#side = options.side;
    this.#version = options.version;
    this.#maximumPacketSize = options.maximumPacketSize ?? VARINT_MAX + 5;
  }

  /** The protocol version in use; undefined before the first CONNECT. */
  get version(): ProtocolVersion | undefined {
    return this.#version;
  }

  /** The number of bytes received that do not belong to a returned packet yet. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /**
   * Add `chunk` and return the packets that are complete.
   *
   * If a packet is invalid, the valid packets before it are lost. Use `feed` and `next` to get them.
   * @throws ProtocolError like the decoders; 0x95 for a packet above the maximum size, as soon as its header is complete; 0x82 if the first
   *   packet of a client is not CONNECT
   */
  push(chunk: Buffer): Packet[] {
    this.feed(chunk);
    const packets: Packet[] = [];
    for (let packet = this.next(); packet !== undefined; packet = this.next()) packets.push(packet);
    return packets;
  }

  /** Add `chunk`. It is referenced, not copied, until its packets have been returned. */
  feed(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#bufferedBytes += chunk.length;
  }

  /**
   * Decode the next packet.
   * @returns undefined if no complete packet is buffered
   * @throws ProtocolError like `push`
   */
  next(): Packet | undefined {
    if (this.#error !== undefined) throw this.#error;
    if (this.#bufferedBytes < this.#neededBytes) return undefined;
    try {
      return this.#take();
    } catch (error) {
      this.#error = error;
      throw error;
    }
  }

  #take(): Packet | undefined {
    let buf = this.#gather(Math.min(this.#bufferedBytes, MAX_HEADER));
    const at = this.#at;
    checkFlags(buf[at] >> 4, buf[at] & 0x0f, this.#version ?? 5);
    if (this.#version === undefined && buf[at] >> 4 !== PacketType.connect) {
      throw refused(`packet type ${buf[at] >> 4}: the first packet must be CONNECT`); // [MQTT-3.1.0-1]
    }
    if (!hasLength(buf, at + 1)) {
      if (this.#bufferedBytes >= MAX_HEADER) throw malformed('remaining length: longer than four bytes');
      this.#neededBytes = this.#bufferedBytes + 1;
      return undefined;
    }
    const remaining = readVarint(buf, at + 1, buf.length);
    const head = varintEnd() - at;
    const size = head + remaining;
    if (size > this.#maximumPacketSize) throw tooLarge(size, this.#maximumPacketSize);
    if (this.#bufferedBytes < size) {
      this.#neededBytes = size;
      return undefined;
    }
    this.#neededBytes = 1;
    buf = this.#gather(size);
    const start = this.#at + head;
    const packet = this.#decode(buf, buf[this.#at], start, start + remaining);
    if (packet.cmd === 'connect') this.#version = packet.protocolVersion;
    this.#bufferedBytes -= size;
    this.#at += size;
    if (this.#at === buf.length) {
      this.#chunks.shift();
      this.#at = 0;
    }
    return packet;
  }

  /** The buffer with the next `bytes` bytes from `#at` on. They are joined if they are in several chunks; later bytes are not copied. */
  #gather(bytes: number): Buffer {
    const chunks = this.#chunks;
    if (chunks[0].length - this.#at >= bytes) return chunks[0];
    const parts = [chunks[0].subarray(this.#at)];
    let missing = bytes - parts[0].length;
    let next = 1;
    for (; missing >= chunks[next]?.length; next++) {
      parts.push(chunks[next]);
      missing -= chunks[next].length;
    }
    if (missing > 0) {
      parts.push(chunks[next].subarray(0, missing));
      chunks[next] = chunks[next].subarray(missing);
    }
    const joined = Buffer.concat(parts);
    chunks.splice(0, next, joined);
    this.#at = 0;
    return joined;
  }

  #decode(buf: Buffer, header: number, start: number, end: number): Packet {
    const decode = this.#side === 'client' ? decodeServerPacket : decodeClientPacket;
    // A CONNECT states its own version.
    return decode(header >> 4, header & 0x0f, buf, start, end, this.#version ?? 5);
  }
}

/** Tell whether the remaining length at `at` is complete. */
function hasLength(buf: Buffer, at: number): boolean {
  const end = Math.min(at + 4, buf.length);
  for (let next = at; next < end; next += 1) if (buf[next] < 0x80) return true;
  return false;
}

function tooLarge(size: number, maximum: number): ProtocolError {
  return new ProtocolError(
    ReasonCode.packetTooLarge,
    `packet of ${size} bytes: larger than the maximum packet size of ${maximum} bytes; send smaller packets`
  );
}
