import { randomFillSync } from 'node:crypto';
import { open, stat, statfs, truncate } from 'node:fs/promises';
import { join } from 'node:path';
// By name from this module they are out of the reach of fake timers.
import { clearInterval, setInterval } from 'node:timers';

const NAME = 'RESERVE';
const MOST_BYTES = 67_108_864;
/** Of a file system, by default. */
const SHARE = 5;
/** The file is made when less than so many times the reserve is free: until then nobody needs it. */
const NEAR = 16;
/** This share of the reserve is kept for opening the folder: commits that would take it are refused. */
const OPENING_SHARE = 4;
/** LevelDB writes its last two logs, of 4 MB each, into tables when it opens a folder. At least so much is kept, but at most half of the reserve. */
const OPENING_BYTES = 8_388_608;
/** A compaction writes so much before LevelDB deletes what it replaces: twice the range that is compacted at once. */
const COMPACTION_BYTES = 33_554_432;
const WRITTEN_AT_ONCE = 1_048_576;
const LOOK_EVERY_MS = 1_000;
const LOOK_EVERY_BYTES = 1_048_576;
/** After this share of what is free, while the reserve is not needed yet. */
const LOOK_EVERY_SHARE = 256;
/** What a commit takes: in the log, and in the table that is made of it. */
const TAKEN_TIMES = 2;
/** After a commit that failed: a quota may have no room where the file system says there is. */
const TAKEN_AGAIN_MS = 60_000;

/** Bytes, as of one look. */
interface Space {
  /** What the file system has left. */
  readonly available: number;
  /** The size of the file. */
  readonly fileBytes: number;
  /** What the file should have. */
  readonly reserve: number;
}

/**
 * Space that a store keeps for itself in the file RESERVE: filled with bytes that no file system compresses, so it is really taken. When the
 * disk is full, the file shrinks as far as commits, compactions and opening the folder need it, and grows again when there is room.
 */
export class Reserve {
  readonly #folder: string;
  readonly #file: string;
  readonly #wanted: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Changes of the file wait for each other. */
  #lastChange: Promise<unknown> = Promise.resolve();
  /** How many need all of it at the moment. */
  #users = 0;
  #takenAgainAt = 0;
  /** Bytes that may be written before the room has to be looked at. */
  #uncheckedBytes = LOOK_EVERY_BYTES;

  /** @param wanted bytes; undefined: a share of the file system */
  constructor(folder: string, wanted: number | undefined) {
    this.#folder = folder;
    this.#file = join(folder, NAME);
    this.#wanted = wanted;
  }

  /** The folder is open: look once a second from now on. */
  async start(): Promise<void> {
    this.#timer ??= setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
    await this.#look();
  }

  /** Before it is closed. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#lastChange;
  }

  /** Give all of it back when there is less room on the disk than that. @param hasFailed there is none, whatever the file system says */
  async makeRoom(hasFailed = false): Promise<void> {
    if (hasFailed) this.#takenAgainAt = performance.now() + TAKEN_AGAIN_MS;
    this.#users++;
    await this.#look();
    this.#users--;
  }

  /** Give all of it back while something is carried out that needs room. */
  async during<T>(use: () => Promise<T>): Promise<T> {
    this.#users++;
    try {
      await this.#look();
      return await use();
    } finally {
      this.#users--;
      await this.#look(); // at once, before another program takes what is free now
    }
  }

  /**
   * So many bytes are about to be written. A commit that does not fit leaves a part of itself in LevelDB's log, so one that would take the last
   * of the reserve is refused before that: a folder needs it to be opened.
   * @returns what has to be waited for, once in a megabyte or in a 256th of what is free, and for each commit when the room is scarce; it
   * rejects with ENOSPC
   */
  before(bytes: number): Promise<void> | undefined {
    this.#uncheckedBytes -= bytes;
    return this.#uncheckedBytes >= 0 ? undefined : this.#checkRoom(bytes * TAKEN_TIMES);
  }

