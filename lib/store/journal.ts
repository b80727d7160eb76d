import { inStore, readAll } from './commits.ts';
import { Kind, numberKey } from './keys.ts';
import { Draft, RecordError, RecordReader } from './record.ts';
import type { Entry, Store } from './store.ts';

/**
 * A journal record holds what one commit keeps of sessions' messages: records of flows and segments, which are later put under their
 * own keys, many commits' worth at once ("fold"): fewer and larger ones, since by then most messages are done, and the others of a
 * session lie in one segment. What is found in a store that is opened was written behind the last fold.
 */
export function beginJournal(draft: Draft, commit: number): Draft {
  draft.clear();
  return draft.key(Kind.journal).u48(commit).value().nest();
}

/** What journals hold, as it is put under its own keys. */
export interface Fold {
  readonly entries: readonly Entry[];
  /** Their keys, as one-byte text: what the store has there is done with. */
  readonly keys: ReadonlySet<string>;
  /** Puts them there and deletes the journals: after that the store is as if there had been none. A commit like others. */
  readonly draft: Draft;
}

/**
 * Read the journals of a store. Nothing is written, and those that are damaged are left out.
 * @throws BrokerError STORE_TOO_NEW; what the store throws
 */
export async function foldJournals(store: Store): Promise<Fold> {
  const journals: Buffer[] = [];
  /** By key: of a session's states the last one counts. */
  const found = new Map<string, Entry>();
  let first = Infinity;
  let last = 0;
  await readAll(store, Kind.journal, (journal) => {
    const inside = sound(store, journal);
    if (inside === undefined) return;
    journals.push(journal.key);
    for (const entry of inside) {
      const session = entry.key.readUIntBE(1, 6);
      first = Math.min(first, session);
      last = Math.max(last, session);
      found.set(entry.key.toString('latin1'), entry);
    }
  });
  // of a session that has ended since nothing is to come back
  const sessions = new Set<number>();
  if (found.size > 0)
    await readAll(
      store,
      Kind.session,
      ({ key }) => sessions.add(key.readUIntBE(1, 6)),
      numberKey(Kind.session, first),
      numberKey(Kind.session, last + 1)
    );
  const draft = new Draft();
  for (const { key, value } of found.values()) {
    if (!sessions.has(key.readUIntBE(1, 6))) continue;
    draft.key(key[0]).raw(key, 1).value().raw(value).put();
  }
  const { batch } = draft;
  const entries = batch.keys.map((key, at) => ({ key, value: batch.values[at] as Buffer }));
  for (const key of journals) batch.delete(key);
  return { entries, keys: new Set(entries.map(({ key }) => key.toString('latin1'))), draft };
}

function sound(store: Store, entry: Entry): Entry[] | undefined {
  try {
    return readJournal(entry);
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    if (error.code === 'STORE_CORRUPT') return undefined;
    throw inStore(store, error);
  }
}

/** The records in a journal: their bodies without version and checksum. @throws RecordError */
export function readJournal({ key, value }: Entry): Entry[] {
  const reader = new RecordReader(key, value);
  const entries: Entry[] = [];
  while (!reader.isAtEnd) entries.push(reader.nested());
  return entries;
}
