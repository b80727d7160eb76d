import { resolve } from 'node:path';
import {
  type Batch,
  type Entry,
  InvalidInput,
  type OptionValues,
  optionRow,
  readOptions,
  type Size,
  StateError,
  type Store
} from '../../lib/index.ts';
import { AS_COPIES, AS_THEY_ARE, type LevelBatch, type LevelDatabase, type LevelEncodings } from './database.ts';
import { checkFiles, checkHead } from './files/check.ts';
import { ClosedMark } from './files/closed-mark.ts';
import { makeFolder } from './files/folder.ts';
import { FolderLock } from './files/folder-lock.ts';
import { repairFolder } from './files/repair.ts';
import { Reserve } from './files/reserve.ts';
import { linkFolder, removeLinks } from './files/scratch.ts';
import { openError } from './open-error.ts';

/** How `levelStore` uses its database; names and values are checked when it is called. */
export interface LevelStoreOptions {
  /**
   * What a commit survives: `process` (default) the end of the process, however it ends; `power` also the end of the machine, for which
   * each commit waits for the disk (fsync).
   */
  durability?: 'process' | 'power';
  /**
   * Compare the checksums of all files of a folder when it is opened (default true; some 300 MB a second). LevelDB does not look at those of
   * tables: over one with a changed bit it leaves out records without a word, or ends the process. Of a database that is handed in nothing is
   * compared.
   */
  verify?: boolean;
  /**
   * Bytes of disk that a folder keeps for itself, so that a store on a full disk still opens, is drained and compacted (default 64 MB, at
   * most a fifth of the file system; 0: none). They are taken, as the file RESERVE in the folder, when less than 16 times as much is free. A
   * size such as `64MB`.
   */
  reserve?: Size;
  /**
   * A folder on another disk, for reading a folder that is full or read-only: what LevelDB writes when it opens a folder goes there, beside links to the
   * files of this one, which stays as it is. The store takes no commits (STORE_READ_ONLY). Default: none.
   */
  scratch?: string;
}

const OPTIONS = {
  durability: optionRow('choice', 'process', 'What a commit survives: the end of the process, or loss of power.', {
    choices: ['process', 'power']
  }),
  verify: optionRow('boolean', true, 'Compare the checksums of all files of a folder when it is opened.'),
  reserve: optionRow<number | undefined>('size', undefined, 'Bytes of disk that a folder keeps for when it is full.'),
  scratch: optionRow<string | undefined>('text', undefined, 'Folder for what LevelDB writes to open another one.')
};

/** Bytes that LevelDB reads in one step: 1,000 records of 200 bytes cost 2.5 us each, with its default of 16 KiB 3.5. */
const READ_BYTES = 1_048_576;

/**
 * A store over LevelDB.
 *
 * ```ts
 * const store = levelStore('./data', { durability: 'power' });
 * ```
 * @param where a folder, which is made with its parents and which one process has at a time; or a database of the abstract-level family, which
 *   the store opens and closes from then on
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
 */
export function levelStore(where: string | LevelDatabase, options: LevelStoreOptions = {}): Store {
  const settings = readOptions(OPTIONS, options, 'levelStore') as OptionValues<typeof OPTIONS>;
  const { durability, verify, reserve, scratch } = settings;
  const sync = durability === 'power';
  if (scratch === '' || (scratch !== undefined && typeof where !== 'string'))
    throw new InvalidInput('OPTION_INVALID', 'scratch', 'a folder, for reading another one', scratch);
  if (typeof where === 'string' && where !== '' && scratch !== undefined)
    return readOnlyStore(resolve(where), scratch, verify);
  if (typeof where === 'string' && where !== '') return folderStore(resolve(where), sync, verify, reserve);
  if (typeof where !== 'object' || where?.supports?.encodings?.buffer !== true)
    throw new InvalidInput(
      'OPTION_INVALID',
      'where',
      'a folder, or an abstract-level database that keeps bytes',
      where
    );
  const { location } = where as { location?: unknown };
  const name = typeof location === 'string' ? location : where.constructor.name;
  const canCompact = where.approximateSize !== undefined && where.compactRange !== undefined;
  return new LevelStore({ name, sync, encodings: AS_COPIES, find: async () => where, canCompact });
}

