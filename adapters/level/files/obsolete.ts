import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lastManifest } from './manifest.ts';
import { keysOfTable } from './table.ts';
import { numberedFiles } from './tables.ts';

/** Tables that the manifest does not know are compared with the others up to this total size: it takes time. */
const COMPARED_BYTES = 134_217_728;
/** Keys that are compared at once; about 100 bytes of memory each. */
const COMPARED_KEYS = 250_000;
/** Behind each key: sequence number and kind of the change. */
const CHANGE_BYTES = 8;

/**
 * Tables that are still in a folder although newer ones have what is left of them: those that the manifest says so of, and, where its end
 * is lost, those that were compacted into tables which it does not name. Two tables have the same change of a key only if one was made of the other.
 * @param damaged names of tables that nothing is concluded from
 */
export async function obsoleteTables(folder: string, damaged: ReadonlySet<string>): Promise<string[]> {
  const { tables, isObsolete } = await lastManifest(folder);
  const sound = (await numberedFiles(folder)).filter(({ name }) => !name.endsWith('.log') && !damaged.has(name));
  const obsolete = new Set(sound.filter(({ number }) => isObsolete(number)).map(({ name }) => name));
  const left = sound.filter(({ name }) => !obsolete.has(name));
  const unnamed = tables.size === 0 ? [] : left.filter(({ number }) => !tables.has(number));
  let bytes = 0;
  for (const { name } of unnamed) bytes += (await stat(join(folder, name))).size;
  if (unnamed.length === 0 || bytes > COMPARED_BYTES) return [...obsolete];
  const covered = new Map<string, string>();
  for await (const newer of changesOf(folder, unnamed))
    for (const { name, number } of left) {
      if (obsolete.has(name)) continue;
      let reached = covered.get(name);
      let last = '';
      for (const key of keysOfTable(await readFile(join(folder, name)))) {
        last = userKey(key);
        const made = newer.get(key);
        if (made !== undefined && made.number > number && (reached === undefined || made.last > reached))
          reached = made.last;
      }
      if (reached === undefined) continue;
      covered.set(name, reached);
      // a compaction that was cut short has not come to the last key
      if (reached >= last) obsolete.add(name);
    }
  return [...obsolete];
}

/** In which of these tables each change is, and the last key of that table. */
type Changes = Map<string, { readonly number: number; readonly last: string }>;

/** The changes in these tables, so many at a time as memory should be taken for. */
async function* changesOf(
  folder: string,
  tables: readonly { readonly name: string; readonly number: number }[]
): AsyncGenerator<Changes, void> {
  let changes: Changes = new Map();
  for (const { name, number } of tables) {
    const table = await readFile(join(folder, name));
    let last = '';
    for (const key of keysOfTable(table)) last = key;
    const made = { number, last: userKey(last) };
    for (const key of keysOfTable(table)) {
      changes.set(key, made);
      if (changes.size < COMPARED_KEYS) continue;
      yield changes;
      changes = new Map();
    }
  }
  if (changes.size > 0) yield changes;
}

function userKey(key: string): string {
  return key.slice(0, -CHANGE_BYTES);
}
