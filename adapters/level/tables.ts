import { type FileHandle, open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32c } from './crc32c.ts';
import { uncompressed } from './snappy.ts';

/** A file of LevelDB's that is not as it was written. */
export interface Damage {
  readonly file: string;
  /** For people. */
  readonly why: string;
  /** Where the last byte of each bad block is; empty: of the file nothing can be saved. */
  readonly blockEnds: readonly number[];
}

const FOOTER_BYTES = 48;
const MAGIC = Buffer.from('57fb808b247547db', 'hex');

/**
 * Read the tables that make up a database and compare the checksums that LevelDB has written and does not look at: it hands out what
 * such a block happens to say, leaves out what it cannot read, or ends the process by an assertion.
 * @param known names of tables that are sound; those that are found so are added. A table is never changed, nor its name given again
 */
export async function findDamage(folder: string, known: Set<string>): Promise<Damage[]> {
  const sizes = await liveTables(folder);
  return damageAmong(folder, (number) => sizes.get(number), known);
}

/** The same for all tables that are there, whatever they may be for. */
export function findAllDamage(folder: string): Promise<Damage[]> {
  return damageAmong(folder, () => 'any', new Set());
}

async function damageAmong(
  folder: string,
  bytesOf: (number: number) => number | 'any' | undefined,
  known: Set<string>
): Promise<Damage[]> {
  const damages: Damage[] = [];
  let room = Buffer.alloc(0);
  const names: string[] = await readdir(folder).catch(() => []);
  for (const name of names.filter((found) => /^\d+\.(ldb|sst)$/.test(found)).sort()) {
    const bytes = bytesOf(Number.parseInt(name, 10));
    if (bytes === undefined || known.has(name)) continue;
    const file = await open(join(folder, name)).catch(() => undefined);
    if (file === undefined) continue; // another process has the folder, or LevelDB will say why
    try {
      const { size } = await file.stat();
      if (room.length < size) room = Buffer.allocUnsafeSlow(size);
      const damage =
        bytes === 'any' || size === bytes
          ? damageOf(await filled(file, room.subarray(0, size)))
          : { why: `it has ${size} bytes and should have ${bytes}`, blockEnds: [] };
      if (damage === undefined) known.add(name);
      else damages.push({ file: name, ...damage });
    } finally {
      await file.close();
    }
  }
  return damages;
}

async function filled(file: FileHandle, room: Buffer): Promise<Buffer> {
  for (let at = 0; at < room.length; ) {
    const { bytesRead } = await file.read(room, at, room.length - at, at);
    if (bytesRead === 0) return room.subarray(0, at);
    at += bytesRead;
  }
  return room;
}

function damageOf(table: Buffer): Omit<Damage, 'file'> | undefined {
  try {
    const footer = table.subarray(-FOOTER_BYTES);
    if (!footer.subarray(-MAGIC.length).equals(MAGIC)) throw new Error('it does not end as a table does');
    const reader = new VarintReader(footer);
    const handles = [reader.handle(), reader.handle()].flatMap((handle) => [handle, ...handlesIn(table, handle)]);
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
  if (end + 4 > table.length) return false;
  // masked, so that the checksum of bytes with checksums in them is no weaker
  const masked = (table.readUInt32LE(end) - 0xa282ead8) >>> 0;
  return ((masked >>> 17) | (masked << 15)) >>> 0 === crc32c(table, offset, end);
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
    handles.push(value.handle());
  }
  return handles;
}

const LOG_BLOCK_BYTES = 32_768;
const LOG_HEADER_BYTES = 7;
const FULL = 1;
const FIRST = 2;
const LAST = 4;

/** Numbers and sizes of the tables that a database is made of now, as its manifest has them. What is wrong with that LevelDB says itself. */
async function liveTables(folder: string): Promise<Map<number, number>> {
  const tables = new Map<number, number>();
  try {
    const manifest = (await readFile(join(folder, 'CURRENT'), 'latin1')).trim();
    for (const edit of recordsOf(await readFile(join(folder, manifest)))) apply(edit, tables);
  } catch {
    // as far as it could be read
  }
  return tables;
}

/** Records of a file in LevelDB's format of logs. */
function* recordsOf(log: Buffer): Generator<Buffer, void> {
  let parts: Buffer[] = [];
  for (let at = 0; at + LOG_HEADER_BYTES <= log.length; ) {
    const left = LOG_BLOCK_BYTES - (at % LOG_BLOCK_BYTES);
    if (left < LOG_HEADER_BYTES) {
      at += left;
      continue;
    }
    const end = at + LOG_HEADER_BYTES + log.readUInt16LE(at + 4);
    const kind = log[at + 6];
    if (kind === FULL || kind === FIRST) parts = [];
    parts.push(log.subarray(at + LOG_HEADER_BYTES, end));
    if (kind === FULL || kind === LAST) yield Buffer.concat(parts);
    at = end;
  }
}

/** One change of the list of tables. */
function apply(edit: Buffer, tables: Map<number, number>): void {
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
    } else if (tag === 2 || tag === 3 || tag === 4 || tag === 9) reader.varint();
    else throw new Error(`a change of kind ${tag}`);
  }
}

class VarintReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.isAtEnd || scale > 2 ** 49) throw new Error('it is not as tables are');
      const byte = this.#bytes[this.#at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  skip(bytes: number): Buffer {
    const from = this.#at;
    this.#at += bytes;
    if (this.#at > this.#bytes.length) throw new Error('it is not as tables are');
    return this.#bytes.subarray(from, this.#at);
  }

  handle(): Handle {
    return { offset: this.varint(), size: this.varint() };
  }
}