function folderStore(path: string, sync: boolean, verify: boolean, reserveBytes: number | undefined): Store {
  let database: LevelDatabase | undefined;
  const sound = new Set<string>();
  const lock = new FolderLock(path);
  const mark = new ClosedMark(path);
  const reserve = new Reserve(path, reserveBytes);
  const find = async (hasFailed: boolean) => {
    await checkHead(path);
    if (verify) await checkFiles(path, sound, mark);
    await makeFolder(path);
    // Not before it is needed: it brings native code with it.
    const { Level } = await import('level');
    await reserve.makeRoom(hasFailed);
    await lock.checkFree(); // to read the files may have taken seconds; a Level that is made opens by itself
    return (database ??= new Level(path, AS_THEY_ARE));
  };
  const repair = async () => {
    sound.clear();
    await reserve.during(() => repairFolder(path));
    await mark.remove();
  };
  const parts = { lock, mark, reserve, find, repair };
  return new LevelStore({ name: path, sync, encodings: undefined, ...parts, canCompact: true });
}

function readOnlyStore(path: string, scratch: string, verify: boolean): Store {
  const lock = new FolderLock(path);
  let linked: string | undefined;
  const release = async () => {
    if (linked !== undefined) await removeLinks(linked);
    linked = undefined;
  };
  const find = async () => {
    await lock.checkFree();
    await checkHead(path);
    linked = await linkFolder(path, scratch);
    try {
      if (verify) await checkFiles(linked, new Set(), new ClosedMark(linked));
      const { Level } = await import('level');
      return new Level(linked, { ...AS_THEY_ARE, createIfMissing: false });
    } catch (error) {
      await release();
      throw error;
    }
  };
  return new LevelStore({ name: path, sync: false, encodings: undefined, find, release, canCompact: false });
}

/** Bytes; some tenths of a second. */
const COMPACTED_AT_ONCE = 16_777_216;
/** Keys as numbers: their first 8 bytes. */
const FIRST = 0n;
const LAST = 2n ** 64n - 1n;

function boundary(number: bigint): Buffer {
  const key = Buffer.allocUnsafe(8);
  key.writeBigUInt64BE(number);
  return key;
}

/** Which database, and how it is used. */
interface Setup {
  readonly name: string;
  readonly sync: boolean;
  /** undefined: the database has them from its beginning, which saves half of what a put costs. */
  readonly encodings: LevelEncodings | undefined;
  /** The database, ready to be opened; the same one each time. @param hasFailed a commit failed when it was open */
  find(hasFailed: boolean): Promise<LevelDatabase>;
  /** Of a folder. */
  readonly lock?: FolderLock;
  readonly mark?: ClosedMark;
  readonly reserve?: Reserve;
  /** It is opened for reading alone; this takes away what was made for that. */
  readonly release?: () => Promise<void>;
  /** undefined: there is nothing that could be done. */
  readonly repair?: () => Promise<void>;
  /** It is LevelDB. */
  readonly canCompact: boolean;
}

/** A batch of a database whose encodings need not be named. */
interface BytesBatch {
  put(key: Buffer, value: Buffer, encodings: LevelEncodings | undefined): unknown;
  del(key: Buffer, encodings: LevelEncodings | undefined): unknown;
  write: LevelBatch['write'];
}

class LevelStore implements Store {
  readonly name: string;
  readonly #setup: Setup;
  /** While it is open. */
  #database: LevelDatabase | undefined;
  /** Of the commit that failed since it was opened. */
  #failure: { readonly error: unknown } | undefined;
  /** The last commit failed: what is opened next has to be what was open. */
  #mustBeBack = false;
  /** `open` and `close` wait for each other. */
  #lastChange: Promise<void> = Promise.resolve();

  readonly repair?: () => Promise<void>;
  readonly size?: () => Promise<number>;
  readonly compact?: () => Promise<void>;
  readonly freeBytes?: () => Promise<number>;

