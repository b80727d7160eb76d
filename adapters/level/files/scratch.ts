import { copyFile, link, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder, namesIn } from './folder.ts';

/** LevelDB reads these, and deletes their names when it has made others of them; it never writes into one that is there. */
const LINKED = /^\d+\.(ldb|sst|log)$/;
/** Small, and replaced by LevelDB. */
const COPIED = /^(CURRENT|CLOSED|MANIFEST-\d+)$/;

/**
 * Make a folder that LevelDB opens in place of another one, which stays as it is: links to its tables and logs (hard links on one file
 * system, symbolic links across), copies of the rest.
 * @param scratch where it is made; made with its parents if it is not there
 * @returns its path; `removeLinks` takes it away
 */
export async function linkFolder(folder: string, scratch: string): Promise<string> {
  await makeFolder(resolve(scratch));
  const linked = await mkdtemp(join(resolve(scratch), 'embermq-'));
  try {
    for (const name of await namesIn(folder)) {
      const [from, to] = [join(folder, name), join(linked, name)];
      if (LINKED.test(name)) await link(from, to).catch(() => symlink(from, to));
      else if (COPIED.test(name)) await copyFile(from, to);
    }
  } catch (error) {
    await removeLinks(linked);
    throw error;
  }
  return linked;
}

/** The files that are linked stay. */
export async function removeLinks(linked: string): Promise<void> {
  await rm(linked, { recursive: true, force: true });
}
