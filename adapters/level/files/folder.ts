import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Create a folder and its parents.
 *
 * Node's recursive `mkdir` never ends below a folder such as /proc, where the system reports ENOENT for a folder that cannot be created.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent);
  await mkdir(path).catch(async (error: NodeJS.ErrnoException) => {
    // another process may have created it meanwhile
    if (error.code !== 'EEXIST' || !(await isFolder(path))) throw error;
  });
}

/**
 * List the names in a folder; an empty list if the folder does not exist.
 * @throws Error from the file system for any other failure: an unreadable folder is not an empty one
 */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
}

/** Bytes of LevelDB's logs in a folder. */
export async function logBytesIn(folder: string): Promise<number> {
  const logs = (await namesIn(folder)).filter((name) => /^\d+\.log$/.test(name));
  // LevelDB may delete one meanwhile
  const sizes = await Promise.all(logs.map((name) => stat(join(folder, name)).catch(() => undefined)));
  return sizes.reduce((sum, found) => sum + (found?.size ?? 0), 0);
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false
  );
}
