import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from './folder.ts';
import { findLogDamage } from './log.ts';
import { readManifest } from './manifest.ts';
import { findTableDamage } from './table.ts';

/** A damaged or missing file of LevelDB. */
export interface Damage {
  readonly file: string;
  /** The fault, as part of an error message; undefined if the file is missing. */
  readonly why: string | undefined;
  /** For a table, the offset of the type byte behind each bad block; empty if no block of the file can be saved. */
  readonly blockEnds: readonly number[];
}

/**
 * Read the tables and logs that make up a database, and verify the checksums that LevelDB has written.
 *
 * LevelDB does not verify those of tables: it returns the content of a damaged block, omits unreadable records, or
 * aborts the process. In a log it skips a bad record and all that follow within 32 KiB, and then deletes the log. It
 * does not notice that a log is missing.
 * @param known names of tables that need no check; tables found sound are added, because LevelDB never changes a table
 * nor reuses its name
 */
export async function findDamage(folder: string, known: Set<string>): Promise<Damage[]> {
  const { tables, isReplayed, firstLog, file, badAt, isTruncated } = await readManifest(folder);
  const files = await numberedFiles(folder);
  const damages: Damage[] = [];
  const buffer = { bytes: Buffer.alloc(0) };
  const isThere = (wanted: number, isLog: boolean) =>
    files.some(({ name, number }) => number === wanted && name.endsWith('.log') === isLog);
  if (firstLog !== undefined && !isThere(firstLog, true)) damages.push(missing(firstLog, 'log'));
  for (const table of tables.keys()) if (!isThere(table, false)) damages.push(missing(table, 'ldb'));
  // LevelDB deletes files only after the manifest names their replacements: if none is missing, the lost end was never written
  if (file !== undefined && badAt !== undefined && (!isTruncated || damages.length > 0))
    damages.unshift({ file, why: `its record at byte ${badAt} is corrupt`, blockEnds: [] });
  for (const { name, number } of files) {
    const bytes = tables.get(number);
    const isLog = name.endsWith('.log');
    if (isLog ? !isReplayed(number) : bytes === undefined || known.has(name)) continue;
    const damage = await findDamageIn(folder, name, isLog ? undefined : bytes, buffer);
    if (damage !== undefined) damages.push(damage);
    else if (!isLog) known.add(name);
  }
  return damages;
}

function missing(number: number, extension: string): Damage {
  return { file: `${String(number).padStart(6, '0')}.${extension}`, why: undefined, blockEnds: [] };
}

/** Verify all tables in a folder, whether or not the manifest names them. */
export async function findDamagedTables(folder: string): Promise<Damage[]> {
  const damages: Damage[] = [];
  const buffer = { bytes: Buffer.alloc(0) };
  for (const { name } of await numberedFiles(folder)) {
    const damage = name.endsWith('.log') ? undefined : await findDamageIn(folder, name, undefined, buffer);
    if (damage !== undefined) damages.push(damage);
  }
  return damages;
}

/** List the tables and logs in a folder, oldest first. */
export async function numberedFiles(folder: string): Promise<{ name: string; number: number }[]> {
  const found = (await namesIn(folder)).filter((name) => /^\d+\.(ldb|sst|log)$/.test(name));
  return found.map((name) => ({ name, number: Number.parseInt(name, 10) })).sort((a, b) => a.number - b.number);
}

/**
 * @param bytes expected size of the file; undefined if unknown
 * @param buffer memory that is reused for one file after the other
 */
async function findDamageIn(
  folder: string,
  name: string,
  bytes: number | undefined,
  buffer: { bytes: Buffer }
): Promise<Damage | undefined> {
  const file = await open(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
  if (file === undefined) return undefined; // deleted just now by another process that has the folder
  try {
    const stats = await file.stat();
    const { size } = stats;
    // reading a folder would fail with an error that does not name it
    if (stats.isDirectory()) throw new Error(`EISDIR: ${join(folder, name)} is a folder`);
    if (bytes !== undefined && size !== bytes)
      return { file: name, why: `it has ${size} bytes instead of ${bytes}`, blockEnds: [] };
    if (buffer.bytes.length < size) buffer.bytes = Buffer.allocUnsafeSlow(size);
    const content = await readFully(file, buffer.bytes.subarray(0, size));
    const damage = name.endsWith('.log') ? findLogDamage(content) : findTableDamage(content);
    return damage && { file: name, blockEnds: [], ...damage };
  } finally {
    await file.close();
  }
}

async function readFully(file: FileHandle, content: Buffer): Promise<Buffer> {
  const size = content.length;
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(content, at, size - at, at);
    if (bytesRead === 0) return content.subarray(0, at);
    at += bytesRead;
  }
  return content;
}
