// Check and repair are one walk. At a start, the loaded records must be readable and consistent and the commit
// numbers without gaps; queued messages are checked when they are read. `repairStore` and `embermq store check
// --repair` are the same walk over all records and write what the broker would have written without the lost records.
// One table of record kinds serves start, check, export and statistics.

import { systemClock } from '../base/clock.ts';
import { SeqSet } from '../base/collections/seq-set.ts';
import { BrokerError } from '../base/errors.ts';
import { type FlowRecord, writeFlow } from '../session/messages/flow-record.ts';
import { NOTHING_IN_FLIGHT } from '../session/messages/in-flight-record.ts';
import {
  type Commits,
  checkFinished,
  checkFormat,
  checkVersion,
  inStore,
  readCommits,
  writeCommit
} from '../store/commits.ts';
import { type Fold, foldJournals } from '../store/journal.ts';
import { COMMITS_KEPT, describeKey, FORMAT, Kind } from '../store/keys.ts';
import type { Now } from '../store/message-record.ts';
import { Draft, RecordError, RecordReader } from '../store/record.ts';
import { segmentFirst } from '../store/segment.ts';
import type { Entry, Store } from '../store/store.ts';
import { COMMITS_LOST } from './faults.ts';
import { numberOf, RECORDS, recordName } from './record-kinds.ts';
import { type StoreProgress, slicesOf, withClaim, withOpen } from './scan.ts';

/** A fault in a store. */
export interface StoreFinding {
  /**
   * The kind of fault:
   * - `STORE_DAMAGED`: the store could not be opened. The repair has made it openable; data that could not be saved is lost.
   * - `COMMITS_MISSING`: the changes of these commits are lost.
   * - `RECORD_UNREADABLE`: the checksum of a record is wrong, or its content is invalid.
   * - `KIND_UNKNOWN`: this version does not know the kind of a record.
   * - `SESSION_MISSING`: there are records of a session that does not exist.
   * - `STATE_MISSING`: it is unknown which messages of a session are done.
   * - `MESSAGES_MISSING`: messages are missing in the queue of a session.
   */
  readonly code:
    | 'STORE_DAMAGED'
    | 'COMMITS_MISSING'
    | 'RECORD_UNREADABLE'
    | 'KIND_UNKNOWN'
    | 'SESSION_MISSING'
    | 'STATE_MISSING'
    | 'MESSAGES_MISSING';
  /** A description for people, which names the record or session. */
  readonly text: string;
}

/** The result of `checkStore`. */
export interface StoreReport {
  /** The name of the store. */
  readonly name: string;
  /** Number of records. */
  readonly records: number;
  /** Size of all keys and values in bytes. */
  readonly bytes: number;
  /** Number of commits that have been made. */
  readonly commits: number;
  /** The faults that were found; empty if there are none. */
  readonly findings: readonly StoreFinding[];
  /** True if the faults have been repaired or removed. */
  readonly isRepaired: boolean;
}

/** Options of `checkStore`. */
export interface CheckOptions {
  /**
   * Repair the store. Default false. Records that cannot be used are removed, so that a broker can start on the store. A session whose state
   * is lost keeps its messages, and some of them may be delivered again.
   */
  readonly repair?: boolean;
  /** Called every few hundred records with the progress, and at the end with the total. If it throws, the check ends. Default: none. */
  readonly onProgress?: (progress: StoreProgress) => void;
}

/**
 * Check whether a store is complete and consistent.
 *
 * All records are read. No broker may have the store open. Nothing is written without the option `repair`.
 * @throws BrokerError STORE_DAMAGED if the store cannot be opened and `repair` is not set or not possible; STORE_LOCKED, STORE_UNUSABLE,
 *   STORE_TOO_NEW, STORE_CORRUPT if it is not the store of a broker, IMPORT_UNFINISHED; StateError STORE_IN_USE; the errors of the store
 */
