import { isMasked, isMaskedSomewhere } from './crc32c.ts';

const BLOCK_BYTES = 32_768;
/** Checksum, length, kind. */
const HEADER_BYTES = 7;
/** A record is a batch: sequence number of its first change, 64 bit, how many they are, 32 bit, and they. */
const BATCH_HEAD_BYTES = 12;
const FULL = 1;
const FIRST = 2;
const MIDDLE = 3;
const LAST = 4;

/** A record, or a part of one where it spans blocks. */
interface Part {
  readonly kind: number;
  readonly bytes: Buffer;
  readonly at: number;
  /** Infinity: nobody knows. */
  readonly end: number;
  readonly isSound: boolean;
}

/** Parts of a file in LevelDB's format of logs, and in the place of what is none a bad one. */
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
  const kind = log[at + 6];
  const isPart = end <= blockEndOf(at) && kind >= FULL && kind <= LAST;
  const isSound = isPart && end <= log.length && isMasked(log.readUInt32LE(at), log, at + HEADER_BYTES - 1, end);
  return { kind, bytes: log.subarray(at + HEADER_BYTES, end), at, end: isPart ? end : Infinity, isSound };
}

/** The records of a file in LevelDB's format of logs. */
export interface LogRecords {
  /** Up to the first one that is not as it was written. */
  readonly records: readonly Buffer[];
  /** Where that one begins; undefined: all are sound. */
  readonly badAt: number | undefined;
  /** It is the last one and may be truncated, which LevelDB takes for the end of the file without reporting it. */
  readonly isCutOff: boolean;
}

/** Read the records that LevelDB would read. */
export function readRecords(log: Buffer): LogRecords {
  const records: Buffer[] = [];
  let parts: Buffer[] = [];
  let recordAt = 0;
  let readTo = 0;
  for (const { kind, bytes, at, end, isSound } of partsOf(log)) {
    if (kind === FULL || kind === FIRST || !isSound) {
      parts = [];
      recordAt = at;
    }
    if (!isSound) {
      const isAtEnd = (end < Infinity && end > log.length) || at + HEADER_BYTES > zerosFrom(log);
      return { records, badAt: at, isCutOff: isAtEnd };
    }
    readTo = end;
    parts.push(bytes);
    if (kind !== FULL && kind !== LAST) continue;
    records.push(Buffer.concat(parts));
    parts = [];
  }
  const isInside = parts.length > 0;
  const isWhole = !isInside && (readTo === log.length || blockEndOf(readTo) - readTo < HEADER_BYTES);
  return { records, badAt: isWhole ? undefined : isInside ? recordAt : readTo, isCutOff: !isWhole };
}

/** Whether its first record is whole and says something, so that LevelDB has something to read there whatever follows. */
export function beginsSound(log: Buffer): boolean {
  let bytes = 0;
  for (const part of partsOf(log)) {
    if (!part.isSound) return false;
    bytes += part.bytes.length;
    if (part.kind === FULL || part.kind === LAST) return bytes > BATCH_HEAD_BYTES;
  }
  return false;
}

/** What was written a page at a time ends with pages of zeros where power was lost. */
const PAGE_BYTES = 4_096;

/**
 * A record that is not as it was written. Where the writing ended a record may be cut off, or be of zeros from some page on; a process that
 * was killed leaves no other end.
 */
export function damageOfLog(log: Buffer): { why: string } | undefined {
  const chain = new Chain();
  for (const part of partsOf(log)) {
    const { at, end, isSound } = part;
    if (isSound) {
      chain.add(part);
      continue;
    }
    const isInZeros = (end < Infinity ? end : at + HEADER_BYTES) > zerosFrom(log);
    if (isInZeros || (end < Infinity && end > log.length && isCutOff(log, part, chain))) return undefined;
    return { why: `its record at byte ${at} is not as it was written` };
  }
  return undefined;
}

/** From here on there are whole pages of zeros, up to the end. */
function zerosFrom(log: Buffer): number {
  let at = log.length;
  while (at > 0 && log[at - 1] === 0) at--;
  const page = Math.ceil(at / PAGE_BYTES) * PAGE_BYTES;
  return page < log.length ? page : Infinity;
}

/**
 * The last part is longer than what there is of it: has LevelDB begun it so, or is its length wrong? In what there is nothing tells, since
 * whoever publishes chooses it: a record there may be a payload. So its beginning has to be what LevelDB would have written at this
 * place, and its checksum not that of a shorter one.
 */
function isCutOff(log: Buffer, { kind, bytes, at, end }: Part, chain: Chain): boolean {
  if (!chain.goesOnWith(kind, bytes)) return false;
  // a part that is not a record's last one has a length by its place
  if (kind === FIRST || kind === MIDDLE) return end === blockEndOf(at);
  return !isMaskedSomewhere(log.readUInt32LE(at), log, at + HEADER_BYTES - 1, log.length);
}

/** The parts of a log so far, as far as they say what comes next. */
class Chain {
  /** A record has begun and not ended. */
  #isInside = false;
  /** The beginning of the last record. */
  #head: Buffer | undefined;

  add({ kind, bytes }: Part): void {
    if (kind === FULL || kind === FIRST) this.#head = bytes.subarray(0, BATCH_HEAD_BYTES);
    // the record began at the end of a block, with less than this
    else if (this.#head !== undefined && this.#head.length < BATCH_HEAD_BYTES)
      this.#head = Buffer.concat([this.#head, bytes]).subarray(0, BATCH_HEAD_BYTES);
    this.#isInside = kind === FIRST || kind === MIDDLE;
  }

  /** Changes are numbered without a gap. */
  goesOnWith(kind: number, bytes: Buffer): boolean {
    const isBeginning = kind === FULL || kind === FIRST;
    if (isBeginning === this.#isInside) return false;
    const head = this.#head;
    if (!isBeginning || bytes.length < 8 || head === undefined || head.length < BATCH_HEAD_BYTES) return true;
    return bytes.readBigUInt64LE(0) === head.readBigUInt64LE(0) + BigInt(head.readUInt32LE(8));
  }
}
