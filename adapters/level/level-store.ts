// LevelDB is loaded when a level store is opened, not by import: it is native code, and an app that passes its own
// database needs none.

import { resolve } from 'node:path';
import {
  type Batch,
  type Entry,
  type FieldValues,
  field,
  readOptions,
  type Store,
  type StoreSnapshot
} from '../../lib/adapter.ts';
import { InvalidInput, type Size, StateError } from '../../lib/index.ts';
import {
  BYTES,
  COPIED_BYTES,
  type LevelBatch,
  type LevelChange,
  type LevelDatabase,
  type LevelEncodings,
  type LevelSnapshot
} from './database.ts';
import { appendBatch } from './files/append.ts';
import { checkCurrent, checkFiles } from './files/check.ts';
import { ClosedMark } from './files/closed-mark.ts';
import { exposureOf, logBytesIn, makeFolder } from './files/folder.ts';
import { FolderLock } from './files/folder-lock.ts';
import { removeLeftovers } from './files/leftovers.ts';
import { repairFolder } from './files/repair.ts';
import { LAST_RELEASE, logLimit, Reserve } from './files/reserve.ts';
import { linkFolder, removeLinks } from './files/scratch.ts';
import { isOutOfSpace, openError } from './open-error.ts';
import { Reads } from './reads.ts';

/** Options of `levelStore`. Unknown names and invalid values are refused. */
export interface LevelStoreOptions {
  /**
   * The failures that a commit survives: `process` (default) a crash of the process; `power` also a loss of power, for
   * which each commit waits for the disk (fsync).
   */
  durability?: 'process' | 'power';
  /**
   * Verify the checksums of all files of a folder when it is opened (default true; about 300 MB/s). LevelDB does not
   * verify those of tables: if a bit of a table has changed, it silently omits records or aborts the process. The
   * option has no effect on a database passed by the app.
   */
  verify?: boolean;
  /**
   * Disk space that a folder keeps in its file RESERVE, so that a store on a full disk can still be opened, drained and compacted: bytes,
   * or a size such as `64MB` (default 64 MB, at most a fifth of the file system; 0: none). The file is created when less than 16 times its
   * size is free.
   */
  reserve?: Size;
  /**
   * A folder on another disk, for reading a store on a full or read-only disk (default: none). Files that LevelDB
   * writes when it opens a store go there, next to links to the files of the store, whose folder stays unchanged.
   * Commits are refused (STORE_READ_ONLY).
   */
  scratch?: string;
  /**
   * Called with a text when a folder is opened for the first time that other users of the machine may use. Default: a
   * process warning with the code STORE_FOLDER_OPEN. Folders created by the store can only be used by the user of the
   * process.
   */
  onWarning?: (text: string) => void;
}

/** The options of `levelStore`. */
export const LEVEL_OPTIONS = {
  durability: field(
    'choice',
    'process',
    'Failures that a commit survives: a crash of the process; or also a loss of power, for which each commit waits for the disk.',
    {
      choices: ['process', 'power']
    }
  ),
  verify: field('boolean', true, 'Verify the checksums of all files of a folder when it is opened (about 300 MB/s).'),
  reserve: field<number | undefined>('size', undefined, 'Disk space that a folder keeps for a full disk; 0: none.'),
  scratch: field<string | undefined>(
    'string',
    undefined,
    'Folder on another disk for files that LevelDB writes when a store is only read. Commits are refused (`STORE_READ_ONLY`).'
  ),
  onWarning: field<LevelStoreOptions['onWarning']>(
    'function',
    undefined,
    'Called with a text if other users of the machine may use the folder. Default: a process warning.'
  )
};

/**
 * Create a store over LevelDB. Nothing is opened or created before `open`.
 *
 * ```ts
 * const store = levelStore('./data', { durability: 'power' });
 * ```
 * @param where a folder, which is created with its parents, for one process at a time; or a database of the abstract-level family, which
 * the store opens and closes
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
 */
