import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from './folder.ts';
import { readRecords } from './log.ts';
import { VarintReader } from './varint-reader.ts';

/** What a database is made of now. */
export interface Manifest {
  /** Its file; undefined where CURRENT names none. */
  readonly file: string | undefined;
  /** Sizes of its tables by number. */
  readonly tables: ReadonlyMap<number, number>;
  /** Whether a log is gone through when the database is opened. */
  isReplayed(log: number): boolean;
  /**
   * The oldest of these logs, which is there as long as the manifest names it: LevelDB makes a log first. undefined: none yet, or the manifest
   * can not be read.
   */
  readonly firstLog: number | undefined;
  /** What was in this table is in newer ones, as far as the manifest can be read. */
  isObsolete(table: number): boolean;
  /** Byte of its first record that is not as it was written, behind which nothing is read; undefined: there is none. */
  readonly badAt: number | undefined;
  /** That record may be the last one, truncated: LevelDB does not report it. */
  readonly isCutOff: boolean;
}

interface Edits {
  readonly tables: Map<number, number>;
  readonly removed: Set<number>;
  firstLog: number;
  previousLog: number;
}

/**
 * Read the manifest that is in force up to its first bad record, as LevelDB does.
 * @param file the manifest; by default the one that CURRENT names
 * @throws what keeps it from being read although it is there
 */
export async function readManifest(folder: string, file?: string): Promise<Manifest> {
  const edits: Edits = { tables: new Map(), removed: new Set(), firstLog: Infinity, previousLog: 0 };
  let found: Pick<Manifest, 'badAt' | 'isCutOff'> = { badAt: undefined, isCutOff: false };
  let madeAs = 0;
  try {
    file ??= /^MANIFEST-\d+$/m.exec(await readFile(join(folder, 'CURRENT'), 'latin1'))?.[0];
    if (file !== undefined) {
      const { records, ...rest } = readRecords(await readFile(join(folder, file)));
      found = rest;
      for (const edit of records) apply(edit, edits);
      // the first record lists all tables; those that come later have higher numbers than the manifest
      if (records.length > 0) madeAs = numberOf(file);
    }
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall !== undefined && code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
  }
  const { tables, removed, firstLog, previousLog } = edits;
  return {
    badAt: found.badAt,
    // CURRENT names a manifest when its first records are there, one of which names a log
    isCutOff: found.isCutOff && firstLog !== Infinity,
    file,
    tables,
    isReplayed: (log) => log >= firstLog || log === previousLog,
    firstLog: firstLog === 0 || firstLog === Infinity ? undefined : firstLog,
    isObsolete: (table) => !tables.has(table) && (removed.has(table) || table < madeAs)
  };
}

/** The manifest of a folder whose CURRENT may be lost: then the newest one. */
export async function lastManifest(folder: string): Promise<Manifest> {
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
    const tag = reader.varint();
    if (tag === 1)
      reader.skip(reader.varint()); // order of keys
    else if (tag === 5) {
      reader.varint(); // where the next compaction of a level begins
      reader.skip(reader.varint());
    } else if (tag === 6) {
      reader.varint();
      const table = reader.varint();
      tables.delete(table);
      removed.add(table);
    } else if (tag === 7) {
      reader.varint();
      tables.set(reader.varint(), reader.varint());
      reader.skip(reader.varint());
      reader.skip(reader.varint());
    } else if (tag === 2) edits.firstLog = reader.varint();
    else if (tag === 9) edits.previousLog = reader.varint();
    else if (tag === 3 || tag === 4) reader.varint();
    else throw new Error(`a change of kind ${tag}`);
  }
}