export async function checkStore(store: Store, options: CheckOptions = {}): Promise<StoreReport> {
  return withClaim(store, 'checked', async () => {
    try {
      return await withOpen(store, () => checkOpen(store, options, undefined));
    } catch (error) {
      const isDamaged = error instanceof BrokerError && error.code === 'STORE_DAMAGED';
      if (options.repair !== true || !isDamaged || store.repair === undefined) throw error;
      await store.repair();
      return withOpen(store, () => checkOpen(store, options, error.message));
    }
  });
}

async function checkOpen(
  store: Store,
  { repair = false, onProgress }: CheckOptions,
  damage: string | undefined
): Promise<StoreReport> {
  await checkFinished(store);
  const commits = await readCommits(store);
  if (commits.last === 0) await checkFormat(store);
  const fold = await foldJournals(store);
  const check = new Check(store, commits, fold);
  if (damage !== undefined) check.find('STORE_DAMAGED', damage);
  for await (const entries of slicesOf(store, onProgress)) for (const entry of entries) check.see(entry);
  check.conclude();
  const { findings, records, bytes } = check;
  const isRepaired = repair && findings.length > 0;
  if (isRepaired) await check.repair();
  return { name: store.name, records, bytes, commits: commits.last, findings, isRepaired };
}

/** The records of one session that have been read. */
interface Seen {
  /** The client id; undefined: the session record is missing. */
  clientId?: string;
  flow?: FlowRecord;
  subscriptions: Buffer[];
  /** The numbers of all messages. The counts and bytes below include only messages that are not done. */
  numbers: SeqSet;
  first: number;
  count: number;
  bytes: number;
  qos0Count: number;
  firstTo: number;
}

/** Number of repairs that are written in one commit. */
const REPAIRS_AT_ONCE = 1_000;

class Check {
  readonly findings: StoreFinding[] = [];
  records = 0;
  bytes = 0;
  readonly commits: Commits;
  readonly #store: Store;
  readonly #fold: Fold;
  readonly #now: Now = { nowMs: systemClock.monotonic(), wallMs: systemClock.now() };
  readonly #sessions = new Map<number, Seen>();
  readonly #swept = new Set<number>();
  readonly #removals: ((draft: Draft) => void)[] = [];
  readonly #repairs: ((draft: Draft) => void)[] = [];
  #hasFormat = false;
  /** Number of commits that this repair has made. */
  #made = 0;

