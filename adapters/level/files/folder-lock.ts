import { type BigIntStats, statSync, unlinkSync } from 'node:fs';
import { readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FILE_MODE, namesIn } from './folder.ts';
import { claimOf, identityOf, ownerOf } from './owner.ts';

const CHECK_EVERY_MS = 1_000;

/**
 * Identities of the LOCK files of the folders that this process has open. LevelDB compares paths only: if it is asked for the same folder
 * by another path, the process loses its lock, because the system does not count locks.
 */
const LOCKS = new Set<string>();

/**
 * The last open or repair. They run sequentially, because the owner of a folder is unknown until LevelDB has opened it.
 */
let lastUse: Promise<void> = Promise.resolve();

/**
 * The two files that reserve a folder for one store, LOCK and OWNER.
 *
 * LevelDB locks the file LOCK. The system releases that lock when the process closes any descriptor of the file: after
 * the app has copied the folder, or after another thread or another copy of this package has asked for it. Therefore
 * the file OWNER also names the process.
 *
 * If LOCK is missing, the folder was deleted or moved. LevelDB does not notice, and continues to write into files that
 * can no longer be opened.
 */
export class FolderLock {
  readonly #folder: string;
  readonly #file: string;
  readonly #owner: string;
  readonly #newOwner: string;
  /** Identity of LOCK when the folder was opened; empty while it is closed. */
  #identity = '';
  /** Content of OWNER as this process wrote it, and the stamp of the file after that. */
  #claim = '';
  #stamp = '';
  #checkedAtMs = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, 'LOCK');
    this.#owner = join(folder, 'OWNER');
    this.#newOwner = `${this.#owner}.new`;
  }

  /**
   * Open or repair the folder while no other store of this process opens or repairs one.
   * @throws Error LEVEL_LOCKED if another store or process has the folder; errors of `action`
   */
  whileFree(action: () => Promise<void>): Promise<void> {
    const done = lastUse.then(async () => {
      await this.checkFree();
      await action();
    });
    lastUse = done.catch(() => {});
    return done;
  }

  /**
   * Check that no store has the folder; to be called before LevelDB is asked, because a process loses its lock when LevelDB refuses it a
   * folder that it has open.
   * @throws Error LEVEL_LOCKED, with the property `holder` for the error message
   */
  async checkFree(): Promise<void> {
    const isOpenHere = LOCKS.has(await identityOf(this.#file).catch(() => ''));
    const pid = isOpenHere ? process.pid : await ownerOf(this.#folder, this.#owner, this.#file);
    if (pid === undefined) return;
    const holder = pid === process.pid ? 'another store of this process' : 'another process';
    throw Object.assign(new Error(`${this.#folder} is in use`), { code: 'LEVEL_LOCKED', holder: `${holder} (${pid})` });
  }

  /**
   * Prepare OWNER under another name; to be called before LevelDB opens the folder, as it may take the last free space at once.
   * @throws Error ENOSPC or EDQUOT; `opened` reports other errors
   */
  async opening(): Promise<void> {
    this.#claim = await claimOf(process.pid, this.#folder);
    await writeFile(this.#newOwner, this.#claim, { mode: FILE_MODE }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOSPC' || error.code === 'EDQUOT') throw error;
    });
  }

  /** Put OWNER in its place; to be called after LevelDB has opened the folder. @throws Error from the file system */
  async opened(): Promise<void> {
    this.#checkedAtMs = performance.now();
    this.#identity = await identityOf(this.#file).catch(() => '');
    if (this.#identity !== '') LOCKS.add(this.#identity);
    await rename(this.#newOwner, this.#owner).catch(() => {});
    // another process that wants the folder may have replaced the prepared file
    if ((await readFile(this.#owner, 'utf8').catch(() => '')) !== this.#claim) {
      // an OWNER left behind may belong to another user, or be a broken symbolic link
      await unlink(this.#owner).catch(() => {});
      await writeFile(this.#owner, this.#claim, { mode: FILE_MODE });
    }
    this.#stamp = stampOf(await stat(this.#owner, { bigint: true }));
  }

  /** Delete what `opening` has prepared; to be called if LevelDB could not open the folder. */
  async notOpened(): Promise<void> {
    await unlink(this.#newOwner).catch(() => {});
  }

  /**
   * Delete OWNER; to be called after LevelDB has closed the folder. Synchronous, because another process may be about
   * to write the file.
   */
  closed(): void {
    try {
      if (stampOf(statSync(this.#owner, { bigint: true })) === this.#stamp) unlinkSync(this.#owner);
    } catch {
      // OWNER no longer counts: this process does not have LOCK open
    }
    this.#stamp = '';
    LOCKS.delete(this.#identity);
    this.#identity = '';
  }

  /** True if a second has passed since the last check. */
  get isCheckDue(): boolean {
    return performance.now() - this.#checkedAtMs >= CHECK_EVERY_MS;
  }

  /**
   * Check that the folder is still there and still belongs to this process. LOCK is not opened: closing it would release the lock.
   * @throws Error if LOCK or OWNER is missing or replaced
   */
  async check(): Promise<void> {
    this.#checkedAtMs = performance.now();
    const identity = await identityOf(this.#file).catch((cause: Error) => {
      const why = `its file ${this.#file} is missing (${cause.message}): the folder was deleted or moved while it was open`;
      throw new Error(`${why}. Move it back; until then, everything written would be lost`, { cause });
    });
    if (identity !== this.#identity) {
      const why = `its file ${this.#file} has been replaced: another folder is in this place`;
      throw new Error(`${why}. Move the original folder back; until then, everything written would be lost`);
    }
    const stamp = await stat(this.#owner, { bigint: true }).then(stampOf, () => '');
    if (stamp === this.#stamp) return;
    // the file was only touched, or the file system reports its time with varying precision
    if ((await readFile(this.#owner, 'utf8').catch(() => '')) === this.#claim) {
      this.#stamp = stamp;
      return;
    }
    const why = `its file ${this.#owner} is missing or has been replaced: another process has opened the folder`;
    throw new Error(`${why}. Stop one of the two processes; what both write would be lost`);
  }

  /** Check that a folder that was open before still has a database. @throws Error FOLDER_GONE if it is empty or missing */
  async checkRestored(): Promise<void> {
    if ((await namesIn(this.#folder)).includes('CURRENT')) return;
    const message = 'the folder was deleted or moved while it was open, and is not created again';
    throw Object.assign(new Error(message), { code: 'FOLDER_GONE' });
  }
}

/**
 * A stamp that shows whether a file has been written, without opening it: the process may have no free file descriptor.
 */
function stampOf({ dev, ino, mtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${mtimeNs}`;
}