export function levelStore(where: string | LevelDatabase, options: LevelStoreOptions = {}): Store {
  const settings = readOptions(LEVEL_OPTIONS, options, 'levelStore') as FieldValues<typeof LEVEL_OPTIONS>;
  const { durability, verify, reserve, scratch, onWarning = warn } = settings;
  const sync = durability === 'power';
  if (scratch === '' || (scratch !== undefined && typeof where !== 'string'))
    throw new InvalidInput('OPTION_INVALID', 'scratch', 'a folder, if the store itself is in a folder', scratch);
  if (typeof where === 'string' && where !== '' && scratch !== undefined)
    return readOnlyStore(resolve(where), scratch, verify);
  if (typeof where === 'string' && where !== '')
    return folderStore(resolve(where), { sync, verify, reserveBytes: reserve, onWarning });
  if (typeof where !== 'object' || where?.supports?.encodings?.buffer !== true)
    throw new InvalidInput(
      'OPTION_INVALID',
      'where',
      'a folder, or an abstract-level database that stores bytes',
      where
    );
  const { location } = where as { location?: unknown };
  const name = typeof location === 'string' ? location : where.constructor.name;
  const hasSnapshots = where.supports.explicitSnapshots === true && where.snapshot !== undefined;
  const canCompact = where.approximateSize !== undefined && where.compactRange !== undefined;
  return new LevelStore({
    name,
    sync,
    encodings: COPIED_BYTES,
    prepare: async () => () => where,
    hasSnapshots,
    canCompact
  });
}

function warn(text: string): void {
  process.emitWarning(text, { code: 'STORE_FOLDER_OPEN' });
}

/** Settings of a store in a folder. */
interface FolderSettings {
  readonly sync: boolean;
  readonly verify: boolean;
  readonly reserveBytes: number | undefined;
  onWarning(text: string): void;
}

function folderStore(path: string, { sync, verify, reserveBytes, onWarning }: FolderSettings): Store {
  let isExposureKnown = false;
  let database: LevelDatabase | undefined;
  const sound = new Set<string>();
  const lock = new FolderLock(path);
  const mark = new ClosedMark(path);
  const reserve = new Reserve(path, reserveBytes);
  const prepare = async (failures: number, attempt: number) => {
    await checkCurrent(path);
    if (verify) await checkFiles(path, sound, mark);
    await makeFolder(path);
    const exposure = isExposureKnown ? undefined : await exposureOf(path);
    isExposureKnown = true;
    if (exposure !== undefined) onWarning(exposure);
    // loaded only when needed, because it is native code
    const { Level } = await import('level');
    await lock.checkFree(); // again, after seconds of reading files
    if (failures > 0 || attempt > 0) await removeLeftovers(path);
    await reserve.release(failures, attempt);
    const writeBufferSize = await logLimit(path);
    await lock.checkFree();
    return () => (database ??= new Level(path, { ...BYTES, writeBufferSize }));
  };
  const repair = async () => {
    sound.clear();
    await reserve.releaseDuring(() => repairFolder(path));
    await mark.remove();
  };
  const parts = { lock, mark, reserve, prepare, repair };
  const logBytes = () => logBytesIn(path);
  const append = async (batch: Batch) => {
    await lock.checkFree();
    await removeLeftovers(path);
    await reserve.releaseForAppend(batch.bytes);
    await appendBatch(path, batch, sync);
  };
  return new LevelStore({
    name: path,
    sync,
    encodings: undefined,
    ...parts,
    logBytes,
    append,
    hasSnapshots: true,
    canCompact: true
  });
}

function readOnlyStore(path: string, scratch: string, verify: boolean): Store {
  const lock = new FolderLock(path);
  let linked: string | undefined;
  const release = async () => {
    if (linked !== undefined) await removeLinks(linked);
    linked = undefined;
  };
  const prepare = async () => {
    await lock.checkFree();
    await checkCurrent(path);
    const copy = await linkFolder(path, scratch);
    linked = copy;
    try {
      if (verify) await checkFiles(copy, new Set(), new ClosedMark(copy));
      const { Level } = await import('level');
      return () => new Level(copy, { ...BYTES, createIfMissing: false });
    } catch (error) {
      await release();
      throw error;
    }
  };
  return new LevelStore({
    name: path,
    sync: false,
    encodings: undefined,
    prepare,
    release,
    hasSnapshots: true,
    canCompact: false
  });
}