  async #checkRoom(neededBytes: number): Promise<void> {
    const found = await this.#settled(neededBytes).catch(() => undefined);
    if (found === undefined || found.reserve === 0) return;
    if (found.free + found.reserve - neededBytes >= forOpening(found.reserve)) return;
    const message = `No space left on device: the rest of ${this.#file} is kept for opening the store`;
    throw Object.assign(new Error(message), { code: 'ENOSPC' });
  }

  /** Bytes that may be written before it is touched; negative when it is in use. @throws what the system says */
  async freeBytes(): Promise<number> {
    return (await this.#settled(0)).free;
  }

  /** What the system says against it does not matter here. */
  async #look(): Promise<void> {
    await this.#settled(0).catch(() => {});
  }

  #settled(neededBytes: number): Promise<{ free: number; reserve: number }> {
    return this.#inTurn(async () => {
      const space = await this.#space().catch((error: unknown) => {
        this.#uncheckedBytes = LOOK_EVERY_BYTES;
        throw error;
      });
      const { available, fileBytes, reserve } = space;
      const all = available + fileBytes;
      this.#uncheckedBytes = uncheckedBytes(space);
      const isTooMuch = neededBytes + forOpening(reserve) > all;
      await this.#settle(available, fileBytes, reserve, isTooMuch ? 0 : neededBytes);
      return { free: all - reserve, reserve };
    });
  }

  async #space(): Promise<Space> {
    const { bavail, blocks, bsize } = await statfs(this.#folder);
    const { size } = await stat(this.#file).catch(() => ({ size: 0 }));
    const reserve = this.#wanted ?? Math.min(MOST_BYTES, Math.floor((blocks * bsize) / SHARE));
    return { available: bavail * bsize, fileBytes: size, reserve };
  }

  async #settle(available: number, fileBytes: number, reserve: number, neededBytes: number): Promise<void> {
    const all = available + fileBytes;
    if (fileBytes === 0 && all >= NEAR * reserve) return;
    const wanted = Math.max(0, Math.min(reserve, this.#wantedOf(all, reserve, neededBytes)));
    // what is given up without need is taken by another program that fills the disk
    const isNeeded = this.#users > 0 || neededBytes > 0;
    if (wanted < fileBytes && isNeeded) await truncate(this.#file, wanted);
    else if (this.#users === 0 && (wanted === reserve || wanted - fileBytes >= reserve / NEAR))
      await this.#grow(fileBytes, wanted);
  }

  /** How large the file should be; half of what is kept for opening the folder stays in it until the folder is opened. */
  #wantedOf(all: number, reserve: number, neededBytes: number): number {
    if (performance.now() < this.#takenAgainAt) return 0;
    if (this.#users > 0) return all - Math.max(reserve, COMPACTION_BYTES);
    const opening = forOpening(reserve);
    return Math.max(Math.min(all, opening / 2), all - Math.max(neededBytes, opening));
  }

  async #grow(fileBytes: number, wanted: number): Promise<void> {
    if (wanted === fileBytes) return;
    const file = await open(this.#file, 'a');
    try {
      const part = randomFillSync(Buffer.allocUnsafe(WRITTEN_AT_ONCE));
      for (let at = fileBytes; at < wanted; at += part.length) await file.appendFile(part.subarray(0, wanted - at));
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

/** What commits leave for opening the folder. */
function forOpening(reserve: number): number {
  return Math.min(reserve / 2, Math.max(reserve / OPENING_SHARE, OPENING_BYTES));
}

/** How much may be written before the next check: nothing when little is left outside the file, or less than half of the reserve with it. */
function uncheckedBytes({ available, fileBytes, reserve }: Space): number {
  if (reserve === 0) return LOOK_EVERY_BYTES;
  const opening = forOpening(reserve);
  const left = Math.min(available + fileBytes - reserve / 2, Math.min(available, opening) - opening / 2);
  const least = Math.min(LOOK_EVERY_BYTES, left / TAKEN_TIMES);
  return available < NEAR * reserve ? least : Math.max(least, available / LOOK_EVERY_SHARE);
}
