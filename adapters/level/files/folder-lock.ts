import { type BigIntStats, statSync, unlinkSync } from 'node:fs';
import { readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from './folder.ts';
import { claimOf, identityOf, ownerOf } from './owner.ts';

const LOOK_EVERY_MS = 1_000;

/** Locks of this process. LevelDB knows its own by their paths only, and loses one when it is asked for it again: the system does not count. */
const HELD = new Set<string>();

/** Until LevelDB has a folder nobody sees whose it will be: this process opens and repairs them one after the other. */
let lastUse: Promise<void> = Promise.resolve();

/**
 * The two files by which a store has a folder. By LOCK LevelDB has it, but the system takes that lock away when any descriptor of the file is
 * closed in the process: by a copy of the folder that the app makes, by another thread or another copy of this package that asks for the
 * folder. So OWNER says whose it is.
 * Both go with the folder, so their absence tells that what is written now has no place behind it: LevelDB goes on writing into files that
 * nobody can open any more, and does not notice.
 */
export class FolderLock {
  readonly #folder: string;
  readonly #file: string;
  readonly #owner: string;
  /** Of LOCK when the folder was opened. */
  #identity = '';
  /** What OWNER was made to say then, and of the file as it was after that. */
  #claim = '';
  #stamp = '';
  #lookedAtMs = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, 'LOCK');
    this.#owner = join(folder, 'OWNER');
  }

  /**
   * Open or repair the folder while no other store of this process does so with one.
   * @throws Error LEVEL_LOCKED when another store or process has the folder; what `use` throws
   */
  whileFree(use: () => Promise<void>): Promise<void> {
    const done = lastUse.then(async () => {
      await this.checkFree();
      await use();
    });
    lastUse = done.catch(() => {});
    return done;
  }

  /** Before LevelDB is asked for it: a process that LevelDB refuses its own folder has lost the lock. @throws Error LEVEL_LOCKED */
  async checkFree(): Promise<void> {
    const isHeldHere = HELD.has(await identityOf(this.#file).catch(() => ''));
    const pid = isHeldHere ? process.pid : await ownerOf(this.#folder, this.#owner, this.#file);
    if (pid === undefined) return;
    const holder = pid === process.pid ? 'another store of this process' : 'another process';
    throw Object.assign(new Error(`${this.#folder} is held`), { code: 'LEVEL_LOCKED', holder: `${holder} (${pid})` });
  }

  /** LevelDB has it. @throws Error when that can not be said in the folder */
  async opened(): Promise<void> {
    this.#lookedAtMs = performance.now();
    this.#identity = await identityOf(this.#file).catch(() => '');
    if (this.#identity !== '') HELD.add(this.#identity);
    // one that was left may be another user's, or lead nowhere
    await unlink(this.#owner).catch(() => {});
    this.#claim = await claimOf(process.pid, this.#folder);
    await writeFile(this.#owner, this.#claim);
    this.#stamp = stampOf(await stat(this.#owner, { bigint: true }));
  }

  /** LevelDB has given it up. OWNER is taken away at one go: the next one may just be writing its own. */
  closed(): void {
    try {
      if (stampOf(statSync(this.#owner, { bigint: true })) === this.#stamp) unlinkSync(this.#owner);
    } catch {
      // it says nothing any more: this process does not have LOCK open
    }
    this.#stamp = '';
    HELD.delete(this.#identity);
    this.#identity = '';
  }

  get isLookDue(): boolean {
    return performance.now() - this.#lookedAtMs >= LOOK_EVERY_MS;
  }

  /** Only by its name: whoever opens and closes the file gives up the lock of this process. @throws Error when it is not the same any more */
  async look(): Promise<void> {
    this.#lookedAtMs = performance.now();
    const identity = await identityOf(this.#file).catch((cause: Error) => {
      const why = `its file ${this.#file} is gone (${cause.message}): the folder was deleted or moved while it was open`;
      throw new Error(`${why}. Put it back; what is written meanwhile would be lost`, { cause });
    });
    if (identity !== this.#identity) {
      const why = `its file ${this.#file} is another one than when it was opened: the folder was replaced`;
      throw new Error(`${why}. Put back the one that was there; what is written meanwhile would be lost`);
    }
    const stamp = await stat(this.#owner, { bigint: true }).then(stampOf, () => '');
    if (stamp === this.#stamp) return;
    // it was only touched, or is on a file system that tells its time now in one way and now in another
    if ((await readFile(this.#owner, 'utf8').catch(() => '')) === this.#claim) {
      this.#stamp = stamp;
      return;
    }
    const why = `its file ${this.#owner} is gone or another one than when it was opened: another process has opened the folder`;
    throw new Error(`${why}. Stop one of the two; what both write would be lost`);
  }

  /** What was open must not begin anew. @throws Error FOLDER_GONE when the folder has lost what was in it */
  async checkBack(): Promise<void> {
    if ((await namesIn(this.#folder)).includes('CURRENT')) return;
    const text = 'it was deleted or moved while it was open, and is not made anew';
    throw Object.assign(new Error(text), { code: 'FOLDER_GONE' });
  }
}

/** It tells that a file was not written again, without reading it: for that one more would have to be open, of which there may be no more. */
function stampOf({ dev, ino, mtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${mtimeNs}`;
}
