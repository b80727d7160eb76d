/** Lists the records of a log of one block, with their offsets. */
export function recordsAt(log: Buffer): [at: number, record: Buffer][] {
  const found: [number, Buffer][] = [];
  for (let at = 0; at < log.length; at += 7 + log.readUInt16LE(at + 4))
    found.push([at, log.subarray(at + 7, at + 7 + log.readUInt16LE(at + 4))]);
  return found;
}
