import { readdirSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Build the content of the file OWNER: process id, start time of the process, identity of the folder.
 *
 * The content does not match for a dead process, for a later process with the same id, or in a copy of the folder.
 */
export async function claimOf(pid: number, folder: string): Promise<string> {
  return `${pid}\n${await startOf(pid)}\n${await identityOf(folder)}\n`;
}

/**
 * Find the process that has a folder open.
 * @param owner path of the file OWNER
 * @param lock path of the file LOCK
 * @returns its process id; undefined if there is none, or the system has no /proc
 */
export async function ownerOf(folder: string, owner: string, lock: string): Promise<number | undefined> {
  const claim = await readFile(owner, 'utf8').catch(() => '');
  const pid = Number.parseInt(claim, 10);
  const isAlive = claim !== '' && claim === (await claimOf(pid, folder).catch(() => ''));
  return isAlive && hasOpen(pid, await identityOf(lock).catch(() => '')) ? pid : undefined;
}

/** Identify a file or folder by device and inode. @throws Error from the file system, such as ENOENT */
export async function identityOf(path: string): Promise<string> {
  const { dev, ino } = await stat(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** Boot id of the machine and start time of a process since that boot; empty if the process is dead or the system has no /proc. */
async function startOf(pid: number): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  // the program name in parentheses may contain anything; the third field, the state, follows it
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const isDead = text === '' || /[ZX]/.test(fields[0]);
  return isDead ? '' : `${boot.trim()} ${fields[19]}`;
}

/**
 * Check whether a process has a file open. A process whose descriptors may not be read (of another user, or with more
 * rights) counts as having it open.
 */
function hasOpen(pid: number, identity: string): boolean {
  const descriptors = `/proc/${pid}/fd`;
  try {
    return readdirSync(descriptors).some((name) => {
      const file = statSync(join(descriptors, name), { bigint: true, throwIfNoEntry: false });
      return file !== undefined && `${file.dev}:${file.ino}` === identity;
    });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