  constructor(store: Store, commits: Commits, fold: Fold) {
    this.#store = store;
    this.commits = commits;
    this.#fold = fold;
    this.#seeJournaled(Kind.flow);
    if (commits.areLost) {
      this.find('COMMITS_MISSING', COMMITS_LOST);
      this.#repairs.push(() => {}); // an empty repair, which makes the first commit
    }
    for (const [from, to] of commits.gaps) {
      this.find('COMMITS_MISSING', from === to ? `commit ${from} is missing` : `commits ${from} to ${to} are missing`);
      for (let number = from; number <= to; number++)
        this.#repairs.push((draft) => {
          if (!this.#isTaken(number % COMMITS_KEPT)) writeCommit(draft, number, 0);
        });
    }
  }

  find(code: StoreFinding['code'], text: string): void {
    this.findings.push({ code, text });
  }

  see(entry: Entry): void {
    this.records++;
    this.bytes += entry.key.length + entry.value.length;
    if (this.#fold.keys.has(entry.key.toString('latin1'))) this.#guard(entry.key, () => this.#read(entry));
    else this.#look(entry);
  }

  #seeJournaled(kind: number): void {
    for (const entry of this.#fold.entries) if (entry.key[0] === kind) this.#look(entry);
  }

  #look(entry: Entry): void {
    const name = recordName(entry.key);
    this.#guard(entry.key, () => {
      if (name === undefined) this.#seeUnknown(entry);
      else if (
        name === 'flow' ||
        name === 'segment' ||
        name === 'session' ||
        name === 'subscription' ||
        name === 'garbage'
      )
        this.#seeOfSession(name, entry);
      else if (name === 'format') this.#seeFormat(entry);
      else RECORDS[name].read(entry, this.#now);
    });
  }

  #read(entry: Entry): void {
    const name = recordName(entry.key);
    if (name !== undefined) RECORDS[name].read(entry, this.#now);
  }

  #guard(key: Buffer, run: () => void): void {
    try {
      run();
    } catch (error) {
      if (error instanceof BrokerError && error.code === 'STORE_TOO_NEW')
        throw error instanceof RecordError ? inStore(this.#store, error) : error;
      this.find('RECORD_UNREADABLE', `${describeKey(key)} cannot be read: ${(error as Error).message}`);
      this.#delete(key);
    }
  }

  #seeUnknown({ key, value }: Entry): void {
    try {
      new RecordReader(key, value);
    } catch (error) {
      if ((error as RecordError).code === 'STORE_TOO_NEW') throw error;
    }
    this.find('KIND_UNKNOWN', `${describeKey(key)} is of a kind that this version does not know`);
    this.#delete(key);
  }

  #seeFormat(entry: Entry): void {
    checkVersion(this.#store, RECORDS.format.read(entry, this.#now).format);
    this.#hasFormat = true;
  }

  #seeOfSession(name: 'flow' | 'segment' | 'session' | 'subscription' | 'garbage', entry: Entry): void {
    switch (name) {
      case 'session': {
        const { number, clientId } = RECORDS.session.read(entry, this.#now);
        this.#of(number).clientId = clientId;
        break;
      }
      case 'subscription': {
        const { session } = RECORDS.subscription.read(entry, this.#now);
        const seen = this.#of(session);
        if (seen.clientId === undefined) seen.subscriptions.push(entry.key);
        break;
      }
      case 'flow': {
        const flow = RECORDS.flow.read(entry, this.#now);
        this.#of(flow.session).flow = { ...flow, inFlight: Buffer.from(flow.inFlight) };
        break;
      }
      case 'segment':
        this.#seeSegment(entry);
        break;
      default:
        this.#swept.add(RECORDS.garbage.read(entry, this.#now));
    }
  }

  #seeSegment(entry: Entry): void {
    const messages = RECORDS.segment.read(entry, this.#now);
    const seen = this.#of(numberOf(entry));
    seen.first = Math.min(seen.first, segmentFirst(entry.key));
    for (const { seq, qos, message, isFirst } of messages) {
      if (isFirst) seen.firstTo = Math.max(seen.firstTo, seq + 1);
      if (seen.numbers.has(seq)) continue;
      seen.numbers.add(seq);
      if (seen.flow?.done.has(seq)) continue;
      seen.count++;
      seen.bytes += message.bytes;
      if (qos === 0) seen.qos0Count++;
    }
  }

  #of(number: number): Seen {
    let seen = this.#sessions.get(number);
    if (seen === undefined) {
      const counts = { count: 0, bytes: 0, qos0Count: 0, firstTo: 0 };
      seen = { subscriptions: [], numbers: new SeqSet(), first: Infinity, ...counts };
      this.#sessions.set(number, seen);
    }
    return seen;
  }

  /** Remove a faulty record. Removals precede repairs, which may write another record under the same key. */
  #delete(key: Buffer): void {
    const slot = key[0] === Kind.commit && key.length === 3 ? key.readUInt16BE(1) : undefined;
    this.#removals.push((draft) => {
      if (slot === undefined || !this.#isTaken(slot)) draft.batch.delete(key);
    });
  }

  /**
   * Tell whether a commit of this repair has taken a slot for commit records. The previous record of that slot is then no longer needed.
   */
  #isTaken(slot: number): boolean {
    const { last } = this.commits;
    return (slot - ((last + 1) % COMMITS_KEPT) + COMMITS_KEPT) % COMMITS_KEPT < this.#made;
  }

  /** Check the records against each other, after all have been read. */
  conclude(): void {
    this.#seeJournaled(Kind.segment);
    if (!this.#hasFormat && this.#sessions.size + this.commits.last > 0) {
      this.find('RECORD_UNREADABLE', 'the format record is missing');
      this.#repairs.push((draft) => draft.key(Kind.format).value().u8(FORMAT).f64(systemClock.now()).put());
    }
    for (const [number, seen] of this.#sessions) {
      if (seen.clientId === undefined) this.#orphan(number, seen);
      else this.#checkFlow(number, seen, seen.clientId);
    }
  }

  #orphan(number: number, { subscriptions, flow, first }: Seen): void {
    const isSwept = this.#swept.has(number);
    if (isSwept && flow === undefined && subscriptions.length === 0) return;
    const what = [
      ...(subscriptions.length > 0 ? [`${subscriptions.length} subscriptions`] : []),
      ...(flow === undefined ? [] : ['the state of its messages']),
      ...(first === Infinity || isSwept ? [] : ['queued messages'])
    ];
    this.find('SESSION_MISSING', `session ${number} is missing; the store contains records of it: ${what.join(', ')}`);
    for (const key of subscriptions) this.#delete(key);
    this.#repairs.push((draft) => {
      draft.key(Kind.flow).u48(number).delete();
      draft.key(Kind.garbage).u48(number).value().put(); // the broker deletes its segments after the start
    });
  }

  #checkFlow(number: number, seen: Seen, clientId: string): void {
    const { flow, numbers, first, count, bytes, qos0Count, firstTo } = seen;
    const whose = `session ${number} (client ${JSON.stringify(clientId)})`;
    const done = flow === undefined ? new SeqSet(Math.min(first, numbers.low)) : new SeqSet().addAll(flow.done);
    const next = Math.max(flow?.next ?? 1, numbers.end);
    const gaps = new SeqSet().addAll(done).addAll(numbers).gapsBelow(next);
    const missing = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
    if (flow === undefined) this.find('STATE_MISSING', `the state of messages of ${whose} is missing`);
    else if (missing > 0) this.find('MESSAGES_MISSING', `${missing} queued messages of ${whose} are missing`);
    else if (next > flow.next || count !== flow.count || bytes !== flow.bytes)
      this.find(
        'MESSAGES_MISSING',
        `${whose} has ${count} queued messages of ${bytes} bytes, up to number ${next - 1}, but its state of messages says ${flow.count} of ${flow.bytes} bytes, up to number ${flow.next - 1}`
      );
    else return;
    for (const [from, to] of gaps) done.addRange(from, to);
    const head = Math.min(flow?.head ?? next, first, next);
    const inFlight = flow?.inFlight ?? NOTHING_IN_FLIGHT;
    const pending = flow?.pendingFeeds ?? [];
    this.#repairs.push((draft) =>
      writeFlow(draft, number, { next, head, count, bytes, qos0Count, done, inFlight, pendingFeeds: pending, firstTo })
    );
  }

  async repair(): Promise<void> {
    await this.#write(this.#removals);
    const { draft } = this.#fold;
    if (draft.batch.length > 0) await this.#commit(draft);
    await this.#write(this.#repairs);
  }

  async #write(writes: readonly ((draft: Draft) => void)[]): Promise<void> {
    const draft = new Draft();
    for (let at = 0; at < writes.length; at += REPAIRS_AT_ONCE) {
      draft.clear();
      for (const write of writes.slice(at, at + REPAIRS_AT_ONCE)) write(draft);
      await this.#commit(draft);
    }
  }

  async #commit(draft: Draft): Promise<void> {
    this.#made++;
    // The commit record is last in the batch, because its slot may be one that the batch repairs.
    writeCommit(draft, this.commits.last + this.#made, this.commits.lastWallMs);
    await this.#store.commit(draft.batch);
  }
}
