/** Decompress bytes in the raw format of Snappy, without frames. @throws Error if they are not in that format */
export function uncompress(bytes: Buffer): Buffer {
  let at = 0;
  const byte = () => {
    if (at >= bytes.length) throw new Error('it contains a block that cannot be decompressed');
    return bytes[at++];
  };
  const little = (count: number) => {
    let value = 0;
    for (let scale = 1; count > 0; count--, scale *= 256) value += byte() * scale;
    return value;
  };
  let length = 0;
  for (let scale = 1; ; scale *= 128) {
    const next = byte();
    length += (next & 127) * scale;
    if (next < 128) break;
  }
  if (length > bytes.length * 64) throw new Error('it contains a block that cannot be decompressed');
  const out = Buffer.alloc(length);
  let end = 0;
  while (at < bytes.length) {
    const tag = byte();
    let count: number;
    if ((tag & 3) === 0) {
      const short = tag >> 2;
      count = 1 + (short < 60 ? short : little(short - 59));
      if (at + count > bytes.length || end + count > length)
        throw new Error('it contains a block that cannot be decompressed');
      bytes.copy(out, end, at, at + count);
      at += count;
      end += count;
      continue;
    }
    let back: number;
    if ((tag & 3) === 1) {
      count = 4 + ((tag >> 2) & 7);
      back = ((tag >> 5) << 8) | byte();
    } else {
      count = 1 + (tag >> 2);
      back = little((tag & 3) === 2 ? 2 : 4);
    }
    if (back === 0 || back > end || end + count > length)
      throw new Error('it contains a block that cannot be decompressed');
    // byte by byte, because the source may overlap the bytes being written
    for (; count > 0; count--, end++) out[end] = out[end - back];
  }
  if (end !== length) throw new Error('it contains a block that cannot be decompressed');
  return out;
}
