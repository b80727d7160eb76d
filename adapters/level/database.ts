/**
 * What `levelStore` asks of a database: any of the abstract-level family (version 2 and later) has it, such as `level`, `memory-level`
 * and `browser-level`.
 */
export interface LevelDatabase {
  readonly supports: { readonly encodings?: Readonly<Record<string, boolean>> };
  open(): Promise<void>;
  close(): Promise<void>;
  batch(): LevelBatch;
  iterator(range: LevelRange): { all(): Promise<[key: Buffer, value: Buffer][]> };
  /** LevelDB itself has these. */
  approximateSize?(from: Buffer, to: Buffer, encodings: Partial<LevelEncodings>): Promise<number>;
  compactRange?(from: Buffer, to: Buffer, encodings: Partial<LevelEncodings>): Promise<void>;
}

/** A batch that is filled call by call; four times cheaper to hand to LevelDB than an array. */
export interface LevelBatch {
  put(key: Buffer, value: Buffer, encodings: LevelEncodings): unknown;
  del(key: Buffer, encodings: LevelEncodings): unknown;
  write(options: { readonly sync: boolean }): Promise<void>;
}

/** How bytes go in and come out. */
export interface LevelEncodings {
  readonly keyEncoding: LevelEncoding;
  readonly valueEncoding: LevelEncoding;
}

export type LevelEncoding =
  | 'buffer'
  | {
      readonly name: string;
      readonly format: 'buffer';
      encode(bytes: Buffer): Buffer;
      decode(bytes: Buffer): Buffer;
    };

export interface LevelRange extends Partial<LevelEncodings> {
  readonly gte: Buffer;
  readonly lt: Buffer;
  readonly limit: number;
  readonly highWaterMarkBytes: number;
}

/** For databases whose records cross into LevelDB, which copies them. */
export const AS_THEY_ARE: LevelEncodings = { keyEncoding: 'buffer', valueEncoding: 'buffer' };

const COPIED: LevelEncoding = { name: 'embermq-copied', format: 'buffer', encode: copy, decode: copy };

/** For databases that may keep what they are handed and hand out what they keep, as `memory-level` does. */
export const AS_COPIES: LevelEncodings = { keyEncoding: COPIED, valueEncoding: COPIED };

function copy(bytes: Buffer): Buffer {
  return Buffer.from(bytes);
}
