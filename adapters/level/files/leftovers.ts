import { type BigIntStats, statSync, unlinkSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readManifest } from './manifest.ts';
import { checkUnlocked } from './repair.ts';
import { numberedFiles } from './tables.ts';

/**
 * Delete the leftovers of failed writes in a closed folder.
 *
 * LevelDB deletes them as well, but only after it has written a new manifest, for which they may leave no space.
 * @throws Error with the cause LEVEL_LOCKED if another process has the folder; errors of the file system
 */
export async function removeLeftovers(folder: string): Promise<void> {
  const found = await findLeftovers(folder);
  if (found.length === 0) return;
  await checkUnlocked(folder);
  // synchronous, and only unchanged files: another process may be about to open the folder
  for (const { name, stats } of found) {
    const path = join(folder, name);
    if (isSame(statSync(path, { bigint: true, throwIfNoEntry: false }), stats)) unlinkSync(path);
  }
}

/** A file that a failed write has left. */
interface Leftover {
  readonly name: string;
  readonly stats: BigIntStats | undefined;
}

/**
 * Find the leftovers of failed writes in a closed folder: tables of incomplete compactions, logs that are not
 * replayed, and empty logs, one for each failed open.
 */
export async function findLeftovers(folder: string): Promise<Leftover[]> {
  const files = await numberedFiles(folder);
  const stats = await Promise.all(files.map(({ name }) => statOf(join(folder, name))));
  const { tables, isReplayed, firstLog, badAt, isTruncated } = await readManifest(folder);
  // LevelDB also treats a truncated end of the manifest as its end; anything else is reported by the checks
  if (firstLog === undefined || (badAt !== undefined && !isTruncated)) return [];
  const numbers = new Set(files.map(({ number }) => number));
  if ([...tables.keys()].some((table) => !numbers.has(table))) return [];
  const isLeftover = ({ name, number }: { name: string; number: number }, size = 1n) =>
    name.endsWith('.log') ? !isReplayed(number) || (size === 0n && number !== firstLog) : !tables.has(number);
  return files.flatMap((file, at) =>
    isLeftover(file, stats[at]?.size) ? [{ name: file.name, stats: stats[at] }] : []
  );
}

async function statOf(path: string): Promise<BigIntStats | undefined> {
  return stat(path, { bigint: true }).catch(() => undefined);
}

function isSame(now: BigIntStats | undefined, before: BigIntStats | undefined): boolean {
  return now !== undefined && now.ino === before?.ino && now.mtimeNs === before.mtimeNs && now.size === before.size;
}
