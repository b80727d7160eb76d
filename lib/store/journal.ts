import { readAll } from './commits.ts';
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

/**
 * Put what journals hold under its own keys: after that the store is as if there had been none. Journals that cannot be read stay.
 * Not for a store that a broker has open.
 * @throws what the store throws
 */
export async function foldJournals(store: Store): Promise<void> {
  const journals: Buffer[] = [];
  const entries: Entry[] = [];
  let first = Infinity;
  let last = 0;
  await readAll(store, Kind.journal, (journal) => {
    const found = sound(journal);
    if (found === undefined) return;
    journals.push(journal.key);
    for (const entry of found) {
      const session = entry.key.readUIntBE(1, 6);
      first = Math.min(first, session);
      last = Math.max(last, session);
      entries.push(entry);
    }
  });
  if (journals.length === 0) return;
  // of a session that has ended since nothing is to come back
  const sessions = new Set<number>();
  if (entries.length > 0)
    await readAll(
      store,
      Kind.session,
      ({ key }) => sessions.add(key.readUIntBE(1, 6)),
      numberKey(Kind.session, first),
      numberKey(Kind.session, last + 1)
    );
  const draft = new Draft();
  for (const { key, value } of entries) {
    if (!sessions.has(key.readUIntBE(1, 6))) continue;
    draft.key(key[0]).raw(key, 1).value().raw(value).put();
  }
  for (const key of journals) draft.batch.delete(key);
  await store.commit(draft.batch);
}

function sound(entry: Entry): Entry[] | undefined {
  try {
    return readJournal(entry);
  } catch (error) {
    if (error instanceof RecordError && error.code === 'STORE_CORRUPT') return undefined;
    throw error;
  }
}

/** The records in a journal: their bodies without version and checksum. @throws RecordError */
export function readJournal({ key, value }: Entry): Entry[] {
  const reader = new RecordReader(key, value);
  const entries: Entry[] = [];
  while (!reader.isAtEnd) entries.push(reader.nested());
  return entries;
}
