// Queues in the store take a third of its space. LevelDB needs as much for deleted records and once more for a
// compaction, so the bound is a third of (size + free - what is not queued). On a small disk a flood outruns
// compaction (60 MB were full after 27 MB of messages), so commits wait for a compaction while little is free; then
// 187 MB passed through 60 MB, at most 43 MB in use. Acknowledged messages are dropped only for new ones: if
// something else takes the space, the bound is what is queued. If something else has filled the disk into the
// reserve, queued messages stay and new ones are refused. Queued bytes are compared with the disk by the measured
// ratio of bytes on disk to bytes kept, from 1/4 to 1. Deleted records make the ratio too high, which is safe.
// Without the lower limit, random data after 250 MB of text filled a 60 MB disk. The size of the store includes
// LevelDB's logs; without them a small store seemed to be compressed to a quarter, and 100 acknowledged messages were
// dropped for new ones that were refused.
//
// The broker decides when a store is compacted. LevelDB frees the space of deleted records only where more is
// written: 150 MB of a drained queue stayed for ever. The broker knows how much is kept, the store how much is used
// (`size`, `compact`). A folder is compacted in ranges of 16 MB, so that it closes soon.

import type { WorkCount } from '../../base/pending-work.ts';
import { BaseTimer, FunctionTimer, type TimingWheel } from '../../base/timing-wheel.ts';
import type { Announcements } from '../../session/ports.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Store } from '../../store/store.ts';
import type { Pressure } from './pressure.ts';

/** A store is compacted when it exceeds twice the bytes that it keeps, and also this size. */
const SLACK_BYTES = 33_554_432;
/** Approximate size of a session and its subscriptions. */
const SESSION_BYTES = 1_024;
/** Interval between two measurements of the space while something is written; shorter if much is written. */
const MEASURE_EVERY_MS = 1_000;
/** Minimum number of bytes written between two measurements. */
const LEAST_WRITTEN = 1_048_576;
/**
 * Share of the maximum size of the store that queues may use. The rest is for LevelDB: messages in its logs, deleted records until they are
 * compacted, and a copy of the data that is being compacted.
 */
const QUEUE_SHARE = 1 / 3;
/** Below this share of free space, deleted records are compacted early. */
const LOW_SHARE = 3 / 4;
/** Share of the maximum size that deleted records must have for an early compaction. */
const GARBAGE_SHARE = 1 / 8;
/** A compaction writes all records again. If there is no free space for that, only stores up to this size are compacted. */
const SMALL_BYTES = 4_194_304;
/** If less than this is free, commits wait for a compaction, because they could fill the disk in the meantime. */
const TIGHT_BYTES = 67_108_864;
/** Maximum time that commits wait for a compaction. */
const MAX_WAIT_MS = 5_000;
/** Share of their limit to which queues that exceed it are shortened, so that this is not done for each message. */
const SHORTENED = 7 / 8;
/**
 * Minimum share of their bytes for which messages count, even if they are compressed well. Messages that displace them may not be
 * compressible, and the more messages one displaces, the less time is left before the disk is full.
 */
const LEAST_RATIO = 1 / 4;
/** At the limit, a new message displaces old ones of at most this many times its bytes, divided by the ratio of compression. */
const DISPLACED = 16;
/**
 * Number of consecutive queues that cannot be shortened now, after which shortening ends: their client returns, or they are being shortened
 * already.
 */
const MAX_STUCK = 100;

/** The services of the broker that `Space` uses. */
interface SpaceServices {
  readonly wheel: TimingWheel;
  readonly work: WorkCount;
  readonly announcer: Announcements;
  readonly life: { readonly isRunning: boolean };
  readonly settings: { readonly maxTotalMqueueStoreBytes: number | undefined };
}

/** The parts of the broker that `Space` uses. */
export interface SpaceHost {
  readonly ledger: Ledger;
  readonly pressure: Pressure;
  readonly sessions: { readonly persistentCount: number };
  readonly retainer: { readonly messages: { readonly bytes: number } };
  readonly delayed: { readonly bytes: number };
}

/**
 * Measures the space of a store. It starts compactions (LevelDB alone frees the space of deleted records only where much is written),
 * shortens queues that exceed their limit, and reports when the store must not grow.
 */
