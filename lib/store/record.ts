import { crc32 } from 'node:zlib';
import { BrokerError } from '../base/errors.ts';
import { Batch, type Entry } from './store.ts';

/** Version byte of every record written today. One with a higher version is refused. */
const RECORD_VERSION = 1;
/** Version byte before, checksum behind. */
const FRAME_BYTES = 5;
/** Before a nested record: length of its key, of its body. */
const NESTED_HEAD_BYTES = 5;
const CHUNK_BYTES = 262_144;

/** A record that cannot be read: `STORE_CORRUPT`, or `STORE_TOO_NEW` when a later version of this package has written it. */
export class RecordError extends BrokerError {
  readonly key: Buffer;

  constructor(code: 'STORE_CORRUPT' | 'STORE_TOO_NEW', key: Buffer, why: string) {
    super(code, why);
    this.key = key;
  }
}

/**
 * The batch of a commit as it is written: keys and records lie one behind the other in a few chunks that are used again for later
 * commits. A record is `version, body, checksum of key, version and body`.
 *
 * `key()` begins a key, `value()` ends it and begins the record's body, `put()` ends that; `delete()` ends a key alone. Between `nest()`
 * and `unnest()` they write into the record that is begun: key and body of other records, which are put there later (see `journal.ts`).
 */
export class Draft {
  batch = new Batch();
  #chunks: Buffer[] = [Buffer.allocUnsafeSlow(CHUNK_BYTES)];
  #chunk = this.#chunks[0];
  #used = 0;
  #at = 0;
  /** Where the key, and where the record begins. */
  #keyAt = 0;
  #valueAt = -1;
  /** Where the nested record begins, or would. */
  #nestedAt = -1;
  #isNesting = false;

  /** Begin anew; what the last batch lay in is used again. */
  clear(): void {
    this.batch = new Batch();
    // one that was made for a large record does not stay
    this.#chunks = this.#chunks.filter(({ length }) => length === CHUNK_BYTES).slice(0, 16);
    this.#used = 0;
    this.#chunk = this.#chunks[0];
    this.#at = 0;
    this.#valueAt = -1;
    this.#isNesting = false;
  }

  /** Begin a key. @param kind of `Kind` */
  key(kind: number): this {
    if (this.#isNesting) {
      this.#at = this.#nestedAt; // one that was begun and not put is not there
      this.need(NESTED_HEAD_BYTES + 1);
      this.#at += NESTED_HEAD_BYTES;
      return this.u8(kind);
    }
    this.#keyAt = this.#at;
    this.#valueAt = -1;
    return this.u8(kind);
  }

  /** The key is complete; the body of its record follows. */
  value(): this {
    if (this.#isNesting) {
      this.#chunk[this.#nestedAt] = this.#at - this.#nestedAt - NESTED_HEAD_BYTES;
      return this;
    }
    this.need(1);
    this.#valueAt = this.#at;
    this.#chunk[this.#at++] = RECORD_VERSION;
    return this;
  }

