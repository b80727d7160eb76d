import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Make a folder and those above it. Node's recursive `mkdir` tries for ever below a folder where nothing can be made and the system
 * calls that ENOENT, as in /proc.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent);
  await mkdir(path).catch(async (error: NodeJS.ErrnoException) => {
    // another process may have made it meanwhile
    if (error.code !== 'EEXIST' || !(await isFolder(path))) throw error;
  });
}

/** Names in a folder; none where there is no folder. @throws what else keeps it from being read: not seeing a file is not its absence */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false
  );
}
