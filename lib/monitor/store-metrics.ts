import type { BaseServices } from '../base/base-services.ts';
import { keyAfter, kindKey } from '../store/keys.ts';
import type { Store } from '../store/store.ts';
import { RECORDS, type RecordName } from '../tools/record-kinds.ts';
import type { StoreShare } from '../tools/statistics.ts';

/** Number of records of a kind that are read at once: few at first, then up to as many as have about `SLICE_BYTES`. */
const FIRST_SLICE = 4;
const MAX_SLICE = 256;
const SLICE_BYTES = 262_144;
/** Maximum duration of a walk over all records. */
const MAX_WALK_MS = 10_000;
/** Minimum time over which the rate of commits is measured. */
const MIN_RATE_MS = 1_000;

/** The state of the store of a running broker. */
export interface StoreState {
  /** The name of the store, for example its folder. */
  readonly name: string;
  /** True if the last commit has failed, and nothing can be persisted. */
  readonly isFailed: boolean;
  /** Size in bytes, including the space of deleted records; undefined: the store does not report it. */
  readonly sizeBytes: number | undefined;
  /** Bytes that can be written before the reserve is used; undefined: the store does not report it. */
  readonly freeBytes: number | undefined;
  /** Approximate number of bytes that are not committed yet. */
  readonly unwrittenBytes: number;
  /** Number of commits since the store was created. */
  readonly commits: number;
  /** Commits per second since the last call of `read` that was at least a second ago; at first, since the start. */
  readonly commitsPerSec: number;
}

/** The number of records in a store. */
export interface StoreRecords {
  /** Number and size of the records by kind. */
  readonly kinds: Readonly<Record<RecordName, StoreShare>>;
  /** True if all records were counted. False: ten seconds were not enough. */
  readonly isComplete: boolean;
}

/** The part of the ledger that `StoreMetrics` uses. */
interface LedgerView {
  readonly store: Store;
  readonly isFailed: boolean;
  readonly commit: number;
  readonly bytesInProgress: number;
  readonly unwritten: { readonly gathered: number };
}

interface Mark {
  readonly atMs: number;
  readonly commits: number;
}

/** The store of the broker, while it runs: `broker.monitor.store`. */
export class StoreMetrics {
  readonly #services: BaseServices;
  /** undefined: there is no store. */
  readonly #ledger: LedgerView | undefined;
  /** The point from which commits are counted. */
  #from: Mark | undefined = undefined;
  /** The start of the next measurement. */
  #next: Mark | undefined = undefined;
  #walk: Promise<StoreRecords> | undefined = undefined;

  /** @internal */
  constructor(services: BaseServices, ledger: LedgerView | undefined) {
    this.#services = services;
    this.#ledger = ledger;
  }

  /** Count commits from now on, because the broker has started. @internal */
  begin(): void {
    const { clock } = this.#services;
    const ledger = this.#ledger;
    this.#from = this.#next = ledger && { atMs: clock.monotonic(), commits: ledger.commit };
  }

  /** Read the state of the store. @returns undefined if the broker has none @throws StateError STORE_CLOSED; the errors of the store */
  async read(): Promise<StoreState | undefined> {
    const ledger = this.#ledger;
    if (ledger === undefined) return undefined;
    const { store } = ledger;
    const [sizeBytes, freeBytes] = await Promise.all([store.size?.(), store.freeBytes?.()]);
    const { commit, isFailed, unwritten, bytesInProgress } = ledger;
    const unwrittenBytes = unwritten.gathered + bytesInProgress;
    const commitsPerSec = this.#rate(commit);
    return { name: store.name, isFailed, sizeBytes, freeBytes, unwrittenBytes, commits: commit, commitsPerSec };
  }

  /**
   * Count the records by kind. All of them are read, in slices between other work, so this takes long for a large store; calls at the same
   * time share one walk. Records that are added or removed in the meantime may be counted or not.
   * @returns undefined if the broker has no store
   * @throws StateError STORE_CLOSED; the errors of the store
   */
  async records(): Promise<StoreRecords | undefined> {
    const ledger = this.#ledger;
    if (ledger === undefined) return undefined;
    this.#walk ??= this.#count(ledger.store).finally(() => {
      this.#walk = undefined;
    });
    return this.#walk;
  }

  #rate(commits: number): number {
    const atMs = this.#services.clock.monotonic();
    const mark = { atMs, commits };
    if (this.#next === undefined || atMs - this.#next.atMs >= MIN_RATE_MS) {
      this.#from = this.#next ?? mark;
      this.#next = mark;
    }
    const from = this.#from ?? mark;
    const seconds = (atMs - from.atMs) / 1_000;
    return seconds > 0 ? Math.max(0, commits - from.commits) / seconds : 0;
  }

  async #count(store: Store): Promise<StoreRecords> {
    const { clock } = this.#services;
    const kinds = {} as Record<RecordName, StoreShare>;
    const endMs = clock.monotonic() + MAX_WALK_MS;
    for (const [name, { kind }] of Object.entries(RECORDS)) {
      const { isComplete, ...share } = await this.#countKind(store, kind, endMs);
      kinds[name as RecordName] = share;
      if (!isComplete) return { kinds: { ...NOTHING, ...kinds }, isComplete: false };
    }
    return { kinds, isComplete: true };
  }

  async #countKind(store: Store, kind: number, endMs: number): Promise<StoreShare & { readonly isComplete: boolean }> {
    const { clock } = this.#services;
    let [records, bytes] = [0, 0];
    let atOnce = FIRST_SLICE;
    for (let from = kindKey(kind); ; ) {
      const entries = await store.read(from, kindKey(kind + 1), atOnce);
      let sliceBytes = 1;
      for (const { key, value } of entries) sliceBytes += key.length + value.length;
      records += entries.length;
      bytes += sliceBytes - 1;
      const last = entries.at(-1);
      if (last === undefined || entries.length < atOnce) return { records, bytes, isComplete: true };
      if (clock.monotonic() > endMs) return { records, bytes, isComplete: false };
      from = keyAfter(last.key);
      const fitting = Math.ceil((entries.length * SLICE_BYTES) / sliceBytes);
      atOnce = Math.min(MAX_SLICE, 2 * atOnce, fitting);
      await this.#services.pause();
    }
  }
}

/** The counts of a walk that has not started. */
const NOTHING = Object.fromEntries(
  Object.keys(RECORDS).map((name) => [name, { records: 0, bytes: 0 }])
) as unknown as Readonly<Record<RecordName, StoreShare>>;
