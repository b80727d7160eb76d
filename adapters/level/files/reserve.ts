import { randomFillSync } from 'node:crypto';
import { open, stat, statfs, truncate } from 'node:fs/promises';
import { join } from 'node:path';
// imported by name, so that fake timers do not replace them
import { clearInterval, setInterval } from 'node:timers';

const NAME = 'RESERVE';
/** Default size of the reserve, unless the file system is small. */
const MAX_BYTES = 67_108_864;
/** The default is at most this fraction (one fifth) of the file system. */
const FILE_SYSTEM_SHARE = 5;
/** The file is created when less than this many times the reserve is free. */
const CREATE_BELOW_TIMES = 16;
/** This fraction of the reserve (one quarter) is for opening the folder: commits that would take it are refused. */
const OPENING_SHARE = 4;
/**
 * When LevelDB opens a folder, it converts its last two logs, of 4 MB each, into tables. At least this is kept for opening, but at most
 * half of the reserve.
 */
const OPENING_BYTES = 8_388_608;
/** A compaction writes this much before LevelDB deletes the replaced tables: twice the range that is compacted at a time. */
const COMPACTION_BYTES = 33_554_432;
const CHUNK_BYTES = 1_048_576;
const CHECK_EVERY_MS = 1_000;
const CHECK_EVERY_BYTES = 1_048_576;
/** While the reserve is not needed yet, the free space is checked after this fraction of it has been written. */
const CHECK_EVERY_FRACTION = 256;
/** A commit takes space twice: in the log, and in the table that the log becomes. */
const COMMIT_COST_FACTOR = 2;
/** After a failed commit the file does not grow for this long: a quota may be exhausted while the file system reports free space. */
const REGROW_AFTER_MS = 60_000;

/** Sizes in bytes at one moment. */
interface Space {
  /** Free space of the file system. */
  readonly available: number;
  /** Size of the file RESERVE. */
  readonly fileBytes: number;
  /** Size that the file should have. */
  readonly reserve: number;
}

/**
 * The file RESERVE, which keeps disk space for a store. It contains random bytes, which no file system compresses, so the space is really
 * allocated. On a full disk the file shrinks as far as commits, compactions and opening the folder need it, and grows again when there is
 * space.
 */
export class Reserve {
  readonly #folder: string;
  readonly #file: string;
  readonly #configuredBytes: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The last change of the file; changes run one after the other. */
  #lastChange: Promise<unknown> = Promise.resolve();
  /** How many operations need the whole reserve at the moment. */
  #users = 0;
  #regrowAtMs = 0;
  /** Bytes that may be written before the free space is checked again. */
  #uncheckedBytes = CHECK_EVERY_BYTES;

  /** @param wanted size in bytes; undefined: 64 MB, at most a fifth of the file system */
  constructor(folder: string, wanted: number | undefined) {
    this.#folder = folder;
    this.#file = join(folder, NAME);
    this.#configuredBytes = wanted;
  }

  /** Adjust the size of the file now and once a second; to be called when the folder is open. */
  async start(): Promise<void> {
    this.#timer ??= setInterval(() => void this.#tryAdjust(), CHECK_EVERY_MS).unref();
    await this.#tryAdjust();
  }

  /** Stop adjusting; to be called before the folder is closed. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#lastChange;
  }

  /**
   * Release the space that opening the folder may need.
   * @param hasFailed a commit has failed: there is no space, whatever the file system reports
   */
  async release(hasFailed = false): Promise<void> {
    if (hasFailed) this.#regrowAtMs = performance.now() + REGROW_AFTER_MS;
    this.#users++;
    await this.#tryAdjust();
    this.#users--;
  }

  /** Release the space that an action may need, and take it again when the action has ended. */
  async releaseDuring<T>(action: () => Promise<T>): Promise<T> {
    this.#users++;
    try {
      await this.#tryAdjust();
      return await action();
    } finally {
      this.#users--;
      // at once, before another program takes the free space; but nothing is written once the folder is closed
      if (this.#timer !== undefined) await this.#tryAdjust();
    }
  }

  /**
   * Check that there is space for a commit. A commit that fails leaves a part of itself in LevelDB's log, so a commit that would take the
   * space for opening the folder is refused before LevelDB sees it.
   * @param bytes size of the commit
   * @returns undefined if no check is due; else a promise that rejects with ENOSPC. A check is due after a megabyte or a 256th of the free
   * space, and for each commit while space is short
   */
  beforeWrite(bytes: number): Promise<void> | undefined {
    this.#uncheckedBytes -= bytes;
    return this.#uncheckedBytes >= 0 ? undefined : this.#checkSpace(bytes * COMMIT_COST_FACTOR);
  }

  async #checkSpace(neededBytes: number): Promise<void> {
    const space = await this.#adjust(neededBytes).catch(() => undefined);
    if (space === undefined || space.reserve === 0) return;
    if (space.free + space.reserve - neededBytes >= openingBytes(space.reserve)) return;
    const message = `No space left on device: the rest of ${this.#file} is reserved for opening the store`;
    throw Object.assign(new Error(message), { code: 'ENOSPC' });
  }

