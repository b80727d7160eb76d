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
  const footer = table.subarray(-FOOTER_BYTES);
  if (!footer.subarray(-MAGIC.length).equals(MAGIC)) throw new Error('it has no table footer');
  const reader = new VarintReader(footer);
  readHandle(reader); // of the index of filters, which only single gets use
  const index = readHandle(reader);
  if (!isSound(table, index)) throw new Error('its index has a wrong checksum');
  const entries = entriesOf(blockAt(table, index));
  return Array.from(entries, ({ value }) => readHandle(new VarintReader(value)));
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
