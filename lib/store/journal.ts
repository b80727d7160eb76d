// Messages pass through a journal. A put costs LevelDB 2.5 us regardless of its size, and a queue filled by small
// commits would consist of segments of one message. A commit writes the segments and states of all its sessions into
// one journal record; after 256 KB, 1,000 commits, 2,000 changed objects or 100 ms the journals are folded: messages
// that are not done by then are written under their own keys, one segment per session. Journals found at a start are
// folded after everything else has been read and found sound, so a refused store stays unchanged. 100,000 messages
// for 100 offline sessions cost 10.3 us each instead of 11.4 to queue, and 6.4 instead of 11.8 to drain. Journaled
// messages stay in memory until they are folded.

import { inStore, readAll } from './commits.ts';
import { Kind, numberKey } from './keys.ts';
import { Draft, RecordError, RecordReader } from './record.ts';
import type { Entry, Store } from './store.ts';

/**
 * Begin a journal record.
 *
 * A journal record contains the flow and segment records of one commit. Later they are written under their own keys, for many commits
 * together ("fold"). The fold writes fewer and larger records, because most messages are done by then and the others of a session are in
 * one segment. A store that is opened contains the journals since the last fold.
 */
export function beginJournal(draft: Draft, commit: number): Draft {
  draft.clear();
  return draft.key(Kind.journal).u48(commit).value().nest();
}

/** The content of journals, and the changes that fold them. */
export interface Fold {
  /** The records of the journals; for each key the last one. */
  readonly entries: readonly Entry[];
  /** The keys of the records, as latin1 strings. Records of the store with these keys are outdated. */
  readonly keys: ReadonlySet<string>;
  /** The changes that write the records under their own keys and delete the journals. To be committed like any other commit. */
  readonly draft: Draft;
}

/**
 * Read the journals of a store. Nothing is written. Damaged journals are skipped.
 * @throws BrokerError STORE_TOO_NEW; errors of the store
 */
export async function foldJournals(store: Store): Promise<Fold> {
  const journals: Buffer[] = [];
  /** The records by key; later journals replace earlier records. */
  const found = new Map<string, Entry>();
  let first = Infinity;
  let last = 0;
  await readAll(store, Kind.journal, (journal) => {
    const inside = readIfIntact(store, journal);
    if (inside === undefined) return;
    journals.push(journal.key);
    for (const entry of inside) {
      const session = entry.key.readUIntBE(1, 6);
      first = Math.min(first, session);
      last = Math.max(last, session);
      found.set(entry.key.toString('latin1'), entry);
    }
  });
  // the records of sessions that have ended since are not restored
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

/** Read a journal. @returns undefined if it is damaged */
function readIfIntact(store: Store, entry: Entry): Entry[] | undefined {
  try {
    return readJournal(entry);
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    if (error.code === 'STORE_CORRUPT') return undefined;
    throw inStore(store, error);
  }
}

/** Read the records in a journal. @returns their keys and bodies, without version and checksum @throws RecordError */
export function readJournal({ key, value }: Entry): Entry[] {
  const reader = new RecordReader(key, value);
  const entries: Entry[] = [];
  while (!reader.isAtEnd) entries.push(reader.nested());
  return entries;
}
