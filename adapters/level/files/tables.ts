import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from './folder.ts';
import { damageOfLog } from './log.ts';
import { readManifest } from './manifest.ts';
import { damageOfTable } from './table.ts';

/** A file of LevelDB's that is not as it was written. */
export interface Damage {
  readonly file: string;
  /** What is wrong with it, for people; undefined: it is missing. */
  readonly why: string | undefined;
  /** Where the last byte of each bad block is; empty: of the file nothing can be saved. */
  readonly blockEnds: readonly number[];
}

/**
 * Read the tables and logs that make up a database and compare the checksums that LevelDB has written. It does not look at those of
 * tables: it hands out what such a block happens to say, leaves out what it cannot read, or ends the process by an assertion. Of a log it
 * passes over a bad record and all that follow within 32 KiB, and deletes it then; one that is missing it does not miss.
 * @param known names of tables that are sound; those that are found so are added. A table is never changed, nor its name given again
 */
export async function findDamage(folder: string, known: Set<string>): Promise<Damage[]> {
  const { tables, isReplayed, firstLog, file, badAt, isCutOff } = await readManifest(folder);
  const files = await numberedFiles(folder);
  const damages: Damage[] = [];
  const room = { bytes: Buffer.alloc(0) };
  const isThere = (wanted: number, isLog: boolean) =>
    files.some(({ name, number }) => number === wanted && name.endsWith('.log') === isLog);
  if (firstLog !== undefined && !isThere(firstLog, true)) damages.push(missing(firstLog, 'log'));
  for (const table of tables.keys()) if (!isThere(table, false)) damages.push(missing(table, 'ldb'));
  // LevelDB drops files when what replaces them is in the manifest: where all is there the end of it was never written
  if (file !== undefined && badAt !== undefined && (!isCutOff || damages.length > 0))
    damages.unshift({ file, why: `its record at byte ${badAt} is not as it was written`, blockEnds: [] });
  for (const { name, number } of files) {
    const bytes = tables.get(number);
    const isLog = name.endsWith('.log');
    if (isLog ? !isReplayed(number) : bytes === undefined || known.has(name)) continue;
    const damage = await damageIn(folder, name, isLog ? undefined : bytes, room);
    if (damage !== undefined) damages.push(damage);
    else if (!isLog) known.add(name);
  }
  return damages;
}

function missing(number: number, extension: string): Damage {
  return { file: `${String(number).padStart(6, '0')}.${extension}`, why: undefined, blockEnds: [] };
}

/** The same for all tables that are there, whatever they may be for. */
export async function findDamagedTables(folder: string): Promise<Damage[]> {
  const damages: Damage[] = [];
  const room = { bytes: Buffer.alloc(0) };
  for (const { name } of await numberedFiles(folder)) {
    const damage = name.endsWith('.log') ? undefined : await damageIn(folder, name, undefined, room);
    if (damage !== undefined) damages.push(damage);
  }
  return damages;
}

/** Tables and logs that are there, oldest first. */
export async function numberedFiles(folder: string): Promise<{ name: string; number: number }[]> {
  const found = (await namesIn(folder)).filter((name) => /^\d+\.(ldb|sst|log)$/.test(name));
  return found.map((name) => ({ name, number: Number.parseInt(name, 10) })).sort((a, b) => a.number - b.number);
}

/**
 * @param bytes how large the file should be, if anybody knows
 * @param room where files are read to, one after the other
 */
async function damageIn(
  folder: string,
  name: string,
  bytes: number | undefined,
  room: { bytes: Buffer }
): Promise<Damage | undefined> {
  const file = await open(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
  if (file === undefined) return undefined; // another process has the folder, and has just deleted it
  try {
    const { size } = await file.stat();
    if (bytes !== undefined && size !== bytes)
      return { file: name, why: `it has ${size} bytes and should have ${bytes}`, blockEnds: [] };
    if (room.bytes.length < size) room.bytes = Buffer.allocUnsafeSlow(size);
    const content = await filled(file, room.bytes.subarray(0, size));
    const damage = name.endsWith('.log') ? damageOfLog(content) : damageOfTable(content);
    return damage && { file: name, blockEnds: [], ...damage };
  } finally {
    await file.close();
  }
}

async function filled(file: FileHandle, content: Buffer): Promise<Buffer> {
  const size = content.length;
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(content, at, size - at, at);
    if (bytesRead === 0) return content.subarray(0, at);
    at += bytesRead;
  }
  return content;
}
