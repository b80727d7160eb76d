import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { recordsOf } from './log.ts';
import { VarintReader } from './varint-reader.ts';

/** What a database is made of now. */
export interface Manifest {
  /** Sizes of its tables by number. */
  readonly tables: ReadonlyMap<number, number>;
  /** Whether a log is gone through when the database is opened. */
  isReplayed(log: number): boolean;
  /**
   * The oldest of these logs, which is there as long as the manifest names it: LevelDB makes a log first. undefined: none yet, or the manifest
   * can not be read.
   */
  readonly firstLog: number | undefined;
}

/**
 * Read the manifest that is in force, as far as it goes: what is wrong with it LevelDB says itself.
 * @throws what keeps it from being read although it is there
 */
export async function readManifest(folder: string): Promise<Manifest> {
  const tables = new Map<number, number>();
  const logs = { first: Infinity, previous: 0 };
  try {
    const name = (await readFile(join(folder, 'CURRENT'), 'latin1')).trim();
    for (const edit of recordsOf(await readFile(join(folder, name)))) apply(edit, tables, logs);
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall !== undefined && code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
  }
  return {
    tables,
    isReplayed: (log) => log >= logs.first || log === logs.previous,
    firstLog: logs.first === 0 || logs.first === Infinity ? undefined : logs.first
  };
}

function apply(edit: Buffer, tables: Map<number, number>, logs: { first: number; previous: number }): void {
  const reader = new VarintReader(edit);
  while (!reader.isAtEnd) {
    const tag = reader.varint();
    if (tag === 1)
      reader.skip(reader.varint()); // order of keys
    else if (tag === 5) {
      reader.varint(); // where the next compaction of a level begins
      reader.skip(reader.varint());
    } else if (tag === 6) {
      reader.varint();
      tables.delete(reader.varint());
    } else if (tag === 7) {
      reader.varint();
      tables.set(reader.varint(), reader.varint());
      reader.skip(reader.varint());
      reader.skip(reader.varint());
    } else if (tag === 2) logs.first = reader.varint();
    else if (tag === 9) logs.previous = reader.varint();
    else if (tag === 3 || tag === 4) reader.varint();
    else throw new Error(`a change of kind ${tag}`);
  }
}
