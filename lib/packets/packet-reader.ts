import { ProtocolError } from '../errors.ts';
import { checkFlags, decodeClientPacket, malformed, refused } from './decode.ts';
import { decodeServerPacket } from './decode-server.ts';
import { ReasonCode } from './reason-codes.ts';
import { type Packet, PacketType, type ProtocolVersion } from './types.ts';
import { readVarint, VARINT_MAX, varintEnd } from './varint.ts';

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

const NOTHING = Buffer.alloc(0);

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
  /** Chunks not joined yet; they are joined once `#needed` bytes are there. */
  #chunks: Buffer[] = [];
  #waiting = 0;
  #needed = 0;
  #buf: Buffer = NOTHING;
  #at = 0;
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
    return this.#waiting + this.#buf.length - this.#at;
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
    this.#waiting += chunk.length;
  }

  /**
   * The next packet, or undefined until more is fed.
   * @throws ProtocolError as `push`
   */
  next(): Packet | undefined {
    if (this.#error !== undefined) throw this.#error;
    this.#join();
    try {
      return this.#take();
    } catch (error) {
      this.#error = error;
      throw error;
    }
  }

  #join(): void {
    if (this.#waiting === 0 || this.bufferedBytes < this.#needed) return;
    const rest = this.#buf.subarray(this.#at);
    this.#buf =
      rest.length === 0 && this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat([rest, ...this.#chunks]);
    this.#at = 0;
    this.#chunks = [];
    this.#waiting = 0;
  }

  #take(): Packet | undefined {
    const buf = this.#buf;
    const at = this.#at;
    if (at === buf.length) return undefined;
    checkFlags(buf[at] >> 4, buf[at] & 0x0f);
    if (this.#version === undefined && buf[at] >> 4 !== PacketType.connect) {
      throw refused(`packet type ${buf[at] >> 4}: the first packet must be CONNECT`); // [MQTT-3.1.0-1]
    }
    if (!hasLength(buf, at + 1)) {
      if (buf.length - at > 4) throw malformed('remaining length: more than four bytes');
      this.#needed = buf.length - at + 1;
      return undefined;
    }
    const remaining = readVarint(buf, at + 1, buf.length);
    const start = varintEnd();
    const size = start - at + remaining;
    if (size > this.#maximumPacketSize) throw tooLarge(size, this.#maximumPacketSize);
    if (buf.length - at < size) {
      this.#needed = size;
      return undefined;
    }
    this.#needed = 0;
    const packet = this.#decode(buf[at], start, start + remaining);
    if (packet.cmd === 'connect') this.#version = packet.protocolVersion;
    this.#at = at + size;
    return packet;
  }

  #decode(header: number, start: number, end: number): Packet {
    const decode = this.#side === 'client' ? decodeServerPacket : decodeClientPacket;
    // a CONNECT brings its own version
    return decode(header >> 4, header & 0x0f, this.#buf, start, end, this.#version ?? 5);
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