/** Bytes that are compacted at a time, which takes some tenths of a second. */
const COMPACTION_RANGE_BYTES = 16_777_216;
/** The first and the last key, as numbers made of the first 8 bytes of a key. */
const FIRST = 0n;
const LAST = 2n ** 64n - 1n;

function keyAt(number: bigint): Buffer {
  const key = Buffer.allocUnsafe(8);
  key.writeBigUInt64BE(number);
  return key;
}

/** The parts of a store. */
interface Setup {
  readonly name: string;
  readonly sync: boolean;
  /** Encodings of each call; undefined if the database was created with them, which halves the cost of a put. */
  readonly encodings: LevelEncodings | undefined;
  /**
   * Check and prepare the files, and return a function that creates the database to open. It is called at the last moment, because a
   * new `Level` opens on its own.
   * @param failures failed commits since the last successful one
   * @param attempt number of attempts that have failed for lack of space
   */
  prepare(failures: number, attempt: number): Promise<() => LevelDatabase>;
  /** The following five are set only for a folder. */
  readonly lock?: FolderLock;
  readonly mark?: ClosedMark;
  readonly reserve?: Reserve;
  /** Returns the size of the logs, whose records `approximateSize` leaves out. */
  readonly logBytes?: () => Promise<number>;
  /** Writes a batch into the closed folder. */
  readonly append?: (batch: Batch) => Promise<void>;
  /** Only for a read-only store: deletes the links that were made to open it. */
  readonly release?: () => Promise<void>;
  /** Repairs the files; undefined if that is impossible. */
  readonly repair?: () => Promise<void>;
  /** True if the database has snapshots that are created explicitly. */
  readonly hasSnapshots: boolean;
  /** True if the database is LevelDB, which can be compacted. */
  readonly canCompact: boolean;
}

/** A batch of a database to which encodings need not be passed. */
interface BytesBatch {
  put(key: Buffer, value: Buffer, encodings: LevelEncodings | undefined): unknown;
  del(key: Buffer, encodings: LevelEncodings | undefined): unknown;
  write: LevelBatch['write'];
}

class LevelStore implements Store {
  readonly name: string;
  readonly #setup: Setup;
  /** Set while the store is open. */
  #database: LevelDatabase | undefined;
  /** The error of the commit that has failed since the store was opened. */
  #failure: { readonly error: unknown } | undefined;
  /** Set while the folder is closed to append a commit; settles when it is open again, or cannot be opened. */
  #appending: Promise<void> | undefined;
  /** Number of times that the folder was closed for this. */
  #appendings = 0;
  /** Commits that were appended to the closed folder since LevelDB has written one. */
  #appended = 0;
  /**
   * Failed commits since the last successful one. The folder may have been deleted or moved: the next open must find a
   * database in it.
   */
  #failures = 0;
  readonly #reads = new Reads();
  /** The last `open`, `close` or `repair`; they run one after the other. */
  #lastChange: Promise<void> = Promise.resolve();

  readonly snapshot?: () => Promise<StoreSnapshot>;
  readonly repair?: () => Promise<void>;
  readonly size?: () => Promise<number>;
  readonly compact?: () => Promise<void>;
  readonly freeBytes?: () => Promise<number>;

