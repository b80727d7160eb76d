import { isMasked } from './crc32c.ts';
import { uncompressed } from './snappy.ts';
import { VarintReader } from './varint-reader.ts';

const FOOTER_BYTES = 48;
const MAGIC = Buffer.from('57fb808b247547db', 'hex');

/** What is wrong with a table, and where the last byte of each bad block is; undefined: nothing. */
export function damageOfTable(table: Buffer): { why: string; blockEnds: readonly number[] } | undefined {
  try {
    const handles = handlesIn(table);
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

/**
 * The keys of a sound table in their order, each with the sequence number and the kind of its change behind it (8 bytes), as one-byte text.
 * @throws Error where it is none
 */
export function* keysOfTable(table: Buffer): Generator<string, void> {
  for (const handle of handlesIn(table)) for (const { key } of entriesOf(blockAt(table, handle))) yield key;
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

/** The blocks that the index names. @throws Error */
function handlesIn(table: Buffer): Handle[] {
  const footer = table.subarray(-FOOTER_BYTES);
  if (!footer.subarray(-MAGIC.length).equals(MAGIC)) throw new Error('it does not end as a table does');
  const reader = new VarintReader(footer);
  readHandle(reader); // of filters: they are for single gets, which nobody asks for
  const index = readHandle(reader);
  if (!isSound(table, index)) throw new Error('its index has another checksum than when it was written');
  const entries = entriesOf(blockAt(table, index));
  return Array.from(entries, ({ value }) => readHandle(new VarintReader(value)));
}

function blockAt(table: Buffer, { offset, size }: Handle): Buffer {
  const raw = table.subarray(offset, offset + size);
  return table[offset + size] === 1 ? uncompressed(raw) : raw;
}

/** @throws Error */
function* entriesOf(block: Buffer): Generator<{ key: string; value: Buffer }, void> {
  const restarts = block.readUInt32LE(block.length - 4);
  const reader = new VarintReader(block.subarray(0, block.length - 4 - 4 * restarts));
  let key = '';
  while (!reader.isAtEnd) {
    const shared = reader.varint(); // with the key before
    const keyBytes = reader.varint();
    const valueBytes = reader.varint();
    key = key.slice(0, shared) + reader.skip(keyBytes).toString('latin1');
    yield { key, value: reader.skip(valueBytes) };
  }
}
