import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from './folder.ts';
import { readRecords } from './log.ts';
import { VarintReader } from './varint-reader.ts';

/** The files that make up a database, as its manifest lists them. */
interface Manifest {
  /** Name of the manifest; undefined if CURRENT names none. */
  readonly file: string | undefined;
  /** Size in bytes of each table, by the number of the table. */
  readonly tables: ReadonlyMap<number, number>;
  /** The last sequence number in the tables. Each change of a record has one; the latest change of a key counts. */
  readonly lastSequence: number;
  /** Check whether LevelDB replays this log when it opens the database. */
  isReplayed(log: number): boolean;
  /**
   * Number of the oldest log that is replayed. It must exist, because LevelDB creates a log before the manifest names it. undefined if
   * there is none yet, or the manifest cannot be read.
   */
  readonly firstLog: number | undefined;
  /** Check whether newer tables replace this one, as far as the manifest can be read. */
  isObsolete(table: number): boolean;
  /** Offset of the first bad record, at which reading stops; undefined if all records are sound. */
  readonly badAt: number | undefined;
  /** True if the bad record may be a truncated last record, which LevelDB does not report. */
  readonly isTruncated: boolean;
}

interface Edits {
  readonly tables: Map<number, number>;
  readonly removed: Set<number>;
  firstLog: number;
  previousLog: number;
  lastSequence: number;
}

/**
 * Read a manifest up to its first bad record, as LevelDB does.
 * @param file name of the manifest; by default the one that CURRENT names
 * @throws Error from the file system if the manifest exists but cannot be read
 */
export async function readManifest(folder: string, file?: string): Promise<Manifest> {
  const edits: Edits = { tables: new Map(), removed: new Set(), firstLog: Infinity, previousLog: 0, lastSequence: 0 };
  let badRecord: Pick<Manifest, 'badAt' | 'isTruncated'> = { badAt: undefined, isTruncated: false };
  let manifestNumber = 0;
  try {
    file ??= /^MANIFEST-\d+$/m.exec(await readFile(join(folder, 'CURRENT'), 'latin1'))?.[0];
    if (file !== undefined) {
      const { records, ...rest } = readRecords(await readFile(join(folder, file)));
      badRecord = rest;
      for (const edit of records) apply(edit, edits);
      // the first record lists all tables; tables that are written later have higher numbers than the manifest
      if (records.length > 0) manifestNumber = numberOf(file);
    }
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall !== undefined && code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
  }
  const { tables, removed, firstLog, previousLog } = edits;
  return {
    badAt: badRecord.badAt,
    // LevelDB writes the first records, which name a log, before it lets CURRENT name the manifest
    isTruncated: badRecord.isTruncated && firstLog !== Infinity,
    file,
    tables,
    lastSequence: edits.lastSequence,
    isReplayed: (log) => log >= firstLog || log === previousLog,
    firstLog: firstLog === 0 || firstLog === Infinity ? undefined : firstLog,
    isObsolete: (table) => !tables.has(table) && (removed.has(table) || table < manifestNumber)
  };
}

/** Read the manifest that CURRENT names, or the newest one if CURRENT or that manifest is missing. */
export async function newestManifest(folder: string): Promise<Manifest> {
  const names = (await namesIn(folder)).filter((name) => /^MANIFEST-\d+$/.test(name));
  const named = await readManifest(folder);
  if (named.file !== undefined && names.includes(named.file)) return named;
  return readManifest(folder, names.sort((a, b) => numberOf(a) - numberOf(b)).at(-1));
}

function numberOf(manifest: string): number {
  return Number.parseInt(manifest.replace('MANIFEST-', ''), 10);
}

function apply(edit: Buffer, edits: Edits): void {
  const { tables, removed } = edits;
  const reader = new VarintReader(edit);
  while (!reader.isAtEnd) {
    const tag = reader.readVarint();
    if (tag === 1)
      reader.readBytes(reader.readVarint()); // name of the comparator
    else if (tag === 5) {
      reader.readVarint(); // start of the next compaction of a level
      reader.readBytes(reader.readVarint());
    } else if (tag === 6) {
      reader.readVarint();
      const table = reader.readVarint();
      tables.delete(table);
      removed.add(table);
    } else if (tag === 7) {
      reader.readVarint();
      tables.set(reader.readVarint(), reader.readVarint());
      reader.readBytes(reader.readVarint());
      reader.readBytes(reader.readVarint());
    } else if (tag === 2) edits.firstLog = reader.readVarint();
    else if (tag === 9) edits.previousLog = reader.readVarint();
    else if (tag === 4) edits.lastSequence = reader.readVarint();
    else if (tag === 3) reader.readVarint();
    else throw new Error(`unknown tag ${tag} in the manifest`);
  }
}
