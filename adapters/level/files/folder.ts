import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Restricts a folder that the store creates to the user of the process, and thereby all files of LevelDB in it, which
 * have the mode of the umask.
 */
const FOLDER_MODE = 0o700;
/** The same for a file. */
export const FILE_MODE = 0o600;
const OTHERS = 0o077;

/**
 * Check whether other users may use a folder.
 * @returns a warning with the remedy; undefined if there is none, or the system has no file modes
 */
export async function exposureOf(folder: string): Promise<string | undefined> {
  if (process.platform === 'win32') return undefined;
  const { mode } = await stat(folder);
  if ((mode & OTHERS) === 0) return undefined;
  const shown = (mode & 0o777).toString(8).padStart(4, '0');
  return `other users of this machine may use the data folder ${folder} (mode ${shown}), which has messages, passwords and keys; protect it with: chmod 700 '${folder.replaceAll("'", "'\\''")}'`;
}

/**
 * Create a folder and its parents, for the user of the process only.
 *
 * Node's recursive `mkdir` never ends below a folder such as /proc, where the system reports ENOENT for a folder that
 * cannot be created.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent);
  await mkdir(path, FOLDER_MODE).catch(async (error: NodeJS.ErrnoException) => {
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
