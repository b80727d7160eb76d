import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { newestManifest } from './manifest.ts';
import { keysOfTable, userKey } from './table.ts';
import { numberedFiles } from './tables.ts';

/** Tables that the manifest does not name are compared with the others only up to this total size, because that takes time. */
const MAX_COMPARED_BYTES = 134_217_728;
/** Keys that are compared at a time; each takes about 100 bytes of memory. */
const KEYS_AT_ONCE = 250_000;

/**
 * Find tables that newer tables have replaced but that are still in the folder.
 *
 * These are the tables that the manifest lists as deleted and, if the end of the manifest is lost, the tables that were
 * compacted into unnamed tables. Two tables contain the same change to a key only if one was compacted from the other.
 * @param damaged names of damaged tables, which are left out of the comparison
 * @returns names of tables
 */
export async function obsoleteTables(folder: string, damaged: ReadonlySet<string>): Promise<string[]> {
  const { tables, isObsolete } = await newestManifest(folder);
  const sound = (await numberedFiles(folder)).filter(({ name }) => !name.endsWith('.log') && !damaged.has(name));
  const obsolete = new Set(sound.filter(({ number }) => isObsolete(number)).map(({ name }) => name));
  const candidates = sound.filter(({ name }) => !obsolete.has(name));
  const unnamed = tables.size === 0 ? [] : candidates.filter(({ number }) => !tables.has(number));
  let bytes = 0;
  for (const { name } of unnamed) bytes += (await stat(join(folder, name))).size;
  if (unnamed.length === 0 || bytes > MAX_COMPARED_BYTES) return [...obsolete];
  const covered = new Map<string, string>();
  for await (const newer of changesOf(folder, unnamed))
    for (const { name, number } of candidates) {
      if (obsolete.has(name)) continue;
      let reached = covered.get(name);
      let last = '';
      for (const key of keysOfTable(await readFile(join(folder, name)))) {
        last = userKey(key);
        const newerTable = newer.get(key);
        if (
          newerTable !== undefined &&
          newerTable.number > number &&
          (reached === undefined || newerTable.last > reached)
        )
          reached = newerTable.last;
      }
      if (reached === undefined) continue;
      covered.set(name, reached);
      // an interrupted compaction has not reached the last key
      if (reached >= last) obsolete.add(name);
    }
  return [...obsolete];
}

/** For each change, the table that contains it and the last key of that table. */
type NewerTables = Map<string, { readonly number: number; readonly last: string }>;

/** List the changes in these tables, at most `KEYS_AT_ONCE` at a time to bound the memory. */
async function* changesOf(
  folder: string,
  tables: readonly { readonly name: string; readonly number: number }[]
): AsyncGenerator<NewerTables, void> {
  let changes: NewerTables = new Map();
  for (const { name, number } of tables) {
    const table = await readFile(join(folder, name));
    let last = '';
    for (const key of keysOfTable(table)) last = key;
    const newerTable = { number, last: userKey(last) };
    for (const key of keysOfTable(table)) {
      changes.set(key, newerTable);
      if (changes.size < KEYS_AT_ONCE) continue;
      yield changes;
      changes = new Map();
    }
  }
  if (changes.size > 0) yield changes;
}
