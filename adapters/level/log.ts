import { isMasked } from './crc32c.ts';

const BLOCK_BYTES = 32_768;
/** Checksum, length, kind. */
const HEADER_BYTES = 7;
const FULL = 1;
const FIRST = 2;
const LAST = 4;

/** A record, or a part of one where it spans blocks. */
interface Part {
  readonly kind: number;
  readonly bytes: Buffer;
  readonly at: number;
  readonly isSound: boolean;
}

/** Parts of a file in LevelDB's format of logs, and in the place of what is none a bad one. */
function* partsOf(log: Buffer): Generator<Part, void> {
  for (let at = 0; at + HEADER_BYTES <= log.length; ) {
    const blockEnd = at - (at % BLOCK_BYTES) + BLOCK_BYTES;
    if (blockEnd - at < HEADER_BYTES) {
      at = blockEnd;
      continue;
    }
    const end = at + HEADER_BYTES + log.readUInt16LE(at + 4);
    const kind = log[at + 6];
    // where it ends nobody knows then
    const isLost = end > Math.min(blockEnd, log.length) || kind < FULL || kind > LAST;
    const bytes = log.subarray(at + HEADER_BYTES, end);
    yield { kind, bytes, at, isSound: !isLost && isMasked(log.readUInt32LE(at), log, at + 6, end) };
    at = isLost ? blockEnd : end;
  }
}

/** Records of a file in LevelDB's format of logs, sound or not. */
export function* recordsOf(log: Buffer): Generator<Buffer, void> {
  let parts: Buffer[] = [];
  for (const { kind, bytes } of partsOf(log)) {
    if (kind === FULL || kind === FIRST) parts = [];
    parts.push(bytes);
    if (kind === FULL || kind === LAST) yield Buffer.concat(parts);
  }
}

/** A bad record with sound ones behind it; without them it is where the writing ended. */
export function damageOfLog(log: Buffer): { why: string } | undefined {
  let badAt = -1;
  for (const { at, isSound } of partsOf(log)) {
    if (!isSound && badAt < 0) badAt = at;
    if (isSound && badAt >= 0)
      return { why: `its record at byte ${badAt} has another checksum than when it was written` };
  }
  return undefined;
}
