// LevelDB needs space to open a folder and to compact it, and what a commit that failed has written stays in its log.
// So a file keeps disk space, of which parts are released for a purpose and taken again at once, before another
// program takes them: a share for opening, which is released for nothing else, and a share for small commits such as
// deletions, without which a full queue could never be drained. A commit that would use the share for opening is
// refused before LevelDB sees it. The file has random bytes, which no file system compresses. The free space is read
// only when it may have become short.

import { randomFillSync } from 'node:crypto';
import { open, stat, statfs, truncate } from 'node:fs/promises';
import { join } from 'node:path';
// imported by name, so that fake timers do not replace them
import { clearInterval, setInterval } from 'node:timers';
import { FILE_MODE, logBytesIn } from './folder.ts';

const NAME = 'RESERVE';
const MAX_BYTES = 67_108_864;
/** The default is at most this fraction (one fifth) of the file system. */
const FILE_SYSTEM_SHARE = 5;
/** The file is created when less than this many times the reserve is free. */
const CREATE_BELOW_TIMES = 16;
/**
 * One of these steps of the reserve is kept for a new manifest and log when the folder is opened, in addition to the
 * tables made from the logs.
 */
const STEPS = 16;
/**
 * This fraction of the reserve is kept for small commits, such as the deletions of delivered messages, and for the first commit after the
 * folder was opened, without which nothing else can be written.
 */
const DRAIN_SHARE = 8;
const SMALL_COMMIT_BYTES = 65_536;
/** A compaction writes this much before LevelDB deletes the replaced tables: twice the range that is compacted at a time. */
const COMPACTION_BYTES = 33_554_432;
/** LevelDB's default: it turns a log of this size into a table. */
const MAX_LOG_BYTES = 4_194_304;
const CHUNK_BYTES = 1_048_576;
const CHECK_EVERY_MS = 1_000;
const CHECK_EVERY_BYTES = 1_048_576;
/** While the reserve is not needed yet, the free space is checked after this fraction of it has been written. */
const CHECK_EVERY_FRACTION = 256;
/** A commit takes space twice: in the log, and in the table that the log becomes. */
const COMMIT_COST_FACTOR = 2;
/**
 * After repeated failures the file does not grow for this time: LevelDB's compactions need space, and a quota may be
 * exhausted unnoticed.
 */
const REGROW_AFTER_MS = 60_000;

/** The reason for adjusting the size of the file. */
type Purpose = 'check' | 'commit' | 'open' | 'openAgain' | 'openWithMore' | 'openWithAll';

/** The last value of `attempt` for which `Reserve.release` releases more than for the previous one. */
export const LAST_RELEASE = 2;
/** The first attempt after one that had too little space gets this many times as much for opening. */
const MORE = 4;

/** Sizes in bytes at one moment. */
interface Space {
  /** Free space of the file system. */
  readonly available: number;
  /** Size of the file RESERVE. */
  readonly fileBytes: number;
  /** Size that the file should have. */
  readonly reserve: number;
  /** Size of LevelDB's logs, which become tables when the folder is opened. */
  readonly logBytes: number;
}

/** Compute the size of LevelDB's logs: on a small file system its default of 4 MB would take most of the reserve. */
export async function logLimit(folder: string): Promise<number> {
  const { blocks, bsize } = await statfs(folder);
  return Math.min(MAX_LOG_BYTES, Math.floor((blocks * bsize) / FILE_SYSTEM_SHARE / STEPS));
}

/**
 * The file RESERVE, which keeps disk space for a store. It contains random bytes, which no file system compresses, so
 * the space is actually allocated. On a full disk the file shrinks as far as commits, compactions and opening the
 * folder need it, and grows again when there is space. The share for opening is released for nothing else, and the
 * share for small commits not for large ones or compactions.
 */
export class Reserve {
  readonly #folder: string;
  readonly #file: string;
  readonly #configuredBytes: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The last change of the file; changes run one after the other. */
  #lastChange: Promise<unknown> = Promise.resolve();
  /** Compactions and repairs under way. */
  #users = 0;
  #regrowAtMs = 0;
  /** True if the next commit is the first one since the folder was opened. */
  #isFirst = false;
  #isNeeded = false;
  /** Bytes that may be written before the free space is checked again. */
  #uncheckedBytes = CHECK_EVERY_BYTES;

  /** @param wanted size in bytes; undefined: 64 MB, at most a fifth of the file system */
  constructor(folder: string, wanted: number | undefined) {
    this.#folder = folder;
    this.#file = join(folder, NAME);
    this.#configuredBytes = wanted;
  }

