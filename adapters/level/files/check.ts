import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClosedMark } from './closed-mark.ts';
import { namesIn } from './folder.ts';
import { checkUnlocked } from './repair.ts';
import { findDamage } from './tables.ts';

/**
 * Verify the files of a folder by their checksums, and by the mark of the last clean stop if there is one.
 * @param sound names of tables that need no check; tables found sound are added
 * @throws Error LEVEL_CORRUPTION, which names the first damaged file; LEVEL_LOCKED when another process has the folder
 */
export async function checkFiles(path: string, sound: Set<string>, mark: ClosedMark): Promise<void> {
  const found = [...(await findDamage(path, sound)), ...(await mark.damages())];
  // a file that both checks report is named once
  const [damage, ...more] = found.filter(({ file }, at) => found.findIndex((other) => other.file === file) === at);
  if (damage === undefined) return;
  await checkUnlocked(path);
  const what = damage.why === undefined ? 'is missing' : `is damaged: ${damage.why}`;
  const others = more.length === 0 ? '' : `, and ${more.length} more files`;
  throw Object.assign(new Error(`its file ${damage.file} ${what}${others}`), { code: 'LEVEL_CORRUPTION' });
}

/**
 * Check that CURRENT exists if there are tables or logs, and names a manifest. Without CURRENT, LevelDB treats the
 * folder as new and deletes what is in it; if CURRENT names no manifest, LevelDB reports the system error for that
 * name.
 * @throws Error LEVEL_CORRUPTION
 */
export async function checkCurrent(path: string): Promise<void> {
  const names = await namesIn(path);
  const damaged = (why: string) => Object.assign(new Error(`its file CURRENT ${why}`), { code: 'LEVEL_CORRUPTION' });
  if (names.includes('CURRENT')) {
    const text = await readFile(join(path, 'CURRENT'), 'latin1');
    if (!/^MANIFEST-\d+\n$/.test(text)) throw damaged('is damaged: it names no manifest');
  } else if (names.some((name) => /^\d+\.(ldb|sst|log)$/.test(name))) throw damaged('is missing');
}
