import { readdirSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * What the file OWNER says of a folder while a process has it: the process, its start, and the folder, so that of a dead process, of a
 * later one with the same id, and in a copy of the folder it says nothing.
 */
export async function claimOf(pid: number, folder: string): Promise<string> {
  return `${pid}\n${await startOf(pid)}\n${await identityOf(folder)}\n`;
}

/** The process that has a folder by what its file OWNER says; undefined: none, or this system does not tell (there is no /proc). */
export async function ownerOf(folder: string, owner: string, lock: string): Promise<number | undefined> {
  const claim = await readFile(owner, 'utf8').catch(() => '');
  const pid = Number.parseInt(claim, 10);
  const isAlive = claim !== '' && claim === (await claimOf(pid, folder).catch(() => ''));
  return isAlive && hasOpen(pid, await identityOf(lock).catch(() => '')) ? pid : undefined;
}

export async function identityOf(path: string): Promise<string> {
  const { dev, ino } = await stat(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** In which life of the machine a process was started, and when in it; empty when it is dead or the system does not tell. */
async function startOf(pid: number): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  // behind the name of its program, in which anything may be: its state, which is the third field
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const isDead = text === '' || /[ZX]/.test(fields[0]);
  return isDead ? '' : `${boot.trim()} ${fields[19]}`;
}

/** Whether a process has a file open; what nobody may see (the process is another user's, or has more rights) counts as open. */
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
