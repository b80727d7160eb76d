import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { levelStore } from '../../adapters/level/index.ts';
import { fill } from './filled-store.ts';

/** Make a folder with a closed store that has records of every kind. */
export async function fillFolder(folder: string): Promise<string> {
  await fill(levelStore(folder));
  return folder;
}

/** Names, sizes, times, modes and hashes of all files below a folder. */
export function stateOf(folder: string): unknown[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    const { size, mtimeNs, ctimeNs, nlink, mode, ino } = statSync(path, { bigint: true });
    const hash = entry.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : '';
    return [path, size, mtimeNs, ctimeNs, nlink, mode, ino, hash];
  });
}
