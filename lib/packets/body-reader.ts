import { ProtocolError } from '../base/errors.ts';
import { ReasonCode } from './reason-codes.ts';
import { readString } from './utf8.ts';
import { readVarint, varintEnd } from './varint.ts';

/**
 * Reads the fields of a packet body in order. It never reads outside `buf[at, end)`.
 *
 * Every method throws ProtocolError 0x81 if the packet ends inside the field; the argument `field` names the field in the message.
 * The broker reads PUBLISH packets and acknowledgements without a BodyReader, because they are frequent.
 */
export class BodyReader {
  readonly buf: Buffer;
  at: number;
  readonly end: number;

  constructor(buf: Buffer, start: number, end: number) {
    this.buf = buf;
    this.at = start;
    this.end = end;
  }

  /** True if every byte has been read. */
  get isDone(): boolean {
    return this.at >= this.end;
  }

  /** Skip bytes that have been read otherwise. The caller has checked that there are that many. */
  skip(bytes: number): void {
    this.at += bytes;
  }

  u8(field: string): number {
    return this.buf[this.#take(1, field)];
  }

  u16(field: string): number {
    const at = this.#take(2, field);
    return (this.buf[at] << 8) | this.buf[at + 1];
  }

  u32(field: string): number {
    const { buf } = this;
    const at = this.#take(4, field);
    return ((buf[at] << 24) | (buf[at + 1] << 16) | (buf[at + 2] << 8) | buf[at + 3]) >>> 0;
  }

  varint(): number {
    const value = readVarint(this.buf, this.at, this.end);
    this.at = varintEnd();
    return value;
  }

  /** Read a UTF-8 string that follows its two length bytes, and check it [MQTT-1.5.4-1], [MQTT-1.5.4-2]. */
  string(field: string): string {
    const length = this.u16(field);
    const start = this.#take(length, field);
    return readString(this.buf, start, start + length, field);
  }

  /** Read binary data that follows its two length bytes. @returns a copy, which does not reference the read chunk */
  binary(field: string): Buffer {
    const length = this.u16(field);
    const start = this.#take(length, field);
    return Buffer.from(this.buf.subarray(start, start + length));
  }

  /** Read all remaining bytes. @returns a copy */
  rest(): Buffer {
    const start = this.at;
    this.at = this.end;
    return Buffer.from(this.buf.subarray(start, this.end));
  }

  /** Check that the last field ends where the body ends. */
  finish(field: string): void {
    if (this.at === this.end) return;
    throw new ProtocolError(
      ReasonCode.malformedPacket,
      `${field}: ${this.end - this.at} bytes after the last field; correct the remaining length`
    );
  }

  #take(count: number, field: string): number {
    const start = this.at;
    if (this.end - start < count) {
      throw new ProtocolError(
        ReasonCode.malformedPacket,
        `${field}: the packet ends inside this field; send all of its bytes`
      );
    }
    this.at = start + count;
    return start;
  }
}