  /**
   * Adjust the size of the file now and once a second; to be called when the folder is open.
   * @param isNew false if it was closed only to append a commit
   */
  async start(isNew = true): Promise<void> {
    this.#isFirst = isNew;
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
   * @param failures number of failed commits since the last successful one. LevelDB may compact as soon as it is open,
   * and the space for that is released as well, but not after the first failure: another program is likely to take it
   * @param attempt number of attempts to open the folder that have failed for lack of space; with each attempt more is
   * released, finally all of it
   */
  async release(failures: number, attempt: number): Promise<void> {
    if (failures > 1) this.#regrowAtMs = performance.now() + REGROW_AFTER_MS;
    const purpose = failures === 1 ? 'openAgain' : 'open';
    await this.#adjust(([purpose, 'openWithMore'] as const)[attempt] ?? 'openWithAll').catch(() => {});
  }

  /** Take space again after the folder could not be opened, before another program takes it. */
  async takeAgain(): Promise<void> {
    await this.#tryAdjust();
  }

  /**
   * Release the space not kept for opening and small commits while an action runs, and take it again when the action
   * has ended.
   */
  async releaseDuring<T>(action: () => Promise<T>): Promise<T> {
    this.#users++;
    try {
      await this.#tryAdjust();
      return await action();
    } finally {
      this.#users--;
      // taken now, before another program takes the free space; but nothing is written once the folder is closed
      if (this.#timer !== undefined) await this.#tryAdjust();
    }
  }

  /**
   * Check that there is space for a commit. A commit that fails leaves a part of itself in LevelDB's log, so a commit that would take the
   * space for opening the folder is refused before LevelDB sees it.
   * @param bytes size of the commit
   * @returns undefined if no check is due; else a promise that rejects with ENOSPC and `isUntouched`. A check is due after a megabyte or a
   * 256th of the free space, and for each commit while space is short
   */
  beforeWrite(bytes: number): Promise<void> | undefined {
    this.#isNeeded = this.#isFirst || bytes <= SMALL_COMMIT_BYTES;
    this.#isFirst = false;
    this.#uncheckedBytes -= bytes;
    return this.#uncheckedBytes >= 0 ? undefined : this.#checkSpace(bytes, this.#isNeeded);
  }

  /** True if the folder has a reserve. */
  get isKept(): boolean {
    return this.#configuredBytes !== 0;
  }

  /** True if the commit of the last `beforeWrite` may use the share for small commits. */
  get isNeeded(): boolean {
    return this.#isNeeded;
  }

  /**
   * Release space for the commit of the last `beforeWrite`, if it is written while the folder is closed.
   * @throws Error ENOSPC with `isUntouched` if that would take the space for opening the folder
   */
  async releaseForAppend(bytes: number): Promise<void> {
    await this.#checkSpace(bytes, this.#isNeeded);
  }

  async #checkSpace(bytes: number, isNeeded: boolean): Promise<void> {
    const space = await this.#adjust('commit', bytes, isNeeded).catch(() => undefined);
    if (space === undefined || space.reserve === 0 || hasSpaceFor(space, bytes, isNeeded)) return;
    const message = `No space left on device: the rest of ${this.#file} is reserved for opening the store and draining its queues`;
    throw Object.assign(new Error(message), { code: 'ENOSPC', isUntouched: true });
  }

  /** Bytes that may be written before the reserve is used; negative while it is in use. @throws Error from the file system */
  async freeBytes(): Promise<number> {
    const { available, fileBytes, reserve } = await this.#adjust('check');
    return available + fileBytes - reserve;
  }

  /** Adjust the size of the file, and ignore errors of the file system. */
  async #tryAdjust(): Promise<void> {
    await this.#adjust('check').catch(() => {});
  }

