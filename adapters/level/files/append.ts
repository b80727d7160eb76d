import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { FILE_MODE, namesIn } from './folder.ts';
import { BATCH_HEADER_BYTES, logOf, readRecords } from './log.ts';
import { readManifest } from './manifest.ts';
import { numberedFiles } from './tables.ts';

/** Types of changes in LevelDB's batches. */
const DELETION = 0;
const VALUE = 1;

/** A list of changes; a value that is undefined deletes its key. */
interface Changes {
  readonly keys: readonly Buffer[];
  readonly values: readonly (Buffer | undefined)[];
}

/**
 * Write a batch into a closed folder, as a separate log that LevelDB replays when it opens the folder.
 *
 * Nothing else can be written while LevelDB finds no space for a compaction, because it starts that as soon as it has
 * the folder.
 * @param sync wait for the disk
 * @throws Error from the file system; then the folder is unchanged
 */
export async function appendBatch(folder: string, batch: Changes, sync: boolean): Promise<void> {
  const { file, lastSequence, isReplayed } = await readManifest(folder);
  if (file === undefined) throw new Error(`${join(folder, 'CURRENT')} names no manifest`);
  let sequence = BigInt(lastSequence);
  for (const { name, number } of await numberedFiles(folder)) {
    if (!name.endsWith('.log') || !isReplayed(number)) continue;
    for (const record of readRecords(await readFile(join(folder, name))).records) {
      if (record.length < BATCH_HEADER_BYTES) continue;
      const last = record.readBigUInt64LE(0) + BigInt(record.readUInt32LE(8)) - 1n;
      if (last > sequence) sequence = last;
    }
  }
  // LevelDB numbers all its files with one counter, which it sets behind the logs that it finds
  const numbers = (await namesIn(folder)).map((name) => Number.parseInt(name.replace('MANIFEST-', ''), 10) || 0);
  const path = join(folder, `${`${Math.max(...numbers) + 1}`.padStart(6, '0')}.log`);
  await writeWhole(path, logOf(recordOf(batch, sequence + 1n)), sync);
  if (sync) await syncFolder(folder);
}

/** Encode a batch as LevelDB does. @param sequence the sequence number of its first change */
function recordOf({ keys, values }: Changes, sequence: bigint): Buffer {
  const header = Buffer.alloc(BATCH_HEADER_BYTES);
  header.writeBigUInt64LE(sequence, 0);
  header.writeUInt32LE(keys.length, 8);
  const parts: Buffer[] = [header];
  for (const [at, key] of keys.entries()) {
    const value = values[at];
    parts.push(Buffer.of(value === undefined ? DELETION : VALUE), varint(key.length), key);
    if (value !== undefined) parts.push(varint(value.length), value);
  }
  return Buffer.concat(parts);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.of(...bytes, value);
}

/** Write a file completely or not at all. LevelDB deletes a file with the temporary name when it opens the folder. */
async function writeWhole(path: string, bytes: Buffer, sync: boolean): Promise<void> {
  const temporary = path.replace(/log$/, 'dbtmp');
  try {
    const file = await open(temporary, 'w', FILE_MODE);
    try {
      await file.writeFile(bytes);
      if (sync) await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
