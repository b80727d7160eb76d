import { systemClock } from '../base/clock.ts';
import { checkFormat, refusedFor } from '../store/commits.ts';
import { RecordError } from '../store/record.ts';
import type { Entry, Store } from '../store/store.ts';
import { numberOf, RECORDS, type RecordName, recordName } from './record-kinds.ts';
import { type StoreProgress, slicesOf, withClaim, withOpen } from './scan.ts';

/** How many records there are of something, and the bytes of their keys and values. */
export interface StoreShare {
  readonly records: number;
  readonly bytes: number;
}

/** What one session takes in a store. */
export interface SessionShare extends StoreShare {
  readonly clientId: string;
  readonly subscriptions: number;
  /** Queued and in flight. */
  readonly messages: number;
}

/** What is in a store. */
export interface StoreStatistics extends StoreShare {
  readonly name: string;
  /** By kind of record. */
  readonly kinds: Readonly<Record<RecordName, StoreShare>>;
  /** The sessions that take the most bytes, the largest first. */
  readonly largestSessions: readonly SessionShare[];
}

type Writable<T> = { -readonly [N in keyof T]: T[N] };

const OF_SESSIONS: ReadonlySet<RecordName> = new Set(['session', 'subscription', 'flow', 'segment']);

/**
 * Count what is in a store that no broker has open.
 * @param options.sessions how many sessions to name; default 10
 * @throws BrokerError STORE_LOCKED, STORE_DAMAGED, STORE_UNUSABLE, STORE_TOO_NEW, STORE_CORRUPT naming the record, IMPORT_UNFINISHED; StateError
 *   STORE_IN_USE; what the store throws
 */
export async function storeStatistics(
  store: Store,
  options: { readonly sessions?: number; readonly onProgress?: (progress: StoreProgress) => void } = {}
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
  // of one that is over there may be messages that are still to be deleted
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
