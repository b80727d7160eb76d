import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { isMasked } from './crc32c.ts';
import { namesIn } from './folder.ts';
import { damageOfLog } from './log.ts';
import { readManifest } from './manifest.ts';
import { uncompressed } from './snappy.ts';
import { VarintReader } from './varint-reader.ts';

/** A file of LevelDB's that is not as it was written. */
export interface Damage {
  readonly file: string;
  /** What is wrong with it, for people; undefined: it is missing. */
  readonly why: string | undefined;
  /** Where the last byte of each bad block is; empty: of the file nothing can be saved. */
  readonly blockEnds: readonly number[];
}

const FOOTER_BYTES = 48;
const MAGIC = Buffer.from('57fb808b247547db', 'hex');

/**
 * Read the tables and logs that make up a database and compare the checksums that LevelDB has written. It does not look at those of
 * tables: it hands out what such a block happens to say, leaves out what it cannot read, or ends the process by an assertion. Of a log it
 * passes over a bad record and all that follow within 32 KiB, and deletes it then; one that is missing it does not miss.
 * @param known names of tables that are sound; those that are found so are added. A table is never changed, nor its name given again
 */
export async function findDamage(folder: string, known: Set<string>): Promise<Damage[]> {
  const { tables, isReplayed, firstLog } = await readManifest(folder);
  const files = await numbered(folder);
  const damages: Damage[] = [];
  const room = { bytes: Buffer.alloc(0) };
  if (firstLog !== undefined && !files.some(({ name, number }) => number === firstLog && name.endsWith('.log')))
    damages.push({ file: `${String(firstLog).padStart(6, '0')}.log`, why: undefined, blockEnds: [] });
  for (const { name, number } of files) {
    const bytes = tables.get(number);
    const isLog = name.endsWith('.log');
    if (isLog ? !isReplayed(number) : bytes === undefined || known.has(name)) continue;
    const damage = await damageIn(folder, name, isLog ? undefined : bytes, room);
    if (damage !== undefined) damages.push(damage);
    else if (!isLog) known.add(name);
  }
  return damages;
}

/** The same for all tables that are there, whatever they may be for. */
export async function findDamagedTables(folder: string): Promise<Damage[]> {
  const damages: Damage[] = [];
  const room = { bytes: Buffer.alloc(0) };
  for (const { name } of await numbered(folder)) {
    const damage = name.endsWith('.log') ? undefined : await damageIn(folder, name, undefined, room);
    if (damage !== undefined) damages.push(damage);
  }
  return damages;
}

async function numbered(folder: string): Promise<{ name: string; number: number }[]> {
  const found = (await namesIn(folder)).filter((name) => /^\d+\.(ldb|sst|log)$/.test(name));
  return found.map((name) => ({ name, number: Number.parseInt(name, 10) })).sort((a, b) => a.number - b.number);
}

/**
 * @param bytes how large the file should be, if anybody knows
 * @param room where files are read to, one after the other
 */
async function damageIn(
  folder: string,
  name: string,
  bytes: number | undefined,
  room: { bytes: Buffer }
): Promise<Damage | undefined> {
  const file = await open(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
  if (file === undefined) return undefined; // another process has the folder, and has just deleted it
  try {
    const { size } = await file.stat();
    if (bytes !== undefined && size !== bytes)
      return { file: name, why: `it has ${size} bytes and should have ${bytes}`, blockEnds: [] };
    if (room.bytes.length < size) room.bytes = Buffer.allocUnsafeSlow(size);
    const content = await filled(file, room.bytes.subarray(0, size));
    const damage = name.endsWith('.log') ? damageOfLog(content) : damageOf(content);
    return damage && { file: name, blockEnds: [], ...damage };
  } finally {
    await file.close();
  }
}

async function filled(file: FileHandle, content: Buffer): Promise<Buffer> {
  const size = content.length;
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(content, at, size - at, at);
    if (bytesRead === 0) return content.subarray(0, at);
    at += bytesRead;
  }
  return content;
}

function damageOf(table: Buffer): Omit<Damage, 'file'> | undefined {
  try {
    const footer = table.subarray(-FOOTER_BYTES);
    if (!footer.subarray(-MAGIC.length).equals(MAGIC)) throw new Error('it does not end as a table does');
    const reader = new VarintReader(footer);
    readHandle(reader); // of filters: they are for single gets, which nobody asks for
    const handles = handlesIn(table, readHandle(reader));
    const bad = handles.filter((handle) => !isSound(table, handle));
    if (bad.length === 0) return undefined;
    return {
      why: `${bad.length} of its ${handles.length} blocks have another checksum than when they were written`,
      blockEnds: bad.map(({ offset, size }) => offset + size)
    };
  } catch (error) {
    return { why: (error as Error).message, blockEnds: [] };
  }
}

/** Where a block is; its kind and its checksum lie behind it. */
interface Handle {
  readonly offset: number;
  readonly size: number;
}

function isSound(table: Buffer, { offset, size }: Handle): boolean {
  const end = offset + size + 1;
  return end + 4 <= table.length && isMasked(table.readUInt32LE(end), table, offset, end);
}

function readHandle(reader: VarintReader): Handle {
  return { offset: reader.varint(), size: reader.varint() };
}

/** The blocks that an index names. @throws Error */
function handlesIn(table: Buffer, index: Handle): Handle[] {
  if (!isSound(table, index)) throw new Error('its index has another checksum than when it was written');
  const { offset, size } = index;
  const raw = table.subarray(offset, offset + size);
  const block = table[offset + size] === 1 ? uncompressed(raw) : raw;
  const restarts = block.readUInt32LE(block.length - 4);
  const reader = new VarintReader(block.subarray(0, block.length - 4 - 4 * restarts));
  const handles: Handle[] = [];
  while (!reader.isAtEnd) {
    reader.varint(); // what the key shares with the one before
    const keyBytes = reader.varint();
    const valueBytes = reader.varint();
    reader.skip(keyBytes);
    const value = new VarintReader(reader.skip(valueBytes));
    handles.push(readHandle(value));
  }
  return handles;
}
