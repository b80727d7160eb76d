import { type FileHandle, open } from 'node:fs/promises';
import { isChecksumOf } from './crc32c.ts';
import { uncompress } from './snappy.ts';
import { VarintReader } from './varint-reader.ts';

const FOOTER_BYTES = 48;
const MAGIC = Buffer.from('57fb808b247547db', 'hex');

/**
 * Verify the checksums of a table.
 * @returns undefined if the table is sound; otherwise the fault, and the offset of the type byte behind each bad block
 * (none if the index cannot be read)
 */
export function findTableDamage(table: Buffer): { why: string; blockEnds: readonly number[] } | undefined {
  try {
    const handles = handlesIn(table);
    const bad = handles.filter((handle) => !isSound(table, handle));
    if (bad.length === 0) return undefined;
    return {
      why: `${bad.length} of its ${handles.length} blocks have a wrong checksum`,
      blockEnds: bad.map(({ offset, size }) => offset + size)
    };
  } catch (error) {
    return { why: (error as Error).message, blockEnds: [] };
  }
}

/**
 * List the keys of a sound table in order, as latin1 strings. Each ends with 8 bytes: the sequence number and the type of the change.
 * @throws Error if the bytes are not a table
 */
export function* keysOfTable(table: Buffer): Generator<string, void> {
  for (const handle of handlesIn(table)) for (const { key } of entriesOf(blockAt(table, handle))) yield key;
}

/** A change to a key. */
export interface Change {
  readonly sequence: bigint;
  /** The new value; undefined if the key is deleted. */
  readonly value: Buffer | undefined;
}

/**
 * Find the latest change to a key in a table. Only the index and one block of the file are read.
 * @returns undefined if the table has no change to the key
 * @throws Error if the file is not a table or what is read has a wrong checksum; errors of the file system
 */
export async function findInTable(path: string, key: Buffer): Promise<Change | undefined> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const footer = await readPart(file, Math.max(0, size - FOOTER_BYTES), FOOTER_BYTES);
    const wanted = key.toString('latin1');
    // an entry of the index has the position of a block, and a key that is not before any key of this block
    const entry = [...entriesOf(await readBlock(file, indexIn(footer)))].find((one) => userKey(one.key) >= wanted);
    if (entry === undefined) return undefined;
    const block = await readBlock(file, readHandle(new VarintReader(entry.value)));
    const found = [...entriesOf(block)].find((one) => userKey(one.key) === wanted); // the latest change comes first
    if (found === undefined) return undefined;
    const stamp = Buffer.from(found.key.slice(-STAMP_BYTES), 'latin1').readBigUInt64LE(0);
    return { sequence: stamp >> 8n, value: (stamp & 0xffn) === 0n ? undefined : Buffer.from(found.value) };
  } finally {
    await file.close();
  }
}

/** Bytes behind each key of a table: the type of the change (8 bit) and its sequence number (56 bit). */
const STAMP_BYTES = 8;

/** The key of the app in a key of a table. */
export function userKey(key: string): string {
  return key.slice(0, -STAMP_BYTES);
}

async function readPart(file: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, at);
  return buffer.subarray(0, bytesRead);
}

async function readBlock(file: FileHandle, { offset, size }: Handle): Promise<Buffer> {
  const bytes = await readPart(file, offset, size + 5);
  const handle = { offset: 0, size };
  if (!isSound(bytes, handle)) throw new Error('a block has a wrong checksum');
  return blockAt(bytes, handle);
}

/** Position of a block, which is followed by its type (1 byte) and its checksum (4 bytes). */
interface Handle {
  readonly offset: number;
  readonly size: number;
}

function isSound(table: Buffer, { offset, size }: Handle): boolean {
  const end = offset + size + 1;
  return end + 4 <= table.length && isChecksumOf(table.readUInt32LE(end), table, offset, end);
}

function readHandle(reader: VarintReader): Handle {
  return { offset: reader.readVarint(), size: reader.readVarint() };
}

/** Read the positions of the data blocks from the index. @throws Error if the footer or the index is damaged */
function handlesIn(table: Buffer): Handle[] {
  const index = indexIn(table.subarray(-FOOTER_BYTES));
  if (!isSound(table, index)) throw new Error('its index has a wrong checksum');
  const entries = entriesOf(blockAt(table, index));
  return Array.from(entries, ({ value }) => readHandle(new VarintReader(value)));
}

/** Read the position of the index from the footer. @throws Error if it is not the footer of a table */
function indexIn(footer: Buffer): Handle {
  if (!footer.subarray(-MAGIC.length).equals(MAGIC)) throw new Error('it has no table footer');
  const reader = new VarintReader(footer);
  readHandle(reader); // of the index of filters, which only single gets use
  return readHandle(reader);
}

function blockAt(table: Buffer, { offset, size }: Handle): Buffer {
  const raw = table.subarray(offset, offset + size);
  return table[offset + size] === 1 ? uncompress(raw) : raw;
}

/** @throws Error if the block is not in the format of LevelDB */
function* entriesOf(block: Buffer): Generator<{ key: string; value: Buffer }, void> {
  const restarts = block.readUInt32LE(block.length - 4);
  const reader = new VarintReader(block.subarray(0, block.length - 4 - 4 * restarts));
  let key = '';
  while (!reader.isAtEnd) {
    const shared = reader.readVarint(); // bytes shared with the previous key
    const keyBytes = reader.readVarint();
    const valueBytes = reader.readVarint();
    key = key.slice(0, shared) + reader.readBytes(keyBytes).toString('latin1');
    yield { key, value: reader.readBytes(valueBytes) };
  }
}
