// The checksum covers key, version and body, so a record under another key is refused, too. Numbers in keys are
// written big-endian, which makes the store return them in order. A batch consists of views of the chunks, and these
// are reused: a draft is cleared only when its commit has settled. `need` may move the record that is being written
// to another chunk; nothing but the fields of `Draft` may remember an offset. A negative number is refused when it is
// written: a count below 0 was once stored, and the next process refused the client.

import { crc32 } from '../base/builtins.ts';
import { BrokerError } from '../base/errors.ts';
import { Batch, type Entry } from './store.ts';

/** Version byte of new records. Records with a higher version are refused. */
const RECORD_VERSION = 1;
/** Bytes around the body of a record: version byte and checksum. */
const FRAME_BYTES = 5;
/** Bytes before a nested record: the lengths of its key and of its body. */
const NESTED_HEAD_BYTES = 5;
const CHUNK_BYTES = 262_144;

/** A record cannot be read. `code` is `STORE_CORRUPT`, or `STORE_TOO_NEW` if a later version of this package has written the record. */
export class RecordError extends BrokerError {
  /** The key of the record. */
  readonly key: Buffer;

  constructor(code: 'STORE_CORRUPT' | 'STORE_TOO_NEW', key: Buffer, why: string) {
    super(code, why);
    this.key = key;
  }
}

/**
 * Builds the batch of a commit. Keys and records are written to a few chunks of memory, which later commits reuse. A record consists of
 * version, body, and a checksum of key, version and body.
 *
 * `key()` begins a key, `value()` ends the key and begins the body, and `put()` ends the record. To delete a record, `delete()` ends the
 * key. Between `nest()` and `unnest()` these methods write records into the body of the current record (see `journal.ts`).
 */
export class Draft {
  /** The batch built so far. */
  batch = new Batch();
  #chunks: Buffer[] = [Buffer.allocUnsafeSlow(CHUNK_BYTES)];
  #chunk = this.#chunks[0];
  #used = 0;
  #at = 0;
  /** Offsets of the current key and record in the chunk. */
  #keyAt = 0;
  #valueAt = -1;
  /** Offset of the current nested record, or of the next one. */
  #nestedAt = -1;
  #isNesting = false;

  /** Start a new batch. The memory of the previous batch is reused, so that batch must have settled. */
  clear(): void {
    this.batch = new Batch();
    // chunks that were allocated for large records are released
    this.#chunks = this.#chunks.filter(({ length }) => length === CHUNK_BYTES).slice(0, 16);
    this.#used = 0;
    this.#chunk = this.#chunks[0];
    this.#at = 0;
    this.#valueAt = -1;
    this.#isNesting = false;
  }

  /** Begin a key. @param kind one of `Kind` */
  key(kind: number): this {
    if (this.#isNesting) {
      this.#at = this.#nestedAt; // discards a nested record that was begun but not put
      this.need(NESTED_HEAD_BYTES + 1);
      this.#at += NESTED_HEAD_BYTES;
      return this.u8(kind);
    }
    this.#keyAt = this.#at;
    this.#valueAt = -1;
    return this.u8(kind);
  }

  /** End the key and begin the body of its record. */
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

  /** End the record and add it to the batch. */
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

  /** End the key and add its deletion to the batch. */
  delete(): void {
    this.batch.delete(this.#chunk.subarray(this.#keyAt, this.#at));
  }

  /** Size of the current record so far, in bytes, including its version. */
  get size(): number {
    return this.#at - (this.#isNesting ? this.#nestedAt : this.#valueAt);
  }

  /** Begin to write nested records into the body of the current record. */
  nest(): this {
    this.#isNesting = true;
    this.#nestedAt = this.#at;
    return this;
  }

  /** Size of the key and the nested records so far, in bytes. It increases with each nested record. */
  get nested(): number {
    return this.#nestedAt - this.#keyAt;
  }

  /** End the nested records. */
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

  /** Write a whole number up to 2^48 - 1. Its bytes sort by value. */
  u48(value: number): this {
    this.need(6);
    this.#at = this.#chunk.writeUIntBE(value, this.#at, 6);
    return this;
  }

  /** Write a whole number from 0 to 2^53 - 1, with 7 bits in each byte. @throws RangeError if it is negative or NaN */
  varint(value: number): this {
    if (!(value >= 0)) throw new RangeError(`cannot write ${value} to a record: expected a whole number of at least 0`);
    this.need(8);
    const chunk = this.#chunk;
    while (value > 127) {
      chunk[this.#at++] = (value % 128) | 128;
      value = Math.floor(value / 128);
    }
    chunk[this.#at++] = value;
    return this;
  }

  /** Write any number. */
  f64(value: number): this {
    this.need(8);
    this.#at = this.#chunk.writeDoubleBE(value, this.#at);
    return this;
  }

  /** Write a string, preceded by its length. */
  text(value: string): this {
    const bytes = Buffer.byteLength(value);
    this.varint(bytes).need(bytes);
    this.#at += this.#chunk.write(value, this.#at);
    return this;
  }

  /** Write a string without its length, as the end of a key. */
  tail(value: string): this {
    const bytes = Buffer.byteLength(value);
    this.need(bytes);
    this.#at += this.#chunk.write(value, this.#at);
    return this;
  }

  /** Write bytes, preceded by their length. */
  bytes(value: Buffer, start = 0, end = value.length): this {
    this.varint(end - start).need(end - start);
    this.#at += value.copy(this.#chunk, this.#at, start, end);
    return this;
  }

  /** Write bytes without their length. */
  raw(value: Buffer, start = 0): this {
    this.need(value.length - start);
    this.#at += value.copy(this.#chunk, this.#at, start);
    return this;
  }

  /** Write a latin1 string, preceded by its length. */
  latin1(value: string): this {
    this.varint(value.length).need(value.length);
    this.#at += this.#chunk.write(value, this.#at, value.length, 'latin1');
    return this;
  }

  /** Make room for more bytes in the chunk. If the chunk is full, the current record is moved to another one. */
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

/** Reads a record. The constructor checks its checksum and version. */
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
        `the record has version ${this.version}; this version of embermq reads up to ${RECORD_VERSION}. Use the version that wrote it, or a later one`
      );
  }

  /** True after the last field of the record. */
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

  /** Read bytes. @returns a view of the record */
  bytes(): Buffer {
    const bytes = this.varint();
    const at = this.#take(bytes);
    return this.#value.subarray(at, at + bytes);
  }

  /** Read a nested record. @returns views of its key and its body, without version and checksum */
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
    if (this.#at > this.#end) throw new RecordError('STORE_CORRUPT', this.#key, 'it is truncated');
    return at;
  }
}