  put(): void {
    if (this.#isNesting) {
      const at = this.#nestedAt;
      this.#chunk.writeUInt32BE(this.#at - at - NESTED_HEAD_BYTES - this.#chunk[at], at + 1);
      this.#nestedAt = this.#at;
      return;
    }
    this.need(4);
    const chunk = this.#chunk;
    const sum = crc32(chunk.subarray(this.#keyAt, this.#at));
    this.#at = chunk.writeUInt32LE(sum, this.#at);
    this.batch.put(chunk.subarray(this.#keyAt, this.#valueAt), chunk.subarray(this.#valueAt, this.#at));
  }

  delete(): void {
    this.batch.delete(this.#chunk.subarray(this.#keyAt, this.#at));
  }

  /** Bytes of the record begun, its version included. */
  get size(): number {
    return this.#at - (this.#isNesting ? this.#nestedAt : this.#valueAt);
  }

  /** What follows are records within the one that is begun. */
  nest(): this {
    this.#isNesting = true;
    this.#nestedAt = this.#at;
    return this;
  }

  /** Where the last record ended, for telling whether more have come. */
  get nested(): number {
    return this.#nestedAt - this.#keyAt;
  }

  unnest(): this {
    this.#isNesting = false;
    this.#at = this.#nestedAt;
    return this;
  }

  u8(value: number): this {
    this.need(1);
    this.#chunk[this.#at++] = value;
    return this;
  }

  u16(value: number): this {
    this.need(2);
    this.#at = this.#chunk.writeUInt16BE(value, this.#at);
    return this;
  }

  u32(value: number): this {
    this.need(4);
    this.#at = this.#chunk.writeUInt32BE(value, this.#at);
    return this;
  }

  /** Up to 2^48 - 1, in the order of its bytes. */
  u48(value: number): this {
    this.need(6);
    this.#at = this.#chunk.writeUIntBE(value, this.#at, 6);
    return this;
  }

  /** A whole number from 0 to 2^53 - 1, in 7 bits each. @throws RangeError for any below: it would be read as another */
  varint(value: number): this {
    if (!(value >= 0)) throw new RangeError(`a record can not hold ${value} as a whole number`);
    this.need(8);
    const chunk = this.#chunk;
    while (value > 127) {
      chunk[this.#at++] = (value % 128) | 128;
      value = Math.floor(value / 128);
    }
    chunk[this.#at++] = value;
    return this;
  }

  /** Any number. */
  f64(value: number): this {
    this.need(8);
    this.#at = this.#chunk.writeDoubleBE(value, this.#at);
    return this;
  }

  /** A text with its length before it. */
  text(value: string): this {
    const bytes = Buffer.byteLength(value);
    this.varint(bytes).need(bytes);
    this.#at += this.#chunk.write(value, this.#at);
    return this;
  }

  /** A text that ends with the key. */
  tail(value: string): this {
    const bytes = Buffer.byteLength(value);
    this.need(bytes);
    this.#at += this.#chunk.write(value, this.#at);
    return this;
  }

  /** Bytes with their length before them. */
  bytes(value: Buffer, start = 0, end = value.length): this {
    this.varint(end - start).need(end - start);
    this.#at += value.copy(this.#chunk, this.#at, start, end);
    return this;
  }

  /** Bytes as they are. */
  raw(value: Buffer, start = 0): this {
    this.need(value.length - start);
    this.#at += value.copy(this.#chunk, this.#at, start);
    return this;
  }

  /** One-byte text, with its length before it. */
  latin1(value: string): this {
    this.varint(value.length).need(value.length);
    this.#at += this.#chunk.write(value, this.#at, value.length, 'latin1');
    return this;
  }

  /** Room for so many more bytes, in one chunk with what was begun. */
  need(bytes: number): this {
    if (this.#at + bytes <= this.#chunk.length) return this;
    const begun = this.#chunk.subarray(this.#keyAt, this.#at);
    const wanted = begun.length + bytes;
    let next = this.#chunks[++this.#used];
    if (next === undefined || next.length < wanted) {
      next = Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, wanted * 2));
      this.#chunks.splice(this.#used, 0, next);
    }
    begun.copy(next);
    if (this.#valueAt >= 0) this.#valueAt -= this.#keyAt;
    this.#nestedAt -= this.#keyAt;
    this.#keyAt = 0;
    this.#at = begun.length;
    this.#chunk = next;
    return this;
  }
}

/** Reads one record, whose version and checksum it has looked at first. */
export class RecordReader {
  readonly version: number;
  readonly #key: Buffer;
  readonly #value: Buffer;
  readonly #end: number;
  #at = 1;

  /** @throws RecordError */
  constructor(key: Buffer, value: Buffer) {
    this.#key = key;
    this.#value = value;
    this.#end = value.length - 4;
    if (value.length < FRAME_BYTES || crc32(value.subarray(0, this.#end), crc32(key)) !== value.readUInt32LE(this.#end))
      throw new RecordError('STORE_CORRUPT', key, 'the checksum is wrong');
    this.version = value[0];
    if (this.version > RECORD_VERSION)
      throw new RecordError(
        'STORE_TOO_NEW',
        key,
        `a record of version ${this.version}, this package knows up to ${RECORD_VERSION}: use the version that wrote it, or a later one`
      );
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  u8(): number {
    return this.#value[this.#take(1)];
  }

  u16(): number {
    return this.#value.readUInt16BE(this.#take(2));
  }

  u32(): number {
    return this.#value.readUInt32BE(this.#take(4));
  }

  u48(): number {
    return this.#value.readUIntBE(this.#take(6), 6);
  }

  f64(): number {
    return this.#value.readDoubleBE(this.#take(8));
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.u8();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  text(): string {
    const bytes = this.varint();
    const at = this.#take(bytes);
    return this.#value.toString('utf8', at, at + bytes);
  }

  /** A view of the record. */
  bytes(): Buffer {
    const bytes = this.varint();
    const at = this.#take(bytes);
    return this.#value.subarray(at, at + bytes);
  }

  /** A record within this one: a view of its key and its body, without version and checksum. */
  nested(): Entry {
    const keyBytes = this.u8();
    const bytes = this.u32();
    const at = this.#take(keyBytes + bytes);
    return {
      key: this.#value.subarray(at, at + keyBytes),
      value: this.#value.subarray(at + keyBytes, at + keyBytes + bytes)
    };
  }

  #take(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    if (this.#at > this.#end) throw new RecordError('STORE_CORRUPT', this.#key, 'it is shorter than it says');
    return at;
  }
}
