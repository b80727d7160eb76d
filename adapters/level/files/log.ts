import { isChecksumOf, isChecksumOfPrefix, maskedChecksum } from './crc32c.ts';

const BLOCK_BYTES = 32_768;
/** Checksum (4 bytes), length (2), type (1). */
const HEADER_BYTES = 7;
/** A record is a batch. It begins with the sequence number of its first change (64 bit) and the number of changes (32 bit). */
export const BATCH_HEADER_BYTES = 12;
const FULL = 1;
const FIRST = 2;
const MIDDLE = 3;
const LAST = 4;

/** A record, or the part of a record that lies in one block. */
interface Part {
  readonly type: number;
  readonly bytes: Buffer;
  /** Offset of its header in the log. */
  readonly at: number;
  /** Offset behind its last byte; Infinity if the header is not that of a part. */
  readonly end: number;
  readonly isSound: boolean;
}

/** Walk the parts of a file in LevelDB's log format. Where there is no sound part, one with `isSound` false is yielded. */
function* partsOf(log: Buffer): Generator<Part, void> {
  for (let at = 0; at + HEADER_BYTES <= log.length; ) {
    const blockEnd = blockEndOf(at);
    if (blockEnd - at < HEADER_BYTES) {
      at = blockEnd;
      continue;
    }
    const part = partAt(log, at);
    yield part;
    at = part.end > log.length ? blockEnd : part.end;
  }
}

function blockEndOf(at: number): number {
  return at - (at % BLOCK_BYTES) + BLOCK_BYTES;
}

function partAt(log: Buffer, at: number): Part {
  const end = at + HEADER_BYTES + log.readUInt16LE(at + 4);
  const type = log[at + 6];
  const isPlausible = end <= blockEndOf(at) && type >= FULL && type <= LAST;
  const isSound =
    isPlausible && end <= log.length && isChecksumOf(log.readUInt32LE(at), log, at + HEADER_BYTES - 1, end);
  return { type, bytes: log.subarray(at + HEADER_BYTES, end), at, end: isPlausible ? end : Infinity, isSound };
}

/** The records of a file in LevelDB's log format. */
interface LogRecords {
  /** The records up to the first bad one. */
  readonly records: readonly Buffer[];
  /** Offset of the first bad record; undefined if all are sound. */
  readonly badAt: number | undefined;
  /**
   * True if the bad record is the last one and may be truncated, which LevelDB treats as the end of the file without
   * reporting it.
   */
  readonly isTruncated: boolean;
}

/** Read the records of a file in LevelDB's log format up to the first bad one. */
export function readRecords(log: Buffer): LogRecords {
  const records: Buffer[] = [];
  let parts: Buffer[] = [];
  let recordAt = 0;
  let readEnd = 0;
  for (const { type, bytes, at, end, isSound } of partsOf(log)) {
    if (type === FULL || type === FIRST || !isSound) {
      parts = [];
      recordAt = at;
    }
    if (!isSound) {
      const isInEnd = (end < Infinity && end > log.length) || at + HEADER_BYTES > startOfLostEnd(log, at);
      return { records, badAt: at, isTruncated: isInEnd };
    }
    readEnd = end;
    parts.push(bytes);
    if (type !== FULL && type !== LAST) continue;
    records.push(Buffer.concat(parts));
    parts = [];
  }
  const isIncomplete = parts.length > 0;
  const isComplete = !isIncomplete && (readEnd === log.length || blockEndOf(readEnd) - readEnd < HEADER_BYTES);
  return { records, badAt: isComplete ? undefined : isIncomplete ? recordAt : readEnd, isTruncated: !isComplete };
}