export class Space extends BaseTimer {
  readonly #services: SpaceServices;
  readonly #host: SpaceHost;
  readonly #store: Store;
  /** Size of the store after the last compaction, less the bytes kept. */
  #overhead = 0;
  #isCompacting = false;
  #isMeasuring = false;
  #isShortening = false;
  /** Bytes that may be written until the next measurement. */
  #leftToWrite = LEAST_WRITTEN;
  /** Free bytes at the last measurement. */
  #freeBytes = Infinity;
  /** Ends the wait of commits for a compaction. */
  readonly #longestWait = new FunctionTimer(() => this.#wait(false));
  /** Size of the store at the last measurement. */
  #size = 0;
  /** Bytes of messages that may be queued in the store. */
  #limit = Infinity;
  /** Bytes to which the queues are shortened if they exceed `#limit`. */
  #target = Infinity;
  /** Bytes that the queues may use on disk. */
  #allowed = Infinity;
  /** The lowest ratio of bytes on disk to bytes kept that was measured since the last compaction. */
  #ratio = 1;
  /** Bytes that were queued at the last measurement, without those that were to be dropped. */
  #settled = Infinity;

  constructor(services: SpaceServices, host: SpaceHost) {
    super();
    this.#services = services;
    this.#host = host;
    this.#store = host.ledger.store;
    this.#limit = this.#configured;
  }