  /** Bytes that may be written before the reserve is used; negative while it is in use. @throws Error from the file system */
  async freeBytes(): Promise<number> {
    return (await this.#adjust(0)).free;
  }

  /** Adjust the size of the file, and ignore errors of the file system. */
  async #tryAdjust(): Promise<void> {
    await this.#adjust(0).catch(() => {});
  }

  #adjust(neededBytes: number): Promise<{ free: number; reserve: number }> {
    return this.#inTurn(async () => {
      const space = await this.#readSpace().catch((error: unknown) => {
        this.#uncheckedBytes = CHECK_EVERY_BYTES;
        throw error;
      });
      const { available, fileBytes, reserve } = space;
      const total = available + fileBytes;
      this.#uncheckedBytes = uncheckedBytes(space);
      const isTooMuch = neededBytes + openingBytes(reserve) > total;
      await this.#resize(available, fileBytes, reserve, isTooMuch ? 0 : neededBytes);
      return { free: total - reserve, reserve };
    });
  }

  async #readSpace(): Promise<Space> {
    const { bavail, blocks, bsize } = await statfs(this.#folder);
    const { size } = await stat(this.#file).catch(() => ({ size: 0 }));
    const reserve = this.#configuredBytes ?? Math.min(MAX_BYTES, Math.floor((blocks * bsize) / FILE_SYSTEM_SHARE));
    return { available: bavail * bsize, fileBytes: size, reserve };
  }

  async #resize(available: number, fileBytes: number, reserve: number, neededBytes: number): Promise<void> {
    const total = available + fileBytes;
    if (fileBytes === 0 && total >= CREATE_BELOW_TIMES * reserve) return;
    const wanted = Math.max(0, Math.min(reserve, this.#targetBytes(total, reserve, neededBytes)));
    // space released without need would be taken by another program that fills the disk
    const isNeeded = this.#users > 0 || neededBytes > 0;
    if (wanted < fileBytes && isNeeded) await truncate(this.#file, wanted);
    else if (this.#users === 0 && (wanted === reserve || wanted - fileBytes >= reserve / CREATE_BELOW_TIMES))
      await this.#grow(fileBytes, wanted);
  }

  /** Compute the target size of the file. Half of the space for opening the folder stays in it until the folder is opened. */
  #targetBytes(total: number, reserve: number, neededBytes: number): number {
    if (performance.now() < this.#regrowAtMs) return 0;
    if (this.#users > 0) return total - Math.max(reserve, COMPACTION_BYTES);
    const opening = openingBytes(reserve);
    return Math.max(Math.min(total, opening / 2), total - Math.max(neededBytes, opening));
  }

  async #grow(fileBytes: number, wanted: number): Promise<void> {
    if (wanted === fileBytes) return;
    const file = await open(this.#file, 'a');
    try {
      const chunk = randomFillSync(Buffer.allocUnsafe(CHUNK_BYTES));
      for (let at = fileBytes; at < wanted; at += chunk.length) await file.appendFile(chunk.subarray(0, wanted - at));
    } catch (error) {
      await file.truncate(fileBytes);
      throw error;
    } finally {
      await file.close();
    }
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#lastChange.then(change);
    this.#lastChange = done.catch(() => {});
    return done;
  }
}

/** Bytes of the reserve that commits leave for opening the folder. */
function openingBytes(reserve: number): number {
  return Math.min(reserve / 2, Math.max(reserve / OPENING_SHARE, OPENING_BYTES));
}

/**
 * Bytes that may be written before the next check: none if little space is free outside the file, or less than half of the reserve in all.
 */
function uncheckedBytes({ available, fileBytes, reserve }: Space): number {
  if (reserve === 0) return CHECK_EVERY_BYTES;
  const opening = openingBytes(reserve);
  const left = Math.min(available + fileBytes - reserve / 2, Math.min(available, opening) - opening / 2);
  const least = Math.min(CHECK_EVERY_BYTES, left / COMMIT_COST_FACTOR);
  return available < CREATE_BELOW_TIMES * reserve ? least : Math.max(least, available / CHECK_EVERY_FRACTION);
}
