/**
 * The methods that `levelStore` requires of a database. Every database of the abstract-level family (version 2 and
 * later) has them, such as `level`, `memory-level` and `browser-level`.
 */
export interface LevelDatabase {
  readonly supports: {
    readonly encodings?: Readonly<Record<string, boolean>>;
    readonly explicitSnapshots?: boolean;
    readonly seek?: boolean;
  };
  open(): Promise<void>;
  close(): Promise<void>;
  batch(): LevelBatch;
  batch(changes: LevelChange[], options: { readonly sync: boolean } & Partial<LevelEncodings>): Promise<void>;
  iterator(range: LevelRange): LevelIterator;
  /** Databases without this method cannot be backed up while they are open. */
  snapshot?(): LevelSnapshot;
  /** Only LevelDB has the following two methods. */
  approximateSize?(from: Buffer, to: Buffer, encodings: Partial<LevelEncodings>): Promise<number>;
  compactRange?(from: Buffer, to: Buffer, encodings: Partial<LevelEncodings>): Promise<void>;
}

/** Reads a range, some records at a time. */
export interface LevelIterator {
  nextv(size: number): Promise<[key: unknown, value: unknown][]>;
  seek(target: Buffer, options: { readonly keyEncoding: 'buffer' }): void;
  close(): Promise<void>;
}

/** A change in a batch that is passed as an array. */
export type LevelChange =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer };

/** A batch that is filled call by call, which costs a quarter of passing LevelDB an array. */
export interface LevelBatch {
  put(key: Buffer, value: Buffer, encodings: LevelEncodings): unknown;
  del(key: Buffer, encodings: LevelEncodings): unknown;
  write(options: { readonly sync: boolean }): Promise<void>;
}

/** The content of a database at one moment. */
export interface LevelSnapshot {
  close(): Promise<void>;
}

/** The encoding of keys and values. */
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

/** The options of a range. The database also accepts a snapshot. */
export interface LevelRange extends Partial<LevelEncodings> {
  readonly gte: Buffer;
  readonly lt: Buffer;
  readonly highWaterMarkBytes: number;
  readonly snapshot?: LevelSnapshot;
}

/** Encodings for LevelDB, which copies the bytes it is given. */
export const BYTES: LevelEncodings = { keyEncoding: 'buffer', valueEncoding: 'buffer' };

const COPIED: LevelEncoding = { name: 'embermq-copied', format: 'buffer', encode: copy, decode: copy };

/** Encodings for databases that may store or return the buffers themselves, as `memory-level` does. */
export const COPIED_BYTES: LevelEncodings = { keyEncoding: COPIED, valueEncoding: COPIED };

function copy(bytes: Buffer): Buffer {
  return Buffer.from(bytes);
}