  /** Called when the broker has started. */
  begin(): void {
    if (this.#isWatched) this.#measureSpace();
  }

  /** Apply a changed option `maxTotalMqueueStoreBytes`. */
  configured(): void {
    this.#limit = this.#configured;
    this.begin();
  }

  /** Note that a commit has succeeded or failed. @param bytes its size */
  written(bytes: number): void {
    if (!this.#isWatched) return;
    this.#leftToWrite -= bytes;
    if (this.#leftToWrite < 0) this.#measureSpace();
    else if (this.dueMs === Infinity) this.#services.wheel.arm(this, MEASURE_EVERY_MS);
  }

  ring(): void {
    this.#measureSpace();
  }

  /** Compact the store if it is far larger than the data that it keeps. */
  reclaim(): void {
    const { size } = this.#store;
    if (this.#isClosed || size === undefined || this.#store.compact === undefined) return;
    this.#during('compacting the store', async () => {
      const most = 2 * (this.#kept + this.#overhead) + SLACK_BYTES;
      if ((await size.call(this.#store)) > most) await this.#compact();
    });
  }

  get #isWatched(): boolean {
    return this.#store.freeBytes !== undefined || this.#configured !== Infinity;
  }

  /** The limit of the option `maxTotalMqueueStoreBytes`; the space may allow less. */
  get #configured(): number {
    return this.#services.settings.maxTotalMqueueStoreBytes || Infinity;
  }

  get #isClosed(): boolean {
    const { ledger } = this.#host;
    return !ledger.isOpen || ledger.isFailed;
  }

  #during(what: string, run: () => Promise<void>): void {
    this.#services.work.during(run()).catch((error: unknown) => {
      if (!this.#isClosed) this.#services.announcer.failed(error, what, undefined);
    });
  }

  #measureSpace(): void {
    if (this.#isMeasuring) return;
    this.#isMeasuring = true;
    this.#services.wheel.disarm(this);
    this.#during('measuring the space of the store', async () => {
      try {
        if (this.#host.ledger.isOpen) await this.#setLimits();
      } finally {
        this.#isMeasuring = false;
        // a store that has failed or is full may have space soon
        if (this.#services.life.isRunning && (this.#host.pressure.isSpaceLow || this.#host.ledger.isFailed))
          this.#services.wheel.arm(this, MEASURE_EVERY_MS);
      }
    });
  }

  async #setLimits(): Promise<void> {
    const { pressure } = this.#host;
    const store = this.#store;
    const configured = this.#configured;
    this.#limit = configured;
    this.#target = configured * SHORTENED;
    if (store.freeBytes !== undefined) {
      const free = await store.freeBytes();
      this.#freeBytes = free;
      // also after a commit was refused for lack of space, so that new messages are refused before they are committed
      pressure.spaceIsLow(pressure.isSpaceLow ? free < LEAST_WRITTEN : free < 0, store.name);
      const kept = this.#kept;
      const { size, ratio } = await this.#measure(kept);
      if (this.#isClosed) return;
      const most = Math.max(0, size + free);
      this.#ratio = Math.min(this.#ratio, ratio);
      if (this.#services.settings.maxTotalMqueueStoreBytes !== 0) this.#limitBySpace(most, ratio, size - this.#size);
      const hasRoom = free > (kept * ratio) / 2 || kept < SMALL_BYTES;
      const garbage = size - kept * this.#ratio - this.#overhead;
      if (hasRoom && free < most * LOW_SHARE && garbage > Math.max(most * GARBAGE_SHARE, LEAST_WRITTEN))
        this.#compactSoon();
      this.#size = size;
      this.#leftToWrite = Math.max(LEAST_WRITTEN, Math.min(free, this.#allowed) / 8);
    }
    if (configured < Infinity) this.#leftToWrite = Math.min(this.#leftToWrite, Math.max(LEAST_WRITTEN, configured / 8));
    if (pressure.totalBacklog.inStore.bytes > this.#limit) this.#shortenSoon();
  }

  /**
   * Compute how many bytes of messages may be queued. Messages are only dropped to make room for new ones: if something else takes the
   * space, the queues keep what they have, and each new message displaces old ones of the same size. At their limit the queues also make up
   * for new messages that are compressed less than the old ones. A message that goes into flight, or is handed over to another session, is
   * not a new one.
   * @param most bytes that the store may grow to
   * @param ratio of bytes on disk to bytes kept; deleted records count, so it may be too high, never too low
   * @param grown by how many bytes the store has grown since the last measurement
   */
  #limitBySpace(most: number, ratio: number, grown: number): void {
    const { inStore, storedBytes: bytes } = this.#host.pressure.totalBacklog;
    const { bytes: waiting } = inStore;
    const others = this.#kept - bytes;
    const share = Math.max(0, most - others * ratio) * QUEUE_SHARE;
    this.#allowed = Math.max(share, Math.min(this.#allowed, bytes * ratio));
    const isShort = this.#allowed * SHORTENED > share;
    const added = Math.max(0, bytes - this.#settled);
    // each deletion raises the ratio until the next compaction, so the ratio alone does not indicate how much new messages displace
    const displaced = isShort ? added : Math.max(added, Math.min(grown, added * DISPLACED) / ratio);
    const least = bytes - displaced;
    const limit = Math.max(this.#allowed / ratio, least);
    this.#settled = Math.min(bytes, limit);
    const fixed = bytes - waiting; // in flight, or being handed over
    // new messages are refused then, so none are dropped to make room for them
    if (isShort && this.#host.pressure.isSpaceLow) return;
    this.#limit = Math.min(this.#limit, limit - fixed);
    this.#target = Math.min(this.#target, (isShort ? limit : Math.max(limit * SHORTENED, least)) - fixed);
  }

  /**
   * Measure the size of the store.
   * @param kept bytes kept now, with the retained and delayed messages of the commit in progress. The store may not have these yet; if that
   *   commit were not added, the store would seem to compress the rest, and the queues would be allowed too little space
   */
  async #measure(kept: number): Promise<{ readonly size: number; readonly ratio: number }> {
    const inProgress = this.#host.ledger.bytesInProgress;
    const size = (await this.#store.size?.()) ?? kept;
    return { size, ratio: ratioOf(size + inProgress, kept) };
  }

  #compactSoon(): void {
    if (this.#store.compact !== undefined) this.#during('compacting the store', () => this.#compact());
  }

  async #compact(): Promise<void> {
    const store = this.#store;
    if (this.#isCompacting || store.compact === undefined) return;
    this.#isCompacting = true;
    try {
      if (this.#freeBytes < TIGHT_BYTES) this.#wait(true);
      await store.compact();
      this.#wait(false);
      if (!this.#isClosed && store.size !== undefined) {
        const { size, ratio } = await this.#measure(this.#kept);
        this.#ratio = ratio;
        this.#overhead = Math.max(0, size - this.#kept);
      }
    } finally {
      this.#isCompacting = false;
      this.#wait(false);
    }
  }

  #wait(isWaiting: boolean): void {
    const { wheel } = this.#services;
    this.#host.ledger.isWaiting = isWaiting;
    if (isWaiting) wheel.arm(this.#longestWait, MAX_WAIT_MS);
    else wheel.disarm(this.#longestWait);
  }

  #shortenSoon(): void {
    if (this.#isShortening) return;
    this.#isShortening = true;
    this.#during('shortening queues', async () => {
      try {
        await this.#shorten();
      } finally {
        this.#isShortening = false;
      }
    });
  }

  /** Shorten the largest queues in turn, each at most by half. */
  async #shorten(): Promise<void> {
    const { inStore } = this.#host.pressure.totalBacklog;
    for (let stuck = 0; stuck < MAX_STUCK && !this.#isClosed; ) {
      const excess = inStore.bytes - this.#target;
      const log = excess > 0 ? inStore.largest() : undefined;
      if (log === undefined) return;
      const { listedBytes: bytes } = log;
      await log.shorten(Math.max(Math.floor(bytes / 2), bytes - excess));
      stuck = log.listedBytes < bytes ? 0 : stuck + 1;
    }
  }

  /** Approximate bytes of everything that is kept. */
  get #kept(): number {
    const { pressure, sessions, retainer, delayed } = this.#host;
    const sessionBytes = sessions.persistentCount * SESSION_BYTES;
    return pressure.totalBacklog.storedBytes + sessionBytes + retainer.messages.bytes + delayed.bytes;
  }
}

/** Bytes on disk for each byte kept; less than 1 if the store compresses them. */
function ratioOf(size: number, kept: number): number {
  return size < kept ? Math.max(size / kept, LEAST_RATIO) : 1;
}
