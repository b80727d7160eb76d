/**
 * The methods that `levelStore` requires of a database. Every database of the abstract-level family (version 2 and
 * later) has them, such as `level`, `memory-level` and `browser-level`.
 */
export interface LevelDatabase {
  /** The features of the database. */
  readonly supports: {
    /** The encodings that it accepts, by name. */
    readonly encodings?: Readonly<Record<string, boolean>>;
    /** True if a snapshot can be passed to a range. */
    readonly explicitSnapshots?: boolean;
    /** True if iterators can skip to a key. */
    readonly seek?: boolean;
  };
  /** Open the database, which is created if it does not exist. */
  open(): Promise<void>;
  /** Close the database. */
  close(): Promise<void>;
  /** Make a batch, or write one that is given. */
  batch(): LevelBatch;
  /** Make a batch, or write one that is given. */
  batch(
    changes: LevelChange[],
    options: {
      /** Resolve only when the changes survive a loss of power. */
      readonly sync: boolean;
    } & Partial<LevelEncodings>
  ): Promise<void>;
  /** Read a range in the order of the keys. */
  iterator(range: LevelRange): LevelIterator;
  /** Databases without this method cannot be backed up while they are open. */
  snapshot?(): LevelSnapshot;
  /** Only LevelDB has the following two methods. */
  approximateSize?(from: Buffer, to: Buffer, encodings: Partial<LevelEncodings>): Promise<number>;
  /** Compact the files of a range. */
  compactRange?(from: Buffer, to: Buffer, encodings: Partial<LevelEncodings>): Promise<void>;
}

/** Reads a range, some records at a time. */
export interface LevelIterator {
  /** The next entries, at most `size`; none at the end. */
  nextv(size: number): Promise<[key: unknown, value: unknown][]>;
  /** Skip to a key. */
  seek(
    target: Buffer,
    options: {
      /** The encoding of the key. */
      readonly keyEncoding: 'buffer';
    }
  ): void;
  /** Release the iterator. */
  close(): Promise<void>;
}

/** A change in a batch that is passed as an array. */
export type LevelChange =
  | {
      /** Set the value of a key. */
      readonly type: 'put';
      /** The key. */
      readonly key: Buffer;
      /** The value. */
      readonly value: Buffer;
    }
  | {
      /** Delete a key. */
      readonly type: 'del';
      /** The key. */
      readonly key: Buffer;
    };

/** A batch that is filled call by call, which costs a quarter of passing LevelDB an array. */
export interface LevelBatch {
  /** Set the value of a key. */
  put(key: Buffer, value: Buffer, encodings: LevelEncodings): unknown;
  /** Delete a key. */
  del(key: Buffer, encodings: LevelEncodings): unknown;
  /** Write the changes, all or none. */
  write(options: {
    /** Resolve only when the changes survive a loss of power. */
    readonly sync: boolean;
  }): Promise<void>;
}

/** The content of a database at one moment. */
export interface LevelSnapshot {
  /** Release the snapshot. */
  close(): Promise<void>;
}

/** The encoding of keys and values. */
export interface LevelEncodings {
  /** The encoding of keys. */
  readonly keyEncoding: LevelEncoding;
  /** The encoding of values. */
  readonly valueEncoding: LevelEncoding;
}

/** An encoding that passes bytes on unchanged. */
export type LevelEncoding =
  | 'buffer'
  | {
      /** The name of the encoding. */
      readonly name: string;
      /** The form in which the database stores it. */
      readonly format: 'buffer';
      /** The bytes to store. */
      encode(bytes: Buffer): Buffer;
      /** The bytes that were stored. */
      decode(bytes: Buffer): Buffer;
    };

/** The options of a range. The database also accepts a snapshot. */
export interface LevelRange extends Partial<LevelEncodings> {
  /** The first key. */
  readonly gte: Buffer;
  /** The key behind the last one. */
  readonly lt: Buffer;
  /** Bytes that are read ahead. */
  readonly highWaterMarkBytes: number;
  /** The snapshot to read. Default: the current content. */
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