  constructor(setup: Setup) {
    this.name = setup.name;
    this.#setup = setup;
    const { repair, reserve } = setup;
    if (setup.hasSnapshots) this.snapshot = async () => this.#snapshot(await this.#whenOpen());
    if (repair !== undefined) this.repair = () => this.#inTurn(() => this.#repair(repair));
    if (reserve !== undefined)
      this.freeBytes = async () => {
        await this.#whenOpen();
        return reserve.freeBytes();
      };
    if (!setup.canCompact) return;
    this.size = async () => {
      const database = await this.#whenOpen();
      // the logs first: if LevelDB turns one into a table meanwhile, its records are counted twice instead of not at all
      const inLogs = (await setup.logBytes?.()) ?? 0;
      return inLogs + (await this.#sizeOf(database, FIRST, LAST));
    };
    this.compact = async () => {
      const database = await this.#whenOpen();
      const compact = () => this.#compact(database, FIRST, LAST);
      await (reserve === undefined ? compact() : reserve.releaseDuring(compact));
    };
  }

  async #sizeOf(database: LevelDatabase, from: bigint, to: bigint): Promise<number> {
    const size = await database.approximateSize?.(keyAt(from), keyAt(to), { ...this.#setup.encodings });
    return size ?? 0;
  }

  /** Compact range by range, because LevelDB does not close before the range in progress is done. */
  async #compact(database: LevelDatabase, from: bigint, to: bigint): Promise<void> {
    if (this.#database !== database) return;
    const middle = (from + to) / 2n;
    if (middle > from && (await this.#sizeOf(database, from, to)) > COMPACTION_RANGE_BYTES) {
      await this.#compact(database, from, middle);
      await this.#compact(database, middle, to);
    } else if (this.#database === database)
      await database.compactRange?.(keyAt(from), keyAt(to), { ...this.#setup.encodings });
  }

  async #repair(repair: () => Promise<void>): Promise<void> {
    if (this.#database !== undefined)
      throw new StateError('STORE_OPEN', `${this.name}: the store is open; close it before it is repaired`);
    const { lock } = this.#setup;
    try {
      await (lock === undefined ? repair() : lock.whileFree(repair));
    } catch (error) {
      throw openError(this.name, error, 'repaired');
    }
  }

  open(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#database !== undefined) return;
      const { lock } = this.#setup;
      const open = () => this.#open(lock);
      try {
        await (lock === undefined ? open() : lock.whileFree(open));
      } catch (error) {
        throw openError(this.name, error);
      }
    });
  }

  async #open(lock: FolderLock | undefined, isNew = true): Promise<void> {
    // a new, empty folder would lose everything that a broker has acknowledged
    const failures = this.#failures + this.#appended;
    if (failures > 0) await lock?.checkRestored();
    const { reserve } = this.#setup;
    for (let attempt = 0; this.#database === undefined; attempt++) {
      try {
        const create = await this.#setup.prepare(failures, attempt);
        this.#database = await this.#openDatabase(create, lock);
      } catch (error) {
        if (reserve?.isKept !== true || !isOutOfSpace(error)) throw error;
        if (attempt < LAST_RELEASE) continue;
        await reserve.takeAgain();
        throw error;
      }
    }
    this.#failure = undefined;
    await reserve?.start(isNew);
  }

  async #openDatabase(create: () => LevelDatabase, lock: FolderLock | undefined): Promise<LevelDatabase> {
    let database: LevelDatabase;
    try {
      await lock?.opening();
      database = create();
      await database.open();
    } catch (error) {
      await lock?.notOpened();
      await this.#setup.release?.();
      throw error;
    }
    try {
      await lock?.opened();
      return database;
    } catch (error) {
      await this.#closeDatabase(database);
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      const database = this.#database;
      this.#database = undefined;
      if (database !== undefined) await this.#closeDatabase(database);
    });
  }

  async #closeDatabase(database: LevelDatabase): Promise<void> {
    const { lock, mark, reserve, release } = this.#setup;
    try {
      await reserve?.stop();
      await mark?.rememberManifest();
      await this.#reads.end();
      await database.close(); // waits for the other operations in progress
      // if the mark cannot be written, as on a full disk, the next open does without it
      if (this.#failure === undefined) await mark?.write().catch(() => {});
    } finally {
      lock?.closed();
      await release?.();
    }
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.#lastChange.then(change);
    this.#lastChange = done.catch(() => {});
    return done;
  }

  async commit(batch: Batch): Promise<void> {
    const { release, reserve, append, sync, encodings, lock } = this.#setup;
    if (release !== undefined)
      throw new StateError('STORE_READ_ONLY', `${this.name}: the store is read-only (option scratch)`);
    try {
      const spaceCheck = reserve?.beforeWrite(batch.bytes);
      if (spaceCheck !== undefined) await spaceCheck;
      const database = this.#requireOpen();
      // LevelDB may not find records again that it appends to its log behind a truncated one
      if (this.#failure !== undefined) throw this.#failure.error;
      try {
        const written = writeBatch(database, batch, sync, encodings);
        await (lock?.isCheckDue ? Promise.all([written, lock.check()]) : written);
        this.#appended = 0;
      } catch (error) {
        this.#failure = { error };
        throw error;
      }
    } catch (error) {
      // a large commit that the reserve has refused is refused; LevelDB itself may work
      const mayAppend = reserve?.isKept === true && (this.#failure !== undefined || reserve.isNeeded);
      if (append === undefined || !mayAppend || !isOutOfSpace(error)) {
        if (this.#failure !== undefined) this.#failures++;
        throw error;
      }
      await this.#append(() => append(batch), error);
    }
    this.#failures = 0;
  }

  /**
   * Close the folder, write a commit into it, and open it again. Reads wait for that.
   * @param error thrown if the commit cannot be written and the folder is open again
   * @throws also Error if the folder cannot be opened again
   */
  async #append(append: () => Promise<void>, error: unknown): Promise<void> {
    let isWritten = false;
    const appended = this.#inTurn(async () => {
      const database = this.#requireOpen();
      const { lock } = this.#setup;
      this.#appendings++;
      this.#appended++;
      this.#database = undefined;
      this.#failure ??= { error: new Error(`${this.name}: the store could not be opened again`) };
      await this.#closeDatabase(database);
      const appendAndOpen = async () => {
        await append().then(
          () => {
            isWritten = true;
          },
          () => {}
        );
        await this.#open(lock, false);
      };
      await (lock === undefined ? appendAndOpen() : lock.whileFree(appendAndOpen));
    });
    this.#appending = appended
      .catch(() => {})
      .finally(() => {
        this.#appending = undefined;
      });
    await appended;
    if (!isWritten) throw error;
  }

  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    const database = this.#appending === undefined ? this.#requireOpen() : await this.#whenOpen();
    const appendings = this.#appendings;
    try {
      return await this.#reads.read(database, from, to, limit, { ...this.#setup.encodings });
    } catch (error) {
      if (this.#appendings === appendings) throw openError(this.name, error, 'read');
      return this.read(from, to, limit); // the folder was closed meanwhile, to append a commit
    }
  }

  #snapshot(database: LevelDatabase): StoreSnapshot {
    const snapshot = (database.snapshot as () => LevelSnapshot)();
    const { encodings } = this.#setup;
    const appendings = this.#appendings;
    return {
      read: async (from, to, limit) => {
        // closing the folder to append a commit has also closed its snapshots
        if (this.#database !== database || this.#appendings !== appendings)
          throw new StateError('STORE_CLOSED', `${this.name}: the store was closed after the snapshot was taken`);
        try {
          return await this.#reads.read(database, from, to, limit, { snapshot, ...encodings });
        } catch (error) {
          throw openError(this.name, error, 'read');
        }
      },
      close: () => snapshot.close()
    };
  }

  async #whenOpen(): Promise<LevelDatabase> {
    await this.#appending;
    return this.#requireOpen();
  }

  #requireOpen(): LevelDatabase {
    if (this.#database === undefined) throw new StateError('STORE_CLOSED', `${this.name}: the store is not open`);
    return this.#database;
  }
}

/** Records of at least this many bytes on average are passed to LevelDB as an array. */
const ARRAY_RECORD_BYTES = 8_192;

/**
 * Write a batch. Filling one call by call is faster, but its memory is released only when it is garbage-collected, and
 * V8 does not know its size. An array is released when it is written.
 */
function writeBatch(
  database: LevelDatabase,
  batch: Batch,
  sync: boolean,
  encodings: LevelEncodings | undefined
): Promise<void> {
  const { keys, values, bytes } = batch;
  if (bytes >= keys.length * ARRAY_RECORD_BYTES) {
    const changes = keys.map((key, at): LevelChange => {
      const value = values[at];
      return value === undefined ? { type: 'del', key } : { type: 'put', key, value };
    });
    return database.batch(changes, { sync, ...encodings });
  }
  const filled: BytesBatch = database.batch();
  for (let i = 0; i < keys.length; i++) {
    const value = values[i];
    if (value === undefined) filled.del(keys[i], encodings);
    else filled.put(keys[i], value, encodings);
  }
  return filled.write({ sync });
}
