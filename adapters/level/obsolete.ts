import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lastManifest } from './manifest.ts';
import { keysOfTable } from './table.ts';
import { numberedFiles } from './tables.ts';

/** Bytes of tables that the manifest does not know and whose keys are compared with those of the others; they are in memory meanwhile. */
const COMPARED_BYTES = 134_217_728;
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
  const newer = new Map<string, { readonly number: number; readonly last: string }>();
  for (const { name, number } of unnamed) {
    const keys = [...keysOfTable(await readFile(join(folder, name)))];
    const last = userKey(keys.at(-1) ?? '');
    for (const key of keys) newer.set(key, { number, last });
  }
  for (const { name, number } of left) {
    let reached: string | undefined;
    let last = '';
    for (const key of keysOfTable(await readFile(join(folder, name)))) {
      last = userKey(key);
      const made = newer.get(key);
      if (made !== undefined && made.number > number && (reached === undefined || made.last > reached))
        reached = made.last;
    }
    // a compaction that was cut short has not come to the last key
    if (reached !== undefined && reached >= last) obsolete.add(name);
  }
  return [...obsolete];
}

function userKey(key: string): string {
  return key.slice(0, -CHANGE_BYTES);
}
