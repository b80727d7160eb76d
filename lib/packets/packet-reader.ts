import { ProtocolError } from '../errors.ts';
import { checkFlags, decodeClientPacket, malformed, refused } from './decode.ts';
import { decodeServerPacket } from './decode-server.ts';
import { ReasonCode } from './reason-codes.ts';
import { type Packet, PacketType, type ProtocolVersion } from './types.ts';
import { readVarint, VARINT_MAX, varintEnd } from './varint.ts';

/** Bytes of the longest fixed header. */
const LONGEST_HEADER = 5;

export type PacketReaderOptions = {
  /** Bytes of the largest packet taken, fixed header included. Default: what the format can announce, 268,435,460. */
  readonly maximumPacketSize?: number;
} & (
  | {
      /** We are the client and read what a server sends. */
      readonly side: 'client';
      readonly version: ProtocolVersion;
    }
  | {
      /** We are the server and read what a client sends. */
      readonly side: 'server';
      /** Default: that of the CONNECT, which then must come first. */
      readonly version?: ProtocolVersion;
    }
);

/**
 * Splits a byte stream into packets and decodes each one strictly. For the in-process client, tests and tools; a connection of the broker
 * reads its hot packets in place instead.
 *
 * A bad packet ends it: what it threw it throws again.
 */
export class PacketReader {
  readonly #side: 'client' | 'server';
  readonly #maximumPacketSize: number;
  #version: ProtocolVersion | undefined;
  /** What has come, and where in the first of them the next packet begins. */
  readonly #chunks: Buffer[] = [];
  #at = 0;
  #bufferedBytes = 0;
  /** So many bytes must have come before it is worth looking again. */
  #neededBytes = 1;
  #error: unknown;

  constructor(options: PacketReaderOptions) {
    this.#side = options.side;
    this.#version = options.version;
    this.#maximumPacketSize = options.maximumPacketSize ?? VARINT_MAX + 5;
  }

  /** The version in force; undefined before a CONNECT came. */
  get version(): ProtocolVersion | undefined {
    return this.#version;
  }

  /** Bytes taken in and not yet part of a packet that was handed out. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /**
   * Take in `chunk` and hand out what is complete. Where good packets in front of a bad one matter, use `feed` and `next`: this throws
   * them away with the bad one.
   *
   * @throws ProtocolError as the decoders; 0x95 above the maximum packet size, as soon as the header is there; 0x82 when a client begins
   *   with something other than CONNECT
   */
  push(chunk: Buffer): Packet[] {
    this.feed(chunk);
    const packets: Packet[] = [];
    for (let packet = this.next(); packet !== undefined; packet = this.next()) packets.push(packet);
    return packets;
  }

  /** Take in `chunk`. It is kept, not copied, until its packets are handed out. */
  feed(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#bufferedBytes += chunk.length;
  }

  /**
   * The next packet, or undefined until more is fed.
   * @throws ProtocolError as `push`
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
    let buf = this.#gather(Math.min(this.#bufferedBytes, LONGEST_HEADER));
    const at = this.#at;
    checkFlags(buf[at] >> 4, buf[at] & 0x0f, this.#version ?? 5);
    if (this.#version === undefined && buf[at] >> 4 !== PacketType.connect) {
      throw refused(`packet type ${buf[at] >> 4}: the first packet must be CONNECT`); // [MQTT-3.1.0-1]
    }
    if (!hasLength(buf, at + 1)) {
      if (this.#bufferedBytes >= LONGEST_HEADER) throw malformed('remaining length: more than four bytes');
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

  /** The buffer that has the next `bytes` bytes from `#at` on. Those of several chunks are joined, but what is behind them stays where it is. */
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
    // a CONNECT brings its own version
    return decode(header >> 4, header & 0x0f, buf, start, end, this.#version ?? 5);
  }
}

/** Whether the remaining length at `at` is there to its last byte. */
function hasLength(buf: Buffer, at: number): boolean {
  const end = Math.min(at + 4, buf.length);
  for (let next = at; next < end; next += 1) if (buf[next] < 0x80) return true;
  return false;
}

function tooLarge(size: number, maximum: number): ProtocolError {
  return new ProtocolError(
    ReasonCode.packetTooLarge,
    `packet of ${size} bytes: at most ${maximum} are taken; send less at once`
  );
}
