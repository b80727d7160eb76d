import type { Page } from '../../routing/directory.ts';
import { invalidCursor, type Request } from '../../routing/directory-queries.ts';
import { cut } from '../cut-text.ts';
import type { KeptRecord } from './kept-record.ts';

/**
 * The requested page of records of the log. The cursor is the number of the last record of a page.
 * @param records the latest first
 * @param shown makes an entry of the page
 * @throws InvalidInput CURSOR_INVALID
 */
export function recordPage<R extends KeptRecord, Entry>(
  records: Iterable<R>,
  { cursor, limit, skip, isWanted }: Request<R>,
  list: Pick<Page<Entry>, 'node' | 'count'>,
  shown: (record: R) => Entry
): Page<Entry> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidCursor(cursor);
  const before = cursor === undefined ? Infinity : Number(cursor);
  const entries: Entry[] = [];
  let last = 0;
  let left = skip;
  for (const record of records) {
    if (record.number >= before || !isWanted(record) || left-- > 0) continue;
    if (entries.length === limit) return { ...list, entries, cursor: String(last) };
    entries.push(shown(record));
    last = record.number;
  }
  return { ...list, entries, cursor: undefined };
}

/** Tell whether a record names a client, as receiver or as publisher. */
export function isAbout({ clientId, publisher }: KeptRecord, wanted: string): boolean {
  const name = cut(wanted);
  return clientId === name || publisher === name;
}