/** Build a file in LevelDB's log format that contains one record. */
export function logOf(record: Buffer): Buffer {
  const parts: Buffer[] = [];
  const size = BLOCK_BYTES - HEADER_BYTES;
  for (let at = 0; at === 0 || at < record.length; at += size) {
    const [isFirst, isLast] = [at === 0, at + size >= record.length];
    const part = Buffer.concat([Buffer.alloc(HEADER_BYTES), record.subarray(at, at + size)]);
    part[HEADER_BYTES - 1] = isFirst ? (isLast ? FULL : FIRST) : isLast ? LAST : MIDDLE;
    part.writeUInt16LE(part.length - HEADER_BYTES, 4);
    part.writeUInt32LE(maskedChecksum(part, HEADER_BYTES - 1, part.length), 0);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/**
 * Check whether the first record of a log is complete and contains changes, so that LevelDB reads at least that one.
 */
export function hasSoundFirstRecord(log: Buffer): boolean {
  let bytes = 0;
  for (const part of partsOf(log)) {
    if (!part.isSound) return false;
    bytes += part.bytes.length;
    if (part.type === FULL || part.type === LAST) return bytes > BATCH_HEADER_BYTES;
  }
  return false;
}

/** Disks write whole sectors, and file systems whole blocks of them. */
const SECTOR_BYTES = 512;

/**
 * Find the first bad record of a log.
 *
 * A truncated last record, and zeros from the beginning of a part or sector to the end of the file, are not damage: a killed process or a
 * loss of power leaves such an end.
 * @returns undefined if the log is sound
 */
export function findLogDamage(log: Buffer): { why: string } | undefined {
  const sequence = new PartSequence();
  for (const part of partsOf(log)) {
    const { at, end, isSound } = part;
    if (isSound) {
      sequence.add(part);
      continue;
    }
    const isInZeros = (end < Infinity ? end : at + HEADER_BYTES) > startOfLostEnd(log, at);
    if (isInZeros || (end < Infinity && end > log.length && isTruncatedPart(log, part, sequence))) return undefined;
    return { why: `its record at byte ${at} is corrupt` };
  }
  return undefined;
}

/**
 * Find the end of the part of a file that survived a loss of power. Behind it are only zeros: the system may record a
 * new size before it writes the bytes. They are lost from the end of an earlier write on, which is the beginning of a
 * part, or by sectors.
 * @param partAt offset of the first bad part
 * @returns Infinity if nothing is lost
 */
function startOfLostEnd(log: Buffer, partAt: number): number {
  let at = log.length;
  while (at > 0 && log[at - 1] === 0) at--;
  if (at <= partAt) return partAt;
  const sector = Math.ceil(at / SECTOR_BYTES) * SECTOR_BYTES;
  return sector < log.length ? sector : Infinity;
}

/**
 * Decide whether the last part, which is longer than the rest of the file, is truncated or has a wrong length.
 *
 * The content gives no answer: a publisher chooses it, and a payload may look like a record. So the beginning of the part must be what
 * LevelDB would have written at this position, and its checksum must not be that of a shorter part.
 */
function isTruncatedPart(log: Buffer, { type, bytes, at, end }: Part, sequence: PartSequence): boolean {
  if (!sequence.canContinueWith(type, bytes)) return false;
  // every part but the last of a record ends with its block
  if (type === FIRST || type === MIDDLE) return end === blockEndOf(at);
  return !isChecksumOfPrefix(log.readUInt32LE(at), log, at + HEADER_BYTES - 1, log.length);
}

/** The state of the parts read so far, which determines the possible next part. */
class PartSequence {
  /** True if a record has begun and not ended. */
  #isInRecord = false;
  /** The batch header of the last record, or as much of it as has been read. */
  #batchHeader: Buffer | undefined;

  add({ type, bytes }: Part): void {
    if (type === FULL || type === FIRST) this.#batchHeader = bytes.subarray(0, BATCH_HEADER_BYTES);
    // the record began at the end of a block, with a part shorter than the batch header
    else if (this.#batchHeader !== undefined && this.#batchHeader.length < BATCH_HEADER_BYTES)
      this.#batchHeader = Buffer.concat([this.#batchHeader, bytes]).subarray(0, BATCH_HEADER_BYTES);
    this.#isInRecord = type === FIRST || type === MIDDLE;
  }

  /**
   * Check whether the next part may be of this type and begin with these bytes. Changes have consecutive sequence
   * numbers.
   */
  canContinueWith(type: number, bytes: Buffer): boolean {
    const isBeginning = type === FULL || type === FIRST;
    if (isBeginning === this.#isInRecord) return false;
    const batchHeader = this.#batchHeader;
    if (!isBeginning || bytes.length < 8 || batchHeader === undefined || batchHeader.length < BATCH_HEADER_BYTES)
      return true;
    return bytes.readBigUInt64LE(0) === batchHeader.readBigUInt64LE(0) + BigInt(batchHeader.readUInt32LE(8));
  }
}