  constructor(setup: Setup) {
    this.name = setup.name;
    this.#setup = setup;
    const { repair, reserve } = setup;
    if (repair !== undefined) this.repair = () => this.#inTurn(() => this.#repair(repair));
    if (reserve !== undefined)
      this.freeBytes = async () => {
        this.#opened();
        return reserve.freeBytes();
      };
    if (!setup.canCompact) return;
    this.size = async () => this.#sizeOf(this.#opened(), FIRST, LAST);
    this.compact = async () => {
      const database = this.#opened();
      const compact = () => this.#compact(database, FIRST, LAST);
      await (reserve === undefined ? compact() : reserve.during(compact));
    };
  }

  async #sizeOf(database: LevelDatabase, from: bigint, to: bigint): Promise<number> {
    const size = await database.approximateSize?.(boundary(from), boundary(to), { ...this.#setup.encodings });
    return size ?? 0;
  }

  /** Range by range: LevelDB closes when the one under way is done. */
  async #compact(database: LevelDatabase, from: bigint, to: bigint): Promise<void> {
    if (this.#database !== database) return;
    const middle = (from + to) / 2n;
    if (middle > from && (await this.#sizeOf(database, from, to)) > COMPACTED_AT_ONCE) {
      await this.#compact(database, from, middle);
      await this.#compact(database, middle, to);
    } else if (this.#database === database)
      await database.compactRange?.(boundary(from), boundary(to), { ...this.#setup.encodings });
  }

  async #repair(repair: () => Promise<void>): Promise<void> {
    if (this.#database !== undefined) throw new StateError('STORE_OPEN', `${this.name}: the store is open`);
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

  async #open(lock: FolderLock | undefined): Promise<void> {
    // in a folder that is gone, all that a broker has acknowledged would be
    if (this.#mustBeBack) await lock?.checkBack();
    const database = await this.#setup.find(this.#mustBeBack);
    try {
      await database.open();
    } catch (error) {
      await this.#setup.release?.();
      throw error;
    }
    try {
      await lock?.opened();
    } catch (error) {
      await this.#shut(database);
      throw error;
    }
    this.#database = database;
    this.#failure = undefined;
    await this.#setup.reserve?.start();
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      const database = this.#database;
      this.#database = undefined;
      if (database !== undefined) await this.#shut(database);
    });
  }

  async #shut(database: LevelDatabase): Promise<void> {
    const { lock, mark, reserve, release } = this.#setup;
    try {
      await reserve?.stop();
      await mark?.prepare();
      await database.close(); // waits for what is under way
      // without the mark, as on a full disk, the next start takes the folder as it is
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

  async commit({ keys, values, bytes }: Batch): Promise<void> {
    if (this.#setup.release !== undefined)
      throw new StateError('STORE_READ_ONLY', `${this.name}: the store was opened for reading alone (option scratch)`);
    const isLookDue = this.#setup.reserve?.before(bytes);
    if (isLookDue !== undefined) await isLookDue;
    const database = this.#opened();
    // What LevelDB appends to its log behind a record that is cut short may not be found again.
    if (this.#failure !== undefined) throw this.#failure.error;
    const { sync, encodings, lock } = this.#setup;
    try {
      const batch: BytesBatch = database.batch();
      for (let i = 0; i < keys.length; i++) {
        const value = values[i];
        if (value === undefined) batch.del(keys[i], encodings);
        else batch.put(keys[i], value, encodings);
      }
      const written = batch.write({ sync });
      await (lock?.isLookDue ? Promise.all([written, lock.look()]) : written);
      this.#mustBeBack = false;
    } catch (error) {
      this.#failure = { error };
      this.#mustBeBack = true;
      throw error;
    }
  }

  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    const range = { gte: from, lt: to, limit, highWaterMarkBytes: READ_BYTES, ...this.#setup.encodings };
    const found = await this.#opened()
      .iterator(range)
      .all()
      .catch((error: unknown) => {
        throw openError(this.name, error, 'read');
      });
    return found.map(([key, value]) => ({ key, value }));
  }

  #opened(): LevelDatabase {
    if (this.#database === undefined) throw new StateError('STORE_CLOSED', `${this.name}: the store is not open`);
    return this.#database;
  }
}
