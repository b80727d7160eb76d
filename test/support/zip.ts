import { crc32, deflateRawSync } from 'node:zlib';

/** An entry of an archive. Omitted fields are correct. */
export interface ZipEntry {
  readonly name: string;
  readonly content?: string | Buffer;
  /** Mode of Unix with the kind of the file. Default: a regular file, or a folder if the name ends with `/`. */
  readonly mode?: number;
  readonly crc?: number;
  /** The size that is declared. */
  readonly size?: number;
  /** Bits of the general purpose flags. */
  readonly flags?: number;
  /** Default: 8, deflate. */
  readonly method?: number;
}

/** Write an archive byte by byte, even one that no program would write. */
export function zip(...entries: readonly ZipEntry[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content = '', mode, crc, size, flags = 0x800, method = 8 } of entries) {
    const path = Buffer.from(name);
    const bytes = Buffer.from(content);
    const stored = method === 8 ? deflateRawSync(bytes) : bytes;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(crc ?? crc32(bytes), 10);
    common.writeUInt32LE(stored.length, 14);
    common.writeUInt32LE(size ?? bytes.length, 18);
    common.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, path, stored]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(((mode ?? (name.endsWith('/') ? 0o040755 : 0o100644)) << 16) >>> 0, 6);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03'), common, tail, path]));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, central, Buffer.from('PK\x05\x06'), end]);
}
