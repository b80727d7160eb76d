import { randomFillSync } from 'node:crypto';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FILE_MODE, makeFolder, namesIn } from './folder.ts';
import { hasSoundFirstRecord } from './log.ts';
import { readManifest } from './manifest.ts';
import { obsoleteTables } from './obsolete.ts';
import { findDamagedTables } from './tables.ts';

/** A block type that does not exist: LevelDB skips such a block and logs this, regardless of its content. */
const INVALID_BLOCK_TYPE = 0xff;
/** File that is written to test for free space. LevelDB deletes a file of this name when it opens the folder. */
const TRIAL = '000000.dbtmp';
const TRIAL_CHUNK_BYTES = 1_048_576;
/** Bytes that a table takes in a manifest, at most. */
const MANIFEST_ENTRY_BYTES = 512;

/**
 * Repair a damaged folder, so that it can be opened again.
 *
 * Bad blocks of tables are marked so that LevelDB skips them. Files of which nothing can be saved are moved into its
 * folder `lost`. Then LevelDB's repair builds a new manifest. If that fails, all sound files still exist, and the
 * folder is refused until a repair succeeds.
 * @throws Error LEVEL_LOCKED; other errors of LevelDB and the file system
 */
export async function repairFolder(folder: string): Promise<void> {
  const { Level } = (await import('level')) as unknown as { Level: { repair(location: string): Promise<void> } };
  await makeFolder(folder); // in a missing folder, LevelDB would report missing files
  await checkUnlocked(folder);
  const damages = await findDamagedTables(folder);
  const damaged = new Set(damages.map(({ file }) => file));
  await checkSpace(folder, damaged);
  const lost = join(folder, 'lost');
  for (const { file, blockEnds } of damages) {
    if (blockEnds.length === 0) {
      await makeFolder(lost);
      await rename(join(folder, file), join(lost, file));
      continue;
    }
    const table = await open(join(folder, file), 'r+');
    try {
      for (const end of blockEnds) await table.write(Buffer.of(INVALID_BLOCK_TYPE), 0, 1, end);
    } finally {
      await table.close();
    }
  }
  // LevelDB includes every table that it finds, so records deleted since would come back
  for (const name of await obsoleteTables(folder, damaged)) {
    await makeFolder(lost);
    await rename(join(folder, name), join(lost, name));
  }
  const files = (await namesIn(folder)).filter(isNumberedFile);
  const logs = await countFullLogs(folder, files);
  // without CURRENT the folder is refused until LevelDB has written a new one
  await rm(join(folder, 'CURRENT'), { force: true });
  try {
    await Level.repair(folder);
    await checkResult(folder, files, damaged, logs);
  } catch (error) {
    await rm(join(folder, 'CURRENT'), { force: true });
    const [present, moved] = [await namesIn(folder), await namesIn(lost)];
    for (const name of files)
      if (!present.includes(name) && moved.includes(name)) await rename(join(lost, name), join(folder, name));
    throw error;
  }
}

/**
 * Check that the disk has space for what the repair writes: logs as tables, the readable part of damaged tables, a manifest. LevelDB's
 * repair does not fail on a full disk, but moves the files into `lost` with all their records.
 * @throws Error from the file system, such as ENOSPC
 */
async function checkSpace(folder: string, damaged: ReadonlySet<string>): Promise<void> {
  let bytes = TRIAL_CHUNK_BYTES;
  for (const name of (await namesIn(folder)).filter(isNumberedFile)) {
    bytes += MANIFEST_ENTRY_BYTES;
    const isLog = name.endsWith('.log');
    // small records take more space in a table than in a log
    if (isLog || damaged.has(name)) bytes += (await stat(join(folder, name))).size * (isLog ? 2 : 1);
  }
  const part = randomFillSync(Buffer.allocUnsafe(TRIAL_CHUNK_BYTES)); // which a file system cannot compress
  const trial = await open(join(folder, TRIAL), 'w', FILE_MODE);
  try {
    for (let at = 0; at < bytes; at += part.length) await trial.appendFile(part);
    await trial.sync();
  } finally {
    await trial.close();
    await rm(join(folder, TRIAL));
  }
}

/** Count the logs that LevelDB must convert into a table. */
async function countFullLogs(folder: string, files: readonly string[]): Promise<number> {
  let count = 0;
  for (const name of files)
    if (name.endsWith('.log') && hasSoundFirstRecord(await readFile(join(folder, name)))) count++;
  return count;
}

/**
 * Check that LevelDB's repair has saved all sound files, because it reports success even if single files fail.
 * @param files names of the tables and logs before the repair
 * @param logs number of logs that had to be converted into tables
 * @throws Error if a sound table or the content of a log is missing from the new manifest
 */
async function checkResult(
  folder: string,
  files: readonly string[],
  damaged: ReadonlySet<string>,
  logs: number
): Promise<void> {
  const { tables } = await readManifest(folder);
  const before = new Set(files.map((name) => Number.parseInt(name, 10)));
  const isInManifest = (name: string) => tables.has(Number.parseInt(name, 10));
  const missing = files.find((name) => !name.endsWith('.log') && !damaged.has(name) && !isInManifest(name));
  if (missing !== undefined) throw new Error(`LevelDB's repair left out file ${missing}, which is sound`);
  const made = [...tables.keys()].filter((number) => !before.has(number));
  if (made.length < logs) throw new Error("LevelDB's repair could not convert all logs into tables");
}

function isNumberedFile(name: string): boolean {
  return /^\d+\.(ldb|sst|log)$/.test(name);
}

/**
 * Check that no other process has a folder, without LevelDB reading its files: LevelDB takes the lock, and then refuses to open an existing
 * database.
 * @throws Error with the cause LEVEL_LOCKED
 */
export async function checkUnlocked(folder: string): Promise<void> {
  const { Level } = await import('level');
  const probe = new Level(folder, { errorIfExists: true, createIfMissing: false });
  await probe.open().catch((error: Error) => {
    if ((error.cause as { code?: string } | undefined)?.code === 'LEVEL_LOCKED') throw error;
  });
  await probe.close();
}
