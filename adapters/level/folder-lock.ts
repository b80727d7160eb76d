import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from './folder.ts';

const LOOK_EVERY_MS = 1_000;

/** Locks of this process. LevelDB knows its own by their paths only, and loses one when it is asked for it again: the system does not count. */
const HELD = new Set<string>();

/** Until LevelDB has a folder nobody sees whose it will be: this process opens and repairs them one after the other. */
let lastUse: Promise<void> = Promise.resolve();

/**
 * The file by which LevelDB has a folder: it goes with the folder, so its absence tells that what is written now has no place behind it.
 * LevelDB goes on writing into files that nobody can open any more, and does not notice.
 */
export class FolderLock {
  readonly #folder: string;
  readonly #file: string;
  /** Of the file when the folder was opened. */
  #identity = '';
  #lookedAtMs = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, 'LOCK');
  }

  /**
   * Open or repair the folder while no other store of this process does so with one.
   * @throws Error LEVEL_LOCKED when another store of this process has the folder; what `use` throws
   */
  whileFree(use: () => Promise<void>): Promise<void> {
    const done = lastUse.then(async () => {
      await this.#checkFree();
      await use();
    });
    lastUse = done.catch(() => {});
    return done;
  }

  async #checkFree(): Promise<void> {
    const identity = await identityOf(this.#file).catch(() => '');
    if (identity !== this.#identity && HELD.has(identity))
      throw Object.assign(new Error(`${this.#file} is held`), { code: 'LEVEL_LOCKED' });
  }

  /** LevelDB has it. */
  async opened(): Promise<void> {
    this.#lookedAtMs = performance.now();
    this.#identity = await identityOf(this.#file).catch(() => '');
    if (this.#identity !== '') HELD.add(this.#identity);
  }

  /** LevelDB has given it up. */
  closed(): void {
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
    if (identity === this.#identity) return;
    const why = `its file ${this.#file} is another one than when it was opened: the folder was replaced`;
    throw new Error(`${why}. Put back the one that was there; what is written meanwhile would be lost`);
  }

  /** What was open must not begin anew. @throws Error FOLDER_GONE when the folder has lost what was in it */
  async checkBack(): Promise<void> {
    if ((await namesIn(this.#folder)).includes('CURRENT')) return;
    const text = 'it was deleted or moved while it was open, and is not made anew';
    throw Object.assign(new Error(text), { code: 'FOLDER_GONE' });
  }
}

async function identityOf(file: string): Promise<string> {
  const { dev, ino } = await stat(file, { bigint: true });
  return `${dev}:${ino}`;
}
