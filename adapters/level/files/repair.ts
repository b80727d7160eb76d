import { randomFillSync } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, namesIn } from './folder.ts';
import { beginsSound } from './log.ts';
import { readManifest } from './manifest.ts';
import { obsoleteTables } from './obsolete.ts';
import { findDamagedTables } from './tables.ts';

/** A kind of block that does not exist: LevelDB passes over such a block and says so, whatever it holds. */
const NO_KIND = 0xff;
/** LevelDB deletes a file of this name when it opens the folder. */
const TRIAL = '000000.dbtmp';
const TRIED_AT_ONCE = 1_048_576;
/** Of a table in a manifest, at most. */
const LISTED_BYTES = 512;

/**
 * Make a folder openable again: bad blocks are left out, files of which nothing can be saved go into the folder `lost` in it, and LevelDB
 * puts together what there is. Where that fails, all that was sound is still there, and the folder does not open until it was repaired.
 * @throws BrokerError STORE_LOCKED; what LevelDB and the disk say
 */
export async function repairFolder(folder: string): Promise<void> {
  const { Level } = (await import('level')) as unknown as { Level: { repair(location: string): Promise<void> } };
  await makeFolder(folder); // LevelDB would miss files in a folder that is not there
  await checkUnlocked(folder);
  const damages = await findDamagedTables(folder);
  const damaged = new Set(damages.map(({ file }) => file));
  await checkRoom(folder, damaged);
  const lost = join(folder, 'lost');
  for (const { file, blockEnds } of damages) {
    if (blockEnds.length === 0) {
      await mkdir(lost, { recursive: true });
      await rename(join(folder, file), join(lost, file));
      continue;
    }
    const table = await open(join(folder, file), 'r+');
    try {
      for (const end of blockEnds) await table.write(Buffer.of(NO_KIND), 0, 1, end);
    } finally {
      await table.close();
    }
  }
  // LevelDB takes in every table that it finds: records that were deleted since would come back
  for (const name of await obsoleteTables(folder, damaged)) {
    await mkdir(lost, { recursive: true });
    await rename(join(folder, name), join(lost, name));
  }
  const files = (await namesIn(folder)).filter(isKept);
  const logs = await fullLogs(folder, files);
  // until LevelDB has written it anew, nobody takes what is there for whole
  await rm(join(folder, 'CURRENT'), { force: true });
  try {
    await Level.repair(folder);
    await checkTaken(folder, files, damaged, logs);
  } catch (error) {
    await rm(join(folder, 'CURRENT'), { force: true });
    const [left, moved] = [await namesIn(folder), await namesIn(lost)];
    for (const name of files)
      if (!left.includes(name) && moved.includes(name)) await rename(join(lost, name), join(folder, name));
    throw error;
  }
}

/**
 * Whether the disk has room for what is written anew: logs as tables, what can be read of damaged tables, a manifest. LevelDB does not give
 * up where there is none: the files go into `lost` all the same, with all that is in them.
 * @throws what the disk says
 */
async function checkRoom(folder: string, damaged: ReadonlySet<string>): Promise<void> {
  let bytes = TRIED_AT_ONCE;
  for (const name of (await namesIn(folder)).filter(isKept)) {
    bytes += LISTED_BYTES;
    const isLog = name.endsWith('.log');
    // small records take more in a table
    if (isLog || damaged.has(name)) bytes += (await stat(join(folder, name))).size * (isLog ? 2 : 1);
  }
  const part = randomFillSync(Buffer.allocUnsafe(TRIED_AT_ONCE)); // nothing that the file system makes small
  const trial = await open(join(folder, TRIAL), 'w');
  try {
    for (let at = 0; at < bytes; at += part.length) await trial.appendFile(part);
    await trial.sync();
  } finally {
    await trial.close();
    await rm(join(folder, TRIAL));
  }
}

/** How many logs LevelDB has to make a table of. */
async function fullLogs(folder: string, files: readonly string[]): Promise<number> {
  let count = 0;
  for (const name of files) if (name.endsWith('.log') && beginsSound(await readFile(join(folder, name)))) count++;
  return count;
}

/**
 * LevelDB's repair succeeds whatever becomes of single files.
 * @param files that there were
 * @param logs how many of them had to become tables
 * @throws Error
 */
async function checkTaken(
  folder: string,
  files: readonly string[],
  damaged: ReadonlySet<string>,
  logs: number
): Promise<void> {
  const { tables } = await readManifest(folder);
  const before = new Set(files.map((name) => Number.parseInt(name, 10)));
  const isTaken = (name: string) => tables.has(Number.parseInt(name, 10));
  const left = files.find((name) => !name.endsWith('.log') && !damaged.has(name) && !isTaken(name));
  if (left !== undefined) throw new Error(`LevelDB could not take up its file ${left}, which is sound`);
  const made = [...tables.keys()].filter((number) => !before.has(number));
  if (made.length < logs) throw new Error('LevelDB could not write what is in its logs into tables');
}

function isKept(name: string): boolean {
  return /^\d+\.(ldb|sst|log)$/.test(name);
}

/**
 * See whether another process has a folder, without LevelDB's reading what is in it: it takes the lock, and then refuses a database that is there.
 * @throws what LevelDB says when it is locked
 */
export async function checkUnlocked(folder: string): Promise<void> {
  const { Level } = await import('level');
  const probe = new Level(folder, { errorIfExists: true, createIfMissing: false });
  await probe.open().catch((error: Error) => {
    if ((error.cause as { code?: string } | undefined)?.code === 'LEVEL_LOCKED') throw error;
  });
  await probe.close();
}