  /** @param isNeeded the commit of these bytes may use the share for small commits */
  #adjust(purpose: Purpose, bytes = 0, isNeeded = false): Promise<Space> {
    return this.#inTurn(async () => {
      const space = await this.#readSpace().catch((error: unknown) => {
        this.#uncheckedBytes = CHECK_EVERY_BYTES;
        throw error;
      });
      this.#uncheckedBytes = uncheckedBytes(space);
      if (purpose === 'check' && this.#users === 0) await this.#growAgain(space);
      else if (purpose !== 'commit' || hasSpaceFor(space, bytes, isNeeded)) {
        const wanted = Math.max(0, Math.floor(this.#leastBytes(space, purpose, bytes, isNeeded)));
        // space released needlessly would be taken by another program that fills the disk
        if (wanted < space.fileBytes) await truncate(this.#file, wanted);
      }
      return space;
    });
  }

  async #readSpace(): Promise<Space> {
    const { bavail, blocks, bsize } = await statfs(this.#folder);
    const { size } = await stat(this.#file).catch(() => ({ size: 0 }));
    const reserve = this.#configuredBytes ?? Math.min(MAX_BYTES, Math.floor((blocks * bsize) / FILE_SYSTEM_SHARE));
    const available = bavail * bsize;
    const isNear = size > 0 || available < CREATE_BELOW_TIMES * reserve;
    return { available, fileBytes: size, reserve, logBytes: isNear ? await logBytesIn(this.#folder) : 0 };
  }

  /** Compute the size to which the file may shrink for a purpose. */
  #leastBytes(space: Space, purpose: Purpose, bytes: number, isNeeded: boolean): number {
    const { available, fileBytes, reserve, logBytes } = space;
    if (purpose === 'openWithAll') return 0;
    const total = available + fileBytes;
    const kept = openingBytes(space) + reserve / DRAIN_SHARE;
    const most = performance.now() < this.#regrowAtMs ? kept : Infinity;
    if (purpose === 'openWithMore') return total - MORE * openingBytes(space);
    if (purpose === 'openAgain') return Math.min(total, most) - openingBytes(space);
    if (purpose === 'open') return Math.min(most, Math.max(kept, total - reserve)) - openingBytes(space);
    const forCompaction = Math.max(kept, total - Math.max(reserve, COMPACTION_BYTES));
    if (purpose === 'check') return forCompaction;
    const forCommit = Math.max(keptFrom(space, bytes, isNeeded), total - bytes - slackOf(space));
    // a log that is nearly full becomes a table, and LevelDB may compact tables then
    const isLogFull = 2 * (logBytes + bytes) > reserve / STEPS;
    return this.#users > 0 || isLogFull ? Math.min(forCompaction, forCommit) : Math.min(most, forCommit);
  }

  /** Take space again: at once for opening and small commits; the rest when LevelDB's compactions have as much free space as the reserve. */
  async #growAgain(space: Space): Promise<void> {
    const { available, fileBytes, reserve } = space;
    const total = available + fileBytes;
    if (fileBytes === 0 && total >= CREATE_BELOW_TIMES * reserve) return;
    const kept = Math.min(total, reserve, openingBytes(space) + reserve / DRAIN_SHARE);
    const most = performance.now() < this.#regrowAtMs ? kept : reserve;
    const wanted = Math.floor(Math.min(most, Math.max(kept, total - reserve)));
    if (wanted <= fileBytes) return;
    if (wanted === most || fileBytes < kept || wanted - fileBytes >= reserve / STEPS)
      await this.#grow(fileBytes, wanted);
  }

  async #grow(fileBytes: number, wanted: number): Promise<void> {
    const file = await open(this.#file, 'a', FILE_MODE);
    try {
      const chunk = randomFillSync(Buffer.allocUnsafe(CHUNK_BYTES));
      for (let at = fileBytes; at < wanted; at += chunk.length) await file.appendFile(chunk.subarray(0, wanted - at));
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

/** Bytes that opening the folder takes: tables made from the logs, a new manifest and a new log. */
function openingBytes({ reserve, logBytes }: Space): number {
  return logBytes + reserve / STEPS;
}

/**
 * Bytes that must be left after a commit.
 * @param bytes size of the commit, which is in the log by then
 */
function keptFrom(space: Space, bytes: number, isNeeded: boolean): number {
  return openingBytes(space) + bytes + (isNeeded ? 0 : space.reserve / DRAIN_SHARE);
}

/** A commit takes somewhat more space on disk than its bytes, and the file need not change for each commit. */
function slackOf({ reserve }: Space): number {
  return Math.min(SMALL_COMMIT_BYTES, reserve / STEPS);
}

function hasSpaceFor(space: Space, bytes: number, isNeeded: boolean): boolean {
  return space.available + space.fileBytes - bytes - slackOf(space) >= keptFrom(space, bytes, isNeeded);
}

/** Bytes that may be written before the next check: none if little space is free outside the file, or less than half of the reserve in all. */
function uncheckedBytes(space: Space): number {
  const { available, fileBytes, reserve, logBytes } = space;
  if (reserve === 0) return CHECK_EVERY_BYTES;
  const left = Math.min(
    available + fileBytes - openingBytes(space) - reserve / 2,
    available - logBytes - reserve / STEPS
  );
  const least = Math.min(CHECK_EVERY_BYTES, left / COMMIT_COST_FACTOR);
  return available < CREATE_BELOW_TIMES * reserve ? least : Math.max(least, available / CHECK_EVERY_FRACTION);
}
