import { systemClock } from '../base/clock.ts';
import { checkFormat, refusedFor } from '../store/commits.ts';
import { RecordError } from '../store/record.ts';
import type { Entry, Store } from '../store/store.ts';
import { numberOf, RECORDS, type RecordName, recordName } from './record-kinds.ts';
import { type StoreProgress, slicesOf, withClaim, withOpen } from './scan.ts';

/** A number of records, and the size of their keys and values in bytes. */
export interface StoreShare {
  /** Number of records. */
  readonly records: number;
  /** Size of their keys and values, in bytes. */
  readonly bytes: number;
}

/** The share of one session in a store. */
export interface SessionShare extends StoreShare {
  /** The client id of the session. */
  readonly clientId: string;
  /** Number of its subscriptions. */
  readonly subscriptions: number;
  /** Number of messages, queued and in flight. */
  readonly messages: number;
}

/** The statistics of a store. */
export interface StoreStatistics extends StoreShare {
  /** The name of the store. */
  readonly name: string;
  /** The shares of the kinds of records. */
  readonly kinds: Readonly<Record<RecordName, StoreShare>>;
  /** The sessions that take the most bytes, the largest first. */
  readonly largestSessions: readonly SessionShare[];
}

type Writable<T> = { -readonly [N in keyof T]: T[N] };

const OF_SESSIONS: ReadonlySet<RecordName> = new Set(['session', 'subscription', 'flow', 'segment']);

/**
 * Count the records of a store. No broker may have the store open.
 * @throws BrokerError STORE_LOCKED, STORE_DAMAGED, STORE_UNUSABLE, STORE_TOO_NEW, IMPORT_UNFINISHED; STORE_CORRUPT, which names the record;
 *   StateError STORE_IN_USE; the errors of the store
 */
export async function storeStatistics(
  store: Store,
  options: {
    /** Number of sessions in `largestSessions`. Default: 10. */
    readonly sessions?: number;
    /** Called every few hundred records with the progress. */
    readonly onProgress?: (progress: StoreProgress) => void;
  } = {}
): Promise<StoreStatistics> {
  const kinds = Object.fromEntries(
    Object.keys(RECORDS).map((name) => [name, { records: 0, bytes: 0 }])
  ) as unknown as Record<RecordName, Writable<StoreShare>>;
  const sessions = new Map<number, Writable<SessionShare>>();
  const all = { records: 0, bytes: 0 };
  const see = (entry: Entry) => {
    add(all, entry);
    const name = recordName(entry.key);
    if (name === undefined) return;
    add(kinds[name], entry);
    if (OF_SESSIONS.has(name)) addToSession(sessions, name, entry);
  };
  const seeIn = (entry: Entry) => {
    try {
      see(entry);
    } catch (error) {
      throw error instanceof RecordError ? refusedFor(store, error) : error;
    }
  };
  const seeAll = async () => {
    await checkFormat(store);
    for await (const entries of slicesOf(store, options.onProgress)) for (const entry of entries) seeIn(entry);
  };
  await withClaim(store, 'counted', () => withOpen(store, seeAll));
  // Messages of an ended session may be in the store until they are deleted.
  const there = [...sessions.values()].filter(({ clientId }) => clientId !== '');
  const largestSessions = there.sort((a, b) => b.bytes - a.bytes).slice(0, options.sessions ?? 10);
  return { name: store.name, ...all, kinds, largestSessions };
}

function add(share: Writable<StoreShare>, { key, value }: Entry): void {
  share.records++;
  share.bytes += key.length + value.length;
}

function addToSession(sessions: Map<number, Writable<SessionShare>>, name: RecordName, entry: Entry): void {
  const number = numberOf(entry);
  let share = sessions.get(number);
  if (share === undefined) {
    share = { clientId: '', records: 0, bytes: 0, subscriptions: 0, messages: 0 };
    sessions.set(number, share);
  }
  add(share, entry);
  const now = { nowMs: systemClock.monotonic(), wallMs: systemClock.now() };
  if (name === 'session') share.clientId = RECORDS.session.read(entry, now).clientId;
  else if (name === 'flow') share.messages = RECORDS.flow.read(entry, now).count;
  else if (name === 'subscription') share.subscriptions++;
}
