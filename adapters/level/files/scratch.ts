import { copyFile, link, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder, namesIn } from './folder.ts';

/** LevelDB reads these files and removes their names, but never writes into an existing one. So links are safe. */
const LINKED_NAMES = /^\d+\.(ldb|sst|log)$/;
/** Small files that LevelDB replaces. */
const COPIED_NAMES = /^(CURRENT|CLOSED|MANIFEST-\d+)$/;

/**
 * Create a folder that LevelDB can open in place of another one, which stays unchanged.
 *
 * It contains links to tables and logs (hard links, or symbolic links across file systems) and copies of the small files.
 * @param scratch the parent of the new folder, created if it does not exist
 * @returns path of the new folder; `removeLinks` deletes it
 * @throws Error from the file system
 */
export async function linkFolder(folder: string, scratch: string): Promise<string> {
  await makeFolder(resolve(scratch));
  const linked = await mkdtemp(join(resolve(scratch), 'embermq-'));
  try {
    for (const name of await namesIn(folder)) {
      const [from, to] = [join(folder, name), join(linked, name)];
      if (LINKED_NAMES.test(name)) await link(from, to).catch(() => symlink(from, to));
      else if (COPIED_NAMES.test(name)) await copyFile(from, to);
    }
  } catch (error) {
    await removeLinks(linked);
    throw error;
  }
  return linked;
}

/** Delete a folder made by `linkFolder`; the linked files stay. */
export async function removeLinks(linked: string): Promise<void> {
  await rm(linked, { recursive: true, force: true });
}
